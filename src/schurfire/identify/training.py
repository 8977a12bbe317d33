"""``train``: replicas of a Keras model, trained at once."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from schurfire.errors import invalid
from schurfire.identify.blocks import Setup
from schurfire.identify.checkpoints import CheckpointFile, described, digest
from schurfire.identify.options import TrainingOptions, whole_number
from schurfire.identify.replicas import initial_values
from schurfire.identify.results import TrainingResult
from schurfire.identify.runs import Trainer
from schurfire.identify.samples import Partition, partition, require_variation
from schurfire.identify.updates import check_optimizer
from schurfire.namespaces import Array

_MEANS = ("sum_over_batch_size", "mean", "mean_with_sample_weight")


def train(
    model: Any,
    training: Any,
    validation: Any,
    *,
    epochs: int,
    replicas: int | None = None,
    optimizer: Any = None,
    options: TrainingOptions = TrainingOptions(),  # noqa: B008 - frozen
) -> TrainingResult:
    """Minimises ``mean loss(y, model(u))`` over the training data from several initial weights at once, on JAX.

    Each replica runs by itself: it keeps the weights of its best validation loss, stops early by itself, and ends by
    itself if it diverges. Only the speed is shared. Weights with a constraint are constrained after each update.
    The model's weights are left as they are; ``result.assign(model)`` changes them.

    The same seed and data give the same result on the same machine. It depends on the number of replicas only
    through rounding, except where the model draws random numbers.

    Args:
        model: Keras model or layer from inputs (S, N, n_u) to outputs (S, N, n_y).
        training: ``schurfire.data.Sequences``, or arrays ``(u, y)`` of shapes (S, N, n_u) and (S, N, n_y), shared by
            all replicas; or a list of R ``Sequences``, or arrays with a leading axis R: each replica's own.
            The padding of shorter sequences comes last and does not count, so the model must be causal in time.
        validation: likewise.
        epochs: at most so many.
        replicas: how many; by default as many as the data or ``options.start`` hold, else 1. The first has the
            weights of ``model``, the others those of clones with other seeds.
        optimizer: Keras optimizer, of which the configuration is used; by default AdamW with learning rate 1e-3.
        options: early stopping, loss, batches, seed, checkpoint and progress.

    Returns:
        The best weights, losses and status of each replica. Ctrl-C returns the best so far.

    Raises:
        InvalidInputError: data, model and options do not fit together (before anything is compiled), or Keras runs
            on another backend than JAX.

    Cost: for small models 20 to 40 us for an epoch besides its arithmetic, and a compilation of 1 to 3 s per shape
    of model and data, which is kept on disk.

    >>> u = np.random.default_rng(0).standard_normal((1, 50, 2)).astype("float32")
    >>> y = u @ np.array([[1.0], [-2.0]], "float32")
    >>> result = train(keras.layers.Dense(1), (u, y), (u, y), epochs=500, optimizer=keras.optimizers.Adam(0.05))
    >>> bool(result.best_loss[result.best] < 1e-6)
    True
    """
    _require_jax()
    parts = {"training": partition(training, "training"), "validation": partition(validation, "validation")}
    _check_options(epochs, options, parts["training"])
    require_variation(parts["training"], "training")
    optimizer = check_optimizer(keras.optimizers.AdamW(1e-3) if optimizer is None else optimizer)
    count = _replica_count(replicas, options, parts)
    _build(model, parts["training"])
    loss = _loss(options.loss)
    for name, part in parts.items():
        _check_fit(model, loss, part, name)
    values = initial_values(model, count, options.seed, options.start)
    trainer = Trainer(Setup(model, loss, optimizer, options), parts["training"], parts["validation"], count, epochs)
    file = None
    if options.checkpoint is not None:
        file = CheckpointFile.within(options.checkpoint, _configuration(trainer))
    return trainer.train(values, file, options.progress)


def _require_jax() -> None:
    backend = keras.backend.backend()
    if backend != "jax":
        fix = "Use model.compile and model.fit on this backend, or set KERAS_BACKEND=jax before Keras is imported."
        raise invalid("the Keras backend", "jax, on which the engine runs", backend, fix)


def _check_options(epochs: int, options: TrainingOptions, training: Partition) -> None:
    whole_number(epochs, "epochs")
    if not isinstance(options, TrainingOptions):
        raise invalid("options", "TrainingOptions", repr(options))
    if options.stopping is not None and options.stopping.patience > epochs:
        fix = "It would never stop; pass stopping=None if that is meant."
        raise invalid("patience", f"at most the {epochs} epochs", options.stopping.patience, fix)
    if options.batch_size is not None and options.batch_size > training.sequences:
        fix = "Batches are made of whole sequences."
        raise invalid("batch_size", f"at most the {training.sequences} training sequences", options.batch_size, fix)


def _replica_count(replicas: int | None, options: TrainingOptions, parts: dict[str, Partition]) -> int:
    counts = {f"{name} data": part.replicas for name, part in parts.items() if part.replicas is not None}
    if options.start is not None:
        counts["start"] = len(options.start)
    if replicas is not None:
        counts["replicas"] = whole_number(replicas, "replicas")
    if len(set(counts.values())) > 1:
        received = ", ".join(f"{count} in {name}" for name, count in counts.items())
        raise invalid("replicas", "as many everywhere", received)
    return whole_number(next(iter(counts.values()), 1), "replicas")


def _build(model: Any, training: Partition) -> None:
    if not isinstance(model, keras.layers.Layer):
        raise invalid("model", "a Keras model or layer", repr(model))
    if not model.built:
        model.build((None, None, training.u.shape[-1]))
    dtypes = {v.dtype for v in model.trainable_variables}
    if len(dtypes) != 1:
        fix = "It has nothing to train." if not dtypes else "Give all layers the same dtype."
        raise invalid("model", "one with trainable weights of one dtype", sorted(dtypes) or "none", fix)


def _check_fit(model: Any, loss: Callable, part: Partition, name: str) -> None:
    """Runs the model on shapes alone."""
    dtype = model.trainable_variables[0].dtype
    for x, kind in ((part.u, "inputs"), (part.y, "outputs")):
        if x.dtype.name != dtype:
            fix = f"Cast the data, or build the model in {x.dtype}; in float64 JAX needs jax_enable_x64."
            raise invalid(f"the {kind} of {name}", f"of dtype {dtype} like the model", x.dtype, fix)
    u, y = (jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in (part.u, part.y))
    weights = [[v.value for v in vs] for vs in (model.trainable_variables, model.non_trainable_variables)]
    try:
        found = jax.eval_shape(lambda u: model.stateless_call(*weights, u)[0], u)
    except ValueError as error:
        reason = str(error).strip().splitlines()[0]
        raise invalid(f"the inputs of {name}", "what the model takes", f"shape {u.shape}", reason) from error
    shape = getattr(found, "shape", None)
    if shape != y.shape:
        received = f"{shape} for inputs of shape {u.shape}" if shape else f"a {type(found).__name__}"
        raise invalid(f"the model's output on {name}", f"of shape {y.shape} like the data", received)
    each = jax.eval_shape(loss, y, found)
    if each.shape not in (y.shape[:2], y.shape):
        raise invalid("loss", f"a function with a value for each sample, shape {y.shape[:2]}", f"shape {each.shape}")


def _loss(loss: Any) -> Callable:
    try:
        loss = keras.losses.get(loss)
    except ValueError as error:
        raise invalid("loss", "a Keras loss or a function", repr(loss)) from error
    if isinstance(loss, keras.losses.Loss):
        if loss.reduction not in _MEANS:
            raise invalid("loss", "one that takes the mean over the samples", f"reduction {loss.reduction!r}")
        loss = loss.call if type(loss) is not keras.losses.MeanSquaredError else keras.losses.mean_squared_error
    if not callable(loss):
        raise invalid("loss", "a Keras loss or a function", repr(loss))
    return _squared_error if loss is keras.losses.mean_squared_error else loss


def _squared_error(y: Array, found: Array) -> Array:
    """Without the mean over the channels, which is one operation with that over the samples then."""
    return jnp.square(found - y)


def _configuration(trainer: Trainer) -> dict[str, Any]:
    """What the result depends on, in words; the model's own initial weights are in the checkpoint."""
    setup, options = trainer.setup, trainer.setup.options
    start = None if options.start is None else digest(*(np.asarray(w) for weights in options.start for w in weights))
    parts = {"training data": trainer.training, "validation data": trainer.validation}
    return {
        "keras": keras.__version__,
        "model": described(setup.model),
        "weights": [list(v.shape) for v in setup.model.variables],
        "optimizer": described(setup.optimizer),
        "loss": described(options.loss),
        "stopping": repr(options.stopping),
        "batch_size": options.batch_size,
        "seed": options.seed,
        "start": start,
        "epochs": trainer.epochs,
        "replicas": trainer.replicas,
        **{name: digest(part.u, part.y, part.mask) for name, part in parts.items()},
    }
