"""The block triangular part: best blocks for an order, a good order, exact stability."""

import itertools

import numpy as np
import pytest

from schurfire.kernels.blocks import nearest_stable_block
from schurfire.regions import Disc, HalfPlane
from schurfire.stability.certificate import certify
from schurfire.stability.triangular_part import _order, triangular_part


def normal(n, seed=0):
    return np.random.default_rng(seed).standard_normal((n, n))


def best_in_order(A, region):
    """The least squared distance over all ways to cut the order into blocks, by recursion."""
    n = len(A)
    if n == 0:
        return 0.0
    costs = []
    for m in (1, 2)[: min(n, 2)]:
        block = nearest_stable_block(A[None, :m, :m], region)[0]
        costs.append(np.sum((block - A[:m, :m]) ** 2) + np.sum(A[m:, :m] ** 2) + best_in_order(A[m:, m:], region))
    return min(costs)


@pytest.mark.parametrize("region", [Disc(), HalfPlane(0.2)], ids=str)
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_blocks_are_the_best_of_their_order(n, region):
    A = 2 * normal(n, seed=n)
    order = _order((A / np.abs(A).max()) ** 2)
    distance = np.sum((A - triangular_part(A, region)) ** 2)
    assert distance == pytest.approx(best_in_order(A[np.ix_(order, order)], region), rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_order_is_nearly_the_best_of_all(seed):
    weights = normal(5, seed) ** 2
    costs = [np.tril(weights[np.ix_(p, p)], -1).sum() for p in itertools.permutations(range(5))]
    order = _order(weights)
    assert sorted(order) == list(range(5))
    assert np.tril(weights[np.ix_(order, order)], -1).sum() <= 1.1 * min(costs)


def test_a_hidden_triangular_matrix_is_found():
    n = 12
    T = np.triu(normal(n), 1) + 0.5 * np.eye(n)
    p = np.random.default_rng(1).permutation(n)
    A = T[np.ix_(p, p)]
    assert np.array_equal(triangular_part(A, Disc()), A)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("region", [Disc(), Disc(0.1, 2.0), HalfPlane(), HalfPlane(-1.0)], ids=str)
def test_exactly_stable_at_any_scale(region, scale, dtype):
    A = (scale * normal(9)).astype(dtype)
    X = triangular_part(A, region)
    assert X.dtype == dtype
    certificate = certify(X, region)
    assert certificate.is_stable
    assert certificate.method == "blocks"


def test_equal_entries():
    """Half of the entries and what the diagonal loses: the distance of the nearest stable matrix."""
    n = 9
    X = triangular_part(np.full((n, n), 2.0), Disc())
    assert np.sum((X - 2) ** 2) == pytest.approx(4 * n * (n - 1) / 2 + n, rel=1e-12)


def test_zero():
    assert np.array_equal(triangular_part(np.zeros((3, 3)), Disc()), np.zeros((3, 3)))
