"""Schur, factored: a quasi-triangular and an orthogonal matrix, both as weights."""

from typing import Any, ClassVar

import numpy as np

from schurfire.kernels.native_matrices import Orthogonalisation, is_available, orthogonalised_by_library
from schurfire.kernels.orthogonal import newton_schulz, orthogonal_step
from schurfire.kernels.small_products import product
from schurfire.namespaces import Array, batched, dtype_name, finfo, kernel, namespace, with_gradient_of
from schurfire.parametrisations.base import Parametrisation, Weights
from schurfire.parametrisations.even_blocks import stable_blocks, within_structure
from schurfire.parametrisations.starts import even_schur

# ||I - Z^T Z||_F / (n eps) up to which Z is left as it is. The finishing steps and ``newton_schulz`` end below 1 for n
# from 1 to 100 in both precisions (measured), so that what they return is left alone the next time.
_ORTHOGONAL = 3.0
# ||I - Z^T Z||_F up to which finishing steps alone are taken. A step turns e into 5/8 e^3, so three or four are enough.
_NEAR = 0.25
_STEPS = 6


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
        return stable_blocks(self.matrix_of_retracted(weights), self.region)

    def matrix_of_retracted(self, weights: Weights) -> Array:
        """T, with what is below its blocks taken as zero."""
        T = weights["T"]
        xp = namespace(T)
        return xp.where(within_structure(xp, self.state_size), T, xp.zeros_like(T))

    def basis(self, weights: Weights) -> Array:
        """The orthogonal Z, bit for bit that of ``retract``; its derivative takes ``dZ`` to ``Z skew(Z^T dZ)``.

        That is the derivative of the nearest orthogonal matrix at an orthogonal Z; zero where Z had to be replaced.
        """
        return _turning(weights["Z"], *batched(_orthogonalised)(namespace(weights["Z"]).stop_gradient(weights["Z"])))

    def basis_of_retracted(self, weights: Weights) -> Array:
        """Z, with the derivative of ``basis``."""
        Z = weights["Z"]
        xp = namespace(Z)
        return _turning(Z, xp.stop_gradient(Z), xp.ones((1, 1), dtype="bool"))

    def retract(self, weights: Weights) -> Weights:
        """The ``matrix``, and the nearest orthogonal matrix of Z (I where Z is singular or not finite)."""
        Z = batched(_orthogonalised)(namespace(weights["Z"]).stop_gradient(weights["Z"]))[0]
        return {"T": self.matrix(weights), "Z": Z}

    def _weights_of(self, A: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        T, Z = even_schur(A)
        Z = Z.astype(A.dtype)
        return self.retract({"T": T.astype(A.dtype), "Z": Z}), Z


def _turning(Z: Array, Q: Array, near: Array) -> Array:
    """Q, with the derivative that takes ``dZ`` to ``Q skew(Q^T dZ)`` where ``near`` holds."""
    xp = namespace(Z)
    X = product(xp.swapaxes(Q, -1, -2), Z - xp.stop_gradient(Z))  # zero, with a derivative
    return with_gradient_of(Q + product(Q, (X - xp.swapaxes(X, -1, -2)) / 2), Q, near)


@kernel
def _orthogonalised(Z: Array) -> tuple[Array, Array]:
    """The nearest orthogonal matrix, and whether Z was near; Z itself where it is orthogonal, else I if there is none.

    Shapes (..., n, n) and (..., 1, 1).
    """
    xp = namespace(Z)
    Z = xp.settle(Z)
    Q, near = _finished(xp, Z)

    def with_far_ones() -> Array:
        return xp.where(near[..., None, None], Q, _finished(xp, _nearest_or_identity(xp, Z))[0])

    return xp.cond(xp.all(near), lambda: Q, with_far_ones), near[..., None, None]


def _finished(xp: Any, Z: Array) -> tuple[Array, Array]:
    """Finishing steps until Z is orthogonal to rounding, and whether it was near; other matrices are not improved."""
    tolerance = _ORTHOGONAL * Z.shape[-1] * float(finfo(Z).eps)
    if is_available(Z):
        return orthogonalised_by_library(Z, Orthogonalisation(_NEAR, tolerance, _STEPS))
    deviation = _deviation(xp, Z)
    near = deviation <= _NEAR

    def unfinished(k: Array, _Q: Array, deviation: Array) -> Array:
        return (k < _STEPS) & xp.any(deviation > tolerance)

    def step(k: Array, Q: Array, deviation: Array) -> tuple[Array, Array, Array]:
        Q = xp.where((near & (deviation > tolerance))[..., None, None], orthogonal_step(Q), Q)
        return k + 1, Q, xp.where(near, _deviation(xp, Q), xp.zeros_like(deviation))

    start = (np.int32(0), Z, xp.where(near, deviation, xp.zeros_like(deviation)))
    return xp.while_loop(unfinished, step, start)[1], near


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
