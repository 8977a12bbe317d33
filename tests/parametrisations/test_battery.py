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


def everything(p):
    return lambda w: {"matrix": p.matrix(w), "retract": p.retract(w), "basis": p.basis(w), "penalty": p.penalty(w)}


def trusting(p):
    return lambda w: (p.matrix_of_retracted(w), p.basis_of_retracted(w))


def checking(p):
    return lambda w: (p.matrix(w), p.basis(w))


@functools.cache
def compiled(p, dtype):
    """One program for each parametrisation and precision, mapped by ``vmap`` in one of them."""
    return jax.jit(jax.vmap(everything(p)) if dtype == "float32" else everything(p))


def by_jax(p, weights):
    """Everything, for a stack of at most 24 models."""
    count = len(next(iter(weights.values())))
    padded = {k: np.concatenate([w, np.repeat(w[:1], 24 - count, axis=0)]) for k, w in weights.items()}
    with jax.enable_x64(True):
        results = compiled(p, next(iter(padded.values())).dtype.name)(padded)
        return jax.tree.map(lambda x: np.asarray(x)[:count], results)


def assert_proven(p, A, dtype):
    assert A.dtype == dtype
    for matrix in A.reshape(-1, p.state_size, p.state_size):
        assert certify(matrix, p.region).is_stable, matrix
    if p.form == "quasi-triangular":
        assert not np.tril(A, -2).any()
        assert not A.diagonal(-1, -2, -1)[..., 1::2].any()


def assert_close(found, wanted, tolerance):
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


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


def garbage(p, dtype):
    rng, info = np.random.default_rng(3), np.finfo(dtype)
    values = (0.0, 1.0, -3.0, 1e38, -info.max, info.tiny, np.nan, np.inf)
    models = [{k: np.full(shape, value, dtype) for k, shape in p.shapes().items()} for value in values]
    for size in (1e8, 1e-8):
        models.append({k: (size * rng.standard_normal(shape)).astype(dtype) for k, shape in p.shapes().items()})
    for bad in (np.nan, -np.inf, 1e30):
        for key in p.shapes():
            weights = started(p, dtype)
            weights[key].flat[rng.integers(weights[key].size)] = bad
            models.append(weights)
    return {k: np.stack([weights[k] for weights in models]) for k in p.shapes()}


def moved(weights, rng, size):
    return {k: (w + size * rng.standard_normal(w.shape)).astype(w.dtype) for k, w in weights.items()}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("name", PROVEN)
@pytest.mark.parametrize("n", [1, 4, 5])
def test_proven_with_garbage(name, n, region, dtype):
    p = parametrisation(name, n, region)
    with np.errstate(all="ignore"):
        weights = garbage(p, dtype)
        assert_proven(p, p.matrix(weights), dtype)
        retracted = p.retract(weights)
        assert_proven(p, p.matrix(retracted), dtype)
        for Z in (p.basis(weights), p.basis(retracted)):
            if Z is not None:
                error = np.linalg.norm(np.eye(n) - Z.swapaxes(-1, -2) @ Z, axis=(-2, -1))
                assert (error <= 4 * n * np.finfo(dtype).eps).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PROVEN)
def test_proven_after_averaging(name, dtype):
    p = parametrisation(name, 6)
    one, other = (stack(p, dtype, *seeds) for seeds in ((0, 1, 2, 3), (4, 5, 6, 7)))
    assert_proven(p, p.matrix({k: (one[k] + other[k]) / 2 for k in one}), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_retract_is_idempotent_and_keeps_the_matrix(name, n, dtype):
    p, rng = parametrisation(name, n), np.random.default_rng(4)
    weights = stack(p, dtype, 0, 1, 2, 3)
    assert_same(p.retract(weights), weights)
    for size in (0.01, 0.3, 10.0):
        update = moved(weights, rng, size)
        once = p.retract(update)
        assert_same(once, p.retract(once))
        np.testing.assert_array_equal(p.matrix(once), p.matrix(update))


# --- one source, any batch --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_compiled(name, dtype):
    """Training steps, garbage, and agreement with NumPy, on one program each: compiling it takes the time."""
    p, rng, eps = parametrisation(name, 5, REGIONS[1]), np.random.default_rng(2), np.finfo(dtype).eps
    weights = stack(p, dtype, 0, 1, 2)
    for step in range(50):
        update = moved(weights, rng, 0.2 if step % 10 == 9 else 0.01)
        results = by_jax(p, update)
        weights = results["retract"]
        if step % 10 in (0, 9):
            again = by_jax(p, weights)
            assert_same(again["retract"], weights)
            np.testing.assert_array_equal(again["matrix"], results["matrix"])
            if p.is_proven:
                assert_proven(p, results["matrix"], dtype)
    if p.is_proven:
        assert_proven(p, by_jax(p, garbage(p, dtype))["matrix"], dtype)
    weights = moved(stack(p, dtype, *range(6)), rng, 1e-3)
    tolerance = (2000 if name == "lmi" else 100) * eps
    assert_close(by_jax(p, weights), everything(p)(weights), tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_leading_axes(name):
    p = parametrisation(name, 5)
    weights = moved(stack(p, "float64", *range(6)), np.random.default_rng(5), 0.05)
    together = everything(p)(weights)
    models = [everything(p)({k: w[i] for k, w in weights.items()}) for i in range(6)]
    assert_close(jax.tree.map(lambda *x: np.stack(x), *models), together, 1e-12)
    folded = everything(p)({k: w.reshape(2, 3, *w.shape[1:]) for k, w in weights.items()})
    assert_close(jax.tree.map(lambda x: x.reshape(6, *x.shape[2:]), folded), together, 1e-12)
    assert together["penalty"].shape == (6,)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 5])
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
        gradient = jax.tree.map(np.asarray, jax.jit(jax.vmap(jax.grad(value)))(tensors))
    direction = {k: rng.standard_normal(w.shape) for k, w in weights.items()}
    step = 1e-6
    ahead, behind = (value({k: w + s * direction[k] for k, w in weights.items()}) for s in (step, -step))
    slope = sum((gradient[k] * direction[k]).reshape(2, -1).sum(axis=1) for k in weights)
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 5])
def test_retracted_weights_need_no_check(name, n):
    """The matrix, the basis and their derivatives are the same, and those of weights outside of the region are not."""
    p, rng = parametrisation(name, n), np.random.default_rng(7)
    rough = moved(stack(p, "float64", *range(4)), rng, 0.5)
    H = rng.standard_normal((n, n))

    def both(found):
        matrix, Z = found
        return jnp.sum(matrix * H) + (0.0 if Z is None else jnp.sum(Z * H))

    with jax.enable_x64(True):
        weights = p.retract({k: jnp.asarray(w) for k, w in rough.items()})
        for one, tolerance in ((lambda w: w, 0.0), (lambda w: jax.grad(lambda v: both(w(v))), 1e-12)):
            trusted, checked = (jax.jit(jax.vmap(one(f)))(weights) for f in (trusting(p), checking(p)))
            for x, y in zip(jax.tree.leaves(trusted), jax.tree.leaves(checked), strict=True):
                np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)
    if name == "schur-projected":
        assert not certify(trusting(p)({"A": 3 * np.eye(n)})[0]).is_stable


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
