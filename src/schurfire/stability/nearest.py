"""The nearest stable matrix, by a search over the orthogonal factor of its Schur form."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from schurfire.arrays import concrete, frobenius_norm, square_matrices
from schurfire.errors import invalid
from schurfire.kernels.blocks import nearest_stable_block
from schurfire.kernels.orthogonal import nearest_orthogonal
from schurfire.kernels.projection import project_factor
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
    tolerance: float = 1e-10,
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

    Cost: 9 matrix products per iteration and start; some 300 iterations for n = 10, and from n = 50 on often all that
    are allowed. The first call with a shape compiles for a few seconds, once per computer: compiled code is kept in
    JAX's persistent cache if one is set up, else in the user's cache directory.

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
    _require_count("seed", seed, least=0)
    if not isinstance(tolerance, (float, np.floating)) or not 0 < tolerance < 1:
        raise invalid("tolerance", "a number between 0 and 1", repr(tolerance))
    truncated = project_stable(A, region)
    distance = distance_to_pair(A, truncated)
    settled = distance <= _rounding_errors(A)
    if A.shape[-1] < 2 or np.all(settled):
        nothing = np.zeros(A.shape[:-2], dtype=np.int64)
        return _result(truncated, distance, nothing, nothing == 0, np.repeat(distance[..., None], n_starts, axis=-1))
    starts = _starts(truncated.Z, n_starts, seed)
    optima = _search(A.astype(np.float64), starts, region, max_iterations, tolerance)
    found = _stable_form(A, optima.Z, region)
    form = _merged(truncated, found, (distance_to_pair(A, found) < distance) & ~settled)
    return _result(form, distance_to_pair(A, form), optima.iterations, optima.converged, optima.start_distances)


# --- the search -------------------------------------------------------------------------------------------------------


class _Optima(NamedTuple):
    """Of every matrix, where its best search ended; and how near each of its searches came."""

    Z: np.ndarray
    iterations: np.ndarray
    converged: np.ndarray
    start_distances: np.ndarray


def _starts(Z: np.ndarray, n_starts: int, seed: int) -> np.ndarray:
    """Orthogonal matrices, shape (..., n_starts, n, n): Z, nudged, then random ones, the same for all of a stack."""
    rng = np.random.default_rng(seed)
    n = Z.shape[-1]
    X = rng.standard_normal((n, n))
    nudge = np.eye(n) + _NUDGE * (X - X.T) / np.linalg.norm(X - X.T)
    first = nearest_orthogonal(Z.astype(np.float64) @ nudge)[..., None, :, :]
    random = np.linalg.qr(rng.standard_normal((n_starts - 1, n, n)))[0]
    return np.concatenate([first, np.broadcast_to(random, (*Z.shape[:-2], *random.shape))], axis=-3)


def _search(A: np.ndarray, starts: np.ndarray, region: Region, max_iterations: int, tolerance: float) -> _Optima:
    from schurfire.stability.descent import descend

    is_disc = isinstance(region, Disc)
    X = A - (region.centre if is_disc else region.bound) * np.eye(A.shape[-1])
    largest = np.abs(X).max(axis=(-2, -1))
    unit = np.maximum(region.radius, largest / _HORIZON) if is_disc else np.where(largest > 0, largest, 1.0)
    X = np.broadcast_to((X / unit[..., None, None])[..., None, :, :], starts.shape)

    lanes = (-1, *A.shape[-2:])
    minima = descend(X.reshape(lanes), starts.reshape(lanes), is_disc, max_iterations, tolerance)
    per_start = starts.shape[:-2]
    f, iterations, converged = (x.reshape(per_start) for x in (minima.f, minima.iterations, minima.converged))
    best = np.argmin(f, axis=-1)[..., None]
    return _Optima(
        np.take_along_axis(minima.Z.reshape(starts.shape), best[..., None, None], axis=-3)[..., 0, :, :],
        np.take_along_axis(iterations, best, axis=-1)[..., 0],
        np.take_along_axis(converged, best, axis=-1)[..., 0],
        np.sqrt(2 * f) * unit[..., None],
    )


# --- from the search to the result ------------------------------------------------------------------------------------


def _stable_form(A: np.ndarray, Z: np.ndarray, region: Region) -> SchurForm:
    """The nearest strictly stable pair with this Z and a grid of 2x2 blocks, in the precision of A."""
    Z = nearest_orthogonal(Z)
    T = _transposed(Z) @ A @ Z
    n = T.shape[-1]
    block_of = np.arange(n) // 2
    T = np.where(block_of[:, None] > block_of, 0.0, T)
    rows = np.arange(n - n % 2).reshape(-1, 2)
    on_grid = (..., rows[:, :, None], rows[:, None, :])
    T[on_grid] = nearest_stable_block(T[on_grid], region)
    if n % 2:
        T[..., -1:, -1:] = nearest_stable_block(T[..., -1:, -1:], region)
    if A.dtype != np.float64:
        T, Z = project_factor(T.astype(A.dtype), region), Z.astype(A.dtype)
    return SchurForm(T, Z, region)


def _merged(truncated: SchurForm, found: SchurForm, improved: np.ndarray) -> SchurForm:
    """``found`` for the matrices of a stack that are ``improved``, ``truncated`` for the others."""
    take = improved[..., None, None]
    form = SchurForm(np.where(take, found.T, truncated.T), np.where(take, found.Z, truncated.Z), truncated.region)
    if truncated.source is None:
        return form
    return replace(form, source=np.where(take, found.matrix, truncated.source))


def distance_to_pair(A: np.ndarray, form: SchurForm) -> np.ndarray:
    """``||Z^T A Z - T||_F``, and 0 where the form stands for A itself."""
    Z = form.Z.astype(np.float64)
    distance = frobenius_norm(_transposed(Z) @ A @ Z - form.T)
    return distance if form.source is None else np.where((form.source == A).all(axis=(-2, -1)), 0.0, distance)


def _rounding_errors(A: np.ndarray) -> np.ndarray:
    """LAPACK's own threshold for the residual of a Schur decomposition: no distance below it means anything."""
    machine = np.finfo(A.dtype)
    return 30 * A.shape[-1] * float(machine.eps) * frobenius_norm(A) + float(machine.tiny)


def _transposed(X: np.ndarray) -> np.ndarray:
    return np.swapaxes(X, -1, -2)


def _result(
    form: SchurForm, distance: Any, iterations: Any, converged: Any, start_distances: np.ndarray
) -> NearestStable:
    distance, iterations, converged = (x if np.ndim(x) else x.item() for x in (distance, iterations, converged))
    return NearestStable(form, distance, iterations, converged, start_distances)


def _require_count(name: str, value: object, least: int = 1) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise invalid(name, f"an integer, {least} or more", repr(value))
