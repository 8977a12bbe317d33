"""Ways to write a state matrix as weights: pure functions on arrays, the same few for every way."""

import dataclasses

from schurfire.errors import invalid
from schurfire.parametrisations.base import Parametrisation
from schurfire.parametrisations.free import Free
from schurfire.parametrisations.lmi import Lmi
from schurfire.parametrisations.modal import Modal
from schurfire.parametrisations.schur_factored import SchurFactored
from schurfire.parametrisations.schur_projected import SchurProjected
from schurfire.parametrisations.schur_triangular import SchurTriangular
from schurfire.parametrisations.spectral_penalty import SpectralPenalty
from schurfire.regions import UNIT_DISC, Disc

_ALL: tuple[type[Parametrisation], ...] = (
    SchurProjected,
    SchurFactored,
    SchurTriangular,
    Modal,
    Lmi,
    SpectralPenalty,
    Free,
)
PARAMETRISATIONS: dict[str, type[Parametrisation]] = {kind.name: kind for kind in _ALL}


def parametrisation(name: str, state_size: int, region: Disc = UNIT_DISC, **options: float) -> Parametrisation:
    """The parametrisation of this name for matrices of order ``state_size``.

    Args:
        name: a key of ``PARAMETRISATIONS``.
        state_size: order n of the matrix.
        region: where the eigenvalues may live.
        options: further fields of that parametrisation.

    Raises:
        InvalidInputError: there is no such parametrisation, or it has no such option, or a value is out of range.

    >>> parametrisation("schur-triangular", 5).count()
    17
    """
    if name not in PARAMETRISATIONS:
        raise invalid("stability", f"one of {', '.join(map(repr, PARAMETRISATIONS))}", repr(name))
    kind = PARAMETRISATIONS[name]
    known = {field.name for field in dataclasses.fields(kind)} - {"state_size", "region"}
    if unknown := sorted(set(options) - known):
        has = f"has the options {', '.join(sorted(known))}" if known else "has no options"
        raise invalid("options", f"options of {name!r}", ", ".join(unknown), f"It {has}.")
    return kind(state_size, region, **options)
