"""The truncated projection onto the stable matrices, as an eager function with a proof."""

from dataclasses import replace
from typing import Any

import numpy as np

from schurfire.arrays import concrete, square_matrices
from schurfire.errors import invalid
from schurfire.kernels.projection import project_factor
from schurfire.kernels.schur import RealSchur, real_schur
from schurfire.regions import UNIT_DISC, Region, check_region
from schurfire.stability.certificate import certify
from schurfire.stability.schur_form import SchurForm


def project_stable(A: Any, region: Region | None = None) -> SchurForm:
    """``Z argmin ||X - T||_F Z^T``: A with the blocks of its Schur factor T replaced by the nearest stable ones.

    The nearest stable matrix *among those with the orthogonal factor of A*: fast, never further from A than the
    distance of its blocks to the region, and an upper bound for ``nearest_stable``. The pair returned is strictly
    stable in exact arithmetic, in the precision of A. A matrix that ``certify`` accepts comes back bit-identical as
    ``.matrix``.

    Args:
        A: shape (..., n, n), float32 or float64; or a ``SchurForm``; or Schur factors as a tuple (T, Z) or from
            ``real_schur``.
        region: default: the form's own region, and the open unit disc for arrays.

    Raises:
        InvalidInputError: A is not square, real and finite.
        NotConvergedError: the Schur decomposition failed.

    Cost: the decomposition, about ``25 n^3``, and ``certify``.

    >>> import numpy as np
    >>> form = project_stable(np.full((3, 3), 2.0))
    >>> form.certify().is_stable
    True
    >>> bool(np.isclose(np.linalg.norm(form.matrix - 2.0), 5.0))
    True
    """
    if isinstance(A, RealSchur):
        A = A.T, A.Z
    if isinstance(A, tuple):
        if len(A) != 2:
            raise invalid("A", "a tuple of two factors (T, Z)", f"{len(A)} of them")
        A = SchurForm(*A, region=UNIT_DISC if region is None else check_region(region))
    if isinstance(A, SchurForm):
        region = A.region if region is None else check_region(region)
        return SchurForm(project_factor(A.T, region), A.Z, region)
    region = UNIT_DISC if region is None else check_region(region)
    A = concrete(square_matrices(A, "A"), "A")
    schur = real_schur(A)
    form = SchurForm(project_factor(schur.T, region), schur.Z, region)
    proven = _proven(A, region)
    return replace(form, source=np.where(proven[..., None, None], A, form.matrix)) if proven.any() else form


def _proven(A: np.ndarray, region: Region) -> np.ndarray:
    """Which matrices of the stack ``certify`` accepts as they are."""
    verdicts = np.empty(A.shape[:-2], dtype=bool)
    for index in np.ndindex(verdicts.shape):
        verdicts[index] = certify(A[index], region).is_stable
    return verdicts
