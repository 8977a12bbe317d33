"""One battery for the layer with every parametrisation, the same on JAX, PyTorch and TensorFlow.

The reference is a recurrence in NumPy, float64, with the numbers that the layer's weights hold.
"""

import copy
import itertools

import numpy as np
import pytest

import schurfire as sf
from schurfire.layers import StateSpace, constraints, regularizers
from schurfire.systems import LinearSystem

import keras  # isort: skip - after schurfire.layers, which chooses an installed backend

PROVEN = ("schur-projected", "schur-factored", "schur-triangular", "modal", "lmi")
UNPROVEN = ("spectral-penalty", "none")
METHODS = (*PROVEN, *UNPROVEN)
KEEP_THE_STATE = ("schur-projected", "schur-factored", "lmi", *UNPROVEN)
N_X, N_U, N_Y = 5, 2, 3
IS_JAX = keras.backend.backend() == "jax"
EPS = float(np.finfo("float32").eps)


def inputs(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def built(stability, output_size=N_Y, n_u=N_U, **options):
    layer = StateSpace(N_X, output_size, stability, seed=3, **options)
    layer.build((None, None, n_u))
    if layer.D is not None:
        layer.D.assign(inputs(*layer.D.shape, seed=4))
    return layer


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def dense_system(layer):
    """A, B, C, D in the coordinates of the layer's states, float64."""
    A = layer.state_matrix().astype("float64")
    if layer.stability == "schur-factored":
        Z = sf.nearest_orthogonal(layer.state_weights()["Z"].astype("float64"))
        A = Z @ A @ Z.T
    B = array(layer.B).astype("float64")
    C = np.eye(len(A)) if layer.C is None else array(layer.C).astype("float64")
    D = np.zeros((len(C), B.shape[1])) if layer.D is None else array(layer.D).astype("float64")
    return A, B, C, D


def reference(system, u, x=None):
    """Outputs and final state of one sequence (N, n_u)."""
    A, B, C, D = system
    x = np.zeros(len(A)) if x is None else x
    y = np.empty((len(u), len(C)))
    for k, value in enumerate(u):
        y[k] = C @ x + D @ value
        x = A @ x + B @ value
    return y, x


def close(found, expected, tolerance=1e-5):
    np.testing.assert_allclose(array(found), expected, rtol=tolerance, atol=tolerance)


# --- the arithmetic ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stability", METHODS)
def test_output_is_that_of_the_recurrence(stability):
    u, x0 = inputs(4, 60, N_U), inputs(4, N_X, seed=2)
    layer = built(stability, return_state=True)
    for start in (None, x0):
        y, end = layer(u, initial_state=start)
        for s in range(4):
            expected = reference(dense_system(layer), u[s], None if start is None else start[s])
            close(y[s], expected[0])
            close(end[s], expected[1])
    assert keras.backend.standardize_dtype(y.dtype) == "float32"


@pytest.mark.parametrize("stability", METHODS)
def test_transparent_layer_returns_the_states(stability):
    u = inputs(2, 40, N_U)
    layer = built(stability, None, return_state=True)
    assert layer.C is None
    assert layer.D is None
    y, end = layer(u)
    for s in range(2):
        close(y[s], reference(dense_system(layer), u[s])[0])
    # the state after the last step is the one that an output at the next step would show
    longer = layer(np.concatenate([u, np.zeros((2, 1, N_U), "float32")], axis=1))[0]
    close(end, array(longer)[:, -1])


@pytest.mark.parametrize("stability", METHODS)
def test_last_output_alone_and_no_feedthrough(stability):
    u = inputs(3, 20, N_U)
    layer = built(stability, return_sequences=False, feedthrough=False)
    assert layer.D is None
    assert layer(u).shape == (3, N_Y)
    close(layer(u)[1], reference(dense_system(layer), u[1])[0][-1])


@pytest.mark.parametrize("stability", METHODS)
def test_to_system_has_the_same_map(stability):
    u = inputs(2, 50, N_U)
    for output_size in (N_Y, None):
        layer = built(stability, output_size)
        system = layer.to_system(dt=0.5)
        assert system.is_quasi_triangular
        assert system.certify().method == "blocks"
        assert system.certify().is_stable
        assert (system.dt, system.A.dtype.name) == (0.5, "float32")
        # The gain of the map and of its perturbations is moderate at radius 0.9.
        close(layer(u), system.simulate(u), 1000 * N_X * EPS)


def test_random_start_has_outputs_of_unit_variance():
    u = inputs(8, 600, N_U)
    for stability in METHODS:
        variances = []
        for seed in range(4):
            layer = StateSpace(N_X, 8, stability, seed=seed)
            variances.append(array(layer(u))[:, 100:].var())
        assert 0.3 < np.mean(variances) < 3, stability


def test_radius_and_seed():
    for stability in METHODS:
        first, second, other = (StateSpace(N_X, 1, stability, radius=0.5, seed=s) for s in (1, 1, 2))
        for layer in (first, second, other):
            layer.build((None, None, 1))
            assert np.abs(np.linalg.eigvals(layer.state_matrix())).max() <= 0.5 + 1e-3
        for a, b in zip(first.get_weights(), second.get_weights(), strict=True):
            assert np.array_equal(a, b)
        assert not np.array_equal(first.state_matrix(), other.state_matrix())
        keras.utils.set_random_seed(7)
        a, b = StateSpace(N_X, 1, stability), StateSpace(N_X, 1, stability)
        for layer in (a, b):
            layer.build((None, None, 1))
        assert not np.array_equal(a.state_matrix(), b.state_matrix())


def test_regions():
    region = sf.Disc(0.4, 0.5)
    for stability in PROVEN:
        layer = built(stability, region=region)
        assert layer.certify().region == region
        assert layer.certify().is_stable
        layer.A.assign(2 * array(layer.A))
        assert layer.certify().is_stable
        assert layer.to_system().region == region


# --- the guarantee ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stability", PROVEN)
def test_stable_whatever_the_weights_hold(stability):
    layer = built(stability)
    rng = np.random.default_rng(0)
    garbage = (
        lambda shape: rng.standard_normal(shape) * 1e8,
        lambda shape: np.full(shape, 3e38),
        lambda shape: np.where(rng.uniform(size=shape) < 0.3, np.nan, rng.standard_normal(shape)),
        lambda shape: np.full(shape, np.inf),
        np.zeros,
        np.ones,
        lambda shape: 1.5 * rng.standard_normal(shape),
    )
    for fill in garbage:
        layer.A.assign(fill(tuple(layer.A.shape)).astype("float32"))
        assert layer.certify().is_stable
        assert np.isfinite(layer.state_matrix()).all()
        assert layer.to_system().certify().is_stable
    # Stable is not small: entries of 1e8 above the diagonal overflow on the way. The last garbage is of moderate size.
    assert np.isfinite(array(layer(inputs(1, 60, N_U)))).all()


@pytest.mark.parametrize("stability", PROVEN)
def test_stable_after_averaging(stability):
    layers = [StateSpace(N_X, N_Y, stability, radius=1.0, seed=seed) for seed in range(6)]
    for layer in layers:
        layer.build((None, None, N_U))
    for first, second in itertools.pairwise(layers):
        for a, b in zip(first.weights, second.weights, strict=True):
            a.assign(4 * (array(a) + array(b)))  # of which the mean is the worse, the larger it is
        assert first.certify().is_stable


@pytest.mark.parametrize("stability", METHODS)
def test_float64(stability):
    if IS_JAX:
        import jax

        with jax.enable_x64(True):
            check_float64(stability)
    else:
        check_float64(stability)


def check_float64(stability):
    u = inputs(2, 40, N_U).astype("float64")
    layer = StateSpace(N_X, N_Y, stability, seed=3, dtype="float64", return_state=True)
    y, end = layer(u)
    assert {keras.backend.standardize_dtype(x.dtype) for x in (y, end, *layer.weights)} == {"float64"}
    for s in range(2):
        expected = reference(dense_system(layer), u[s])
        close(y[s], expected[0], 1e-12)
        close(end[s], expected[1], 1e-12)
    if stability in PROVEN:
        layer.A.assign(3 * array(layer.A))
        assert layer.certify().is_stable
        assert layer.certify().dtype == "float64"


@pytest.mark.parametrize("stability", UNPROVEN)
def test_unproven_methods_promise_nothing(stability):
    layer = built(stability)
    layer.set_weights([2 * np.eye(N_X, dtype="float32"), *layer.get_weights()[1:]])
    assert not layer.certify().is_stable
    assert np.array_equal(layer.state_matrix(), 2 * np.eye(N_X))
    with pytest.raises(sf.InvalidInputError, match=r"Expected the state matrix to be proven stable.*promises nothing"):
        layer.to_system()


# --- training ---------------------------------------------------------------------------------------------------------


class Judge(keras.callbacks.Callback):
    """Certifies a layer after every epoch, which here is one update."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.verdicts = layer, []

    def on_epoch_end(self, *_):
        self.verdicts.append(self.layer.certify().is_stable)


@pytest.mark.parametrize("stability", METHODS)
def test_fit_learns_and_is_stable_at_any_learning_rate(stability):
    u = inputs(4, 50, N_U)
    y = array(built("none")(u))
    layer = StateSpace(N_X, N_Y, stability, radius=1.0, seed=11)
    model = keras.Sequential([keras.Input((50, N_U)), layer])
    model.compile(optimizer=keras.optimizers.SGD(0.02), loss="mse")
    assert layer.certify().is_stable
    start = [array(w).copy() for w in layer.trainable_variables]
    losses = model.fit(u, y, epochs=40, verbose=0).history["loss"]
    assert losses[-1] < 0.7 * losses[0]
    for before, w in zip(start, layer.trainable_variables, strict=True):
        assert not np.array_equal(before, array(w)), w.name
    if stability in PROVEN:
        judge, before = Judge(layer), layer.state_matrix()
        model.optimizer.learning_rate = 30.0
        model.fit(u, y, epochs=5, verbose=0, callbacks=[judge])
        assert judge.verdicts == 5 * [True]
        assert not np.array_equal(before, layer.state_matrix())


def test_penalty_is_added_to_the_loss():
    u = inputs(2, 10, N_U)
    layer = built("spectral-penalty", stability_options={"strength": 3.0, "epsilon": 0.0})
    A = 2 * layer.state_matrix()
    layer.set_weights([A, *layer.get_weights()[1:]])
    expected = 3.0 * max(np.linalg.norm(A, 2) ** 2 - 1, 0) ** 2
    assert expected > 0
    layer(u)
    assert float(array(sum(layer.losses))) == pytest.approx(expected, rel=1e-4)
    assert float(array(layer.penalty())) == pytest.approx(expected, rel=1e-4)
    assert float(array(regularizers.SpectralPenalty(3.0, 0.0)(layer.weights[0]))) == pytest.approx(expected, rel=1e-4)
    for stability in PROVEN:
        assert float(array(built(stability).penalty())) == 0


# --- masks, states ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stability", ["schur-projected", "schur-factored", "modal"])
def test_masks(stability):
    u = inputs(5, 12, N_U)
    mask = np.ones((5, 12), bool)
    mask[1, 7:] = False  # the end is missing
    mask[2, :4] = False  # the start is
    mask[3] = np.random.default_rng(2).uniform(size=12) < 0.5
    mask[4] = False
    layer = built(stability, return_state=True)
    for x0 in (None, inputs(5, N_X, seed=7)):
        spoilt = np.where(mask[..., None], u, np.float32(np.nan))
        y, end = (array(x) for x in layer(spoilt, initial_state=x0, mask=mask))
        for s in range(5):
            start = np.zeros(N_X) if x0 is None else x0[s]
            expected, last = reference(dense_system(layer), u[s][mask[s]], start)
            close(y[s][mask[s]], expected)
            close(end[s], last)
            for k in np.flatnonzero(~mask[s]):  # a masked step repeats the output before it
                assert np.array_equal(y[s, k], y[s, k - 1] if k else np.zeros(N_Y)), (s, k)
    assert np.array_equal(array(layer(u, mask=np.ones((5, 12), bool))[0])[0], array(layer(u, mask=mask)[0])[0])


def test_masks_are_passed_on():
    u = inputs(2, 8, N_U)
    u[0, 5:] = 0
    first, second = built("modal"), built("modal", return_sequences=False, n_u=N_Y)
    model = keras.Sequential([keras.Input((None, N_U)), keras.layers.Masking(), first, second])
    hidden = reference(dense_system(first), u[0, :5])[0]
    close(model(u)[0], reference(dense_system(second), hidden)[0][-1])
    assert first.compute_mask(None, "mask") == "mask"
    assert second.compute_mask(None, "mask") is None


def test_gradients_do_not_see_what_is_masked():
    u = inputs(3, 20, N_U)
    u[:, 12:] = np.nan
    layer = built("schur-projected")
    model = keras.Sequential([keras.Input((20, N_U)), MaskAfter(12), layer])
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss="mse")
    model.fit(u, inputs(3, 20, N_Y, seed=3), epochs=1, verbose=0)
    assert all(np.isfinite(w).all() for w in layer.get_weights())


class MaskAfter(keras.layers.Layer):
    """Says that the steps from ``end`` on do not exist, whatever they hold."""

    def __init__(self, end):
        super().__init__()
        self.end = end
        self.supports_masking = True

    def call(self, x):
        return x

    def compute_mask(self, x, previous_mask=None):  # noqa: ARG002
        return keras.ops.ones_like(x[..., 0], dtype="bool") & (keras.ops.arange(20) < self.end)


@pytest.mark.parametrize("stability", ["schur-projected", "schur-factored", "modal"])
def test_stateful_calls_continue(stability):
    u = inputs(3, 30, N_U)
    layer = StateSpace(N_X, N_Y, stability, seed=3, stateful=True)
    layer.build((3, None, N_U))
    whole = array(layer(u))
    layer.reset_state()
    parts = [array(layer(part)) for part in (u[:, :11], u[:, 11:12], u[:, 12:])]
    close(np.concatenate(parts, axis=1), whole)
    assert not np.array_equal(array(layer(u)), whole)
    layer.reset_state()
    assert np.array_equal(array(layer(u)), whole)
    close(layer(u, initial_state=np.zeros((3, N_X), "float32")), whole)


def test_states_continue_in_the_layers_coordinates():
    u = inputs(2, 30, N_U)
    for stability in METHODS:
        layer = built(stability, return_state=True)
        whole, last = layer(u)
        middle = layer(u[:, :13])[1]
        rest, end = layer(u[:, 13:], initial_state=[middle])
        close(rest, array(whole)[:, 13:])
        close(end, array(last))


def test_learned_initial_state():
    u = inputs(2, 10, N_U)
    layer = built("schur-factored", learn_initial_state=True)
    x0 = inputs(N_X, seed=9)
    layer.x0.assign(x0)
    for s in range(2):
        close(layer(u)[s], reference(dense_system(layer), u[s], x0)[0])
    close(layer(u, initial_state=np.zeros((2, N_X), "float32"))[0], reference(dense_system(layer), u[0])[0])
    assert layer.trainable_variables[-1] is layer.x0


# --- starting from a system, known entries ----------------------------------------------------------------------------


def some_system(n_y=N_Y):
    rng = np.random.default_rng(8)
    A = rng.standard_normal((N_X, N_X))
    A *= 0.9 / np.abs(np.linalg.eigvals(A)).max()
    return A, *(rng.standard_normal(shape) for shape in ((N_X, N_U), (n_y, N_X), (n_y, N_U)))


@pytest.mark.parametrize("stability", METHODS)
def test_starts_from_a_system(stability):
    u, system = inputs(1, 40, N_U), some_system()
    expected, end = reference(system, u[0])
    tolerance = 1e-3 if stability == "lmi" else 1e-4  # a linear system is solved for A
    given = (system, LinearSystem(*system))
    for layer in (StateSpace(N_X, N_Y, stability, system=s, return_state=True) for s in given):
        y, x = layer(u)
        close(y[0], expected, tolerance)
        if stability in KEEP_THE_STATE:
            close(x[0], end, tolerance)
    layer = built(stability)
    layer.set_system(system)
    close(layer(u)[0], expected, tolerance)


@pytest.mark.parametrize("stability", METHODS)
def test_transparent_layer_starts_from_a_system(stability):
    A, B, _, _ = some_system()
    layer = StateSpace(N_X, None, stability, system=(A, B))
    if stability not in KEEP_THE_STATE:
        with pytest.raises(sf.InvalidInputError, match="a method that keeps the states"):
            layer.build((None, None, N_U))
        return
    u = inputs(1, 40, N_U)
    close(layer(u)[0], reference((A, B, np.eye(N_X), np.zeros((N_X, N_U))), u[0])[0], 1e-3)


@pytest.mark.parametrize("stability", ["schur-factored", "modal", "none"])
def test_known_entries_stay(stability):
    u = inputs(2, 20, N_U)
    known = {"B": [[1.0, None]] + 4 * [[None, None]], "C": np.full((N_Y, N_X), np.nan), "D": 0.0}
    known["C"][1, 2] = -0.1
    layer = StateSpace(N_X, N_Y, stability, seed=3, known=known)
    model = keras.Sequential([keras.Input((20, N_U)), layer])
    model.compile(optimizer=keras.optimizers.AdamW(0.1), loss="mse")

    def matches():
        A, B, C, _ = dense_system(layer)
        B[0, 0], C[1, 2] = 1.0, np.float32(-0.1)
        close(layer(u)[0], reference((A, B, C, np.zeros((N_Y, N_U))), u[0])[0])

    matches()
    model.fit(u, inputs(2, 20, N_Y, seed=2), epochs=3, verbose=0)
    matches()
    layer.set_weights([inputs(*w.shape, seed=6) / 4 for w in layer.weights])
    matches()
    if stability in ("modal", "none"):
        system = layer.to_system() if stability == "modal" else None
        assert system is None or (system.D == 0).all()
        assert system is None or system.C[1, 2] == np.float32(-0.1)


@pytest.mark.parametrize("stability", ["schur-triangular", *UNPROVEN])
def test_known_entries_of_the_state_matrix(stability):
    A = np.full((N_X, N_X), np.nan)
    A[0, 3], A[3, 0] = 0.25, 0.0
    layer = built(stability, known={"A": A})
    for _ in range(2):
        assert layer.state_matrix()[0, 3] == 0.25
        assert layer.state_matrix()[3, 0] == 0.0
        assert stability in UNPROVEN or layer.certify().is_stable
        layer.set_weights([3 * inputs(*w.shape, seed=6) for w in layer.weights])


@pytest.mark.parametrize("stability", ["schur-projected", "lmi"])
def test_known_entries_of_the_state_matrix_that_no_projection_keeps(stability):
    A = np.full((N_X, N_X), np.nan)
    A[3, 0] = 0.25
    with pytest.raises(sf.InvalidInputError, match=r"Expected known\['A'\] to be entries that"):
        StateSpace(N_X, N_Y, stability, known={"A": A})


# --- a Keras layer like others ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("stability", METHODS)
def test_config_clones_and_copies(stability):
    u = inputs(2, 15, N_U)
    options = {"region": sf.Disc(0.9, 0.05), "known": {"D": 0.0}, "method": "scan", "radius": 0.7}
    layer = StateSpace(N_X, N_Y, stability, seed=3, **options)
    again = StateSpace.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    assert again.region == sf.Disc(0.9, 0.05)
    y = array(layer(u))
    assert np.array_equal(array(again(u)), y)
    assert np.array_equal(array(copy.deepcopy(layer)(u)), y)
    model = keras.Sequential([keras.Input((None, N_U)), layer])
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    assert np.array_equal(array(clone(u)), y)
    assert clone.layers[0] is not layer


@pytest.mark.parametrize("stability", METHODS)
def test_saved_models_are_the_same_bit_for_bit(stability, tmp_path):
    u = inputs(2, 15, N_U)
    model = keras.Sequential([keras.Input((None, N_U)), StateSpace(N_X, N_Y, stability, system=some_system())])
    model.layers[0].A.assign(3 * array(model.layers[0].A))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert np.array_equal(array(loaded(u)), array(model(u)))
    assert np.array_equal(loaded.layers[0].state_matrix(), model.layers[0].state_matrix())
    assert loaded.layers[0].certify().is_stable == (stability in PROVEN)


def test_symbolic_build_and_any_sizes():
    for stability in ("schur-factored", "modal"):
        u = keras.Input((None, N_U))
        y, x = StateSpace(N_X, N_Y, stability, return_state=True)(u)
        assert (y.shape, x.shape) == ((None, None, N_Y), (None, N_X))
        z = StateSpace(4, None, stability, return_sequences=False)(y, initial_state=keras.layers.Dense(4)(x))
        assert z.shape == (None, 4)
        model = keras.Model(u, z)
        for batch, steps in ((1, 1), (3, 17), (2, 40)):
            assert model.predict(inputs(batch, steps, N_U), verbose=0).shape == (batch, 4)


def test_stacks_with_other_layers_train():
    model = keras.Sequential(
        [
            keras.Input((20, N_U)),
            keras.layers.Dense(3, activation="tanh"),
            StateSpace(4, None, "schur-triangular", seed=1),
            keras.layers.Dense(5),
            StateSpace(3, 2, "schur-projected", seed=2),
        ]
    )
    model.compile(optimizer="adamw", loss="mse", metrics=["mae"])
    history = model.fit(inputs(4, 20, N_U), inputs(4, 20, 2, seed=5), 2, epochs=2, verbose=0, validation_split=0.5)
    assert np.isfinite(history.history["val_loss"]).all()
    assert all(layer.certify().is_stable for layer in model.layers if isinstance(layer, StateSpace))


# --- constraints ------------------------------------------------------------------------------------------------------


def test_constraints_return_members():
    W = 3 * inputs(4, 4)
    assert sf.certify(array(constraints.SchurStable()(W))).is_stable
    assert sf.certify(array(constraints.SchurStable(sf.Disc(0.3, 0.5))(W)), sf.Disc(0.3, 0.5)).is_stable
    small = W / 20
    assert np.array_equal(array(constraints.SchurStable()(small)), small)
    Q = array(constraints.Orthogonal()(W))
    close(Q @ Q.T, np.eye(4), 20 * EPS)
    U, _, Vt = np.linalg.svd(W)
    close(Q, U @ Vt, 1e-4)
    assert np.array_equal(array(constraints.Orthogonal()(np.zeros((3, 3), "float32"))), np.eye(3))


def test_constraints_in_a_model():
    layer = keras.layers.Dense(4, kernel_constraint=constraints.SchurStable(), use_bias=False)
    other = keras.layers.Dense(4, kernel_constraint=constraints.Orthogonal(), use_bias=False)
    model = keras.Sequential([keras.Input((4,)), layer, other])
    model.compile(optimizer=keras.optimizers.SGD(5.0), loss="mse")
    model.fit(inputs(8, 4), inputs(8, 4, seed=2), epochs=2, verbose=0)
    assert sf.certify(array(layer.kernel)).is_stable
    Q = array(other.kernel)
    close(Q @ Q.T, np.eye(4), 20 * EPS)


@pytest.mark.parametrize(
    "thing", [constraints.SchurStable(sf.Disc(0.5)), constraints.Orthogonal(), regularizers.SpectralPenalty(2.0, 0.1)]
)
def test_constraints_and_regularisers_are_serialised(thing):
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(thing))
    assert type(again) is type(thing)
    assert again.get_config() == thing.get_config()
    with pytest.raises(sf.InvalidInputError, match=rf"the weight of {type(thing).__name__} to be square"):
        again(np.ones((2, 3), "float32"))
