"""A free matrix with a penalty on its norm (Bemporad, L-BFGS-B identification, 2025)."""

import math
from dataclasses import dataclass
from typing import ClassVar

from schurfire.errors import invalid
from schurfire.kernels.guard import shifted
from schurfire.namespaces import Array, batched, namespace
from schurfire.parametrisations.base import Weights
from schurfire.parametrisations.free import Free


@dataclass(frozen=True)
class SpectralPenalty(Free):
    """``A`` itself, n^2 weights, and ``strength max(||(A - c I) / r||_2^2 - 1 + epsilon, 0)^2`` for the loss.

    r and c are the radius and centre of the region. A norm below the radius implies stability, so the penalty is zero
    for some stable matrices only, and a finite one does not rule out unstable matrices: **nothing is proven**.

    Attributes:
        strength: what the penalty is multiplied by.
        epsilon: how far below 1 the squared norm is pushed.

    >>> import numpy as np
    >>> float(SpectralPenalty(2, epsilon=0.0).penalty({"A": np.diag([0.5, 2.0])}))
    9.0
    """

    strength: float = 1.0
    epsilon: float = 1e-3
    name: ClassVar[str] = "spectral-penalty"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field, value in (("strength", self.strength), ("epsilon", self.epsilon)):
            if not (math.isfinite(value) and value >= 0):
                raise invalid(field, "finite and not negative", value)

    def penalty(self, weights: Weights) -> Array:
        """``strength max(sigma^2 - 1 + epsilon, 0)^2``; its derivative is that of ``||B v||^2`` for a fixed v.

        v is the unit vector that B maps to the largest length sigma, an eigenvector of ``B^T B``. The decomposition is
        not differentiated, so that equal singular values do no harm. NaN where A is not finite.
        """
        xp = namespace(weights["A"])
        B = shifted(weights["A"], self.region.centre) / self.region.radius
        v = batched(_longest)(xp.stop_gradient(B))
        square = xp.sum(xp.sum(B * v[..., None, :], axis=-1) ** 2, axis=-1)
        excess = square - (1 - self.epsilon)
        return self.strength * xp.where(excess < 0, xp.zeros_like(excess), excess) ** 2


def _longest(B: Array) -> Array:
    """The right singular vector of the largest singular value."""
    xp = namespace(B)
    largest = xp.max(xp.abs(B), axis=(-2, -1), keepdims=True)
    sane = xp.isfinite(largest) & (largest > 0)
    B = xp.where(sane, B / xp.where(sane, largest, xp.ones_like(largest)), xp.zeros_like(B))
    return xp.eigh(xp.matmul(xp.swapaxes(B, -1, -2), B))[1][..., :, -1]
