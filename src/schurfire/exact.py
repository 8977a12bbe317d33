"""Decisions in exact rational arithmetic about floating-point numbers.

Every finite float is a rational number, and whether a block's eigenvalues lie in a region is two polynomial
inequalities in its entries. Nothing here rounds.
"""

import functools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from schurfire.errors import invalid
from schurfire.regions import Disc, HalfPlane, Region

Block = np.ndarray | Sequence[Sequence[float]]


def slacks(block: Block, region: Region) -> tuple[Fraction, Fraction]:
    """The two inequalities of a 1x1 or 2x2 block; it lies in the open region if and only if both are positive.

    With X the block minus centre (or bound) times the identity:

    | region | 1x1 | 2x2 |
    |---|---|---|
    | disc of radius r | r - x, r + x | r^2 - det X, r^2 + det X - r abs(tr X) |
    | half-plane | -x, -x | -tr X, det X |

    >>> slacks([[0.5, 9.0], [0.0, 0.5]], Disc())
    (Fraction(3, 4), Fraction(1, 4))
    """
    origin = Fraction(region.origin)
    if len(block) == 1:
        x = Fraction(float(block[0][0])) - origin
        return (-x, -x) if isinstance(region, HalfPlane) else (region_radius(region) - x, region_radius(region) + x)
    (a, b), (c, d) = [[Fraction(float(entry)) for entry in row] for row in block]
    trace = (a - origin) + (d - origin)
    determinant = (a - origin) * (d - origin) - b * c
    if isinstance(region, HalfPlane):
        return -trace, determinant
    r = region_radius(region)
    return r * r - determinant, r * r + determinant - r * abs(trace)


def block_inside(block: Block, region: Region) -> bool:
    """Whether all eigenvalues of a 1x1 or 2x2 block lie in the open region; exact."""
    return all(slack > 0 for slack in slacks(block, region))


def region_radius(region: Disc) -> Fraction:
    """The radius as a rational number."""
    return Fraction(region.radius)


@functools.lru_cache(maxsize=256)
def representable(region: Region, dtype: str) -> Region:
    """The largest region inside ``region`` that has its centre (or bound) and radius among the numbers of ``dtype``.

    In float64 it is the region itself.
    """
    if dtype == "float64":
        return region
    if isinstance(region, HalfPlane):
        bound = _at_most(Fraction(region.bound), dtype)
        if math.isinf(bound):
            raise _no_room(region, dtype)
        return HalfPlane(bound)
    with np.errstate(over="ignore"):
        centre = float(np.dtype(dtype).type(region.centre))
    if math.isinf(centre):
        raise _no_room(region, dtype)
    radius = region_radius(region) - abs(Fraction(centre) - Fraction(region.centre))
    if radius <= 0 or _at_most(radius, dtype) <= 0:
        raise _no_room(region, dtype)
    return Disc(_at_most(radius, dtype), centre)


@functools.lru_cache(maxsize=256)
def real_limits(region: Region, dtype: str, closed: bool) -> tuple[float, float]:
    """The smallest and the largest number of ``dtype`` in the region (in its closure, if ``closed``)."""
    if isinstance(region, HalfPlane):
        lower, upper = None, Fraction(region.bound)
    else:
        centre = Fraction(region.centre)
        lower, upper = centre - region_radius(region), centre + region_radius(region)
    highest = _at_most(upper, dtype) if closed else _below(upper, dtype)
    lowest = -float(np.finfo(dtype).max)
    if lower is not None:
        lowest = -(_at_most(-lower, dtype) if closed else _below(-lower, dtype))
    if lowest > highest:
        raise _no_room(region, dtype)
    return lowest, highest


def nearest_float(x: Fraction) -> float:
    """The double nearest to x; infinity beyond the largest."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _at_most(x: Fraction, dtype: str) -> float:
    """The largest finite number of ``dtype`` that does not exceed x; minus infinity if there is none."""
    kind, largest = np.dtype(dtype).type, float(np.finfo(dtype).max)
    if x >= Fraction(largest):
        return largest
    if x < Fraction(-largest):
        return -math.inf
    y = kind(nearest_float(x))  # within one unit in the last place of x, rounded twice at most
    if Fraction(float(y)) > x:
        y = np.nextafter(y, kind(-np.inf))
    above = np.nextafter(y, kind(np.inf))
    return float(above if Fraction(float(above)) <= x else y)


def _below(x: Fraction, dtype: str) -> float:
    """The largest number of ``dtype`` below x, subnormal ones left out: some processors and XLA take them for 0."""
    y = _at_most(x, dtype)
    kind = np.dtype(dtype).type
    if y == -float(np.finfo(dtype).max):
        return -math.inf
    if math.isfinite(y) and Fraction(y) == x:
        y = float(np.nextafter(kind(y), kind(-np.inf)))
    tiny = float(np.finfo(dtype).tiny)
    return y if abs(y) >= tiny else (-tiny if y < 0 else 0.0)


def _no_room(region: Region, dtype: str) -> Exception:
    return invalid("region", f"wide enough to hold a {dtype} number", region, "Enlarge it or use float64.")
