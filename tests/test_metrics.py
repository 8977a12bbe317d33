"""The figures of merit against their definitions, brute force and exact arithmetic."""

import itertools

import mpmath
import numpy as np
import pytest

from schurfire.errors import InvalidInputError
from schurfire.metrics import fit_percent, msvr, nmse, nsfe, nssr, spectrum_of_blocks


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_nsfe_is_the_relative_squared_distance(rng):
    A, X = rng.standard_normal((2, 5, 5))
    assert nsfe(A, X) == pytest.approx(np.sum((A - X) ** 2) / np.sum(A**2), rel=1e-14)
    assert nsfe(A, A) == 0.0
    assert nsfe(A, 0 * A) == pytest.approx(1.0, rel=1e-15)
    assert isinstance(nsfe(A, X), float)


def test_nsfe_of_a_stack_is_that_of_each_matrix(rng):
    A, X = rng.standard_normal((2, 3, 2, 4, 4))
    expected = [[nsfe(A[i, j], X[i, j]) for j in range(2)] for i in range(3)]
    np.testing.assert_array_equal(nsfe(A, X), expected)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_nsfe_does_not_overflow(scale, rng):
    A, X = rng.standard_normal((2, 3, 3))
    assert nsfe(A * scale, X * scale) == pytest.approx(nsfe(A, X), rel=1e-13)
    assert nsfe(A, A + 1e-160) < 1e-300


def test_float32_is_measured_in_float64(rng):
    A = rng.standard_normal((6, 6)).astype("float32")
    X = A * np.float32(1 + 1e-6)
    exact = np.sum((A.astype(float) - X.astype(float)) ** 2) / np.sum(A.astype(float) ** 2)
    assert nsfe(A, X) == pytest.approx(exact, rel=1e-14)


def test_nssr_is_the_best_of_all_pairings(rng):
    for n in (1, 2, 3, 5):
        A, X = rng.standard_normal((2, n, n))
        a, x = np.linalg.eigvals(A), np.linalg.eigvals(X)
        best = min(sum(abs(x[p] - a) ** 2) for p in map(list, itertools.permutations(range(n))))
        assert nssr(A, X) == pytest.approx(best / sum(abs(a) ** 2), rel=1e-10)


def test_nssr_depends_on_the_eigenvalues_alone(rng):
    A = rng.standard_normal((6, 6))
    S = rng.standard_normal((6, 6))
    assert nssr(A, np.linalg.solve(S, A @ S)) < 1e-24
    assert nssr(A, np.linalg.eigvals(A)[::-1]) < 1e-28
    assert nssr([1.0, 2.0], [2.0, 1.0]) == 0.0
    assert nssr([1j, -1j], [0.0, 0.0]) == 1.0
    assert nssr(np.array([1e200, 0.0]), np.array([0.0, 0.0])) == 1.0


def test_nssr_refuses_what_has_no_scale():
    with pytest.raises(InvalidInputError, match="eigenvalue other than 0"):
        nssr(np.zeros((2, 2)), np.eye(2))
    with pytest.raises(InvalidInputError, match="of one shape"):
        nssr(np.eye(2), np.eye(3))


def test_msvr_is_the_mean_squared_excess():
    x = np.array([2.0, -1.5, 3j, 0.5, 1.0])
    assert msvr(x) == pytest.approx((1.0 + 0.25 + 4.0) / 5)
    assert msvr(x, radius=2.5) == pytest.approx(0.25 / 5)
    assert msvr(np.diag([2.0, 0.1])) == pytest.approx(0.5)
    assert msvr(0.5 * np.eye(3)) == 0.0


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, np.inf])
def test_msvr_needs_a_radius(radius):
    with pytest.raises(InvalidInputError, match="Expected radius to be positive"):
        msvr(np.eye(2), radius)


def test_spectrum_of_blocks_is_right_to_the_last_digits(rng):
    blocks = [rng.standard_normal((2, 2)) for _ in range(200)]
    blocks += [np.array([[1.0, b], [c, 1.0]]) for b in (1e8, -1e-8, 3.0) for c in (1e-9, -1e-9, -2.0)]
    blocks += [np.array([[1 + 1e-9, 1.0], [-2.4999e-19, 1.0]]), np.array([[0.0, 1e300], [-1e-300, 0.0]])]
    blocks += [np.array([[0.0, 1e250], [1e200, 0.0]]), np.array([[1.0, 1.0], [1e-17, -1.0]])]
    with mpmath.workdps(60):
        for block in blocks:
            a, b, c, d = (mpmath.mpf(float(x)) for x in block.ravel())
            root = mpmath.sqrt((a - d) ** 2 / 4 + b * c)
            exact = [(a + d) / 2 + root, (a + d) / 2 - root]
            ours = [mpmath.mpc(z) for z in spectrum_of_blocks(block)]
            error = min(max(abs(ours[i] - exact[0]), abs(ours[1 - i] - exact[1])) for i in (0, 1))
            assert error <= 4 * np.finfo(float).eps * max(map(abs, exact))


def test_spectrum_of_blocks_reads_the_diagonal_in_order(rng):
    T = np.triu(rng.standard_normal((6, 6)))
    T[2, 1], T[1, 2] = -1.0, 4.0
    T[5, 4], T[4, 5] = 0.25, 1.0
    spectrum = spectrum_of_blocks(T.astype("float32"))
    assert spectrum.dtype == "complex128"
    assert spectrum[0] == np.float32(T[0, 0])
    assert spectrum[3] == np.float32(T[3, 3])
    assert spectrum[1] == spectrum[2].conjugate()
    assert spectrum[1].imag > 0
    np.testing.assert_allclose(np.sort_complex(spectrum), np.sort_complex(np.linalg.eigvals(T)), rtol=1e-6)
    assert spectrum_of_blocks(np.empty((0, 0))).shape == (0,)


def test_spectrum_of_blocks_does_not_see_how_far_from_normal_a_matrix_is():
    T = 0.99 * np.eye(12) + np.triu(np.full((12, 12), 1e6), 1)
    assert np.array_equal(spectrum_of_blocks(T), np.full(12, 0.99 + 0j))


@pytest.mark.parametrize(
    "T", [np.tril(np.ones((3, 3))), np.eye(4) + np.diag([1e-300, 1e-300, 0.0], -1), np.ones((3, 3))]
)
def test_spectrum_of_blocks_refuses_other_matrices(T):
    with pytest.raises(InvalidInputError, match="exactly quasi-triangular"):
        spectrum_of_blocks(T)


def test_nmse_is_relative_to_each_channel_s_variation(rng):
    y = rng.standard_normal((50, 3)) * [1.0, 100.0, 1e-3] + [5.0, 0.0, -2.0]
    y_hat = y + 0.1 * np.std(y, axis=0)
    np.testing.assert_allclose(nmse(y, y_hat), 0.01, rtol=1e-10)
    np.testing.assert_allclose(nmse(y, np.broadcast_to(y.mean(axis=0), y.shape)), 1.0, rtol=1e-12)
    np.testing.assert_allclose(fit_percent(y, y_hat), 90.0, rtol=1e-10)
    np.testing.assert_array_equal(fit_percent(y, y), 100.0)


def test_nmse_pools_the_sequences(rng):
    y, y_hat = rng.standard_normal((2, 4, 30, 2))
    np.testing.assert_allclose(nmse(y, y_hat), nmse(y.reshape(120, 2), y_hat.reshape(120, 2)), rtol=1e-13)
    assert nmse(y[0, :, 1], y_hat[0, :, 1]) == pytest.approx(nmse(y[0], y_hat[0])[1], rel=1e-13)
    assert isinstance(nmse(y[0, :, 1], y_hat[0, :, 1]), float)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e12])
def test_nmse_refuses_a_constant_channel(constant, rng):
    y = rng.standard_normal((20, 2))
    y[:, 1] = constant
    with pytest.raises(InvalidInputError, match="constant channel 1"):
        nmse(y, y)
    with pytest.raises(InvalidInputError, match="constant channel 0"):
        fit_percent(y[:, 1], y[:, 1])


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (lambda: nsfe(np.zeros((2, 2)), np.eye(2)), "nowhere the zero matrix"),
        (lambda: nsfe(np.stack([np.eye(2), np.zeros((2, 2))]), np.ones((2, 2, 2))), "nowhere the zero matrix"),
        (lambda: nsfe(np.eye(2), np.eye(3)), "of one shape"),
        (lambda: nsfe(np.ones((2, 3)), np.ones((2, 3))), "square"),
        (lambda: nssr(np.array([1.0, np.nan]), np.ones(2)), "finite"),
        (lambda: msvr(np.empty((0, 0))), "at least one eigenvalue"),
        (lambda: msvr(np.eye(2, dtype=int)), "float32 or float64"),
        (lambda: nmse(np.ones((3, 2)), np.ones((2, 3))), "of one shape"),
        (lambda: nmse(np.empty((0, 2)), np.empty((0, 2))), "at least one sample"),
        (lambda: nmse(np.array([1.0, np.inf]), np.ones(2)), "finite"),
    ],
)
def test_bad_input_is_refused(measure, message):
    with pytest.raises(InvalidInputError, match=message):
        measure()


def test_tensors_are_accepted(rng):
    jax = pytest.importorskip("jax")
    A = rng.standard_normal((3, 3)).astype("float32")
    assert nsfe(jax.numpy.asarray(A), 0 * A) == pytest.approx(1.0)
    assert nssr(jax.numpy.asarray(A), A) < 1e-10
