"""The checks at the door: what passes unchanged, and every message of what does not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from schurfire import SchurForm
from schurfire.arrays import concrete, real_array, square_matrices, square_matrix
from schurfire.errors import InvalidInputError, NotConvergedError, invalid


def test_the_shape_of_a_message():
    error = invalid("A", "square", "shape (2, 3)", "Transpose it.")
    assert isinstance(error, InvalidInputError)
    assert str(error) == "Expected A to be square, received shape (2, 3). Transpose it."
    assert str(invalid("A", "square", 3)) == "Expected A to be square, received 3."
    assert issubclass(InvalidInputError, ValueError)
    assert issubclass(NotConvergedError, RuntimeError)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_pass_without_a_copy(dtype):
    x = np.ones((2, 3, 3), dtype)
    for check in (real_array, square_matrices):
        assert check(x, "x") is x
    assert square_matrix(x[0], "x").base is x
    assert concrete(x, "x") is x


def test_nested_lists_become_float64():
    x = real_array([[1.0, 2.0], [3.0, 4.5]], "x")
    assert x.dtype == "float64"
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.5]]


def test_tensors_pass_as_they_are():
    x = jnp.ones((2, 2), "float32")
    assert square_matrices(x, "x") is x
    assert type(concrete(x, "x")) is np.ndarray
    assert square_matrix(x, "x").dtype == "float32"
    with jax.enable_x64(True):
        assert square_matrix(jnp.ones((2, 2), "float64"), "x").dtype == "float64"


@pytest.mark.parametrize(
    ("x", "dtype", "fix"),
    [
        (np.eye(2, dtype=int), "int64", "Cast x to float64 yourself"),
        ([[1, 2], [3, 4]], "int64", "Cast x to float64 yourself"),
        (np.eye(2, dtype=bool), "bool", "Cast x to float64"),
        (np.eye(2, dtype="float16"), "float16", "Cast x to float64"),
        (np.eye(2, dtype=np.longdouble), "longdouble|float128", "Cast x to float64"),
        (np.eye(2) * 1j, "complex128", "Pass the real part if x is real; complex matrices are not supported"),
        (jnp.eye(2, dtype="complex64"), "complex64", "Pass the real part"),
        (jnp.eye(2, dtype="bfloat16"), "bfloat16", "Cast x to float64"),
        (np.array([["a"]]), "str", "Cast x"),
        ("matrix", "str", "Cast x"),
    ],
)
def test_other_data_types(x, dtype, fix):
    message = rf"Expected x to be a real array of dtype float32 or float64, received dtype ({dtype}).*\. {fix}"
    with pytest.raises(InvalidInputError, match=message):
        real_array(x, "x")


@pytest.mark.parametrize(
    ("x", "kind"),
    [(None, "NoneType"), (np.array([[None]]), "ndarray"), (SchurForm(np.eye(2) / 2, np.eye(2)), "SchurForm")],
)
def test_objects(x, kind):
    with pytest.raises(
        InvalidInputError, match=f"Expected x to be an array of real numbers, .* of type {kind}"
    ) as error:
        real_array(x, "x")
    assert (".matrix" in str(error.value)) == (kind == "SchurForm")


def test_masked_arrays():
    with pytest.raises(InvalidInputError, match="Expected x to be an array without mask"):
        real_array(np.ma.array(np.eye(2), mask=np.eye(2)), "x")


def test_ragged_lists():
    with pytest.raises(InvalidInputError, match=r"Expected x to be rectangular, .* Give every row the same length"):
        real_array([[1.0, 2.0], [3.0]], "x")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("library", [np, jnp])
def test_values_that_are_not_finite(value, library):
    x = np.ones((2, 3, 3), "float32")
    x[1, 0, 2] = x[1, 2, 2] = value
    with pytest.raises(InvalidInputError, match=r"x to be finite, received 2 NaN or .* first at index \(1, 0, 2\)"):
        square_matrices(library.asarray(x), "x")


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 2), (0, 1)])
def test_not_square(shape):
    with pytest.raises(InvalidInputError, match=r"x to be square, of shape \(\.\.\., n, n\), received shape \("):
        square_matrices(np.ones(shape), "x")


@pytest.mark.parametrize("shape", [(0, 2, 2), (3, 0, 2, 2), (0, 0, 0)])
def test_empty_stacks(shape):
    with pytest.raises(InvalidInputError, match=r"x to be a stack of at least one matrix, .* Leave out empty stacks"):
        square_matrices(np.ones(shape), "x")


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (2, 0, 0), (1, 2, 3, 3)])
def test_orders_from_zero_on(shape):
    assert square_matrices(np.ones(shape), "x").shape == shape


def test_one_matrix_only():
    with pytest.raises(InvalidInputError, match=r"x to be one matrix of shape \(n, n\), received shape \(2, 3, 3\)"):
        square_matrix(np.ones((2, 3, 3)), "x")


def test_traced_arrays_have_shapes_but_no_values():
    @jax.jit
    def checked(x):
        assert square_matrices(x, "x") is x
        with pytest.raises(
            InvalidInputError, match=r"x to be an array with values, received a traced array. Call this"
        ):
            concrete(x, "x")
        with pytest.raises(InvalidInputError, match="square"):
            square_matrices(x[0], "x")
        return x

    assert jnp.isnan(checked(jnp.full((2, 2), jnp.nan))).all()
