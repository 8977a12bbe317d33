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
from schurfire.stability.definiteness import TINY, UNIT, gamma, is_positive_definite, unit_scale


@dataclass(frozen=True, eq=False)
class GramianFactor:
    """The matrix G, float64, shape (n, n)."""

    G: np.ndarray

    def __len__(self) -> int:
        return len(self.G)

    def proves(self, A: np.ndarray, region: Region) -> bool:
        """Whether this factor proves, rigorously, that all eigenvalues of A lie in the open region."""
        G, n = self.G, len(A)
        scaled, region = unit_scale(A, region)
        try:
            S = np.linalg.inv(G)
        except np.linalg.LinAlgError:
            return False
        if scaled is None:
            return False
        origin = region.centre if isinstance(region, Disc) else region.bound
        with np.errstate(all="ignore"):
            B = scaled - origin * np.eye(n)
            F, C = S @ G, S @ (B @ G)
            # entry by entry: n roundings in F, 2 n + 1 in C with that of the shift
            F_error = _size(gamma(n + 2) * (np.abs(S) @ np.abs(G)))
            C_error = _size(gamma(2 * n + 4) * (np.abs(S) @ (np.abs(B) @ np.abs(G))))
            F_size, C_size = _size(F) + F_error, _size(C) + C_error
            if isinstance(region, HalfPlane):
                product = C @ F.T
                M, terms = -(product + product.T), 2 * _size(C) * _size(F)
                error = 2 * (F_error * C_size + C_error * F_size)
            else:
                square = region.radius * region.radius
                M, terms = square * (F @ F.T) - C @ C.T, square * _size(F) ** 2 + _size(C) ** 2
                error = 2 * (square * F_error * F_size + C_error * C_size)
            M = np.tril(M) + np.tril(M, -1).T
            lost = 8 * n**3 * TINY * (1 + _size(S)) * (1 + _size(B)) * (1 + _size(G)) * (1 + F_size + C_size)
            total = (error + gamma(n + 6) * terms + lost) * (1 + 8 * n**2 * UNIT)
        return is_positive_definite(M, float(total))


def factors(A: np.ndarray, region: Region) -> Iterator[tuple[GramianFactor, float]]:
    """Yields factors that may prove A stable, each with a margin that it may prove as well."""
    n = len(A)
    origin = region.centre if isinstance(region, Disc) else region.bound
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
    for share in (0.5, 0.1):
        smaller = T / (region.radius - share * gap) if disc else T + share * gap * np.eye(n)
        R = np.eye(n, dtype=complex)
        for _ in range(2):  # a Gramian of the Gramian leaves a more even remainder; the first mostly suffices
            with np.errstate(all="ignore"):
                R = _hammarling(smaller, R, disc)
            if not np.isfinite(R).all():
                break
            R /= np.abs(R).max()
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
    return float(np.linalg.norm(M))
