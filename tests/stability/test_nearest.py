"""The nearest stable matrix: optimality, exact stability, invariances, and what the search must leave alone."""

import functools

import jax
import numpy as np
import pytest
import scipy.linalg
import scipy.spatial.transform
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from schurfire.errors import InvalidInputError
from schurfire.kernels.blocks import nearest_stable_block
from schurfire.regions import Disc, HalfPlane
from schurfire.stability import descent
from schurfire.stability.compilation import compile_once
from schurfire.stability.nearest import nearest_stable
from schurfire.stability.projection import project_stable

REGIONS = (Disc(), HalfPlane())


@pytest.fixture(autouse=True, scope="module")
def cache_home(tmp_path_factory):
    """Compiled searches go to a directory of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(home))
        yield home


def normal(n, seed=0, dtype="float64"):
    return np.random.default_rng(seed).standard_normal((n, n)).astype(dtype)


def skew(rng, n):
    X = rng.standard_normal((n, n))
    return X - X.T


def nsfe(A, distance):
    return distance**2 / np.sum(A * A)


def best_distance(A, Z, region):
    """How near to A a matrix of the closed region with the orthogonal factor Z (or each of a stack) can be."""
    T = np.swapaxes(Z, -1, -2) @ A @ Z
    n, squares = T.shape[-1], 0.0
    for i in range(0, n, 2):
        block = T[..., i : i + 2, i : i + 2]
        squares += np.sum((block - nearest_stable_block(block, region, inward=False)) ** 2, axis=(-2, -1))
        squares += np.sum(T[..., i + 2 :, i : i + 2] ** 2, axis=(-2, -1))
    return np.sqrt(squares)


@functools.partial(jax.jit, static_argnums=0)
def objective(disc, A, Z):
    return descent._objective(disc, A, Z)


# --- objective and gradient -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("n", [2, 5, 6])
def test_objective_is_half_the_squared_distance(n, region):
    rng = np.random.default_rng(n)
    A, Z = 3 * normal(n), np.linalg.qr(rng.standard_normal((n, n)))[0]
    with jax.enable_x64(True):
        f, _ = objective(isinstance(region, Disc), A[None], Z[None])
    assert np.sqrt(2 * float(f[0])) == pytest.approx(best_distance(A, Z, region), rel=1e-12)


@pytest.mark.parametrize("region", REGIONS)
def test_nearest_blocks_are_those_of_the_kernel(region):
    rng = np.random.default_rng(1)
    blocks = rng.standard_normal((2000, 2, 2)) * 10.0 ** rng.uniform(-2, 2, (2000, 1, 1))
    special = [
        [[0, 0], [0, 0]],
        [[2, 0], [0, 2]],
        [[-2, 0], [0, -2]],
        [[0, 3], [3, 0]],
        [[0, 3], [-3, 0]],
        [[1, 5], [0, 1]],
    ]
    blocks = np.concatenate([blocks, np.array(special, dtype=float)])
    with jax.enable_x64(True):
        entries = jax.jit(descent._nearest_entries, static_argnums=0)(
            isinstance(region, Disc), *blocks.reshape(-1, 4).T
        )
        found = np.stack([np.asarray(x) for x in entries], axis=-1).reshape(-1, 2, 2)
    expected = nearest_stable_block(blocks, region, inward=False)
    size = np.linalg.norm(blocks, axis=(1, 2)) + 1
    distances = [np.linalg.norm(blocks - X, axis=(1, 2)) / size for X in (found, expected)]
    np.testing.assert_allclose(*distances, rtol=0, atol=1e-14)


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("n", [4, 5])
def test_gradient_is_the_derivative_along_rotations(n, region):
    rng = np.random.default_rng(n)
    A, Z, W = 2 * normal(n), np.linalg.qr(rng.standard_normal((n, n)))[0], skew(rng, n)
    with jax.enable_x64(True):
        _, G = objective(isinstance(region, Disc), A[None], Z[None])
    h = 1e-5
    ahead, behind = (best_distance(A, Z @ scipy.linalg.expm(s * h * W), region) ** 2 / 2 for s in (1, -1))
    assert np.sum(np.asarray(G[0]) * W) == pytest.approx((ahead - behind) / (2 * h), rel=1e-7)
    np.testing.assert_array_equal(G[0], -np.asarray(G[0]).T)


# --- optimality -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("region", REGIONS)
def test_order_two_is_the_nearest_block(region):
    for seed in range(5):
        A = 2 * normal(2, seed)
        expected = np.linalg.norm(A - nearest_stable_block(A, region, inward=False))
        assert nearest_stable(A, region).distance == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("n", [4, 10])
def test_leaves_the_stationary_schur_factor_of_all_twos(n):
    A = np.full((n, n), 2.0)
    nearest = nearest_stable(A)
    # Identity and random starts reach this minimum as well. The Schur factor alone has 0.66 for n = 10, and gradient 0.
    assert nsfe(A, nearest.distance) == pytest.approx(0.5 - 0.25 / n, rel=1e-9)
    assert nearest.converged


@pytest.mark.parametrize(("n", "region"), [(4, Disc()), (5, Disc()), (5, HalfPlane())])
def test_no_rotation_of_the_factor_comes_nearer(n, region):
    A, rng = 1.5 * normal(n, 3), np.random.default_rng(0)
    nearest = nearest_stable(A, region)
    assert nearest.converged
    assert nearest.distance == pytest.approx(best_distance(A, nearest.form.Z, region), rel=1e-9)
    W = np.stack([skew(rng, n) for _ in range(100)])
    W /= np.linalg.norm(W, axis=(1, 2), keepdims=True)
    for size in (1e-4, 1e-2):
        rotated = nearest.form.Z @ scipy.linalg.expm(size * W)
        assert np.all(best_distance(A, rotated, region) >= nearest.distance * (1 - 1e-12))


@pytest.mark.parametrize("region", REGIONS)
def test_order_three_against_all_rotations(region):
    """A grid over all positions of the 2x2 block sees the global minimum, to the grid's width."""
    a, b = np.linspace(0, np.pi, 96, endpoint=False), np.linspace(0, np.pi, 97)
    # Turning the plane of the 2x2 block within itself changes nothing, so two angles reach every plane.
    angles = np.stack(np.meshgrid(a, b, [0.0], indexing="ij"), axis=-1).reshape(-1, 3)
    Z = scipy.spatial.transform.Rotation.from_euler("ZYZ", angles).as_matrix()
    for seed in range(4):
        A = 2 * normal(3, seed)
        grid = best_distance(A, Z, region).min()
        found = nearest_stable(A, region, n_starts=4).distance
        assert found <= grid
        assert found >= 0.97 * grid


ZOO = {
    "normal": 2 * normal(5, 1),
    "grcar": np.tril(np.triu(np.ones((5, 5)), -1), 3) - 2 * np.eye(5, k=-1),
    "jordan": 1.5 * np.eye(5) + np.eye(5, k=1),
    "symmetric": normal(5) + normal(5).T,
    "rotation": 1.2 * scipy.linalg.expm(normal(5) - normal(5).T),
    "real-then-complex": scipy.linalg.block_diag([[3.0]], [[1, 2], [-2, 1]], [[1, 9], [-1, 2]]),
    "zero": np.zeros((5, 5)),
    "identity": np.eye(5),
    "minus-identity": -np.eye(5),
    "stable": 0.1 * normal(5),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("region", [*REGIONS, Disc(0.5, 0.25)])
@pytest.mark.parametrize("name", ZOO)
def test_stable_and_never_behind_the_truncated_projection(name, region, dtype):
    A = ZOO[name].astype(dtype)
    nearest, truncated = nearest_stable(A, region), project_stable(A, region)
    assert nearest.form.certify().is_stable
    assert nearest.matrix.dtype == nearest.form.Z.dtype == dtype
    eps = np.finfo(dtype).eps
    rounding = 20 * eps * np.linalg.norm(A) + len(A) * np.finfo(dtype).tiny
    assert np.linalg.norm(A - nearest.matrix) <= np.linalg.norm(A - truncated.matrix) + rounding
    assert abs(np.linalg.norm(A - nearest.matrix) - nearest.distance) <= rounding


def test_squared_error_for_normal_entries():
    A = normal(10)
    nearest = nearest_stable(A)
    assert nsfe(A, nearest.distance) < 0.02
    assert nearest.converged


def test_further_starts_never_make_it_worse():
    A = 2 * normal(3, 5)
    one, four = nearest_stable(A), nearest_stable(A, n_starts=4)
    assert four.start_distances.shape == (4,)
    assert four.start_distances[0] == pytest.approx(one.distance, rel=1e-8)
    assert four.distance == pytest.approx(four.start_distances.min(), rel=1e-9)
    assert four.distance <= one.distance * (1 + 1e-9)
    again = nearest_stable(A, n_starts=4)
    np.testing.assert_array_equal(four.matrix, again.matrix)
    assert not np.array_equal(four.start_distances, nearest_stable(A, n_starts=4, seed=1).start_distances)


# --- invariances and stacks -------------------------------------------------------------------------------------------


def test_region_of_any_radius_and_centre():
    A, radius, centre = 2 * normal(5, 2), 0.3, -0.7
    moved = nearest_stable(centre * np.eye(5) + radius * A, Disc(radius, centre))
    assert moved.distance == pytest.approx(radius * nearest_stable(A).distance, rel=1e-8)
    shifted = nearest_stable(A + 4 * np.eye(5), HalfPlane(4.0))
    assert shifted.distance == pytest.approx(nearest_stable(A, HalfPlane()).distance, rel=1e-8)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scale(scale):
    A = 2 * normal(5, 2)
    for region, scaled in ((Disc(), Disc(scale)), (HalfPlane(), HalfPlane())):
        nearest = nearest_stable(scale * A, scaled)
        assert nearest.form.certify().is_stable
        assert nearest.distance == pytest.approx(scale * nearest_stable(A, region).distance, rel=1e-8)


def test_a_disc_that_is_a_point_to_the_matrix():
    A = 2 * normal(5, 2)
    nearest = nearest_stable(1e20 * A)
    assert nearest.form.certify().is_stable
    assert nearest.distance == pytest.approx(1e20 * nearest_stable(A, Disc(1e-11)).distance, rel=1e-8)


def test_stack_is_its_matrices_one_by_one():
    stack = 2 * np.random.default_rng(4).standard_normal((2, 3, 4, 4))
    stack[1, 2] *= 0.01  # stable
    nearest = nearest_stable(stack)
    assert nearest.matrix.shape == stack.shape
    assert nearest.start_distances.shape == (2, 3, 1)
    np.testing.assert_array_equal(nearest.matrix[1, 2], stack[1, 2])
    for index in np.ndindex(2, 3):
        alone = nearest_stable(stack[index])
        assert nearest.distance[index] == pytest.approx(alone.distance, rel=1e-6, abs=1e-12)
        assert nearest.form[index].certify().is_stable
        assert nearest.converged[index]


# --- edges and bad input ----------------------------------------------------------------------------------------------


def test_what_is_stable_comes_back_bit_identical():
    A = 0.1 * normal(5)
    nearest = nearest_stable(A)
    np.testing.assert_array_equal(nearest.matrix, A)
    assert (nearest.distance, nearest.iterations, nearest.converged) == (0.0, 0, True)


def test_orders_zero_and_one():
    assert nearest_stable(np.zeros((0, 0))).matrix.shape == (0, 0)
    assert nearest_stable(np.array([[3.0]])).distance == pytest.approx(2.0, abs=1e-14)
    assert nearest_stable(np.array([[-3.0]]), n_starts=3).start_distances.tolist() == pytest.approx([2.0] * 3)


def test_running_out_of_iterations_is_reported():
    A = normal(10)
    nearest = nearest_stable(A, max_iterations=5)
    assert not nearest.converged
    assert nearest.iterations == 5
    assert nearest.form.certify().is_stable
    assert nearest.distance <= np.linalg.norm(A - project_stable(A).matrix) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("A", "options", "words"),
    [
        (np.ones((2, 3)), {}, "square"),
        (np.ones((2, 2), int), {}, "float32 or float64"),
        (np.full((2, 2), np.nan), {}, "finite"),
        (np.ones((0, 2, 2)), {}, "at least one matrix"),
        (np.eye(2), {"region": 1.0}, "region"),
        (np.eye(2), {"n_starts": 0}, "n_starts"),
        (np.eye(2), {"n_starts": True}, "n_starts"),
        (np.eye(2), {"max_iterations": 1.5}, "max_iterations"),
        (np.eye(2), {"tolerance": 0.0}, "tolerance"),
        (np.eye(2), {"tolerance": float("nan")}, "tolerance"),
    ],
)
def test_bad_input(A, options, words):
    with pytest.raises(InvalidInputError, match=words):
        nearest_stable(A, **options)


# --- JAX's settings and cache -----------------------------------------------------------------------------------------


def test_precision_flag_has_no_say_and_stays():
    A = 2 * normal(4, 6)
    results = []
    for flag in (False, True):
        with jax.enable_x64(flag):
            results.append(nearest_stable(A).matrix)
            assert jax.config.jax_enable_x64 is flag
    np.testing.assert_array_equal(*results)


def compile_and_count_hits(factor):
    hits = []
    jax.monitoring.register_event_listener(
        lambda event, **_: hits.append(event) if event.endswith("/cache_hits") else None
    )
    compile_once(lambda x: factor * x, jax.ShapeDtypeStruct((3,), "float32"))
    return len(hits)


def test_compiled_code_outlives_the_process_without_a_trace_in_the_configuration(cache_home):
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = [getattr(jax.config, name) for name in names]
    assert compile_and_count_hits(2.5) == 0
    stored = set(cache_home.rglob("*-cache"))
    assert stored
    jax.clear_caches()
    assert compile_and_count_hits(2.5) == 1
    assert [getattr(jax.config, name) for name in names] == before
    jax.jit(lambda x: 3.5 * x)(np.ones(7))
    assert set(cache_home.rglob("*-cache")) == stored


def test_the_users_cache_directory_is_used(tmp_path, cache_home):
    stored = set(cache_home.rglob("*-cache"))
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    try:
        compile_and_count_hits(4.5)
        assert list(tmp_path.iterdir())
        assert jax.config.jax_compilation_cache_dir == str(tmp_path)
    finally:
        jax.config.update("jax_compilation_cache_dir", None)
        reset_cache()
    assert set(cache_home.rglob("*-cache")) == stored


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compile_and_count_hits(5.5) == 0
