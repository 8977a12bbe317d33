"""The nearest provable array: proven in its own precision, near, and there for every finite matrix."""

import mpmath
import numpy as np
import pytest

from schurfire.errors import InvalidInputError
from schurfire.regions import Disc, HalfPlane
from schurfire.stability.certificate import certify
from schurfire.stability.nearest import NearestStable, nearest_stable
from schurfire.stability.nearest_dense import _rounded, nearest_provable
from schurfire.stability.projection import project_stable

DTYPES = ("float32", "float64")
CASES = {
    "twos": lambda n: np.full((n, n), 2.0),
    "Grcar": lambda n: np.triu(np.tril(np.ones((n, n)), 3)) - np.eye(n, k=-1),
    "normal": lambda n: np.random.default_rng(0).standard_normal((n, n)),
    "uniform": lambda n: np.random.default_rng(0).random((n, n)),
}


def truncated(A, region=None):
    """A stand-in for the result of ``nearest_stable`` that needs no compilation."""
    form = project_stable(A, region or Disc())
    with np.errstate(over="ignore"):
        distance = float(np.linalg.norm(A.astype(float) - form.matrix))
    return NearestStable(form, distance, 0, False, np.array([distance]))


def provable(A, region=None):
    region = region or Disc()
    return nearest_provable(A, region, optimum=truncated(A, region))


def nsfe(A, X):
    return float(np.sum((A.astype(float) - X) ** 2) / np.sum(A.astype(float) ** 2))


# The figures of a plain L-BFGS search over W and S in X = S^-1 W L^-T S, 3000 iterations from a scaled start; for the
# equal entries those of the triangular part, which is optimal.
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "n", "limit"),
    [
        ("twos", 10, 0.4751),
        ("Grcar", 10, 0.101),
        ("normal", 10, 0.0144),
        ("normal", 20, 0.040),
        ("uniform", 10, 0.231),
    ],
)
def test_the_papers_matrices(name, n, limit, dtype):
    A = CASES[name](n).astype(dtype)
    result = provable(A)
    assert result.matrix.dtype == dtype
    assert certify(result.matrix).is_stable
    assert result.certificate.verify(result.matrix)
    assert nsfe(A, result.matrix) <= limit
    assert result.distance == pytest.approx(np.linalg.norm(A.astype(float) - result.matrix), rel=1e-12)


def test_below_the_projection_scaled_until_proven():
    dtype = "float32"
    A = CASES["Grcar"](30).astype(dtype)
    X = project_stable(A).matrix
    scaled = min(nsfe(A, t * X) for t in np.arange(0.05, 1.0, 0.05, dtype=dtype) if certify(t * X).is_stable)
    assert nsfe(A, provable(A).matrix) < scaled


@pytest.mark.parametrize("region", [Disc(), Disc(0.5, 0.3), HalfPlane(), HalfPlane(-1.0)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_in_the_region_by_100_digits(region, dtype):
    A = np.random.default_rng(3).standard_normal((5, 5)).astype(dtype)
    X = provable(A, region).matrix
    with mpmath.workdps(100):
        for z in mpmath.eig(mpmath.matrix(X.astype(float).tolist()), left=False, right=False):
            inside = z.real < region.bound if isinstance(region, HalfPlane) else abs(z - region.centre) < region.radius
            assert inside


def test_optimal_distance_is_that_of_nearest_stable():
    A = CASES["normal"](3) * 2
    optimum = nearest_stable(A)
    result = nearest_provable(A)
    assert result.optimal_distance == optimum.distance
    assert result.distance < 1.01 * optimum.distance


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("region", [Disc(), HalfPlane()], ids=str)
def test_accepted_matrices_come_back_bit_identical(region, dtype):
    A = (0.1 * CASES["normal"](5) - 0.5 * np.eye(5)).astype(dtype)
    result = nearest_provable(A, region)
    assert result.matrix is not A
    assert result.matrix.tobytes() == A.tobytes()
    assert (result.distance, result.optimal_distance) == (0.0, 0.0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("A", "limit"),
    [
        ([[3.0]], 2.0),
        ([[1.0, 2.0], [3.0, 4.0]], 3.2147354560799197),  # of the exact nearest block
        (np.eye(4), 0.0),
        (-np.eye(4), 0.0),
        (np.kron(np.eye(2), [[0.6, 0.8], [-0.8, 0.6]]), 0.0),
        (np.diag([3.0, -2.0, 0.5]), np.sqrt(5)),
        (np.triu(np.full((4, 4), 1e6), 1) + np.diag([2.0, 0.5, 0.5, 0.5]), 1.0),
    ],
)
def test_no_further_than_a_known_provable_matrix(A, limit, dtype):
    result = provable(np.array(A, dtype=dtype))
    assert result.certificate.is_stable
    assert result.distance <= limit + 40 * float(np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_half_plane_of_a_symmetric_matrix(dtype):
    """Among the symmetric matrices the nearest one has the positive eigenvalues replaced by zero."""
    A = CASES["normal"](5)
    A = (A + A.T).astype(dtype)
    clipped = np.linalg.norm(np.maximum(np.linalg.eigvalsh(A), 0))
    assert provable(A, HalfPlane()).distance <= 1.001 * clipped


def test_zero_matrix_in_the_left_half_plane():
    result = provable(np.zeros((3, 3)), HalfPlane())
    assert result.certificate.is_stable
    assert result.distance < 1e-300


def test_no_rows():
    assert nearest_provable(np.zeros((0, 0))).matrix.shape == (0, 0)


@pytest.mark.parametrize(
    ("scale", "region"),
    [(1e30, Disc()), (1e200, Disc()), (1e307, Disc()), (1.0, Disc(1e-200)), (1.0, Disc(1e-30, 0.1))],
)
def test_matrices_far_larger_than_the_disc(scale, region):
    A = scale * CASES["normal"](6)
    result = provable(A, region)
    assert result.certificate.is_stable
    assert np.linalg.norm(A / scale - result.matrix / scale) < 0.65 * np.linalg.norm(A / scale)


@pytest.mark.parametrize("scale", [1e-30, 1e-200])
def test_small_matrices_in_the_half_plane(scale):
    A = scale * CASES["normal"](5)
    result = provable(A, HalfPlane())
    assert result.distance < 0.6 * scale * np.linalg.norm(A / scale)


def test_entries_near_the_largest_number():
    result = nearest_provable(np.full((4, 4), 1.7e308))
    assert result.certificate.is_stable


@pytest.mark.parametrize("region", [Disc(4.0), HalfPlane()], ids=str)
def test_homogeneous(region):
    A = 2 * CASES["normal"](4)
    scaled = provable(4 * A, region)
    unscaled = provable(A, Disc() if isinstance(region, Disc) else region)
    assert scaled.distance == pytest.approx(4 * unscaled.distance, rel=1e-6)


def test_deterministic():
    A = 3 * CASES["uniform"](4)
    assert np.array_equal(provable(A).matrix, provable(A).matrix)


def test_rounding_with_feedback_keeps_the_weighted_error_small():
    rng = np.random.default_rng(5)
    n = 12
    Z = np.linalg.qr(rng.standard_normal((n, n)))[0]
    S = np.geomspace(1e-3, 1e3, n)[:, None] * Z.T
    X = rng.standard_normal((n, n))

    def weighted(stored):
        return np.linalg.norm(S @ (stored.astype(float) - X) @ np.linalg.inv(S))

    rounded = _rounded(X, S, np.dtype("float32"))
    assert rounded.dtype == np.float32
    assert weighted(rounded) < 0.2 * weighted(X.astype(np.float32))
    assert np.linalg.norm(rounded - X) < 1e-3 * np.linalg.norm(X)


def test_rounding_leaves_representable_numbers_alone():
    X = CASES["normal"](4)
    assert np.array_equal(_rounded(X, np.eye(4), np.dtype("float64")), X)


@pytest.mark.parametrize(
    "A",
    [np.array([[np.nan]]), np.array([[np.inf]]), np.ones((2, 3)), np.ones((2, 2, 2)), np.eye(2, dtype=int)],
    ids=["nan", "inf", "oblong", "stack", "integer"],
)
def test_bad_matrices(A):
    with pytest.raises(InvalidInputError):
        nearest_provable(A)


def test_bad_region():
    with pytest.raises(InvalidInputError):
        nearest_provable(np.eye(2), region="disc")


def test_region_without_a_number_of_the_type():
    with pytest.raises(InvalidInputError, match="float32"):
        nearest_provable(np.full((2, 2), 1.0, dtype="float32"), Disc(1e-12, 0.1))
