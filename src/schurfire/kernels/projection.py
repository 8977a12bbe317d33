"""The truncated projection: keep the orthogonal factor, replace every diagonal block by its nearest stable one."""

from typing import NamedTuple

from schurfire.kernels.blocks import nearest_1x1, nearest_entries
from schurfire.kernels.inward import Entries
from schurfire.kernels.quasi_triangular import next_entries, previous_entries, subdiagonal, superdiagonal, with_band
from schurfire.kernels.schur import real_schur
from schurfire.namespaces import Array, kernel, namespace
from schurfire.regions import UNIT_DISC, Region


class StablePair(NamedTuple):
    """``Z T Z^T`` with T stable in exact arithmetic; NaN where ``converged`` is false: no decomposition found."""

    T: Array
    Z: Array
    converged: Array


def project_matrix(A: Array, region: Region = UNIT_DISC, method: str = "auto") -> StablePair:
    """The real Schur decomposition of A with its factor replaced by ``project_factor``; jit-able, batched.

    Cost: that of the decomposition, about ``25 n^3`` operations; the projection itself is O(n).
    """
    schur = real_schur(A, method=method)
    return StablePair(project_factor(schur.T, region), schur.Z, schur.converged)


@kernel
def project_factor(T: Array, region: Region = UNIT_DISC) -> Array:
    """``argmin ||X - T||_F`` over quasi-triangular X with T's block structure and all eigenvalues in the region.

    The diagonal blocks are replaced by the nearest stable ones, rounded inward (``nearest_stable_block``); what is
    above them stays. The result is strictly stable in exact arithmetic, in its own precision, for every T that is
    quasi-triangular and finite; NaN and infinity come out as NaN.

    Args:
        T: quasi-triangular, shape (..., n, n). Its non-zero subdiagonal entries mark the 2x2 blocks.
        region: where the eigenvalues may live.
    """
    xp = namespace(T)
    if T.shape[-1] == 0:
        return T
    diagonal, above, below = xp.diagonal(T, axis1=-2, axis2=-1), superdiagonal(xp, T), subdiagonal(xp, T)
    is_first = below != 0
    is_second = previous_entries(xp, is_first)
    block = Entries(diagonal, above, below, next_entries(xp, diagonal))
    a, b, c, d = nearest_entries(block, region, True, is_first)
    single = nearest_1x1(diagonal, region, True)
    new_diagonal = xp.where(is_first, a, xp.where(is_second, previous_entries(xp, d), single))
    return with_band(xp, T, new_diagonal, xp.where(is_first, b, above), xp.where(is_first, c, xp.zeros_like(c)))
