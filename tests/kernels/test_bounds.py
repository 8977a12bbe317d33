"""The bound of the spectral radius: never below it, in any arithmetic, and near it where powers are well-behaved."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from schurfire import InvalidInputError, spectral_radius_bound
from schurfire.kernels.bounds import bound_by_squaring
from tests.references import radius, similar
from tests.zoo import TAGS, tagged, zoo

DTYPES = ("float32", "float64")


@functools.cache
def compiled():
    return jax.jit(spectral_radius_bound)


def by_jax(A):
    with jax.enable_x64(True):
        return np.asarray(compiled()(jnp.asarray(A)))


# --- never below ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_never_below_the_radius_of_random_matrices(dtype):
    rng = np.random.default_rng(0)
    for n in (2, 3, 4):
        A = (rng.standard_normal((8, n, n)) * 10.0 ** rng.integers(-12, 12, (8, 1, 1))).astype(dtype)
        bounds, others = spectral_radius_bound(A), by_jax(A)
        assert bounds.dtype == others.dtype == dtype
        for matrix, bound, other in zip(A, bounds, others, strict=True):
            assert min(bound, other) >= radius(matrix)


@pytest.mark.parametrize("dtype", DTYPES)
def test_never_below_a_radius_known_exactly(dtype):
    """Eigenvalues of integer similarity transforms: at least those of float32 matrices leave no room to be lucky."""
    rng = np.random.default_rng(1)
    for n in (3, 4, 6):
        for top in (1.0, -1.0, 0.5):
            B = np.triu(rng.integers(-1, 2, (n, n)), 1) + np.diag([top, *rng.integers(-1, 2, n - 1) * 0.25])
            A = similar(B.astype(dtype), rng, steps=6)
            for squarings in (0, 1, 5, 16, 40):
                assert spectral_radius_bound(A, squarings) >= abs(top)
            assert by_jax(A) >= abs(top)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [-1040, -1000, -500, -100, -30, 0, 30, 100, 500, 1000])
def test_never_below_at_any_scale(dtype, exponent):
    """Weighted cycles: the radius is the geometric mean of the weights, which may be far smaller than all norms."""
    limit = 100 if dtype == "float32" else 1000
    if exponent > limit or exponent < -limit - 40:
        return
    for spread in (0, 20, limit):
        weights = 2.0 ** np.clip(exponent + np.array([-spread, 0.0, spread, 0.0]), -limit - 40, limit)
        A = np.roll(np.diag(weights), 1, axis=0).astype(dtype)
        expected = 2.0 ** (np.log2(np.float64(np.abs(A).sum(axis=0))).mean())
        for bound in (spectral_radius_bound(A), by_jax(A)):
            assert bound >= expected * (1 - 1e-12)
            assert bound.dtype == dtype


def test_never_below_one_for_the_boundary_of_the_zoo():
    for dtype in DTYPES:
        matrices = zoo(8, dtype)
        for name in (
            "cyclic",
            "permutation",
            "identity",
            "minus identity",
            "one ulp above",
            "jordan at 1",
            "defective pairs",
        ):
            A = matrices[name]
            assert spectral_radius_bound(A) >= 1, name
            assert by_jax(A) >= 1, name


@given(arrays("float32", (3, 3), elements=st.floats(-(2**20), 2**20, width=32)))
def test_never_below_the_largest_diagonal_entry_of_triangular_matrices(A):
    assert spectral_radius_bound(np.triu(A)) >= np.abs(A.diagonal()).max()


def test_perturbed_matrices_are_covered():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((4, 4))
    bound = bound_by_squaring(A, 12, 1e-3)
    norm = np.abs(A).sum(axis=-1).max()
    for _ in range(20):
        E = rng.standard_normal((4, 4))
        E *= 1e-3 * norm / np.abs(E).sum(axis=-1).max()
        assert np.abs(np.linalg.eigvals(A + E)).max() <= bound
    assert bound > spectral_radius_bound(A, 12)


# --- tight ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_tight_for_normal_matrices(dtype):
    eps = float(np.finfo(dtype).eps)
    # The bound of rounding errors grows by up to 2 sqrt(n) with every squaring, while the root brings the row-sum norm,
    # up to sqrt(n) off, nearer by a factor of 2: float32 ends after ten steps.
    slack = 1e-4 if dtype == "float64" else 1e-2
    matrices = zoo(8, dtype)
    for name in tagged("normal"):
        A = matrices[name]
        largest = np.linalg.norm(np.float64(A), 2)
        for bound in (spectral_radius_bound(A), by_jax(A)):
            assert largest * (1 - 16 * eps) <= bound <= largest * (1 + slack), name


def test_tighter_with_every_squaring():
    A = zoo(8)["small ginibre"]
    bounds = [float(spectral_radius_bound(A, k)) for k in range(12)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == pytest.approx(np.abs(A).sum(axis=1).max(), rel=1e-12)
    assert bounds[-1] < 1.01 * np.abs(np.linalg.eigvals(A)).max()


@pytest.mark.parametrize("dtype", DTYPES)
def test_proves_the_stable_part_of_the_zoo(dtype):
    matrices = zoo(8, dtype)
    for name in tagged("stable"):
        if not {"boundary", "non-normal"} & TAGS[name]:
            assert spectral_radius_bound(matrices[name]) < 1, name
            assert by_jax(matrices[name]) < 1, name


@pytest.mark.parametrize("dtype", DTYPES)
def test_zero_and_nilpotent(dtype):
    tiny = np.finfo(dtype).tiny
    for n in (1, 2, 5, 8):
        for bound in (spectral_radius_bound(np.zeros((n, n), dtype)), by_jax(np.zeros((n, n), dtype))):
            assert 0 <= bound <= 8 * n * n * tiny
        assert spectral_radius_bound(np.eye(n, k=1, dtype=dtype)) < 0.3
    assert spectral_radius_bound(np.zeros((0, 0), dtype)) == 0.0
    assert spectral_radius_bound(np.zeros((3, 0, 0), dtype)).tolist() == [0, 0, 0]
    assert float(spectral_radius_bound(np.array([[-3.0]], dtype))) == pytest.approx(3.0, rel=1e-4)


def test_scales_with_the_matrix():
    A = zoo(6)["ginibre"]
    expected = spectral_radius_bound(A)
    for factor in (1e-290, 1e-100, 1e100, 1e290):
        assert spectral_radius_bound(A * factor) == pytest.approx(expected * factor, rel=1e-10)
    assert not spectral_radius_bound(np.full((3, 3), 1.7e308)) < np.inf  # infinity or NaN: no bound, and no proof


# --- shapes, libraries, failures --------------------------------------------------------------------------------------


def test_a_stack_is_done_like_each_matrix():
    A = np.random.default_rng(3).standard_normal((2, 3, 5, 5))
    bounds = spectral_radius_bound(A)
    assert bounds.shape == (2, 3)
    for index in np.ndindex(2, 3):
        np.testing.assert_allclose(bounds[index], spectral_radius_bound(A[index]), rtol=1e-13)
    np.testing.assert_allclose(by_jax(A), bounds, rtol=1e-13)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.vmap(jax.vmap(spectral_radius_bound))(jnp.asarray(A)), bounds, rtol=1e-13)


def test_tensors_in_tensors_out():
    bound = spectral_radius_bound(jnp.eye(3))
    assert isinstance(bound, jax.Array)
    assert bound.dtype == "float32"
    assert float(bound) == pytest.approx(1.0, rel=1e-4)


def test_values_that_are_not_finite():
    A = np.zeros((4, 3, 3), "float32")
    A[1, 0, 1], A[2, 2, 2], A[3] = np.nan, np.inf, 0.5 * np.eye(3)
    bounds = compiled()(A)
    assert np.isnan(bounds).tolist() == [False, True, True, False]
    assert 0.5 <= bounds[3] < 0.501
    with pytest.raises(InvalidInputError, match="Expected A to be finite"):
        spectral_radius_bound(A)


@pytest.mark.parametrize("squarings", [-1, 1.0, "2", None, True])
def test_number_of_squarings(squarings):
    with pytest.raises(InvalidInputError, match="Expected squarings to be a whole number from 0 to 64, received"):
        spectral_radius_bound(np.eye(2), squarings)


@pytest.mark.parametrize("A", [np.ones((2, 3)), np.eye(2, dtype=int), np.ones(3), np.zeros((0, 2, 2))])
def test_bad_matrices(A):
    with pytest.raises(InvalidInputError, match="Expected A to be"):
        spectral_radius_bound(A)
