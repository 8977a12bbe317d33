"""The kernels on tensors of the active Keras backend agree with NumPy.

One process has one backend: `make test` runs this on JAX, `make test-torch` and `make test-tensorflow` on the others.
"""

import numpy as np
import pytest

import schurfire as sf
from schurfire.exact import block_inside
from schurfire.kernels.forms import used_entries
from schurfire.kernels.projection import project_factor, project_matrix
from schurfire.kernels.recurrence import state_space_response
from schurfire.namespaces import dtype_name, keras_namespace
from schurfire.stability.schur_form import diagonal_blocks
from tests.kernels.recurrence_battery import RecurrenceBattery

DTYPES = ("float32", "float64")


def _stack(dtype: str, *shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@pytest.fixture(autouse=True)
def _double_precision():
    """JAX has float64 only where it is switched on."""
    if keras_namespace().backend != "jax":
        yield
        return
    import jax

    with jax.enable_x64(True):
        yield


def _tensor(array: np.ndarray):
    return keras_namespace().convert_to_tensor(array, dtype=array.dtype.name)


def _numpy(tensor) -> np.ndarray:
    return np.asarray(keras_namespace().convert_to_numpy(tensor))


def _close(tensor, array: np.ndarray, factor: float = 100) -> None:
    assert not isinstance(tensor, np.ndarray)
    found = _numpy(tensor)
    assert found.dtype == array.dtype
    tolerance = factor * np.finfo(array.dtype).eps
    np.testing.assert_allclose(found, array, rtol=tolerance, atol=tolerance)


def _same_distances(given: np.ndarray, found: np.ndarray, expected: np.ndarray) -> None:
    """Two ways to round inward may be equally near, so the distances agree better than the numbers."""
    assert found.dtype == expected.dtype
    distances = [np.linalg.norm(X - given, axis=(1, 2)) for X in (found, expected)]
    tolerance = 1000 * np.finfo(given.dtype).eps
    np.testing.assert_allclose(*distances, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inward", [True, False])
@pytest.mark.parametrize("region", [sf.Disc(), sf.Disc(0.7, 0.3), sf.HalfPlane(-0.1)])
def test_nearest_stable_block(dtype, inward, region):
    blocks = 3 * _stack(dtype, 200, 2, 2)
    expected = sf.nearest_stable_block(blocks, region, inward=inward)
    found = _numpy(sf.nearest_stable_block(_tensor(blocks), region, inward=inward))
    _same_distances(blocks, found, expected)
    if inward:
        assert all(block_inside(block, region) for block in found)


@pytest.mark.parametrize("dtype", DTYPES)
def test_huge_blocks_are_strictly_inside(dtype):
    blocks = _stack(dtype, 300, 2, 2) * 10 ** np.linspace(0, 15, 300).astype(dtype)[:, None, None]
    assert all(block_inside(block, sf.Disc()) for block in _numpy(sf.nearest_stable_block(_tensor(blocks))))


@pytest.mark.parametrize("dtype", DTYPES)
def test_project_factor(dtype):
    T = sf.real_schur(2 * _stack(dtype, 5, 7, 7)).T
    found, expected = _numpy(project_factor(_tensor(T))), project_factor(T)
    _same_distances(T, found, expected)
    assert all(block_inside(b, sf.Disc()) for matrix in found for b in diagonal_blocks(matrix))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["lapack", "portable"])
def test_real_schur(dtype, method):
    if method == "lapack" and keras_namespace().backend == "jax":
        import jax

        if jax.default_backend() != "cpu":
            pytest.skip("LAPACK runs on CPUs")
    A = _stack(dtype, 3, 6, 6)
    T, Z, blocks, converged = (_numpy(x) for x in sf.real_schur(_tensor(A), method=method))
    assert converged.all()
    assert (blocks.sum(axis=-1) == 6).all()
    tolerance = 30 * 6 * np.finfo(dtype).eps
    assert np.linalg.norm(Z @ T @ Z.swapaxes(1, 2) - A) <= tolerance * np.linalg.norm(A)
    assert np.linalg.norm(Z @ Z.swapaxes(1, 2) - np.eye(6)) <= 3 * tolerance


@pytest.mark.parametrize("dtype", DTYPES)
def test_project_matrix(dtype):
    pair = project_matrix(_tensor(_stack(dtype, 2, 5, 5)))
    assert all(block_inside(b, sf.Disc()) for matrix in _numpy(pair.T) for b in diagonal_blocks(matrix))


@pytest.mark.parametrize("dtype", DTYPES)
def test_spectral_radius_bound(dtype):
    A = _stack(dtype, 4, 6, 6)
    _close(sf.spectral_radius_bound(_tensor(A)), sf.spectral_radius_bound(A), 1000)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["svd", "eigh", "sherif", "newton-schulz"])
def test_nearest_orthogonal(dtype, method):
    Z = np.linalg.qr(_stack(dtype, 3, 5, 5))[0] + 0.01 * _stack(dtype, 3, 5, 5)
    _close(sf.nearest_orthogonal(_tensor(Z), method=method), sf.nearest_orthogonal(Z, method=method), 1000)


def test_a_tensor_with_nan_is_refused():
    with pytest.raises(sf.InvalidInputError, match="finite"):
        sf.nearest_stable_block(_tensor(np.full((2, 2), np.nan)))


class TestRecurrence(RecurrenceBattery):
    """The recurrence, its methods and forms, and their derivatives."""


# --- functions that are not those of keras.ops ------------------------------------------------------------------------

CALLS = {
    "abs": ((), {}),
    "all": ((), {"axis": (-2, -1)}),
    "any": ((), {"axis": -1, "keepdims": True}),
    "broadcast_to": (((5, 2, 3, 3),), {}),
    "convert_to_tensor": ((), {}),
    "diagonal": ((), {"axis1": -2, "axis2": -1}),
    "isfinite": ((), {}),
    "logical_not": ((), {}),
    "moveaxis": ((0, -1), {}),
    "ones_like": ((), {"dtype": "bool"}),
    "reshape": (((3, -1, 2),), {}),
    "shape": ((), {}),
    "sqrt": ((), {}),
    "stop_gradient": ((), {}),
    "swapaxes": ((-1, -2), {}),
    "zeros_like": ((), {}),
}


@pytest.mark.parametrize("kind", [*DTYPES, "bool"])
@pytest.mark.parametrize("name", CALLS)
def test_functions_mean_what_those_of_keras_mean(name, kind):
    import keras

    if kind == "bool" and name in ("abs", "sqrt"):
        pytest.skip("of numbers")
    x, (args, options) = (
        _tensor(_stack("float64", 2, 3, 3) > 0.3 if kind == "bool" else _stack(kind, 2, 3, 3)),
        CALLS[name],
    )
    found, expected = (getattr(xp, name)(x, *args, **options) for xp in (keras_namespace(), keras.ops))
    if name == "shape":
        assert found == expected == (2, 3, 3)
        return
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(_numpy(found), _numpy(expected))


@pytest.mark.parametrize("name", ["concatenate", "stack"])
def test_stacks_mean_what_those_of_keras_mean(name):
    import keras

    for parts in (
        [_tensor(_stack("float32", 2, 3)), _tensor(_stack("float32", 2, 3))],
        [_tensor(np.eye(2)), np.eye(2)],
    ):
        found, expected = (getattr(xp, name)(parts, axis=-1) for xp in (keras_namespace(), keras.ops))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(_numpy(found), _numpy(expected))


def test_symbolic_tensors_and_variables_are_taken():
    import keras

    xp = keras_namespace()
    assert xp.reshape(keras.KerasTensor((2, 6)), (3, 4)).shape == (3, 4)
    assert xp.concatenate([keras.KerasTensor((2, 6))] * 2, axis=-1).shape == (2, 12)
    variable = keras.Variable(np.ones((2, 3), "float32"))
    assert dtype_name(xp.convert_to_tensor(variable, dtype="float64")) == "float64"
    np.testing.assert_array_equal(_numpy(xp.swapaxes(variable, 0, 1)), np.ones((3, 2)))


def test_layers_inside_of_layers_take_symbolic_tensors():
    import keras

    class Twice(keras.layers.Layer):
        """Without ``compute_output_shape``: Keras finds the shape by calling it."""

        def __init__(self):
            super().__init__()
            self.inner = [sf.layers.StateSpace(3, 2, seed=0), sf.layers.StateSpace(4, 1, "none", seed=1)]

        def call(self, x):
            return self.inner[1](self.inner[0](x))

    inputs = keras.Input((20, 2))
    outputs = Twice()(inputs)
    assert outputs.shape == (None, 20, 1)
    assert _numpy(keras.Model(inputs, outputs)(_tensor(_stack("float32", 3, 20, 2)))).shape == (3, 20, 1)


# --- PyTorch: how tensors lie in memory -------------------------------------------------------------------------------


def _layouts() -> dict:
    """A, B, C, D, u, x0 that are transposed, strided, shared, broadcast, or whose axes cannot be joined."""
    import torch

    generator = torch.Generator().manual_seed(0)

    def random(*shape):
        return 0.4 * torch.randn(shape, generator=generator, dtype=torch.float64)

    A, B, C, D, u = random(3, 3), random(3, 2), random(4, 3), random(4, 2), random(5, 6, 2)
    return {
        "one model": (A, B, C, D, u, None),
        "one sequence": (A, B, C, D, u[0], random(3)),
        "transposed": (A.T, random(2, 3).T, random(3, 4).T, D, u.transpose(0, 1), None),
        "every other": (random(6, 6)[::2, ::2], B, C, D, random(5, 12, 2)[:, ::2], None),
        "one number for all": (A, random(1, 1).expand(3, 2), C, None, u, random(1).expand(3)),
        "models that share sequences": (random(7, 1, 3, 3), B, random(7, 1, 4, 3), D, u, random(5, 3)),
        "models that share a matrix": (A, random(7, 1, 3, 2), C, D, random(7, 5, 6, 2), random(7, 1, 3)),
        "two axes of models": (random(2, 7, 3, 3), random(7, 3, 2), random(2, 1, 4, 3), D, random(7, 6, 2), None),
        "axes apart": (random(7, 2, 3, 3).transpose(0, 1), B, None, None, random(2, 7, 6, 2), random(7, 3)),
        "sequences apart": (A, B, C, D, random(4, 5, 6, 2).transpose(0, 1), random(4, 3)),
        "no steps": (A, B, C, D, u[:, :0], random(5, 3)),
    }


@pytest.mark.skipif(keras_namespace().backend != "torch", reason="about PyTorch")
@pytest.mark.parametrize("form", ["dense", "block-diagonal"])
@pytest.mark.parametrize("case", range(11))
def test_layouts_of_tensors(case, form):
    import torch

    arguments = list(_layouts().values())[case]
    given = [x.detach().requires_grad_() for x in arguments if x is not None]
    remaining = iter(given)
    A, B, C, D, u, x0 = arguments = [None if x is None else next(remaining) for x in arguments]
    leading = torch.broadcast_shapes(*(x.shape[:-2] for x in arguments[:5] if x is not None))
    x = torch.zeros(3, dtype=u.dtype) if x0 is None else x0
    leading = torch.broadcast_shapes(leading, x.shape[:-1])
    x, y = x.expand(*leading, 3), []
    for k in range(u.shape[-2]):
        now = u[..., k, :, None]
        out = x if C is None else (C @ x[..., None])[..., 0]
        y.append((out if D is None else out + (D @ now)[..., 0]).expand(*leading, 3 if C is None else 4))
        x = (used_entries(A, form) @ x[..., None] + B @ now)[..., 0]
    expected = torch.stack(y, -2) if y else torch.zeros((*leading, 0, 4), dtype=u.dtype), x

    found = state_space_response(*arguments, form=form)
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        torch.testing.assert_close(a, b, rtol=1e-13, atol=1e-13)

    def slopes(y, x_end):  # a mean has gradients that are expanded, and a sine ones that are not
        return torch.autograd.grad(y.sum() + torch.sin(x_end).sum(), given, retain_graph=True, allow_unused=True)

    for a, b in zip(slopes(*found), slopes(*expected), strict=True):
        torch.testing.assert_close(a, torch.zeros_like(a) if b is None else b, rtol=1e-12, atol=1e-12)
