"""SIMBa's free parametrisation: every choice of weights is a solution of a linear matrix inequality.

Let ``F = (A - c I) / r`` for the disc of centre c and radius r. F has all eigenvalues in the open unit disc if there
are a symmetric P and any G with

    [[P, F G], [G^T F^T, G + G^T - P]] > 0.                                                                     (1)

Proof: P > 0 makes ``(G - P)^T P^-1 (G - P) >= 0``, that is ``G + G^T - P <= G^T P^-1 G``; so (1) holds with
``G^T P^-1 G`` in its corner as well. G is regular, because ``G + G^T > P > 0``; the congruence with ``diag(I, G^-1)``
gives ``[[P, F], [F^T, P^-1]] > 0``, whose Schur complement is the Lyapunov inequality ``P - F P F^T > 0``.

Conversely any positive definite S with n x n blocks is the matrix of (1) for ``P = S11``, ``F G = S12`` and a G with
symmetric part ``(S11 + S22) / 2``; its antisymmetric part is free. So with ``S = W W^T + epsilon I`` and any V

    A = c I + r S12 [(S11 + S22) / 2 + V - V^T]^-1                                                              (2)

is stable in exact arithmetic, and every stable A is reached: with the solution of ``P - F P F^T = I``, G = P is (1).
Rounding (2) proves nothing, least of all where S is nearly singular: the guard judges the computed matrix.

Reference: Di Natale et al., SIMBa, 2024.
"""

import functools
import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.linalg

from schurfire.errors import invalid
from schurfire.kernels.guard import stable_or_replaced
from schurfire.namespaces import Array, dtype_name, finfo, kernel, namespace
from schurfire.parametrisations.base import Parametrisation, Weights


@dataclass(frozen=True)
class Lmi(Parametrisation):
    """``W`` (2n, 2n) and ``V`` (n, n), 5 n^2 weights: formula (2) of this module, then the guard.

    Stable by a rigorous bound of its powers, in the precision of the weights.

    Attributes:
        epsilon: the multiple of the identity in S.

    >>> Lmi(5).count()
    125
    """

    epsilon: float = 1e-6
    name: ClassVar[str] = "lmi"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.epsilon < math.inf:
            raise invalid("epsilon", "positive and finite", self.epsilon)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """``W`` and ``V``."""
        n = self.state_size
        return {"W": (2 * n, 2 * n), "V": (n, n)}

    def matrix(self, weights: Weights) -> Array:
        """The guard of formula (2)."""
        return stable_or_replaced(self._solved(weights), self.region)

    def retract(self, weights: Weights) -> Weights:
        """Any weights are as they should be."""
        return weights

    @kernel
    def _solved(self, weights: Weights) -> Array:
        W, V, n = weights["W"], weights["V"], self.state_size
        xp, eye = namespace(W), functools.partial(namespace(W).eye, dtype=dtype_name(W))
        # Below the rounding errors of S and V, but enough for pivots that are not zero: some libraries raise there.
        sizes = xp.sum(W * W, axis=(-2, -1), keepdims=True) + xp.sqrt(xp.sum(V * V, axis=(-2, -1), keepdims=True))
        shift = self.epsilon + 4 * float(finfo(W).eps) * xp.stop_gradient(sizes)
        S = xp.matmul(W, xp.swapaxes(W, -1, -2)) + shift * eye(2 * n)
        G = (S[..., :n, :n] + S[..., n:, n:]) / 2 + V - xp.swapaxes(V, -1, -2)
        FG = S[..., :n, n:]
        finite = xp.all(xp.isfinite(G) & xp.isfinite(FG), axis=(-2, -1), keepdims=True)
        G, FG = xp.where(finite, G, eye(n)), xp.where(finite, FG, xp.zeros_like(FG))
        F = xp.swapaxes(xp.solve(xp.swapaxes(G, -1, -2), xp.swapaxes(FG, -1, -2)), -1, -2)
        return self.region.centre * eye(n) + self.region.radius * F

    def _weights_of(self, A: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        n, identity = len(A), np.eye(len(A))
        F = (A.astype(np.float64) - self.region.centre * identity) / self.region.radius
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a nearly singular equation: whether P is of use shows below
                P = scipy.linalg.solve_discrete_lyapunov(F, identity)
            # A depends on the direction of S alone: entries of W of about (2 n)^(-1/2) move as fast as those of others.
            P = P * n / np.trace(P)
            S = np.block([[P, F @ P], [P @ F.T, P]]) - self.epsilon * np.eye(2 * n)
            W = np.linalg.cholesky((S + S.T) / 2)
        except (np.linalg.LinAlgError, ValueError):
            fix = "Use 'schur-triangular', or a smaller epsilon."
            raise invalid("A", "far enough inside the region for 'lmi'", "one too close to its boundary", fix) from None
        return {"W": W.astype(A.dtype), "V": np.zeros((n, n), A.dtype)}, identity.astype(A.dtype)
