"""The engine trains the stable layers as Keras does, and every replica it returns is proven stable."""

import keras
import numpy as np
import pytest

from schurfire.identify import TrainingOptions, train
from schurfire.layers import StateSpace
from tests.identify.models import plain_loop, recordings, same_weights

TRAINING, VALIDATION = recordings(seed=0), recordings(2, 30, seed=1)
PROVEN = ("schur-projected", "schur-factored", "schur-triangular", "modal")


def layer(stability, **options):
    return StateSpace(3, 1, stability=stability, seed=2, **options)


@pytest.mark.parametrize("stability", [*PROVEN, "spectral-penalty"])
def test_same_as_keras(stability):
    """Retractions and penalties included."""
    result = train(layer(stability), TRAINING, VALIDATION, epochs=10, replicas=2, optimizer=keras.optimizers.Adam(0.02))
    twin = keras.Sequential([keras.Input((None, 2)), layer(stability)])
    losses, weights = plain_loop(twin, keras.optimizers.Adam(0.02), 10, TRAINING, VALIDATION)
    np.testing.assert_allclose(result.loss[0], losses[0], rtol=1e-4)
    np.testing.assert_allclose(result.validation_loss[0], losses[1], rtol=1e-4)
    same_weights(result.weights[0], weights, 1e-4)
    assert not np.allclose(result.weights[0][0], result.weights[1][0])


@pytest.mark.parametrize("stability", PROVEN)
def test_stable_whatever_the_optimizer_does(stability):
    model = layer(stability)
    steep = keras.optimizers.SGD(3.0, momentum=0.9)
    result = train(model, TRAINING, VALIDATION, epochs=8, replicas=5, optimizer=steep, options=TrainingOptions(seed=3))
    for replica in range(5):
        result.assign(model, replica)
        assert model.certify().is_stable


def test_inside_a_model():
    model = keras.Sequential([keras.Input((None, 2)), layer("modal"), keras.layers.Dense(1, activation="tanh")])
    result = train(model, TRAINING, VALIDATION, epochs=20, replicas=2, optimizer=keras.optimizers.Adam(0.01))
    assert np.all(result.loss[:, -1] < result.loss[:, 0])
    found = result.model(1)(VALIDATION[0])
    expected = np.mean((np.asarray(found) - VALIDATION[1]) ** 2)
    np.testing.assert_allclose(result.best_loss[1], expected, rtol=1e-4)
