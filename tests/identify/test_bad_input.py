"""Everything that cannot be trained is refused before anything is compiled."""

import keras
import numpy as np
import pytest

from schurfire.data import Sequences
from schurfire.errors import InvalidInputError
from schurfire.identify import EarlyStopping, TrainingOptions, runs, train
from tests.identify.models import recordings, two_layers

U, Y = recordings()


@pytest.fixture(autouse=True)
def _nothing_is_compiled(monkeypatch):
    def compile_block(*_):
        raise AssertionError("compiled")

    monkeypatch.setattr(runs, "compile_block", compile_block)


def spoiled(x, place, value):
    x = x.copy()
    x[place] = value
    return x


DATA = {
    "no pair": (U, "a tuple of arrays"),
    "two axes": ((U[0], Y[0]), "3 axes"),
    "different axes": ((U, Y[0]), "3 axes"),
    "different lengths": ((U, Y[:, :-1]), "same number of sequences and samples"),
    "different sequences": ((U, Y[:-1]), "same number of sequences and samples"),
    "no sequences": ((U[:0], Y[:0]), "at least one sample"),
    "no samples": ((U[:, :0], Y[:, :0]), "at least one sample"),
    "nan": (
        (spoiled(U, (1, 17, 0), np.nan), Y),
        "inputs of training to be finite, received nan at sequence 1, channel 0, index 17",
    ),
    "infinite": ((U, spoiled(Y, (2, 3, 0), np.inf)), "outputs .*inf at sequence 2, channel 0, index 3"),
    "integers": ((U.astype(int), Y), "float32 or float64, received dtype int64"),
    "float64": ((U.astype(float), Y), "float32 like the model, received float64"),
    "constant": ((U, np.ones_like(Y)), "constant output channel 0.*NMSE is undefined"),
    "inputs": ((U[..., :1], Y), "what the model takes"),
    "outputs": ((U, np.repeat(Y, 2, axis=-1)), r"output on training to be of shape \(3, 40, 2\)"),
    "mixed shapes": ([Sequences(U, Y), Sequences(U[:2], Y[:2])], "one shape for all replicas"),
    "nan of a replica": (
        (np.stack([U, spoiled(U, (0, 1, 1), np.nan)]), np.stack([Y, Y])),
        "at replica 1, sequence 0, channel 1, index 1",
    ),
}


@pytest.mark.parametrize("case", DATA)
def test_data(case):
    data, message = DATA[case]
    model = two_layers()
    model.build((None, None, 2))
    with pytest.raises(InvalidInputError, match=message):
        train(model, data, (U, Y), epochs=10)


def test_validation_data_are_checked_alike():
    with pytest.raises(InvalidInputError, match="validation"):
        train(two_layers(), (U, Y), (U, spoiled(Y, (0, 0, 0), np.nan)), epochs=10)


OPTIONS = {
    "patience": (lambda: TrainingOptions(stopping=EarlyStopping(11)), "at most the 10 epochs, received 11"),
    "patience 0": (lambda: TrainingOptions(stopping=EarlyStopping(0)), "patience"),
    "negative delta": (lambda: EarlyStopping(1, -0.1), "min_delta"),
    "relative delta": (lambda: EarlyStopping(1, relative_delta=1), "relative_delta"),
    "no stopping": (lambda: TrainingOptions(stopping=3), "stopping"),
    "batch of zero": (lambda: TrainingOptions(batch_size=0), "batch_size to be a whole number of at least 1"),
    "large batch": (lambda: TrainingOptions(batch_size=4), "batch_size to be at most the 3 training sequences"),
    "loss": (lambda: TrainingOptions(loss="msee"), "loss"),
    "loss of the mean": (lambda: TrainingOptions(loss=lambda y, f: keras.ops.mean(y - f)), "value for each sample"),
    "sum": (lambda: TrainingOptions(loss=keras.losses.MeanSquaredError(reduction="sum")), "mean over the samples"),
    "seed": (lambda: TrainingOptions(seed=-1), "seed"),
    "start": (lambda: TrainingOptions(start=[[np.zeros(3)]]), r"start\[0\]"),
    "nan start": (lambda: TrainingOptions(start=[[np.full((2, 3), np.nan), *two_weights()[1:]]]), "finite"),
    "start of others": (lambda: TrainingOptions(start=[two_weights()] * 3), "3 in start, 2 in replicas"),
}


def two_weights():
    return [np.zeros(shape, "float32") for shape in ((2, 3), (3,), (3, 1), (1,))]


@pytest.mark.parametrize("case", OPTIONS)
def test_options(case):
    options, message = OPTIONS[case]
    with pytest.raises(InvalidInputError, match=message):
        train(two_layers(), (U, Y), (U, Y), epochs=10, replicas=2 if "others" in case else None, options=options())


OPTIMIZERS = {
    "name": lambda: "adam",
    "average at the end": lambda: keras.optimizers.Adam(use_ema=True),
    "loss scaling": lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam()),
    "loss scale factor": lambda: keras.optimizers.Adam(loss_scale_factor=2.0),
}


@pytest.mark.parametrize("case", OPTIMIZERS)
def test_optimizers(case):
    with pytest.raises(InvalidInputError, match="optimizer"):
        train(two_layers(), (U, Y), (U, Y), epochs=10, optimizer=OPTIMIZERS[case]())


def test_replicas():
    own = (np.stack([U, U]), np.stack([Y, Y]))
    with pytest.raises(InvalidInputError, match="2 in training data, 3 in replicas"):
        train(two_layers(), own, (U, Y), epochs=10, replicas=3)
    with pytest.raises(InvalidInputError, match="replicas"):
        train(two_layers(), (U, Y), (U, Y), epochs=10, replicas=0)
    with pytest.raises(InvalidInputError, match="epochs"):
        train(two_layers(), (U, Y), (U, Y), epochs=0)


def test_models():
    with pytest.raises(InvalidInputError, match="a Keras model"):
        train(lambda u: u, (U, Y), (U, Y), epochs=10)
    with pytest.raises(InvalidInputError, match="nothing to train"):
        train(keras.layers.Activation("tanh"), (U, Y), (U, Y), epochs=10)

    class Unknown(keras.layers.Layer):
        def __init__(self, size):
            super().__init__()
            self.size = size

        def build(self, _):
            self.w = self.add_weight(shape=(2, self.size))

        def call(self, u):
            return keras.ops.matmul(u, self.w)

    with pytest.raises(InvalidInputError, match=r"rebuild from its configuration.*start"):
        train(Unknown(1), (U, Y), (U, Y), epochs=10, replicas=2)


def test_other_backends(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    with pytest.raises(InvalidInputError, match=r"received torch.*model\.fit"):
        train(two_layers(), (U, Y), (U, Y), epochs=10)
