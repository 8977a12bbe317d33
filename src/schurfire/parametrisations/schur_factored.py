"""Schur, factored: a quasi-triangular and an orthogonal matrix, both as weights."""

from typing import Any, ClassVar

import numpy as np

from schurfire.kernels.orthogonal import newton_schulz, orthogonal_step
from schurfire.namespaces import Array, batched, dtype_name, finfo, kernel, namespace, with_gradient_of
from schurfire.parametrisations.base import Parametrisation, Weights
from schurfire.parametrisations.even_blocks import stable_blocks, within_structure
from schurfire.parametrisations.starts import even_schur

# ||I - Z^T Z||_F / (n eps) up to which Z is left as it is. Two finishing steps, and ``newton_schulz``, end below 1 for
# n from 1 to 100 in both precisions (measured), so that what they return is left alone the next time.
_ORTHOGONAL = 3.0


class SchurFactored(Parametrisation):
    """``T`` (n, n) and ``Z`` (n, n), 2 n^2 weights: the state matrix is ``Z T Z^T`` with quasi-triangular T.

    The recurrence runs on T, with input matrix ``Z^T B`` and output matrix ``C Z``. T has its 2x2 blocks in rows 0 and
    1, 2 and 3 and so on; what its weight holds below them is not used. T is stable in exact arithmetic, in the
    precision of the weights; Z is orthogonal to rounding, whatever its weight holds.

    >>> SchurFactored(5).count()
    50
    """

    name: ClassVar[str] = "schur-factored"
    form: ClassVar[str] = "quasi-triangular"

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """``T`` and ``Z``."""
        return {"T": (self.state_size, self.state_size), "Z": (self.state_size, self.state_size)}

    def matrix(self, weights: Weights) -> Array:
        """T, with what is below its blocks taken as zero and blocks outside of the region replaced."""
        T = weights["T"]
        xp = namespace(T)
        return stable_blocks(xp.where(within_structure(xp, self.state_size), T, xp.zeros_like(T)), self.region)

    def basis(self, weights: Weights) -> Array:
        """The orthogonal Z. Its derivative takes ``dZ`` to ``Z skew(Z^T dZ)``, the tangent space's part of it."""
        Z = weights["Z"]
        start, near = batched(_near_orthogonal)(namespace(Z).stop_gradient(Z))
        return orthogonal_step(with_gradient_of(Z, start, near))

    def retract(self, weights: Weights) -> Weights:
        """The ``matrix``, and the nearest orthogonal matrix of Z (I where Z is singular or not finite)."""
        Z = batched(_orthogonalised)(namespace(weights["Z"]).stop_gradient(weights["Z"]))
        return {"T": self.matrix(weights), "Z": Z}

    def _weights_of(self, A: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        T, Z = even_schur(A)
        Z = Z.astype(A.dtype)
        return self.retract({"T": T.astype(A.dtype), "Z": Z}), Z


@kernel
def _near_orthogonal(Z: Array) -> tuple[Array, Array]:
    """Z where one finishing step makes it orthogonal to rounding, else the nearest orthogonal matrix, and where."""
    xp = namespace(Z)
    Z = xp.settle(Z)
    near = _deviation(xp, Z) <= float(finfo(Z).eps) ** (1 / 3)
    nearest = xp.cond(xp.all(near), lambda: Z, lambda: _nearest_or_identity(xp, Z))
    near = near[..., None, None]
    return xp.where(near, Z, nearest), near & xp.ones_like(Z, dtype="bool")


@kernel
def _orthogonalised(Z: Array) -> Array:
    """The nearest orthogonal matrix; Z itself where it is orthogonal to rounding, I where there is no nearest one."""
    xp = namespace(Z)
    Z = xp.settle(Z)
    deviation = _deviation(xp, Z)
    done = deviation <= _ORTHOGONAL * Z.shape[-1] * float(finfo(Z).eps)
    # Two steps take a deviation e to 0.15 e^9.
    two_suffice = xp.all(deviation <= float(finfo(Z).eps) ** (1 / 9))
    nearest = xp.cond(two_suffice, lambda: orthogonal_step(orthogonal_step(Z)), lambda: _nearest_or_identity(xp, Z))
    return xp.where(done[..., None, None], Z, nearest)


def _nearest_or_identity(xp: Any, Z: Array) -> Array:
    identity = xp.eye(Z.shape[-1], dtype=dtype_name(Z))
    finite = xp.all(xp.isfinite(Z), axis=(-2, -1), keepdims=True)
    Q, converged = newton_schulz(xp.where(finite, Z, identity + xp.zeros_like(Z)))
    Q = xp.where(converged[..., None, None], Q, identity)
    sound = _deviation(xp, Q) <= 0.1
    return xp.where(sound[..., None, None], Q, identity)


def _deviation(xp: Any, Z: Array) -> Array:
    """``||I - Z^T Z||_F``."""
    E = xp.eye(Z.shape[-1], dtype=dtype_name(Z)) - xp.matmul(xp.swapaxes(Z, -1, -2), Z)
    return xp.sqrt(xp.sum(E * E, axis=(-2, -1)))
