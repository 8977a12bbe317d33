"""Lyapunov proofs: definiteness is never granted to an indefinite matrix, and no evidence can be forged."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from schurfire import Disc, HalfPlane
from schurfire.stability.definiteness import is_positive_definite
from schurfire.stability.lyapunov import LyapunovMatrix, candidates
from tests.references import similar

TINY = float(np.finfo("float64").tiny)


def is_definite(M: np.ndarray) -> bool:
    """By the pivots of exact rational elimination."""
    X = [[Fraction(float(x)) for x in row] for row in M]
    for k in range(len(X)):
        if X[k][k] <= 0:
            return False
        for i in range(k + 1, len(X)):
            factor = X[i][k] / X[k][k]
            X[i] = [x - factor * y for x, y in zip(X[i], X[k], strict=True)]
    return True


# --- definiteness -----------------------------------------------------------------------------------------------------


def test_the_reference():
    assert is_definite(np.eye(3))
    assert is_definite(np.array([[2.0, 1.0], [1.0, 1.0]]))
    assert not is_definite(np.array([[1.0, 1.0], [1.0, 1.0]]))
    assert not is_definite(np.array([[1.0, 2.0], [2.0, 1.0]]))


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_singular_and_barely_indefinite_integer_matrices(scale):
    """Gram matrices of rank n - 1 and their neighbours, exact after multiplication by a power of two."""
    rng = np.random.default_rng(0)
    factor = 2.0 ** round(math.log2(scale))
    for n in (2, 3, 5, 8):
        for _ in range(20):
            L = rng.integers(-3, 4, (n, n - 1)).astype(float)
            M = L @ L.T
            assert not is_definite(M)
            for nudge in (0.0, -(2.0**-40), -(2.0**-52)):
                assert not is_positive_definite((M + nudge * np.eye(n)) * factor, 0.0)


def test_hilbert_like_matrices_around_the_edge():
    """Minus its smallest eigenvalue and a little more or less: verdicts must agree with exact elimination."""
    rng, accepted, refused = np.random.default_rng(1), 0, 0
    for n in (2, 3, 4, 6):
        for _ in range(25):
            L = rng.standard_normal((n, n))
            M = L @ L.T
            M = (M + M.T) / 2
            smallest = np.linalg.eigvalsh(M)[0]
            for offset in 10.0 ** rng.uniform(-17, -10, 4) * rng.choice([-1, 1], 4):
                X = M - (smallest + offset) * np.eye(n)
                if is_positive_definite(X, 0.0):
                    assert is_definite(X)
                    accepted += 1
                refused += not is_definite(X)
    assert accepted > 50
    assert refused > 50


@given(
    arrays("float64", (3, 3), elements=st.floats(-1, 1) | st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-9, 1e-300, 1e200]))
)
def test_no_indefinite_matrix_is_accepted(X):
    M = np.tril(X) + np.tril(X, -1).T
    if is_positive_definite(M, 0.0):
        assert is_definite(M)


def test_the_error_is_subtracted():
    M = np.diag([1.0, 2.0, 3.0])
    assert is_positive_definite(M, 0.0)
    assert is_positive_definite(M, 0.999)
    for error in (1.0, 1.5, math.inf, math.nan):
        assert not is_positive_definite(M, error)


def test_well_conditioned_matrices_are_accepted():
    rng = np.random.default_rng(2)
    for n in (1, 2, 10, 60):
        for scale in (1e-250, 1.0, 1e250):
            Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
            M = Q @ np.diag(np.geomspace(1e-8, 1.0, n)) @ Q.T * scale
            M = np.tril(M) + np.tril(M, -1).T
            before = M.copy()
            assert is_positive_definite(M, 0.0)
            np.testing.assert_array_equal(M, before)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 0.0, -0.0])
def test_bad_diagonals_are_refused(value):
    M = np.eye(3)
    M[1, 1] = value
    assert not is_positive_definite(M, 0.0)


def test_nan_beside_the_diagonal_is_refused():
    M = np.eye(3)
    M[2, 0] = M[0, 2] = math.nan
    assert not is_positive_definite(M, 0.0)


def test_subnormal_matrices_are_refused():
    assert not is_positive_definite(np.eye(2) * TINY / 8, 0.0)
    assert not is_positive_definite(np.array([[TINY, TINY], [TINY, TINY]]), 0.0)


# --- proofs -----------------------------------------------------------------------------------------------------------


def identity(n):
    return LyapunovMatrix(np.eye(n), np.zeros(n, dtype=int))


def test_the_identity_proves_contractions():
    A = np.array([[0.5, 0.25], [-0.25, 0.5]])
    assert identity(2).proves(A, Disc())
    assert identity(2).proves(A, Disc(0.56))
    assert not identity(2).proves(A, Disc(0.55))  # the radius is 0.559
    assert identity(2).proves(A + 3 * np.eye(2), Disc(1.0, 3.0))
    assert identity(2).proves(A - np.eye(2), HalfPlane())
    assert not identity(2).proves(A, HalfPlane())
    assert identity(2).proves(A, HalfPlane(0.51))
    assert not identity(2).proves(A, HalfPlane(0.5))


def test_powers_of_two_scale_exactly():
    A = np.array([[0.5, 2.0**39], [2.0**-43, 0.5]])
    exponents = np.array([0, 41])
    assert LyapunovMatrix(np.eye(2), exponents).proves(A, Disc())
    assert not identity(2).proves(A, Disc())
    assert not LyapunovMatrix(np.eye(2), -exponents).proves(A, Disc())


def test_scaling_that_would_round_is_refused():
    """The sum of the scaled matrix would be exact no more: 2^-1074 halved is 0."""
    A = np.array([[0.5, 2.0**-1074], [0.0, 0.5]])
    assert identity(2).proves(A, Disc())
    assert not LyapunovMatrix(np.eye(2), np.array([0, 1])).proves(A, Disc())
    assert not LyapunovMatrix(np.eye(2), np.array([0, -3000])).proves(np.array([[0.5, 0.5], [0.0, 0.5]]), Disc())


@pytest.mark.parametrize("region", [Disc(), Disc(2.0, -1.0), HalfPlane(), HalfPlane(-1.0)])
def test_candidates_prove_stable_matrices(region):
    rng = np.random.default_rng(3)
    for n in (2, 5, 12):
        A = rng.standard_normal((n, n))
        if isinstance(region, Disc):
            A = A / np.abs(np.linalg.eigvals(A)).max() * region.radius * (1 - 1e-4) + region.centre * np.eye(n)
        else:
            A = A - (np.linalg.eigvals(A).real.max() - region.bound + 1e-4) * np.eye(n)
        found = list(candidates(A, region))
        assert any(P.proves(A, region.shrink(margin)) for P, margin in found)
        for P, margin in found:
            assert 0 < margin < 1e-4 * (region.radius if isinstance(region, Disc) else 1) * 1.001
            np.testing.assert_array_equal(P.scaled, P.scaled.T)
            assert (P.scaled.diagonal() > 0.4).all()


def test_unstable_matrices_have_no_candidates_or_useless_ones():
    for A in (np.diag([2.0, 0.5, 0.1]), np.roll(np.eye(3), 1, axis=0) * 1.5):
        assert not any(P.proves(A, Disc()) for P, _ in candidates(A, Disc()))
        assert not any(P.proves(A, HalfPlane()) for P, _ in candidates(A, HalfPlane()))


def evidence(n, rng):
    """Anything that could be put into a certificate."""
    L = rng.standard_normal((n, n))
    yield L @ L.T + n * np.eye(n)
    yield np.eye(n)
    yield np.eye(n) * 1e300
    yield np.eye(n) * TINY
    yield L + L.T
    yield -np.eye(n)
    yield np.zeros((n, n))
    yield np.full((n, n), np.nan)
    yield np.full((n, n), np.inf)
    yield np.diag(10.0 ** rng.uniform(-300, 300, n))


@pytest.mark.parametrize("scale", [1.0, 2.0**-540, 2.0**-500, 2.0**500])
def test_no_evidence_proves_an_unstable_matrix(scale):
    """Eigenvalues on the boundary, known without rounding; regions whose squared radius under- or overflows too."""
    rng = np.random.default_rng(4)
    for n in (2, 3, 5):
        one = similar(np.eye(n) + np.triu(rng.integers(0, 2, (n, n)), 1), rng)
        zero = similar(np.triu(rng.integers(0, 2, (n, n)), 1).astype(float), rng)
        for A, region in (
            (one * scale, Disc(scale)),
            (np.eye(n) * scale * 1.25, Disc(scale)),
            (one * scale + scale * np.eye(n), Disc(scale, scale)),
            (zero * scale, HalfPlane()),
            (zero * scale + scale * np.eye(n), HalfPlane(scale)),
        ):
            for P in evidence(n, rng):
                for exponents in (np.zeros(n, dtype=int), rng.integers(-3, 4, n)):
                    assert not LyapunovMatrix(P, exponents).proves(A, region)


@pytest.mark.parametrize("radius", [1.6e-162, 2.0e-162, 3.0e-162, 1e-161, 1e-155])
def test_the_rounding_of_a_tiny_squared_radius_is_accounted_for(radius):
    for size in (1.0, 1e150, 1e300):
        assert not LyapunovMatrix(np.eye(3) * size, np.zeros(3, dtype=int)).proves(
            np.eye(3) * radius * 1.25, Disc(radius)
        )


def test_evidence_that_is_not_symmetric_is_refused():
    P = np.eye(3)
    P[0, 1] = 1e-3
    assert not LyapunovMatrix(P, np.zeros(3, dtype=int)).proves(np.eye(3) / 2, Disc())
