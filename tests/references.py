"""Slow, independent references: rational decisions and the paper's candidate list in decimal arithmetic.

Nothing here shares a formula with the package: stability is decided by the real roots of the characteristic
polynomial, and the nearest block is the best of all candidates of Noferini and Poloni, built as the matrices that they
write down, in hundreds of digits.
"""

import math
from collections.abc import Iterator
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction

import mpmath
import numpy as np

from schurfire import Disc, HalfPlane, certify

Matrix = tuple[tuple[Decimal, Decimal], tuple[Decimal, Decimal]]
DIGITS = 60  # to spare, beyond those that cancel between the largest and the smallest number of a block
I2 = ((Decimal(1), Decimal(0)), (Decimal(0), Decimal(1)))


# --- stability, exactly -----------------------------------------------------------------------------------------------


def strictly_inside(block: np.ndarray, region: Disc | HalfPlane) -> bool:
    """Whether the roots of the characteristic polynomial of a 1x1 or 2x2 block lie in the open region."""
    origin = Fraction(region.bound if isinstance(region, HalfPlane) else region.centre)
    entries = [Fraction(float(x)) for x in np.ravel(block)]
    if len(entries) == 1:
        x = entries[0] - origin
        return x < 0 if isinstance(region, HalfPlane) else abs(x) < Fraction(region.radius)
    a, b, c, d = entries
    half = (a + d) / 2 - origin  # the roots are half +- sqrt(discriminant)
    discriminant = ((a - d) / 2) ** 2 + b * c
    if isinstance(region, HalfPlane):
        return half < 0 and discriminant < half**2
    r = Fraction(region.radius)
    if discriminant < 0:
        return half**2 - discriminant < r**2
    return abs(half) < r and discriminant < (r - abs(half)) ** 2


def blocks_of(T: np.ndarray) -> list[np.ndarray]:
    """The diagonal blocks of a quasi-triangular matrix, which this function insists on."""
    assert not np.tril(T, -2).any()
    blocks, i = [], 0
    while i < len(T):
        order = 2 if i + 1 < len(T) and T[i + 1, i] != 0 else 1
        blocks.append(T[i : i + order, i : i + order])
        i += order
        assert i == len(T) or T[i, i - 1] == 0
    return blocks


def pair_is_stable(T: np.ndarray, region: Disc | HalfPlane) -> bool:
    return all(strictly_inside(block, region) for block in blocks_of(T))


# --- the nearest block ------------------------------------------------------------------------------------------------


def nearest(block: np.ndarray, region: Disc | HalfPlane) -> tuple[float, np.ndarray, str]:
    """Distance, minimiser and the name of the winning candidate for the closed region; correctly rounded."""
    block = np.asarray(block, float)
    centre = region.bound if isinstance(region, HalfPlane) else region.centre
    size = float(np.abs(block).max()) or 1.0
    radius = size if isinstance(region, HalfPlane) else region.radius  # a half-plane has no length of its own
    decades = [math.log10(abs(x)) for x in (*block.ravel(), centre, radius) if x != 0]
    with localcontext() as context:
        context.prec = DIGITS + 2 * int(max(decades) - min(decades))
        context.Emin, context.Emax = -(10**6), 10**6
        r, shift = Decimal(radius), _scaled(Decimal(centre), I2)
        A = _scaled(1 / r, _sum(_decimal(block), shift, -1))
        slack = Decimal(10) ** (-DIGITS // 2)
        candidates = _half_plane_candidates(A) if isinstance(region, HalfPlane) else _disc_candidates(A)
        feasible = _half_plane_feasible if isinstance(region, HalfPlane) else _disc_feasible
        distance, name, X = min((_norm(_sum(A, X, -1)), name, X) for name, X in candidates if feasible(X, name, slack))
        X = _sum(_scaled(r, X), shift)
        return float(distance * r), np.array([[float(x) for x in row] for row in X]), name


def distance(block: np.ndarray, other: np.ndarray) -> float:
    """``|block - other|_F``, correctly rounded: no cancellation, overflow or underflow on the way."""
    with localcontext() as context:
        context.prec = 800
        context.Emin, context.Emax = -(10**6), 10**6
        return float(
            sum(
                (Decimal(float(x)) - Decimal(float(y))) ** 2
                for x, y in zip(np.ravel(block), np.ravel(other), strict=False)
            ).sqrt()
        )


# The constraints that a candidate meets with equality by construction are not tested: rounding would decide.
_ACTIVE = {
    "itself": "",
    "determinant": "0",
    "plus": "+",
    "minus": "-",
    "double plus": "0+",
    "double minus": "0-",
    "ridge": "+-",
    "trace": "t",
    "double": "td",
    "singular": "d",
}


def _disc_feasible(X: Matrix, name: str, slack: Decimal) -> bool:
    trace, determinant, active = X[0][0] + X[1][1], _determinant(X), _ACTIVE[name]
    return (
        ("0" in active or determinant <= 1 + slack)
        and ("+" in active or trace <= 1 + determinant + slack)
        and ("-" in active or -trace <= 1 + determinant + slack)
    )


def _half_plane_feasible(X: Matrix, name: str, slack: Decimal) -> bool:
    active = _ACTIVE[name]
    return ("t" in active or X[0][0] + X[1][1] <= slack) and ("d" in active or _determinant(X) >= -slack)


def _disc_candidates(A: Matrix) -> Iterator[tuple[str, Matrix]]:
    """The fifteen of appendix A (its second factor V transposed, as it must be)."""
    yield "itself", A
    G = _equalising_rotation(A)
    level = _product(_transpose(G), A, G)
    for sign, which in ((1, "plus"), (-1, "minus")):
        shift = _scaled(Decimal(sign), I2)
        U, (largest, _), V = _svd(_sum(A, shift, -1))
        yield which, _sum(shift, _product(U, _diagonal(largest, Decimal(0)), _transpose(V)))
        one = Decimal(sign)
        yield f"double {which}", _product(G, ((one, level[0][1]), (Decimal(0), one)), _transpose(G))
        yield f"double {which}", _product(G, ((one, Decimal(0)), (level[1][0], one)), _transpose(G))
    U, (first, second), V = _svd(A)
    for t in _hyperbola_points(first, second):
        yield "determinant", _product(U, _diagonal(t, 1 / t), _transpose(V))
    for t in _hyperbola_points(level[0][1], level[1][0]):
        yield "ridge", _product(G, ((Decimal(0), t), (1 / t, Decimal(0))), _transpose(G))


def _half_plane_candidates(A: Matrix) -> Iterator[tuple[str, Matrix]]:
    """The five for ``tr X <= 0, det X >= 0``: each constraint active or not, and both."""
    yield "itself", A
    yield "trace", _sum(A, _scaled((A[0][0] + A[1][1]) / 2, I2), -1)
    U, (largest, _), V = _svd(A)
    yield "singular", _product(U, _diagonal(largest, Decimal(0)), _transpose(V))
    G = _equalising_rotation(A)
    level = _product(_transpose(G), A, G)
    zero = Decimal(0)
    yield "double", _product(G, ((zero, level[0][1]), (zero, zero)), _transpose(G))
    yield "double", _product(G, ((zero, zero), (level[1][0], zero)), _transpose(G))


def _hyperbola_points(x: Decimal, y: Decimal) -> list[Decimal]:
    """The t for which ``(t - x)^2 + (1/t - y)^2`` is stationary: real roots of ``t^4 - x t^3 + y t - 1``."""
    return [t for t in _real_roots([Decimal(1), -x, Decimal(0), y, Decimal(-1)]) if t != 0]


def _real_roots(polynomial: list[Decimal]) -> list[Decimal]:
    """The real roots, and the turning points between them: a double root is one of those."""
    degree = len(polynomial) - 1
    if degree == 1:
        return [-polynomial[1] / polynomial[0]]
    derivative = [(degree - i) * c for i, c in enumerate(polynomial[:-1])]
    turning = _real_roots(derivative)
    bound = 1 + max(abs(c / polynomial[0]) for c in polynomial)
    ends = [-bound, *turning, bound]
    values = [_value(polynomial, x) for x in ends]
    pairs = zip(ends, ends[1:], values, values[1:], strict=False)
    found = [_root_between(polynomial, derivative, lo, hi, p < 0) for lo, hi, p, q in pairs if p * q < 0]
    return sorted([*turning, *found])


def _root_between(p: list[Decimal], slope: list[Decimal], lo: Decimal, hi: Decimal, rises: bool) -> Decimal:
    """Newton's method inside a bracket, and bisection (of the exponent, while that is wide) where it is slow."""
    precision = Decimal(10) ** (5 - getcontext().prec)
    x, last_step = _middle(lo, hi), hi - lo
    for _ in range(10_000):
        value = _value(p, x)
        if value == 0:
            return x
        lo, hi = (x, hi) if (value < 0) == rises else (lo, x)
        s = _value(slope, x)
        newton = x - value / s if s else lo
        if lo < newton < hi and abs(newton - x) < abs(last_step) / 4:
            x, last_step = newton, newton - x
        else:
            x, last_step = _middle(lo, hi), hi - lo
        if abs(last_step) <= precision * abs(x):
            return x
    raise AssertionError("The bracket did not shrink.")


def _middle(lo: Decimal, hi: Decimal) -> Decimal:
    if lo < 0 < hi:
        return Decimal(0)
    if lo == 0 or hi == 0:
        return (lo + hi) / 10**20
    small, large = sorted((abs(lo), abs(hi)))
    return (lo + hi) / 2 if large < 4 * small else (lo * hi).sqrt().copy_sign(lo)


def _value(polynomial: list[Decimal], x: Decimal) -> Decimal:
    value = Decimal(0)
    for coefficient in polynomial:
        value = value * x + coefficient
    return value


def _svd(A: Matrix) -> tuple[Matrix, tuple[Decimal, Decimal], Matrix]:
    """``A = U diag(s) V^T`` with rotations U and V, so the second value has the sign of det A (Jacobi)."""
    (p, q), (_, r) = _product(_transpose(A), A)
    V = _rotation(*_half_angle(p - r, 2 * q))
    (a, b), (c, d) = _product(A, V)
    first = (a * a + c * c).sqrt()
    U = _rotation(a / first, c / first) if first else I2
    return U, (first, U[0][1] * b + U[1][1] * d), V


def _equalising_rotation(A: Matrix) -> Matrix:
    """G with ``G^T A G`` of equal diagonal entries."""
    f, g = (A[0][0] - A[1][1]) / 2, (A[0][1] + A[1][0]) / 2
    return _rotation(*_half_angle(g, -f))


def _half_angle(x: Decimal, y: Decimal) -> tuple[Decimal, Decimal]:
    """Cosine and sine of half the angle of the vector (x, y)."""
    length = (x * x + y * y).sqrt()
    if length == 0:
        return Decimal(1), Decimal(0)
    long = ((length + abs(x)) / (2 * length)).sqrt()
    short = y / (2 * length * long)
    return (long, short) if x >= 0 else (abs(short), long.copy_sign(y))


def _rotation(c: Decimal, s: Decimal) -> Matrix:
    return ((c, -s), (s, c))


def _diagonal(x: Decimal, y: Decimal) -> Matrix:
    return ((x, Decimal(0)), (Decimal(0), y))


def _decimal(block: np.ndarray) -> Matrix:
    return tuple(tuple(Decimal(float(x)) for x in row) for row in block)


def _transpose(A: Matrix) -> Matrix:
    return tuple(zip(*A, strict=True))


def _product(*factors: Matrix) -> Matrix:
    A, B = factors[0], factors[1]
    C = tuple(tuple(row[0] * B[0][j] + row[1] * B[1][j] for j in (0, 1)) for row in A)
    return _product(C, *factors[2:]) if factors[2:] else C


def _sum(A: Matrix, B: Matrix, sign: int = 1) -> Matrix:
    return tuple(tuple(x + sign * y for x, y in zip(p, q, strict=True)) for p, q in zip(A, B, strict=True))


def _scaled(s: Decimal, A: Matrix) -> Matrix:
    return tuple(tuple(s * x for x in row) for row in A)


def _determinant(A: Matrix) -> Decimal:
    return A[0][0] * A[1][1] - A[0][1] * A[1][0]


def _norm(A: Matrix) -> Decimal:
    return sum((x * x for row in A for x in row), Decimal(0)).sqrt()


# --- matrices with known spectra --------------------------------------------------------------------------------------


def similar(A: np.ndarray, rng: np.random.Generator, steps: int = 0) -> np.ndarray:
    """``S A S^-1`` without any rounding, S a product of elementary integer matrices (``steps`` of them)."""
    shift = max(_fraction_bits(x) for x in np.ravel(A))
    X = np.array([[int(Fraction(float(x)) * 2**shift) for x in row] for row in A], dtype=object)
    for _ in range(steps or 3 * len(A)):
        i, j = rng.choice(len(A), 2, replace=False)
        factor = int(rng.choice([-1, 1]))
        X[i] += factor * X[j]
        X[:, j] -= factor * X[:, i]
    result = np.array([[float(Fraction(x, 2**shift)) for x in row] for row in X], A.dtype)
    assert all(Fraction(float(y)) * 2**shift == x for x, y in zip(X.ravel(), result.ravel(), strict=True))
    return result


def _fraction_bits(x: float) -> int:
    return Fraction(float(x)).denominator.bit_length() - 1


def eigenvalues(A: np.ndarray, digits: int = 60) -> list[complex]:
    """In high precision: right to ``digits / n`` digits even if all n coincide."""
    with mpmath.workdps(digits):
        if len(A) == 1:
            return [mpmath.mpc(float(A[0, 0]))]
        return list(mpmath.eig(mpmath.matrix(np.float64(A).tolist()), left=False, right=False))


def radius(A: np.ndarray, centre: float = 0.0) -> mpmath.mpf:
    """``max |lambda - centre|``."""
    with mpmath.workdps(60):
        return max(abs(z - centre) for z in eigenvalues(A))


def verdict(x, region=None):
    """The certificate, which has to be consistent with itself."""
    certificate = certify(x, region)
    assert certificate.verify(x) == certificate.is_stable
    assert (certificate.method == "none") <= (not certificate.is_stable)
    assert certificate.is_stable or certificate.margin == 0.0
    assert certificate.margin >= 0.0
    assert "\n" not in str(certificate)
    return certificate
