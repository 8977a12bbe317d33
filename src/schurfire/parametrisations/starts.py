"""Matrices to start from: random ones, and factors of given ones."""

from typing import Any

import numpy as np
import scipy.linalg

from schurfire.errors import NotConvergedError, invalid
from schurfire.kernels.schur import real_schur
from schurfire.regions import Disc
from schurfire.stability.certificate import certify
from schurfire.stability.schur_form import SchurForm


def random_matrix(rng: np.random.Generator, n: int, radius: float, centre: float) -> np.ndarray:
    """``Q diag(blocks) Q^T``, see ``Parametrisation.start``; float64."""
    T = centre * np.eye(n)
    moduli = radius * (1 - rng.random(n))
    signs = rng.choice([-1.0, 1.0], n)
    for i in range(0, n, 2):
        if i + 1 < n and rng.random() < 0.5:
            angle = np.pi * rng.random()
            cos, sin = moduli[i] * np.cos(angle), moduli[i] * np.sin(angle)
            T[i : i + 2, i : i + 2] += [[cos, sin], [-sin, cos]]
        else:
            T[i : i + 2, i : i + 2] += np.diag(signs[i : i + 2] * moduli[i : i + 2])
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return Q @ T @ Q.T


def require_stable(A: np.ndarray, region: Disc) -> None:
    """Refuses A unless it, or its Schur factors, are proven stable.

    Raises:
        InvalidInputError: neither is.
    """
    if certify(A, region).is_stable:
        return
    schur = real_schur(A)
    if not SchurForm(schur.T, schur.Z, region).certify().is_stable:
        distance = np.abs(np.linalg.eigvals(A.astype(np.float64)) - region.centre).max()
        raise invalid(
            "A",
            f"stable, with all eigenvalues strictly within {region.radius:g} of {region.centre:g}",
            f"one with an eigenvalue about {distance:.6g} away",
            "Use project_stable(A).matrix or nearest_stable(A).T, or a larger region.",
        )


def has_even_blocks(A: np.ndarray) -> bool:
    """Whether A is quasi-triangular with its 2x2 blocks in rows 0 and 1, 2 and 3 and so on."""
    return not np.tril(A, -2).any() and not A.diagonal(-1)[1::2].any()


def even_schur(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``A = Z T Z^T`` in float64, T quasi-triangular with every 2x2 block in an even row and the next.

    The blocks of complex pairs are moved to the front by LAPACK's orthogonal swaps (xTREXC), so that the real
    eigenvalues, which may share a 2x2 block or not, follow. A that has this form already is returned with ``Z = I``.

    Raises:
        NotConvergedError: two eigenvalues are too close to be swapped.
    """
    A = A.astype(np.float64)
    if has_even_blocks(A):
        return A, np.eye(len(A))
    T, Z = scipy.linalg.schur(A, output="real")[:2]
    trexc: Any = scipy.linalg.get_lapack_funcs("trexc", (T,))
    front = 0
    while (pairs := front + np.flatnonzero(T.diagonal(-1)[front:])).size:
        if pairs[0] > front:
            T, Z, info = trexc(T, Z, pairs[0] + 1, front + 1)
            if info:
                fix = "Use 'schur-projected' or 'lmi', which need no order."
                raise NotConvergedError(f"Eigenvalues of A are too close to be put in order. {fix}")
        front += 2
    return T, Z
