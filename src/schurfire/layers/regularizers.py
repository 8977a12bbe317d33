"""Keras regularisers that push a square weight towards stability, for any layer."""

from typing import Any

import keras

from schurfire.layers.checks import disc, disc_config, square_weight
from schurfire.namespaces import Array
from schurfire.parametrisations import parametrisation
from schurfire.regions import UNIT_DISC, Disc


@keras.saving.register_keras_serializable("schurfire")
class SpectralPenalty(keras.regularizers.Regularizer):
    """``strength max(||A||_2^2 - 1 + epsilon, 0)^2``, for a disc of radius r and centre c that of ``(A - c I) / r``.

    **A penalty proves nothing**: the weight can be unstable at every moment of the training and after it, and a
    stable matrix far from normal is penalised too. Where the matrix must be stable, use
    ``schurfire.layers.StateSpace`` with another method than ``"spectral-penalty"``.

    Args:
        strength: a positive factor.
        epsilon: how far below 1 the squared norm is asked to be.
        region: the disc.

    Raises:
        InvalidInputError: when called: the weight is not one square matrix.

    Cost: the largest singular value and its vectors.

    >>> float(SpectralPenalty(strength=2.0, epsilon=0.0)(keras.ops.convert_to_tensor([[2.0]])))
    18.0
    """

    def __init__(self, strength: float = 1.0, epsilon: float = 1e-3, region: Disc = UNIT_DISC) -> None:
        self.strength = strength
        self.epsilon = epsilon
        self.region = disc(region)
        parametrisation("spectral-penalty", 1, self.region, strength=strength, epsilon=epsilon)  # checks the options

    def __call__(self, x: Array) -> Array:
        """The penalty of the weight ``x``."""
        A = square_weight(x, "SpectralPenalty")
        options = {"strength": self.strength, "epsilon": self.epsilon}
        return parametrisation("spectral-penalty", A.shape[-1], self.region, **options).penalty({"A": A})

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {"strength": self.strength, "epsilon": self.epsilon, "region": disc_config(self.region)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "SpectralPenalty":
        """The regulariser that ``get_config`` describes."""
        return cls(**{**config, "region": Disc(**config["region"])})
