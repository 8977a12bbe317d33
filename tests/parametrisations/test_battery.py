"""One battery over all parametrisations: counts, starts, proofs whatever the weights hold, derivatives, batches."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from schurfire import Disc, InvalidInputError, certify
from schurfire.parametrisations import PARAMETRISATIONS, parametrisation

DTYPES = ("float32", "float64")
NAMES = tuple(PARAMETRISATIONS)
PROVEN = tuple(name for name, kind in PARAMETRISATIONS.items() if kind.is_proven)
REGIONS = (Disc(), Disc(0.5, 0.25))
COUNTS = {
    "schur-projected": lambda n: n * n,
    "schur-factored": lambda n: 2 * n * n,
    "schur-triangular": lambda n: n * (n + 1) // 2 + n // 2,
    "modal": lambda n: 2 * n - n % 2,
    "lmi": lambda n: 5 * n * n,
    "spectral-penalty": lambda n: n * n,
    "none": lambda n: n * n,
}


def started(p, dtype, seed=0, radius=0.9):
    return p.start(np.random.default_rng(seed), radius * p.region.radius, dtype)


def stack(p, dtype, *seeds):
    models = [started(p, dtype, seed) for seed in seeds]
    return {name: np.stack([weights[name] for weights in models]) for name in p.shapes()}


def similar(p, dtype, value):
    return {name: np.full(shape, value, dtype) for name, shape in p.shapes().items()}


@functools.cache
def compiled(p, function="matrix"):
    return jax.jit(getattr(p, function))


def by_jax(p, weights, function="matrix"):
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, compiled(p, function)({k: jnp.asarray(w) for k, w in weights.items()}))


def assert_proven(p, weights):
    """By NumPy and by JAX, in the precision of the weights."""
    dtype = next(iter(weights.values())).dtype
    with np.errstate(all="ignore"):
        matrices = p.matrix(weights), by_jax(p, weights)
    for A in matrices:
        assert A.dtype == dtype
        for matrix in A.reshape(-1, *A.shape[-2:]):
            assert certify(matrix, p.region).is_stable, matrix
        if p.form == "quasi-triangular":
            assert not np.tril(A, -2).any()
            assert not A.diagonal(-1, -2, -1)[..., 1::2].any()


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].dtype == other[name].dtype
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


# --- weights and starts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_counts_and_shapes(name, n):
    p = parametrisation(name, n)
    weights = started(p, "float32")
    assert p.count() == COUNTS[name](n) == sum(w.size for w in weights.values())
    assert {k: w.shape for k, w in weights.items()} == p.shapes()
    assert all(w.dtype == np.float32 and w.size for w in weights.values())
    assert p.form in ("dense", "quasi-triangular", "block-diagonal")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 4, 7])
def test_starts_are_stable_with_the_radius_asked_for(name, n, region, dtype):
    p = parametrisation(name, n, region)
    rng = np.random.default_rng(1)
    distances, imaginary = [], []
    for radius in (0.01, 0.5, 1.0):
        for _ in range(10):
            A = p.matrix(p.start(rng, radius * region.radius, dtype))
            assert certify(A, region).is_stable
            eigenvalues = np.linalg.eigvals(A.astype(np.float64))
            assert np.abs(eigenvalues - region.centre).max() <= radius * region.radius * (1 + 1e-5) + 1e-5
            distances.extend(np.abs(eigenvalues - region.centre) / (radius * region.radius))
            imaginary.extend(eigenvalues.imag)
    assert 0.3 < np.mean(distances) < 0.7
    if n > 1:
        assert 0.2 < np.mean(np.array(imaginary) != 0) < 0.8


@pytest.mark.parametrize("name", NAMES)
def test_a_start_is_repeatable_and_refuses_what_the_region_excludes(name):
    p = parametrisation(name, 4, Disc(0.5))
    assert_same(started(p, "float32", 3), started(p, "float32", 3))
    for radius in (0.0, -1.0, 0.6, np.nan):
        with pytest.raises(InvalidInputError, match="Expected radius to be positive and at most"):
            p.start(np.random.default_rng(0), radius)
    with pytest.raises(InvalidInputError, match="Expected dtype"):
        p.start(np.random.default_rng(0), 0.3, "int32")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_start_from_a_matrix(name, n, region, dtype):
    rng = np.random.default_rng(n)
    G = rng.standard_normal((n, n))
    A = region.centre * np.eye(n) + 0.9 * region.radius / np.abs(np.linalg.eigvals(G)).max() * G
    A = A.astype(dtype)
    p = parametrisation(name, n, region)
    weights, V = p.start_from(A)
    assert {k: (w.shape, w.dtype) for k, w in weights.items()} == {k: (s, A.dtype) for k, s in p.shapes().items()}
    X = p.matrix(weights)
    assert certify(X, region).is_stable
    eps = np.finfo(dtype).eps
    tolerance = (1e4 if name == "lmi" else 200) * n * eps * np.linalg.cond(V.astype(float))
    np.testing.assert_allclose(np.linalg.solve(V.astype(float), A @ V.astype(float)), X, atol=tolerance, rtol=tolerance)
    if p.basis(weights) is not None:
        np.testing.assert_allclose(p.basis(weights), V, atol=10 * n * eps)


@pytest.mark.parametrize("name", NAMES)
def test_start_from_refuses_or_keeps_what_is_unstable(name):
    p = parametrisation(name, 3)
    A = np.array([[0.5, 2.0, 0.0], [1.0, 0.5, 1.0], [0.0, 1.0, 0.5]])
    if p.is_proven:
        with pytest.raises(InvalidInputError, match="stable, with all eigenvalues strictly within 1 of 0"):
            p.start_from(A)
    else:
        np.testing.assert_array_equal(p.matrix(p.start_from(A)[0]), A)
    with pytest.raises(InvalidInputError, match="shape"):
        p.start_from(np.zeros((2, 2)))
    with pytest.raises(InvalidInputError, match="finite"):
        p.start_from(np.full((3, 3), np.nan))


# --- stable, whatever the weights hold --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("name", PROVEN)
def test_proven_after_every_step_of_a_training(name, region, dtype):
    p, rng = parametrisation(name, 5, region), np.random.default_rng(2)
    weights = stack(p, dtype, 0, 1, 2)
    for step in range(50):
        size = 0.2 if step % 10 == 9 else 0.02
        weights = {k: (w + size * rng.standard_normal(w.shape)).astype(dtype) for k, w in weights.items()}
        weights = by_jax(p, weights, "retract")
        if step % 10 in (0, 9):
            assert_proven(p, weights)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("name", PROVEN)
@pytest.mark.parametrize("n", [1, 4, 5])
def test_proven_with_garbage(name, n, region, dtype):
    p, rng, info = parametrisation(name, n, region), np.random.default_rng(3), np.finfo(dtype)
    garbage = [similar(p, dtype, value) for value in (0.0, 1.0, -3.0, 1e38, -info.max, info.tiny, np.nan, np.inf)]
    garbage += [
        {k: rng.standard_normal(s).astype(dtype) * dtype_scale for k, s in p.shapes().items()}
        for dtype_scale in (np.dtype(dtype).type(1e8), np.dtype(dtype).type(1e-8))
    ]
    for bad in (np.nan, -np.inf, 1e30):
        for key in p.shapes():
            weights = started(p, dtype)
            weights[key].flat[rng.integers(weights[key].size)] = bad
            garbage.append(weights)
    together = {k: np.stack([weights[k] for weights in garbage]) for k in p.shapes()}
    assert_proven(p, together)
    with np.errstate(all="ignore"):
        assert_proven(p, p.retract(together))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PROVEN)
def test_proven_after_averaging(name, dtype):
    p = parametrisation(name, 6)
    one, other = (stack(p, dtype, *seeds) for seeds in ((0, 1, 2, 3), (4, 5, 6, 7)))
    assert_proven(p, {k: (one[k] + other[k]) / 2 for k in one})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_retract_is_idempotent_and_keeps_the_matrix(name, n, dtype):
    p, rng = parametrisation(name, n), np.random.default_rng(4)
    weights = stack(p, dtype, 0, 1, 2, 3)
    for size in (0.0, 0.01, 0.3, 10.0):
        moved = {k: (w + size * rng.standard_normal(w.shape)).astype(dtype) for k, w in weights.items()}
        for retract in (p.retract, lambda w: by_jax(p, w, "retract")):
            once = retract(moved)
            assert_same(once, retract(once))
        once = p.retract(moved)
        np.testing.assert_array_equal(p.matrix(once), p.matrix(moved))
        if size == 0.0:
            assert_same(once, p.retract(weights))


# --- one source, any batch --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("function", ["matrix", "retract", "basis", "penalty"])
def test_compiled_mapped_and_looped_agree(name, function, dtype):
    p, rng = parametrisation(name, 5), np.random.default_rng(5)
    weights = {k: w + 0.05 * rng.standard_normal(w.shape).astype(dtype) for k, w in stack(p, dtype, *range(6)).items()}
    call = getattr(p, function)
    if call({k: w[0] for k, w in weights.items()}) is None:
        return
    expected = call(weights)
    tolerance = (1000 if name == "lmi" else 100) * np.finfo(dtype).eps
    close = functools.partial(np.testing.assert_allclose, rtol=tolerance, atol=tolerance)

    def compare(found, wanted):
        jax.tree.map(lambda x, y: (close(np.asarray(x), y), None)[1], found, wanted)

    compare(
        jax.tree.map(lambda *x: np.stack(x), *(call({k: w[i] for k, w in weights.items()}) for i in range(6))), expected
    )
    shaped = call({k: w.reshape(2, 3, *w.shape[1:]) for k, w in weights.items()})
    compare(jax.tree.map(lambda x: x.reshape(6, *x.shape[2:]), shaped), expected)
    with jax.enable_x64(True):
        tensors = {k: jnp.asarray(w) for k, w in weights.items()}
        pairs = {k: w.reshape(2, 3, *w.shape[1:]) for k, w in tensors.items()}
        compare(jax.jit(call)(tensors), expected)
        compare(jax.jit(jax.vmap(call))(tensors), expected)
        compare(jax.tree.map(lambda x: x.reshape(6, *x.shape[2:]), jax.vmap(jax.vmap(call))(pairs)), expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 5, 6])
def test_the_derivative_of_the_matrix(name, n):
    """Against central differences, mapped over a stack; stable matrices only, so that nothing is replaced."""
    p, rng = parametrisation(name, n), np.random.default_rng(6)
    weights = stack(p, "float64", 0, 1)
    if name == "modal" and n > 1:
        weights["blocks"] += 0.01  # else the difference quotients of a zero below the diagonal are not symmetric
    H, N = rng.standard_normal((n, n)), rng.standard_normal((n, n))

    def value(w):
        xp = np if isinstance(next(iter(w.values())), np.ndarray) else jnp
        Z = p.basis(w)
        return xp.sum(p.matrix(w) * H, axis=(-2, -1)) + (0.0 if Z is None else xp.sum(Z * N, axis=(-2, -1)))

    with jax.enable_x64(True):
        tensors = {k: jnp.asarray(w) for k, w in weights.items()}
        mapped = jax.tree.map(np.asarray, jax.vmap(jax.grad(value))(tensors))
        summed = jax.tree.map(np.asarray, jax.jit(jax.grad(lambda w: value(w).sum()))(tensors))
    direction = {k: rng.standard_normal(w.shape) for k, w in weights.items()}
    step = 1e-6
    ahead, behind = (value({k: w + s * direction[k] for k, w in weights.items()}) for s in (step, -step))
    for gradient in (mapped, summed):
        slope = sum((gradient[k] * direction[k]).reshape(2, -1).sum(axis=1) for k in weights)
        np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-8)


# --- what is fixed and what is refused --------------------------------------------------------------------------------


def test_known_entries():
    free = np.full((5, 5), np.nan)
    above, below, inside = (free.copy() for _ in range(3))
    above[0, 2], below[3, 1], inside[0, 1] = 3.0, 0.0, 0.1
    wrong = below + 1.0
    honoured = {
        name: [parametrisation(name, 5).honours(k) for k in (free, above, below, inside, wrong)] for name in NAMES
    }
    nothing, anything = [True, False, False, False, False], [True] * 5
    assert honoured == {
        "schur-projected": nothing,
        "schur-factored": nothing,
        "schur-triangular": [True, True, True, False, False],
        "modal": [True, False, True, False, False],
        "lmi": nothing,
        "spectral-penalty": anything,
        "none": anything,
    }


def test_which_ones_are_proven():
    assert set(NAMES) - set(PROVEN) == {"spectral-penalty", "none"}


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("schur", 3), {}, "Expected stability to be one of 'schur-projected'"),
        (("modal", 0), {}, "Expected state_size to be a whole number"),
        (("modal", 2.0), {}, "Expected state_size"),
        (("modal", True), {}, "Expected state_size"),
        (("modal", 2, 1.0), {}, "Expected region to be a schurfire.Disc"),
        (("modal", 2), {"strength": 1.0}, "It has no options"),
        (("lmi", 2), {"eps": 1.0}, "It has the options epsilon"),
        (("lmi", 2), {"epsilon": 0.0}, "Expected epsilon to be positive"),
        (("spectral-penalty", 2), {"strength": -1.0}, "Expected strength to be finite and not negative"),
        (("spectral-penalty", 2), {"epsilon": float("nan")}, "Expected epsilon"),
    ],
)
def test_bad_arguments(arguments, options, message):
    with pytest.raises(InvalidInputError, match=message):
        parametrisation(*arguments, **options)
