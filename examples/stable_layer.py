"""A stable layer inside an ordinary Keras model, on any backend.

Run it with ``KERAS_BACKEND=jax``, ``torch`` or ``tensorflow``. The data come from a Wiener system: a linear system
whose output passes a saturation. The model is one stable linear layer followed by a small network.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np

import schurfire as sf


def recordings(count: int, samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (count, samples, 1) and outputs of the system to be learned."""
    system = sf.data.random_stable_system(4, 1, 1, radius=0.95, seed=7, dtype="float32")
    u = sf.data.gbn(samples, 1, seed=seed, sequences=count, dtype="float32")
    return u, np.tanh(0.3 * system.simulate(u))


def main() -> None:
    """Trains with ``model.fit``, then shows what the guarantee is worth."""
    keras.utils.set_random_seed(0)
    u, y = recordings(8, 200, seed=0)
    u_new, y_new = recordings(2, 400, seed=1)

    model = keras.Sequential(
        [
            keras.Input((None, 1)),
            sf.layers.StateSpace(4, output_size=1, stability="schur-projected", seed=0),
            keras.layers.Dense(16, activation="silu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.Adam(1e-2), "mse")
    model.fit(u, y, batch_size=8, epochs=200, verbose=0)
    layer = model.layers[0]
    error = sf.metrics.nmse(y_new, model.predict(u_new, verbose=0))[0]
    print(f"on {keras.backend.backend()}: NMSE of new data {error:.4f}")
    print("trained:", layer.certify())

    # Whatever the weights hold, the matrix in use is stable:
    layer.set_weights([100 * w for w in layer.get_weights()])
    print("garbage:", layer.certify())
    print(layer.to_system(dt=0.01))


if __name__ == "__main__":
    main()
