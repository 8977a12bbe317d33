"""The guard: what it returns is proven by another judge, what is proven comes back bit for bit."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from schurfire import Disc, certify, project_stable
from schurfire.kernels.guard import stable_or_replaced
from schurfire.namespaces import batched, with_gradient_of
from tests.zoo import tagged, zoo

DTYPES = ("float32", "float64")
REGIONS = (Disc(), Disc(0.5, 0.25), Disc(0.1, 0.9))


def specimens(n, dtype):
    """The zoo and what no zoo would keep."""
    G, largest = np.random.default_rng(1).standard_normal((6, n, n)).astype(dtype), np.finfo(dtype).max
    G[0] *= 1e30
    G[1, 0, 0] = np.nan
    G[2, -1, 0] = np.inf
    G[3] *= 0.99 / np.abs(G[3]).max()
    G[3] *= largest
    G[4] *= 0.7 / np.sqrt(n)
    G[5] = largest
    return np.concatenate([np.stack(list(zoo(n, dtype).values())), G])


@functools.cache
def compiled(region):
    return jax.jit(lambda A: stable_or_replaced(A, region))


def assert_proven(X, region):
    for i, matrix in enumerate(X):
        assert np.isfinite(matrix).all(), i
        assert certify(matrix, region).is_stable, i


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 5, 8, 50])
def test_whatever_comes_in_what_comes_out_is_proven(n, dtype, region):
    A = specimens(n, dtype)
    X = stable_or_replaced(A, region)
    assert X.dtype == dtype
    assert_proven(X, region)
    np.testing.assert_array_equal(stable_or_replaced(X, region), X)


@pytest.mark.parametrize(("dtype", "region"), [("float32", REGIONS[1]), ("float64", REGIONS[0])])
def test_compiled(dtype, region):
    A = specimens(5, dtype)
    with jax.enable_x64(True):
        X = np.asarray(compiled(region)(A))
        again = np.asarray(compiled(region)(X))
    assert X.dtype == dtype
    assert_proven(X, region)
    np.testing.assert_array_equal(again, X)
    expected = stable_or_replaced(A, region)
    kept = (expected == A).all(axis=(1, 2))
    assert 3 <= kept.sum() < len(A)
    np.testing.assert_array_equal(X[kept], A[kept])


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_proven_comes_back_bit_for_bit(dtype):
    A = zoo(5, dtype)
    for name in set(tagged("stable")) - set(tagged("boundary")) - set(tagged("defective")):
        np.testing.assert_array_equal(stable_or_replaced(A[name]), A[name], err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [5, 28])
def test_a_radius_of_a_thousandth_below_one_is_kept(n, dtype):
    """That is where trainings live; with eigenvectors of condition up to 30 or so."""
    rng = np.random.default_rng(2)
    for _ in range(10):
        V = np.linalg.qr(rng.standard_normal((n, n)))[0] * np.geomspace(1, 30, n) @ np.linalg.qr(np.eye(n) + 0.5)[0]
        A = (V @ np.diag(0.999 * rng.choice([-1, 1], n)) @ np.linalg.inv(V)).astype(dtype)
        np.testing.assert_array_equal(stable_or_replaced(A), A)


@pytest.mark.parametrize("region", REGIONS)
def test_what_is_replaced_stays_near_its_projection(region):
    rng = np.random.default_rng(3)
    for n in (2, 5, 10):
        A = region.centre * np.eye(n) + 1.5 * region.radius * rng.standard_normal((n, n)) / np.sqrt(n)
        X, projected = stable_or_replaced(A, region), project_stable(A, region).matrix
        assert np.linalg.norm(X - projected) <= 0.02 * np.linalg.norm(A - region.centre * np.eye(n))


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_finite_becomes_the_centre(region, dtype):
    A = np.stack([np.full((3, 3), value, dtype) for value in (np.nan, np.inf, -np.inf, np.finfo(dtype).max)])
    A[0, 1:] = 0.0
    expected = np.broadcast_to(np.eye(3, dtype=dtype) * np.dtype(dtype).type(region.centre), A.shape)
    np.testing.assert_array_equal(stable_or_replaced(A, region), expected)


def test_a_stack_is_done_like_each_matrix():
    A = specimens(4, "float64")[:24]
    X = stable_or_replaced(A)
    np.testing.assert_array_equal(stable_or_replaced(A.reshape(2, 12, 4, 4)).reshape(A.shape), X)
    for matrix, expected in zip(A, X, strict=True):
        np.testing.assert_array_equal(stable_or_replaced(matrix), expected)


@pytest.mark.parametrize("shape", [(0, 0), (3, 0, 0)])
def test_nothing_to_guard(shape):
    assert stable_or_replaced(np.zeros(shape)).shape == shape


# --- inside vmap and grad ---------------------------------------------------------------------------------------------


def test_derivatives_and_maps():
    rng = np.random.default_rng(4)
    A = jnp.asarray(rng.standard_normal((4, 3, 3)) * np.array([0.2, 2.0, 0.3, np.nan])[:, None, None], "float32")
    H = jnp.asarray(rng.standard_normal((3, 3)), "float32")
    expected = np.where(np.array([True, False, True, False])[:, None, None], H, 0.0)

    def value(A):
        return jnp.sum(stable_or_replaced(A) * H)

    @jax.jit
    def ways(A):
        pairs = jax.vmap(jax.vmap(stable_or_replaced))(A.reshape(2, 2, 3, 3)).reshape(4, 3, 3)
        along_rows = jax.vmap(stable_or_replaced, in_axes=1, out_axes=1)(A.swapaxes(0, 1)).swapaxes(0, 1)
        slopes = jax.grad(lambda A: jnp.sum(jax.vmap(value)(A)))(A), jax.vmap(jax.grad(value))(A)
        return (stable_or_replaced(A), pairs, along_rows), slopes

    values, slopes = ways(A)
    for X in values:
        np.testing.assert_array_equal(X, values[0])
    for slope in slopes:
        np.testing.assert_array_equal(slope, expected)


def test_a_mapped_axis_is_one_more_leading_axis():
    seen = []

    def scaled(x, y, factor):
        seen.append((x.shape, y.shape))
        return factor * x + y, y

    call = batched(scaled, 2.0)
    x, y = jnp.arange(6.0).reshape(3, 2), jnp.ones(2)
    np.testing.assert_array_equal(jax.vmap(call, in_axes=(0, None))(x, y)[0], 2 * x + 1)
    assert seen[-1] == ((3, 2), (3, 2))
    np.testing.assert_array_equal(call(np.ones(2), np.ones(2))[0], np.full(2, 3.0))
    assert seen[-1] == ((2,), (2,))


def test_the_gradient_is_that_of_the_source_and_the_value_is_not():
    where = jnp.array([True, False])

    def value(x):
        return jnp.sum(with_gradient_of(3 * x, jnp.array([7.0, 8.0]), where))

    assert value(jnp.ones(2)) == 15.0
    np.testing.assert_array_equal(jax.grad(value)(jnp.ones(2)), [3.0, 0.0])
    np.testing.assert_array_equal(with_gradient_of(np.ones(2), np.ones(2), np.array([True, False])), np.ones(2))
