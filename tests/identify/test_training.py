"""`train` computes what a plain loop of Keras computes, for every replica by itself."""

import jax
import keras
import numpy as np
import pytest

from schurfire.data import Sequences
from schurfire.errors import InvalidInputError
from schurfire.identify import EarlyStopping, TrainingOptions, runs, sizes, train
from tests.identify.models import LinearScan, plain_loop, recordings, same_result, same_weights, two_layers

TRAINING, VALIDATION = recordings(seed=0), recordings(2, 30, seed=1)
OPTIMIZERS = {
    "adamw": lambda: keras.optimizers.AdamW(0.01),
    "momentum": lambda: keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True),
    "clipnorm": lambda: keras.optimizers.Adam(0.01, clipnorm=0.05),
    "schedule": lambda: keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.03, 15)),
    "average": lambda: keras.optimizers.AdamW(0.01, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3),
    "accumulation": lambda: keras.optimizers.Adam(0.01, gradient_accumulation_steps=2),
    "adafactor": lambda: keras.optimizers.Adafactor(0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_same_as_keras(name):
    model, twin = two_layers(), two_layers()
    result = train(model, TRAINING, VALIDATION, epochs=20, optimizer=OPTIMIZERS[name]())
    losses, weights = plain_loop(twin, OPTIMIZERS[name](), 20, TRAINING, VALIDATION)
    np.testing.assert_allclose(result.loss[0], losses[0], rtol=1e-5)
    np.testing.assert_allclose(result.validation_loss[0], losses[1], rtol=1e-5)
    assert losses[0, -1] < 0.995 * losses[0, 0]
    assert result.best_epoch[0] == np.argmin(losses[1]) + 1
    same_weights(result.weights[0], weights)


def test_weights_excluded_from_decay():
    def optimizer(model):
        decaying = keras.optimizers.AdamW(0.01, weight_decay=1.0)
        decaying.exclude_from_weight_decay(var_list=[model.layers[0].kernel])
        return decaying

    model, twin = two_layers(), two_layers()
    for m in (model, twin):
        m.build((None, None, 2))
    result = train(model, TRAINING, VALIDATION, epochs=5, optimizer=optimizer(model))
    same_weights(result.weights[0], plain_loop(twin, optimizer(twin), 5, TRAINING, VALIDATION)[1])


@pytest.mark.parametrize("clipnorm", [None, 0.1])
def test_constraints_and_regularisers(clipnorm):
    """MaxNorm looks at one axis of each weight, so it has to see them one by one."""
    options = {
        "kernel_constraint": keras.constraints.MaxNorm(0.2, axis=0),
        "kernel_regularizer": keras.regularizers.L2(0.01),
    }
    optimizer = keras.optimizers.Adam(0.05, clipnorm=clipnorm)
    result = train(two_layers(**options), TRAINING, VALIDATION, epochs=10, replicas=2, optimizer=optimizer)
    losses, weights = plain_loop(
        two_layers(**options), keras.optimizers.Adam(0.05, clipnorm=clipnorm), 10, TRAINING, VALIDATION
    )
    np.testing.assert_allclose(result.loss[0], losses[0], rtol=1e-5)
    same_weights(result.weights[0], weights)
    norms = [np.linalg.norm(weights[0], axis=0) for weights in result.weights]
    assert np.max(norms) < 0.2 * (1 + 1e-6)
    assert np.max(norms) > 0.199


def test_batched_constraints_take_all_replicas_at_once():
    shapes = []

    class Halved(keras.constraints.Constraint):
        batched = True

        def __call__(self, w):
            shapes.append(w.shape)
            return w / 2

    model = LinearScan(constraint=Halved())
    model.build((None, None, 2))
    start = [[np.full(w.shape, (r + 1) / 8) for w in model.get_weights()] for r in range(3)]
    still = keras.optimizers.SGD(1e-30)
    result = train(model, TRAINING, VALIDATION, epochs=1, optimizer=still, options=TrainingOptions(start=start))
    assert shapes == [(3, 2, 2)]
    for r in range(3):
        np.testing.assert_array_equal(result.weights[r][0], (r + 1) / 16)


def test_statistics_of_batch_normalisation():
    def model():
        return keras.Sequential([keras.layers.BatchNormalization(momentum=0.5), two_layers()])

    result = train(model(), TRAINING, VALIDATION, epochs=6, replicas=2)
    losses, weights = plain_loop(model(), keras.optimizers.AdamW(1e-3), 6, TRAINING, VALIDATION)
    np.testing.assert_allclose(result.validation_loss[0], losses[1], rtol=1e-5)
    same_weights(result.weights[0], weights)


def test_dropout_differs_between_replicas_and_epochs():
    layers = [keras.layers.Dropout(0.5, seed=3), keras.layers.Dense(1, kernel_initializer="ones")]
    still = keras.optimizers.SGD(1e-30)
    result = train(keras.Sequential(layers), TRAINING, VALIDATION, epochs=3, replicas=2, optimizer=still)
    assert len(np.unique(result.loss)) == 6
    assert len(np.unique(result.validation_loss)) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precisions(dtype):
    with jax.enable_x64(dtype == "float64"):
        model, twin = (two_layers(dtype=dtype) for _ in range(2))
        for layer in (*model.layers, *twin.layers):
            layer.dtype_policy = dtype
        data = [recordings(seed=s, dtype=dtype) for s in (0, 1)]
        result = train(model, *data, epochs=5)
        assert {w.dtype.name for w in result.weights[0]} == {dtype}
        assert result.loss.dtype == dtype
        same_weights(result.weights[0], plain_loop(twin, keras.optimizers.AdamW(1e-3), 5, *data)[1], 1e-6)


def test_replicas_run_by_themselves():
    """Together or alone, on shared data."""
    together = train(LinearScan(), TRAINING, VALIDATION, epochs=15, replicas=4)
    assert len({float(w[0][0, 0]) for w in together.weights}) == 4
    model = LinearScan()
    model.build((None, None, 2))
    start = [[np.random.default_rng(r).standard_normal(w.shape) / 3 for w in model.get_weights()] for r in range(3)]
    together = train(model, TRAINING, VALIDATION, epochs=15, options=TrainingOptions(start=start))
    for r in range(3):
        alone = train(model, TRAINING, VALIDATION, epochs=15, options=TrainingOptions(start=start[r : r + 1]))
        np.testing.assert_allclose(together.validation_loss[r], alone.validation_loss[0], rtol=1e-5)
        same_weights(together.weights[r], alone.weights[0])
    assert together.best == np.argmin(together.best_loss)


def test_replicas_with_data_of_their_own():
    model, parts = two_layers(), [recordings(seed=s) for s in (5, 6)]
    model.build((None, None, 2))
    start = [model.get_weights()] * 2
    stacks = tuple(np.stack(x) for x in zip(*parts, strict=True))
    together = train(model, stacks, VALIDATION, epochs=10, options=TrainingOptions(start=start))
    sequences = [Sequences(*part) for part in parts]
    listed = train(model, sequences, Sequences(*VALIDATION), epochs=10, options=TrainingOptions(start=start))
    same_result(together, listed)
    for r in range(2):
        alone = train(model, parts[r], VALIDATION, epochs=10)
        np.testing.assert_allclose(together.loss[r], alone.loss[0], rtol=1e-5)
        same_weights(together.weights[r], alone.weights[0])


def test_sequences_of_different_length():
    """The loss is the mean over the samples that exist."""
    (u, y), lengths = TRAINING, (40, 25, 10)
    data = Sequences(*([x[i, :n] for i, n in enumerate(lengths)] for x in (u, y)))
    model = LinearScan()
    result = train(model, data, data, epochs=1, optimizer=keras.optimizers.SGD(1e-30))
    found = np.asarray(model(u))
    errors = np.concatenate([(found[i, :n] - y[i, :n]) ** 2 for i, n in enumerate(lengths)])
    np.testing.assert_allclose(result.loss[0, 0], np.mean(errors), rtol=1e-5)
    np.testing.assert_allclose(result.validation_loss[0, 0], np.mean(errors), rtol=1e-5)


def test_batches():
    """Each epoch sees each sequence once, in an order of its own, the last batch being smaller."""
    data = recordings(5, seed=3)
    options = TrainingOptions(batch_size=2, seed=7)
    result = train(two_layers(), data, VALIDATION, epochs=4, replicas=2, options=options)
    twin, losses, weights, best = two_layers(), [], [], np.inf
    twin.compile(optimizer=keras.optimizers.AdamW(1e-3), loss="mse")
    orders = [np.asarray(jax.random.permutation(jax.random.fold_in(jax.random.key(7), e), 5)) for e in range(4)]
    assert len({tuple(order) for order in orders}) > 1
    for order in orders:
        batches = [order[:2], order[2:4], order[4:]]
        each = [float(twin.train_on_batch(data[0][b], data[1][b])) for b in batches]
        losses.append(np.average(each, weights=[2, 2, 1]))
        validated = np.mean((np.asarray(twin(VALIDATION[0])) - VALIDATION[1]) ** 2)
        best, weights = (validated, twin.get_weights()) if validated < best else (best, weights)
    np.testing.assert_allclose(result.loss[0], losses, rtol=1e-5)
    same_weights(result.weights[0], weights)


def test_other_losses():
    absolute = train(two_layers(), TRAINING, VALIDATION, epochs=3, options=TrainingOptions(loss="mae"))
    model = two_layers()
    model.build((None, None, 2))
    expected = np.mean(np.abs(np.asarray(model(TRAINING[0])) - TRAINING[1]))
    np.testing.assert_allclose(absolute.loss[0, 0], expected, rtol=1e-5)
    for loss in (keras.losses.MeanAbsoluteError(), lambda y, found: keras.ops.mean(abs(y - found), axis=-1)):
        result = train(two_layers(), TRAINING, VALIDATION, epochs=3, options=TrainingOptions(loss=loss))
        np.testing.assert_allclose(result.loss, absolute.loss, rtol=1e-6)


def stopped_by(losses, rule):
    """Epochs and best epoch by the rule, from the losses of all epochs."""
    last, waited = np.inf, 0
    for epoch, loss in enumerate(losses, start=1):
        waited += 1
        if loss < last * (1 - rule.relative_delta) - rule.min_delta:
            last, waited = loss, 0
        if waited >= rule.patience:
            return epoch, 1 + np.argmin(losses[:epoch])
    return len(losses), 1 + np.argmin(losses)


@pytest.mark.parametrize("rule", [EarlyStopping(3), EarlyStopping(5, 0.02), EarlyStopping(4, relative_delta=0.05)])
def test_early_stopping_of_each_replica(rule):
    def run(stopping):
        fast = keras.optimizers.SGD(0.15, momentum=0.9)
        options = TrainingOptions(stopping=stopping, seed=1)
        return train(two_layers(), TRAINING, VALIDATION, epochs=60, replicas=5, optimizer=fast, options=options)

    free, stopped = run(None), run(rule)
    expected = [stopped_by(losses, rule) for losses in free.validation_loss]
    assert len({epochs for epochs, _ in expected}) > 2
    np.testing.assert_array_equal(list(zip(stopped.epochs, stopped.best_epoch, strict=True)), expected)
    assert stopped.status == tuple("stopped" if epochs < 60 else "finished" for epochs, _ in expected)
    for r, (epochs, best) in enumerate(expected):
        np.testing.assert_array_equal(stopped.validation_loss[r, :epochs], free.validation_loss[r, :epochs])
        assert np.isnan(stopped.loss[r, epochs:]).all()
        assert stopped.best_loss[r] == stopped.validation_loss[r, best - 1]


def test_a_diverging_replica_leaves_the_others_alone():
    model = LinearScan()
    model.build((None, None, 2))
    calm = [np.full(w.shape, 0.1, "float32") for w in model.get_weights()]
    steep = [np.array([[20.0, 0.0], [0.0, 0.1]], "float32"), *calm[1:]]  # 20^40 is infinite in float32
    growing = [np.array([[1.3, 0.0], [0.0, 0.1]], "float32"), *(np.full_like(w, 1.0) for w in calm[1:])]

    def run(*start):
        descent = keras.optimizers.SGD(1e-3)
        return train(model, TRAINING, VALIDATION, epochs=30, optimizer=descent, options=TrainingOptions(start=start))

    result, alone = run(steep, calm, growing), run(calm)
    assert result.status == ("diverged", "finished", "diverged")
    np.testing.assert_allclose(result.validation_loss[1], alone.validation_loss[0], rtol=1e-5)
    assert result.best == 1
    assert result.epochs[0] == 1
    assert result.best_epoch[0] == 0
    assert result.best_loss[0] == np.inf
    same_weights(result.weights[0], steep)
    assert all(np.isfinite(w).all() for weights in result.weights for w in weights)
    assert 1 <= result.epochs[2] < 30


def test_weights_that_become_infinite_count_as_diverged_even_if_constrained_away():
    class Reset(keras.constraints.Constraint):
        def __call__(self, w):
            return keras.ops.where(keras.ops.isfinite(w), w, 0.0)

    model = LinearScan(constraint=Reset())
    huge = keras.optimizers.SGD(3e38)
    result = train(model, TRAINING, VALIDATION, epochs=5, optimizer=huge)
    assert result.status == ("diverged",)
    assert result.epochs[0] <= 2


def test_blocks_are_compiled_once_and_do_not_change_the_result(monkeypatch):
    whole = train(LinearScan(), TRAINING, VALIDATION, epochs=25, replicas=2)
    model = LinearScan()
    model.build((None, None, 2))
    monkeypatch.setattr(sizes.Work, "block_length", lambda *_: 4)
    programs = []
    compile_block = runs.compile_block
    monkeypatch.setattr(runs, "compile_block", lambda *args: programs.append(compile_block(*args)) or programs[-1])
    before = LinearScan.traces
    short = train(model, TRAINING, VALIDATION, epochs=25, options=TrainingOptions(start=whole.weights[:1]))
    assert len(programs) == 1
    assert short.epochs[0] == 25
    assert LinearScan.traces - before <= 6  # two checks of shapes, and the block's gradient and validation
    monkeypatch.setattr(sizes.Work, "block_length", lambda *_: 25)
    same_result(short, train(model, TRAINING, VALIDATION, epochs=25, options=TrainingOptions(start=whole.weights[:1])))


def test_replicas_that_have_stopped_are_left_out(monkeypatch):
    def run():
        options = TrainingOptions(stopping=EarlyStopping(3), seed=1)
        fast = keras.optimizers.SGD(0.15, momentum=0.9)
        return train(two_layers(), TRAINING, VALIDATION, epochs=60, replicas=6, optimizer=fast, options=options)

    whole, widths = run(), []
    compile_block = runs.compile_block
    monkeypatch.setattr(runs, "compile_block", lambda *args: widths.append(len(args[2].status)) or compile_block(*args))
    monkeypatch.setattr(sizes.Work, "block_length", lambda *_: 4)
    monkeypatch.setattr(sizes, "_WORTH", -1.0)
    narrowed = run()
    assert widths[0] == 6
    assert len(widths) > 2
    assert widths == sorted(widths, reverse=True)
    np.testing.assert_array_equal(narrowed.epochs, whole.epochs)
    np.testing.assert_array_equal(narrowed.best_epoch, whole.best_epoch)
    np.testing.assert_allclose(narrowed.validation_loss, whole.validation_loss, rtol=1e-4)
    for a, b in zip(narrowed.weights, whole.weights, strict=True):
        same_weights(a, b, 1e-4)
    same_result(narrowed, run())


def test_same_seed_same_result():
    def run(seed):
        options = TrainingOptions(seed=seed, batch_size=2)
        return train(two_layers(), TRAINING, VALIDATION, epochs=10, replicas=3, options=options)

    first, other = run(4), run(5)
    same_result(first, run(4))
    assert not np.array_equal(first.loss[1], other.loss[1])


def test_the_result_and_the_model():
    model = two_layers()
    result = train(model, TRAINING, VALIDATION, epochs=10, replicas=3)
    same_weights(model.get_weights(), two_layers_weights(), 0)
    again = result.model(2)
    same_weights(again.get_weights(), result.weights[2], 0)
    result.assign(model)
    same_weights(model.get_weights(), result.weights[result.best], 0)
    found = np.asarray(model(VALIDATION[0]))
    expected = np.mean((found - VALIDATION[1]) ** 2)
    np.testing.assert_allclose(result.best_loss[result.best], expected, rtol=1e-5)
    assert 0 < result.epoch_seconds * 10 <= result.seconds
    with pytest.raises(InvalidInputError, match="replica"):
        result.assign(model, 3)


def two_layers_weights():
    model = two_layers()
    model.build((None, None, 2))
    return model.get_weights()


def test_ctrl_c_returns_the_best_so_far(monkeypatch):
    monkeypatch.setattr(sizes.Work, "block_length", lambda *_: 4)
    advanced, blocks = runs.Trainer._advanced, []

    def interrupted(*args):
        blocks.append(None)
        if len(blocks) > 3:
            raise KeyboardInterrupt
        return advanced(*args)

    monkeypatch.setattr(runs.Trainer, "_advanced", interrupted)
    result = train(two_layers(), TRAINING, VALIDATION, epochs=100, replicas=2)
    assert result.status == ("interrupted", "interrupted")
    assert result.epochs.tolist() == [12, 12]
    monkeypatch.undo()
    whole = train(two_layers(), TRAINING, VALIDATION, epochs=100, replicas=2)
    np.testing.assert_array_equal(result.loss[:, :12], whole.loss[:, :12])


def test_progress_is_shown_when_asked(capfd):
    train(two_layers(), TRAINING, VALIDATION, epochs=3)
    assert capfd.readouterr() == ("", "")
    train(two_layers(), TRAINING, VALIDATION, epochs=3, options=TrainingOptions(progress=True))
    shown = capfd.readouterr().err
    assert "3/3" in shown
    assert "best validation loss" in shown
    assert "1 of 1 running" in shown


def test_observed_between_blocks(monkeypatch):
    """The snapshots hold the weights that the replicas have then, of those that go on."""
    monkeypatch.setattr(sizes.Work, "block_length", lambda *_: 5)
    seen = []
    options = TrainingOptions(observe=seen.append, stopping=EarlyStopping(4, min_delta=0.05), seed=3)
    fast = keras.optimizers.SGD(0.1)
    result = train(two_layers(), TRAINING, VALIDATION, epochs=30, replicas=4, optimizer=fast, options=options)
    last = result.epochs.max()
    assert [snapshot.epoch for snapshot in seen] == [*range(5, last, 5), last]
    assert len(seen) > 1
    assert result.epochs.min() < last < 30
    for snapshot in seen:
        assert snapshot.replicas.tolist() == np.flatnonzero(result.epochs > snapshot.epoch).tolist()
        model = two_layers()
        model.build((None, None, 2))
        for replica, weights in zip(snapshot.replicas, snapshot.weights, strict=True):
            model.set_weights(weights)
            found = np.mean((np.asarray(model(VALIDATION[0])) - VALIDATION[1]) ** 2)
            np.testing.assert_allclose(found, result.validation_loss[replica, snapshot.epoch - 1], rtol=1e-4)
    with pytest.raises(InvalidInputError, match="observe"):
        TrainingOptions(observe=3)  # pyright: ignore[reportArgumentType]
