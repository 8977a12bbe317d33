"""The state-space layer: the battery on the active backend, and what is refused."""

import numpy as np
import pytest

import schurfire as sf
from schurfire.layers import StateSpace
from schurfire.layers.packing import Packing, Retraction
from schurfire.parametrisations import PARAMETRISATIONS, parametrisation
from tests.layers.battery import *  # noqa: F403
from tests.layers.battery import IS_JAX, METHODS, array, built, inputs, some_system

import keras  # isort: skip - after schurfire.layers, which chooses an installed backend

only_jax = pytest.mark.skipif(not IS_JAX, reason="about JAX")


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"state_size": 0}, "Expected state_size to be a positive whole number, received 0"),
        ({"state_size": 2.0}, "Expected state_size"),
        ({"output_size": -1}, "Expected output_size"),
        ({"stability": "schur"}, "Expected stability to be one of 'schur-projected', 'schur-factored'"),
        ({"region": sf.HalfPlane()}, "Expected region to be a schurfire.Disc"),
        ({"stability_options": {"strength": 1.0}}, "has no options"),
        ({"known": {"E": 0.0}}, "the key 'E'"),
        ({"known": {"B": "x"}}, r"Expected known\['B'\] to be an array of numbers"),
        ({"known": {"B": np.inf}}, r"Expected known\['B'\] to be finite"),
        ({"known": {"A": 0.0}}, "schur-projected' can keep"),
        ({"known": {"C": 0.0}, "output_size": None}, "about A and B alone"),
        ({"known": {"D": 0.0}, "feedthrough": False}, "without 'D'"),
        ({"stateful": True, "learn_initial_state": True}, "Expected learn_initial_state to be False"),
        ({"dtype": "mixed_float16"}, "Expected dtype to be float32 or float64, received 'mixed_float16'"),
        ({"dtype": "bfloat16"}, "Expected dtype to be float32 or float64"),
        ({"system": np.eye(3)}, "Expected system to be a LinearSystem"),
        ({"system": (np.eye(3, dtype=int), np.ones((3, 1)))}, "Expected A to be a real array"),
    ],
)
def test_refused_when_made(options, message):
    with pytest.raises(sf.InvalidInputError, match=message):
        StateSpace(**{"state_size": 3, "output_size": 1, **options})


@pytest.mark.parametrize(
    ("options", "shape", "message"),
    [
        ({}, (None, 2), "Expected sequences to be of shape"),
        ({}, (None, None, None), "Expected sequences to be of shape"),
        ({"stateful": True}, (None, 10, 2), "batch size of a stateful layer"),
        ({"radius": 1.5}, (None, None, 2), "Expected radius to be positive and at most"),
        ({"known": {"B": np.zeros((2, 2))}}, (None, None, 2), r"Expected known\['B'\] to be of shape \(5, 2\)"),
        ({"system": some_system()}, (None, None, 3), r"Expected B of the system to be of shape \(5, 3\)"),
        ({"system": some_system(1)}, (None, None, 2), "Expected C of the system"),
        ({"system": some_system(), "feedthrough": False}, (None, None, 2), "Expected D of the system to be zero"),
        ({"system": some_system(), "output_size": None}, (None, None, 2), "of the system"),
        ({"system": (2 * np.eye(5), np.ones((5, 2)), np.ones((3, 5)))}, (None, None, 2), "Expected A to be"),
    ],
)
def test_refused_when_built(options, shape, message):
    with pytest.raises(sf.InvalidInputError, match=message):
        StateSpace(**{"state_size": 5, "output_size": 3, **options}).build(shape)


def test_refused_when_called():
    layer = built("modal")
    with pytest.raises(ValueError, match="expected axis -1 of input shape to have value 2"):
        layer(inputs(1, 5, 3))
    with pytest.raises(sf.InvalidInputError, match="Expected initial_state to be a tensor or a list of one"):
        layer(inputs(1, 5, 2), initial_state=[inputs(1, 5), inputs(1, 5)])
    last = built("modal", return_sequences=False)
    with pytest.raises(sf.InvalidInputError, match="at least one step long"):
        last(np.zeros((1, 0, 2), "float32"))
    for act in ("state_matrix", "certify", "to_system", "state_weights"):
        with pytest.raises(sf.InvalidInputError, match="Expected the layer to be built"):
            getattr(StateSpace(3, 1), act)()
    with pytest.raises(sf.InvalidInputError, match="received None"):
        layer.set_system(None)


@only_jax
def test_float64_without_x64_is_refused():
    with pytest.raises(
        sf.InvalidInputError, match=r"Expected dtype to be float32 where JAX has no float64.*enable_x64"
    ):
        StateSpace(3, 1, dtype="float64").build((None, None, 2))


# --- weights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 6])
@pytest.mark.parametrize("stability", METHODS)
def test_number_of_weights(stability, n):
    layer = StateSpace(n, 2, stability, seed=0)
    layer.build((None, None, 3))
    counts = {
        "schur-factored": 2 * n**2,
        "schur-triangular": n * (n + 1) // 2 + n // 2,
        "modal": 2 * n - n % 2,
        "lmi": 5 * n**2,
    }
    assert np.prod(layer.A.shape) == counts.get(stability, n**2)
    assert [w.name for w in layer.weights] == ["A", "B", "C", "D"]
    assert [tuple(w.shape) for w in layer.weights[1:]] == [(n, 3), (2, n), (2, 3)]
    assert {name: w.shape for name, w in layer.state_weights().items()} == layer._parametrisation.shapes()
    if n == 1:
        assert layer(inputs(2, 7, 3)).shape == (2, 7, 2)
        assert layer.certify().is_stable


@pytest.mark.parametrize("stability", PARAMETRISATIONS)
def test_packing(stability):
    packing = Packing(parametrisation(stability, 5))
    packed = inputs(2, 2, *packing.shape)
    weights = packing.unpack(packed)
    assert {name: w.shape[2:] for name, w in weights.items()} == packing.parametrisation.shapes()
    assert np.array_equal(packing.pack(weights), packed)
    retracted = array(Retraction(packing)(packed))
    assert retracted.shape == packed.shape
    assert np.array_equal(array(Retraction(packing)(retracted)), retracted)
    np.testing.assert_allclose(array(Retraction(packing)(packed[1, 0])), retracted[1, 0], atol=1e-5)


def test_constraint_retracts_after_an_update():
    """All weights of A at once: blocks of ``schur-triangular`` are made of two of them."""
    layer = StateSpace(4, 1, "schur-triangular", seed=0)
    layer.build((None, None, 1))
    layer.A.assign(5 * array(layer.A))
    outside = array(layer.A)
    layer.A.assign(layer.A.constraint(layer.A))
    assert not np.array_equal(array(layer.A), outside)
    matrix = layer.state_matrix()
    assert np.array_equal(matrix, layer._parametrisation.matrix(layer.state_weights()))  # nothing is left to replace
    assert layer.certify().is_stable


# --- JAX --------------------------------------------------------------------------------------------------------------


@only_jax
@pytest.mark.parametrize("stability", ["schur-projected", "schur-factored"])
def test_compiled_mapped_and_traced_once(stability):
    import jax

    layer, u = built(stability), inputs(3, 20, 2)
    values = [w.value for w in layer.trainable_variables]
    traces = []

    @jax.jit
    def compiled(values, u):
        traces.append(1)
        return layer.stateless_call(values, [], u)[0]

    expected = array(layer(u))
    np.testing.assert_allclose(compiled(values, u), expected, rtol=1e-5, atol=1e-5)
    compiled([2 * v for v in values], u)
    assert len(traces) == 1
    stacked = [np.stack([v, 0.5 * v, 2 * v]) for v in map(np.asarray, values)]
    mapped = jax.jit(jax.vmap(lambda values: layer.stateless_call(values, [], u)[0]))(stacked)
    for i in range(3):
        np.testing.assert_allclose(mapped[i], compiled([v[i] for v in stacked], u), rtol=1e-4, atol=1e-5)


@only_jax
@pytest.mark.parametrize("stability", ["schur-factored", "modal"])
def test_gradient_against_differences(stability):
    import jax
    import jax.numpy as jnp

    u = inputs(1, 12, 2).astype("float64")
    with jax.enable_x64(True):
        layer = StateSpace(5, 3, stability, seed=3, dtype="float64", learn_initial_state=True)
        layer.build((None, None, 2))
        values = [jnp.asarray(w.value) for w in layer.trainable_variables]

        @jax.jit
        def loss(values):
            y = layer.stateless_call(values, [], u)[0]
            return jnp.sum(jnp.sin(y))

        gradients = jax.jit(jax.grad(loss))(values)
        rng = np.random.default_rng(0)
        for i, g in enumerate(gradients):
            direction = rng.standard_normal(g.shape)
            if stability == "schur-factored" and i == 0:
                direction = tangent(layer, direction)
            h = 1e-6
            plus, minus = (
                loss([v + s * h * direction if k == i else v for k, v in enumerate(values)]) for s in (1.0, -1.0)
            )
            assert float(jnp.sum(g * direction)) == pytest.approx(float(plus - minus) / (2 * h), rel=1e-5, abs=1e-7)


def tangent(layer, direction):
    """The part of a direction along which Z stays orthogonal, to first order."""
    weights = layer._packing.unpack(direction)
    Z = layer.state_weights()["Z"]
    S = Z.T @ weights["Z"]
    return layer._packing.pack({"T": weights["T"], "Z": Z @ (S - S.T) / 2})


@only_jax
def test_penalty_inside_the_models_losses():
    model = keras.Sequential([keras.Input((5, 2)), built("spectral-penalty", stability_options={"strength": 0.5})])
    model.layers[0].A.assign(3 * np.eye(5, dtype="float32"))
    values = [w.value for w in model.trainable_variables]
    losses = model.stateless_call(values, [], inputs(1, 5, 2), return_losses=True)[2]
    assert float(sum(losses)) == pytest.approx(0.5 * (9 - 1 + 1e-3) ** 2, rel=1e-5)
