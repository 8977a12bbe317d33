"""The search among matrices with a quadratic norm: charts, gradients, descent."""

import numpy as np
import pytest

from schurfire.stability.similar_contractions import Problem, _rebase, descend, start_at


def target(n, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return A / np.linalg.norm(A)


def some_factor(n, seed=1):
    return np.eye(n) + 0.5 * np.random.default_rng(seed).standard_normal((n, n))


PROBLEMS = [Problem(target(6), radius, precision) for radius in (0.2, None) for precision in (0.0, 1e-2)]
IDS = ["disc", "disc, margin", "half-plane", "half-plane, margin"]


@pytest.mark.parametrize("problem", PROBLEMS, ids=IDS)
def test_gradient_against_differences(problem):
    chart = _rebase(problem, start_at(problem, some_factor(6)))
    rng = np.random.default_rng(2)
    x, direction, h = 0.1 * rng.standard_normal(chart.size), rng.standard_normal(chart.size), 1e-6
    slope = (chart.value_and_gradient(x + h * direction)[0] - chart.value_and_gradient(x - h * direction)[0]) / (2 * h)
    assert chart.value_and_gradient(x)[1] @ direction == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("problem", PROBLEMS, ids=IDS)
def test_chart_is_centred_at_its_point(problem):
    point = start_at(problem, some_factor(6))
    chart = _rebase(problem, point)
    centre = chart.point(np.zeros(chart.size))
    np.testing.assert_allclose(centre.X, point.X, atol=1e-13)
    assert chart.value_and_gradient(np.zeros(chart.size))[0] == pytest.approx(point.value, rel=1e-12)


@pytest.mark.parametrize("problem", PROBLEMS, ids=IDS)
def test_every_point_carries_its_proof(problem):
    """``S X S^-1`` is a contraction (dissipative), by the margin, at points far from the centre of the chart too."""
    chart = _rebase(problem, start_at(problem, some_factor(6)))
    for seed in range(5):
        point = chart.point(np.random.default_rng(seed).standard_normal(chart.size))
        Y = point.S @ point.X @ np.linalg.inv(point.S)
        conditioning = np.linalg.norm(point.S) * np.linalg.norm(np.linalg.inv(point.S))
        size = conditioning * np.linalg.norm(point.X)
        if problem.radius is None:
            margin = -np.linalg.eigvalsh((Y + Y.T) / 2).max()
            # X has already been moved by the margin, by up to a factor of 1 + precision * conditioning * sqrt(n)
            size /= 1 + problem.precision * conditioning * np.sqrt(len(Y))
        else:
            margin = problem.radius - np.linalg.norm(Y, 2)
        assert margin >= (1 - 1e-9) * problem.precision * size - 1e-12 * conditioning


@pytest.mark.parametrize("problem", PROBLEMS, ids=IDS)
def test_descent_goes_down_and_reports_its_value(problem):
    start = start_at(problem, some_factor(6))
    end = descend(problem, start, 4, 0.0)
    assert end.value < 0.7 * start.value
    assert end.value == pytest.approx(np.sum((end.X - problem.target) ** 2), rel=1e-12)


def test_symmetric_matrix_is_clipped():
    """Over S = I the nearest contraction has the singular values clipped, and no search leaves it for a worse one."""
    A = target(5)
    A = A + A.T
    problem = Problem(A / np.linalg.norm(A), 0.3, 0.0)
    eigenvalues = np.linalg.eigvalsh(problem.target)
    clipped = np.sum(np.maximum(np.abs(eigenvalues) - 0.3, 0) ** 2)
    end = descend(problem, start_at(problem, np.eye(5)), 10, 0.0)
    assert end.value <= clipped * (1 + 1e-6)


def test_grading_pays():
    """A nilpotent matrix of norm 1 in a disc of radius 0.1: only an ill-conditioned S comes near."""
    A = np.triu(np.ones((5, 5)), 1)
    problem = Problem(A / np.linalg.norm(A), 0.1, 1e-12)
    end = descend(problem, start_at(problem, np.geomspace(1, 100, 5)[:, None] * np.eye(5)), 20, 0.0)
    assert end.value < 1e-4
    assert np.linalg.cond(end.S) > 100
