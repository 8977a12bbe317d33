"""Real Schur decomposition: LAPACK's own test ratios, exact block structure, and what failures look like."""

import functools

import jax
import numpy as np
import pytest
import scipy.linalg

from schurfire.errors import InvalidInputError, NotConvergedError
from schurfire.kernels import francis as francis_module
from schurfire.kernels import schur as schur_module
from schurfire.kernels.francis import francis
from schurfire.kernels.hessenberg import hessenberg
from schurfire.kernels.quasi_triangular import block_structure, standardise
from schurfire.kernels.schur import RealSchur, real_schur
from tests.zoo import zoo

THRESHOLD = 30  # of LAPACK's eigenvalue tests
METHODS = ("lapack", "portable")


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def one_norm(X: np.ndarray) -> np.ndarray:
    return np.abs(X).sum(-2).max(-1)


def ratios(A: np.ndarray, schur: RealSchur) -> tuple[np.ndarray, np.ndarray]:
    """Residual and orthogonality in LAPACK's units: ``n eps ||A||`` and ``n eps``, measured in float64."""
    T, Z = (np.asarray(X, "float64") for X in (schur.T, schur.Z))
    unit = A.shape[-1] * np.finfo(A.dtype).eps
    size = np.abs(A).max((-2, -1), keepdims=True).astype("float64")
    size = np.where(size > 0, size, 1.0)
    A = A / size
    residual = one_norm(A - Z @ (T / size) @ np.swapaxes(Z, -1, -2)) / np.maximum(one_norm(A), 0.5) / unit
    return residual, one_norm(np.eye(A.shape[-1]) - np.swapaxes(Z, -1, -2) @ Z) / unit


def malformed(schur: RealSchur) -> np.ndarray:
    """Where T is not exactly quasi-triangular with standard blocks, or ``blocks`` does not describe it."""
    T, blocks = np.asarray(schur.T), np.asarray(schur.blocks)
    diagonal, above, below = (np.diagonal(T, k, -2, -1) for k in (0, 1, -1))
    linked = below != 0
    expected = np.ones(T.shape[:-1], "int32")
    expected[..., :-1] += linked
    expected[..., 1:] -= linked
    bad = np.tril(T, -2).any((-2, -1)) | (linked[..., 1:] & linked[..., :-1]).any(-1)
    bad |= (linked & (diagonal[..., 1:] != diagonal[..., :-1])).any(-1)
    bad |= (linked & ~(np.sign(above) * np.sign(below) < 0)).any(-1)
    return bad | (blocks != expected).any(-1) | ~np.asarray(schur.converged)


def check(A: np.ndarray, schur: RealSchur, names: list[str] | None = None) -> None:
    assert schur.T.dtype == schur.Z.dtype == A.dtype
    assert schur.T.shape == schur.Z.shape == A.shape
    residual, orthogonality = ratios(A, schur)
    failed = malformed(schur) | ~(residual < THRESHOLD) | ~(orthogonality < THRESHOLD)
    report = [(names[i] if names else i, residual[i], orthogonality[i]) for i in np.flatnonzero(failed)]
    assert not report


def by_jax(A: np.ndarray, method: str) -> RealSchur:
    with jax.enable_x64(True):
        return RealSchur(*(np.asarray(x) for x in real_schur(jax.numpy.asarray(A), method)))


# --- accuracy and structure -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n", "dtype"), [(8, "float64"), (60, "float64"), (20, "float32")])
def test_zoo(n, dtype, method):
    matrices = zoo(n, dtype)
    A = np.stack(list(matrices.values()))
    check(A, by_jax(A, method) if method == "portable" else real_schur(A, method), list(matrices))


@pytest.mark.parametrize("method", METHODS)
def test_large_matrices(method):
    matrices = zoo(200, "float64")
    names = ["ginibre", "grcar", "cyclic", "defective pairs rotated"]
    A = np.stack([matrices[name] for name in names])
    check(A, by_jax(A, method), names)


@pytest.mark.parametrize(("n", "dtype"), [(3, "float64"), (12, "float64")])
def test_many_small_matrices(n, dtype, rng):
    """Small integers make double eigenvalues, zero discriminants and exact ties."""
    A = rng.standard_normal((6000, n, n))
    A[::3] = rng.integers(-1, 2, A[::3].shape)
    A[1::3] = rng.integers(0, 2, A[1::3].shape)
    A = A.astype(dtype)
    check(A, by_jax(A, "portable"))
    check(A[::10], real_schur(A[::10], "lapack"))


@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_portable_on_numpy_arrays(n, dtype):
    matrices = zoo(n, dtype)
    A = np.stack(list(matrices.values()))
    schur = real_schur(A, "portable")
    assert all(type(x) is np.ndarray for x in schur)
    check(A, schur, list(matrices))


@pytest.mark.parametrize("method", METHODS)
def test_known_spectra(method, rng):
    n = 12
    cyclic = real_schur(np.roll(np.eye(n), 1, axis=0), method)
    pairs = np.flatnonzero(cyclic.blocks == 2)
    assert cyclic.blocks.sum() == n
    assert len(pairs) == n // 2 - 1
    imaginary = np.sqrt(-cyclic.T[pairs, pairs + 1] * cyclic.T[pairs + 1, pairs])
    roots = cyclic.T[pairs, pairs] + 1j * imaginary
    expected = np.exp(2j * np.pi * np.arange(1, n // 2) / n)
    np.testing.assert_allclose(np.sort_complex(roots), np.sort_complex(expected), atol=1e-13)

    eigenvalues = np.sort(rng.standard_normal(n))
    Q = scipy.linalg.qr(rng.standard_normal((n, n)))[0]
    symmetric = real_schur(Q @ np.diag(eigenvalues) @ Q.T, method)
    assert (symmetric.blocks == 1).all()
    np.testing.assert_allclose(np.sort(np.diagonal(symmetric.T)), eigenvalues, atol=1e-13)


def test_quasi_triangular_input_comes_back_bit_identical(rng):
    A = np.triu(rng.standard_normal((7, 7)))
    A[2:4, 2:4] = [[0.3, 2.0], [-1e-9, 0.3]]
    for T in (A, A * 1e250, A * 1e-250):
        schur = real_schur(T, "portable")
        np.testing.assert_array_equal(schur.T, T)
        np.testing.assert_array_equal(schur.Z, np.eye(7))
        np.testing.assert_array_equal(schur.blocks, [1, 1, 2, 0, 1, 1, 1])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [0, 1])
def test_trivial_orders(n, method):
    for A in (np.full((n, n), -3.0, "float32"), np.full((2, 1, n, n), 4.0)):
        for schur in (real_schur(A, method), by_jax(A, method)):
            np.testing.assert_array_equal(schur.T, A)
            np.testing.assert_array_equal(schur.Z, np.ones_like(A))
            assert schur.T.dtype == A.dtype
            assert schur.blocks.shape == A.shape[:-1]
            assert (schur.blocks == 1).all()
            assert schur.converged.shape == A.shape[:-2]
            assert schur.converged.all()


@pytest.mark.parametrize(
    ("block", "order"),
    [
        ([[1.0, 2.0], [-0.5, 1.0]], 2),  # standard already
        ([[1.0, 2.0], [3.0, -4.0]], 1),  # real eigenvalues
        ([[1.0, -5.0], [2.0, 0.0]], 2),
        ([[0.0, 0.0], [2.0, 0.0]], 1),  # nilpotent
        ([[1.0, 0.0], [2.0, 1.0]], 1),
        ([[3.0, 0.0], [2.0, 1.0]], 1),
        ([[0.0, 1.0], [1.0, 0.0]], 1),
        ([[-1.0, -0.5], [2.0, 1.0]], 1),  # double eigenvalue
        ([[1.0, 1e-8], [-1e-8, 1.0 + 1e-12]], 2),
    ],
)
def test_standard_blocks(block, order):
    block = np.array(block)
    T, Z = (X[0] for X in standardise(block[None], np.eye(2)[None]))
    np.testing.assert_allclose(Z @ T @ Z.T, block, atol=1e-15 * np.abs(block).max())
    np.testing.assert_allclose(Z.T @ Z, np.eye(2), atol=1e-15)
    blocks = block_structure(T)
    assert list(blocks) == ([2, 0] if order == 2 else [1, 1])
    assert order == 1 or (T[0, 0] == T[1, 1] and T[0, 1] * T[1, 0] < 0)


def test_hessenberg(rng):
    A = rng.standard_normal((3, 9, 9)) * 10.0 ** rng.uniform(-150, 150, (3, 1, 9))
    H, Q = hessenberg(A)
    assert not np.tril(H, -2).any()
    residual, orthogonality = ratios(A, RealSchur(H, Q, None, None))
    assert (residual < THRESHOLD).all()
    assert (orthogonality < THRESHOLD).all()
    again, identity = hessenberg(H)
    np.testing.assert_array_equal(again, H)
    np.testing.assert_array_equal(identity, np.broadcast_to(np.eye(9), H.shape))


def test_francis_keeps_the_product(rng):
    H = np.triu(rng.standard_normal((2, 9, 9)), -1)
    Q = np.linalg.qr(rng.standard_normal((2, 9, 9)))[0]
    T, Z, converged = francis(H, Q)
    assert converged.all()
    assert not np.tril(T, -2).any()
    np.testing.assert_allclose(Z @ T @ np.swapaxes(Z, -1, -2), Q @ H @ np.swapaxes(Q, -1, -2), atol=1e-13)


# --- batches, compilation, precision ----------------------------------------------------------------------------------


def test_a_stack_is_done_like_each_matrix(rng):
    A = rng.standard_normal((2, 3, 6, 6))
    A[0, 1] = np.triu(A[0, 1])  # converged from the start: must pass through all sweeps of the others unchanged
    for method in METHODS:
        stack = real_schur(A, method)
        for index in np.ndindex(2, 3):
            single = real_schur(A[index], method)
            np.testing.assert_allclose(stack.T[index], single.T, atol=1e-12)
            np.testing.assert_allclose(stack.Z[index], single.Z, atol=1e-12)
            np.testing.assert_array_equal(stack.blocks[index], single.blocks)
            assert stack.converged[index] == single.converged


def test_mapped_and_compiled_results_are_those_of_numpy(rng):
    A = rng.standard_normal((4, 5, 5))
    expected = real_schur(A, "portable")
    with jax.enable_x64(True):
        X = jax.numpy.asarray(A)
        mapped = jax.jit(jax.vmap(functools.partial(real_schur, method="portable")))(X)
    assert all(isinstance(x, jax.Array) for x in mapped)
    np.testing.assert_allclose(mapped.T, expected.T, atol=1e-12)
    np.testing.assert_allclose(mapped.Z, expected.Z, atol=1e-12)
    np.testing.assert_array_equal(mapped.blocks, expected.blocks)


def test_auto_is_lapack_on_cpu(rng):
    A = rng.standard_normal((5, 5))
    T, Z = scipy.linalg.schur(A)
    schur = real_schur(A)
    np.testing.assert_array_equal(schur.T, T)
    np.testing.assert_array_equal(schur.Z, Z)
    with jax.enable_x64(True):
        inside = jax.jit(real_schur)(jax.numpy.asarray(A))
        np.testing.assert_allclose(inside.T, T, atol=1e-13)
        assert inside.T.dtype == "float64"
    assert real_schur(jax.numpy.asarray(A, "float32")).T.dtype == "float32"


def test_auto_is_portable_without_lapack(rng, monkeypatch):
    A = rng.standard_normal((4, 4))
    expected = real_schur(A, "portable")
    monkeypatch.setattr(schur_module, "_has_lapack", lambda _: False)
    np.testing.assert_array_equal(real_schur(A).T, expected.T)
    with pytest.raises(InvalidInputError, match="Expected method to be 'auto' or 'portable' for a tensor on cpu"):
        real_schur(A, "lapack")


# --- failures ---------------------------------------------------------------------------------------------------------


def test_bad_input():
    with pytest.raises(InvalidInputError, match="Expected method to be 'auto', 'lapack' or 'portable', received 'qr'"):
        real_schur(np.eye(2), "qr")
    for A in (np.ones((2, 3)), np.ones(3), np.eye(2, dtype=int), np.eye(2) * 1j, np.empty((0, 2, 2))):
        with pytest.raises(InvalidInputError, match="Expected A to be"):
            real_schur(A)
    for value in (np.nan, np.inf):
        with pytest.raises(InvalidInputError, match="finite"):
            real_schur(np.full((2, 2), value), "portable")


@pytest.mark.parametrize("method", METHODS)
def test_bad_values_are_flagged_inside_compiled_functions(method, rng):
    A = rng.standard_normal((4, 5, 5)).astype("float32")
    clean = real_schur(A, method)
    A[1, 2, 3], A[2, 0, 0] = np.nan, -np.inf
    schur = jax.jit(functools.partial(real_schur, method=method))(A)
    np.testing.assert_array_equal(schur.converged, [True, False, False, True])
    assert np.isnan(schur.T[1:3]).all()
    assert np.isnan(schur.Z[1:3]).all()
    assert not np.asarray(schur.blocks[1:3]).any()
    np.testing.assert_allclose(schur.T[::3], clean.T[::3], atol=1e-4)


def test_an_iteration_that_does_not_end_is_an_error(rng, monkeypatch):
    monkeypatch.setattr(francis_module, "_SWEEPS_PER_ROW", 0.1)
    A = np.stack([np.eye(5), rng.standard_normal((5, 5)), np.ones((5, 5))])
    with pytest.raises(NotConvergedError, match=r"1 matrices of the stack, the first at index \(1,\)"):
        real_schur(A[:2], "portable")
    with pytest.raises(NotConvergedError, match="factor for the matrix"):
        real_schur(A[1], "portable")


@pytest.mark.parametrize("method", METHODS)
def test_a_factor_that_overflows_is_an_error(method):
    with pytest.raises(NotConvergedError):
        real_schur(np.full((3, 3), 1.7e308), method)
