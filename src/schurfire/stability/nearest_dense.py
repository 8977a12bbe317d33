"""The nearest plain array that can be proven stable, in the precision it is stored in.

The nearest stable matrix in exact arithmetic is a Schur pair whose recomposed array is not stable any more: its
eigenvalues are too ill-conditioned to survive rounding. Here the search runs among matrices that carry their own
proof (``similar_contractions``), with a margin against rounding that starts small and grows until ``certify`` accepts
the rounded result.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import schur

from schurfire.arrays import square_matrix
from schurfire.errors import NotConvergedError
from schurfire.regions import Disc, HalfPlane, Region, check_region
from schurfire.stability.certificate import Certificate, certify
from schurfire.stability.similar_contractions import Point, Problem, descend, start_at

GRADINGS = (0.0, 0.4, 0.6, 0.8)  # exponents of the condition numbers of S that the starts have; no single one wins
TRIAL_CYCLES = 2  # cycles of 50 iterations for every start, before the best goes on alone
CYCLES = 30
TOLERANCE = 3e-4  # a cycle that gains less than this share of the squared distance is idle
REFUSED = 4.0  # growth of the margin after a refusal


@dataclass(frozen=True)
class NearestProvable:
    """One array that ``certify`` accepts, and what it costs to ask for one.

    Attributes:
        matrix: the array, in the data type of the matrix it replaces.
        certificate: the proof about these very numbers.
        distance: ``|A - matrix|_F``.
        optimal_distance: ``|A - Z T Z'|_F`` of the nearest Schur pair that ``nearest_stable`` found.
    """

    matrix: np.ndarray
    certificate: Certificate
    distance: float
    optimal_distance: float

    @property
    def price(self) -> float:
        """What a plain array costs: ``distance - optimal_distance``."""
        return self.distance - self.optimal_distance


def nearest_provable(A: Any, region: Region = Disc(), optimum: Any = None) -> NearestProvable:
    """Finds ``min |A - X|_F`` among the matrices X that ``certify`` accepts in A's own precision.

    The minimum is a local one, of a problem that is not convex. The proof is about the numbers stored in ``matrix``.
    A matrix that is accepted as it is comes back bit-identical. For the disc, a search that fails falls back to
    ``A`` scaled towards the centre, so that every finite A has an answer.

    Args:
        A: a square matrix of shape (n, n), float32 or float64.
        region: where the eigenvalues must lie.
        optimum: the result of ``nearest_stable(A, region=region)``, if it is at hand; computed if not.

    Raises:
        InvalidInputError: A is not one real, finite, square matrix.
        NotConvergedError: the region holds no matrix of this data type that can be proven, as happens when no
            number of the type lies inside.

    Cost: a few hundred to a few thousand evaluations of about 15 matrix products each (0.3 s for n = 20, 5 s for
    n = 100 on one core), besides ``nearest_stable``.

    >>> import numpy as np
    >>> result = nearest_provable(np.array([[0.5, 3.0], [0.0, 2.0]]))
    >>> result.certificate.is_stable, bool(result.distance < 1.0001)
    (True, True)
    """
    A = square_matrix(A, "A")
    region = check_region(region)
    certificate = certify(A, region)
    if certificate.is_stable:
        return NearestProvable(A.copy(), certificate, 0.0, 0.0)
    optimal_distance = _optimal_distance(A, region, optimum)
    matrix, certificate = _first_accepted(A, region)
    distance = float(np.linalg.norm(A.astype(np.float64) - matrix))
    return NearestProvable(matrix, certificate, distance, optimal_distance)


def _optimal_distance(A: np.ndarray, region: Region, optimum: Any) -> float:
    if optimum is None:
        from schurfire.stability.nearest import nearest_stable

        optimum = nearest_stable(A, region=region)
    return float(optimum.distance)


def _first_accepted(A: np.ndarray, region: Region) -> tuple[np.ndarray, Certificate]:
    for candidates in (_searched, _scaled, _diagonal):
        for X in candidates(A, region):
            stored = X.astype(A.dtype)
            if np.isfinite(stored).all() and (certificate := certify(stored, region)).is_stable:
                return stored, certificate
    raise NotConvergedError(
        f"Expected {region} to hold a {A.dtype} matrix that can be proven, found none. "
        f"Widen the region, or pass float64 if A is float32."
    )


def _searched(A: np.ndarray, region: Region) -> Iterator[np.ndarray]:
    """Results of the search with a growing margin, nearest first."""
    n = len(A)
    offset = region.centre if isinstance(region, Disc) else region.bound
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = A.astype(np.float64) - offset * np.eye(n)
    largest = np.max(np.abs(shifted), initial=0.0)
    if not 0 < largest < np.inf:
        return
    shifted /= largest
    norm = float(np.linalg.norm(shifted))
    radius = region.radius / largest / norm if isinstance(region, Disc) else None
    if radius == 0.0:  # the disc is a point beside A
        return
    precision = _first_precision(A)
    point = None
    while precision < 1.0:
        problem = Problem(shifted / norm, radius, precision)
        point = _best_start(problem) if point is None else descend(problem, point, TRIAL_CYCLES, TOLERANCE)
        yield offset * np.eye(n) + point.X * norm * largest
        precision *= REFUSED


def _first_precision(A: np.ndarray) -> float:
    """The margin to begin with, in units of ``|X|_F |S|_F |S^-1|_F``: what the paper's matrices needed least.

    Rounding to nearest perturbs each entry by about u / 4 of itself, independently, hence 1 / n of the worst case;
    the float64 arithmetic of the proof adds about n u.
    """
    n = len(A)
    return 0.05 * float(np.finfo(A.dtype).eps) / n + 40 * float(np.finfo(np.float64).eps)


def _best_start(problem: Problem) -> Point:
    """The best of several starts after a few cycles, then followed to the end."""
    n = len(problem.target)
    T, Z = schur(problem.target, output="real")
    ripple = np.eye(n) + 0.01 * np.random.default_rng(0).standard_normal((n, n)) / np.sqrt(n)  # leaves saddle points
    reach = 0.03 / (problem.precision * n)  # cond(S) at which the margin is of the order of a percent
    points = []
    for exponent in GRADINGS:
        grading = reach ** (exponent * np.linspace(-0.5, 0.5, n))  # makes the upper triangle of D T D^-1 small
        S = (grading[:, None] * Z.T) @ ripple
        points.append(descend(problem, start_at(problem, S), TRIAL_CYCLES, TOLERANCE))
    return descend(problem, min(points, key=lambda point: point.value), CYCLES, TOLERANCE)


def _scaled(A: np.ndarray, region: Region) -> Iterator[np.ndarray]:
    ...
def _diagonal(A, region):
    ...
