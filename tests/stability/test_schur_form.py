"""Schur pairs: what they refuse, how stacks of them behave, and that nothing of them can be written to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from schurfire import Disc, HalfPlane, InvalidInputError, SchurForm, certify, real_schur
from schurfire.stability.schur_form import diagonal_blocks, is_quasi_triangular
from tests.references import blocks_of
from tests.zoo import zoo

T4 = np.array([[0.5, 1.0, 2.0, 3.0], [0.0, 0.25, 4.0, 5.0], [0.0, -0.125, 0.25, 6.0], [0.0, 0.0, 0.0, -0.75]])


def stack(*shape, n=4):
    A = np.random.default_rng(0).standard_normal((*shape, n, n))
    return SchurForm(*real_schur(A)[:2])


def test_defaults():
    form = SchurForm(T4, np.eye(4))
    assert form.region == Disc()
    assert form.source is None
    np.testing.assert_array_equal(form.T, T4)
    np.testing.assert_array_equal(form.matrix, T4)
    assert "source" not in repr(form)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_the_factors_of_the_whole_zoo_are_accepted(n, dtype):
    for name, A in zoo(n, dtype).items():
        form = SchurForm(*real_schur(A)[:2], region=HalfPlane(-1))
        assert form.T.dtype == form.Z.dtype == form.matrix.dtype == dtype
        size = np.abs(A).max() or 1.0
        np.testing.assert_allclose(form.matrix / size, A / size, atol=60 * n * np.finfo(dtype).eps, err_msg=name)
        for new, old in zip(form.blocks, blocks_of(form.T), strict=True):
            np.testing.assert_array_equal(new, old)


def test_orders_zero_and_one():
    empty = SchurForm(np.zeros((0, 0)), np.zeros((0, 0)))
    assert empty.blocks == ()
    assert empty.matrix.shape == (0, 0)
    assert empty.certify().is_stable
    assert SchurForm([[0.5]], [[-1.0]]).certify().is_stable
    assert len(SchurForm(np.zeros((2, 0, 0)), np.zeros((2, 0, 0)))) == 2


def test_tensors_become_arrays():
    form = SchurForm(jnp.eye(2), jnp.eye(2))
    assert type(form.T) is type(form.Z) is np.ndarray
    assert form.T.dtype == "float32"

    @jax.jit
    def traced(T):
        with pytest.raises(InvalidInputError, match="T to be an array with values, received a traced array"):
            SchurForm(T, T)
        return T

    traced(jnp.eye(2))


def test_the_source_is_returned_bit_for_bit():
    A = np.random.default_rng(1).standard_normal((3, 3))
    T, Z, *_ = real_schur(A)
    form = SchurForm(T, Z, source=A)
    np.testing.assert_array_equal(form.matrix, A)
    assert not np.array_equal(SchurForm(T, Z).matrix, A)


def test_certify_is_the_public_function():
    form = SchurForm(T4, np.eye(4), HalfPlane(1.0))
    assert str(form.certify()) == str(certify(form))
    assert form.certify().region == HalfPlane(1.0)
    assert certify(form, Disc()).region == Disc()
    assert certify(form, Disc()).is_stable


def test_nothing_can_be_written_to():
    form = SchurForm(T4.copy(), np.eye(4))
    for array in (form.T, form.Z, form.blocks[0]):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 2.0
    with pytest.raises(AttributeError):
        form.T = np.eye(4)


# --- stacks -----------------------------------------------------------------------------------------------------------


def test_a_stack_is_indexed_like_its_arrays():
    forms = stack(2, 3)
    assert len(forms) == 2
    assert forms.matrix.shape == (2, 3, 4, 4)
    for index in (0, -1, (1, 2), slice(1, None), (slice(None), 0)):
        np.testing.assert_array_equal(forms[index].T, forms.T[index])
        np.testing.assert_array_equal(forms[index].Z, forms.Z[index])
    np.testing.assert_allclose(forms[1, 2].matrix, forms.matrix[1, 2], atol=1e-14)
    assert [form.T.shape for form in forms] == [(3, 4, 4)] * 2
    assert all(len(form.blocks) >= 2 for row in forms for form in row)


def test_a_stack_keeps_region_and_source():
    T, Z = np.stack([T4, T4 / 2]), np.stack([np.eye(4)] * 2)
    forms = SchurForm(T, Z, Disc(2.0), source=T)
    for i, form in enumerate(forms):
        assert form.region == Disc(2.0)
        np.testing.assert_array_equal(form.matrix, T[i])
    assert SchurForm(T, Z)[0].source is None
    with pytest.raises(IndexError):
        forms[2]


def test_what_only_a_single_pair_or_only_a_stack_has():
    with pytest.raises(
        InvalidInputError, match=r"form to be a single pair, received a stack of shape \(2, 3\). Index it"
    ):
        _ = stack(2, 3).blocks
    form = SchurForm(T4, np.eye(4))
    with pytest.raises(TypeError, match="A single SchurForm has no length; only a stack of them has"):
        len(form)
    with pytest.raises(TypeError, match="A single SchurForm cannot be indexed; only a stack of them can"):
        form[0]


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "value"), [((3, 0), 1e-300), ((2, 0), -1.0), ((1, 0), 1e-320), ((3, 2), 1e-320), ((3, 1), 1.0)]
)
def test_not_quasi_triangular(place, value):
    T = T4.copy()
    T[place] = value
    with pytest.raises(
        InvalidInputError, match=r"Expected T to be quasi-triangular, received non-zero .* Compute it with"
    ):
        SchurForm(T, np.eye(4))
    assert not is_quasi_triangular(T)
    with pytest.raises(InvalidInputError, match="quasi-triangular"):
        SchurForm(np.stack([T4, T]), np.stack([np.eye(4)] * 2))


def test_negative_zeros_below_are_zeros():
    T = T4.copy()
    T[1, 0] = T[3, 0] = -0.0
    assert len(SchurForm(T, np.eye(4)).blocks) == 3
    assert [block.shape for block in diagonal_blocks(T)] == [(1, 1), (2, 2), (1, 1)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_not_orthogonal(dtype):
    T, Z = T4.astype(dtype), np.linalg.qr(zoo(4)["ginibre"])[0].astype(dtype)
    eps = float(np.finfo(dtype).eps)
    SchurForm(T, Z)
    SchurForm(T, Z * (1 + 4 * eps))
    for wrong in (Z * (1 + 1000 * eps), Z + np.eye(4, dtype=dtype) / 2, np.zeros_like(Z), Z * 0.999):
        with pytest.raises(
            InvalidInputError, match=r"Expected Z to be orthogonal to .*e-.*, received a residual of .* Pass"
        ):
            SchurForm(T, wrong)
    with pytest.raises(InvalidInputError, match="Z to be orthogonal"):
        SchurForm(np.stack([T, T]), np.stack([Z, 2 * Z]))


def test_factors_that_do_not_fit():
    for T, Z in ((T4, np.eye(3)), (T4, np.eye(4, dtype="float32")), (T4, np.stack([np.eye(4)] * 2))):
        with pytest.raises(InvalidInputError, match="Expected T and Z to be of one shape and dtype, received"):
            SchurForm(T, Z)


def test_other_bad_input():
    for T in (np.ones((2, 3)), np.eye(2, dtype=int), np.eye(2) * 1j, np.full((2, 2), np.nan), np.zeros((0, 2, 2))):
        with pytest.raises(InvalidInputError, match="Expected T to be"):
            SchurForm(T, np.eye(2))
        with pytest.raises(InvalidInputError, match="Expected Z to be"):
            SchurForm(np.eye(2), T)
    with pytest.raises(InvalidInputError, match="Expected region to be"):
        SchurForm(np.eye(2), np.eye(2), "disc")
