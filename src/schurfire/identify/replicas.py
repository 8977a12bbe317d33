"""Initial weights of replicas, and all trainable weights of all replicas as one array with the replicas last."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from schurfire.errors import invalid
from schurfire.namespaces import Array


@dataclass(frozen=True)
class Layout:
    """Where each trainable weight lies in ``theta`` (P, R): P numbers of each of R replicas."""

    shapes: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """P."""
        return sum(math.prod(shape) for shape in self.shapes)

    def rows(self) -> list[tuple[int, int]]:
        """First row of each weight and the row after its last."""
        return list(itertools.pairwise(itertools.accumulate((math.prod(s) for s in self.shapes), initial=0)))

    def split(self, theta: Array) -> list[Array]:
        """The weights, each of its shape and a last axis of replicas."""
        replicas = theta.shape[-1]
        rows = zip(self.rows(), self.shapes, strict=True)
        return [theta[first:last].reshape(*shape, replicas) for (first, last), shape in rows]

    def join(self, weights: Sequence[np.ndarray]) -> np.ndarray:
        """The column ``theta`` (P,) of one replica."""
        return np.concatenate([np.ravel(w) for w in weights]) if weights else np.zeros(0)


def initial_values(model: Any, count: int, seed: int, start: Sequence[Sequence[Any]] | None) -> list[list[np.ndarray]]:
    """Values of ``model.variables`` for each replica: the model's own first, then those of clones with other seeds.

    Raises:
        InvalidInputError: ``start`` does not fit the model, or the model cannot be cloned.
    """
    if start is not None:
        return [_given(model, weights, replica) for replica, weights in enumerate(start)]
    replicas = [model] + [_reseeded(model, seed, replica) for replica in range(1, count)]
    return [[_values(v) for v in _variables(replica)] for replica in replicas]


def clone(model: Any) -> Any:
    """A model of the same configuration, with variables of its own.

    Raises:
        InvalidInputError: Keras cannot rebuild the model.
    """
    return _rebuilt(model, lambda configuration: configuration)


def values_of_weights(model: Any, theta: np.ndarray, others: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """For each replica the values of ``model.weights``, in their order."""
    layout = Layout(tuple(tuple(v.shape) for v in model.trainable_variables))
    values = {id(v): x for v, x in zip(_variables(model), [*layout.split(theta), *others], strict=True)}
    for replica in range(theta.shape[-1]):
        yield [values[id(v)][..., replica].copy() for v in model.weights]


def _variables(model: Any) -> list[Any]:
    return [*model.trainable_variables, *model.non_trainable_variables]


def _values(variable: Any) -> np.ndarray:
    return np.asarray(keras.ops.convert_to_numpy(variable))


def _given(model: Any, weights: Sequence[Any], replica: int) -> list[np.ndarray]:
    arrays = [np.asarray(w) for w in weights]
    expected = [tuple(v.shape) for v in model.weights]
    if [a.shape for a in arrays] != expected:
        raise invalid(f"start[{replica}]", f"weights of shapes {expected}", [a.shape for a in arrays])
    if not all(np.isfinite(a).all() for a in arrays):
        raise invalid(f"start[{replica}]", "finite", "NaN or infinity")
    given = {id(v): a.astype(v.dtype) for v, a in zip(model.weights, arrays, strict=True)}
    return [given[id(v)] if id(v) in given else _values(v) for v in _variables(model)]


def _reseeded(model: Any, seed: int, replica: int) -> Any:
    words = (int(np.random.SeedSequence(seed, spawn_key=(replica, i)).generate_state(1)[0]) for i in itertools.count())
    seeds = (word >> 1 for word in words)  # Keras takes seeds below 2^31
    return _rebuilt(model, lambda configuration: _with_seeds(configuration, seeds))


def _with_seeds(configuration: Any, seeds: Iterator[int]) -> Any:
    """The configuration with a new number in place of every seed, those of nested initialisers and layers included."""
    if isinstance(configuration, dict):
        return {
            key: next(seeds) if key == "seed" and not isinstance(value, dict) else _with_seeds(value, seeds)
            for key, value in configuration.items()
        }
    if isinstance(configuration, (list, tuple)):
        return type(configuration)(_with_seeds(value, seeds) for value in configuration)
    return configuration


def _rebuilt(model: Any, change: Callable[[Any], Any]) -> Any:
    known = {keras.saving.get_registered_name(type(layer)): type(layer) for layer in _layers(model)}
    try:
        configuration = change(keras.saving.serialize_keras_object(model))
        copy = keras.saving.deserialize_keras_object(configuration, custom_objects=known)
        if not copy.built or [tuple(v.shape) for v in _variables(copy)] != [tuple(v.shape) for v in _variables(model)]:
            raise ValueError("its copy has other weights")
    except (TypeError, ValueError, NotImplementedError) as error:
        fix = "Register its custom classes with Keras and give them a get_config, or pass the weights as `start`."
        reason = str(error).strip().splitlines()[0] if str(error) else type(error).__name__
        raise invalid("model", "one that Keras can rebuild from its configuration", reason, fix) from error
    return copy


def _layers(model: Any) -> Iterator[Any]:
    yield model
    for layer in getattr(model, "layers", ()):
        yield from _layers(layer)
