"""Which floating-point blocks certainly lie inside a region, and how to round a boundary point to one of them.

A block on the boundary is, once rounded, as likely outside as inside, and for a block of norm N an error of one unit
in the last place moves its determinant by N^2 u. So rounding has to be part of the projection. Three ways are tried,
and every result has been checked by an inequality that holds in exact arithmetic:

1. *pulled*: trace and determinant are moved inward by a bound of what rounding can do to them, O(u N^2), then
   rounded. Nearly always the best.
2. *lattice*: a block with a double eigenvalue t is ``t I`` plus a nilpotent ``[[PQ, -P^2], [Q^2, -PQ]]``; with P and Q
   rounded to half of the mantissa, every entry is exact. Rounding P and Q moves the block along the surface of such
   blocks, so the distance changes in second order only. Takes over where N^2 u is no longer small.
3. *triangular*: the diagonal clipped, the smaller off-diagonal entry dropped. Always inside, whatever the numbers.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from schurfire.exact import block_inside, real_limits, representable
from schurfire.namespaces import NUMPY, Array, dtype_name, finfo, namespace
from schurfire.regions import Disc, Region

_FILTER = 8  # each term of the two inequalities goes through at most 8 roundings
_SMALL = 3.0  # in radii: below, a pull moves the block by at most 400 u and the lattice is not tried
_PULL = 12  # the filter's bound, and half as much again for the rounding of the four entries


class Entries(NamedTuple):
    """The entries of blocks [[a, b], [c, d]], each an array."""

    a: Array
    b: Array
    c: Array
    d: Array


class Invariants(NamedTuple):
    """What rotations leave alone: mean diagonal e, larger and smaller rotated off-diagonal s >= abs(t), p = s t."""

    e: Array
    s: Array
    p: Array


@dataclass(frozen=True)
class Frame:
    """A region in the numbers of one precision.

    ``origin`` is the centre or bound; ``radius`` is None for a half-plane. Both are numbers of the precision, rounded
    so that this region lies inside the one that was asked for. Blocks larger than ``horizon`` radii, whose squares
    would overflow, are projected as if the radius were larger.
    """

    origin: float
    radius: float | None
    lowest: float
    highest: float
    unit: float
    tiny: float
    horizon: float
    mantissa: int


def frame_of(region: Region, like: Array) -> Frame:
    """The region in the precision of the array ``like``."""
    dtype, machine = dtype_name(like), finfo(like)
    inner = representable(region, dtype)
    lowest, highest = real_limits(region, dtype, closed=False)
    return Frame(
        origin=inner.origin,
        radius=inner.radius if isinstance(inner, Disc) else None,
        lowest=lowest,
        highest=highest,
        unit=float(machine.eps) / 2,
        tiny=float(machine.tiny),
        horizon=2.0 ** (machine.maxexp // 2 - 8),
        mantissa=int(machine.nmant) + 1,
    )


def certainly_inside(block: Entries, frame: Frame) -> Array:
    """Whether floating-point arithmetic can prove that the blocks lie strictly inside; False means undecided."""
    return _proven(_margins(block, frame))


def inside(block: Entries, region: Region) -> Array:
    """Whether the blocks lie strictly inside: for NumPy arrays exactly, for tensors as ``certainly_inside``."""
    margins = _margins(block, frame_of(region, block.a))
    result = _proven(margins)
    if namespace(block.a) is not NUMPY:
        return result
    undecided = ~result & ~np.any([slack < -error for slack, error in margins], axis=0)
    result = np.array(result)
    for index in np.argwhere(undecided):
        a, b, c, d = (entry[tuple(index)] for entry in block)
        result[tuple(index)] = block_inside([[a, b], [c, d]], region)
    return result


def _proven(margins: list[tuple[Array, Array]]) -> Array:
    (first, first_error), (second, second_error) = margins
    return (first > first_error) & (second > second_error)


def _margins(block: Entries, frame: Frame) -> list[tuple[Array, Array]]:
    """Both slacks of ``exact.slacks``, computed, and bounds of their errors, flushing to zero included.

    Everything is divided by the radius first (by the largest entry for a half-plane).
    """
    xp = namespace(block.a)
    x, y = block.a - frame.origin, block.d - frame.origin
    scale = frame.radius
    if scale is None:
        scale = _largest(xp, x, block.b, block.c, y) + frame.tiny
    x, y, b, c = x / scale, y / scale, block.b / scale, block.c / scale
    one = xp.ones_like(block.a)
    lost = frame.tiny * xp.maximum(one, one / scale)  # what flushing an entry, or its quotient, to zero can lose
    size = xp.abs(x * y) + xp.abs(b * c)
    spread = xp.abs(x) + xp.abs(y)
    lost = 4 * lost * (1 + spread + xp.abs(b) + xp.abs(c))
    error = _FILTER * frame.unit
    if frame.radius is None:
        return [(-(x + y), error * spread + lost), (x * y - b * c, error * size + lost)]
    # 1 + det - |tr| as (1 -+ x)(1 -+ y) - b c: near an eigenvalue at the boundary both factors are small and accurate.
    sign = _sign(xp, x + y)
    to_x, to_y = 1 - sign * x, 1 - sign * y
    small = xp.abs(to_x * to_y) + xp.abs(b * c) + xp.abs(x * to_y) + xp.abs(y * to_x)
    return [(1 - (x * y - b * c), error * (1 + size) + lost), (to_x * to_y - b * c, error * small + lost)]


class Shape(NamedTuple):
    """A block relative to its region: unit of length, invariants and what is needed to go back.

    ``f, g, h`` are half the difference of the diagonal, the symmetric and the antisymmetric off-diagonal part, all
    in multiples of ``scale``; ``w`` is the length of (f, g). ``scale`` is the radius times ``reach``, which is 1
    unless the block is astronomically large. ``sign`` is that of the mean diagonal (1 for a half-plane, which has no
    symmetry to exploit).
    """

    scale: Array
    reach: Array
    sign: Array
    f: Array
    g: Array
    h: Array
    w: Array
    invariants: Invariants


def shape_of(block: Entries, frame: Frame) -> Shape:
    """Splits blocks into their invariants under rotation and the rest."""
    xp = namespace(block.a)
    x, y = block.a - frame.origin, block.d - frame.origin
    largest = _largest(xp, x, block.b, block.c, y)
    one = xp.ones_like(largest)
    reach = one if frame.radius is None else xp.maximum(one, largest / (frame.radius * frame.horizon))
    scale = xp.where(largest > 0, largest, one) if frame.radius is None else frame.radius * reach
    x, y, b, c = x / scale, y / scale, block.b / scale, block.c / scale
    e, f, g, h = x / 2 + y / 2, x / 2 - y / 2, b / 2 + c / 2, c / 2 - b / 2
    w, sign = xp.hypot(f, g), one if frame.radius is None else _sign(xp, e)
    return Shape(scale, reach, sign, f, g, h, w, Invariants(sign * e, w + xp.abs(h), f * f + b * c))


def entries_of(shape: Shape, point: Invariants, frame: Frame) -> Entries:
    """The blocks that have the directions of ``shape`` and the invariants of ``point``, in rounded arithmetic."""
    xp = namespace(point.e)
    p = point.p / shape.reach / shape.reach
    t = divide(xp, p, point.s)
    f, g = _directed(xp, shape, (point.s + t) / 2)
    # The off-diagonal entries are g - h and g + h. One is a sum. The other one is a difference, or their product
    # g^2 - h^2 = p - f^2 divided by the sum; the rounding errors are u (sum) and u f^2 / (sum).
    turn, h = _sign(xp, shape.g), (point.s - t) / 2
    larger = xp.abs(g) + h
    smaller = turn * xp.where(xp.abs(f) > larger, xp.abs(g) - h, divide(xp, p - f * f, larger))
    larger = turn * larger
    upwards = turn == _sign(xp, shape.h)
    length = shape.scale
    e = shape.sign * point.e * (length / shape.reach)
    return Entries(
        a=frame.origin + (e + length * f),
        b=length * xp.where(upwards, smaller, larger),
        c=length * xp.where(upwards, larger, smaller),
        d=frame.origin + (e - length * f),
    )


def round_inward(block: Entries, shape: Shape, nearest: Invariants, frame: Frame) -> Entries:
    """Blocks strictly inside the region, in exact arithmetic, as near to ``block`` as the three ways allow."""
    xp = namespace(block.a)
    pulled = xp.settle(entries_of(shape, _pull(xp, shape, nearest, frame), frame))
    holds = certainly_inside(pulled, frame)
    radius = frame.radius
    if radius is None:  # N^2 u never matters there: the boundary has no cusp and no absolute length
        return _choose(xp, holds, pulled, _triangular(xp, block, frame))

    pulls_suffice = holds & (shape.reach * shape.invariants.s < _SMALL)

    def with_lattice() -> Entries:
        fallback = _choose(xp, holds, pulled, _triangular(xp, block, frame))
        lattice, lattice_holds = _lattice(xp, shape, nearest, frame, radius)
        nearer = _distance(block, lattice, shape) < _distance(block, fallback, shape)
        return _choose(xp, lattice_holds & nearer & ~pulls_suffice, lattice, fallback)

    return Entries(*xp.cond(xp.all(pulls_suffice), lambda: pulled, with_lattice))


def _pull(xp: Any, shape: Shape, nearest: Invariants, frame: Frame) -> Invariants:
    """Moves e and p so far inside that both inequalities survive the rounding of the entries.

    ``size`` bounds the products in the determinant apart from e^2; an error of one diagonal entry is multiplied by
    the distance of the other one to the boundary.
    """
    e, s, p = nearest
    unit = _PULL * frame.unit
    t = divide(xp, p / shape.reach / shape.reach, s)
    f = xp.abs(_directed(xp, shape, (s + t) / 2)[0]) * shape.reach
    size = 2 * f * f + xp.abs(p)
    if frame.radius is None:
        offset = abs(frame.origin) / shape.scale
        # Keeps e away from the subnormal numbers, before and after the multiplication by the scale.
        least = frame.tiny / frame.unit * xp.maximum(xp.ones_like(shape.scale), 1 / shape.scale)
        e = xp.minimum(e, -unit * (xp.abs(e) + f + 2 * offset + least))  # twice: so that e^2 exceeds offset * e below
        return Invariants(e, s, xp.minimum(p, e * e - unit * (e * e + size + offset * (f + xp.abs(e)))))
    offset = abs(frame.origin) / frame.radius
    of_determinant = unit * (1 + offset) * (2 + e * e + size)
    e = xp.minimum(e, 1 - 1.5 * of_determinant)  # leaves an interval for p
    gap = 1 - e
    of_trace = unit * (gap * gap + size + 2 * (1 + f + offset) * (gap + f))
    return Invariants(e, s, xp.minimum(xp.maximum(p, e * e - 1 + of_determinant), gap * gap - of_trace))


def _lattice(xp: Any, shape: Shape, nearest: Invariants, frame: Frame, radius: float) -> tuple[Entries, Array]:
    """Blocks with a double eigenvalue whose entries are exact, and whether they are what they claim."""
    half = nearest.s / 2
    f, g = _directed(xp, shape, half)
    length = shape.scale
    longer = length * (half + xp.abs(g))
    shorter = divide(xp, length * f * length * f, longer)
    on_g = xp.where(g >= 0, longer, shorter)  # |h| + g, and |h| - g = f^2 / (|h| + g)
    off_g = xp.where(g >= 0, shorter, longer)
    P, Q = xp.sqrt(off_g), _sign(xp, f) * xp.sqrt(on_g)
    size = _power_of_two(xp, xp.maximum(P, xp.abs(Q)), frame)
    step = size * 2.0 ** -(frame.mantissa // 2 - 1)
    P, Q = _to_grid(xp, P, step), _to_grid(xp, Q, step)
    grid = step * step
    t = _to_grid(xp, frame.origin + shape.sign * nearest.e * radius, grid)
    room = radius * (1 - _FILTER * frame.unit)
    t = xp.where(xp.abs(t - frame.origin) < room, t, t - _sign(xp, t - frame.origin) * grid)
    P, Q, t, size, grid = xp.settle((P, Q, t, size, grid))
    holds = (
        (xp.abs(t - frame.origin) < room)
        & (xp.abs(t) <= size * size)  # so that t + PQ has no more digits than the mantissa
        & (grid >= frame.tiny / frame.unit)
        & (size * size < float(finfo(size).max) / 4)
    )
    upwards = shape.h >= 0
    b, c = xp.where(upwards, -P * P, Q * Q), xp.where(upwards, Q * Q, -P * P)
    return Entries(t + P * Q, b, c, t - P * Q), holds


def _triangular(xp: Any, block: Entries, frame: Frame) -> Entries:
    lowest, highest = frame.lowest, frame.highest
    zero, upper = xp.zeros_like(block.b), xp.abs(block.b) >= xp.abs(block.c)
    a, d = (xp.minimum(xp.maximum(x, lowest), highest) for x in (block.a, block.d))
    return Entries(a, xp.where(upper, block.b, zero), xp.where(upper, zero, block.c), d)


def _directed(xp: Any, shape: Shape, length: Array) -> tuple[Array, Array]:
    """A vector of the given length along (f, g); along g where (f, g) is zero."""
    still = shape.w == 0
    ratio = length / xp.where(still, xp.ones_like(shape.w), shape.w)
    return shape.f * ratio, xp.where(still, length, shape.g * ratio)


def _distance(block: Entries, other: Entries, shape: Shape) -> Array:
    """Squared distance in a unit that cannot overflow."""
    unit = shape.scale * (1 + shape.invariants.s + shape.invariants.e)
    return sum(((x - y) / unit) ** 2 for x, y in zip(block, other, strict=True))


def _power_of_two(xp: Any, x: Array, frame: Frame) -> Array:
    """The power of two at or below x > 0, doubled: the bits of the exponent alone."""
    integer, exponent_bits = ("int64", 0x7FF << 52) if frame.mantissa > 24 else ("int32", 0xFF << 23)
    return 2 * xp.view(xp.bitwise_and(xp.view(x, integer), exponent_bits), dtype_name(x))


def _to_grid(xp: Any, x: Array, step: Array) -> Array:
    return xp.round(x / step) * step


def _largest(xp: Any, *entries: Array) -> Array:
    largest = xp.abs(entries[0])
    for entry in entries[1:]:
        largest = xp.maximum(largest, xp.abs(entry))
    return largest


def divide(xp: Any, x: Array, y: Array) -> Array:
    """The quotient, and 0 where y is 0."""
    return xp.where(y == 0, xp.zeros_like(x), x / xp.where(y == 0, xp.ones_like(y), y))


def _sign(xp: Any, x: Array) -> Array:
    """1 where x >= 0, else -1."""
    return xp.where(x >= 0, xp.ones_like(x), -xp.ones_like(x))


def _choose(xp: Any, condition: Array, yes: Entries, no: Entries) -> Entries:
    return Entries(*(xp.where(condition, x, y) for x, y in zip(yes, no, strict=True)))
