"""Quasi-triangular matrices whose 2x2 blocks sit in rows 0 and 1, 2 and 3 and so on; one 1x1 block ends an odd order.

A block is any real 2x2 matrix: a complex pair, or two real eigenvalues, with or without a zero below its diagonal.
"""

from typing import Any

from schurfire.exact import representable
from schurfire.kernels.blocks import nearest_1x1, nearest_entries
from schurfire.kernels.inward import Entries, certainly_inside, frame_of
from schurfire.kernels.quasi_triangular import subdiagonal, superdiagonal, with_band
from schurfire.namespaces import Array, batched, dtype_name, kernel, namespace, with_gradient_of
from schurfire.regions import Disc


@kernel
def stable_blocks(T: Array, region: Disc) -> Array:
    """T with its blocks replaced by the nearest stable ones, rounded inward; differentiable.

    Strictly stable in exact arithmetic, in the precision of T, whatever T holds: blocks with NaN or infinity become the
    centre of the region times the identity, other entries that are not finite become zero. What need not change is
    returned bit-identical. The derivative is the identity for entries that stay, zero for those that are replaced.

    Args:
        T: zero outside of the structure, shape (..., n, n).
        region: where the eigenvalues may live.
    """
    X, stays = batched(_projected, region)(namespace(T).stop_gradient(T))
    return with_gradient_of(T, X, stays)


def _projected(T: Array, region: Disc) -> tuple[Array, Array]:
    xp = namespace(T)
    T = xp.settle(T)
    stays = xp.ones_like(T, dtype="bool")
    return xp.cond(_all_inside(xp, T, region), lambda: (T, stays), lambda: _replaced(xp, T, region))


def _all_inside(xp: Any, T: Array, region: Disc) -> Array:
    """Whether floating-point arithmetic proves every block of the stack, and every entry is finite."""
    block, last = _parts(xp, T)
    result = xp.all(xp.isfinite(T))
    if block is not None:
        result = result & xp.all(certainly_inside(block, frame_of(region, T)))
    if last is not None:
        result = result & xp.all(nearest_1x1(last, region, True) == last)
    return result


def _replaced(xp: Any, T: Array, region: Disc) -> tuple[Array, Array]:
    """T with stable blocks, and which entries are those of T."""
    (block, last), bands = _parts(xp, T), []
    if block is not None:
        a, b, c, d = nearest_entries(_finite(xp, block, region), region, True, xp.ones_like(block.a, dtype="bool"))
        beside = superdiagonal(xp, T)[..., 1 : 2 * block.a.shape[-1] : 2]
        bands.append((interleave(xp, a, d), interleave(xp, b, beside), interleave(xp, c, xp.zeros_like(c))))
    if last is not None:
        last = xp.where(xp.isfinite(last), last, _centre(region, T) * xp.ones_like(last))
        bands.append((nearest_1x1(last, region, True), xp.zeros_like(last), xp.zeros_like(last)))
    X = with_band(xp, T, *(xp.concatenate(pieces, axis=-1) for pieces in zip(*bands, strict=True)))
    X = xp.where(xp.isfinite(X), X, xp.zeros_like(X))
    return X, X == T


def _parts(xp: Any, T: Array) -> tuple[Entries | None, Array | None]:
    """The entries of the 2x2 blocks, and the 1x1 block of an odd order; None where there are none."""
    n, pairs = T.shape[-1], 2 * (T.shape[-1] // 2)
    diagonal, above, below = xp.diagonal(T, axis1=-2, axis2=-1), superdiagonal(xp, T), subdiagonal(xp, T)
    block = Entries(*(x[..., i:pairs:2] for i, x in ((0, diagonal), (0, above), (0, below), (1, diagonal))))
    return block if pairs else None, diagonal[..., pairs:] if n > pairs else None


def _finite(xp: Any, block: Entries, region: Disc) -> Entries:
    """Blocks with NaN or infinity replaced by the centre times the identity."""
    finite = xp.isfinite(block.a) & xp.isfinite(block.b) & xp.isfinite(block.c) & xp.isfinite(block.d)
    zero = xp.zeros_like(block.a)
    centre = zero + _centre(region, block.a)
    return Entries(*(xp.where(finite, x, y) for x, y in zip(block, (centre, zero, zero, centre), strict=True)))


def _centre(region: Disc, like: Array) -> float:
    return representable(region, dtype_name(like)).origin


def interleave(xp: Any, x: Array, y: Array) -> Array:
    """``x[0], y[0], x[1], y[1], ...`` along the last axis."""
    return xp.reshape(xp.stack([x, y], axis=-1), (*x.shape[:-1], 2 * x.shape[-1]))


def within_structure(xp: Any, n: int) -> Array:
    """Which entries of an (n, n) matrix lie on or above the blocks."""
    rows, columns = xp.arange(n)[:, None], xp.arange(n)
    return (columns >= rows) | in_block(xp, n)


def in_block(xp: Any, n: int) -> Array:
    """Which entries of an (n, n) matrix lie in a diagonal block."""
    rows, columns = xp.arange(n)[:, None], xp.arange(n)
    return rows // 2 == columns // 2
