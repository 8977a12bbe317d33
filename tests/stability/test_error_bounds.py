"""The rounding-error bounds of the proofs for dense matrices: never below the true error, which is computed exactly."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg

from schurfire import Disc, HalfPlane, certify
from schurfire.stability import gramian, lyapunov
from schurfire.stability.definiteness import TINY, UNIT, is_positive_definite, unit_scale
from tests.references import similar

REGIONS = [
    Disc(),
    Disc(1.375, -0.4375),
    Disc(3.0 * 2.0**-300, 2.0**-301),
    Disc(0.7, 1000.3),
    HalfPlane(),
    HalfPlane(-0.3),
    HalfPlane(1e5 / 3),
]
by_region = pytest.mark.parametrize("region", REGIONS, ids=str)


class Sequential(np.ndarray):
    """A matrix whose products add term after term from the first to the last: one of the orders that are promised."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        inputs = [np.asarray(x) for x in inputs]
        if ufunc is np.matmul:
            X, Y = inputs
            result = np.add.accumulate(self.products(X[:, :, None], Y[None, :, :]), axis=1)[:, -1, :]
        else:
            result = getattr(ufunc, method)(*inputs, **options)
        return result.view(type(self)) if isinstance(result, np.ndarray) else result

    @staticmethod
    def products(x, y):
        return x * y


class Flushing(Sequential):
    """A matrix whose products are zero where they are not normal numbers, as some processors are set to do."""

    @staticmethod
    def products(x, y):
        return np.where(np.abs(x * y) < TINY, 0.0, x * y)


def exact(X: np.ndarray) -> np.ndarray:
    return np.array([[Fraction(float(x)) for x in row] for row in X], dtype=object)


def spectral_norm(E: np.ndarray) -> Fraction:
    """Of a matrix of rational numbers, rounded downward; only the division by the largest entry is in double."""
    largest = max(abs(x) for x in E.ravel())
    if largest == 0:
        return Fraction(0)
    scaled = np.array([[float(x / largest) for x in row] for row in E])
    return Fraction(float(np.linalg.norm(scaled, 2)) * (1 - 1e-12)) * largest


def scaled_exactly(A: np.ndarray, region: Disc | HalfPlane) -> tuple[np.ndarray, Fraction]:
    """A minus centre or bound, and the square of the radius, in the unit of length that ``unit_scale`` has chosen."""
    scaled, unit_region = unit_scale(A, region)
    assert scaled is not None
    i = np.unravel_index(np.abs(A).argmax(), A.shape)
    unit = Fraction(float(A[i])) / Fraction(float(scaled[i]))
    assert unit * Fraction(unit_region.origin) == Fraction(region.origin)
    square = Fraction(0)
    if isinstance(region, Disc):
        assert unit * Fraction(unit_region.radius) == Fraction(region.radius)
        square = (Fraction(region.radius) / unit) ** 2
    n = len(A)
    X = exact(A)
    X[np.diag_indices(n)] -= Fraction(region.origin)
    return X / unit, square


def share_of_lyapunov(P: np.ndarray, A: np.ndarray, region: Disc | HalfPlane) -> float:
    """True error over bound; fails where it is above 1."""
    X, square = scaled_exactly(A, region)
    Y = exact(P)
    M = square * Y - X.T @ Y @ X if isinstance(region, Disc) else -(X.T @ Y + Y @ X)
    B, unit_region = unit_scale(np.asarray(A), region)
    with np.errstate(all="ignore"):
        return _share(*lyapunov._inequality(P, B.view(type(A)), unit_region), M)


def share_of_gramian(G: np.ndarray, S: np.ndarray, A: np.ndarray, region: Disc | HalfPlane) -> float:
    X, square = scaled_exactly(A, region)
    F, C = exact(S) @ exact(G), exact(S) @ X @ exact(G)
    M = square * (F @ F.T) - C @ C.T if isinstance(region, Disc) else -(C @ F.T + F @ C.T)
    B, unit_region = unit_scale(np.asarray(A), region)
    B = (B - unit_region.origin * np.eye(len(B))).view(type(A))
    with np.errstate(all="ignore"):
        return _share(*gramian._inequality(G, S, B, unit_region), M)


def _share(computed: np.ndarray, bound: float, M: np.ndarray) -> float:
    if not (np.isfinite(computed).all() and np.isfinite(bound)):
        return 0.0  # nothing is claimed: ``is_positive_definite`` refuses
    assert np.array_equal(computed, computed.T)
    error = spectral_norm(exact(computed) - M)
    assert error <= Fraction(float(bound)), (float(error), float(bound))
    return float(error / Fraction(float(bound)))


def symmetric(X: np.ndarray) -> np.ndarray:
    return np.tril(X) + np.tril(X, -1).T


def triples(n: int, rng: np.random.Generator, length: float):
    """Matrices A of size ``length``, P (symmetric) and G, by what makes products of them inaccurate."""

    def normal():
        return rng.standard_normal((n, n))

    grades = 2.0 ** rng.integers(-40, 41, n)
    nodes = np.vander(rng.uniform(-1, 1, n), increasing=True)
    far = np.triu(normal(), 1) * 2.0**20 + np.diag(rng.uniform(-1, 1, n))
    Q = np.linalg.qr(normal())[0]
    ill = Q @ np.diag(np.geomspace(1, 1e-9, n)) @ np.linalg.qr(normal())[0]
    yield "random", length * normal(), symmetric(normal()), normal()
    yield "definite", length * normal() / n, symmetric(normal() @ np.eye(n) @ normal().T), normal()
    yield "vandermonde", length * normal(), symmetric(nodes.T @ nodes), nodes
    yield "hilbert", length * normal(), scipy.linalg.hilbert(n), scipy.linalg.hilbert(n)
    balanced = symmetric(grades[:, None] * (normal() @ normal().T) * grades)
    yield "graded", length * normal() / grades[:, None] * grades, balanced, normal() / grades[:, None]
    yield "graded against", length * normal() * grades[:, None] / grades, balanced, normal() * grades[:, None]
    yield "far from normal", length * far, symmetric(far.T @ far), far
    yield "cancelling", length * (ill @ normal() @ np.linalg.inv(ill)), symmetric(ill @ ill.T), ill
    large, far_off = length * 2.0**30, length * 2.0**-30
    yield "large", large * normal(), symmetric(normal()), normal() * 2.0**20
    yield "small", far_off * normal(), symmetric(normal()), normal() * 2.0**-20


def length_of(region: Disc | HalfPlane) -> float:
    return region.radius if isinstance(region, Disc) else max(1.0, abs(region.bound))


@by_region
def test_lyapunov_bound_covers_the_error(region):
    rng, largest = np.random.default_rng(0), 0.0
    for n in (1, 2, 3, 6, 10):
        for _, A, P, _ in triples(n, rng, length_of(region)):
            largest = max(largest, share_of_lyapunov(P, A, region))
    assert largest > 1e-2  # a hundredth of the bound would have failed


@by_region
def test_gramian_bound_covers_the_error(region):
    rng, largest = np.random.default_rng(1), 0.0
    for n in (1, 2, 3, 6, 10):
        for name, A, _, G in triples(n, rng, length_of(region)):
            shares = [share_of_gramian(G, np.linalg.inv(G), A, region)]
            if name in ("random", "graded", "far from normal"):
                shares.append(share_of_gramian(G, rng.standard_normal((n, n)), A, region))
            largest = max(largest, *shares)
    assert largest > 1e-2


# --- the worst case -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "least"), [(8, 0.5), (24, 0.75)])
def test_lyapunov_bound_where_every_addition_rounds_down(n, least):
    """The terms after the first one of an inner product are below half a unit in its last place: all are lost.

    That makes n - 1 units of rounding of each inner product, two for a disc, of the ``2 n + 8`` in the bound.
    """
    P, B = np.ones((n, n)), np.vstack([np.ones((1, n)), np.full((n - 1, n), 0.99 * UNIT)])
    assert share_of_lyapunov(P.view(Sequential), 16 * B.view(Sequential), Disc()) > least
    assert share_of_lyapunov(P.view(Sequential), B.view(Sequential), HalfPlane()) > least / 2


@pytest.mark.parametrize(("n", "least"), [(8, 0.6), (24, 0.8)])
def test_gramian_bound_where_every_addition_rounds_down(n, least):
    """As above, in S G, B G, S (B G) and the last product, all at once: every term of the bound is needed."""
    S = np.hstack([np.ones((n, 1)), np.full((n, n - 1), 0.99 * UNIT)])
    G = np.hstack([np.ones((n, 1)), np.full((n, n - 1), 0.99 * UNIT**0.5)])
    for region, size in ((Disc(), 2.0**-30), (Disc(), 16.0), (HalfPlane(), 1.0)):
        assert share_of_gramian(*(X.view(Sequential) for X in (G, S, size * S)), region) > least


def test_gramian_bound_where_the_errors_of_both_products_rule():
    """B = G X S far larger than C = S B G = X: F and the last product are accurate next to C."""
    rng = np.random.default_rng(2)
    for n in (4, 8):
        Q, R = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
        G = Q @ np.diag(np.geomspace(1, 1e-6, n)) @ R
        S = np.linalg.inv(G)
        X = rng.standard_normal((n, n))
        for region in (Disc(), HalfPlane()):
            assert share_of_gramian(G, S, G @ X @ S, region) > 1e-4


# --- underflow --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.ndarray, Flushing])
@pytest.mark.parametrize("region", [Disc(), Disc(1.0, 2.0**-500), HalfPlane(), HalfPlane(2.0**-500)], ids=str)
def test_bounds_cover_products_that_underflow(region, kind):
    rng = np.random.default_rng(3)

    def scaled(n, lowest, highest):
        return (rng.standard_normal((n, n)) * 2.0 ** rng.integers(lowest, highest, (n, n))).view(kind)

    for n in (1, 2, 4):
        for _ in range(10):
            A = scaled(n, -650, -400)
            A[0, -1] = 1.0 if n > 1 else A[0, -1]
            share_of_lyapunov(symmetric(scaled(n, -1020, -400)), A, region)
            G, S = scaled(n, -600, -300), scaled(n, 300, 510)
            share_of_gramian(G, S, A, region)
            share_of_gramian(S, G, A, region)


def test_what_underflow_loses_is_in_the_bounds():
    """The exact M is not zero, the computed one is, and so are the sizes that the other terms are multiples of."""
    A, P = np.diag([1.0, 2.0**-540]), np.diag([0.0, 2.0**-540])
    assert share_of_lyapunov(P, A, HalfPlane()) > 0
    # B G = 2^-1023 is flushed and S would have made 2^-513 of it, more than roundings of C near 2^-511 can
    A, G, S = (np.diag([x, 2.0**y]) for x, y in ((1.0, -540), (0.0, -482), (0.0, 510)))
    assert share_of_gramian(*(X.view(Flushing) for X in (G, S, A)), HalfPlane()) > 0


# --- definiteness -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 5, 12, 40])
def test_singular_matrices_of_any_scale_and_grading_are_refused(n):
    """Integer Gram matrices of rank n - 1, and what a diagonal of powers of two on both sides makes of them."""
    rng = np.random.default_rng(n)
    for _ in range(20):
        L = rng.integers(-3, 4, (n, n - 1)).astype(float)
        M = L @ L.T
        for spread in (0, 1, 20, 200):
            D = 2.0 ** rng.integers(-spread, spread + 1, n)
            graded = D[:, None] * M * D
            assert not is_positive_definite(graded, 0.0)
        for exponent in (-1074, -1060, -1030, -1000, -500, 500, 1000):
            assert not is_positive_definite(np.ldexp(M, exponent), 0.0)


@pytest.mark.parametrize("n", [1, 3, 10, 40])
def test_matrices_within_the_error_of_a_singular_one_are_refused(n):
    """Gram matrices of rank n - 1 plus a multiple of the identity, which is the error: exact in floating point."""
    rng = np.random.default_rng(n)
    for _ in range(20):
        L = rng.integers(-3, 4, (n, n - 1)).astype(float)
        for error in (2.0**-40, 2.0**-20, 1.0, 2.0**20):
            M = L @ L.T + error * np.eye(n)
            assert not is_positive_definite(M, error)
            assert not is_positive_definite(np.ldexp(M, -900), np.ldexp(error, -900))
            if error >= 2.0**-20:
                assert is_positive_definite(M, 0.9 * error)


@pytest.mark.parametrize("n", [6, 42, 82])
def test_singular_matrices_whose_last_pivot_rounds_up_are_refused(n):
    """``[[I, v], [v^T, v^T v]]`` with one entry 1 in v and 2^-27 else: squares that vanish beside 1 and add up.

    Whether the factorisation takes the large or the small ones first, for some place of the 1 they are lost.
    """
    for place in {0, 1, n // 4, n // 2, n - 3, n - 2}:
        v = np.full(n - 1, 2.0**-27)
        v[place] = 1.0
        M = np.eye(n)
        M[-1, :-1] = M[:-1, -1] = v
        M[-1, -1] = 1 + (n - 2) * 2.0**-54
        assert sum(Fraction(x) ** 2 for x in v) == Fraction(M[-1, -1])
        for exponent in (-500, 0, 500):
            assert not is_positive_definite(np.ldexp(M, exponent), 0.0)


def test_definiteness_that_is_too_small_for_the_factorisation_is_refused():
    """A subnormal matrix is no more than its rounding: entries that differ by the smallest number."""
    rng = np.random.default_rng(5)
    for n in (2, 3, 8):
        for size in (TINY, 8 * TINY):
            X = size * np.ones((n, n)) + np.diag(rng.integers(0, 3, n)) * 2.0**-1074
            assert not is_positive_definite(X, 0.0)


# --- half-planes ------------------------------------------------------------------------------------------------------


def on_the_axis(rng: np.random.Generator):
    """Matrices with an eigenvalue of real part zero and none to the right of it: integer similarities."""
    for n in (3, 4, 6):
        stable = np.diag(-rng.integers(1, 9, n) / 4.0) + np.triu(rng.integers(-1, 2, (n, n)), 1)
        zero = stable.copy()
        zero[0, 0] = 0.0
        yield zero
        turning = stable.copy()
        turning[:2, :2] = [[0.0, 0.5], [-2.0, 0.0]]
        yield turning
        yield np.eye(n, k=1)
        yield np.diag([0.0] * 2 + [-1.0] * (n - 2)) + np.eye(n, k=1)


def test_no_eigenvalue_on_the_imaginary_axis_is_called_stable_at_any_scale():
    rng = np.random.default_rng(6)
    for repetition in range(8):
        for T in on_the_axis(rng):
            A = similar(T, rng, steps=6 * len(T))
            for exponent in (-600, -560, -530, 560) if repetition else range(-1000, 1001, 100):
                B = np.ldexp(A, exponent)
                assert np.array_equal(np.ldexp(B, -exponent), A)
                assert not certify(B, HalfPlane()).is_stable, (exponent, A.tolist())


def test_evidence_for_a_nearby_stable_matrix_does_not_carry_over_to_the_imaginary_axis():
    """The proofs themselves, at scales where squares and products of entries underflow or overflow."""
    rng, tried = np.random.default_rng(7), 0
    for repetition in range(4):
        for T in on_the_axis(rng):
            A, n = similar(T, rng, steps=6 * len(T)), len(T)
            for exponent in (-560, 0) if repetition else (-1000, -700, -500, 500, 900):
                B = np.ldexp(A, exponent)
                for share in (2.0**-40, 2.0**-20, 0.25):
                    inside = B - np.ldexp(share, exponent) * np.eye(n)
                    candidates = lyapunov.candidates(inside, HalfPlane())
                    for evidence, _ in (*candidates, *gramian.factors(inside, HalfPlane())):
                        assert not evidence.proves(B, HalfPlane()), (exponent, A.tolist())
                        tried += 1
    assert tried > 500
