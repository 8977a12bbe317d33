"""Figures of merit: how far a matrix is from another one, how unstable it is, and how well a model predicts.

Everything is computed in float64 by NumPy, whatever the precision of the arguments. Eigenvalues of dense matrices are
those that LAPACK finds: measures, not proofs of stability (``schurfire.certify`` proves).
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from schurfire.arrays import concrete, real_array, square_matrices, square_matrix
from schurfire.errors import invalid


def nsfe(A: Any, X: Any) -> np.ndarray | float:
    """Normalised squared Frobenius error: ``||A - X||_F^2 / ||A||_F^2``.

    Args:
        A: the reference, real, of shape (..., n, n) and nowhere the zero matrix.
        X: what approximates it, of the same shape.

    Returns:
        One number for each matrix: float64 of the leading shape.

    Raises:
        InvalidInputError: matrices that are not real, square, finite and of one shape, or a zero matrix A.

    >>> nsfe([[2.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]])
    0.25
    """
    A, X = _float64(square_matrices(A, "A"), "A"), _float64(square_matrices(X, "X"), "X")
    _require_same_shape(A, X, "A", "X")
    scale = np.maximum(_largest(A), _largest(X))  # so that no square overflows or vanishes
    with np.errstate(invalid="ignore"):
        A, X = A / scale, X / scale
    size = np.sum(A * A, axis=(-2, -1))
    if not np.all(size > 0):
        raise invalid("A", "nowhere the zero matrix", "a zero matrix", "The error relative to zero is undefined.")
    return _plain(np.sum((A - X) ** 2, axis=(-2, -1)) / size)


def nssr(A: Any, X: Any) -> float:
    """Normalised squared spectral distance: ``min_p sum_i |x_p(i) - a_i|^2 / sum_i |a_i|^2`` over all permutations p.

    ``a`` are the eigenvalues of A and ``x`` those of X. The best of all pairings is found exactly as a linear
    assignment problem, in O(n^3).

    Args:
        A: the reference: a real matrix of shape (n, n), or the vector of its n eigenvalues.
        X: what approximates it, likewise.

    Raises:
        InvalidInputError: anything else, different n, or a reference whose eigenvalues are all zero.

    >>> nssr([[2.0, 5.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
    0.2
    """
    from scipy.optimize import linear_sum_assignment

    a, x = _eigenvalues(A, "A"), _eigenvalues(X, "X")
    _require_same_shape(a, x, "A", "X")
    largest = np.max(np.abs(a), initial=0.0)
    if largest == 0:
        fix = "The distance relative to zero is undefined."
        raise invalid("A", "a matrix with an eigenvalue other than 0", "none", fix)
    a, x = a / largest, x / largest
    cost = np.abs(x[:, None] - a[None, :]) ** 2
    return float(cost[linear_sum_assignment(cost)].sum() / np.sum(np.abs(a) ** 2))


def msvr(X: Any, radius: float = 1.0) -> float:
    """Mean squared violation of a disc: the mean of ``max(|x| - radius, 0)^2`` over the eigenvalues x of X.

    Args:
        X: a real matrix of shape (n, n), or the vector of its n eigenvalues.
        radius: of the disc around 0.

    Raises:
        InvalidInputError: anything else, n = 0, or a radius that is no positive number.

    >>> msvr([[1.5, 9.0], [0.0, 0.5]])
    0.125
    """
    if not (math.isfinite(radius) and radius > 0):
        raise invalid("radius", "positive and finite", radius)
    x = _eigenvalues(X, "X")
    if x.size == 0:
        raise invalid("X", "a matrix with at least one eigenvalue", "none")
    return float(np.mean(np.maximum(np.abs(x) - radius, 0.0) ** 2))


def spectrum_of_blocks(T: Any) -> np.ndarray:
    """The eigenvalues of an exactly quasi-triangular matrix: those of its 1x1 and 2x2 diagonal blocks.

    A 2x2 block ``[[a, b], [c, d]]`` has ``((a + d) +- sqrt(D)) / 2``, ``D = (a - d)^2 + 4 b c``. D and the determinant
    are computed in rational numbers and rounded once, so that an eigenvalue's error is a few units in the last place of
    its modulus, however far from normal the matrix is. LAPACK's eigenvalues of the recomposed dense matrix can be far
    from these.

    Args:
        T: real, of shape (n, n), with zeros below the first subdiagonal and no two neighbours on it both different
            from zero: the ``T`` of a ``schurfire.SchurForm``.

    Returns:
        complex128, of shape (n,), in the order of the diagonal.

    Raises:
        InvalidInputError: T is no such matrix.

    >>> spectrum_of_blocks([[0.0, 1.0, 7.0], [-1.0, 0.0, 7.0], [0.0, 0.0, 0.5]])
    array([0. +1.j, 0. -1.j, 0.5+0.j])
    """
    T = _float64(square_matrix(T, "T"), "T")
    below = np.diagonal(T, -1) != 0
    if np.any(np.tril(T, -2)) or np.any(below[1:] & below[:-1]):
        fix = "Pass the T of a real Schur decomposition with its zeros set to 0."
        raise invalid("T", "exactly quasi-triangular", "a matrix with more entries below the diagonal", fix)
    values = np.diagonal(T).astype("complex128")
    for i in np.flatnonzero(below):
        values[i : i + 2] = _eigenvalues_2x2(*(float(x) for x in T[i : i + 2, i : i + 2].ravel()))
    return values


def nmse(y: Any, y_hat: Any) -> np.ndarray | float:
    """Normalised mean squared error of each channel: ``sum (y - y_hat)^2 / sum (y - mean(y))^2``.

    1 is what predicting the mean scores. Sums and mean run over time and all leading axes together.

    Args:
        y: measured outputs of shape (..., N, n_y), or (N,) for one channel.
        y_hat: predicted outputs of the same shape.

    Returns:
        float64 of shape (n_y,), or a number for one channel given as a vector.

    Raises:
        InvalidInputError: arrays that are not real, finite and of one shape, no samples, or a constant channel.

    >>> nmse([[0.0], [2.0]], [[0.0], [1.0]])
    array([0.5])
    """
    y, y_hat = _float64(real_array(y, "y"), "y"), _float64(real_array(y_hat, "y_hat"), "y_hat")
    _require_same_shape(y, y_hat, "y", "y_hat")
    if y.ndim == 0 or y.size == 0:
        raise invalid("y", "of shape (..., N, n_y) or (N,) with at least one sample", f"shape {y.shape}")
    over = None if y.ndim == 1 else tuple(range(y.ndim - 1))
    spread = np.sum((y - np.mean(y, axis=over)) ** 2, axis=over)
    constant = np.flatnonzero(np.ptp(y, axis=over) == 0)
    if constant.size:
        fix = "Leave it out: the error relative to its variation is undefined."
        raise invalid("y", "varying in every channel", f"a constant channel {int(constant[0])}", fix)
    return _plain(np.sum((y - y_hat) ** 2, axis=over) / spread)


def fit_percent(y: Any, y_hat: Any) -> np.ndarray | float:
    """Fit of each channel in percent: ``100 (1 - ||y - y_hat|| / ||y - mean(y)||)``, at most 100, negative if bad.

    Arguments, result and errors are those of ``nmse``, of which it is ``100 (1 - sqrt(nmse))``.

    >>> fit_percent([[0.0], [2.0]], [[0.0], [2.0]])
    array([100.])
    """
    return 100.0 * (1.0 - np.sqrt(nmse(y, y_hat)))


def _eigenvalues(x: Any, name: str) -> np.ndarray:
    if not hasattr(x, "dtype"):
        x = np.asarray(x)
    if len(x.shape) != 1:
        return np.linalg.eigvals(_float64(square_matrix(x, name), name)).astype("complex128")
    values = concrete(x, name).astype("complex128")
    if not np.isfinite(values).all():
        raise invalid(name, "finite", "NaN or infinite eigenvalues")
    return values


def _eigenvalues_2x2(a: float, b: float, c: float, d: float) -> tuple[complex, complex]:
    A, B, C, D = map(Fraction, (a, b, c, d))
    mean, discriminant, determinant = (A + D) / 2, (A - D) ** 2 / 4 + B * C, A * D - B * C
    root = _square_root(abs(discriminant))
    if discriminant < 0:
        return complex(mean, root), complex(mean, -root)
    larger = float(mean) + math.copysign(root, mean)  # no cancellation: the other one is the determinant over it
    return complex(larger), complex(determinant / Fraction(larger) if larger else 0.0)


def _square_root(x: Fraction) -> float:
    """sqrt(x) of a rational number that may lie outside of the range of floating-point numbers."""
    half = (x.numerator.bit_length() - x.denominator.bit_length()) // 2
    return math.ldexp(math.sqrt(x / Fraction(4) ** half), half)


def _float64(x: Any, name: str) -> np.ndarray:
    return concrete(x, name).astype("float64")


def _largest(X: np.ndarray) -> np.ndarray:
    return np.max(np.abs(X), axis=(-2, -1), keepdims=True, initial=0.0)


def _require_same_shape(a: np.ndarray, b: np.ndarray, name_a: str, name_b: str) -> None:
    if a.shape != b.shape:
        raise invalid(f"{name_a} and {name_b}", "of one shape", f"{a.shape} and {b.shape}")


def _plain(values: np.ndarray) -> np.ndarray | float:
    return float(values) if np.ndim(values) == 0 else values
