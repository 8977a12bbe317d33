"""Schur, projected: a dense matrix that is projected where its powers do not prove it stable."""

from typing import ClassVar

import numpy as np

from schurfire.kernels.guard import stable_or_replaced
from schurfire.namespaces import Array
from schurfire.parametrisations.base import Parametrisation, Weights


class SchurProjected(Parametrisation):
    """``A`` itself, n^2 weights; ``matrix`` is the guard of A, ``retract`` stores it.

    Stable by a rigorous bound of its powers, in the precision of the weights. Nearly every update of a training passes
    the bound and costs no decomposition.

    >>> SchurProjected(5).count()
    25
    """

    name: ClassVar[str] = "schur-projected"

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """``A``."""
        return {"A": (self.state_size, self.state_size)}

    def matrix(self, weights: Weights) -> Array:
        """The guard of A: ``stable_or_replaced``."""
        return stable_or_replaced(weights["A"], self.region)

    def matrix_of_retracted(self, weights: Weights) -> Array:
        """A."""
        return weights["A"]

    def retract(self, weights: Weights) -> Weights:
        """The ``matrix``."""
        return {"A": self.matrix(weights)}

    def _weights_of(self, A: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        return {"A": stable_or_replaced(A, self.region)}, np.eye(len(A), dtype=A.dtype)
