"""A rigorous upper bound of the spectral radius from repeated squaring.

``rho(A) <= ||A^(2^k)||^(1 / 2^k)`` for every k, and the right-hand side tends to ``rho(A)``. The computed powers are
not the exact ones, so every step carries a bound of the distance between the two, in the maximum row-sum norm:

    P = C + E, ||E|| <= err    ->    ||P^2 - fl(C C)|| <= 2 ||C|| err + err^2 + g ||C||^2,

with ``g`` the rounding-error bound of inner products of length n, in any order and with or without fused
multiply-add. Results that are flushed to zero are accounted for by ``n^2 tiny``, n products in each of n entries.
"""

import math
from typing import Any

from schurfire.arrays import square_matrices
from schurfire.errors import invalid
from schurfire.namespaces import Array, apply, finfo, kernel, namespace

# Relative error of log2, exp2 and the few operations around them, in units of rounding. Libraries promise 1 to 4.
_FUNCTION_ERROR = 16
_MOST_SQUARINGS = 64  # by then the error bound has doubled 64 times and exceeds the powers


def spectral_radius_bound(A: Array, squarings: int = 16) -> Array:
    """``min over k <= squarings of ||A^(2^k)||^(1 / 2^k)``, rounded upward: never below the spectral radius.

    The bound holds for the very numbers stored in A, in the precision of A, with every rounding error of its own
    computation accounted for. It is useful for ``certify``-like decisions on any device: a value below 1 is a proof.
    For matrices far from normal it may stay above 1 although A is stable.

    Args:
        A: shape (..., n, n), float32 or float64; NumPy array or tensor, inside or outside of ``jit``.
        squarings: how many times to square, at most 64.

    Returns:
        Shape (...); NaN where A holds NaN or infinity (inside ``jit``; outside that is an error).

    Raises:
        InvalidInputError: A is not square, real and finite, or ``squarings`` is no number of squarings.

    Cost: ``squarings`` matrix products.

    >>> import numpy as np
    >>> bound = spectral_radius_bound(np.array([[0.6, 0.8], [-0.8, 0.6]]))
    >>> 1.0 <= bound < 1.0001
    np.True_
    """
    A = square_matrices(A, "A")
    if isinstance(squarings, bool) or not isinstance(squarings, int) or not 0 <= squarings <= _MOST_SQUARINGS:
        raise invalid("squarings", f"a whole number from 0 to {_MOST_SQUARINGS}", repr(squarings))
    return apply(bound_by_squaring, A, squarings, 0.0)


@kernel
def bound_by_squaring(A: Array, squarings: int, relative_error: float) -> Array:
    """The bound for every matrix within ``relative_error`` of A, relative to its norm."""
    xp = namespace(A)
    n, unit, tiny = A.shape[-1], float(finfo(A).eps) / 2, float(finfo(A).tiny)
    if n == 0:
        return xp.zeros(A.shape[:-2], dtype=A.dtype)
    g = 1.01 * (n + 4) * unit  # bounds gamma_(n+2) for every n below 1 / (200 unit)
    upward = 1 + 2 * g + 8 * unit

    A = xp.settle(A)
    size = xp.settle(_norm(xp, A) * upward + n * n * tiny)
    C = A / size[..., None, None]
    err = relative_error + 4 * unit + 2 * n * n * tiny / size
    # exponent + doubt bounds log2 of (norm of the exact scaled power)^(1 / 2^k), before the last norm is added
    exponent, doubt = xp.zeros_like(size), xp.zeros_like(size)
    best = xp.log2(1 + relative_error + xp.zeros_like(size))

    def square(_: Any, state: tuple) -> tuple:
        C, err, exponent, doubt, best, weight = state
        weight = weight / 2
        C = xp.matmul(C, C)
        err = ((2 + g) * err + err * err + 2 * g + 2 * n * n * tiny) * upward
        norm = xp.settle(xp.maximum(_norm(xp, C) * upward, tiny * xp.ones_like(err)))
        C, err = C / norm[..., None, None], (err / norm + 4 * unit) * upward + n * n * tiny
        step = weight * xp.log2(norm)
        exponent = exponent + step
        doubt = (doubt + _FUNCTION_ERROR * unit * (xp.abs(exponent) + xp.abs(step) + weight)) * upward
        total = exponent + doubt + weight * xp.log2(1 + err) * (1 + _FUNCTION_ERROR * unit) + unit * weight
        return C, err, exponent, doubt, xp.where(total < best, total, best), weight

    state = (C, err, exponent, doubt, best, xp.ones_like(size))
    best = xp.fori_loop(0, squarings, square, state)[4]
    best = best + _FUNCTION_ERROR * unit * (1 + xp.abs(best))
    bound = size * xp.exp2(best) * (1 + _FUNCTION_ERROR * unit) + tiny
    return xp.where(xp.all(xp.isfinite(A), axis=(-2, -1)), bound, math.nan * size)


def _norm(xp: Any, A: Array) -> Array:
    return xp.max(xp.sum(xp.abs(A), axis=-1), axis=-1)
