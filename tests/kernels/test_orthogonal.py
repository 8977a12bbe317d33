"""The nearest orthogonal matrix: optimality, orthogonality, singular input, and the two iterations' algebra."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg

from schurfire.errors import InvalidInputError, NotConvergedError
from schurfire.kernels import orthogonal
from schurfire.kernels.orthogonal import nearest_orthogonal, newton_schulz, orthogonal_step, polar_sherif

METHODS = ("newton-schulz", "svd", "eigh", "sherif")
DTYPES = ("float32", "float64")


def random_orthogonal(rng, n):
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def with_singular_values(rng, values):
    n = len(values)
    return random_orthogonal(rng, n) * values @ random_orthogonal(rng, n)


def orthogonality_error(Q):
    Q = np.asarray(Q, dtype="float64")
    return np.linalg.norm(np.swapaxes(Q, -1, -2) @ Q - np.eye(Q.shape[-1]))


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 30])
def test_agrees_with_the_polar_decomposition_of_scipy(method, n, dtype, rng):
    Z = with_singular_values(rng, np.geomspace(0.2, 3.0, n)).astype(dtype)
    Q = nearest_orthogonal(Z, method)
    expected = scipy.linalg.polar(Z.astype("float64"))[0]
    assert Q.dtype == dtype
    assert isinstance(Q, np.ndarray)
    assert np.linalg.norm(Q - expected) <= 100 * n * np.finfo(dtype).eps  # cond = 15, its square for Z^T Z


@pytest.mark.parametrize("method", METHODS)
def test_no_other_orthogonal_matrix_is_closer(method, rng):
    Z = rng.standard_normal((4, 4))
    best = np.linalg.norm(Z - nearest_orthogonal(Z, method))
    Q = nearest_orthogonal(Z, method)
    for size in (1e-3, 1e-2, 1e-1, 10.0):
        for _ in range(100):
            S = rng.standard_normal((4, 4)) * size
            assert np.linalg.norm(Z - Q @ scipy.linalg.expm(S - S.T)) >= best
            assert np.linalg.norm(Z - random_orthogonal(rng, 4)) >= best


@pytest.mark.parametrize(("dtype", "digits"), [("float32", 6), ("float64", 14)])
def test_newton_schulz_is_as_orthogonal_as_the_svd_at_every_condition(dtype, digits, rng):
    eps = np.finfo(dtype).eps
    for exponent in range(digits + 1):
        Z = with_singular_values(rng, np.geomspace(1.0, 10.0**-exponent, 12)).astype(dtype)
        Q = nearest_orthogonal(Z)
        distance = np.linalg.norm(Z - Q.astype("float64"))
        least = np.linalg.norm(1 - np.linalg.svd(Z.astype("float64"))[1])
        assert orthogonality_error(Q) <= 12 * eps
        assert orthogonality_error(Q) <= max(orthogonality_error(nearest_orthogonal(Z, "svd")), 4 * eps)
        assert distance <= least + 12 * eps


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["eigh", "sherif"])
def test_methods_on_the_gram_matrix_lose_the_square_of_the_condition(method, dtype, rng):
    for condition in (1.0, 10.0, 100.0):
        Z = with_singular_values(rng, np.geomspace(1.0, 1 / condition, 12)).astype(dtype)
        assert orthogonality_error(nearest_orthogonal(Z, method)) <= 4 * 12 * np.finfo(dtype).eps * condition**2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("dtype", "exponents"), [("float32", (-35, -15, 15, 35)), ("float64", (-300, -150, 150, 300))])
def test_scaling_does_not_matter(method, dtype, exponents, rng):
    Z = with_singular_values(rng, np.geomspace(0.5, 1.5, 6)).astype(dtype)
    Q = nearest_orthogonal(Z, method)
    for exponent in exponents:
        scaled = Z * np.asarray(10.0**exponent, dtype)
        np.testing.assert_allclose(nearest_orthogonal(scaled, method), Q, atol=60 * np.finfo(dtype).eps, rtol=0)


@pytest.mark.parametrize("method", METHODS)
def test_turns_with_its_argument(method, rng):
    Z, U = with_singular_values(rng, np.linspace(0.5, 2.0, 7)), random_orthogonal(rng, 7)
    Q = nearest_orthogonal(Z, method)
    for other, expected in ((U @ Z, U @ Q), (Z @ U, Q @ U), (Z.T, Q.T), (-Z, -Q)):
        np.testing.assert_allclose(nearest_orthogonal(other, method), expected, atol=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_orthogonal_matrices_are_fixed_points(method):
    rotation = np.array([[0.6, -0.8], [0.8, 0.6]])
    reflection = np.array([[0.0, 1.0], [1.0, 0.0]])
    for Z in (np.eye(3), -np.eye(4), rotation, reflection, np.array([[-1.0]])):
        for scale in (1.0, 0.01, 7.0):
            np.testing.assert_allclose(nearest_orthogonal(scale * Z, method), Z, atol=4e-16)


def test_newton_schulz_returns_signed_permutations_exactly():
    Z = np.eye(5)[[2, 0, 1, 4, 3]] * np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    assert np.array_equal(nearest_orthogonal(Z), Z)
    assert np.array_equal(nearest_orthogonal(8 * Z), Z)


@pytest.mark.parametrize("method", METHODS)
def test_the_empty_matrix_is_orthogonal(method):
    assert nearest_orthogonal(np.empty((0, 0)), method).shape == (0, 0)
    assert nearest_orthogonal(np.empty((3, 0, 0), "float32"), method).shape == (3, 0, 0)


@pytest.mark.parametrize("method", METHODS)
def test_a_stack_is_treated_one_by_one(method, rng):
    Z = rng.standard_normal((2, 3, 6, 6))
    Z[0, 1] = random_orthogonal(rng, 6) + 1e-4 * rng.standard_normal((6, 6))
    Q = nearest_orthogonal(Z, method)
    for index in np.ndindex(2, 3):
        np.testing.assert_allclose(Q[index], nearest_orthogonal(Z[index], method), atol=1e-13)


SINGULAR = {
    "zero": np.zeros((3, 3)),
    "rank one": np.full((10, 10), 2.0),
    "a zero column": np.diag([3.0, 1.0, 0.0]),
    "the zero number": np.zeros((1, 1)),
}


@pytest.mark.parametrize("Z", SINGULAR.values(), ids=SINGULAR.keys())
@pytest.mark.parametrize("method", ["newton-schulz", "eigh", "sherif"])
def test_singular_matrices_are_reported(method, Z):
    with pytest.raises(NotConvergedError, match=r"1 of 2 matrices.*method='svd'"):
        nearest_orthogonal(np.stack([np.eye(len(Z)), Z]), method)


@pytest.mark.parametrize("Z", SINGULAR.values(), ids=SINGULAR.keys())
def test_svd_returns_one_of_the_nearest_to_a_singular_matrix(Z):
    Q = nearest_orthogonal(Z, "svd")
    assert orthogonality_error(Q) <= 1e-14
    least = np.sqrt(np.sum((1 - np.linalg.svd(Z)[1]) ** 2))
    assert np.linalg.norm(Z - Q) == pytest.approx(least, rel=1e-14)


@pytest.mark.parametrize("method", ["newton-schulz", "eigh", "sherif"])
def test_a_kernel_flags_each_matrix_of_a_stack(method):
    Z = np.stack([np.eye(2), np.diag([1.0, 0.0]), 2 * np.eye(2)])
    assert orthogonal._METHODS[method](Z).converged.tolist() == [True, False, True]


def test_nan_is_not_converged():
    Z = np.stack([np.full((2, 2), np.nan), np.eye(2)])
    assert newton_schulz(Z).converged.tolist() == [False, True]
    assert polar_sherif(Z).converged.tolist() == [False, True]


@pytest.mark.parametrize("method", METHODS)
def test_tensors_eager_and_traced(method, rng):
    jax = pytest.importorskip("jax")
    Z = np.stack([with_singular_values(rng, np.linspace(0.5, 2.0, 5)) for _ in range(3)]).astype("float32")
    tensor = jax.numpy.asarray(Z)
    traces = []

    @jax.jit
    def traced(Z):
        traces.append(1)
        return nearest_orthogonal(Z, method)

    expected = nearest_orthogonal(Z, method)
    for Q in (nearest_orthogonal(tensor, method), traced(tensor), traced(tensor + 0)):
        assert isinstance(Q, jax.Array)
        assert Q.dtype == "float32"
        np.testing.assert_allclose(Q, expected, atol=5e-6)
    assert len(traces) == 1


@pytest.mark.parametrize("method", METHODS)
def test_tensors_of_double_precision(method, rng):
    jax = pytest.importorskip("jax")
    Z = with_singular_values(rng, np.linspace(0.5, 2.0, 5))
    with jax.enable_x64(True):
        Q = nearest_orthogonal(jax.numpy.asarray(Z), method)
        assert Q.dtype == "float64"
        np.testing.assert_allclose(Q, nearest_orthogonal(Z, method), atol=1e-13)


def test_a_singular_matrix_is_nan_inside_jit_and_an_error_outside():
    jax = pytest.importorskip("jax")
    Z = jax.numpy.stack([jax.numpy.eye(2), jax.numpy.zeros((2, 2))])
    Q = np.asarray(jax.jit(nearest_orthogonal)(Z))
    assert np.array_equal(Q[0], np.eye(2))
    assert np.isnan(Q[1]).all()
    with pytest.raises(NotConvergedError, match="1 of 2"):
        nearest_orthogonal(Z)


@pytest.mark.parametrize(
    ("Z", "message"),
    [
        (np.ones((2, 3)), r"Expected Z to be square.*\(2, 3\)"),
        (np.ones(4), "Expected Z to be square"),
        (np.ones((2, 2), int), "float32 or float64.*int64"),
        (np.array([[1.0, np.nan], [0.0, 1.0]]), "Expected Z to be finite"),
        (np.empty((0, 2, 2)), "at least one matrix"),
    ],
)
def test_bad_matrices_are_refused(Z, message):
    with pytest.raises(InvalidInputError, match=message):
        nearest_orthogonal(Z)


def test_an_unknown_method_is_refused():
    with pytest.raises(
        InvalidInputError, match="method to be one of 'newton-schulz', 'svd', 'eigh', 'sherif', received 'qr'"
    ):
        nearest_orthogonal(np.eye(2), "qr")


def test_the_step_is_the_polynomial_of_the_gram_matrix(rng):
    Z = rng.standard_normal((6, 6)) / 3
    G = Z.T @ Z
    np.testing.assert_allclose(orthogonal_step(Z), Z @ (15 * np.eye(6) - 10 * G + 3 * G @ G) / 8, atol=1e-14)


def test_what_a_step_leaves_is_the_stated_polynomial():
    for e in (Fraction(k, 13) for k in range(-12, 13)):  # 25 points determine both polynomials of degree 5
        left = 1 - (1 - e) * (1 + e / 2 + 3 * e**2 / 8) ** 2
        assert left == 5 * e**3 / 8 + 15 * e**4 / 64 + 9 * e**5 / 64


def test_the_opening_steps_map_the_stated_intervals():
    def polynomial(coefficients, s):
        a, b, c = coefficients
        e = 1 - s * s
        return s * (a + b * e + c * e * e)

    *widening, joining = orthogonal._OPENING
    s = np.linspace(0.064, 1.0, 20001)
    for coefficients in widening:
        assert polynomial(coefficients, s).min() >= 0.25
        assert polynomial(coefficients, s).max() <= 1.0001
        assert polynomial(coefficients, 1e-9) == pytest.approx(4e-9)
    joined = polynomial(joining, np.linspace(0.25, 1.0001, 20001))
    assert joined.min() >= 0.84
    assert joined.max() <= 1.16
    tiny = s = np.geomspace(1e-12, 1.0, 200001)
    for coefficients in orthogonal._OPENING:
        s = polynomial(coefficients, s)
    assert np.all((s[tiny >= 0.001] >= 0.84) & (s[tiny >= 0.001] <= 1.16))
    assert np.all((s[tiny < 0.001] > 0) & (s[tiny < 0.001] <= 1.16))
    assert s[0] / tiny[0] == pytest.approx(orthogonal._OPENING_GAIN)


@pytest.mark.parametrize(("dtype", "most"), [("float32", 1), ("float64", 2)])
def test_a_nearly_orthogonal_matrix_takes_few_steps(dtype, most, rng, monkeypatch):
    gram, calls = orthogonal._gram, []
    monkeypatch.setattr(orthogonal, "_gram", lambda Z: calls.append(1) or gram(Z))
    for n in (5, 40, 100):
        Z = random_orthogonal(rng, n) + 1e-3 / np.sqrt(n) * rng.standard_normal((n, n))
        calls.clear()
        nearest_orthogonal(Z.astype(dtype))
        assert len(calls) <= most


def test_two_steps_make_a_nearly_orthogonal_factor_orthogonal(rng):
    Z = random_orthogonal(rng, 20) + 1e-4 * rng.standard_normal((20, 20))
    assert orthogonality_error(orthogonal_step(orthogonal_step(Z))) <= 20 * np.finfo("float64").eps


def test_the_recursion_of_the_inverse_square_root_keeps_its_invariant_exactly():
    """``X Y^2 = (1 - E) / (1 + E)`` in rational numbers, if ``E <- E^2 / (2 - E^2)``; a product in its place fails."""
    for X in (Fraction(1, 7), Fraction(3, 5), Fraction(9, 4), Fraction(11)):
        Y, E = Fraction(1), (1 - X) / (1 + X)
        for _ in range(5):
            assert X * Y**2 == (1 - E) / (1 + E)
            Y, E, product = Y * (1 + E), E**2 / (2 - E**2), E**2 * (2 - E**2)
            assert (1 - product) / (1 + product) != X * Y**2
        assert abs(float(Y) * float(X) ** 0.5 - 1) < 1e-3


def test_sherif_s_stop_follows_the_matrix_not_its_order(rng, monkeypatch):
    frobenius, calls = orthogonal._frobenius, []
    monkeypatch.setattr(orthogonal, "_frobenius", lambda X: calls.append(1) or frobenius(X))
    for n, condition, most in ((40, 1.5, 6), (5, 1e4, 21)):
        calls.clear()
        polar_sherif(with_singular_values(rng, np.geomspace(1.0, condition, n)))
        assert len(calls) <= most
