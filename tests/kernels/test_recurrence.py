"""The recurrence: every pure method computes the same states, outputs and gradients as a loop over time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from schurfire import InvalidInputError
from schurfire.kernels import recurrence
from schurfire.kernels.adjoint import _jax_rule
from schurfire.kernels.forms import FORMS, used_entries
from schurfire.kernels.recurrence import linear_recurrence, state_space_response
from tests.kernels.recurrence_battery import PURE, RecurrenceBattery, close, example, response_by_loop
from tests.zoo import tagged, zoo

DTYPES = ("float32", "float64")


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


class TestOnJax(RecurrenceBattery):
    pass


def near(found: np.ndarray, expected: np.ndarray, factor: float = 300) -> None:
    assert isinstance(found, np.ndarray)
    close(jnp.asarray(found), expected, factor)


# --- values on NumPy arrays -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [*PURE, "auto"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [1, 2, 5, 18])
def test_against_a_loop(n, form, dtype, method):
    arrays = example((2,), (2,), n, 37, dtype)
    copies = [array.copy() for array in arrays]
    y, x_end = response_by_loop(*arrays, form)
    found = state_space_response(*arrays, method, form=form)
    near(found.y, y)
    near(found.x_end, x_end)
    assert all((array == copy).all() for array, copy in zip(arrays, copies, strict=True))


@pytest.mark.parametrize("method", PURE)
@pytest.mark.parametrize(
    ("models", "sequences"),
    [
        ((), ()),
        ((), (3,)),
        ((4,), ()),
        ((4, 1), (3,)),
        ((2, 3), (2, 3)),
        ((2, 1, 1), (3, 1)),
        ((2, 1), (1, 3)),
        ((1,), (3,)),
    ],
)
def test_leading_axes_broadcast(models, sequences, method):
    arrays = example(models, sequences)
    y, x_end = response_by_loop(*arrays)
    found = state_space_response(*arrays, method)
    near(found.y, y)
    near(found.x_end, x_end)
    near(linear_recurrence(arrays[0], arrays[1][..., :1].swapaxes(-1, -2), arrays[5], method)[..., 0, :], arrays[5])


def test_each_argument_may_have_leading_axes_of_its_own():
    A, _, C, D, u, _ = example((), ())
    B, x0 = example((4,), ())[1], example((), (5, 1))[5]
    y, x_end = response_by_loop(A, B, C, D, u, x0)
    found = state_space_response(A, B, C, D, u, x0)
    assert found.y.shape == (5, 4, 20, 3)
    near(found.y, y)
    near(found.x_end, x_end)


@pytest.mark.parametrize("method", PURE)
@pytest.mark.parametrize("steps", [0, 1, 2, 7, 8, 9, 64, 65])
def test_number_of_steps(steps, method):
    arrays = example((), (2,), steps=steps)
    y, x_end = response_by_loop(*arrays)
    found = state_space_response(*arrays, method)
    assert found.y.shape == (2, steps, 3)
    near(found.y, y)
    near(found.x_end, x_end)
    A, b = arrays[0], np.zeros((steps, 3))
    assert linear_recurrence(A, b, method=method).shape == (steps + 1, 3)


@pytest.mark.parametrize("method", PURE)
def test_no_states_and_no_sequences(method):
    D, u = np.ones((2, 3)), np.ones((4, 3))
    found = state_space_response(np.zeros((0, 0)), np.zeros((0, 3)), np.zeros((2, 0)), D, u, method=method)
    near(found.y, np.full((4, 2), 3.0))
    assert linear_recurrence(np.eye(2), np.zeros((0, 5, 2)), method=method).shape == (0, 6, 2)


def test_the_last_state_carries_on():
    A, B, C, D, u, x0 = example((), (2,))
    whole = state_space_response(A, B, C, D, u, x0)
    first = state_space_response(A, B, C, D, u[:, :13], x0)
    second = state_space_response(A, B, C, D, u[:, 13:], first.x_end)
    near(np.concatenate([first.y, second.y], axis=-2), whole.y)
    near(second.x_end, whole.x_end)


@pytest.mark.parametrize("method", PURE)
@pytest.mark.parametrize("form", FORMS[1:])
def test_entries_outside_of_the_form_are_not_read(form, method):
    arrays = example((), (), 5)
    y, _ = response_by_loop(*arrays, form)
    arrays[0] = np.where(used_entries(np.ones((5, 5)), form) == 0, np.nan, arrays[0])
    near(state_space_response(*arrays, method, form=form).y, y)
    gradient = jax.grad(lambda A: state_space_response(A, *map(jnp.asarray, arrays[1:]), method, form=form).y.sum())
    found = np.asarray(jax.jit(gradient)(jnp.asarray(arrays[0])))
    assert ((found == 0) == (used_entries(np.ones((5, 5)), form) == 0)).all()


def test_the_entries_of_each_form():
    ones = np.ones((5, 5))
    assert (used_entries(ones, "quasi-triangular") == np.triu(ones, -1)).all()
    blocks = np.kron(np.eye(3), np.ones((2, 2)))[:5, :5]
    assert (used_entries(ones, "block-diagonal") == blocks).all()


# --- rounding and overflow --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["associative", "blocked"])
def test_rounding_errors_on_the_zoo(method, dtype):
    """Any order of summation errs by at most c N n eps times the recurrence of absolute values.

    Each of at most N products of matrices adds (n + 1) roundings to a term, for both results: c = 2 and some room.
    """
    n, steps = 6, 64
    rng = np.random.default_rng(0)
    b, x0 = rng.standard_normal((steps, n)).astype(dtype), rng.standard_normal(n).astype(dtype)
    left_out = {name for tag in ("overflow", "underflow", "graded") for name in tagged(tag)}
    for name, specimen in zoo(n, dtype).items():
        if name in left_out:
            continue
        A = (specimen / max(1, 1.01 * np.abs(np.linalg.eigvals(np.float64(specimen))).max())).astype(dtype)
        expected = linear_recurrence(A, b, x0, "scan")
        size = linear_recurrence(*(np.abs(np.float64(z)) for z in (A, b, x0)), "scan")
        bound = 4 * steps * (n + 1) * np.finfo(dtype).eps * size
        assert (np.abs(linear_recurrence(A, b, x0, method) - expected) <= bound).all(), name


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["associative", "blocked"])
def test_overflow_as_in_a_loop(method, dtype):
    n, steps = 4, 40
    for name, A in zoo(n, dtype).items():
        for start in (0, steps - 2):
            b = np.zeros((steps, n), dtype)
            b[start:, 0] = 1e-20
            with np.errstate(all="ignore"):
                expected = linear_recurrence(A, b, method="scan")
            found = linear_recurrence(A, b, method=method)
            np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected), err_msg=name)
            if not np.isfinite(expected).all():
                np.testing.assert_array_equal(found, expected, err_msg=name)


def test_values_that_are_not_finite_are_carried_on():
    arrays = example((), (2,))
    arrays[4][1, 5, 0] = np.nan
    for method in PURE:
        y = state_space_response(*arrays, method).y
        assert np.isfinite(y[0]).all()
        assert np.isfinite(y[1, :5]).all()
        assert np.isnan(y[1, 5:]).all()


# --- derivatives and transformations ----------------------------------------------------------------------------------


def plain_loss(A, B, C, D, u, x0):
    def step(x, u):
        return A @ x + B @ u, C @ x + D @ u

    x_end, y = jax.lax.scan(step, x0, u)
    return (y**2).sum() + (x_end**2).sum()


def loss(method, form="dense"):
    def of_arrays(*arrays):
        response = state_space_response(*arrays, method, form=form)
        return (response.y**2).sum() + (response.x_end**2).sum()

    return of_arrays


@pytest.mark.parametrize(("method", "dtype"), [("scan", "float32"), *((method, "float64") for method in PURE)])
def test_like_plain_differentiation_but_a_rule_of_its_own(method, dtype):
    arrays = [jnp.asarray(x) for x in example((), (), dtype=dtype)]
    found = jax.jit(jax.grad(loss(method), argnums=range(6)))(*arrays)
    for gradient, expected in zip(found, jax.jit(jax.grad(plain_loss, range(6)))(*arrays), strict=True):
        close(gradient, np.asarray(expected), 3000)
    assert "custom_vjp" in str(jax.make_jaxpr(loss(method))(*arrays))


@pytest.mark.parametrize(
    ("method", "mapped"),
    [
        ("scan", "A"),
        ("scan", "u"),
        ("scan", "B u"),
        ("scan", "A B C D u x0"),
        ("associative", "x0"),
        ("blocked", "C x0"),
        ("auto", "u x0"),
    ],
)
def test_vmap_is_a_loop(method, mapped):
    arrays = [jnp.asarray(x) for x in example((), (2,), steps=9)]
    rng = np.random.default_rng(3)
    axes = tuple(0 if name in mapped.split() else None for name in ("A", "B", "C", "D", "u", "x0"))
    arrays = [
        x if axis is None else jnp.asarray(np.asarray(x) * rng.uniform(0.5, 1, (4, *[1] * x.ndim)))
        for x, axis in zip(arrays, axes, strict=True)
    ]
    function = jax.jit(jax.value_and_grad(loss(method), argnums=range(6)))
    values, gradients = jax.vmap(function, in_axes=axes)(*arrays)
    for i in range(4):
        one = [x if axis is None else x[i] for x, axis in zip(arrays, axes, strict=True)]
        value, expected = function(*one)
        close(values[i], np.asarray(value))
        for gradient, single in zip(gradients, expected, strict=True):
            close(gradient[i], np.asarray(single))


def test_vmap_over_models_that_share_sequences():
    A, B, C, D, u, _ = (jnp.asarray(x) for x in example((2, 1), (3,)))
    function = jax.jit(jax.grad(lambda A, u: (state_space_response(A, B, C, D, u).y ** 2).sum(), argnums=(0, 1)))
    stack = jnp.stack([A, A / 2, -A])
    found = jax.vmap(function, in_axes=(0, None))(stack, u)
    for i in range(3):
        for gradient, expected in zip(found, function(stack[i], u), strict=True):
            close(gradient[i], np.asarray(expected))


@pytest.mark.parametrize("method", ["scan", "associative"])
def test_inside_a_loop_and_compiled_once(method):
    arrays = [jnp.asarray(x) for x in example((), ())]
    traces = []

    @jax.jit
    def descend(A):
        traces.append(A)
        return jax.lax.scan(lambda A, _: (A - 1e-4 * jax.grad(loss(method))(A, *arrays[1:]), None), A, length=3)[0]

    expected, gradient = arrays[0], jax.jit(jax.grad(loss(method)))
    for _ in range(3):
        expected = expected - 1e-4 * gradient(expected, *arrays[1:])
    close(descend(arrays[0]), np.asarray(expected))
    descend(expected)
    assert len(traces) == 1


def test_called_eagerly_it_is_compiled_once_for_a_shape():
    arrays = [jnp.asarray(x) for x in example((), (7,), steps=23)]
    eager = state_space_response(*arrays, "scan")
    compiled = _jax_rule("dense", "scan")._cache_size()
    again = state_space_response(*(2 * x for x in arrays), "scan")
    assert _jax_rule("dense", "scan")._cache_size() == compiled
    assert again.y.shape == eager.y.shape
    close(jax.jit(lambda *z: state_space_response(*z, "scan").y)(*arrays), np.asarray(eager.y))


@pytest.mark.parametrize("form", FORMS)
def test_wide_models_leave_the_lanes(form):
    """Above 16 states, inputs or outputs the steps of ``scan`` are matrix products."""
    arrays = example((2,), (), 18)
    y, x_end = response_by_loop(*arrays, form)
    found = state_space_response(*map(jnp.asarray, arrays), "scan", form=form)
    close(found.y, y)
    close(found.x_end, x_end)


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"A": np.ones(3)}, "Expected A to be of shape"),
        ({"A": np.ones((3, 4))}, "Expected A to be square"),
        ({"A": np.eye(3, dtype=int)}, "Expected A to be a real array of dtype float32 or float64"),
        ({"A": np.eye(4)}, r"Expected B to be of shape \(..., 4, 2\), received shape \(3, 2\)"),
        ({"B": np.ones((3, 5))}, r"Expected B to be of shape \(..., 3, 2\)"),
        ({"B": None}, r"Expected u to be of shape \(..., N, 3\), received shape \(20, 2\). A is of order 3."),
        ({"C": np.ones((3, 2))}, r"Expected C to be of shape \(..., 3, 3\)"),
        ({"C": None}, "Expected D to be None where C is None"),
        ({"D": np.ones((2, 2))}, r"Expected D to be of shape \(..., 3, 2\)"),
        ({"u": np.ones(20)}, "Expected u to be of shape"),
        ({"u": np.ones((20, 2), "float32")}, "of one data type, received A float64, .* u float32"),
        ({"x0": np.ones(2)}, r"Expected x0 to be of shape \(..., 3\)"),
        ({"u": np.ones((4, 20, 2)), "x0": np.ones((5, 3))}, "the leading axes to be such that they broadcast"),
        ({"method": "fast"}, "Expected method to be one of 'auto', 'native', 'scan'"),
        ({"form": "banded"}, "Expected form to be one of 'dense', 'quasi-triangular', 'block-diagonal'"),
    ],
)
def test_bad_arguments(changes, message):
    arguments = dict(zip(("A", "B", "C", "D", "u", "x0"), example((), ()), strict=True)) | changes
    with pytest.raises(InvalidInputError, match=message):
        state_space_response(**arguments)


def test_lists_become_arrays_and_bad_inputs_keep_their_name():
    assert linear_recurrence([[0.5]], [[1.0], [1.0]]).tolist() == [[0.0], [1.0], [1.5]]
    with pytest.raises(InvalidInputError, match=r"Expected b to be of shape \(..., N, 2\)"):
        linear_recurrence(np.eye(2), np.ones((4, 3)))


def test_sizes_of_zero():
    """The library takes none but that of time; everything else does."""
    A, C = 0.5 * np.eye(2), np.ones((1, 2))
    for u, B in ((np.zeros((5, 0)), np.zeros((2, 0))), (np.zeros((0, 5, 1)), np.ones((2, 1)))):
        y, x_end = state_space_response(A, B, C, None, u)
        assert y.shape == (*u.shape[:-1], 1)
        assert x_end.shape == (*u.shape[:-2], 2)
        assert not y.any()


def test_native_where_it_is_not(monkeypatch):
    monkeypatch.setattr(recurrence, "is_available", lambda _: False)
    arrays = example((), ())
    with pytest.raises(InvalidInputError, match=r"received 'native'. Reinstall schurfire with a C\+\+ compiler"):
        state_space_response(*arrays, "native")
    near(state_space_response(*arrays).y, response_by_loop(*arrays)[0])
