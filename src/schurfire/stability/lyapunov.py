"""Proofs for dense matrices: a Lyapunov matrix whose definiteness is verified with a rounding-error bound.

Let B be A minus the region's centre or bound times the identity. If, in exact arithmetic,

    P > 0   and   M = r^2 P - B^T P B > 0   (disc of radius r)      or      M = -(B^T P + P B) > 0   (half-plane),

all eigenvalues of A lie in the open region, whatever way P was found. Both inequalities are decided on computed
matrices: every entry of the computed M is within a known bound of the exact one, and Rump's test proves a matrix
positive definite by a floating-point Cholesky factorisation of the matrix minus a small multiple of the identity
(Rump, BIT 46, 2006, theorem 2.3). All of this is done in IEEE double precision by NumPy and LAPACK, with inner
products evaluated in any order, with or without fused multiply-add, but not by a fast (Strassen-like) product.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from schurfire.regions import Disc, HalfPlane, Region
from schurfire.stability.definiteness import TINY, UNIT, frozen, gamma, is_positive_definite, unit_scale


@dataclass(frozen=True, eq=False)
class LyapunovMatrix:
    """The matrix ``P = 2^-exponents P_scaled 2^-exponents`` (diagonal scaling by exact powers of two).

    Attributes:
        scaled: symmetric, float64, shape (n, n).
        exponents: integers, shape (n,).
    """

    scaled: np.ndarray
    exponents: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "scaled", frozen(self.scaled))
        object.__setattr__(self, "exponents", frozen(self.exponents))

    def __len__(self) -> int:
        return len(self.scaled)

    def proves(self, A: np.ndarray, region: Region) -> bool:
        """Whether this matrix proves, rigorously, that all eigenvalues of A lie in the open region."""
        n = len(A)
        if self.scaled.shape != (n, n) or self.scaled.dtype != np.float64:
            return False
        if self.exponents.shape != (n,) or self.exponents.dtype.kind != "i":
            return False
        B, region = unit_scale(A, region)
        B = None if B is None else _scaled_exactly(B, self.exponents)
        if B is None or not np.array_equal(self.scaled, self.scaled.T) or not np.isfinite(self.scaled).all():
            return False
        with np.errstate(all="ignore"):
            M, error = _inequality(self.scaled, B, region)
        return is_positive_definite(self.scaled, 0.0) and is_positive_definite(M, error)


def candidates(A: np.ndarray, region: Region) -> Iterator[tuple[LyapunovMatrix, float]]:
    """Yields Lyapunov matrices that may prove A stable, each with a margin that it may prove as well.

    P solves the equation of a region that is smaller than the given one: then M is at least the difference of the
    two times P, so that it dominates the rounding errors of P's size entry by entry. Computed eigenvalues choose how
    much smaller; nothing is concluded from them.
    """
    n = len(A)
    exponents = _balancing_exponents(A)
    B = _scaled_exactly(A, exponents)
    if B is None:
        exponents, B = np.zeros(n, dtype=int), A
    B = B - np.eye(n) * region.origin
    try:
        eigenvalues = np.linalg.eigvals(B)
    except np.linalg.LinAlgError:
        return
    disc = isinstance(region, Disc)
    gap = float(region.radius - np.abs(eigenvalues).max() if disc else -eigenvalues.real.max())
    if not gap > 0:
        return
    for share in (0.5, 0.1, 0.9):  # of the gap that P leaves to M; measured: the first suffices but for hard matrices
        P = _stein(B, region.radius - share * gap) if disc else _continuous(B, share * gap)
        if P is not None and np.isfinite(P).all() and (P.diagonal() > 0).all():
            P, extra = _unit_diagonal(P)
            yield LyapunovMatrix(P, exponents + extra), 0.9 * share * gap


def _inequality(P: np.ndarray, B: np.ndarray, region: Region) -> tuple[np.ndarray, float]:
    """The computed M, symmetric, and a bound of its distance to the exact one in the 2-norm.

    Entry by entry the error is at most ``g S``: S is M with all terms taken in absolute value and added, and each
    term goes through at most ``2 n + 8`` roundings (two inner products, the subtraction of the centre on both sides,
    the square of the radius and its product, the last subtraction).
    """
    n = len(P)
    origin = region.origin
    B = B - origin * np.eye(n)
    product, sizes = P @ B, np.abs(P) @ np.abs(B)
    if isinstance(region, HalfPlane):
        M, S = -(product + product.T), sizes + sizes.T
    else:
        square = region.radius * region.radius
        M, S = square * P - B.T @ product, square * np.abs(P) + np.abs(B.T) @ sizes
    M = np.tril(M) + np.tril(M, -1).T
    norm = max(S.sum(axis=0).max(), S.sum(axis=1).max())
    lost = 2 * n * n * TINY * (1 + np.abs(B).sum(axis=0).max() + np.abs(B).sum(axis=1).max())
    return M, (gamma(2 * n + 8) * norm + lost) * (1 + 8 * n * UNIT)


def _scaled_exactly(A: np.ndarray, exponents: np.ndarray) -> np.ndarray | None:
    """``2^exponents A 2^-exponents`` in float64 if that is exact, else None."""
    A = A.astype(np.float64)
    shifts = exponents[:, None] - exponents[None, :]
    with np.errstate(all="ignore"):
        B = np.ldexp(A, shifts)
        exact = np.isfinite(B).all() and np.array_equal(np.ldexp(B, -shifts), A)
    return B if exact else None


def _balancing_exponents(A: np.ndarray) -> np.ndarray:
    """Powers of two by which LAPACK balances the rows and columns of A."""
    with np.errstate(all="ignore"):
        scale = scipy.linalg.matrix_balance(A.astype(np.float64), permute=False, separate=True)[1][0]
    return -np.round(np.log2(scale)).astype(int)


def _unit_diagonal(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``P`` scaled by powers of two to a diagonal between 1/2 and 2, and the exponents of the scaling."""
    exponents = np.round(np.log2(P.diagonal()) / 2).astype(int)
    scaled = np.ldexp(P, -(exponents[:, None] + exponents[None, :]))
    return (scaled + scaled.T) / 2, exponents


def _stein(B: np.ndarray, radius: float) -> np.ndarray | None:
    """The solution of ``P = I + (B / radius)^T P (B / radius)`` by doubling: a sum of positive semidefinite terms.

    After k steps P holds the first 2^k terms of the series. Measured against SciPy's solvers the proofs succeed as
    often, and P cannot come out indefinite.
    """
    F = B / radius
    P = np.eye(len(B))
    with np.errstate(all="ignore"):
        for _ in range(64):
            term = F.T @ P @ F
            P = P + term
            F = F @ F
            if not np.isfinite(P).all():
                return None
            if np.abs(term).max() <= UNIT * np.abs(P).max():
                return P
    return None


def _continuous(B: np.ndarray, shift: float) -> np.ndarray | None:
    """The solution of ``(B + shift I)^T P + P (B + shift I) = -I``."""
    n = len(B)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a nearly singular equation: whether P is of use is checked afterwards
        try:
            P = scipy.linalg.solve_continuous_lyapunov((B + shift * np.eye(n)).T, -np.eye(n))
        except (scipy.linalg.LinAlgError, ValueError):
            return None
    return (P + P.T) / 2
