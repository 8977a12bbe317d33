"""Matrices with an eigenvalue on the boundary or outside, known without rounding: none may be called stable."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from schurfire import Disc, HalfPlane
from tests.references import eigenvalues, radius, similar, verdict
from tests.zoo import tagged, zoo

DTYPES = ("float32", "float64")


def adversaries():
    """Dense matrices with spectral radius exactly 1 or a little more, known by construction: name and matrix."""
    rng = np.random.default_rng(2)
    for n in (3, 4, 6, 9):
        nilpotent = np.triu(rng.integers(0, 2, (n, n)), 1).astype(float)
        shift = np.eye(n, k=1)
        for nudge in (0.0, 2.0**-44, 2.0**-30, 2.0**-10):
            yield "jordan", similar((1 + nudge) * np.eye(n) + shift, rng, n + 2)
        yield "minus jordan", similar(-np.eye(n) + shift, rng)
        yield "nilpotent plus 1", similar(np.eye(n) + nilpotent, rng)
        yield "one of many", similar(np.diag([1.0, *rng.integers(-3, 4, n - 1) / 4]) + nilpotent, rng)
        pair = np.zeros((n, n))
        pair[:2, :2], pair[2:, 2:] = [[0, 1], [-1, 0]], np.diag(rng.integers(-3, 4, n - 2) / 8)
        yield "pair", similar(pair + np.triu(nilpotent, 2), rng)
        yield "cycle", np.roll(np.eye(n), 1, axis=0) * rng.choice([-1, 1], n)
        for spread in (10, 200, 500, 1000):
            weights = rng.integers(-spread, spread + 1, n)
            weights[-1] = -weights[:-1].sum()
            if abs(weights[-1]) < 1020:
                yield "weighted cycle", np.roll(np.diag(2.0**weights), 1, axis=0)
                yield "cycle of underflow", np.roll(np.diag(2.0**weights), 1, axis=0) + np.eye(n) * 2.0**-1074
        D = 2.0 ** rng.integers(-80, 81, n)
        yield "graded", similar(np.eye(n) + nilpotent, rng) * D[:, None] / D
        yield "companion", np.vstack([[-((-1.0) ** k) * _binomial(n, k) for k in range(1, n + 1)], np.eye(n)[:-1]])
        huge = similar(np.diag([1.0, *np.zeros(n - 1)]) + np.triu(rng.integers(0, 2, (n, n)) * 2.0**20, 1), rng, n)
        yield "far from normal", huge
    H = np.array([[1, 1], [1, -1]])
    yield "hadamard", np.kron(H, H) / 2
    yield "half of all", np.full((4, 4), 0.25)
    yield "stochastic", np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.5, 0.25]])


def _binomial(n, k):
    return float(np.prod([Fraction(n - i, i + 1) for i in range(k)]))


ADVERSARIES = list(adversaries())


def test_adversaries_have_the_eigenvalue_that_they_claim():
    for name, A in ADVERSARIES:
        if len(A) <= 4 and np.abs(A).max() < 2**40 and "cycle" not in name:
            assert radius(A) >= 1 - 1e-8, name


@pytest.mark.parametrize(
    "region",
    [Disc(), Disc(2.0**-300), Disc(2.0**300), Disc(1.0, 4.0), Disc(0.25, -8.0), HalfPlane(), HalfPlane(3.0)],
)
def test_no_adversary_is_accepted(region):
    """A radius and a centre that are powers of two move matrices without rounding; what would round is left out."""
    count = 0
    for name, A in ADVERSARIES:
        B = _moved(A, region)
        if B is not None:
            certificate = verdict(B, region)
            assert not certificate.is_stable, (name, B.tolist())
            assert "not" in str(certificate)
            count += 1
    assert count > 20


def _moved(A, region):
    """With the eigenvalue on the boundary moved to the boundary of the region; None if that rounds."""
    n, shift = len(A), Fraction(region.centre if isinstance(region, Disc) else region.bound)
    if isinstance(region, HalfPlane):
        if not any(abs(z - 1) < 1e-9 for z in np.linalg.eigvals(A)) or np.abs(A).max() > 1e6:
            return None  # only 1 itself is moved to the bound; minus 1 and complex pairs would get inside
        scale, shift = Fraction(1), shift - 1
    else:
        scale = Fraction(region.radius)
    exact = [[Fraction(float(A[i, j])) * scale + (shift if i == j else 0) for j in range(n)] for i in range(n)]
    if any(abs(x) > 1e307 for row in exact for x in row):
        return None
    B = np.array([[float(x) for x in row] for row in exact])
    return B if all(Fraction(float(B[i, j])) == exact[i][j] for i in range(n) for j in range(n)) else None


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounded_jordan_blocks_and_random_matrices_at_the_boundary(dtype):
    """Rounded after a rotation, the radius is what 60 digits say; whatever is accepted must be inside."""
    rng, accepted, outside = np.random.default_rng(3), 0, 0
    for n in (3, 4):
        for gap in (-1e-3, -1e-5, -1e-9, -1e-12, 0.0, 1e-12, 1e-9, 1e-5):
            for kind in ("jordan", "random", "graded"):
                Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
                A = np.eye(n) + np.eye(n, k=1) if kind == "jordan" else rng.standard_normal((n, n))
                if kind == "graded":
                    A = A * np.divide.outer(*2 * [10.0 ** rng.uniform(-8, 8, n)])
                A = A / np.abs(np.linalg.eigvals(A)).max() * (1 + gap)
                A = (A if kind == "graded" else Q @ A @ Q.T).astype(dtype)
                truth = radius(A)
                certificate = verdict(A)
                assert not certificate.is_stable or truth < 1 - certificate.margin, (kind, gap)
                shifted = A - np.eye(n, dtype=dtype)
                rightmost = max(z.real for z in eigenvalues(shifted))
                certificate = verdict(shifted, HalfPlane())
                assert not certificate.is_stable or rightmost < -certificate.margin, (kind, gap)
                accepted += certificate.is_stable
                outside += truth >= 1
    assert accepted > 5
    assert outside > 5


def test_the_unstable_part_of_the_zoo_is_refused():
    for n, dtype in itertools.product((2, 5), DTYPES):
        matrices = zoo(n, dtype)
        for name in (
            "cyclic",
            "identity",
            "minus identity",
            "one ulp above",
            "jordan at 1",
            "permutation",
            "all two",
            "frank",
        ):
            assert not verdict(matrices[name]).is_stable, name
        for name in tagged("overflow"):
            assert not verdict(matrices[name]).is_stable, name
