"""Proofs by a factor of a Gramian: the factor solves its equation, reaches beyond any P, and never proves too much."""

import numpy as np
import pytest
import scipy.linalg

from schurfire.regions import Disc, HalfPlane
from schurfire.stability.gramian import GramianFactor, _hammarling, factors
from schurfire.stability.lyapunov import candidates


@pytest.mark.parametrize("n", [1, 2, 7, 20])
@pytest.mark.parametrize("disc", [True, False])
def test_factor_solves_its_equation(n, disc):
    rng = np.random.default_rng(n)
    T = np.triu(rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n)))
    T = T / (1.2 * np.abs(T.diagonal()).max()) if disc else T - (T.diagonal().real.max() + 0.2) * np.eye(n)
    R = rng.standard_normal((n, n)).astype(complex)
    U = _hammarling(T, R, disc)
    Q = U @ U.conj().T
    residual = Q - T @ Q @ T.conj().T - R @ R.T if disc else T @ Q + Q @ T.conj().T + R @ R.T
    size = np.linalg.norm(Q) * max(1, np.linalg.norm(T)) ** 2
    assert np.linalg.norm(residual) < 20 * n * np.finfo(float).eps * size
    assert np.array_equal(U, np.triu(U))


@pytest.mark.parametrize("region", [Disc(2.0, 0.5), HalfPlane(3.0)], ids=str)
def test_proves_random_matrices(region):
    rng = np.random.default_rng(1)
    for _ in range(20):
        A = rng.standard_normal((8, 8)) / 4
        assert any(G.proves(A, region.shrink(margin)) for G, margin in factors(A, region))


def test_reaches_beyond_every_lyapunov_matrix():
    """Triangular with ones above, eigenvalues 0.1: a radius of 1.6 is the least that a P in double precision proves."""
    n = 24
    Z = np.linalg.qr(np.random.default_rng(0).standard_normal((n, n)))[0]
    A = Z @ (0.1 * np.eye(n) + np.triu(np.ones((n, n)), 1)) @ Z.T
    region = Disc(0.8)
    assert not any(P.proves(A, region) for P, _ in candidates(A, region))
    assert any(G.proves(A, region) for G, _ in factors(A, region))


@pytest.mark.parametrize("n", [3, 6, 12])
def test_never_proves_an_eigenvalue_on_the_boundary(n):
    """Integer similarities of Jordan blocks, exact in floating point; candidate factors from shrunken matrices too."""
    rng = np.random.default_rng(n)
    for _ in range(100):
        U = np.eye(n)
        U_inv = np.eye(n)
        for _ in range(n):
            i, j = rng.choice(n, 2, replace=False)
            U[i] += U[j]
            U_inv[:, j] -= U_inv[:, i]
        A = U @ (np.eye(n) + np.eye(n, k=1)) @ U_inv
        assert np.array_equal(A @ U, U @ (np.eye(n) + np.eye(n, k=1)))
        for shrunk in (A, A * (1 - 1e-3), A * (1 - 1e-9)):
            for G, _ in factors(shrunk, Disc()):
                assert not G.proves(A, Disc())
        for shift in (0.0, 1e-3, 1e-9):
            for G, _ in factors(A - (1 + shift) * np.eye(n), HalfPlane()):
                assert not G.proves(A - np.eye(n), HalfPlane())


def test_singular_factor_proves_nothing():
    assert not GramianFactor(np.zeros((3, 3))).proves(0.5 * np.eye(3), Disc())
    assert not GramianFactor(np.full((3, 3), np.nan)).proves(0.5 * np.eye(3), Disc())


def test_equation_against_scipy():
    A = np.random.default_rng(3).standard_normal((5, 5)) / 4
    T, Z = scipy.linalg.schur(A, output="complex")
    U = Z @ _hammarling(T, np.eye(5, dtype=complex), True)
    np.testing.assert_allclose((U @ U.conj().T).real, scipy.linalg.solve_discrete_lyapunov(A, np.eye(5)), rtol=1e-10)
