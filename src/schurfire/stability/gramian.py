"""Proofs for dense matrices by a factor of a Gramian: the Lyapunov inequality at the square root of its conditioning.

Let B be A minus the region's centre or bound times the identity, G a square matrix, Q = G G^T. If S is square and, in
exact arithmetic,

    S (r^2 Q - B Q B^T) S^T > 0   (disc of radius r)      or      -S (B Q + Q B^T) S^T > 0   (half-plane),

all eigenvalues of A lie in the open region: S must be regular, so the same holds without S; for an eigenvector v of
B^T with eigenvalue z that gives ``(r^2 - |z|^2) v^* Q v > 0`` or ``-2 Re(z) v^* Q v > 0``, while ``v^* Q v >= 0``.
With ``S`` near ``G^-1`` and ``F = S G``, ``C = S B G`` (near a contraction) the two are

    r^2 F F^T - C C^T > 0      or      -(C F^T + F C^T) > 0,

so that rounding errors enter by cond(G), not by cond(Q) = cond(G)^2 as for a Lyapunov matrix P: matrices are proven
that no P stored in double precision can prove.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from schurfire.regions import Disc, HalfPlane, Region
from schurfire.stability.definiteness import TINY, UNIT, frozen, gamma, is_positive_definite, unit_scale


@dataclass(frozen=True, eq=False)
class GramianFactor:
    """The matrix G, float64, shape (n, n)."""

    G: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "G", frozen(self.G))

    def __len__(self) -> int:
        return len(self.G)

    def proves(self, A: np.ndarray, region: Region) -> bool:
        """Whether this factor proves, rigorously, that all eigenvalues of A lie in the open region."""
        n = len(A)
        if self.G.shape != (n, n) or self.G.dtype != np.float64:
            return False
        scaled, region = unit_scale(A, region)
        if scaled is None:
            return False
        with np.errstate(all="ignore"):
            try:
                S = np.linalg.inv(self.G)
            except np.linalg.LinAlgError:
                return False
            M, error = _inequality(self.G, S, scaled - region.origin * np.eye(n), region)
        return is_positive_definite(M, error)


def _inequality(G: np.ndarray, S: np.ndarray, B: np.ndarray, region: Region) -> tuple[np.ndarray, float]:
    """The computed matrix of the inequality, symmetric, and a bound of its distance to the exact one in the 2-norm.

    The exact one belongs to the stored G and S and to the matrix of which B is the rounded difference to the region's
    centre or bound. Entry by entry there are n roundings in F and ``2 n + 1`` in C, with that of the difference.
    """
    n = len(B)
    F, C = S @ G, S @ (B @ G)
    F_error = gamma(n + 2) * _size(np.abs(S) @ np.abs(G))
    C_error = gamma(2 * n + 4) * _size(np.abs(S) @ (np.abs(B) @ np.abs(G)))
    F_size, C_size = _size(F) + F_error, _size(C) + C_error
    if isinstance(region, HalfPlane):
        product = C @ F.T
        M, terms = -(product + product.T), 2 * C_size * F_size
        error = 2 * (F_error * C_size + C_error * F_size)
    else:
        square = region.radius * region.radius
        M, terms = square * (F @ F.T) - C @ C.T, square * F_size**2 + C_size**2
        error = 2 * (square * F_error * F_size + C_error * C_size)
    M = np.tril(M) + np.tril(M, -1).T
    lost = 8 * n**3 * TINY * (1 + _size(S)) * (1 + _size(B)) * (1 + _size(G)) * (1 + F_size + C_size)
    return M, float((error + gamma(n + 6) * terms + lost) * (1 + 8 * n**2 * UNIT))


def factors(A: np.ndarray, region: Region) -> Iterator[tuple[GramianFactor, float]]:
    """Yields factors that may prove A stable, each with a margin that it may prove as well."""
    n = len(A)
    origin = region.origin
    B = A.astype(np.float64) - origin * np.eye(n)
    try:
        T, Z = scipy.linalg.schur(B, output="complex")[:2]
    except (scipy.linalg.LinAlgError, ValueError):
        return
    z = T.diagonal()
    disc = isinstance(region, Disc)
    gap = region.radius - np.abs(z).max() if disc else -z.real.max()
    if not gap > 0:
        return
    for share in (0.5, 0.1):  # of the gap that is left to the inequality
        R = np.eye(n, dtype=complex)
        for _ in range(2):  # a Gramian of the Gramian leaves a more even remainder; the first mostly suffices
            with np.errstate(all="ignore"):
                smaller = T / (region.radius - share * gap) if disc else T + share * gap * np.eye(n)
                R = _hammarling(smaller, R, disc)
                R = R / np.abs(R).max()
            if not np.isfinite(R).all():
                break
            G = Z @ R
            # Q is real, so the imaginary part of G G^* vanishes and G may be replaced by (Re G, Im G)
            yield GramianFactor(_lower(np.hstack([G.real, G.imag]))), 0.9 * share * gap


def _hammarling(T: np.ndarray, R: np.ndarray, disc: bool) -> np.ndarray:
    """Upper triangular U with ``U U^* - T U U^* T^* = R R^*``, or ``T U U^* + U U^* T^* = -R R^*``, T triangular.

    Column by column from the last one (Hammarling 1982): U is never squared, so small directions keep their digits.
    """
    n = len(T)
    U = np.zeros_like(T)
    for k in range(n - 1, -1, -1):
        R = _lower(R[::-1])[::-1, ::-1]  # upper triangular, with the same R R^*
        z, rho = T[k, k], R[k, k]
        r = R[:k, k] * (np.conj(rho) / abs(rho))
        a = np.sqrt((1 - abs(z)) * (1 + abs(z))) if disc else np.sqrt(-2 * z.real)
        U[k, k] = mu = abs(rho) / a
        if k == 0:
            return U
        T1, t = T[:k, :k], T[:k, k] * mu
        if disc:
            u = scipy.linalg.solve_triangular(np.eye(k) - np.conj(z) * T1, a * r + np.conj(z) * t, check_finite=False)
            y = a * (T1 @ u + t) - z * r
        else:
            u = scipy.linalg.solve_triangular(T1 + np.conj(z) * np.eye(k), -a * r - t, check_finite=False)
            y = r - a * u
        U[:k, k] = u
        R = np.column_stack([R[:k, :k], y])
    return U


def _lower(R: np.ndarray) -> np.ndarray:
    """Lower triangular L with ``L L^* = R R^*``."""
    return np.asarray(np.linalg.qr(R.conj().T, mode="r")).conj().T


def _size(M: np.ndarray) -> float:
    """An upper bound of the Frobenius norm, up to relative rounding errors: squares below TINY may be lost."""
    return float(np.linalg.norm(M)) + len(M) * TINY**0.5
