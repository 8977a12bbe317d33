"""Stable matrices and models with proof.

Names are imported on first use, so that ``import schurfire`` costs nothing and loads neither JAX nor Keras.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schurfire import data, identify, layers, metrics
    from schurfire.errors import InvalidInputError, NotConvergedError
    from schurfire.kernels.blocks import nearest_stable_block
    from schurfire.kernels.bounds import spectral_radius_bound
    from schurfire.kernels.orthogonal import nearest_orthogonal
    from schurfire.kernels.recurrence import Response, linear_recurrence, state_space_response
    from schurfire.kernels.schur import RealSchur, real_schur
    from schurfire.regions import Disc, HalfPlane
    from schurfire.stability.certificate import Certificate, certify
    from schurfire.stability.nearest import NearestStable, nearest_stable
    from schurfire.stability.nearest_dense import NearestProvable, nearest_provable
    from schurfire.stability.projection import project_stable
    from schurfire.stability.schur_form import SchurForm
    from schurfire.systems import LinearSystem

__version__ = "0.1.0"

_HOMES = {
    "schurfire": ("data", "identify", "layers", "metrics"),
    "schurfire.errors": ("InvalidInputError", "NotConvergedError"),
    "schurfire.kernels.blocks": ("nearest_stable_block",),
    "schurfire.kernels.bounds": ("spectral_radius_bound",),
    "schurfire.kernels.orthogonal": ("nearest_orthogonal",),
    "schurfire.kernels.recurrence": ("Response", "linear_recurrence", "state_space_response"),
    "schurfire.kernels.schur": ("RealSchur", "real_schur"),
    "schurfire.regions": ("Disc", "HalfPlane"),
    "schurfire.stability.certificate": ("Certificate", "certify"),
    "schurfire.stability.nearest": ("NearestStable", "nearest_stable"),
    "schurfire.stability.nearest_dense": ("NearestProvable", "nearest_provable"),
    "schurfire.stability.projection": ("project_stable",),
    "schurfire.stability.schur_form": ("SchurForm",),
    "schurfire.systems": ("LinearSystem",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Certificate",
    "Disc",
    "HalfPlane",
    "InvalidInputError",
    "LinearSystem",
    "NearestProvable",
    "NearestStable",
    "NotConvergedError",
    "RealSchur",
    "Response",
    "SchurForm",
    "certify",
    "data",
    "identify",
    "layers",
    "linear_recurrence",
    "metrics",
    "nearest_orthogonal",
    "nearest_provable",
    "nearest_stable",
    "nearest_stable_block",
    "project_stable",
    "real_schur",
    "spectral_radius_bound",
    "state_space_response",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'schurfire' has no attribute {name!r}")
    if home == __name__:
        return importlib.import_module(f"{home}.{name}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
