"""Linear systems: their responses against SciPy, their modes against mechanics, their proofs after every change."""

import pickle

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg
import scipy.signal

from schurfire import Disc, HalfPlane, InvalidInputError, certify, frequency_domain, project_stable, systems
from schurfire.frequency_domain import modes_of
from schurfire.systems import LinearSystem
from tests.references import pair_is_stable, similar

PRECISIONS = ("float32", "float64")
SISO = ([[0.5]], [[1.0]], [[2.0]], [[3.0]])


def random_system(n=5, n_u=3, n_y=2, *, dtype="float64", dt=1.0, seed=0, form="dense"):
    """Radius 0.9, as a full matrix or (one block after the other) quasi-triangular."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    A *= 0.9 / np.abs(np.linalg.eigvals(A)).max()
    if form == "quasi-triangular":
        A = scipy.linalg.schur(A)[0]
    B, C, D = rng.standard_normal((n, n_u)), rng.standard_normal((n_y, n)), rng.standard_normal((n_y, n_u))
    return LinearSystem(*(M.astype(dtype) for M in (A, B, C, D)), dt=dt)


def doubles(system):
    return tuple(np.float64(M) for M in (system.A, system.B, system.C, system.D))


def simulated_by_scipy(system, u, x0=None):
    return scipy.signal.dlsim((*doubles(system), 1.0), np.float64(u), x0=x0)[1:]


def close(actual, desired, dtype, terms=1000, size=None):
    """To ``terms`` roundings of the largest number: N steps of n products each, and amplification, are covered."""
    size = np.abs(desired).max() if size is None else size
    np.testing.assert_allclose(actual, desired, rtol=0, atol=terms * np.finfo(dtype).eps * size)


# --- the value --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_sizes_names_and_defaults(dtype):
    system = random_system(5, 3, 2, dtype=dtype)
    assert (system.state_size, system.input_size, system.output_size) == (5, 3, 2)
    assert system.input_names == ("u1", "u2", "u3")
    assert system.output_names == ("y1", "y2")
    assert system.region == Disc()
    assert type(system.dt) is float
    assert {M.dtype for M in (system.A, system.B, system.C, system.D)} == {np.dtype(dtype)}
    named = LinearSystem(*SISO, dt=np.float32(0.5), input_names=["force"], output_names=("position",))
    assert named.input_names == ("force",)
    assert named.dt == 0.5
    assert type(named.dt) is float


def test_nothing_of_a_system_can_be_changed():
    A = np.array([[0.5]])
    system = LinearSystem(A, *SISO[1:])
    A[0, 0] = 7.0
    assert system.A[0, 0] == 0.5
    for matrix in (system.A, system.B, system.C, system.D):
        with pytest.raises(ValueError, match="read-only"):
            matrix[0, 0] = 1.0
    with pytest.raises(AttributeError):
        system.dt = 2.0  # pyright: ignore[reportAttributeAccessIssue]


def test_systems_are_compared_by_identity_and_survive_pickle():
    system = random_system()
    assert system == system  # noqa: PLR0124
    copy = pickle.loads(pickle.dumps(system))
    assert copy != system
    np.testing.assert_array_equal(copy.A, system.A)
    assert copy.input_names == system.input_names


def test_tensors_become_arrays():
    system = LinearSystem(*(jnp.asarray(M) for M in SISO))
    assert type(system.A) is np.ndarray
    assert system.A.dtype == "float32"
    y = system.simulate(jnp.ones((3, 1)))
    assert type(y) is np.ndarray
    np.testing.assert_array_equal(y, system.simulate(np.ones((3, 1), "float32")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": np.ones((2, 3))}, "A to be square"),
        ({"A": np.ones((2, 1, 1))}, "A to be one matrix"),
        ({"A": np.zeros((0, 0))}, "A to be of order 1 or more"),
        ({"A": [[np.nan]]}, "A to be finite"),
        ({"A": np.ones((1, 1), int)}, "A to be a real array of dtype float32 or float64"),
        ({"A": np.ones((1, 1), complex)}, "complex"),
        ({"B": np.ones((2, 1))}, r"B to be of shape \(1, 1\), received shape \(2, 1\)"),
        ({"B": np.ones(1)}, "B to be a matrix with at least one row and one column"),
        ({"B": np.ones((1, 0))}, "B to be a matrix with at least one row and one column"),
        ({"B": [[np.inf]]}, "B to be finite"),
        ({"C": np.ones((1, 2))}, r"C to be of shape \(1, 1\)"),
        ({"C": np.ones((0, 1))}, "C to be a matrix with at least one row and one column"),
        ({"C": np.ones((1, 1), "float32")}, "C to be of the dtype of A, float64, received dtype float32"),
        ({"D": np.ones((1, 2))}, r"D to be of shape \(1, 1\)"),
        ({"D": None}, "D"),
        ({"dt": 0.0}, "dt to be a positive number of seconds"),
        ({"dt": -1}, "dt to be a positive"),
        ({"dt": np.nan}, "dt to be a positive"),
        ({"dt": np.inf}, "dt to be a positive"),
        ({"dt": True}, "dt to be a positive"),
        ({"dt": "1"}, "dt to be a positive"),
        ({"region": HalfPlane()}, "region to be a schurfire.Disc, .*discretise"),
        ({"region": 1.0}, "region"),
        ({"input_names": "u"}, "input_names to be a sequence of non-empty strings"),
        ({"input_names": None}, "input_names to be a sequence of non-empty strings"),
        ({"input_names": (1,)}, "input_names to be a sequence of non-empty strings"),
        ({"input_names": ("",)}, "input_names to be a sequence of non-empty strings"),
        ({"input_names": ("a", "b")}, "input_names to be 1 different name"),
        ({"C": np.ones((2, 1)), "D": np.ones((2, 1)), "output_names": ("y", "y")}, "output_names to be 2 different"),
    ],
)
def test_bad_parts_are_refused(change, message):
    parts = dict(zip("ABCD", map(np.array, SISO), strict=True)) | change
    with pytest.raises(InvalidInputError, match=message):
        LinearSystem(**parts)


# --- responses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dense", "quasi-triangular"])
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize(("n", "n_u", "n_y"), [(1, 1, 1), (2, 1, 3), (5, 3, 2), (8, 2, 2)])
def test_simulation_agrees_with_scipy(n, n_u, n_y, dtype, form):
    system = random_system(n, n_u, n_y, dtype=dtype, form=form)
    assert system.is_quasi_triangular == (form == "quasi-triangular" or n <= 2)
    rng = np.random.default_rng(n)
    u, x0 = rng.standard_normal((200, n_u)).astype(dtype), rng.standard_normal(n).astype(dtype)
    for start in (None, x0):
        y, x = simulated_by_scipy(system, u, start)
        response = system.respond(u, start)
        assert response.y.dtype == response.x_end.dtype == dtype
        close(response.y, y, dtype)
        close(response.x_end, np.float64(system.A) @ x[-1] + np.float64(system.B) @ u[-1], dtype, size=np.abs(x).max())
        np.testing.assert_array_equal(system.simulate(u, start), response.y)


def test_many_sequences_are_simulated_as_one_by_one():
    system, rng = random_system(), np.random.default_rng(0)
    u, x0 = rng.standard_normal((2, 4, 30, 3)), rng.standard_normal((4, 5))
    y, x_end = system.respond(u, x0)
    assert y.shape == (2, 4, 30, 2)
    assert x_end.shape == (2, 4, 5)
    for i, j in np.ndindex(2, 4):
        one = system.respond(u[i, j], x0[j])
        close(y[i, j], one.y, "float64")
        close(x_end[i, j], one.x_end, "float64")


def test_many_initial_states_share_one_sequence():
    system, rng = random_system(), np.random.default_rng(0)
    u, x0 = rng.standard_normal((30, 3)), rng.standard_normal((4, 5))
    y = system.simulate(u, x0)
    assert y.shape == (4, 30, 2)
    for j in range(4):
        close(y[j], system.simulate(u, x0[j]), "float64")


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_a_simulation_goes_on_from_its_final_state(dtype):
    system, rng = random_system(dtype=dtype), np.random.default_rng(0)
    u = rng.standard_normal((100, 3)).astype(dtype)
    first = system.respond(u[:37])
    second = system.respond(u[37:], first.x_end)
    whole = system.respond(u)
    close(np.concatenate([first.y, second.y]), whole.y, dtype)
    close(second.x_end, whole.x_end, dtype)


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_impulse_response_is_that_of_the_powers(dtype):
    system = random_system(4, 3, 2, dtype=dtype)
    A, B, C, D = doubles(system)
    h = system.impulse_response(60)
    assert h.shape == (60, 2, 3)
    assert h.dtype == dtype
    np.testing.assert_array_equal(h[0], system.D)
    powers = np.stack([D, *(C @ np.linalg.matrix_power(A, k) @ B for k in range(59))])
    close(h, powers, dtype)
    for j in range(3):
        pulse = np.zeros((60, 3))
        pulse[0, j] = 1.0
        close(h[:, :, j], simulated_by_scipy(system, pulse)[0], dtype)


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_step_response_is_the_running_sum_and_ends_at_the_dc_gain(dtype):
    system = random_system(4, 3, 2, dtype=dtype)
    steps = system.step_response(400)
    assert steps.shape == (400, 2, 3)
    assert steps.dtype == dtype
    close(steps, np.cumsum(np.float64(system.impulse_response(400)), axis=0), dtype, terms=4000)
    assert system.dc_gain.dtype == "float64"
    close(steps[-1], system.dc_gain, dtype)  # 0.9^400 is below 1e-18


def test_an_unstable_system_may_overflow():
    y = LinearSystem([[3.0]], *SISO[1:]).step_response(2000)
    assert y[3, 0, 0] == 29.0  # 2 (1 + 3 + 9) + 3
    assert y[-1, 0, 0] == np.inf


@pytest.mark.parametrize("N", [0, -1, 1.0, True, None])
def test_responses_need_a_number_of_samples(N):
    for response in (random_system().impulse_response, random_system().step_response):
        with pytest.raises(InvalidInputError, match="N to be a whole number of samples, at least 1"):
            response(N)


@pytest.mark.parametrize("form", ["dense", "quasi-triangular"])
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_frequency_response_agrees_with_the_formula_in_forty_digits(dtype, form):
    system = random_system(4, 2, 3, dtype=dtype, dt=0.02, form=form)
    frequencies = np.array([[0.0, 1.7], [13.0, 25.0]])
    response = system.frequency_response(frequencies)
    assert response.shape == (2, 2, 3, 2)
    assert response.dtype == "complex128"
    with mpmath.workdps(40):
        A, B, C, D = (mpmath.matrix(M.tolist()) for M in doubles(system))
        for index in np.ndindex(2, 2):
            z = mpmath.expjpi(2 * mpmath.mpf(frequencies[index]) * mpmath.mpf(0.02))
            exact = C * mpmath.inverse(z * mpmath.eye(4) - A) * B + D
            close(response[index], np.array(exact.tolist(), complex), "float64")


def test_frequency_response_agrees_with_scipy():
    system = random_system(5, 1, 1, dt=0.1)
    angles = np.linspace(0.0, np.pi, 50)
    numerator, denominator = scipy.signal.ss2tf(*doubles(system))
    expected = scipy.signal.dfreqresp((numerator[0], denominator, 1.0), angles)[1]
    # a transfer function's coefficients are no well-conditioned description: hence 1e-10
    np.testing.assert_allclose(system.frequency_response(angles / (2 * np.pi * 0.1))[:, 0, 0], expected, rtol=1e-10)


def test_frequency_response_is_the_fourier_transform_of_the_impulse_response():
    system = random_system(4, 2, 3, dt=0.25)
    N = 512  # 0.9^512 is below 1e-23
    transform = np.fft.fft(system.impulse_response(N), axis=0)
    close(system.frequency_response(np.fft.fftfreq(N, 0.25)), transform, "float64")


def test_frequency_response_is_periodic_and_conjugate():
    system, f = random_system(dt=0.1), np.array([0.3, 2.0, 4.9])
    close(system.frequency_response(-f), system.frequency_response(f).conj(), "float64", terms=10)
    close(system.frequency_response(f + 10.0), system.frequency_response(f), "float64")


def test_frequencies_may_have_any_shape_and_number(monkeypatch):
    system, f = random_system(), np.linspace(0.0, 0.5, 101)
    together = system.frequency_response(f)
    assert system.frequency_response(0.25).shape == (2, 3)
    assert system.frequency_response(np.zeros((0,))).shape == (0, 2, 3)
    close(system.frequency_response(np.float32(0.25)), together[50], "float64")
    monkeypatch.setattr(frequency_domain, "_CHUNK", 7 * 25)
    close(system.frequency_response(f), together, "float64", terms=10)


def test_an_integrator_has_no_dc_gain():
    integrator = LinearSystem([[1.0]], *SISO[1:])
    with pytest.raises(InvalidInputError, match="different from the poles"):
        integrator.dc_gain  # noqa: B018
    with pytest.raises(InvalidInputError, match="frequencies to be finite"):
        integrator.frequency_response([0.1, np.inf])
    assert integrator.frequency_response(0.5)[0, 0] == pytest.approx(2.0)  # 2 / (-1 - 1) + 3


@pytest.mark.parametrize(
    ("u", "x0", "message"),
    [
        (np.ones(4), None, r"u to be of shape \(..., N, 3\), received shape \(4,\). Time is axis -2"),
        (np.ones((4, 2)), None, r"u to be of shape \(..., N, 3\)"),
        (np.ones((0, 3)), None, r"u to be of shape \(..., N, 3\)"),
        (np.ones((4, 3), int), None, "u to be a real array of dtype float32 or float64"),
        (np.ones((4, 3), "float32"), None, "u to be of the system's dtype float64, received dtype float32. Cast u"),
        (np.full((4, 3), np.nan), None, "u to be finite"),
        (np.ones((4, 3)), np.ones(4), r"x0 to be of shape \(..., 5\)"),
        (np.ones((4, 3)), 1.0, r"x0 to be of shape \(..., 5\)"),
        (np.ones((4, 3)), np.ones(5, "float32"), "x0 to be of the system's dtype"),
        (np.ones((4, 3)), np.full(5, np.inf), "x0 to be finite"),
        (np.ones((2, 4, 3)), np.ones((3, 5)), "the leading axes to be such that they broadcast"),
    ],
)
def test_bad_signals_are_refused(u, x0, message):
    for act in (random_system().simulate, random_system().respond):
        with pytest.raises(InvalidInputError, match=message):
            act(u, x0)


# --- modes ------------------------------------------------------------------------------------------------------------


def oscillator(mass, damper, spring, dt):
    """Mass, spring and damper, driven by a force, sampled with zero-order hold; and its mode in continuous time."""
    A = np.array([[0.0, 1.0], [-spring / mass, -damper / mass]])
    continuous = (A, np.array([[0.0], [1 / mass]]), np.array([[1.0, 0.0]]), np.zeros((1, 1)))
    discrete = scipy.signal.cont2discrete(continuous, dt)[:4]
    natural = np.sqrt(spring / mass)
    ratio = damper / (2 * np.sqrt(spring * mass))
    return LinearSystem(*discrete, dt=dt), natural, ratio


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("damper", [0.02, 0.3, 3.0])
def test_the_mode_of_a_damped_oscillator(damper, turned):
    system, natural, ratio = oscillator(2.0, damper, 5.0, 0.05)
    if turned:  # among others, so that LAPACK has to find it
        others = np.array([[0.3, 1.0], [0.0, -0.2]])
        rng = np.random.default_rng(0)
        A = scipy.linalg.block_diag(system.A, others)
        system = LinearSystem(A, rng.standard_normal((4, 1)), rng.standard_normal((1, 4)), [[0.0]], dt=0.05)
        system = system.in_coordinates(np.linalg.qr(rng.standard_normal((4, 4)))[0])
        assert not system.is_quasi_triangular
    mode = system.modes[0]
    assert mode.is_oscillating
    assert mode.eigenvalue.imag > 0
    assert mode.frequency_hz == pytest.approx(natural * np.sqrt(1 - ratio**2) / (2 * np.pi), rel=1e-11)
    assert mode.damping == pytest.approx(ratio, rel=1e-10)
    assert mode.time_constant_s == pytest.approx(1 / (ratio * natural), rel=1e-10)
    assert len(system.modes) == (3 if turned else 1)


def test_an_overdamped_oscillator_has_two_time_constants():
    system, _, ratio = oscillator(1.0, 5.0, 4.0, 0.1)  # -1 and -4
    slow, fast = system.modes
    assert slow.time_constant_s == pytest.approx(1.0, rel=1e-12)
    assert fast.time_constant_s == pytest.approx(0.25, rel=1e-12)
    assert ratio > 1
    for mode in (slow, fast):
        assert (mode.frequency_hz, mode.damping, mode.is_oscillating) == (0.0, 1.0, False)


def test_modes_of_special_eigenvalues():
    integrator, alternating, growing, dead = (modes_of(np.array([complex(z)]), 0.5)[0] for z in (1, -1, 2, 0))
    assert (integrator.frequency_hz, integrator.time_constant_s) == (0.0, np.inf)
    assert np.isnan(integrator.damping)
    assert not integrator.is_oscillating
    assert (alternating.frequency_hz, alternating.damping, alternating.time_constant_s) == (1.0, 0.0, np.inf)
    assert alternating.is_oscillating
    assert growing.time_constant_s == pytest.approx(-0.5 / np.log(2))
    assert growing.damping == -1.0
    assert (dead.frequency_hz, dead.damping, dead.time_constant_s, dead.is_oscillating) == (0.0, 1.0, 0.0, False)
    decaying = modes_of(np.array([-0.5 + 0j]), 0.5)[0]
    assert decaying.frequency_hz == 1.0  # every other sample
    assert decaying.time_constant_s == pytest.approx(0.5 / np.log(2))
    assert "Hz" in str(decaying)
    assert "Hz" not in str(growing)


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_modes_come_slowest_first_one_for_each_pair(dtype):
    system = random_system(9, dtype=dtype)
    moduli = [abs(mode.eigenvalue) for mode in system.modes]
    assert moduli == sorted(moduli, reverse=True)
    spectrum = [z for mode in system.modes for z in {mode.eigenvalue, mode.eigenvalue.conjugate()}]
    expected = np.linalg.eigvals(np.float64(system.A))
    np.testing.assert_allclose(np.sort_complex(spectrum), np.sort_complex(expected), rtol=0, atol=1e-12)


def test_modes_of_a_quasi_triangular_system_are_those_of_its_blocks():
    A = 0.99 * np.eye(12) + np.triu(np.full((12, 12), 1e6), 1)
    system = LinearSystem(A, np.ones((12, 1)), np.ones((1, 12)), [[0.0]])
    assert all(mode.eigenvalue == 0.99 for mode in system.modes)


# --- changes of coordinates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_coordinates_leave_the_response_alone(dtype):
    system, rng = random_system(dtype=dtype, dt=0.1), np.random.default_rng(1)
    system = LinearSystem(
        system.A, system.B, system.C, system.D, 0.1, Disc(0.95), input_names=tuple("abc"), output_names=tuple("pq")
    )
    V = rng.standard_normal((5, 5)).astype(dtype)
    moved = system.in_coordinates(V)
    assert moved.A.dtype == dtype
    assert (moved.dt, moved.region) == (0.1, Disc(0.95))
    assert (moved.input_names, moved.output_names) == (("a", "b", "c"), ("p", "q"))
    np.testing.assert_array_equal(moved.D, system.D)
    A, B, C, _ = doubles(system)
    exact = np.linalg.solve(np.float64(V), A @ V)
    terms = 100 * np.linalg.cond(V)  # a backward stable solve, amplified
    close(moved.A, exact, dtype, terms)
    close(moved.B, np.linalg.solve(np.float64(V), B), dtype, terms)
    close(moved.C, C @ V, dtype, terms)
    u, x0 = rng.standard_normal((100, 3)).astype(dtype), rng.standard_normal(5).astype(dtype)
    close(moved.simulate(u), system.simulate(u), dtype, 10 * terms)
    close(moved.simulate(u, np.linalg.solve(V, x0)), system.simulate(u, x0), dtype, 10 * terms)
    back = moved.in_coordinates(np.linalg.inv(V))
    close(back.A, system.A, dtype, terms * np.linalg.cond(V))


@pytest.mark.parametrize(
    ("V", "message"),
    [
        (np.ones((5, 5)), "V to be invertible"),
        (np.diag([1.0, 1.0, 1.0, 1.0, 1e-17]), "V to be invertible"),
        (np.zeros((5, 5)), "V to be invertible"),
        (np.eye(4), r"V to be of shape \(5, 5\)"),
        (np.eye(5, dtype="float32"), "V to be of shape .* and dtype float64"),
        (np.full((5, 5), np.nan), "V to be finite"),
        (np.ones((5, 4)), "V to be square"),
    ],
)
def test_bad_coordinates_are_refused(V, message):
    with pytest.raises(InvalidInputError, match=message):
        random_system().in_coordinates(V)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 12, 30])
def test_schur_coordinates_keep_the_response_and_are_proven(n, dtype):
    system = random_system(n, dtype=dtype, dt=0.1)
    V = np.linalg.qr(np.random.default_rng(n).standard_normal((n, n)))[0].astype(dtype)
    system = system.in_coordinates(V)
    form = system.in_schur_coordinates()
    assert form.A.dtype == form.B.dtype == form.C.dtype == dtype
    assert form.is_quasi_triangular
    assert pair_is_stable(form.A, Disc())
    certificate = form.certify()
    assert certificate.is_stable
    assert certificate.method == "blocks"
    assert certificate.verify(form.A)
    u = np.random.default_rng(0).standard_normal((100, 3)).astype(dtype)
    close(form.simulate(u), system.simulate(u), dtype)
    # the first-order change for relative perturbations of A, B and C by n eps
    f = np.linspace(0.0, 5.0, 40)
    z = np.exp(2j * np.pi * 0.1 * f)
    A, B, C, _ = doubles(system)
    resolvents = np.linalg.norm(np.linalg.inv(z[:, None, None] * np.eye(n) - A), 2, axis=(1, 2))
    size = np.linalg.norm(B, 2) * np.linalg.norm(C, 2) * resolvents.max() * (2 + resolvents.max() * np.linalg.norm(A))
    error = np.abs(form.frequency_response(f) - system.frequency_response(f)).max()
    assert error <= n * np.finfo(dtype).eps * size


def test_schur_coordinates_of_float32_are_rounded_once():
    Z = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0]
    A = (Z @ np.diag(np.geomspace(1e-4, 0.9, 8)) @ Z.T).astype("float32")
    A = np.tril(A) + np.tril(A, -1).T  # normal, so that eigenvalues differ by rounding errors alone
    system = LinearSystem(A, *(np.ones(s, "float32") for s in ((8, 1), (1, 8), (1, 1)))).in_schur_coordinates()
    values, expected = np.sort(system.A.diagonal()), np.linalg.eigvalsh(np.float64(A))
    np.testing.assert_allclose(values, expected, rtol=0.6 * np.finfo("float32").eps)


def test_a_proven_quasi_triangular_system_is_in_schur_coordinates():
    system = random_system(6, form="quasi-triangular")
    assert system.in_schur_coordinates() is system
    assert random_system(6).in_schur_coordinates().in_schur_coordinates().is_quasi_triangular
    assert LinearSystem(*SISO).in_schur_coordinates().A[0, 0] == 0.5


def test_a_proven_matrix_whose_factor_is_not_gets_the_nearest_blocks(monkeypatch):
    system = LinearSystem(np.full((3, 3), 0.3), np.ones((3, 1)), np.ones((1, 3)), [[0.0]])
    assert system.certify().is_stable
    schur = systems.real_schur(system.A)
    off = schur.T.copy()
    off[0, 0] = 1.0 + 1e-9  # as rounding can move an ill-conditioned eigenvalue
    monkeypatch.setattr(systems, "real_schur", lambda _: schur._replace(T=off))
    form = system.in_schur_coordinates()
    assert form.A[0, 0] == np.nextafter(1.0, 0.0)
    np.testing.assert_array_equal(form.A[:, 1:], off[:, 1:])
    assert form.certify().is_stable


def test_an_undecided_matrix_with_a_stable_factor_is_proven_in_schur_coordinates():
    rng = np.random.default_rng(3)
    T = 0.99 * np.eye(10) + np.triu(rng.standard_normal((10, 10)) * 100, 1)  # far from normal
    T[np.arange(0, 10, 2), np.arange(0, 10, 2)] = -0.5
    Z = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    outcomes = set()
    for shrink in np.linspace(0.2, 1.0, 17):
        system = LinearSystem(shrink * (Z @ T @ Z.T), np.ones((10, 1)), np.ones((1, 10)), [[0.0]])
        is_proven = system.certify().is_stable
        factor_is_stable = certify(systems.real_schur(system.A).T).is_stable
        outcomes.add((is_proven, factor_is_stable))
        if is_proven or factor_is_stable:
            assert system.in_schur_coordinates().certify().is_stable
        else:
            with pytest.raises(InvalidInputError, match="A to be proven stable"):
                system.in_schur_coordinates()
    assert outcomes >= {(True, True), (False, True), (False, False)}


@pytest.mark.parametrize(
    "A",
    [
        np.array([[1.0]]),
        np.array([[0.6, 0.8], [-0.8, 0.6]]),  # proven to lie on the circle or outside
        np.array([[0.5, 0.7, 0.1], [0.6, 0.5, 0.2], [0.3, 0.1, 0.5]]),
        np.array([[0.5, 0.0, 0.0], [1.0, 1.5, 0.0], [1.0, 1.0, 0.5]]),  # triangular after a permutation
    ],
)
def test_unstable_systems_have_no_schur_coordinates(A):
    n = len(A)
    system = LinearSystem(A, np.ones((n, 1)), np.ones((1, n)), [[0.0]])
    with pytest.raises(InvalidInputError, match=r"Expected A to be proven stable, .*schurfire.project_stable") as error:
        system.in_schur_coordinates()
    assert str(system.certify()) in str(error.value)
    pair = project_stable(A)  # what the message recommends
    stable = LinearSystem(pair.T, pair.Z.T @ system.B, system.C @ pair.Z, system.D)
    assert stable.in_schur_coordinates() is stable


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("region", [Disc(0.9000001), Disc(0.45, 0.5), Disc(3.0, -2.0)])
def test_the_region_is_kept(region, dtype):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4, 4))
    A = (region.centre * np.eye(4) + 0.9 * region.radius * A / np.linalg.norm(A, 2)).astype(dtype)
    system = LinearSystem(A, *(np.ones(s, dtype) for s in ((4, 1), (1, 4), (1, 1))), region=region)
    form = system.in_schur_coordinates()
    assert form.region == region
    assert form.certify().region == region
    assert pair_is_stable(form.A, region)
    outside = LinearSystem(A, system.B, system.C, system.D, region=Disc(1e-3))
    with pytest.raises(InvalidInputError, match=r"in \|z\| < 0.001"):
        outside.in_schur_coordinates()


# --- precision --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dense", "quasi-triangular"])
def test_astype_rounds_to_nearest_where_the_proof_survives(form):
    system = random_system(form=form, dt=0.1)
    single = system.astype("float32")
    for name in "ABCD":
        np.testing.assert_array_equal(getattr(single, name), getattr(system, name).astype("float32"))
    assert single.dt == 0.1
    assert single.certify().is_stable
    assert system.astype(np.float64) is system
    double = single.astype(float)
    np.testing.assert_array_equal(double.A, single.A)
    assert double.A.dtype == "float64"
    assert double.certify().is_stable


def test_astype_rounds_blocks_inward_where_it_must():
    c, s = np.cos(0.3), np.sin(0.3)
    A = np.zeros((5, 5))
    A[:2, :2] = (1 - 1e-12) * np.array([[c, s], [-s, c]])
    A[2, 2], A[3, 3], A[4, 4] = 1 - 1e-10, -1 + 1e-11, 0.5
    A[0, 2:] = 3.0
    system = LinearSystem(A, np.ones((5, 1)), np.ones((1, 5)), [[0.0]])
    assert system.certify().is_stable
    plain = A.astype("float32")
    assert not pair_is_stable(plain, Disc())
    single = system.astype("float32")
    assert pair_is_stable(single.A, Disc())
    np.testing.assert_allclose(single.A, A, rtol=0, atol=200 * np.finfo("float32").eps)
    assert single.A[4, 4] == np.float32(0.5)
    np.testing.assert_array_equal(single.A[0, 2:], plain[0, 2:])


def test_astype_never_loses_a_proof_silently():
    Z = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    A = Z @ np.diag([1 - 1e-9, 0.5, -0.5]) @ Z.T
    system = LinearSystem(A, np.ones((3, 1)), np.ones((1, 3)), [[0.0]])
    assert system.certify().is_stable
    with pytest.raises(InvalidInputError, match=r"A to be proven stable in float32, .*in_schur_coordinates"):
        system.astype("float32")
    single = system.in_schur_coordinates().astype("float32")  # what the message recommends
    assert single.certify().is_stable
    unstable = LinearSystem(2 * A, system.B, system.C, system.D)
    np.testing.assert_array_equal(unstable.astype("float32").A, (2 * A).astype("float32"))


def test_schur_coordinates_of_a_float32_system_near_the_boundary_are_proven():
    Z = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    for gap in (1e-4, 1e-6, 3e-7, 1e-7):
        A = (Z @ np.diag([1 - gap, 0.5, -0.5]) @ Z.T).astype("float32")
        system = LinearSystem(A, *(np.ones(s, "float32") for s in ((3, 1), (1, 3), (1, 1))))
        if system.certify().is_stable:
            form = system.in_schur_coordinates()
            assert form.A.dtype == "float32"
            assert pair_is_stable(form.A, Disc())
        else:
            assert gap < 1e-6


@pytest.mark.parametrize("dtype", ["float16", "complex128", "int32", int, None, "number"])
def test_astype_refuses_other_types(dtype):
    with pytest.raises(InvalidInputError, match="dtype to be float32 or float64"):
        LinearSystem(*SISO).astype(dtype)


def test_astype_refuses_to_overflow():
    huge = LinearSystem(SISO[0], [[1e300]], *SISO[2:])
    with pytest.raises(InvalidInputError, match="B to be finite"):
        huge.astype("float32")


# --- proofs -----------------------------------------------------------------------------------------------------------


def test_certify_is_the_public_function():
    system = LinearSystem(*SISO, region=Disc(0.75))
    assert str(system.certify()) == str(certify(system.A, Disc(0.75)))
    assert not LinearSystem(*SISO, region=Disc(0.5)).certify().is_stable


def test_a_verdict_does_not_listen_to_computed_eigenvalues():
    # similar to a Jordan block without any rounding: a triple eigenvalue of 1, computed on either side of the circle
    for seed in range(8):
        A = similar(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]), np.random.default_rng(seed), 8)
        assert not LinearSystem(A, np.ones((3, 1)), np.ones((1, 3)), [[0.0]]).certify().is_stable
    jordan = 0.99 * np.eye(12) + np.diag(np.ones(11), 1)
    system = LinearSystem(jordan, np.ones((12, 1)), np.ones((1, 12)), [[0.0]])
    Z = np.linalg.qr(np.random.default_rng(0).standard_normal((12, 12)))[0]
    turned = system.in_coordinates(Z)
    assert max(abs(mode.eigenvalue) for mode in turned.modes) > 1  # measured
    assert system.certify().is_stable  # proven
    assert not turned.certify().is_stable
    assert "proven exactly" in str(system)
    assert "not proven" in str(turned)


def test_the_summary_is_short_and_complete():
    text = str(oscillator(2.0, 0.3, 5.0, 0.05)[0])
    lines = text.splitlines()
    assert lines[0] == "LinearSystem: 2 states, 1 input, 1 output, float64, dt = 0.05 s"
    assert [line.split("  ")[1] for line in lines[1:]] == ["radius", "slowest mode", "proof"]
    assert "0.996257 (of the diagonal blocks)" in lines[1]
    assert "0.2514 Hz, damping 0.0474, time constant 13.33 s" in lines[2]
    assert "proof         stable: both eigenvalues in |z| < 1" in lines[3]
    dense = str(random_system(4, dtype="float32"))
    assert "4 states, 3 inputs, 2 outputs, float32, dt = 1 s" in dense
    assert "0.9 (as LAPACK measures it)" in dense
