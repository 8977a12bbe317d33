"""The truncated projection of Schur factors: every block nearest, the rest untouched, strictly stable in any case."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from schurfire import Disc, HalfPlane, nearest_stable_block, real_schur
from schurfire.kernels.projection import StablePair, project_factor, project_matrix
from schurfire.kernels.quasi_triangular import with_band
from schurfire.namespaces import NUMPY
from tests.references import blocks_of, distance, pair_is_stable, strictly_inside
from tests.zoo import BLOCKS, TAGS, zoo

DTYPES = ("float32", "float64")
REGIONS = (Disc(), Disc(0.5, 0.25), HalfPlane(), HalfPlane(-0.5))


@functools.cache
def factors(n: int, dtype: str) -> np.ndarray:
    """The Schur factors of the zoo."""
    return np.stack([real_schur(A).T for A in zoo(n, dtype).values()])


@functools.cache
def compiled(region):
    return jax.jit(lambda T: project_factor(T, region))


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_strictly_stable_for_the_whole_zoo(n, dtype, region):
    T = factors(n, dtype)
    with jax.enable_x64(True):
        by_jax = np.asarray(compiled(region)(T)) if n == 8 and dtype == "float32" else project_factor(T, region)
    for X in (project_factor(T, region), by_jax):
        assert X.dtype == dtype
        for name, new, old in zip(TAGS, X, T, strict=True):
            assert pair_is_stable(new, region), name
            np.testing.assert_array_equal(np.triu(new, 2), np.triu(old, 2))


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_block_is_the_nearest(dtype, region):
    T = factors(8, dtype)
    for name, new, old in zip(TAGS, project_factor(T, region), T, strict=True):
        i = 0
        for block in blocks_of(old):
            k = len(block)
            got = new[i : i + k, i : i + k]
            expected = nearest_stable_block(block, region)
            found, best = distance(block, got), distance(block, expected)
            assert found <= best * (1 + 1e-9) + 8 * np.finfo(dtype).eps * np.abs(block).max(), (name, i)
            if k == 1:
                np.testing.assert_array_equal(got, expected)
            i += k
        assert i == 8


def test_the_entry_beside_a_split_block_stays():
    """Next to 1x1 blocks the superdiagonal is not part of any block."""
    T = np.array([[3.0, 5.0, 6.0], [0.0, 0.5, 7.0], [0.0, 0.0, -2.0]])
    below = np.nextafter(1.0, 0.0)
    np.testing.assert_array_equal(project_factor(T), [[below, 5.0, 6.0], [0.0, 0.5, 7.0], [0.0, 0.0, -below]])


def test_blocks_of_every_branch_at_both_places():
    for block in [np.array(block) for block in BLOCKS.values()]:
        block = block if block[1, 0] else block.T  # noqa: PLW2901
        T = np.zeros((5, 5))
        T[:2, :2], T[3:, 3:], T[2, 2] = block, block, 2.0
        T[1, 2] = T[2, 3] = 1.0
        T += np.triu(np.ones((5, 5)), 2)
        X = project_factor(T)
        np.testing.assert_array_equal(X[:2, :2], X[3:, 3:])
        np.testing.assert_array_equal(X[:2, :2], nearest_stable_block(block))
        assert X[1, 2] == 1.0
        assert X[2, 2] < 1.0
        assert pair_is_stable(X, Disc())


def test_what_is_stable_stays_bit_identical():
    T = np.triu(np.full((4, 4), 100.0), 1) + 0.5 * np.eye(4)
    T[2, 1] = -1e-3
    for X in (project_factor(T), project_factor(T - np.eye(4), HalfPlane())):
        np.testing.assert_array_equal(np.triu(X, 1), np.triu(T, 1))
    np.testing.assert_array_equal(project_factor(T), T)
    np.testing.assert_array_equal(project_factor(project_factor(3 * T)), project_factor(3 * T))


@pytest.mark.parametrize("dtype", DTYPES)
def test_whatever_the_factor_holds(dtype):
    """Subdiagonal entries from the smallest number to the largest, each marking a block."""
    info, rng = np.finfo(dtype), np.random.default_rng(0)
    ends = [float(info.max), float(info.tiny), float(info.smallest_subnormal), 1.0, 1e-20, 0.0, -0.0]
    T = np.triu(rng.choice(ends, (8, 6, 6)) * rng.choice([-1, 1], (8, 6, 6)), -1)
    T[:, [2, 4], [1, 3]] = 0.0
    T = T.astype(dtype)
    for region in (Disc(), HalfPlane(-0.5)):
        with jax.enable_x64(True):
            by_jax = np.asarray(compiled(region)(T))
        for X in (project_factor(T, region), by_jax):
            assert all(pair_is_stable(x, region) for x in X)
            assert np.isfinite(X).all()


def test_a_stack_is_done_like_each_matrix():
    T = factors(8, "float64")[:12].reshape(3, 4, 8, 8)
    X = project_factor(T)
    assert X.shape == T.shape
    for index in np.ndindex(3, 4):
        np.testing.assert_array_equal(X[index], project_factor(T[index]))


@pytest.mark.parametrize("shape", [(0, 0), (3, 0, 0), (1, 1), (2, 1, 1)])
def test_trivial_orders(shape):
    X = project_factor(np.full(shape, 2.0))
    assert X.shape == shape
    assert (X < 1).all()
    assert compiled(Disc())(jnp.full(shape, 2.0)).shape == shape


@pytest.mark.parametrize("dtype", DTYPES)
def test_whole_matrices_inside_compiled_functions(dtype):
    A = np.random.default_rng(1).standard_normal((5, 6, 6)).astype(dtype) * 2
    with jax.enable_x64(True):
        pair = jax.jit(project_matrix)(A)
        assert isinstance(pair, StablePair)
        T, Z, converged = (np.asarray(x) for x in pair)
    assert converged.all()
    assert T.dtype == Z.dtype == dtype
    assert all(pair_is_stable(x, Disc()) for x in T)
    for method in ("lapack", "portable"):
        expected = project_matrix(A, method=method)
        for i in range(5):
            one, other = (np.linalg.norm(A[i] - z @ t @ z.T) for t, z in ((T[i], Z[i]), (expected.T[i], expected.Z[i])))
            assert one == pytest.approx(other, rel=0.2)  # blocks may be ordered otherwise


def test_values_that_are_not_finite_are_flagged():
    A = np.random.default_rng(2).standard_normal((3, 4, 4)).astype("float32")
    A[1, 2, 0] = np.nan
    pair = jax.jit(project_matrix)(A)
    assert np.asarray(pair.converged).tolist() == [True, False, True]
    assert np.isnan(pair.T[1]).any()
    for place in ((0, 0), (0, 1), (1, 0), (0, 2), (2, 2), (2, 3)):
        T = np.triu(np.full((4, 4), 0.25, "float32"))
        T[1, 0] = -0.25
        T[place] = np.nan
        assert np.isnan(np.asarray(compiled(Disc())(T))).any(), place


def test_with_band():
    T = np.arange(16.0).reshape(4, 4)
    diagonal, above, below = np.full(4, 20.0), np.array([30.0, 31, 32, 0]), np.array([40.0, 41, 42, 0])
    expected = [[20, 30, 2, 3], [40, 20, 31, 7], [0, 41, 20, 32], [0, 0, 42, 20]]
    np.testing.assert_array_equal(with_band(NUMPY, T, diagonal, above, below), expected)


def test_inputs_are_left_alone():
    T = factors(8, "float64")[0]
    before = T.copy()
    project_factor(T)
    np.testing.assert_array_equal(T, before)


def test_regions_narrower_than_the_precision():
    T = np.diag(np.array([0.1, 0.5], "float32"))
    X = project_factor(T, Disc(0.1))
    assert all(strictly_inside(x.reshape(1, 1), Disc(0.1)) for x in X.diagonal())
