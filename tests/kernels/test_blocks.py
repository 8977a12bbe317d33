"""The nearest stable block: against the paper's own candidate list, strictly inside, and nothing lost on the way."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schurfire import Disc, HalfPlane, InvalidInputError, nearest_stable_block
from schurfire.kernels import blocks as blocks_module
from tests.references import distance, nearest, strictly_inside
from tests.zoo import BLOCKS

DTYPES = ("float32", "float64")
J = np.array([[0.0, -1.0], [1.0, 0.0]])

# The distance asked for is 1e-9 of the optimum. A stored block cannot be nearer than its entries are spaced. One that
# is strictly inside needs room, too, for the rounding errors of its determinant: those of the products a d and b c.
RELATIVE, ULPS, ROOM = 1e-9, 64.0, 32.0


def allowed(best: float, minimiser: np.ndarray, block: np.ndarray, region: Disc | HalfPlane) -> float:
    """The largest distance that is accepted from a result strictly inside."""
    eps = float(np.finfo(block.dtype).eps)
    origin = region.bound if isinstance(region, HalfPlane) else region.centre
    norm = np.linalg.norm(np.float64(block) / 4) * 4
    limit = best * (1 + RELATIVE) + ULPS * eps * (norm + abs(origin))
    if isinstance(region, HalfPlane):
        return limit + 2 * float(np.finfo(block.dtype).tiny)
    (a, b), (c, d) = (minimiser - origin * np.eye(2)) / region.radius
    room = ROOM * eps * (4 + abs(a * d) + abs(b * c) + norm * abs(origin) / region.radius**2) * region.radius
    # Where the boundary has a cusp the room is needed in trace and determinant both. Above a norm of 1e4, half of the
    # mantissa is enough to stay exactly on the surface of double eigenvalues, along which the distance is flat.
    along = 4 * np.sqrt(eps) * norm
    return limit + min(room, along, along**2 / best if best else np.inf)


def rotation(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def families(dtype: str) -> dict[str, np.ndarray]:
    """Blocks that are hard for the unit disc and for the left half-plane, by what makes them so."""
    rng = np.random.default_rng(1)
    decades = 150 if dtype == "float64" else 15
    eps = float(np.finfo(dtype).eps)

    def normal(count):
        return rng.standard_normal((count, 2, 2))

    def turned(blocks):
        turns = np.array([rotation(angle) for angle in rng.uniform(0, np.pi, len(blocks))])
        return turns @ blocks @ np.swapaxes(turns, -1, -2)

    branches = np.array(list(BLOCKS.values()))
    branches = np.concatenate([branches, np.swapaxes(branches, -1, -2)])
    a, b, c = rng.uniform(-1.5, 1.5, 24), 10 ** rng.uniform(-3, 3, 24), -(10 ** rng.uniform(-3, 3, 24))
    sheared = np.array([[[1.0 + 0.3 * x, size], [0.1 * y, 1.0 - 0.2 * x]] for x, y, size in SHEARS])
    double_root = [(2 + t) * rotation(angle) for t in (-1e-3, -1e-8, 0, 1e-8, 1e-3) for angle in (0.5, 1.2)]
    return {
        "random": normal(40) * 10 ** rng.uniform(-1, 2, (40, 1, 1)),
        "branches": np.concatenate([branches, turned(branches), branches + 0.01 * normal(len(branches))]),
        "standard": np.moveaxis(np.array([[a, b], [c, a]]), -1, 0),
        "symmetric": np.array([x + x.T for x in normal(10) * 3]),
        "rotations": np.array(
            [s * rotation(t) for s in (0.9, 1.0, 1 + eps, 1.5, 30.0) for t in (0, 0.1, 1, 2.5, np.pi)]
        ),
        "double root": np.array(double_root),
        "near identity": np.array(
            [x * np.eye(2) + 10.0**-k * normal(1)[0] for x in (1, -1) for k in range(3, 18) for _ in (0, 1)]
        ),
        "skewed": SKEWED,
        "special": SPECIAL,
        "boundary": np.concatenate([turned(x) for x in (branches, normal(20) * 3)]),  # replaced by their minimisers
        "sheared": turned(sheared),
        "graded": normal(30) * 10 ** rng.uniform(-8, 8, (30, 2, 2)) if decades == 150 else normal(10) * GRADES,
        "nearly triangular": np.array([[[x, s], [y, z]] for x, y, z, s in TRIANGULAR]),
        "large": turned(normal(10) * 10 ** rng.uniform(2, decades, (10, 1, 1))),
        "small": turned(normal(10) * 10 ** rng.uniform(-decades, -2, (10, 1, 1))),
    }


SHEARS = list(itertools.product((-1, 0, 1), (-1, 0, 1), (3.0, 1e2, 1e4, 1e7)))
GRADES = 10.0 ** np.array([[-2, 5], [-5, 1]])
TRIANGULAR = [
    (0.0, 0.0, 30.0, 1e13),
    (2.0, 0.0, 0.5, 1e14),
    (80.0, 0.0, 0.5, 1e14),
    (3e5, 1e-7, 1.0, 1e18),
    (3.0, 1e-3, 1.0, 1e12),
    (30.8, -5e-5, 0.0, 1e8),
    (0.5, -1e-6, 0.5, 1e7),
]
SKEWED = np.array([[[1.25, 151755.8], [-7.8e9, 1.25]], [[1.0, 1e10], [-1e18, 1.0]], [[0.5, 1e10], [-1e-10, 0.5]]])
SPECIAL = np.array(
    [
        np.zeros((2, 2)), np.eye(2), -np.eye(2), J, -J, 2 * np.eye(2), 2 * J, J / 2, np.diag([1, -1]),
        np.diag([2, 0.5]), [[0, 2], [2, 0]], [[0, 1], [1, 0]], [[0, 3], [0, 0]], [[0, 0], [-3, 0]], [[1, 3], [0, 1]],
        [[1, 10], [10, 1]],
        [[-1, 10], [10, -1]], [[1, 1], [-1, 1]], [[0, 4], [0.25, 0]], [[0, 4], [-0.25, 0]], [[0.5, 0.5], [0.5, 0.5]],
        [[2, 2], [2, 2]], [[1, 1e-8], [-1e-8, 1]], [[3, -1], [1, 1]], [[-1e-5, 1e5], [-1e-5, -1e-5]],
    ]
)  # fmt: skip


@functools.cache
def stack(family: str, dtype: str, region: Disc | HalfPlane) -> np.ndarray:
    """A family, moved to the region, in one precision."""
    blocks = families(dtype)[family]
    centre, radius = (region.bound, 1.0) if isinstance(region, HalfPlane) else (region.centre, region.radius)
    blocks = (centre * np.eye(2) + radius * blocks).astype(dtype)
    if family != "boundary":
        return blocks
    on_it = nearest_stable_block(blocks, region, inward=False)
    return np.concatenate([on_it, np.nextafter(on_it, np.inf, dtype=dtype), nearest_stable_block(blocks, region)])


@functools.cache
def reference(family: str, dtype: str, region: Disc | HalfPlane) -> list[tuple[float, np.ndarray, str]]:
    return [nearest(block, region) for block in stack(family, dtype, region)]


UNIT, OTHERS = Disc(), (Disc(0.75, 0.4), Disc(1e-3, -2.0), Disc(1e5, 1.0), HalfPlane(), HalfPlane(-0.5), HalfPlane(3e4))
NAMES = list(families("float64"))
CASES = [(name, dtype, UNIT) for name in NAMES for dtype in DTYPES]
CASES += [(name, dtype, HalfPlane()) for name in NAMES for dtype in DTYPES]
CASES += [(name, "float64", region) for name in ("random", "branches", "boundary") for region in OTHERS]
CASES += [(name, "float64", HalfPlane(-0.5)) for name in ("special", "rotations", "small", "skewed")]
CASES += [("branches", "float32", region) for region in OTHERS]


@functools.cache
def compile_for(region, inward=True):
    return jax.jit(lambda blocks: nearest_stable_block(blocks, region, inward=inward))


def by_jax(blocks: np.ndarray, region: Disc | HalfPlane, inward: bool = True) -> np.ndarray:
    """The compiled results, always for stacks of one size: compiling takes longer than all the rest."""
    padded = np.resize(blocks, (400, *blocks.shape[1:]))
    assert len(padded) >= len(blocks)
    with jax.enable_x64(True):
        results = compile_for(region, inward)(jnp.asarray(padded))
        assert isinstance(results, jax.Array)
        assert results.dtype == blocks.dtype
        return np.asarray(results)[: len(blocks)]


# --- the nearest point ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "dtype", "region"), CASES)
def test_nearest_and_strictly_inside(family, dtype, region):
    blocks = stack(family, dtype, region)
    results = nearest_stable_block(blocks, region)
    assert results.dtype == dtype
    for block, result, (best, minimiser, _) in zip(blocks, results, reference(family, dtype, region), strict=True):
        assert strictly_inside(result, region), block.tolist()
        found, limit = distance(block, result), allowed(best, minimiser, block, region)
        assert best * (1 - 1e-15) <= found <= limit, (block.tolist(), result.tolist(), best)


@pytest.mark.parametrize(("family", "dtype", "region"), CASES)
def test_the_closed_minimiser(family, dtype, region):
    """Rounded, so it may be outside by a rounding error; where two points are equally near, either is right."""
    blocks = stack(family, dtype, region)
    results = nearest_stable_block(blocks, region, inward=False)
    eps, origin = float(np.finfo(dtype).eps), region.bound if isinstance(region, HalfPlane) else region.centre
    for block, result, (best, minimiser, _) in zip(blocks, results, reference(family, dtype, region), strict=True):
        rounding = RELATIVE * best + 16 * eps * (np.linalg.norm(block / 4) * 4 + abs(origin))
        assert abs(distance(block, result) - best) <= rounding, (block.tolist(), result.tolist(), best)
        left = nearest(result, region)[0]  # of the way into the region
        room = allowed(0.0, minimiser, block, region) / 4
        assert left <= rounding + room, (block.tolist(), result.tolist(), left)


def test_every_candidate_wins_somewhere():
    disc = {name for family in NAMES for _, _, name in reference(family, "float64", UNIT)}
    assert disc == {"itself", "determinant", "plus", "minus", "double plus", "double minus", "ridge"}
    plane = {name for family in NAMES for _, _, name in reference(family, "float64", HalfPlane())}
    assert plane == {"itself", "trace", "singular", "double"}


@pytest.mark.parametrize("region", [UNIT, Disc(0.5, 1.0), HalfPlane(), HalfPlane(-2.0)])
def test_no_feasible_point_is_nearer(region):
    rng = np.random.default_rng(2)
    for block in stack("random", "float64", region):
        result = nearest_stable_block(block, region)
        found = np.linalg.norm(block - result)
        steps = rng.standard_normal((2000, 2, 2)) * (found + 1e-3) * 10 ** rng.uniform(-6, 0, (2000, 1, 1))
        points = feasible(result + steps + rng.uniform(-0.01, 0.1, (2000, 1, 1)) * (block - result), region)
        assert np.linalg.norm(block - points, axis=(-2, -1)).min() >= found * (1 - 1e-7)


def feasible(points, region):
    """The points, scaled towards the centre or shifted to the left where they are outside."""
    if isinstance(region, HalfPlane):
        excess = np.linalg.eigvals(points).real.max(axis=-1) - region.bound
        return points - np.maximum(excess, 0)[:, None, None] * np.eye(2)
    shifted = (points - region.centre * np.eye(2)) / region.radius
    size = np.abs(np.linalg.eigvals(shifted)).max(axis=-1)
    return region.centre * np.eye(2) + region.radius * shifted / np.maximum(size, 1)[:, None, None]


@pytest.mark.parametrize("region", [UNIT, *OTHERS])
@pytest.mark.parametrize("dtype", DTYPES)
def test_single_numbers(region, dtype):
    values = np.array([-1e30, -7.0, -1.0, -0.5, 0.0, 0.25, 1.0, 1 + 2.0**-23, 3e4, 1e30], dtype)
    results = nearest_stable_block(values[:, None, None], region)
    closed = nearest_stable_block(values[:, None, None], region, inward=False)[:, 0, 0]
    if isinstance(region, HalfPlane):
        expected = np.minimum(np.float64(values), region.bound)
    else:
        expected = np.clip(np.float64(values), region.centre - region.radius, region.centre + region.radius)
    for value, result, near in zip(values, results, expected, strict=True):
        inside = strictly_inside(np.array([[value]]), region)
        assert strictly_inside(result, region)
        room = 2 * np.spacing(np.abs(result[0, 0])) + np.finfo(dtype).tiny
        assert result[0, 0] == value if inside else abs(result[0, 0] - near) <= room
    np.testing.assert_allclose(closed, expected, rtol=np.finfo(dtype).eps)
    assert closed.dtype == results.dtype == dtype
    for value, result, near in zip(values, by_jax(values[:, None, None], region), results, strict=True):
        assert strictly_inside(result, region), (value, result)
        assert abs(result[0, 0] - near[0, 0]) <= 4 * np.finfo(dtype).tiny


# --- rounding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("region", [UNIT, Disc(0.75, 0.4), HalfPlane(), HalfPlane(-0.5)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_inside_stays_bit_identical(region, dtype):
    rng = np.random.default_rng(3)
    blocks = rng.standard_normal((1500, 2, 2)) * 10.0 ** rng.integers(-4, 2, (1500, 1, 1))
    smaller = Disc(region.radius * 0.999, region.centre) if isinstance(region, Disc) else HalfPlane(region.bound - 0.01)
    blocks = np.array([block for block in blocks.astype(dtype) if strictly_inside(block, smaller)])
    assert len(blocks) > 50
    for inward in (True, False):
        np.testing.assert_array_equal(nearest_stable_block(blocks, region, inward=inward), blocks)
    np.testing.assert_array_equal(by_jax(blocks[:400], region), blocks[:400])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("region", [UNIT, HalfPlane()])
def test_one_ulp_inside_is_inside(dtype, region):
    """Strictly stable blocks that no filter can accept may move, but only by rounding errors."""
    eps = np.finfo(dtype).eps
    blocks = np.array([(1 - eps / 2) * rotation(t) for t in (0.0, np.pi)] + [np.diag([1 - eps / 2, 0.25])], dtype)
    blocks = -blocks[[0, 2]] * eps if region == HalfPlane() else blocks
    for block in blocks:
        assert strictly_inside(block, region)
        result = nearest_stable_block(block, region)
        assert strictly_inside(result, region)
        assert distance(block, result) <= ULPS * eps


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("region", [UNIT, Disc(0.75, 0.4), HalfPlane(), HalfPlane(-0.5)])
def test_enormous_and_tiny_entries(region, dtype):
    """Beyond the range where the distance is promised, the result is still strictly inside and finite."""
    info, rng = np.finfo(dtype), np.random.default_rng(4)
    ends = np.array([float(info.max), float(info.max) / 4, float(info.tiny), float(info.smallest_subnormal), 1.0, 0.0])
    blocks = rng.choice(ends, (100, 2, 2)) * rng.choice([-1, 1], (100, 2, 2))
    blocks = blocks.astype(dtype)
    for results in (nearest_stable_block(blocks, region), by_jax(blocks, region)):
        assert np.isfinite(results).all()
        for block, result in zip(blocks, results, strict=True):
            assert strictly_inside(result, region), block.tolist()


def test_regions_that_float32_cannot_hold_are_not_left():
    for region in (Disc(0.1), Disc(1 / 3, 0.1), HalfPlane(-0.1)):
        for block in stack("branches", "float32", region):
            assert strictly_inside(nearest_stable_block(block, region), region)


# --- invariances ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["random", "branches", "standard", "special"])
def test_transposing_and_negating(family):
    blocks = stack(family, "float64", UNIT)
    result = nearest_stable_block(blocks)
    if family == "special":  # ties may be broken otherwise
        assert_equally_near(blocks, np.swapaxes(nearest_stable_block(np.swapaxes(blocks, -1, -2)), -1, -2), result)
        assert_equally_near(blocks, -nearest_stable_block(-blocks), result)
        return
    transposed = np.swapaxes(nearest_stable_block(np.swapaxes(blocks, -1, -2)), -1, -2)
    size = np.linalg.norm(blocks, axis=(-2, -1))[:, None, None]
    np.testing.assert_allclose(transposed / size, result / size, atol=1e-13)
    np.testing.assert_allclose(-nearest_stable_block(-blocks) / size, result / size, atol=1e-13)
    transposed = np.swapaxes(nearest_stable_block(np.swapaxes(blocks, -1, -2), HalfPlane()), -1, -2)
    np.testing.assert_allclose(transposed / size, nearest_stable_block(blocks, HalfPlane()) / size, atol=1e-13)


@pytest.mark.parametrize("region", [UNIT, Disc(0.75, 0.4), HalfPlane(-0.5)])
def test_turning(region):
    blocks = stack("random", "float64", region)
    for U in (rotation(0.7), rotation(2.0) @ np.diag([1.0, -1.0])):
        turned = U.T @ nearest_stable_block(U @ blocks @ U.T, region) @ U
        assert_equally_near(blocks, turned, nearest_stable_block(blocks, region))


@pytest.mark.parametrize("family", ["random", "branches"])
@pytest.mark.parametrize("exponent", [-400, -4, 8, 400])
def test_scaling_by_powers_of_four_is_exact(family, exponent):
    blocks, factor = stack(family, "float64", UNIT), 2.0**exponent
    assert_equally_near(blocks, nearest_stable_block(2 * blocks, Disc(2)) / 2, nearest_stable_block(blocks))
    np.testing.assert_array_equal(
        nearest_stable_block(blocks * factor, Disc(factor)), nearest_stable_block(blocks) * factor
    )
    scaled, expected = (
        nearest_stable_block(blocks * factor, HalfPlane()),
        nearest_stable_block(blocks, HalfPlane()) * factor,
    )
    np.testing.assert_allclose(scaled, expected, rtol=0, atol=np.finfo("float64").tiny * max(1, factor))


def assert_equally_near(blocks, results, others):
    size = np.linalg.norm(blocks, axis=(-2, -1))
    first, second = (np.linalg.norm(blocks - x, axis=(-2, -1)) for x in (results, others))
    np.testing.assert_allclose(first / (1 + size), second / (1 + size), atol=1e-13)


entries = st.floats(-4, 4) | st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.5, 1e-8, 1 + 2**-52])


@given(st.tuples(*4 * [entries]), st.sampled_from([UNIT, HalfPlane(), Disc(0.5, 0.25)]))
@example((1.0, 0.125, 0.0, 1.0), UNIT)
@example((1.0, 1e-8, -1e-8, 1.0), UNIT)
@example((1.203125, 0.0, 0.0, 0.75), UNIT)
@example((1.203125, 1e-5, 0.0, 0.75), UNIT)
@example((0.0, 0.0, 0.0, 0.0), HalfPlane())
def test_any_small_block(numbers, region):
    block = np.reshape(numbers, (2, 2))
    result = nearest_stable_block(block, region)
    assert strictly_inside(result, region)
    best, minimiser, _ = nearest(block, region)
    assert best * (1 - 1e-15) <= distance(block, result) <= allowed(best, minimiser, block, region)


# --- libraries, stacks, compilation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("region", [UNIT, HalfPlane(-0.5)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_results(dtype, region):
    families_ = [family for family in NAMES if family not in ("graded", "nearly triangular")]
    blocks = np.concatenate([stack(family, dtype, region) for family in families_])
    expected = [answer for family in families_ for answer in reference(family, dtype, region)]
    results = by_jax(blocks, region)
    for block, result, (best, minimiser, _) in zip(blocks, results, expected, strict=True):
        assert strictly_inside(result, region), block.tolist()
        assert distance(block, result) <= allowed(best, minimiser, block, region), (block.tolist(), result.tolist())


@pytest.mark.parametrize("region", [UNIT, HalfPlane()])
def test_compiled_eager_mapped_and_numpy_results_agree(region):
    blocks = stack("random", "float32", region)
    expected = nearest_stable_block(blocks, region)
    size = np.linalg.norm(blocks, axis=(-2, -1))
    tensor = jnp.asarray(blocks)
    mapped = jax.jit(jax.vmap(lambda block: nearest_stable_block(block, region)))(tensor)
    eager = nearest_stable_block(tensor, region) if region == UNIT else mapped
    for results in (eager, mapped, by_jax(blocks, region)):
        assert results.dtype == "float32"
        distances, others = (np.linalg.norm(blocks - x, axis=(-2, -1)) for x in (results, expected))
        np.testing.assert_allclose(distances / size, others / size, atol=1e-5)
    closed = nearest_stable_block(blocks, region, inward=False)
    np.testing.assert_allclose(by_jax(blocks, region, inward=False), closed, atol=1e-5 * size.max())


def test_compiled_once():
    traces = []

    @jax.jit
    def project(blocks):
        traces.append(blocks.shape)
        return nearest_stable_block(blocks)

    for seed in range(3):
        project(np.random.default_rng(seed).standard_normal((5, 2, 2)).astype("float32"))
    assert traces == [(5, 2, 2)]


@pytest.mark.parametrize("order", [1, 2])
def test_a_stack_is_done_like_each_block(order, monkeypatch):
    monkeypatch.setattr(blocks_module, "_CHUNK", 7)
    blocks = np.random.default_rng(5).standard_normal((3, 11, order, order)) * 2
    for inward in (True, False):
        results = nearest_stable_block(blocks, inward=inward)
        assert results.shape == blocks.shape
        for index in np.ndindex(3, 11):
            np.testing.assert_array_equal(results[index], nearest_stable_block(blocks[index], inward=inward))


def test_inputs_are_left_alone():
    blocks = stack("random", "float64", UNIT).copy()
    before = blocks.copy()
    nearest_stable_block(blocks)
    np.testing.assert_array_equal(blocks, before)
    blocks.flags.writeable = False
    nearest_stable_block(blocks)
    np.testing.assert_array_equal(nearest_stable_block(before[:, ::-1]), nearest_stable_block(before[:, ::-1].copy()))


def test_nested_lists():
    assert nearest_stable_block([[1.5]], inward=False).tolist() == [[1.0]]


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (2,), (3, 3), (1, 2), (2, 1), (4, 2, 3), (0, 0)])
def test_shapes(shape):
    with pytest.raises(
        InvalidInputError, match=r"Expected blocks to be of shape \(\.\.\., 1, 1\) or .* received shape \("
    ):
        nearest_stable_block(np.zeros(shape))


def test_other_bad_input():
    with pytest.raises(
        InvalidInputError, match=r"blocks to be a stack of at least one block, .* Leave out empty stacks"
    ):
        nearest_stable_block(np.zeros((0, 2, 2)))
    with pytest.raises(InvalidInputError, match=r"Expected region to be a schurfire.Disc"):
        nearest_stable_block(np.eye(2), 1.0)
    with pytest.raises(InvalidInputError, match="dtype int64"):
        nearest_stable_block([[1, 2], [3, 4]])
    with pytest.raises(InvalidInputError, match="wide enough to hold a float32 number"):
        nearest_stable_block(np.eye(2, dtype="float32"), Disc(1e-9, 0.1))
    with pytest.raises(TypeError):
        nearest_stable_block(np.eye(2), UNIT, False)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(value, order):
    """Refused where values are known, and flagged by NaN or infinity inside compiled functions; never dropped."""
    for place in np.ndindex(order, order):
        blocks = np.full((3, order, order), 0.25, "float32")
        blocks[(1, *place)] = value
        with pytest.raises(InvalidInputError, match="Expected blocks to be finite, received 1 NaN or infinite value"):
            nearest_stable_block(blocks)
        for region, inward in itertools.product((UNIT, HalfPlane(1.0)), (True, False)):
            results = by_jax(blocks, region, inward)
            assert not np.isfinite(results[1]).all(), (place, region, inward)
            np.testing.assert_array_equal(results[::2], blocks[::2])
