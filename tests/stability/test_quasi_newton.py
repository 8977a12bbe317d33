"""L-BFGS: known minima, walls, and never uphill."""

import itertools

import numpy as np

from schurfire.stability.quasi_newton import minimise


def rosenbrock(x):
    a, b = x[:-1], x[1:]
    gradient = np.zeros_like(x)
    gradient[:-1] = -400 * a * (b - a * a) - 2 * (1 - a)
    gradient[1:] += 200 * (b - a * a)
    return float(np.sum(100 * (b - a * a) ** 2 + (1 - a) ** 2)), gradient


def test_quadratic():
    rng = np.random.default_rng(0)
    scales, target = np.geomspace(1, 1e4, 20), rng.standard_normal(20)
    x = minimise(lambda x: (0.5 * float(scales @ (x - target) ** 2), scales * (x - target)), np.zeros(20), 1000)
    np.testing.assert_allclose(x, target, atol=1e-8)


def test_curved_valley():
    x = minimise(rosenbrock, np.full(10, -0.5), 500)
    np.testing.assert_allclose(x, 1, atol=1e-6)


def test_never_uphill():
    x = np.full(6, -1.2)
    values = [rosenbrock(minimise(rosenbrock, x, steps))[0] for steps in range(0, 30, 3)]
    assert all(after <= before for before, after in itertools.pairwise(values))


def test_infinite_values_are_walls():
    """-log(x) + x has its minimum at 1; from 0.01 the first steps end beyond 0."""

    def barrier(x):
        if np.any(x <= 0):
            return np.inf, np.zeros_like(x)
        return float(np.sum(x - np.log(x))), 1 - 1 / x

    np.testing.assert_allclose(minimise(barrier, np.full(3, 0.01), 100), 1, atol=1e-6)


def test_stays_at_a_minimum():
    x = np.ones(4)
    assert np.array_equal(minimise(rosenbrock, x, 10), x)
