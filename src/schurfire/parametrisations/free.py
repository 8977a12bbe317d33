"""No parametrisation at all: for comparison."""

from typing import ClassVar

import numpy as np

from schurfire.namespaces import Array
from schurfire.parametrisations.base import Parametrisation, Weights


class Free(Parametrisation):
    """``A`` itself, n^2 weights, stable or not; the region only says what ``start`` may draw.

    >>> Free(5).count()
    25
    """

    name: ClassVar[str] = "none"
    is_proven: ClassVar[bool] = False

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """``A``."""
        return {"A": (self.state_size, self.state_size)}

    def matrix(self, weights: Weights) -> Array:
        """A."""
        return weights["A"]

    def retract(self, weights: Weights) -> Weights:
        """Whatever they are."""
        return weights

    def honours(self, known: np.ndarray) -> bool:  # noqa: ARG002
        """Always: nothing is proven that could be lost."""
        return True

    def _weights_of(self, A: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        return {"A": A}, np.eye(len(A), dtype=A.dtype)
