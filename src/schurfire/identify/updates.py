"""A Keras optimizer's step for all replicas: on one array where its arithmetic is element by element."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import keras

from schurfire.errors import invalid
from schurfire.identify.replicas import Layout
from schurfire.namespaces import Array

# Every number is updated from its own gradient and state. Subclasses may do otherwise and are not meant.
_ELEMENTWISE = ("SGD", "RMSprop", "Adam", "AdamW", "Adadelta", "Adagrad", "Adamax", "Ftrl", "Nadam", "Lion")


class Update(NamedTuple):
    """``step(state, gradient, theta) -> (theta, state)``; arrays are scalars or have the replicas as last axis."""

    state: list[Array]
    step: Callable


def check_optimizer(optimizer: Any) -> Any:
    """Returns the optimizer if it can be used here.

    Raises:
        InvalidInputError: it is none, or it averages weights only after the last epoch, or it scales the loss.
    """
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise invalid("optimizer", "a Keras optimizer", repr(optimizer), "For example keras.optimizers.AdamW(1e-3).")
    if optimizer.use_ema and not optimizer.ema_overwrite_frequency:
        fix = "Set ema_overwrite_frequency: the weights that are kept are those that were validated."
        raise invalid("optimizer", "without an average that replaces the weights after the last epoch", "use_ema", fix)
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer) or optimizer.loss_scale_factor is not None:
        fix = "The engine computes in float32 or float64, which need no loss scaling."
        raise invalid("optimizer", "without loss scaling", type(optimizer).__name__, fix)
    return optimizer


def is_elementwise(optimizer: Any) -> bool:
    """Whether one step on all weights in one array is the step on each of them."""
    by_norm = optimizer.clipnorm is not None or optimizer.global_clipnorm is not None
    known = type(optimizer) in [getattr(keras.optimizers, name) for name in _ELEMENTWISE]
    return known and not by_norm and not hasattr(optimizer, "_exclude_from_weight_decay")


def update(optimizer: Any, variables: list[Any], layout: Layout, replicas: int) -> Update:
    """The step of a copy of ``optimizer`` and its initial state. Constraints of the variables are not part of it.

    Cost: few compiled operations for an element-wise optimizer; for others the number of weights times that.
    """
    fresh = type(optimizer).from_config(optimizer.get_config())
    if is_elementwise(optimizer):
        theta = keras.Variable(jnp.zeros((layout.size, replicas), variables[0].dtype), dtype=variables[0].dtype)
        fresh.build([theta])

        def step(state: list[Array], gradient: Array, theta: Array) -> tuple[Array, list[Array]]:
            updated, state = fresh.stateless_apply(state, [gradient], [theta])
            return updated[0], state

        return Update([v.value for v in fresh.variables], step)

    for name in ("_exclude_from_weight_decay", "_exclude_from_weight_decay_pattern"):  # not in the configuration
        if hasattr(optimizer, name):
            setattr(fresh, name, getattr(optimizer, name))
    fresh.build(variables)
    each = jax.vmap(fresh.stateless_apply, in_axes=-1, out_axes=-1)

    def step_of_each(state: list[Array], gradient: Array, theta: Array) -> tuple[Array, list[Array]]:
        with _without_constraints(variables):
            updated, state = each(state, layout.split(gradient), layout.split(theta))
        return jnp.concatenate([w.reshape(-1, theta.shape[-1]) for w in updated]), state

    state = [jnp.repeat(jnp.asarray(v.value)[..., None], replicas, axis=-1) for v in fresh.variables]
    return Update(state, step_of_each)


def retraction(variables: list[Any], layout: Layout, kind: type = object) -> Callable[[Array], Array]:
    """What the variables' constraints of this kind do to ``theta``; those marked ``batched`` take all at once."""
    rows = zip(variables, layout.rows(), layout.shapes, strict=True)
    constrained = [
        (v.constraint, place, shape)
        for v, place, shape in rows
        if v.constraint is not None and isinstance(v.constraint, kind)
    ]

    def retract(theta: Array) -> Array:
        replicas = theta.shape[-1]
        for constraint, (first, last), shape in constrained:
            stacked = jnp.moveaxis(theta[first:last].reshape(*shape, replicas), -1, 0)
            batched = constraint if getattr(constraint, "batched", False) else jax.vmap(constraint)
            kept = jnp.moveaxis(batched(stacked), 0, -1).reshape(last - first, replicas)
            theta = theta.at[first:last].set(kept)
        return theta

    return retract


@contextlib.contextmanager
def _without_constraints(variables: list[Any]) -> Iterator[None]:
    """The optimizer's step would call each constraint under ``vmap``; ``retraction`` does it for all replicas."""
    before = [v.constraint for v in variables]
    try:
        for variable in variables:
            variable.constraint = None
        yield
    finally:
        for variable, constraint in zip(variables, before, strict=True):
            variable.constraint = constraint
