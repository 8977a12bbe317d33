"""The nearest orthogonal matrix, which is the orthogonal factor of the polar decomposition.

Of ``Z = U S V^T`` it is ``U V^T``: every singular value becomes 1. ``newton-schulz`` reaches it with matrix products
alone. One of its steps multiplies Z by a polynomial of ``E = I - Z^T Z``, so that each singular value s becomes
``s (a + b e + c e^2)``, ``e = 1 - s^2``, while the singular vectors stay:

- finishing: ``Z (I + E/2 + 3/8 E^2) = Z (15 I - 10 G + 3 G^2) / 8`` with ``G = Z^T Z`` (Bjorck and Bowie, SIAM J.
  Numer. Anal. 8, 1971). ``1 - s^2`` becomes ``5/8 e^3 + O(e^4)``, and every s in (0, sqrt(7/3)) tends to 1.
- opening: four steps that each multiply a small s by 4 (finishing alone: 15/8) and send [0.064, 1] into [0.25, 1],
  then one that sends [0.25, 1] into [0.84, 1.16]. No s of [0.064, 1] falls below 0.25, so that rounding errors of the
  large singular values are not blown up (Nakatsukasa and Higham, SIAM J. Matrix Anal. 33, 2012): polynomials that
  gain more per step dip lower. Five opening steps bring [0.001, 1] to where finishing takes over.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from schurfire.arrays import square_matrices
from schurfire.errors import NotConvergedError, invalid
from schurfire.namespaces import Array, apply, dtype_name, finfo, is_traced, kernel, namespace

_FINISHING = (1.0, 0.5, 0.375)  # a, b, c
_OPENING = (*4 * ((1.0, -4.6, 7.6),), (1.15, -1.8, 4.45))
_OPENING_GAIN = 4.0**4 * 3.8  # of the smallest singular values: the product of all a + b + c
_FINISHING_GAIN = 15 / 8
_NEAR = 0.25  # ||E^2||_F up to which the matrix needs no opening: every singular value lies in [0.7, 1.23]


class Polar(NamedTuple):
    """``Q`` of shape (..., n, n), and for each matrix of the stack whether the method reached it."""

    Q: Array
    converged: Array


def nearest_orthogonal(Z: Array, method: str = "newton-schulz") -> Array:
    """The nearest orthogonal matrix: ``argmin ||Z - X||_F`` over the square matrices with ``X^T X = I``.

    ``Q^T Q = I`` holds to a few units in the last place of the precision of Z for ``newton-schulz`` and ``svd``; the
    other two work on ``Z^T Z`` and lose a factor of up to ``cond(Z)^2``.

    Args:
        Z: shape (..., n, n), float32 or float64; a NumPy array, or a tensor of the active Keras backend inside or
            outside of ``jit``.
        method: ``"newton-schulz"`` uses matrix products only and is the default because it is at home on every device,
            takes two steps where Z is nearly orthogonal (a factor after an optimizer's update), and is no less
            orthogonal than the SVD. ``"svd"`` is ``U V^T`` and the only method for singular matrices. ``"eigh"`` is
            ``Z (Z^T Z)^(-1/2)`` by an eigendecomposition (Horn), ``"sherif"`` the same by Sherif's iteration.

    Raises:
        InvalidInputError: Z is no stack of finite real square matrices, or the method is unknown.
        NotConvergedError: a matrix is singular to working precision: its singular values have a ratio below about
            ``n eps``, or ``eigh`` or ``sherif`` ended with ``||I - Q^T Q||_F > 0.1``. A singular matrix has many
            nearest orthogonal matrices; ``svd`` returns one of them. Inside ``jit`` these matrices come back as
            NaN, while the functions of ``schurfire.kernels.orthogonal`` return a flag.

    Cost: 3 matrix products in float32 and 6 in float64 where ``||Z^T Z - I||`` is about 0.001 to 0.01; about 30 for a
    random matrix. Compiled for a CPU, the SVD is faster below n = 20 (nearly orthogonal matrices: n = 8), where
    overhead counts more than arithmetic.

    >>> import numpy as np
    >>> nearest_orthogonal(np.array([[0.0, 2.0], [-0.5, 0.0]]))
    array([[ 0.,  1.],
           [-1.,  0.]])
    """
    Z = square_matrices(Z, "Z")
    if method not in _METHODS:
        raise invalid("method", f"one of {', '.join(map(repr, _METHODS))}", repr(method))
    if Z.shape[-1] == 0:
        return Z
    if is_traced(Z):
        Q, converged = _METHODS[method](Z)
        return namespace(Z).where(converged[..., None, None], Q, math.nan)
    Q, converged = apply(_METHODS[method], Z)
    flags = converged if isinstance(Z, np.ndarray) else namespace(Z).convert_to_numpy(converged)
    if not np.all(flags):
        raise NotConvergedError(
            f"Expected Z to be nonsingular for method {method!r}, received {np.size(flags) - np.count_nonzero(flags)} "
            f"of {np.size(flags)} matrices that are singular to its working precision. Use method='svd': where the "
            "nearest orthogonal matrix is not unique, it returns one of them."
        )
    return Q


@kernel
def newton_schulz(Z: Array) -> Polar:
    """The orthogonal polar factor by matrix products; gives up where ``min s`` is below about ``n eps max s``."""
    xp = namespace(Z)
    n, dtype = Z.shape[-1], dtype_name(Z)
    identity = xp.eye(n, dtype=dtype)
    Z, G = _scaled_unless_near(_moderate(Z))
    steps = np.asarray((*_OPENING, _FINISHING), dtype)
    limit = len(_OPENING) + _steps_to_one(n, dtype)
    # A finishing step leaves I - Q^T Q = 5/8 E^3 + 15/64 E^4 + 9/64 E^5, at most ||E^2||_F^(3/2) where ||E|| <= 1.
    tolerance = (math.sqrt(n) * float(finfo(Z).eps) / 2) ** (2 / 3)

    def unfinished(step: Array, _Z: Array, _E: Array, _E2: Array, size: Array) -> Array:
        return (step < limit) & xp.any(size > tolerance)

    def advance(step: Array, Z: Array, E: Array, E2: Array, size: Array) -> tuple[Array, ...]:
        opening = xp.take(steps, xp.minimum(step, len(_OPENING)), axis=0)
        a, b, c = _columns(xp.where((size <= _NEAR)[..., None], steps[-1], opening))
        Z = a * Z + xp.matmul(Z, b * E + c * E2)
        return step + 1, Z, *_deviation(_gram(Z), identity)

    _, Z, E, E2, size = xp.while_loop(unfinished, advance, (np.int32(0), Z, *_deviation(G, identity)))
    return Polar(_finish(Z, E, E2), size <= tolerance)


@kernel
def orthogonal_step(Z: Array) -> Array:
    """One finishing step ``Z (15 I - 10 G + 3 G^2) / 8``, ``G = Z^T Z``; differentiable.

    Its result is off orthogonal by ``5/8 ||I - G||^3``: rounding error in float32 where ``||I - G|| < 0.005``.
    """
    xp = namespace(Z)
    E = xp.eye(Z.shape[-1], dtype=dtype_name(Z)) - _gram(Z)
    return _finish(Z, E, xp.matmul(E, E))


@kernel
def polar_svd(Z: Array) -> Polar:
    """``U V^T`` of the singular value decomposition; converges always, to one of the minimisers if Z is singular."""
    xp = namespace(Z)
    U, _, Vt = xp.svd(Z, full_matrices=False)
    Q = xp.matmul(U, Vt)
    return Polar(Q, xp.all(xp.isfinite(Q), axis=(-2, -1)))


@kernel
def polar_eigh(Z: Array) -> Polar:
    """``Z (Z^T Z)^(-1/2)`` by an eigendecomposition of ``Z^T Z``."""
    xp = namespace(Z)
    Z = _moderate(Z)
    values, V = xp.eigh(_gram(Z))
    return _checked(xp.matmul(xp.matmul(Z, V / xp.sqrt(values)[..., None, :]), xp.swapaxes(V, -1, -2)))


@kernel
def polar_sherif(Z: Array) -> Polar:
    """``Z X^(-1/2)``, ``X = Z^T Z``, by the iteration of Sherif (J. Comput. Appl. Math., 1991), with a dynamic stop.

    ``Y <- Y (I + E)``, ``E <- E^2 (2 I - E^2)^(-1)`` from ``Y = I``, ``E = (I - X)(I + X)^(-1)`` keeps
    ``X Y^2 = (I - E)(I + E)^(-1)``, because ``(I - E)(I + E) = I - E^2 = (I - E')(I + E')^(-1)`` is solved by that E'.
    E tends to 0 quadratically, hence Y to ``X^(-1/2)``. X is divided by the mean of its eigenvalues first.
    """
    xp = namespace(Z)
    n, dtype = Z.shape[-1], dtype_name(Z)
    Z = _moderate(Z)
    identity = xp.eye(n, dtype=dtype)
    X = _gram(Z)
    mean = xp.sum(Z * Z, axis=(-2, -1), keepdims=True) / n
    mean = xp.where(mean > 0, mean, 1.0)
    X = X / mean
    E = xp.solve(identity + X, identity - X)
    tolerance = math.sqrt(finfo(Z).eps)  # the next Y has X Y^2 = I - E^2
    # A small eigenvalue x of X Y^2 becomes 4 x in a step; below eps it is rounding error.
    limit = math.ceil(-math.log(finfo(Z).eps, 4)) + 5

    def unfinished(step: Array, _Y: Array, _E: Array, error: Array) -> Array:
        return (step < limit) & xp.any(error > tolerance)

    def advance(step: Array, Y: Array, E: Array, _error: Array) -> tuple[Array, Array, Array, Array]:
        square = xp.matmul(E, E)
        E_next = xp.solve(2.0 * identity - square, square)
        return step + 1, Y + xp.matmul(Y, E), E_next, _frobenius(E_next)

    _, Y, E, _ = xp.while_loop(unfinished, advance, (np.int32(0), Z / xp.sqrt(mean), E, _frobenius(E)))
    return _checked(Y + xp.matmul(Y, E))


_METHODS: dict[str, Callable[[Array], Polar]] = {
    "newton-schulz": newton_schulz,
    "svd": polar_svd,
    "eigh": polar_eigh,
    "sherif": polar_sherif,
}


def _checked(Q: Array) -> Polar:
    """Q, converged where it is orthogonal to 0.1: what was lost by forming ``Z^T Z`` shows in the result alone."""
    xp = namespace(Q)
    return Polar(Q, _frobenius(xp.eye(Q.shape[-1], dtype=dtype_name(Q)) - _gram(Q)) <= 0.1)


def _finish(Z: Array, E: Array, E2: Array) -> Array:
    _, b, c = _FINISHING
    return Z + namespace(Z).matmul(Z, b * E + c * E2)


def _deviation(G: Array, identity: Array) -> tuple[Array, Array, Array]:
    """``E = I - G``, ``E^2`` and ``||E^2||_F``, which is at least ``||E||_2^2`` and closer to it than ``||E||_F^2``."""
    E = identity - G
    E2 = namespace(G).matmul(E, E)
    return E, E2, _frobenius(E2)


def _steps_to_one(n: int, dtype: str) -> int:
    """Finishing steps after which a singular value of ``n eps`` times the largest has reached 1 to rounding error."""
    gain_left = 1 / (n * float(np.finfo(dtype).eps) * _OPENING_GAIN)
    return max(0, math.ceil(math.log(gain_left, _FINISHING_GAIN))) + 5  # from 0.5 to rounding error: 5 steps


def _moderate(Z: Array) -> Array:
    """Z divided by its largest entry, where that is unlike any orthogonal matrix's, so that no product overflows."""
    xp = namespace(Z)
    largest = xp.max(xp.abs(Z), axis=(-2, -1), keepdims=True)
    unlike = (largest > 2.0) | ((largest < 0.25 / math.sqrt(Z.shape[-1])) & (largest > 0.0))
    return Z / xp.where(unlike, largest, xp.ones_like(largest))


def _scaled_unless_near(Z: Array) -> tuple[Array, Array]:
    """Z and ``G = Z^T Z``, scaled to singular values of at most 1 unless all of them lie in [0.7, 1.23]."""
    xp = namespace(Z)
    G = _gram(Z)
    largest_row = xp.max(xp.sum(xp.abs(G), axis=-1), axis=-1)
    bound = xp.minimum(largest_row, _frobenius(G))[..., None, None]  # of the largest eigenvalue of G
    near = _frobenius(xp.eye(Z.shape[-1], dtype=dtype_name(Z)) - G)[..., None, None] <= 0.5
    bound = xp.where(near | (bound <= 0.0), xp.ones_like(bound), bound)
    return Z / xp.sqrt(bound), G / bound


def _columns(coefficients: Array) -> tuple[Array, Array, Array]:
    a, b, c = (coefficients[..., i, None, None] for i in range(3))
    return a, b, c


def _gram(Z: Array) -> Array:
    xp = namespace(Z)
    return xp.matmul(xp.swapaxes(Z, -1, -2), Z)


def _frobenius(X: Array) -> Array:
    xp = namespace(X)
    return xp.sqrt(xp.sum(X * X, axis=(-2, -1)))
