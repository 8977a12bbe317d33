"""All weights of a parametrisation in one Keras variable."""

import math

import keras

from schurfire.namespaces import Array, namespace
from schurfire.parametrisations.base import Parametrisation, Weights


class Packing:
    """A single weight as it is; several as one vector, one after the other in the order of ``shapes()``, row by row.

    A Keras constraint sees one variable, and a retraction needs all weights of A.

    >>> from schurfire.parametrisations import parametrisation
    >>> Packing(parametrisation("schur-projected", 3)).shape, Packing(parametrisation("schur-triangular", 3)).shape
    ((3, 3), (7,))
    """

    def __init__(self, parametrisation: Parametrisation) -> None:
        self.parametrisation = parametrisation
        self.shapes = parametrisation.shapes()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the packed array, without leading axes."""
        return next(iter(self.shapes.values())) if len(self.shapes) == 1 else (self.parametrisation.count(),)

    def pack(self, weights: Weights) -> Array:
        """The weights as one array."""
        if len(self.shapes) == 1:
            return next(iter(weights.values()))
        xp = namespace(*weights.values())
        leading = {name: tuple(weights[name].shape)[: -len(shape)] for name, shape in self.shapes.items()}
        flat = (xp.reshape(weights[name], (*leading[name], math.prod(s))) for name, s in self.shapes.items())
        return xp.concatenate(list(flat), axis=-1)

    def unpack(self, packed: Array) -> Weights:
        """The weights of a packed array; leading axes are separate models."""
        if len(self.shapes) == 1:
            return dict.fromkeys(self.shapes, packed)
        weights, first, xp, leading = {}, 0, namespace(packed), tuple(packed.shape)[:-1]
        for name, shape in self.shapes.items():
            last = first + math.prod(shape)
            weights[name] = xp.reshape(packed[..., first:last], (*leading, *shape))
            first = last
        return weights


class Retraction(keras.constraints.Constraint):
    """After an update, what the parametrisation does with its weights (``Parametrisation.retract``)."""

    batched = True  # leading axes are separate models

    def __init__(self, packing: Packing) -> None:
        self.packing = packing

    def __call__(self, w: Array) -> Array:
        """The retracted weights."""
        w = keras.ops.convert_to_tensor(w)
        return self.packing.pack(self.packing.parametrisation.retract(self.packing.unpack(w)))
