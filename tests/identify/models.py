"""Small models that map sequences to sequences, data for them, and what it means for results to be the same."""

import itertools

import keras
import numpy as np


class LinearScan(keras.layers.Layer):
    """x[k+1] = A x[k] + B u[k], y = C x, as one scan; not registered with Keras on purpose."""

    traces = 0

    def __init__(self, states: int = 2, outputs: int = 1, constraint=None, **options) -> None:
        super().__init__(**options)
        self.states, self.outputs, self.constraint = states, outputs, constraint

    def build(self, input_shape: tuple) -> None:
        n, inputs = self.states, input_shape[-1]
        start = keras.initializers.RandomNormal(stddev=0.3)
        self.A = self.add_weight(shape=(n, n), initializer=start, name="A", constraint=self.constraint)
        self.B = self.add_weight(shape=(n, inputs), initializer=start, name="B")
        self.C = self.add_weight(shape=(self.outputs, n), initializer=start, name="C")

    def call(self, u):
        LinearScan.traces += 1
        ops = keras.ops
        driven = ops.swapaxes(ops.matmul(u, ops.transpose(self.B)), 0, 1)

        def step(x, b):
            return ops.matmul(x, ops.transpose(self.A)) + b, x

        x = ops.scan(step, ops.zeros_like(driven[0]), driven)[1]
        return ops.matmul(ops.swapaxes(x, 0, 1), ops.transpose(self.C))

    def get_config(self) -> dict:
        return {**super().get_config(), "states": self.states, "outputs": self.outputs}


def recordings(sequences: int = 3, samples: int = 40, *, seed: int = 0, dtype: str = "float32"):
    """Two inputs, one output of a second-order system, shape (S, N, .)."""
    u = np.random.default_rng(seed).standard_normal((sequences, samples, 2))
    A, B = np.array([[0.6, 0.3], [-0.3, 0.6]]), np.array([[1.0, 0.0], [0.5, 1.0]])
    x, y = np.zeros((sequences, 2)), np.zeros((sequences, samples, 1))
    for k in range(samples):
        y[:, k, 0] = x[:, 0]
        x = x @ A.T + u[:, k] @ B.T
    return u.astype(dtype), y.astype(dtype)


def two_layers(seed: int = 1, **options):
    """Dense layers with a hyperbolic tangent between them, 13 weights."""
    start = keras.initializers.GlorotUniform(seed=seed)
    return keras.Sequential(
        [
            keras.layers.Dense(3, activation="tanh", kernel_initializer=start, **options),
            keras.layers.Dense(1, kernel_initializer=keras.initializers.GlorotUniform(seed=seed + 1)),
        ]
    )


def plain_loop(model, optimizer, epochs, training, validation):
    """Losses (2, epochs) and best weights of a loop over Keras's own training step."""
    model.compile(optimizer=optimizer, loss="mse")
    losses, best, kept = [], np.inf, model.get_weights()
    for _ in range(epochs):
        loss = float(model.train_on_batch(*training))
        found = np.asarray(model(validation[0], training=False))
        validated = float(np.mean((found - validation[1]).astype("float64") ** 2))
        if validated < best:
            best, kept = validated, model.get_weights()
        losses.append((loss, validated))
    return np.array(losses).T, kept


def same_weights(found, expected, tolerance=1e-5):
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def same_result(a, b):
    """Bit for bit."""
    for name in ("loss", "validation_loss", "best_epoch", "epochs"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.status == b.status
    for x, y in zip(itertools.chain(*a.weights), itertools.chain(*b.weights), strict=True):
        np.testing.assert_array_equal(x, y)
