"""The guard: a matrix that is proven stable by its powers is left alone, any other is replaced by one that is.

With ``B = (A - c I) / t`` for a disc of centre c and a t just below its radius, ``||B^(2^k)|| < 1`` for some k proves
that all eigenvalues lie inside. The computed powers C carry a bound of their distance to the exact ones, in the maximum
row-sum norm,

    ||B^(2^k) - C_k|| <= err_k,    err_(k+1) = 2 ||C_k|| err_k + err_k^2 + g ||C_k||^2,

as in ``kernels/bounds.py``, where g and what is flushed to zero are explained. Here only the decision is wanted, so no
power is normalised and no logarithm is taken: a power that overflows, or whose error bound exceeds it, proves nothing.
"""

from typing import Any, cast

import numpy as np

from schurfire.exact import representable
from schurfire.kernels.bounds import bound_by_squaring
from schurfire.kernels.native_matrices import PowerBound, is_available, proven_by_library
from schurfire.kernels.projection import project_matrix
from schurfire.namespaces import Array, batched, dtype_name, finfo, kernel, namespace, with_gradient_of
from schurfire.regions import UNIT_DISC, Disc

# As many as ``certify`` takes. The 4096th power proves a radius of 0.999 for matrices whose powers grow up to 60-fold
# before they fall, and scaling costs those that it does not prove 0.1 % in radius if their powers grow 60-fold.
_SQUARINGS = 12
# How often the error bound must fit into what is left below 1, so that another order of summation, or the bound that
# ``certify`` computes, comes to the same verdict: the two computed powers differ by at most twice the bound.
_DOUBT = 4


@kernel
def stable_or_replaced(A: Array, region: Disc = UNIT_DISC) -> Array:
    """A where its powers prove it stable, elsewhere a matrix near A that they do prove; differentiable.

    The replacement is the truncated projection; where that is not proven, the projection scaled towards the centre of
    the region by a bound of its powers, then by its norm; and the centre times the identity for matrices with NaN or
    infinity, or so large that their projection might overflow. The numbers returned are strictly stable, rigorously, in
    the precision of A, and ``certify`` proves them. Stable matrices so far from normal that rounding drowns the proof
    (in float32 a Jordan block of order 5 at 0.875) are scaled as well. The derivative is the identity where A is
    returned, zero elsewhere.

    Args:
        A: shape (..., n, n), float32 or float64; NumPy array or tensor, inside or outside of ``jit`` and ``vmap``.
        region: where the eigenvalues may live.

    Raises:
        InvalidInputError: the region is too narrow for the precision of A.
        NotConvergedError: outside of ``jit``, the QR iteration of a decomposition did not end.

    Cost: at most 12 matrix products where all matrices of the stack are proven, fewer the smaller their radii. One that
    is not costs its own Schur decomposition, and two more bounds for the stack.

    >>> import numpy as np
    >>> A = np.array([[0.5, 0.1], [-0.2, 0.5]])
    >>> np.array_equal(stable_or_replaced(A), A)
    True
    >>> bool(np.abs(np.linalg.eigvals(stable_or_replaced(3 * A))).max() < 1)
    True
    """
    if A.shape[-1] == 0:
        return A
    X, proven = batched(_judged, region)(namespace(A).stop_gradient(A))
    return with_gradient_of(A, X, proven[..., None, None])


def _judged(A: Array, region: Disc) -> tuple[Array, Array]:
    """The guarded matrices, and which of them are A."""
    xp = namespace(A)
    A = xp.settle(A)
    proven = _proven(xp, A, region, 1)
    return xp.cond(xp.all(proven), lambda: A, lambda: _replaced(xp, A, proven, region)), proven


def _proven(xp: Any, A: Array, region: Disc, margins: int) -> Array:
    """Whether the powers of A prove all eigenvalues inside the disc with so many margins less radius."""
    n, tiny = A.shape[-1], float(finfo(A).tiny)
    disc, margin = _within(region, A), _margin(A, region)
    scale = 1 / (disc.radius * (1 - margins * margin))
    bound = PowerBound(disc.centre, scale, 4 * n * tiny * (1 + 1 / disc.radius), _DOUBT, _SQUARINGS)
    return proven_by_library(A, bound) if is_available(A) else _proven_in_portable_operations(xp, A, bound)


def _proven_in_portable_operations(xp: Any, A: Array, bound: PowerBound) -> Array:
    n, unit, tiny = A.shape[-1], float(finfo(A).eps) / 2, float(finfo(A).tiny)
    g = 1.01 * (n + 4) * unit
    upward = 1 + 2 * g + 8 * unit
    C = shifted(A, bound.centre) * bound.scale

    def verdict(C: Array, err: Array) -> Array:
        return _norm(xp, C) * upward + bound.doubt * err < 1

    def undecided(k: Array, _C: Array, _err: Array, proven: Array) -> Array:
        return (k < bound.squarings) & xp.any(~proven)

    def square(k: Array, C: Array, err: Array, proven: Array) -> tuple[Array, ...]:
        norm = _norm(xp, C) * upward
        err = ((2 * norm + err) * err + norm * norm * g + 4 * n * n * tiny * (1 + norm)) * upward
        C = xp.matmul(C, C)
        return k + 1, C, err, proven | verdict(C, err)

    # The shift, the reciprocal and the product with it round once each; entries that are flushed to zero: n in a row.
    err = 4 * unit * _norm(xp, C) + bound.lost
    proven = xp.while_loop(undecided, square, (np.int32(0), C, err, verdict(C, err)))[3]
    return proven & xp.all(xp.isfinite(A), axis=(-2, -1))


def _replaced(xp: Any, A: Array, proven: Array, region: Disc) -> Array:
    """A where it is proven, elsewhere the projection, as far towards the centre as its proof needs."""
    disc, margin, unit = _within(region, A), _margin(A, region), float(finfo(A).eps) / 2
    centre = disc.centre * xp.eye(A.shape[-1], dtype=dtype_name(A))
    sane = xp.abs(A) < float(finfo(A).max) / (8 * A.shape[-1])  # its Schur factor cannot overflow; False for NaN
    suspect = ~proven & xp.all(sane, axis=(-2, -1))
    # The zeros in place of all others are decomposed at once.
    pair = project_matrix(xp.where(suspect[..., None, None], A, xp.zeros_like(A)), region)
    X = xp.matmul(xp.matmul(pair.Z, pair.T), xp.swapaxes(pair.Z, -1, -2))
    B = shifted(X, disc.centre)

    def scaled(size: Array) -> Array:
        factor = xp.minimum(disc.radius * (1 - 3 * margin) / size, xp.ones_like(size))
        return B * factor[..., None, None] + centre

    # The relative error asked for makes the error bound inside as large as the guard wants it, see _DOUBT.
    bound = bound_by_squaring(B, _SQUARINGS, 4 * _DOUBT * (A.shape[-1] + 4) * unit)
    ways = xp.settle(xp.stack([X, scaled(bound), scaled(_norm(xp, B))]))
    holds = (_proven(xp, ways, region, 2) & suspect)[..., None, None]
    result = centre + xp.zeros_like(A)
    for way in (2, 1, 0):
        result = xp.where(holds[way], ways[way], result)
    return xp.where(proven[..., None, None], A, result)


def shifted(A: Array, centre: float) -> Array:
    """``A - centre I``."""
    return A - centre * namespace(A).eye(A.shape[-1], dtype=dtype_name(A)) if centre else A


def _within(region: Disc, A: Array) -> Disc:
    """The largest disc inside the region that has its centre and radius among the numbers of the precision of A."""
    return cast(Disc, representable(region, dtype_name(A)))


def _margin(A: Array, region: Disc) -> float:
    """By how much less, relative to the radius, a bound must be, so that ``certify`` finds one below the radius.

    ``certify`` takes norms, roots and logarithms in its own order, with up to ``2 n + 150`` roundings on the way. A
    replacement is rounded after it has been shifted back to the centre.
    """
    unit = float(finfo(A).eps) / 2
    return min(0.1, (8 * A.shape[-1] + 256) * unit * (1 + abs(region.centre) / region.radius))


def _norm(xp: Any, A: Array) -> Array:
    return xp.max(xp.sum(xp.abs(A), axis=-1), axis=-1)
