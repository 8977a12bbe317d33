"""The nearest stable matrix, by a search over the orthogonal factor of its Schur form."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from schurfire.arrays import concrete, square_matrices
from schurfire.errors import invalid
from schurfire.kernels.blocks import nearest_stable_block
from schurfire.kernels.orthogonal import nearest_orthogonal
from schurfire.kernels.projection import project_factor
from schurfire.kernels.schur import real_schur
from schurfire.regions import UNIT_DISC, Disc, Region, check_region
from schurfire.stability.projection import project_stable
from schurfire.stability.schur_form import SchurForm

# A Schur factor can be a stationary point without being a minimum: for the matrix of all twos the gradient there is 0
# and the objective 40 % above the minimum. Turned by this much (Frobenius norm) the search leaves it in 30 iterations.
_NUDGE = 1e-3
_HORIZON = 2.0**40  # a disc smaller than the matrix by more than this is enlarged, at the cost of 1e-12 of the distance


@dataclass(frozen=True, eq=False)
class NearestStable:
    """A local minimum of the distance to A among the stable matrices.

    For a stack of matrices ``distance``, ``iterations`` and ``converged`` are arrays over its leading axes.

    Attributes:
        form: the pair (T, Z), strictly stable in exact arithmetic.
        distance: ``||Z^T A Z - T||_F``, computed in float64 from the numbers of the pair: the distance of A to the
            pair. That of the recomposed ``matrix`` differs by its rounding errors.
        iterations: evaluations of the objective by the search that came nearest.
        converged: whether that search reached its tolerance.
        start_distances: how near every search came, shape (..., n_starts), the one from the Schur factor first.
    """

    form: SchurForm
    distance: float | np.ndarray
    iterations: int | np.ndarray
    converged: bool | np.ndarray
    start_distances: np.ndarray

    @property
    def matrix(self) -> np.ndarray:
        """``form.matrix``: the array ``Z T Z^T``, rounded. Its rounding errors can make it unstable."""
        return self.form.matrix


def nearest_stable(
    A: Any,
    region: Region = UNIT_DISC,
    *,
    n_starts: int = 1,
    seed: int = 0,
    max_iterations: int = 20_000,
    tolerance: float = 1e-8,
) -> NearestStable:
    """``argmin ||A - X||_F`` over X with all eigenvalues in the region, as the best of ``n_starts`` local minima.

    The search is over the orthogonal Z, each with the best T for it (Noferini and Poloni, SIMAX 42, 2021). The pair
    returned is strictly stable in exact arithmetic, in the precision of A, and not further from A than the pair of
    ``project_stable(A)``. The problem is not convex; further starts may end in better minima (for matrices of order 10
    and 20 with normal entries, the best of 8 had on average 0.89 times the squared distance of the first).

    All arithmetic is float64, whatever JAX is set to; of float32 matrices Z and T are rounded at the end, T inward.
    Matrices that are stable already come back as ``project_stable`` returns them.

    Args:
        A: shape (..., n, n), float32 or float64.
        region: where the eigenvalues may live.
        n_starts: searches per matrix: one from the Schur factor, the others from random orthogonal matrices.
        seed: of everything random.
        max_iterations: evaluations of the objective per search.
        tolerance: a search has converged where the gradient with respect to rotations of Z has at most the Frobenius
            norm ``tolerance ||A||_F^2``, with the region's centre or bound taken as the origin.

    Raises:
        InvalidInputError: A is not square, real and finite, or an option is out of its range.
        NotConvergedError: the Schur decomposition of A failed.

    Cost: 9 matrix products per iteration and start; some 300 iterations for n = 10, 10 000 for n = 50. The first call
    with a shape compiles for a few seconds, once per computer: compiled code is kept in JAX's persistent cache if one
    is set up, else in the user's cache directory.

    >>> import numpy as np
    >>> nearest = nearest_stable(np.full((4, 4), 2.0))
    >>> round(nearest.distance**2, 6)
    28.0
    >>> nearest.form.certify().is_stable
    True
    """
    A = concrete(square_matrices(A, "A"), "A")
    region = check_region(region)
    _require_count("n_starts", n_starts)
    _require_count("max_iterations", max_iterations)
    if not 0 < tolerance < 1:
        raise invalid("tolerance", "between 0 and 1", tolerance)
    stack = A.astype(np.float64).reshape(-1, *A.shape[-2:])
    schur = real_schur(stack)
    truncated = _pair(stack, project_factor(schur.T, region), schur.Z, region, A.dtype)
    if A.shape[-1] < 2 or np.all(truncated.distance <= _rounding_errors(stack, A.dtype)):
        return _without_search(A, region, n_starts)

    from schurfire.stability.descent import descend

    unit = _unit(stack, region)
    starts = _starts(schur.Z, n_starts, seed)
    lanes = np.repeat(_normalised(stack, region, unit), n_starts, axis=0)
    minima = descend(lanes, starts.reshape(lanes.shape), isinstance(region, Disc), max_iterations, tolerance)
    shape = (len(stack), n_starts)
    best = np.arange(len(stack)), np.argmin(minima.f.reshape(shape), axis=1)
    Z = nearest_orthogonal(minima.Z.reshape(*shape, *A.shape[-2:])[best])
    found = _pair(stack, _stable_factor(_transposed(Z) @ stack @ Z, region), Z, region, A.dtype)
    pair = _nearer(truncated, found)
    leading = A.shape[:-2]
    return NearestStable(
        SchurForm(pair.T.reshape(A.shape), pair.Z.reshape(A.shape), region),
        _in_shape(pair.distance, leading),
        _in_shape(minima.iterations.reshape(shape)[best], leading),
        _in_shape(minima.converged.reshape(shape)[best], leading),
        (np.sqrt(2 * minima.f).reshape(shape) * unit[:, None]).reshape(*leading, n_starts),
    )


# --- what the search works on -----------------------------------------------------------------------------------------


def _unit(A: np.ndarray, region: Region) -> np.ndarray:
    """The length, per matrix, in which the region is the unit disc or a half-plane and A is of moderate size."""
    largest = np.abs(A - _origin(region) * np.eye(A.shape[-1])).max(axis=(-2, -1))
    if isinstance(region, Disc):
        return np.maximum(region.radius, largest / _HORIZON)
    return np.where(largest > 0, largest, 1.0)


def _normalised(A: np.ndarray, region: Region, unit: np.ndarray) -> np.ndarray:
    return (A - _origin(region) * np.eye(A.shape[-1])) / unit[:, None, None]


def _origin(region: Region) -> float:
    return region.centre if isinstance(region, Disc) else region.bound


def _starts(Z: np.ndarray, n_starts: int, seed: int) -> np.ndarray:
    """The orthogonal start values, shape (len(Z), n_starts, n, n); the random ones are the same for every matrix."""
    rng = np.random.default_rng(seed)
    n = Z.shape[-1]
    X = rng.standard_normal((n, n))
    nudge = np.eye(n) + _NUDGE * (X - X.T) / np.linalg.norm(X - X.T)
    random = np.linalg.qr(rng.standard_normal((n_starts - 1, n, n)))[0]
    return np.concatenate([(Z @ nudge)[:, None], np.broadcast_to(random, (len(Z), *random.shape))], axis=1)


# --- what becomes of its result ---------------------------------------------------------------------------------------


class _Pair(NamedTuple):
    """Stacks of factors in the precision of the result, and their distances."""

    T: np.ndarray
    Z: np.ndarray
    distance: np.ndarray


def _pair(A: np.ndarray, T: np.ndarray, Z: np.ndarray, region: Region, dtype: np.dtype) -> _Pair:
    """The stable pair (T, Z), rounded inward to ``dtype``."""
    if T.dtype != dtype:
        T, Z = project_factor(T.astype(dtype), region), Z.astype(dtype)
    exact = Z.astype(np.float64)
    return _Pair(T, Z, _norm(_transposed(exact) @ A @ exact - T))


def _stable_factor(T: np.ndarray, region: Region) -> np.ndarray:
    """The nearest strictly stable matrix that is zero below the grid of 2x2 blocks; its objective is the search's."""
    n = T.shape[-1]
    block_of = np.arange(n) // 2
    T = np.where(block_of[:, None] > block_of, 0.0, T)
    rows = np.arange(n - n % 2).reshape(-1, 2)
    on_grid = (slice(None), rows[:, :, None], rows[:, None, :])
    T[on_grid] = nearest_stable_block(T[on_grid], region)
    if n % 2:
        T[:, -1:, -1:] = nearest_stable_block(T[:, -1:, -1:], region)
    return T


def _nearer(one: _Pair, other: _Pair) -> _Pair:
    """The nearer pair of each matrix; ``one`` in a tie."""
    is_nearer = other.distance < one.distance
    wide = is_nearer[:, None, None]
    T, Z = np.where(wide, other.T, one.T), np.where(wide, other.Z, one.Z)
    return _Pair(T, Z, np.minimum(other.distance, one.distance))


def _without_search(A: np.ndarray, region: Region, n_starts: int) -> NearestStable:
    """For matrices that are stable up to rounding, and for numbers, which have nothing to be rotated."""
    form = project_stable(A, region)
    exact = form.Z.astype(np.float64)
    moved = form.source is None
    distance = _norm(_transposed(exact) @ A @ exact - form.T) if moved else np.zeros(A.shape[:-2])
    leading = A.shape[:-2]
    return NearestStable(
        form,
        _in_shape(distance, leading),
        _in_shape(np.zeros(leading, dtype=np.int64), leading),
        _in_shape(np.ones(leading, dtype=bool), leading),
        np.repeat(distance[..., None], n_starts, axis=-1),
    )


def _rounding_errors(A: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """What the Schur decomposition alone may contribute to a distance."""
    return A.shape[-1] * np.finfo(dtype).eps * _norm(A)


def _norm(X: np.ndarray) -> np.ndarray:
    """Frobenius norms that neither overflow nor underflow on the way."""
    largest = np.abs(X).max(axis=(-2, -1), initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    return scale * np.linalg.norm(X / scale[..., None, None], axis=(-2, -1))


def _transposed(X: np.ndarray) -> np.ndarray:
    return np.swapaxes(X, -1, -2)


def _in_shape(x: np.ndarray, leading: tuple[int, ...]) -> Any:
    """An array over the leading axes of A, or a Python number where A is a single matrix."""
    return x.reshape(leading) if leading else x.item()


def _require_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise invalid(name, "a positive integer", repr(value))
