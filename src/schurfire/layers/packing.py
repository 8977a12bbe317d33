"""All weights of a parametrisation in one Keras variable."""

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass

import keras

from schurfire.namespaces import Array, namespace
from schurfire.parametrisations.base import Parametrisation, Weights


@dataclass(frozen=True)
class Packing:
    """A single weight as it is; several as one vector, one after the other in the order of ``shapes()``, row by row.

    A Keras constraint sees one variable, and a retraction needs all weights of A.

    >>> from schurfire.parametrisations import parametrisation
    >>> Packing(parametrisation("schur-projected", 3)).shape, Packing(parametrisation("schur-triangular", 3)).shape
    ((3, 3), (7,))
    """

    parametrisation: Parametrisation

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the packed array, without leading axes."""
        shapes = self.parametrisation.shapes()
        return next(iter(shapes.values())) if len(shapes) == 1 else (self.parametrisation.count(),)

    def pack(self, weights: Weights) -> Array:
        """The weights as one array."""
        if len(weights) == 1:
            return next(iter(weights.values()))
        xp, vectors = namespace(*weights.values()), []
        for name, shape in self.parametrisation.shapes().items():
            leading = tuple(weights[name].shape)[: -len(shape)]
            vectors.append(xp.reshape(weights[name], (*leading, math.prod(shape))))
        return xp.concatenate(vectors, axis=-1)

    def unpack(self, packed: Array) -> Weights:
        """The weights of a packed array; leading axes are separate models."""
        shapes = self.parametrisation.shapes()
        if len(shapes) == 1:
            return dict.fromkeys(shapes, packed)
        weights, first, xp, leading = {}, 0, namespace(packed), tuple(packed.shape)[:-1]
        for name, shape in shapes.items():
            last = first + math.prod(shape)
            weights[name] = xp.reshape(packed[..., first:last], (*leading, *shape))
            first = last
        return weights

    def retract(self, packed: Array) -> Array:
        """The packed weights as ``Parametrisation.retract`` returns them."""
        return self.pack(self.parametrisation.retract(self.unpack(packed)))


class Retraction(keras.constraints.Constraint):
    """After an update, what the parametrisation does with its weights."""

    batched = True  # leading axes are separate models

    def __init__(self, packing: Packing) -> None:
        self.packing = packing

    def __call__(self, w: Array) -> Array:
        """The retracted weights."""
        return _retraction(self.packing)(keras.ops.convert_to_tensor(w))


_RETRACTED = ContextVar("retracted", default=False)


@contextlib.contextmanager
def retracted_weights() -> Iterator[None]:
    """Within, trainable layers may take it that their weights are what their constraints returned.

    For a training loop that applies the constraints itself, to the initial weights and after every update: the matrix
    in use is the same, and is not checked a second time.
    """
    token = _RETRACTED.set(True)
    try:
        yield
    finally:
        _RETRACTED.reset(token)


def in_use(parametrisation: Parametrisation, trainable: bool) -> Callable[[Weights], tuple[Array, Array | None]]:
    """The function from weights to the matrix in use and its basis."""
    return _in_use(parametrisation, trainable and _RETRACTED.get())


@functools.cache
def _in_use(parametrisation: Parametrisation, retracted: bool) -> Callable[[Weights], tuple[Array, Array | None]]:
    if retracted:
        matrix, basis = parametrisation.matrix_of_retracted, parametrisation.basis_of_retracted
    else:
        matrix, basis = parametrisation.matrix, parametrisation.basis
    return _compiled(lambda weights: (matrix(weights), basis(weights)))


@functools.cache
def _retraction(packing: Packing) -> Callable[[Array], Array]:
    return _compiled(packing.retract)


def _compiled(function: Callable) -> Callable:
    """For JAX compiled: it compiles conditionals and loops that it meets outside of ``jit`` anew at every call."""
    if keras.backend.backend() != "jax":
        return function
    import jax

    return jax.jit(function)
