"""Keras constraints that keep a square weight in a set, for any layer.

**A constraint alone is no guarantee.** Keras applies it after an optimizer's update and at no other time: not at
build, not after ``set_weights``, not after weights were averaged. And the stable matrices are not a convex set: the
mean of two of them can be unstable. Where the matrix *in use* must be stable, use ``schurfire.layers.StateSpace``.
"""

from typing import Any

import keras

from schurfire.kernels.guard import stable_or_replaced
from schurfire.kernels.orthogonal import newton_schulz
from schurfire.layers.checks import disc, disc_config, square_weight
from schurfire.namespaces import Array, dtype_name, keras_namespace
from schurfire.regions import UNIT_DISC, Disc


@keras.saving.register_keras_serializable("schurfire")
class SchurStable(keras.constraints.Constraint):
    """After an update, ``A`` where a bound of its powers proves it stable, else its truncated projection.

    What the constraint returns is strictly stable as the numbers it holds, in the precision of the weight: a
    projection that cannot be proven is scaled towards the centre until it can be, and a weight with NaN or infinity
    becomes the centre times the identity.

    **A constraint alone is no guarantee**: Keras applies it only after an optimizer's update, not at build, not after
    ``set_weights``, not after averaging weights, and the mean of two stable matrices can be unstable.

    Args:
        region: the open disc for the eigenvalues.

    Raises:
        InvalidInputError: when called: the weight is not square, of shape (..., n, n).

    >>> constraint = SchurStable()
    >>> float(constraint(keras.ops.convert_to_tensor([[0.5]]))[0, 0])
    0.5
    >>> float(constraint(keras.ops.convert_to_tensor([[5.0]]))[0, 0]) < 1
    True
    """

    batched = True  # leading axes are separate matrices

    def __init__(self, region: Disc = UNIT_DISC) -> None:
        self.region = disc(region)

    def __call__(self, w: Array) -> Array:
        """The stable matrix; shape and precision of ``w``."""
        return stable_or_replaced(square_weight(w, "SchurStable"), self.region)

    def get_config(self) -> dict[str, Any]:
        """The region."""
        return {"region": disc_config(self.region)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "SchurStable":
        """The constraint that ``get_config`` describes."""
        return cls(Disc(**config["region"]))


@keras.saving.register_keras_serializable("schurfire")
class Orthogonal(keras.constraints.Constraint):
    """After an update, ``argmin ||Z - X||_F`` over ``X^T X = I``: two or three Newton-Schulz steps near orthogonality.

    A singular or non-finite weight, which has no nearest orthogonal matrix or many, becomes the identity.

    **A constraint alone is no guarantee**: Keras applies it only after an optimizer's update, not at build, not after
    ``set_weights``, not after averaging weights; the mean of two orthogonal matrices is none.

    Raises:
        InvalidInputError: when called: the weight is not square, of shape (..., n, n).

    >>> Orthogonal()(keras.ops.convert_to_tensor([[3.0]])).shape
    (1, 1)
    """

    batched = True  # leading axes are separate matrices

    def __call__(self, w: Array) -> Array:
        """The nearest orthogonal matrix; shape and precision of ``w``."""
        w = square_weight(w, "Orthogonal")
        xp = keras_namespace()
        polar = newton_schulz(w)
        return xp.where(polar.converged[..., None, None], polar.Q, xp.eye(w.shape[-1], dtype=dtype_name(w)))
