"""Test signals against the statistics and spectra that define them."""

import math

import numpy as np
import pytest

from schurfire.data import add_noise, crest_factor, gbn, multisine, schroeder_multisine
from schurfire.errors import InvalidInputError

N = 200_000


@pytest.mark.parametrize("p", [0.02, 0.1, 0.5, 0.9])
def test_gbn_switches_as_often_as_it_says(p):
    u = gbn(N, 1, p, seed=1).ravel()
    switches = np.count_nonzero(u[1:] != u[:-1])
    assert abs(switches - p * (N - 1)) < 5 * math.sqrt(N * p * (1 - p))  # five deviations of a binomial count
    runs = np.diff(np.flatnonzero(u[1:] != u[:-1]))
    # A run's length is geometric: mean 1 / p, variance (1 - p) / p^2.
    assert abs(runs.mean() - 1 / p) < 5 * math.sqrt((1 - p) / p**2 / len(runs))


@pytest.mark.parametrize("p", [0.1, 0.3, 0.8])
def test_gbn_has_the_autocorrelation_of_its_formula(p):
    u = gbn(N, 1, p, seed=2).ravel()
    rho = 1 - 2 * p
    # Products at lag k have an autocorrelation no slower than rho^2 per step: so many samples are independent.
    deviation = math.sqrt((1 + rho**2) / (1 - rho**2) / N)
    for k in range(1, 8):
        assert abs(np.mean(u[k:] * u[:-k]) - rho**k) < 5 * deviation


def test_gbn_starts_at_even_odds():
    starts = gbn(1, 1, 0.01, sequences=10_000, seed=3).ravel()
    assert abs(starts.sum()) < 5 * 100
    assert set(starts) == {-1.0, 1.0}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gbn_values_and_shapes(dtype):
    u = gbn(50, 3, amplitude=2.5, seed=0, sequences=4, dtype=dtype)
    assert u.shape == (4, 50, 3)
    assert u.dtype == dtype
    assert set(np.unique(u)) == {-2.5, 2.5}
    assert gbn(50, 3, seed=0).shape == (50, 3)
    assert np.array_equal(gbn(50, 3, seed=0, dtype=dtype), gbn(50, 3, seed=0).astype(dtype))
    always = gbn(6, 2, 1.0, seed=0)
    assert np.array_equal(always[1:], -always[:-1])
    never = gbn(6, 2, 0.0, seed=0)
    assert np.array_equal(never[1:], never[:-1])


@pytest.mark.parametrize(
    "make",
    [
        lambda seed, n: gbn(n, 3, 0.5, sequences=2, seed=seed),
        lambda seed, n: multisine(n, 3, n // 2 - 1, sequences=2, seed=seed),
        lambda seed, n: add_noise(np.zeros((2, n, 3)), 1.0, seed=seed),
    ],
    ids=["gbn", "multisine", "noise"],
)
def test_channels_sequences_and_seeds_are_independent(make):
    n = 4096
    channels = np.concatenate([make(seed, n) for seed in range(3)]).swapaxes(1, 2).reshape(18, n)
    correlation = channels @ channels.T / n
    np.testing.assert_allclose(np.diag(correlation), 1.0, atol=0.15)
    assert np.abs(correlation - np.diag(np.diag(correlation))).max() < 5 / math.sqrt(n)


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: gbn(30, 2, seed=seed),
        lambda seed: multisine(30, 2, 5, seed=seed),
        lambda seed: add_noise(np.zeros((30, 2)), 1.0, seed=seed),
    ],
    ids=["gbn", "multisine", "noise"],
)
def test_a_seed_gives_the_same_numbers_and_a_generator_goes_on(make):
    assert np.array_equal(make(7), make(7))
    assert not np.array_equal(make(7), make(8))
    rng = np.random.default_rng(7)
    first, second = make(rng), make(rng)
    assert np.array_equal(first, make(np.int64(7)))
    assert not np.array_equal(first, second)
    for seed in (None, -1, 1.5, True, "a"):
        with pytest.raises(InvalidInputError, match="seed to be an integer of at least 0 or a"):
            make(seed)


@pytest.mark.parametrize("samples", [63, 64, 1000])
@pytest.mark.parametrize("lines", [[1], [2, 5, 11, 31], 20, np.arange(1, 31, 2)])
@pytest.mark.parametrize("schroeder", [False, True])
def test_a_multisine_has_its_lines_alone(samples, lines, schroeder):
    make = schroeder_multisine if schroeder else multisine
    u = make(samples, 2, lines, amplitude=3.0, **({} if schroeder else {"seed": 4}))
    harmonics = np.arange(1, lines + 1) if isinstance(lines, int) else np.asarray(lines)
    size = np.abs(np.fft.rfft(u, axis=0)) / samples
    expected = np.zeros(samples // 2 + 1)
    expected[harmonics] = 3.0 / math.sqrt(2 * len(harmonics))  # half of each cosine's amplitude
    np.testing.assert_allclose(size, np.broadcast_to(expected[:, None], size.shape), atol=1e-14)
    np.testing.assert_allclose(np.sqrt(np.mean(u**2, axis=0)), 3.0, rtol=1e-13)


def test_a_multisine_is_the_sum_that_its_docstring_states():
    u = multisine(40, 1, [3, 8], amplitude=2.0, seed=5).ravel()
    phases = np.random.default_rng(5).uniform(0, 2 * math.pi, (2, 1)).ravel()
    t = np.arange(40)
    expected = sum(2.0 * np.cos(2 * math.pi * k * t / 40 + phi) for k, phi in zip((3, 8), phases, strict=True))
    np.testing.assert_allclose(u, expected, atol=1e-13)


def test_multisine_shapes_and_dtype():
    u = multisine(30, 2, 4, sequences=3, seed=0, dtype="float32")
    assert u.shape == (3, 30, 2)
    assert u.dtype == np.float32
    assert not np.allclose(u[0], u[1])


def test_schroeder_phases_keep_peaks_low():
    low = crest_factor(schroeder_multisine(1024, 3, 200))
    random = crest_factor(multisine(1024, 3, 200, seed=0))
    assert low.max() < 1.8
    assert random.min() > 2.2
    u = schroeder_multisine(1024, 4, 200)
    for c in range(4):
        np.testing.assert_allclose(u[:, c], np.roll(u[:, 0], 256 * c), atol=1e-12)


def test_crest_factors_that_are_known():
    t = np.arange(64)
    sine = np.cos(2 * math.pi * t / 64)
    u = np.stack([np.sign(sine + 0.01), sine, (t == 5).astype(float)], axis=-1)
    np.testing.assert_allclose(crest_factor(u), [1, math.sqrt(2), 8], rtol=1e-14)
    np.testing.assert_allclose(crest_factor(1e-200 * np.stack([u, 2 * u])), [[1, math.sqrt(2), 8]] * 2, rtol=1e-14)
    for bad in (np.zeros((5, 1)), np.ones(5), np.ones((0, 1))):
        with pytest.raises(InvalidInputError, match="u to be"):
            crest_factor(bad)


def test_noise_has_its_scale():
    y = np.broadcast_to(np.arange(3.0), (4, N // 4, 3))
    noise = add_noise(y, [0.1, 0.0, 2.0], seed=6) - y
    # The variance of N squared normals: a relative deviation of sqrt(2 / N).
    np.testing.assert_allclose(noise[..., [0, 2]].var(axis=(0, 1)), [0.01, 4.0], rtol=5 * math.sqrt(2 / N))
    assert np.array_equal(noise[..., 1], np.zeros((4, N // 4)))
    assert abs(noise[..., 2].mean()) < 5 * 2.0 / math.sqrt(N)
    white = noise[0, :, 2]
    assert abs(np.mean(white[1:] * white[:-1])) < 5 * 4.0 / math.sqrt(N // 4)
    assert abs(np.mean(noise[..., 2] ** 4) / 16 - 3) < 5 * math.sqrt(96 / N)  # kurtosis of a normal distribution


def test_noise_has_its_ratio_to_the_signal():
    y = np.array([1.0, 100.0]) * (7 + np.sin(np.arange(N))[:, None])
    noise = add_noise(y, snr_db=20.0, seed=7) - y
    np.testing.assert_allclose(y.var(axis=0) / noise.var(axis=0), 100.0, rtol=5 * math.sqrt(2 / N))


def test_noise_keeps_the_precision_and_the_argument():
    y = np.ones((5, 2), "float32")
    noisy = add_noise(y, 0.5, seed=0)
    assert noisy.dtype == np.float32
    assert (y == 1).all()
    np.testing.assert_allclose(noisy, add_noise(y.astype(float), 0.5, seed=0), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gbn(0, 1, seed=0), "samples to be an integer of at least 1, received 0"),
        (lambda: gbn(5, 1.0, seed=0), "channels to be an integer of at least 1"),
        (lambda: gbn(5, 1, seed=0, sequences=0), "sequences to be an integer of at least 1"),
        (lambda: gbn(5, 1, 1.5, seed=0), "switching_probability to be between 0 and 1, received 1.5"),
        (lambda: gbn(5, 1, math.nan, seed=0), "switching_probability to be a finite real number"),
        (lambda: gbn(5, 1, amplitude=0, seed=0), "amplitude to be positive, received 0"),
        (lambda: gbn(5, 1, seed=0, dtype=int), "dtype to be float32 or float64"),
        (lambda: multisine(10, 1, 5, seed=0), "lines to be above 0 and below half of the 10 samples"),
        (lambda: multisine(10, 1, [0, 1], seed=0), "lines to be above 0"),
        (lambda: multisine(10, 1, [1, 1], seed=0), "lines to be a number of lines, or different integers"),
        (lambda: multisine(10, 1, [1.5], seed=0), "lines to be a number of lines, or different integers"),
        (lambda: multisine(10, 1, [], seed=0), "lines to be a number of lines, or different integers"),
        (lambda: multisine(10, 1, 0, seed=0), "lines to be an integer of at least 1"),
        (lambda: schroeder_multisine(10, 0, 2), "channels to be an integer of at least 1"),
        (lambda: add_noise(np.ones((5, 1)), seed=0), "given by either scale or snr_db, received neither"),
        (lambda: add_noise(np.ones((5, 1)), 1.0, snr_db=3.0, seed=0), "either scale or snr_db, received both"),
        (lambda: add_noise(np.ones((5, 1)), snr_db=3.0, seed=0), "y to be varying in every channel"),
        (lambda: add_noise(np.ones(5), 1.0, seed=0), r"y to be of shape \(..., N, n_y\)"),
        (lambda: add_noise(np.ones((5, 1)), -1.0, seed=0), "scale to be finite and not negative"),
        (lambda: add_noise(np.ones((5, 3)), [1.0, 2.0], seed=0), r"scale to be a number or an array of shape \(3,\)"),
        (lambda: add_noise(np.full((5, 1), np.nan), 1.0, seed=0), "y to be finite"),
    ],
)
def test_bad_signals(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()
