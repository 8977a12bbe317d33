"""Options that several commands have."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from schurfire.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cyclopts import Token

    from schurfire.regions import Region


@Parameter(name="*")
@dataclass(frozen=True)
class RegionOptions:
    """Where the eigenvalues must lie.

    Attributes:
        radius: Radius of the open disc that must hold all eigenvalues. 1 by default.
        centre: Its centre on the real axis. 0 by default.
        half_plane: Instead of a disc, the half-plane of real parts below this bound; 0 for continuous time.
    """

    radius: Annotated[float | None, Parameter(show_default=False)] = None
    centre: Annotated[float | None, Parameter(alias="--center", show_default=False)] = None
    half_plane: Annotated[float | None, Parameter(show_default=False)] = None

    def region(self) -> "Region | None":
        """The region, or None if no option was given."""
        from schurfire.regions import Disc, HalfPlane

        if self.half_plane is not None:
            if self.radius is not None or self.centre is not None:
                raise InvalidInputError("Expected a disc or a half-plane, received options of both. Leave out one.")
            return HalfPlane(self.half_plane)
        if self.radius is None and self.centre is None:
            return None
        return Disc(1.0 if self.radius is None else self.radius, self.centre or 0.0)


NO_REGION = RegionOptions()


def _whole_number(_: type, tokens: "Sequence[Token]") -> int:
    """An integer as Python reads it; Cyclopts by itself rounds 1.5 without a word."""
    word = tokens[0].value
    try:
        return int(word)
    except ValueError:
        raise ValueError(f'unable to convert "{word}" into a whole number.') from None


Flag = Annotated[bool, Parameter(negative=(), show_default=False)]
Whole = Annotated[int, Parameter(converter=_whole_number)]
