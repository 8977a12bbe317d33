"""Random systems: each one proven stable, and distributed as stated."""

import math

import numpy as np
import pytest
from scipy.stats import kstest

from schurfire import certify
from schurfire.data import random_stable_system, random_stable_systems, random_systems
from schurfire.errors import InvalidInputError
from schurfire.metrics import spectrum_of_blocks
from schurfire.regions import Disc


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_thousand_draws_are_proven(dtype):
    for seed in range(500):
        n, radius = seed % 8 + 1, (0.3, 0.9, 0.999, 1.0, 5.0)[seed % 5]
        system = random_stable_system(n, 2, 3, radius=radius, seed=seed, dtype=dtype)
        assert system.region == Disc(radius)
        certificate = certify(system.A, system.region)
        assert certificate.is_stable
        assert certificate.method == "blocks"
        assert (system.A.shape, system.B.shape, system.C.shape, system.D.shape) == ((n, n), (n, 2), (3, n), (3, 2))
        assert {x.dtype.name for x in (system.A, system.B, system.C, system.D)} == {dtype}


def test_rounding_to_the_boundary_is_undone(monkeypatch):
    def barely_inside(n, radius, *_):
        return np.diag(np.full(n, np.nextafter(radius, 0)))

    monkeypatch.setattr(random_systems, "_random_blocks", barely_inside)
    for n in (1, 3):
        system = random_stable_system(n, 1, 1, seed=0, dtype="float32")
        assert certify(system.A, system.region).is_stable
        np.testing.assert_allclose(np.diag(system.A), 1.0, rtol=1e-6)


def test_large_ones_are_proven_too():
    for system in random_stable_systems(3, 60, 1, 1, seed=0):
        assert certify(system.A, system.region).is_stable


@pytest.mark.parametrize(
    ("n", "share"), [(4, 0.5), (5, 0.5), (5, 0.8), (5, 1.0), (6, 0.0), (6, 1.0), (7, 0.3), (1, 1.0)]
)
def test_the_share_of_complex_pairs(n, share):
    count = 400
    systems = random_stable_systems(count, n, 1, 1, complex_share=share, seed=1)
    complex_ones = [np.count_nonzero(spectrum_of_blocks(system.A).imag) for system in systems]
    pairs = n // 2
    deviation = 2 * math.sqrt(pairs * share * (1 - share) / count)  # of the mean of 2 binomial(pairs, share)
    assert abs(np.mean(complex_ones) - 2 * pairs * share) <= 5 * deviation


def test_moduli_and_angles_are_uniform():
    radius = 0.9
    systems = random_stable_systems(1500, 4, 1, 1, radius=radius, complex_share=0.5, seed=2)
    z = np.concatenate([spectrum_of_blocks(system.A) for system in systems])
    upper, real = z[z.imag > 0], z[z.imag == 0].real
    # At this significance a wrong distribution of 1500 samples shows from a distance of 6 % on.
    for sample in (np.abs(upper) / radius, np.angle(upper) / np.pi, (real / radius + 1) / 2):
        assert len(sample) > 1000
        assert kstest(sample, "uniform").pvalue > 1e-4


def test_eigenvectors_are_those_of_a_standard_normal_matrix():
    # For n = 2 and real eigenvalues a, b the coupling is (b - a) R01 / R11 up to sign, with V = Q R: R01 is normal and
    # R11^2 chi-squared of one degree, so that the quotient is Cauchy.
    systems = random_stable_systems(1500, 2, 1, 1, complex_share=0.0, seed=3)
    quotients = [system.A[0, 1] / (system.A[1, 1] - system.A[0, 0]) for system in systems]
    assert kstest(quotients, "cauchy").pvalue > 1e-4


def test_input_and_output_matrices_are_standard_normal():
    system = random_stable_system(40, 30, 20, seed=4)
    for X in (system.B, system.C, system.D):
        assert kstest(X.ravel(), "norm").pvalue > 1e-4


def test_every_mode_is_reached_and_seen():
    for system in random_stable_systems(100, 5, 1, 1, seed=5):
        powers = np.stack([np.linalg.matrix_power(system.A, k) for k in range(5)])
        for reach in (powers @ system.B[:, 0], powers.swapaxes(1, 2) @ system.C[0]):
            assert np.linalg.matrix_rank(reach / np.linalg.norm(reach, axis=1, keepdims=True), tol=1e-13) == 5


def test_seeds():
    a, b, c = (random_stable_system(5, 2, 2, seed=seed) for seed in (7, 7, 8))
    assert all(np.array_equal(getattr(a, name), getattr(b, name)) for name in "ABCD")
    assert not np.array_equal(a.A, c.A)
    few, many = (random_stable_systems(count, 3, 1, 1, seed=9) for count in (2, 4))
    assert len(many) == 4
    assert all(np.array_equal(p.A, q.A) for p, q in zip(few, many[:2], strict=True))
    assert len({system.A[0, 0] for system in many}) == 4
    rng = np.random.default_rng(7)
    first, second = random_stable_system(5, 2, 2, seed=rng), random_stable_system(5, 2, 2, seed=rng)
    assert np.array_equal(first.A, a.A)
    assert not np.array_equal(second.A, a.A)


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        ((0, 1, 1), {}, "state_size to be an integer of at least 1, received 0"),
        ((2, 1.0, 1), {}, "input_size to be an integer of at least 1"),
        ((2, 1, True), {}, "output_size to be an integer of at least 1"),
        ((2, 1, 1), {"radius": 0.0}, "radius to be positive"),
        ((2, 1, 1), {"complex_share": 1.1}, "complex_share to be between 0 and 1"),
        ((2, 1, 1), {"seed": None}, "seed to be an integer"),
        ((2, 1, 1), {"dtype": "float16"}, "dtype to be float32 or float64"),
    ],
)
def test_bad_requests(sizes, options, message):
    with pytest.raises(InvalidInputError, match=message):
        random_stable_system(*sizes, **{"seed": 0} | options)


def test_bad_counts():
    with pytest.raises(InvalidInputError, match="count to be an integer of at least 1"):
        random_stable_systems(0, 2, 1, 1, seed=0)
    with pytest.raises(TypeError, match="radios"):
        random_stable_systems(1, 2, 1, 1, seed=0, radios=0.5)
