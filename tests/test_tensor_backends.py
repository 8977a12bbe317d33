"""The kernels on tensors of the active Keras backend agree with NumPy.

One process has one backend: `make test` runs this on JAX, `make test-torch` and `make test-tensorflow` on the others.
"""

import numpy as np
import pytest

import schurfire as sf
from schurfire.exact import block_inside
from schurfire.kernels.projection import project_factor, project_matrix
from schurfire.namespaces import keras_namespace
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
