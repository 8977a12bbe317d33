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
    >>> Disc(radius=0.75).shrink(0.25).radius < 0.5
    True
    """

    radius: float = 1.0
    centre: float = 0.0

    def __post_init__(self) -> None:
        _store_real(self, "radius", self.radius)
        _store_real(self, "centre", self.centre)
        if not self.radius > 0:
            raise invalid("radius", "positive", self.radius, "The disc must be open and not empty.")

    def shrink(self, margin: float) -> "Disc":
        """The disc of all points at least ``margin`` inside this one, or a little smaller."""
        return self if margin == 0 else Disc(math.nextafter(self.radius - margin, 0.0), self.centre)


@dataclass(frozen=True)
class HalfPlane:
    """The open half-plane ``Re(lambda) < bound``: stability in continuous time.

    >>> HalfPlane()
    HalfPlane(bound=0.0)
    """

    bound: float = 0.0

    def __post_init__(self) -> None:
        _store_real(self, "bound", self.bound)

    def shrink(self, margin: float) -> "HalfPlane":
        """The half-plane of all points at least ``margin`` inside this one, or a little smaller."""
        return self if margin == 0 else HalfPlane(math.nextafter(self.bound - margin, -math.inf))


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
    if not math.isfinite(value):
        raise invalid(name, "finite", value)
    object.__setattr__(region, name, float(value))


UNIT_DISC = Disc()
