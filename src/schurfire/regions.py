"""Where the eigenvalues of a stable matrix may live: an open disc or an open half-plane."""

import math
from dataclasses import dataclass

import numpy as np

from schurfire.errors import invalid


@dataclass(frozen=True)
class Disc:
    """The open disc ``|lambda - centre| < radius`` with a real centre: stability in discrete time.

    >>> Disc()
    Disc(radius=1.0, centre=0.0)
    >>> Disc(radius=0.75).shrink(0.25)
    Disc(radius=0.49999999999999994, centre=0.0)
    """

    radius: float = 1.0
    centre: float = 0.0

    def __post_init__(self) -> None:
        _store_real(self, "radius", self.radius)
        _store_real(self, "centre", self.centre)
        if not self.radius > 0:
            raise invalid("radius", "positive", self.radius, "The disc must be open and not empty.")

    @property
    def origin(self) -> float:
        """The real number that a matrix is shifted by before it is judged: the centre."""
        return self.centre

    def shrink(self, margin: float) -> "Disc | None":
        """The disc of all points at least ``margin`` inside this one, or a little smaller; None if there are none."""
        if margin == 0:
            return self
        radius = math.nextafter(self.radius - margin, 0.0)
        return Disc(radius, self.centre) if margin > 0 and radius > 0 else None


@dataclass(frozen=True)
class HalfPlane:
    """The open half-plane ``Re(lambda) < bound``: stability in continuous time.

    >>> HalfPlane()
    HalfPlane(bound=0.0)
    """

    bound: float = 0.0

    def __post_init__(self) -> None:
        _store_real(self, "bound", self.bound)

    @property
    def origin(self) -> float:
        """The real number that a matrix is shifted by before it is judged: the bound."""
        return self.bound

    def shrink(self, margin: float) -> "HalfPlane | None":
        """The half-plane of all points at least ``margin`` inside this one, or a little smaller; None beyond floats."""
        if margin == 0:
            return self
        bound = math.nextafter(self.bound - margin, -math.inf)
        return HalfPlane(bound) if margin > 0 and math.isfinite(bound) else None


Region = Disc | HalfPlane


def check_region(region: object) -> Region:
    """Returns ``region`` if it is one.

    Raises:
        InvalidInputError: it is neither a ``Disc`` nor a ``HalfPlane``.
    """
    if not isinstance(region, Region):
        raise invalid("region", "a schurfire.Disc or schurfire.HalfPlane", repr(region))
    return region


def _store_real(region: Region, name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise invalid(name, "a real number", repr(value))
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise invalid(name, "finite", value)
    object.__setattr__(region, name, number)


UNIT_DISC = Disc()
