"""Exact decisions: hand cases, an independent criterion, and regions rounded to a precision."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schurfire import Disc, HalfPlane, InvalidInputError
from schurfire.exact import block_inside, real_limits, region_radius, representable, slacks
from tests.references import strictly_inside

DTYPES = ("float32", "float64")
REGIONS = (
    Disc(), Disc(0.1), Disc(0.7, 0.3), Disc(3.0, -2.5), Disc(1e-3, 1.0), Disc(1e12, 0.1),
    HalfPlane(), HalfPlane(-0.1), HalfPlane(1 / 3), HalfPlane(1e-30), HalfPlane(-1e12),
)  # fmt: skip


@pytest.mark.parametrize(
    ("block", "region", "expected"),
    [
        ([[0.5]], Disc(), (Fraction(1, 2), Fraction(3, 2))),
        ([[-0.5]], Disc(2.0, 1.0), (Fraction(7, 2), Fraction(1, 2))),
        ([[0.5]], HalfPlane(2), (Fraction(3, 2), Fraction(3, 2))),
        ([[0.5, 9.0], [0.0, 0.5]], Disc(), (Fraction(3, 4), Fraction(1, 4))),
        ([[0.0, 1.0], [-1.0, 0.0]], Disc(), (Fraction(0), Fraction(2))),
        ([[0.0, 1.0], [1.0, 0.0]], Disc(), (Fraction(2), Fraction(0))),
        ([[1.0, 0.0], [0.0, 1.0]], Disc(), (Fraction(0), Fraction(0))),
        ([[3.0, 1.0], [-1.0, 3.0]], Disc(2.0, 3.0), (Fraction(3), Fraction(5))),
        ([[1.5, 0.0], [0.0, -0.5]], Disc(2.0, 0.5), (Fraction(5), Fraction(3))),
        ([[-1.0, 2.0], [-2.0, -1.0]], HalfPlane(), (Fraction(2), Fraction(5))),
        ([[-1.0, 2.0], [2.0, -1.0]], HalfPlane(), (Fraction(2), Fraction(-3))),
        ([[1.0, 0.0], [0.0, 2.0]], HalfPlane(3.0), (Fraction(3), Fraction(2))),
    ],
)
def test_slacks_by_hand(block, region, expected):
    assert slacks(block, region) == expected
    assert slacks(np.array(block, "float32"), region) == expected
    assert block_inside(block, region) == all(s > 0 for s in expected) == strictly_inside(block, region)


def test_nothing_is_rounded():
    tiny = 2.0**-1074
    assert slacks([[1.0, tiny], [-tiny, 1.0]], Disc())[0] == -(Fraction(tiny) ** 2)
    assert slacks([[tiny]], Disc(centre=1.0)) == (2 - Fraction(tiny), Fraction(tiny))
    assert block_inside([[1.0, -tiny], [tiny, 1.0]], Disc(1.0, tiny))
    assert not block_inside([[0.0, 1.0], [-1.0, 0.0]], Disc())
    assert block_inside([[0.0, 1.0], [np.nextafter(-1.0, 0), 0.0]], Disc())
    huge = np.finfo("float64").max
    assert slacks([[huge, huge], [huge, huge]], Disc()) == (Fraction(1), 1 - 2 * Fraction(huge))


entry = st.sampled_from([0.0, 0.25, -0.5, 1.0, -1.0, 2.0, 1 + 2**-52, 1 - 2**-53, 2**-60, 2**30]) | st.floats(-2, 2)


@given(st.tuples(*4 * [entry]), st.sampled_from(REGIONS))
def test_blocks_are_judged_by_their_roots(entries, region):
    block = np.reshape(entries, (2, 2))
    assert block_inside(block, region) == strictly_inside(block, region)
    assert block_inside(block[:1, :1], region) == strictly_inside(block[:1, :1], region)


def test_the_radius_is_taken_as_it_is():
    assert region_radius(Disc(0.1)) == Fraction(0.1) != Fraction(1, 10)


@pytest.mark.parametrize("region", REGIONS)
def test_every_float64_region_represents_itself(region):
    assert representable(region, "float64") == region


@pytest.mark.parametrize("region", REGIONS)
def test_the_float32_region_is_the_largest_inside(region):
    inner = representable(region, "float32")
    if isinstance(region, HalfPlane):
        assert is_float32(inner.bound)
        assert inner.bound <= region.bound < above(inner.bound)
        return
    assert is_float32(inner.centre)
    assert is_float32(inner.radius)
    offset = abs(Fraction(inner.centre) - Fraction(region.centre))
    assert offset <= Fraction(float(np.spacing(np.float32(abs(region.centre))))) / 2
    assert Fraction(inner.radius) + offset <= Fraction(region.radius) < Fraction(above(inner.radius)) + offset


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("region", REGIONS)
def test_real_limits_are_the_last_numbers_inside(region, dtype):
    """Except for subnormal ones, which XLA takes for zero."""
    tiny = np.finfo(dtype).tiny
    for closed in (False, True):
        lowest, highest = real_limits(region, dtype, closed)
        assert in_section(lowest, region, closed)
        assert in_section(highest, region, closed)
        assert highest == -tiny or not in_section(above(highest, dtype), region, closed)
        assert float(np.dtype(dtype).type(highest)) == highest
        if isinstance(region, HalfPlane):
            assert lowest == np.finfo(dtype).min
        else:
            assert float(np.dtype(dtype).type(lowest)) == lowest
            assert not in_section(-above(-lowest, dtype), region, closed)


def test_limits_by_hand():
    assert real_limits(Disc(), "float64", True) == (-1.0, 1.0)
    assert real_limits(Disc(), "float64", False) == (-1 + 2**-53, 1 - 2**-53)
    assert real_limits(Disc(), "float32", False) == (-1 + 2**-24, 1 - 2**-24)
    assert real_limits(HalfPlane(), "float64", False)[1] == -(2.0**-1022)
    assert real_limits(HalfPlane(), "float32", False)[1] == -(2.0**-126)
    assert real_limits(Disc(2.0**-1040), "float64", False) == (0.0, 0.0)
    assert real_limits(HalfPlane(1e300), "float32", True) == (np.finfo("float32").min, np.finfo("float32").max)
    largest = float(np.finfo("float64").max)
    assert real_limits(Disc(largest, largest), "float64", False) == (2.0**-1022, largest)


@pytest.mark.parametrize("region", [Disc(1e-50), Disc(1e-9, 0.1), Disc(1.0, 1e30 + 1e14)])
def test_a_disc_between_two_float32_numbers_has_no_room(region):
    with pytest.raises(InvalidInputError, match=r"wide enough to hold a float32 number, .* use float64"):
        representable(region, "float32")


def test_a_half_plane_beyond_float32_has_no_room():
    with pytest.raises(InvalidInputError, match="wide enough to hold a float32 number"):
        real_limits(HalfPlane(-1e39), "float32", True)
    with pytest.raises(InvalidInputError, match="wide enough to hold a float64 number"):
        real_limits(HalfPlane(np.finfo("float64").min), "float64", False)


def F32(x):  # noqa: N802
    return float(np.float32(x))


def is_float32(x):
    return F32(x) == x


def above(x, dtype="float32"):
    with np.errstate(over="ignore"):
        return float(np.nextafter(np.dtype(dtype).type(x), np.dtype(dtype).type(np.inf)))


def in_section(x, region, closed):
    """Whether a real number lies in the region (or its closure)."""
    if not math.isfinite(x):
        return False
    if isinstance(region, HalfPlane):
        return x < region.bound or (closed and x == region.bound)
    distance = abs(Fraction(x) - Fraction(region.centre))
    return distance < Fraction(region.radius) or (closed and distance == Fraction(region.radius))
