"""Many epochs as one compiled program: loss, gradient, update, retraction, validation and who goes on.

All arrays of the state are scalars or have the replicas as last axis. The body of the loop is a few dozen small
operations, each of which costs XLA 0.3 to 1 us beside its arithmetic, so what can be one operation is one.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from schurfire.identify.options import TrainingOptions
from schurfire.identify.replicas import Layout
from schurfire.identify.samples import Samples
from schurfire.identify.updates import retraction
from schurfire.layers.packing import retracted_weights
from schurfire.namespaces import Array
from schurfire.stability.compilation import compile_once

RUNNING, STOPPED, DIVERGED = 0, 1, 2


class State(NamedTuple):
    """What an epoch changes."""

    theta: Array  # (P, R) trainable weights
    optimizer: list[Array]
    others: list[Array]  # non-trainable variables, (..., R)
    best_theta: Array
    best_others: list[Array]
    best_loss: Array  # (R,) of the validation data
    best_epoch: Array  # (R,) epochs done then
    reference: Array  # (R,) the loss that early stopping compares with
    waited: Array  # (R,) epochs since it was set
    status: Array  # (R,) RUNNING, STOPPED or DIVERGED
    epoch: Array  # () epochs done


@dataclass(frozen=True, eq=False)
class Setup:
    """What is trained, and by which rules.

    Args:
        model: a built Keras model or layer.
        loss: of y and the model's output, values (S, N) or (S, N, n_y).
        optimizer: its configuration counts.
        options: the stopping rule, the batch size and the seed count.
    """

    model: Any
    loss: Callable
    optimizer: Any
    options: TrainingOptions

    @property
    def variables(self) -> list[Any]:
        """The trainable ones."""
        return self.model.trainable_variables

    @cached_property
    def layout(self) -> Layout:
        """The order of the trainable weights in ``theta``."""
        return Layout(tuple(tuple(v.shape) for v in self.variables))

    def call(self, weights: list[Array], others: list[Array], u: Array, *, training: bool) -> tuple[Array, list, list]:
        """The model's output, its non-trainable variables after the call, and its own losses."""
        distinguishes = "training" in inspect.signature(self.model.call).parameters
        options = {"training": training} if distinguishes else {}
        with retracted_weights():
            return self.model.stateless_call(weights, others, u, return_losses=True, **options)


@dataclass(frozen=True, eq=False)
class Epoch:
    """One epoch of training as a function of arrays alone."""

    setup: Setup
    step: Callable  # of the optimizer's state, the gradient and theta

    def __call__(self, state: State, training: Samples, validation: Samples) -> tuple[State, Array]:
        """The next state and the losses (2, R) of the epoch: training before, validation after the updates."""
        running = state.status == RUNNING
        theta, optimizer, others, trained, finite = self._updates(state, running, training)
        validated = self._losses(self.setup.layout.split(theta), others, validation, training=False)[0]
        finite = finite & jnp.isfinite(trained) & jnp.isfinite(validated)
        validated = jnp.where(finite, validated, jnp.nan)
        delta, relative, patience = self._rules()
        improved = running & (validated < state.best_loss)  # False for NaN
        progressed = running & (validated < state.reference * (1 - relative) - delta)
        waited = jnp.where(progressed, 0, state.waited + (running & finite))
        status = jnp.where(waited >= patience, STOPPED, RUNNING)
        status = jnp.where(running, jnp.where(finite, status, DIVERGED), state.status)
        losses = jnp.where(running, jnp.stack([trained, validated]), jnp.nan)
        next_state = State(
            theta,
            optimizer,
            others,
            jnp.where(improved, theta, state.best_theta),
            [jnp.where(improved, x, best) for x, best in zip(others, state.best_others, strict=True)],
            jnp.where(improved, validated, state.best_loss),
            jnp.where(improved, state.epoch + 1, state.best_epoch),
            jnp.where(progressed, validated, state.reference),
            waited,
            status,
            state.epoch + 1,
        )
        return next_state, losses

    def _updates(self, state: State, running: Array, samples: Samples) -> tuple[Array, list, list, Array, Array]:
        start = (state.theta, state.optimizer, state.others)
        batch_size, sequences = self.setup.options.batch_size, samples.u.shape[2]
        if batch_size is None or batch_size >= sequences:
            theta, optimizer, others, losses, _, finite = self._step(*start, running, samples)
            return theta, optimizer, others, losses, finite
        batches = -(-sequences // batch_size)
        key = jax.random.fold_in(jax.random.key(self.setup.options.seed), state.epoch)
        order = jax.random.permutation(key, sequences)
        order = jnp.pad(order, (0, batches * batch_size - sequences))

        def batch(i: Array, carry: tuple) -> tuple:
            theta, optimizer, others, total, count, finite = carry
            first = i * batch_size
            places = jax.lax.dynamic_slice_in_dim(order, first, batch_size)
            taken = _taken(samples, places, first + jnp.arange(batch_size) < sequences)
            theta, optimizer, others, losses, weight, still = self._step(theta, optimizer, others, running, taken)
            return theta, optimizer, others, total + losses * weight, count + weight, finite & still

        zero = jnp.zeros(running.shape, state.theta.dtype)
        carry = (*start, zero, zero, jnp.ones_like(running))
        theta, optimizer, others, total, count, finite = jax.lax.fori_loop(0, batches, batch, carry)
        return theta, optimizer, others, total / count, finite

    def _step(self, theta: Array, optimizer: list, others: list, running: Array, samples: Samples) -> tuple:
        def total(weights: list[Array]) -> tuple[Array, tuple]:
            losses, new_others, weight = self._losses(weights, others, samples, training=True)
            # Replicas are independent, so that the gradient of the sum holds the gradients of all.
            return jnp.sum(losses), (losses, new_others, weight)

        weights = self.setup.layout.split(theta)
        gradients, (losses, others, weight) = jax.grad(total, has_aux=True)(weights)
        gradient = jnp.concatenate([g.reshape(-1, theta.shape[-1]) for g in gradients])
        updated, optimizer = self.step(optimizer, gradient, theta)
        finite = jnp.all(jnp.isfinite(updated), axis=0)  # before a constraint can hide it
        # A replica that is done keeps finite weights, so that nothing it computes takes a slow path.
        updated = jnp.where(running & finite, updated, theta)
        return self._retract(updated), optimizer, others, losses, weight, finite

    def _losses(
        self, weights: list[Array], others: list, samples: Samples, *, training: bool
    ) -> tuple[Array, list, Array]:
        """Loss (R,) of each replica, the non-trainable variables after the call, and the weight (R,) of the samples.

        The model's own losses (regularisers, penalties) count in training only.
        """
        shared = np.ndim(samples.u) == 3
        axes = (-1, -1, None if shared else -1)

        def one(weights: list, others: list, samples: Samples) -> tuple[Array, Array, list]:
            u, y = samples.u.transpose(2, 0, 1), samples.y.transpose(2, 0, 1)
            found, others, own = self.setup.call(weights, others, u, training=training)
            values = self.setup.loss(y, found)
            return jnp.moveaxis(values, 0, -1), jnp.asarray(sum(own) if training else 0, values.dtype), others

        values, own, others = jax.vmap(one, in_axes=axes, out_axes=-1)(weights, others, samples)
        losses, weight = _weighted_mean(values, samples.weights)
        return losses + own, others, weight

    @cached_property
    def _retract(self) -> Callable:
        return retraction(self.setup.variables, self.setup.layout)

    def _rules(self) -> tuple[float, float, float]:
        rule = self.setup.options.stopping
        if rule is None:
            return 0.0, 0.0, jnp.iinfo(jnp.int32).max
        return rule.min_delta, rule.relative_delta, rule.patience


def _weighted_mean(values: Array, weights: Array | None) -> tuple[Array, Array]:
    """The means (R,) of ``values`` (N, S, R) or (N, n_y, S, R) and the sums (R,) of the weights.

    The weights (N, S) or (N, S, R) are those of the samples. The sum over the samples is a product with ones along
    the order of the numbers in memory: XLA's reduction on CPU transposes the array first if the replicas come last,
    which took 1.1 ms for 50 replicas of 300 samples.
    """
    replicas, channels = values.shape[-1], values.shape[1] if values.ndim == 4 else 1
    if weights is None:
        weight = jnp.full((replicas,), values.size // (channels * replicas), values.dtype)
    else:
        of_replicas = jnp.reshape(weights, (*weights.shape[:2], -1))
        weight = jnp.broadcast_to(jnp.sum(of_replicas, axis=(0, 1)), (replicas,))
        values = values * (of_replicas if values.ndim == 3 else of_replicas[:, None])
    rows = values.reshape(-1, replicas)
    total = jnp.matmul(jnp.ones(len(rows), rows.dtype), rows, precision=jax.lax.Precision.HIGHEST)
    return total / (weight * channels), weight


def _taken(samples: Samples, sequences: Array, real: Array) -> Samples:
    """A batch of some sequences; the last batch is filled up with sequences that are not real and do not count."""
    u, y = (jnp.take(x, sequences, axis=2) for x in (samples.u, samples.y))
    weights = jnp.ones_like(y[:, 0]) if samples.weights is None else jnp.take(samples.weights, sequences, axis=1)
    return Samples(u, y, weights * real.astype(y.dtype).reshape(-1, *[1] * (weights.ndim - 2)))


def compile_block(epoch: Epoch, length: int, state: State, training: Samples, validation: Samples) -> Callable:
    """``block(state, training, validation, count) -> (done, state, losses)``, of ``min(count, length)`` epochs.

    It ends earlier when no replica is running. The losses have the shape (length, 2, R), NaN after the epochs done.
    """

    def block(state: State, training: Samples, validation: Samples, count: Array) -> tuple[Array, State, Array]:
        def going(carry: tuple) -> Array:
            i, state, _ = carry
            return (i < jnp.minimum(count, length)) & jnp.any(state.status == RUNNING)

        def once(carry: tuple) -> tuple:
            i, state, history = carry
            state, losses = epoch(state, training, validation)
            place = (i, *jnp.zeros((2,), jnp.int32))
            history = jax.lax.dynamic_update_slice(history, losses[None], place, allow_negative_indices=False)
            return i + 1, state, history

        history = jnp.full((length, 2, *state.status.shape), jnp.nan, state.theta.dtype)
        return jax.lax.while_loop(going, once, (jnp.zeros((), jnp.int32), state, history))

    arguments = (state, training, validation, np.int32(0))
    return compile_once(block, *jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), arguments))
