"""The nearest plain array that can be proven stable, in the precision it is stored in.

The nearest stable matrix in exact arithmetic is a Schur pair whose recomposed array is not stable any more: its
eigenvalues are too ill-conditioned to survive rounding. Here the search runs among matrices that carry their own
proof (``similar_contractions``), with a margin against rounding errors that starts small and grows until ``certify``
accepts the rounded result.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from schurfire.arrays import frobenius_norm, square_matrix
from schurfire.errors import NotConvergedError, invalid
from schurfire.regions import UNIT_DISC, Disc, Region, check_region
from schurfire.stability.certificate import Certificate, certify
from schurfire.stability.nearest import NearestStable, distance_to_pair, nearest_stable
from schurfire.stability.projection import project_stable
from schurfire.stability.schur_form import SchurForm
from schurfire.stability.similar_contractions import Point, Problem, descend, start_at
from schurfire.stability.triangular_part import triangular_part
from schurfire.threads import suited_to

# Chosen on the paper's four kinds of matrices, n = 10, 20, 50 and 100.
_GRADINGS = (0.0, 0.4, 0.6, 0.8)  # exponents for cond(S) at the starts; each is the best one somewhere
_TRIAL_CYCLES = 2  # of every start, before the best go on alone
_FINALISTS = 60  # divided by n, but at most 4: how many starts are followed to the end
_CYCLES = 30
_TOLERANCE = 3e-4  # a cycle that gains less than this share of the squared distance is idle
_REFUSED = 4.0  # growth of the margin after a refusal
_SMALLEST_DISC = 1e-30  # of norm-1 matrices; what fits into a smaller one with cond(S) < 1 / eps changes no digit


@dataclass(frozen=True, eq=False)
class NearestProvable:
    """One array that ``certify`` accepts, and what it costs to ask for one.

    Attributes:
        matrix: the array, in the data type of the matrix it replaces.
        certificate: the proof about these very numbers.
        distance: ``|A - matrix|_F``.
        optimal_distance: the distance of the Schur pair that ``nearest_stable`` finds, which is provable as a pair
            only: the difference is the price of a plain array. Both are local minima, so it can be negative. NaN if
            the Schur decomposition failed.
    """

    matrix: np.ndarray
    certificate: Certificate
    distance: float
    optimal_distance: float


def nearest_provable(A: Any, region: Region = UNIT_DISC, optimum: NearestStable | None = None) -> NearestProvable:
    """``argmin |A - X|_F`` over the matrices X that ``certify`` accepts in A's own precision, found by local search.

    The proof is about the numbers stored in ``matrix``. A matrix that is accepted as it is comes back bit-identical.
    The result is the nearest of: what the search among well-conditioned matrices finds; the block triangular part of
    A in the best order of rows and columns, which is exactly stable whatever its scale; the optimum and the truncated
    projection, recomposed and drawn inward until they are proven. It is a local minimum: the problem is not convex.

    Args:
        A: one square matrix of shape (n, n), float32 or float64.
        region: where the eigenvalues must lie.
        optimum: the result of ``nearest_stable(A, region=region)`` if it is at hand; it is computed if not.

    Raises:
        InvalidInputError: A is not one real, finite, square matrix; or the region holds no number of its data type.

    Cost: up to some thousand evaluations of about 20 matrix products (0.5 s for n = 20, 7 s for n = 100 on one
    core), besides ``nearest_stable``.

    >>> import numpy as np
    >>> result = nearest_provable(np.full((3, 3), 2.0))
    >>> result.certificate.is_stable, round(result.distance, 6), round(result.optimal_distance, 6)
    (True, 3.872983, 3.872983)
    """
    A = square_matrix(A, "A")
    region = check_region(region)
    certificate = certify(A, region)
    if certificate.is_stable:
        return NearestProvable(A.copy(), certificate, 0.0, 0.0)
    found = _proven(A, triangular_part(A, region), region)
    optimum = _optimum(A, region) if optimum is None else optimum
    optimal_distance = float("nan")
    bases = []
    if optimum is not None:
        if not isinstance(optimum.form, SchurForm) or optimum.form.T.shape != A.shape:
            what = f"the result of nearest_stable for a matrix of shape {A.shape}"
            raise invalid("optimum", what, f"one of shape {optimum.form.T.shape}")
        optimal_distance = float(distance_to_pair(A, optimum.form))
        for form in (optimum.form, project_stable(A, region)):
            found += _drawn_inward(A, form.matrix, region)
            bases.append(form.Z)
    with suited_to(len(A)):
        found += _searched(A, region, bases)
    if not found:
        raise NotConvergedError(f"Expected to find a provable matrix of dtype {A.dtype} in {region}, found none.")
    nearest = min(found, key=lambda candidate: candidate.distance)
    if not optimal_distance <= nearest.distance:  # both are local minima: the Schur form of the array may be nearer
        optimal_distance = min(optimal_distance, float(distance_to_pair(A, _as_pair(nearest.matrix, region))))
    return NearestProvable(nearest.matrix, nearest.certificate, nearest.distance, optimal_distance)


def _as_pair(X: np.ndarray, region: Region) -> SchurForm:
    form = project_stable(X, region)
    return SchurForm(form.T, form.Z, region)


class _Proven(NamedTuple):
    matrix: np.ndarray
    certificate: Certificate
    distance: float


def _optimum(A: np.ndarray, region: Region) -> NearestStable | None:
    try:
        return nearest_stable(A, region=region)
    except NotConvergedError:  # no Schur decomposition, for entries near the largest number
        return None


def _proven(A: np.ndarray, X: np.ndarray, region: Region) -> list[_Proven]:
    """X with its certificate and distance in a list, which is empty if X cannot be proven."""
    if not np.isfinite(X).all():
        return []
    certificate = certify(X, region)
    return [_Proven(X, certificate, _distance(A, X))] if certificate.is_stable else []


def _searched(A: np.ndarray, region: Region, bases: list[np.ndarray]) -> list[_Proven]:
    """The result of the search with the smallest margin, of a growing sequence, that is accepted."""
    shifted, scale = _normalised(A, region)
    radius = region.radius / scale if isinstance(region, Disc) else None
    if scale == 0.0 or not np.isfinite(scale) or (radius is not None and radius < _SMALLEST_DISC):
        return []
    origin = _origin(region, len(A))
    precision, point = _first_precision(A), None
    while precision < 1.0:
        problem = Problem(shifted, radius, precision)
        first = point is None
        point = _best_start(problem, bases) if point is None else descend(problem, point, _TRIAL_CYCLES, _TOLERANCE)
        found = _proven(A, _rounded(origin + scale * point.X, point.S, A.dtype), region)
        if found and not first:
            point = descend(problem, point, _CYCLES, _TOLERANCE)
            found += _proven(A, _rounded(origin + scale * point.X, point.S, A.dtype), region)
        if found:
            return found
        precision *= _REFUSED
    return []


def _first_precision(A: np.ndarray) -> float:
    """The margin to begin with, in units of ``|X|_F |S|_F |S^-1|_F``.

    The worst case of rounding is ``eps / 2``. Rounded with feedback (``_rounded``), the paper's matrices in float32
    all need less than ``eps / (1000 n)``. The second term is what the float64 arithmetic of the proof adds.
    """
    return 1e-3 * float(np.finfo(A.dtype).eps) / len(A) + 40 * float(np.finfo(np.float64).eps)


def _best_start(problem: Problem, bases: list[np.ndarray]) -> Point:
    """The best of several starts: all go a few cycles, then the nearest ones to the end.

    ``S = D Z'`` with a graded D makes the upper triangle of ``S A S^-1`` small, if Z is an orthogonal factor of A or
    of a stable matrix near A.
    """
    n = len(problem.target)
    ripple = np.eye(n) + 0.01 * np.random.default_rng(0).standard_normal((n, n)) / np.sqrt(n)  # leaves saddle points
    reach = 0.03 / (problem.precision * n)  # cond(S) that makes the margin some percent
    points = []
    for basis in bases or [np.eye(n)]:
        for exponent in _GRADINGS:
            grading = reach ** (exponent * np.linspace(-0.5, 0.5, n))
            start = start_at(problem, (grading[:, None] * basis.T) @ ripple)
            points.append(descend(problem, start, _TRIAL_CYCLES, _TOLERANCE))
    points.sort(key=lambda point: point.value)
    finalists = points[: min(4, max(1, _FINALISTS // n))]
    return min((descend(problem, point, _CYCLES, _TOLERANCE) for point in finalists), key=lambda point: point.value)


def _rounded(X: np.ndarray, S: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """X rounded to ``dtype`` with error feedback: the error E keeps ``|S E S^-1|_F`` small rather than ``|E|_F``.

    Coordinate descent from X rounded to nearest, over steps of the spacing of the numbers: with ``P = S'S``, half the
    gradient of the objective is ``H = P E P^-1``, and one entry's curvature is ``P_ii (P^-1)_jj``. It reduces the
    objective by a factor of 20 to 200 and does not change the distance, because few directions of E matter.
    """
    n = len(X)
    nearest = X.astype(dtype)
    error = nearest.astype(np.float64) - X
    if not error.any() or not np.isfinite(nearest).all():
        return nearest
    _, d, Zt = np.linalg.svd(S)
    P, P_inv = (Zt.T * d**2) @ Zt, (Zt.T / d**2) @ Zt
    # zeros and small entries move on a coarser grid, which is part of their own
    step = np.maximum(np.spacing(np.abs(nearest)), np.spacing(np.abs(nearest).max()) / 4096).astype(np.float64)
    curvature = step * np.outer(P.diagonal(), P_inv.diagonal())
    H = P @ error @ P_inv
    rounded = nearest.astype(np.float64)
    for _ in range(2 * n * n):
        i, j = np.unravel_index(np.argmax(step * (2 * np.abs(H) - curvature)), H.shape)
        steps = np.round(H[i, j] / curvature[i, j])
        if steps == 0:
            break
        rounded[i, j] -= steps * step[i, j]
        H -= (steps * step[i, j]) * np.outer(P[:, i], P_inv[j])
    return rounded.astype(dtype)


def _drawn_inward(A: np.ndarray, X: np.ndarray, region: Region) -> list[_Proven]:
    """X moved towards the centre, or into the half-plane, by the least of a sequence of steps that is proven."""
    shifted, scale = _normalised(X, region)
    digits = 1 - int(np.log2(np.finfo(X.dtype).eps))
    steps = [0.0, *2.0 ** np.arange(-digits, 0.0), 0.75, 0.875, 0.9375, 0.96875]
    found: list[_Proven] = []
    refused, accepted = -1, len(steps)
    while accepted - refused > 1:
        middle = (refused + accepted) // 2
        step = steps[middle]
        inner = shifted - step * (shifted if isinstance(region, Disc) else np.eye(len(X)))
        moved = (_origin(region, len(X)) + scale * inner).astype(A.dtype) if step else X
        proven = _proven(A, moved, region)
        refused, accepted = (refused, middle) if proven else (middle, accepted)
        found = proven or found
    return found


def _origin(region: Region, n: int) -> np.ndarray:
    return region.origin * np.eye(n)


def _normalised(A: np.ndarray, region: Region) -> tuple[np.ndarray, float]:
    """``A - origin`` divided by its Frobenius norm, and that norm (infinite or zero where it has none)."""
    with np.errstate(over="ignore"):
        shifted = A.astype(np.float64) - _origin(region, len(A))
        largest = float(np.max(np.abs(shifted), initial=0.0))
        if not 0.0 < largest < np.inf:
            return shifted, largest
        shifted = shifted / largest
        norm = float(np.linalg.norm(shifted))
        return shifted / norm, norm * largest


def _distance(A: np.ndarray, X: np.ndarray) -> float:
    with np.errstate(over="ignore"):
        return float(frobenius_norm(A.astype(np.float64) - X))
