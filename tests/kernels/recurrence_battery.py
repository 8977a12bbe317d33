"""What must hold for the recurrence on every backend; run by the tests of the active one."""

import numpy as np
import pytest

from schurfire.kernels.forms import FORMS
from schurfire.kernels.recurrence import linear_recurrence, state_space_response
from schurfire.namespaces import keras_namespace

PURE = ("scan", "associative", "blocked")


def response_by_loop(A, B, C, D, u, x0, form: str = "dense") -> tuple[np.ndarray, np.ndarray]:
    """y and ``x[N]`` from the definition, in the leading axes of all arguments together."""
    i, j = np.indices(A.shape[-2:])
    used = {"dense": i >= 0, "quasi-triangular": j >= i - 1, "block-diagonal": i // 2 == j // 2}[form]
    A = np.where(used, A, 0)
    leading = np.broadcast_shapes(*(M.shape[:-2] for M in (A, B, C, D, u)), x0.shape[:-1])
    x, y = np.broadcast_to(x0, (*leading, A.shape[-1])), np.zeros((*leading, u.shape[-2], C.shape[-2]), u.dtype)
    for k in range(u.shape[-2]):
        y[..., k, :] = np.einsum("...ij,...j->...i", C, x) + np.einsum("...ij,...j->...i", D, u[..., k, :])
        x = np.einsum("...ij,...j->...i", A, x) + np.einsum("...ij,...j->...i", B, u[..., k, :])
    return y, x


def example(models: tuple, sequences: tuple, n: int = 3, steps: int = 20, dtype: str = "float64") -> list[np.ndarray]:
    """A, B, C, D, u, x0 of stable models with 2 inputs and 3 outputs."""
    rng = np.random.default_rng(0)
    shapes = ((n, n), (n, 2), (3, n), (3, 2))
    matrices = [rng.standard_normal((*models, *shape)) for shape in shapes]
    matrices[0] *= 0.4 / np.sqrt(n)
    leading = np.broadcast_shapes(models, sequences)
    arrays = [*matrices, rng.standard_normal((*sequences, steps, 2)), rng.standard_normal((*leading, n))]
    return [array.astype(dtype) for array in arrays]


def tensor(array: np.ndarray):
    return keras_namespace().convert_to_tensor(array, dtype=array.dtype.name)


def numpy(value) -> np.ndarray:
    return np.asarray(keras_namespace().convert_to_numpy(value))


def close(found, expected, factor: float = 300) -> None:
    """Equal to some units of rounding of the largest entry: the models are stable and of norm about 1."""
    assert not isinstance(found, np.ndarray)
    found = numpy(found)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    tolerance = factor * np.finfo(expected.dtype).eps * max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def gradients(function, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The gradients of a scalar function of tensors, by whatever the active backend differentiates with."""
    backend = keras_namespace().backend
    if backend == "jax":
        import jax

        return [np.asarray(g) for g in jax.jit(jax.grad(function, argnums=range(len(arrays))))(*arrays)]
    if backend == "torch":
        tensors = [tensor(x).requires_grad_() for x in arrays]
        function(*tensors).backward()
        return [numpy(x.grad) for x in tensors]
    import tensorflow as tf

    tensors = [tensor(x) for x in arrays]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        value = function(*tensors)
    return [numpy(g) for g in tape.gradient(value, tensors)]


def differences(arrays: list[np.ndarray], form: str, weights: tuple[np.ndarray, np.ndarray]) -> list[np.ndarray]:
    """Gradients of the weighted sum of y and ``x[N]`` along one direction each, from central differences of a loop."""

    def value(given: list[np.ndarray]) -> float:
        y, x_end = response_by_loop(*given, form)
        return (weights[0] * y).sum() + (weights[1] * x_end).sum()

    slopes, rng = [], np.random.default_rng(2)
    for i, array in enumerate(arrays):
        direction = rng.standard_normal(array.shape)
        moved = [[z + (sign * 1e-5 * direction if i == j else 0) for j, z in enumerate(arrays)] for sign in (1, -1)]
        slopes.append((direction, (value(moved[0]) - value(moved[1])) / 2e-5))
    return slopes


class RecurrenceBattery:
    """Tests of ``state_space_response`` and ``linear_recurrence`` on tensors."""

    @pytest.mark.parametrize("method", [*PURE, "auto"])
    @pytest.mark.parametrize("form", FORMS)
    def test_response_against_a_loop(self, form, method):
        arrays = example((2, 1), (3,), dtype="float32")
        expected = response_by_loop(*arrays, form)
        found = state_space_response(*map(tensor, arrays), method, form=form)
        close(found.y, expected[0])
        close(found.x_end, expected[1])

    @pytest.mark.parametrize("method", [*PURE, "auto"])
    def test_states_against_a_loop(self, method):
        A, _, _, _, _, x0 = example((), (2,))
        b = np.random.default_rng(1).standard_normal((2, 11, 3))
        y, x_end = response_by_loop(A, np.eye(3), np.eye(3), np.zeros((3, 3)), b, x0)
        expected = np.concatenate([y, x_end[..., None, :]], axis=-2)
        close(linear_recurrence(tensor(A), tensor(b), tensor(x0), method), expected)

    @pytest.mark.parametrize("method", PURE)
    @pytest.mark.parametrize("form", FORMS)
    def test_gradients_against_differences(self, form, method):
        arrays = example((2, 1), (3,), steps=9)
        rng = np.random.default_rng(1)
        weights = rng.standard_normal((2, 3, 9, 3)), rng.standard_normal((2, 3, 3))

        def value(*tensors):
            xp, response = keras_namespace(), state_space_response(*tensors, method, form=form)
            return xp.sum(response.y * tensor(weights[0])) + xp.sum(response.x_end * tensor(weights[1]))

        found = gradients(value, arrays)
        for array, gradient, (direction, slope) in zip(arrays, found, differences(arrays, form, weights), strict=True):
            assert gradient.shape == array.shape
            # Central differences of step h err by eps / h and h^2, relative to values of order 10.
            assert (gradient * direction).sum() == pytest.approx(slope, rel=1e-7, abs=1e-7)

    @pytest.mark.parametrize("method", PURE)
    def test_absent_matrices(self, method):
        A, _, C, _, _, _ = example((), (2,))
        u = np.random.default_rng(1).standard_normal((2, 12, 3))
        expected = response_by_loop(A, np.eye(3), C, np.zeros((3, 3)), u, np.zeros((2, 3)))[0]
        close(state_space_response(tensor(A), None, tensor(C), None, tensor(u), method=method).y, expected)

        def value(A, u):
            return keras_namespace().sum(state_space_response(A, None, None, None, u, method=method).y ** 2)

        for gradient, array in zip(gradients(value, [A, u]), (A, u), strict=True):
            assert gradient.shape == array.shape
            assert np.abs(gradient).max() > 0.1

    @pytest.mark.parametrize("method", ["associative", "blocked"])
    def test_an_overflowing_power_does_not_touch_a_state_that_is_zero(self, method):
        A, b = np.float32([[1e20, 0], [0, 0.5]]), np.ones((20, 2), "float32") * np.float32([0, 1])
        found = linear_recurrence(tensor(A), tensor(b), method=method)
        expected = linear_recurrence(A, b, method="scan")
        assert np.isfinite(expected).all()
        close(found, expected)
