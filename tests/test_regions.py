"""Regions: what they accept, and that shrinking never leaves too much."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schurfire import Disc, HalfPlane, InvalidInputError
from schurfire.regions import check_region

positive = st.floats(min_value=1e-300, max_value=1e300)


def test_defaults_are_the_unit_disc_and_the_left_half_plane():
    assert Disc() == Disc(1.0, 0.0) == Disc(radius=1, centre=0)
    assert HalfPlane() == HalfPlane(bound=0)
    assert Disc() != HalfPlane()


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.float64(2), np.int64(2)])
def test_numbers_are_stored_as_python_floats(value):
    disc = Disc(radius=value, centre=value)
    assert type(disc.radius) is type(disc.centre) is type(HalfPlane(value).bound) is float
    assert disc.radius == disc.centre == HalfPlane(value).bound == 2.0


def test_regions_are_values():
    assert len({Disc(), Disc(1), HalfPlane(), HalfPlane(0)}) == 2
    with pytest.raises(AttributeError):
        Disc().radius = 2.0


@pytest.mark.parametrize("value", ["1", None, True, 1j, [1.0], np.ones(1)])
def test_no_real_number(value):
    for build in (Disc, lambda x: Disc(centre=x), HalfPlane):
        with pytest.raises(InvalidInputError, match="to be a real number, received"):
            build(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan")])
def test_not_finite(value):
    for name, build in (("radius", Disc), ("centre", lambda x: Disc(centre=x)), ("bound", HalfPlane)):
        with pytest.raises(InvalidInputError, match=f"Expected {name} to be finite, received {value}"):
            build(value)


@pytest.mark.parametrize("radius", [0, 0.0, -0.0, -1, -1e-300])
def test_radius_is_positive(radius):
    with pytest.raises(InvalidInputError, match=r"Expected radius to be positive, received .* open and not empty"):
        Disc(radius)


@given(positive, st.floats(min_value=0, max_value=1, exclude_max=True))
def test_a_shrunk_disc_keeps_its_distance(radius, share):
    margin = radius * share
    disc = Disc(radius, centre=3.5)
    shrunk = disc.shrink(margin)
    if shrunk is None:
        assert margin >= radius * (1 - 2**-52)
        return
    assert shrunk.centre == 3.5
    assert 0 <= Fraction(radius) - Fraction(margin) - Fraction(shrunk.radius) <= Fraction(2 * math.ulp(radius))
    assert (shrunk is disc) == (margin == 0)


@given(st.floats(-1e300, 1e300), st.floats(min_value=0, max_value=1e300))
def test_a_shrunk_half_plane_keeps_its_distance(bound, margin):
    shrunk = HalfPlane(bound).shrink(margin)
    excess = Fraction(bound) - Fraction(margin) - Fraction(shrunk.bound)
    assert 0 <= excess <= 4 * Fraction(max(math.ulp(bound), math.ulp(margin)))
    assert (shrunk.bound == bound) == (margin == 0)


@pytest.mark.parametrize("margin", [math.nan, math.inf, -1.0, -1e-300, -math.inf])
def test_no_region_is_that_much_smaller(margin):
    assert Disc().shrink(margin) is None
    assert HalfPlane().shrink(margin) is None


def test_a_disc_does_not_shrink_to_nothing():
    for margin in (1.0, 2.0):
        assert Disc().shrink(margin) is None
    assert HalfPlane(-1e308).shrink(1e308) is None


def test_check_region():
    for region in (Disc(2), HalfPlane(-1)):
        assert check_region(region) is region
    for other in (None, 1.0, "disc", Disc):
        with pytest.raises(
            InvalidInputError, match=r"Expected region to be a schurfire.Disc or schurfire.HalfPlane, rec"
        ):
            check_region(other)
