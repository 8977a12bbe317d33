"""Matrices that are not stable and try to look it; the truth is known without floating point.

Every family is built so that the numbers stored have an eigenvalue of modulus 1 or more, exactly: by integer
similarity transformations of dyadic rationals that are checked not to round, by row sums (a non-negative matrix whose
row sums are all at least 1 has spectral radius at least 1), or by Fractions.
"""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np


def adversaries(count: int) -> Iterator[tuple[str, np.ndarray]]:
    """About ``count`` matrices in all, with the name of their family."""
    rng = np.random.default_rng(0)
    families = (_jordan, _rotated, _stochastic, _graded, _cyclic, _companion, _tiny_feedback, _just_outside)
    for i in range(count):
        family = families[i % len(families)]
        A = family(rng)
        yield family.__name__.lstrip("_"), A.astype(np.float32) if _fits_float32(A) and rng.random() < 0.3 else A


def half_plane_adversaries(count: int) -> Iterator[tuple[str, np.ndarray]]:
    """Matrices with a real eigenvalue at or above 0: those with one at or above 1 less the identity, at all scales."""
    rng = np.random.default_rng(1)
    families = (_jordan, _stochastic, _companion, _tiny_feedback)
    for i in range(count):
        family = families[i % len(families)]
        A = family(rng)
        shift = int(rng.integers(-900, 901))
        B = np.ldexp(A - np.eye(len(A)), shift)
        if _exact(B, A, shift):
            yield family.__name__.lstrip("_"), B


def _exact(B: np.ndarray, A: np.ndarray, shift: int) -> bool:
    """Whether ``B = 2^shift (A - I)`` without rounding."""
    scale = Fraction(2) ** shift
    differences = (A - np.eye(len(A))).tolist()
    pairs = zip(A.ravel().tolist(), np.eye(len(A)).ravel().tolist(), np.ravel(differences).tolist(), strict=True)
    return all(Fraction(d) == Fraction(a) - Fraction(e) for a, e, d in pairs) and all(
        np.isfinite(b) and Fraction(b) == Fraction(d) * scale
        for b, d in zip(B.ravel().tolist(), np.ravel(differences).tolist(), strict=True)
    )


def _jordan(rng: np.random.Generator) -> np.ndarray:
    """A Jordan block at 1 + 1e-12 (rounded to a dyadic rational) under a unimodular integer similarity."""
    n = int(rng.integers(3, 9))
    J = np.diag(np.full(n, 1 + 2.0**-40 * float(rng.integers(0, 2)))) + np.diag(np.full(n - 1, 1.0), 1)
    return _integer_similarity(rng, J)


def _rotated(rng: np.random.Generator) -> np.ndarray:
    """Stable eigenvalues and one at exactly 1 or -1, hidden by a unimodular integer similarity."""
    n = int(rng.integers(3, 11))
    T = np.triu(rng.integers(-4, 5, (n, n)) / 8.0, 1) + np.diag(rng.integers(-7, 8, n) / 8.0)
    k = int(rng.integers(n))
    T[k, k] = float(rng.choice([-1.0, 1.0]))
    return _integer_similarity(rng, T)


def _stochastic(rng: np.random.Generator) -> np.ndarray:
    """A positive matrix whose exact row sums are 1 or more, by at most a few units in the last place."""
    n = int(rng.integers(3, 40))
    A = rng.random((n, n)) + 1e-3
    A /= A.sum(axis=1, keepdims=True)
    for row in A:
        while sum(map(Fraction, row.tolist())) < 1:
            k = int(row.argmax())
            row[k] = np.nextafter(row[k], 2.0)
    return A


def _graded(rng: np.random.Generator) -> np.ndarray:
    """A stochastic matrix under an exact diagonal scaling by powers of two up to 2^+-400."""
    A = _stochastic(rng)
    e = rng.integers(-200, 201, len(A))
    shifts = e[:, None] - e[None, :]
    B = np.ldexp(A, shifts)
    return B if np.array_equal(np.ldexp(B, -shifts), A) else A


def _cyclic(rng: np.random.Generator) -> np.ndarray:
    """A weighted cycle: the product of its weights is 2^0 exactly while single weights over- and underflow squares."""
    n = int(rng.integers(3, 12))
    e = rng.integers(-300, 301, n)
    e[-1] = -e[:-1].sum()
    e = np.clip(e, -1000, 1000)
    e[int(np.argmin(np.abs(e)))] -= e.sum()
    A = np.zeros((n, n))
    A[np.arange(n), (np.arange(n) + 1) % n] = np.ldexp(1.0, np.clip(e, -1020, 1020))
    if e.sum() != 0 or np.abs(e).max() > 1020:
        A[np.arange(n), (np.arange(n) + 1) % n] = 1.0
    return A


def _companion(rng: np.random.Generator) -> np.ndarray:
    """The companion matrix of a dyadic polynomial that vanishes at 1 exactly."""
    n = int(rng.integers(3, 12))
    roots = rng.integers(-7, 8, n - 1) / 8.0
    coefficients = [Fraction(1)]
    for root in [*map(Fraction, roots.tolist()), Fraction(1)]:
        raised, shifted = [*coefficients, Fraction(0)], [Fraction(0), *coefficients]
        coefficients = [a - root * b for a, b in zip(raised, shifted, strict=True)]
    values = np.array([float(-c) for c in coefficients[1:]])
    if any(Fraction(v) != -c for v, c in zip(values.tolist(), coefficients[1:], strict=True)):
        return _companion(rng)
    return np.vstack([values, np.eye(n)[:-1]])


def _tiny_feedback(rng: np.random.Generator) -> np.ndarray:
    """Nearly nilpotent: large entries above the diagonal and a tiny or subnormal one that closes the loop."""
    n = int(rng.integers(3, 7))
    size = int(rng.integers(1, 1060 // (n - 1) if n > 2 else 1000))
    A = np.triu(np.ldexp(rng.random((n, n)), 0), 1) * 0.0
    A[np.arange(n - 1), np.arange(1, n)] = np.ldexp(1.0, size)
    A[-1, 0] = np.ldexp(1.0, -size * (n - 1))
    return A + np.diag(np.full(n, 0.0 if rng.random() < 0.5 else 0.5))  # non-negative: the diagonal only adds


def _just_outside(rng: np.random.Generator) -> np.ndarray:
    """A dyadic 2x2 block with determinant 1 or a little more inside a larger matrix, hidden by a similarity."""
    n = int(rng.integers(3, 9))
    T = np.triu(rng.integers(-4, 5, (n, n)) / 8.0, 1) + np.diag(rng.integers(-7, 8, n) / 8.0)
    a = float(rng.integers(-7, 8)) / 8.0
    T[:2, :2] = [[a, 1.0], [a * a - 1.0 - 2.0**-45 * float(rng.integers(0, 2)), a]]
    return _integer_similarity(rng, T)


def _integer_similarity(rng: np.random.Generator, A: np.ndarray) -> np.ndarray:
    """``S A S^-1`` with S a product of elementary integer matrices; tried until nothing rounds."""
    while True:
        B = [[Fraction(x) for x in row] for row in A.tolist()]
        for _ in range(int(rng.integers(2, 3 * len(A)))):
            i, j = (int(k) for k in rng.choice(len(A), 2, replace=False))
            factor = int(rng.choice([-2, -1, 1, 2]))
            B[i] = [x + factor * y for x, y in zip(B[i], B[j], strict=True)]
            for row in B:
                row[j] -= factor * row[i]
        result = np.array([[float(x) for x in row] for row in B])
        if [list(map(Fraction, row)) for row in result.tolist()] == B:
            return result


def _fits_float32(A: np.ndarray) -> bool:
    with np.errstate(all="ignore"):
        return np.array_equal(A.astype(np.float32).astype(np.float64), A)
