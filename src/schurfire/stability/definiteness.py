"""Rump's test of positive definiteness and the constants of the rounding-error bounds that lead to it.

All bounds are for IEEE double precision as NumPy and LAPACK use it: inner products evaluated in any order, with or
without fused multiply-add, but not by a fast (Strassen-like) product.
"""

import math

import numpy as np
import scipy.linalg

from schurfire.regions import Disc, HalfPlane, Region

UNIT = np.finfo(np.float64).eps / 2
TINY = np.finfo(np.float64).tiny


def is_positive_definite(M: np.ndarray, error: float) -> bool:
    """Whether every symmetric matrix within ``error`` of M (in the 2-norm) is positive definite; False is no proof.

    The shift is twice Rump's, so that a Cholesky factorisation that multiplies by reciprocals is covered too.
    """
    n, diagonal = len(M), M.diagonal()
    if not np.isfinite(M).all() or not np.isfinite(error) or not (diagonal > 0).all():
        return False
    g = gamma(n + 3)
    shift = 2 * g / (1 - g) * diagonal.sum() + error + 4 * n * (n + 2 + diagonal.max()) * TINY
    shifted = M.copy()
    shifted[np.diag_indices(n)] = np.nextafter(diagonal - shift * (1 + 4 * n * UNIT), -np.inf)
    try:
        factor = scipy.linalg.cholesky(shifted, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return False
    return bool(np.isfinite(factor).all())  # some implementations let NaN pass


def gamma(k: int) -> float:
    """An upper bound of ``(1 + UNIT)^k - 1``, the relative error that k roundings can add up to."""
    return k * UNIT / (1 - k * UNIT)


def unit_scale(A: np.ndarray, region: Region) -> tuple[np.ndarray | None, Region]:
    """A and the region divided by one power of two, so that neither squares nor products over- or underflow.

    The power is that next to the radius of a disc; next to the largest number for a half-plane, which has no length.
    The matrix is None where that is not exact.
    """
    if isinstance(region, Disc):
        exponent = math.frexp(region.radius)[1] - 1  # 0 for radius 1
    else:
        exponent = math.frexp(max(float(np.abs(A).max(initial=0.0)), abs(region.bound)))[1]
    with np.errstate(all="ignore"):
        B, origin = np.ldexp(A.astype(np.float64), -exponent), float(np.ldexp(region.origin, -exponent))
        exact = np.array_equal(np.ldexp(B, exponent), A) and float(np.ldexp(origin, exponent)) == region.origin
    if not exact or not math.isfinite(origin):
        return None, region
    return B, Disc(math.ldexp(region.radius, -exponent), origin) if isinstance(region, Disc) else HalfPlane(origin)


def frozen(array: np.ndarray) -> np.ndarray:
    """A copy that cannot be written to: evidence stays what it was."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy
