"""The rounding-error bounds of the kernels: never below the true error, which is computed exactly."""

import functools
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from schurfire import Disc, HalfPlane, spectral_radius_bound
from schurfire.kernels import bounds
from schurfire.kernels.inward import Entries, Frame, _margins, certainly_inside, frame_of
from schurfire.namespaces import _NumpyNamespace
from tests.references import similar, strictly_inside

DTYPES = ("float32", "float64")
by_dtype = pytest.mark.parametrize("dtype", DTYPES)

# --- blocks -----------------------------------------------------------------------------------------------------------

DISCS = [Disc(), Disc(0.7, -3.3), Disc(1e-3, 17.0), Disc(2.0**-60, 2.0**-61), Disc(1e15)]
HALF_PLANES = [HalfPlane(), HalfPlane(0.3), HalfPlane(-1e9)]
EXTREME = {
    "float32": [Disc(2.0**-120), Disc(2.0**120, 2.0**119), HalfPlane(-(2.0**-120)), HalfPlane(2.0**120)],
    "float64": [Disc(2.0**-1060), Disc(2.0**-1000), Disc(2.0**1000, 2.0**999), HalfPlane(-(2.0**-1000))],
}


def entries(region: Disc | HalfPlane, dtype: str, count: int, rng: np.random.Generator) -> Entries:
    """Blocks of all sizes, three quarters of them with one of the inequalities near equality."""
    length = region.radius if isinstance(region, Disc) else max(1.0, abs(region.bound))
    x, y, b = rng.standard_normal((3, count)) * 10.0 ** rng.uniform(-4, 4, (3, count))
    y = np.where(rng.random(count) < 0.3, -x * (1 + 1e-6 * rng.standard_normal(count)), y)
    near = np.where(rng.random(count) < 0.3, 1.0, 0.0)
    x, y = near + x * 10.0 ** (-4 * near), near + y * 10.0 ** (-4 * near)
    determinant = rng.choice([0.0, 1.0], count)
    c = np.choose(
        rng.integers(0, 4, count),
        [x * y / b, (x * y - determinant) / b, (1 - x) * (1 - y) / b, b * 10.0 ** rng.uniform(-4, 4, count)],
    )
    with np.errstate(over="ignore", under="ignore"):
        block = (region.origin + length * x, length * b, length * c, region.origin + length * y)
        largest = np.finfo(dtype).max
        return Entries(*(np.clip(z, -largest, largest).astype(dtype) for z in block))


def scattered(dtype: str, count: int, rng: np.random.Generator) -> Entries:
    """Blocks of entries from the smallest normal to the largest number, some of them 0 or 1."""
    decades = 37 if dtype == "float32" else 307
    block = rng.standard_normal((4, count)) * 10.0 ** rng.uniform(-decades, decades, (4, count))
    block = np.where(rng.random((4, count)) < 0.2, rng.choice([0.0, 1.0, -1.0], (4, count)), block)
    limit = np.finfo(dtype)
    block = np.where(np.abs(block) < limit.tiny, 0.0, np.clip(block, -limit.max, limit.max))
    return Entries(*block.astype(dtype))


def exact_slacks(block: tuple, frame: Frame, scale: Fraction) -> tuple[Fraction, Fraction]:
    a, b, c, d = (Fraction(float(z)) for z in block)
    origin = Fraction(frame.origin)
    x, y, b, c = (a - origin) / scale, (d - origin) / scale, b / scale, c / scale
    trace, determinant = x + y, x * y - b * c
    return (-trace, determinant) if frame.radius is None else (1 - determinant, 1 + determinant - abs(trace))


def scale_of(block: Entries, frame: Frame) -> np.ndarray:
    if frame.radius is not None:
        return np.full(block.a.shape, frame.radius)
    dtype = block.a.dtype.type
    a, d = block.a - dtype(frame.origin), block.d - dtype(frame.origin)
    return np.max(np.abs([a, block.b, block.c, d]), axis=0) + dtype(frame.tiny)


def shares(block: Entries, frame: Frame, margins: list) -> np.ndarray:
    """True error over bound of both inequalities, (2, count); fails where one is above 1, or a verdict is wrong."""
    result = np.zeros((2, len(block.a)))
    with np.errstate(all="ignore"):
        scales = scale_of(block, frame)
    computed = np.array([[np.asarray(x, float) for x in margin] for margin in margins])
    for i in range(len(block.a)):
        if not np.isfinite(scales[i]):
            assert not (computed[:, 0, i] > computed[:, 1, i]).all()
            continue
        exact = exact_slacks(tuple(z[i] for z in block), frame, Fraction(float(scales[i])))
        for k, (slack, error) in enumerate(computed[:, :, i]):
            assert not slack > error or exact[k] > 0, (block, k)
            assert not slack < -error or exact[k] < 0, (block, k)
            if np.isfinite(slack) and np.isfinite(error):
                difference = abs(Fraction(slack) - exact[k])
                assert difference <= Fraction(error), ([z[i] for z in block], k, slack, float(exact[k]), error)
                result[k, i] = float(difference / Fraction(error)) if error else 0.0
    return result


def margins_of(block: Entries, frame: Frame) -> list:
    with np.errstate(all="ignore"):
        return _margins(block, frame)


@by_dtype
@pytest.mark.parametrize("region", [*DISCS, *HALF_PLANES], ids=str)
def test_margins_cover_their_errors(region, dtype):
    rng = np.random.default_rng(0)
    block = entries(region, dtype, 1500, rng)
    frame = frame_of(region, block.a)
    result = shares(block, frame, margins_of(block, frame))
    assert result.max(axis=1).min() > 1.25 / 8  # one unit of rounding where the bound has eight would have failed


@by_dtype
def test_margins_cover_their_errors_where_scales_over_or_underflow(dtype):
    rng = np.random.default_rng(1)
    for region in (Disc(), HalfPlane(), *EXTREME[dtype]):
        for block in (entries(region, dtype, 200, rng), scattered(dtype, 400, rng)):
            frame = frame_of(region, block.a)
            shares(block, frame, margins_of(block, frame))


@by_dtype
def test_what_underflow_loses_is_in_the_margins(dtype):
    """Products that underflow beside terms that are exactly zero."""
    small = float(np.finfo(dtype).tiny) ** 0.6
    for region, numbers in (
        (Disc(), (1.0, small, small, 1.0)),
        (Disc(), (-1.0, small, small, -1.0)),
        (HalfPlane(), (-small, 1.0, 0.0, -small)),
        (HalfPlane(), (small, 1.0, 0.0, -small)),
        (HalfPlane(), (-1.0, small, small, 0.0)),
    ):
        block = Entries(*(np.array([x], dtype) for x in numbers))
        frame = frame_of(region, block.a)
        assert shares(block, frame, margins_of(block, frame)).max() > 0


@functools.cache
def compiled(region):
    """The margins and the verdict in one program, as the projection uses them: every result fused on its own."""

    def margins_and_verdicts(block):
        frame = frame_of(region, block.a)
        return _margins(block, frame), certainly_inside(block, frame)

    return jax.jit(margins_and_verdicts)


@pytest.mark.parametrize(
    ("dtype", "region"),
    [
        *((dtype, region) for dtype in DTYPES for region in (Disc(), Disc(0.7, -3.3), HalfPlane(0.3))),
        ("float32", Disc(2.0**-120, 2.0**-119)),  # XLA flushes differences to the centre that are subnormal
        ("float64", Disc(2.0**-1016, 2.0**-1015)),
    ],
    ids=str,
)
def test_margins_cover_their_errors_under_jit(region, dtype):
    rng = np.random.default_rng(2)
    with jax.enable_x64(True):
        for block in (entries(region, dtype, 500, rng), scattered(dtype, 500, rng)):
            margins, verdicts = compiled(region)(Entries(*map(jnp.asarray, block)))
            shares(block, frame_of(region, block.a), margins)
            for verdict, *numbers in zip(np.asarray(verdicts), *block, strict=True):
                assert not verdict or strictly_inside(np.reshape(numbers, (2, 2)), region)


# --- powers -----------------------------------------------------------------------------------------------------------


class Watched(_NumpyNamespace):
    """NumPy that keeps what ``bound_by_squaring`` computes, and adds up the terms of products one after the other."""

    def __init__(self):
        self.settled, self.states = [], []

    def settle(self, values):
        self.settled.append(values)
        return values

    @staticmethod
    def matmul(X, Y):
        return np.add.accumulate(X[:, :, None] * Y[None, :, :], axis=1)[:, -1, :]

    def fori_loop(self, lower, upper, body_fun, init_val):
        self.states.append(init_val)
        for i in range(lower, upper):
            init_val = body_fun(i, init_val)
            self.states.append(init_val)
        return init_val


def watched(monkeypatch, A, squarings):
    """The bound; the computed powers with the bounds of their errors; the numbers by which they were divided."""
    xp = Watched()
    with monkeypatch.context() as patch:
        patch.setattr(bounds, "namespace", lambda _: xp)
        bound = bounds.bound_by_squaring(A, squarings, 0.0)
    return float(bound), [(C, float(err)) for C, err, *_ in xp.states], [float(x) for x in xp.settled[1:]]


def row_sum_norm(X: np.ndarray) -> Fraction:
    return max(sum(abs(x) for x in row) for row in X)


def rationals(X: np.ndarray) -> np.ndarray:
    return np.array([[Fraction(float(x)) for x in row] for row in X], dtype=object)


def hard_matrices(n: int, dtype: str, rng: np.random.Generator):
    yield rng.standard_normal((n, n))
    yield np.triu(rng.standard_normal((n, n)), 1) * 2.0**10 + np.eye(n)
    yield rng.standard_normal((n, n)) * 2.0 ** rng.integers(-10, 11, (n, n))
    D = 2.0 ** rng.integers(-20, 21, n)
    yield rng.standard_normal((n, n)) * D[:, None] / D
    yield similar((np.eye(n) + np.eye(n, k=1)).astype(dtype), rng)
    yield np.eye(n, k=1) + 2.0**-40 * rng.standard_normal((n, n))
    yield rng.standard_normal((n, n)) * 2.0 ** rng.integers(*((-120, 1) if dtype == "float32" else (-1000, 1)), (n, n))
    yield rng.standard_normal((n, n)) * (2.0**-140 if dtype == "float32" else 2.0**-1060)


@by_dtype
def test_the_error_of_every_power_is_covered(monkeypatch, dtype):
    rng = np.random.default_rng(3)
    for n in (2, 3):
        for A in hard_matrices(n, dtype, rng):
            _, powers, scales = watched(monkeypatch, A.astype(dtype), 4)
            X = rationals(A.astype(dtype))
            for k, ((C, err), scale) in enumerate(zip(powers, scales, strict=True)):
                X = (X @ X if k else X) / Fraction(scale)
                assert not np.isfinite(err) or row_sum_norm(X - rationals(C)) <= Fraction(err), (n, k)


def stochastic(n: int, dtype: str) -> np.ndarray:
    """Equal rows, three thirds and n - 3 entries of which each is lost when it is added to a third: rank one.

    The only eigenvalue other than 0 is the sum s of a row, and ``A^m = s^(m-1) A``.
    """
    p = np.full(n, 0.7 * float(np.finfo(dtype).eps) / 2)
    p[:3] = 1 / 3
    return np.tile(p.astype(dtype), (n, 1))


@by_dtype
def test_the_error_of_every_power_is_covered_where_every_addition_rounds_down(monkeypatch, dtype):
    for n in (8, 32, 128):
        A = stochastic(n, dtype)
        bound, powers, scales = watched(monkeypatch, A, 6)
        p = [Fraction(float(x)) for x in A[0]]
        s, factor, largest = sum(p), Fraction(1), 0.0  # A^(2^k) divided by the scales is factor * A
        for k, ((C, err), scale) in enumerate(zip(powers, scales, strict=True)):
            factor = (factor**2 * s if k else factor) / Fraction(scale)
            assert np.array_equal(C, np.tile(C[0], (n, 1)))
            error = sum(abs(factor * x - Fraction(float(y))) for x, y in zip(p, C[0], strict=True))
            assert error <= Fraction(err)
            largest = max(largest, float(error / Fraction(err)))
        assert bound >= s
        assert n < 128 or largest > 0.25


def test_never_below_the_radius_of_stochastic_matrices_under_jit():
    with jax.enable_x64(True):
        for dtype in DTYPES:
            A = stochastic(128, dtype)
            radius = sum(Fraction(float(x)) for x in A[0])
            for squarings in (1, 8):
                assert Fraction(float(spectral_radius_bound(jnp.asarray(A), squarings))) >= radius


@by_dtype
def test_never_below_the_radius_of_matrices_that_are_flushed_to_zero(dtype):
    """The matrix of equal entries e has radius n e; XLA may take subnormal e for zero."""
    with jax.enable_x64(True):
        for n in (2, 8):
            A = np.full((n, n), np.finfo(dtype).tiny * 0.75, dtype)
            for bound in (spectral_radius_bound(A), spectral_radius_bound(jnp.asarray(A))):
                assert Fraction(float(bound)) >= n * Fraction(float(A[0, 0]))


@by_dtype
def test_never_below_the_radius_of_exact_similarities(dtype):
    """Jordan blocks, rotations and projections at radius 1, dyadic, in bases that hide it: no power is smaller."""
    rng = np.random.default_rng(4)
    for n in (2, 3, 5):
        rotation = np.zeros((n, n))
        rotation[:2, :2] = [[0, 2], [-0.5, 0]]
        nilpotent = np.triu(rng.integers(-1, 2, (n, n)), 1)
        for T in (np.eye(n) + nilpotent, nilpotent - np.eye(n), rotation, np.diag([1.0] + [0.0] * (n - 1)) + nilpotent):
            for _ in range(6):
                A = similar(T.astype(dtype), rng, steps=n + 2)
                for exponent in (-100, 0, 100):
                    scaled = np.ldexp(A, exponent).astype(dtype)
                    for squarings in (1, 4, 16):
                        assert spectral_radius_bound(scaled, squarings) >= 2.0**exponent


@by_dtype
def test_never_below_the_norm_of_nilpotent_matrices_that_are_perturbed(dtype):
    """A cycle of n - 1 ones and one entry e has radius e^(1/n), its powers are nearly zero."""
    for n in (2, 4, 8):
        for k in range(-15, 0):
            A = np.eye(n, k=1, dtype=dtype)
            A[-1, 0] = 2.0 ** (n * k)
            for squarings in (0, 3, 10, 20):
                assert spectral_radius_bound(A, squarings) >= 2.0**k
