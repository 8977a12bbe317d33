"""The distance from A to the matrices that one quadratic norm proves stable, minimised with analytic gradients.

Every X with spectral radius below r is ``r S^-1 Y S`` with ``norm2(Y) < 1``, and every X with spectral abscissa below
zero is ``S^-1 Y S`` with ``Y + Y' < 0``: ``P = S'S`` is its Lyapunov matrix. Over S and Y the problem
``min |X - A|_F`` has no constraint left. Three choices make it fast and keep its answer provable:

- **Closed charts.** ``Y = W L^-T`` with ``L L' = W'W + V'V`` covers the contractions, their boundary included, so no
  weight has to grow without bound where a singular value of Y wants to be 1. ``Y + Y' = -2 VV'`` does the same for
  the half-plane.
- **Scaled coordinates.** With the singular value decomposition ``S = U D Z'`` and Y in the basis U, the entry
  ``X_ij = Y_ij d_j / d_i`` (in the basis Z) moves up to cond(S) times as fast as Y. Entries of W are therefore
  multiplied by ``min(1, d_i / d_j)``, and S moves as ``S (I + K)``, which changes X by the commutator ``X K - K X``
  whatever the conditioning. The charts take lower triangles so that this grading survives in them. Both are renewed
  (``_rebase``) every few dozen iterations.
- **A margin that knows the conditioning.** A rounding error E of X appears as ``S E S^-1``, of size
  ``|E|_F |S|_F |S^-1|_F`` at most. X is drawn inward by ``precision * |X|_F |S|_F |S^-1|_F``: the search itself
  weighs a nearer but worse conditioned matrix against the margin it costs, and there is no penalty to tune.

The parametrisations follow Gillis and Sharma (Automatica 85, 2017) and Gillis, Karow and Sharma (Linear Algebra
Appl. 573, 2019) in spirit; theirs are ``(J - R) Q`` and ``S^-1 U B S``, with other factors and first-order steps.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_lapack_funcs

from schurfire.stability.quasi_newton import minimise

Pullback = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

_invert_triangular = get_lapack_funcs(("trtri",), dtype=np.float64)[0]
_CYCLE = 50  # iterations between two rebases; 25 and 100 end higher (n = 50, 1000 iterations in all)


@dataclass(frozen=True)
class Problem:
    """``min |X - target|_F^2`` over X in the disc of ``radius`` around 0, or with ``radius=None`` in the half-plane.

    ``target`` has Frobenius norm 1; ``precision`` is the relative size of the errors that X must survive.
    """

    target: np.ndarray
    radius: float | None
    precision: float


@dataclass(frozen=True)
class Point:
    """One ``X = S^-1 Y S`` drawn inward by the margin, with its squared distance ``value`` to the target."""

    S: np.ndarray
    Y: np.ndarray
    X: np.ndarray
    value: float


def start_at(problem: Problem, S: np.ndarray) -> Point:
    """The point over S whose Y is the nearest admissible one to ``S target S^-1``."""
    Y = S @ np.linalg.solve(S.T, problem.target.T).T
    if problem.radius is None:
        symmetric, U = np.linalg.eigh((Y + Y.T) / 2)
        Y = (Y - Y.T) / 2 + (U * np.minimum(symmetric, -1e-3)) @ U.T
    else:
        U, singular, Vt = np.linalg.svd(Y / problem.radius)
        Y = (U * np.minimum(singular, 0.99)) @ Vt
    return _point(problem, S, Y)


def descend(problem: Problem, point: Point, cycles: int, tolerance: float) -> Point:
    """Cycles of L-BFGS from a point, until two in a row gain less than ``tolerance`` of the value each."""
    idle = 0
    point = _point(problem, point.S, point.Y)
    for _ in range(cycles):
        chart = _rebase(problem, point)
        x = minimise(chart.value_and_gradient, np.zeros(chart.size), _CYCLE)
        new = chart.point(x)
        if not new.value < point.value:
            return point
        idle = idle + 1 if point.value - new.value < tolerance * new.value else 0
        point = new
        if idle == 2:
            break
    return point


@dataclass(frozen=True)
class _Chart:
    """Coordinates (K, W, V) around a point: ``S = S0 (I + K)`` and ``Y`` of ``(W0 + scale W, V0 + scale V)``."""

    problem: Problem
    S0: np.ndarray
    W0: np.ndarray
    V0: np.ndarray
    scale: np.ndarray

    @property
    def size(self) -> int:
        return 3 * self.S0.size

    def point(self, x: np.ndarray) -> Point:
        S, W, V = self._factors(x)
        return _point(self.problem, S, _admissible(self.problem)(W, V)[0])

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        try:
            S, W, V = self._factors(x)
            Y, pullback = _admissible(self.problem)(W, V)
            value, gradient_S, gradient_Y = _distance(self.problem, S, Y)
        except np.linalg.LinAlgError:  # a step so long that S or L is singular: the line search turns back
            return np.inf, np.zeros_like(x)
        gradient_W, gradient_V = pullback(gradient_Y)
        gradient = np.stack([self.S0.T @ gradient_S, self.scale * gradient_W, self.scale * gradient_V])
        return value, gradient.ravel()

    def _factors(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        K, W, V = x.reshape(3, *self.S0.shape)
        return self.S0 + self.S0 @ K, self.W0 + self.scale * W, self.V0 + self.scale * V


def _rebase(problem: Problem, point: Point) -> _Chart:
    """The chart centred at a point, in the bases of the singular value decomposition of its S."""
    U, d, Zt = np.linalg.svd(point.S)
    S0 = d[:, None] * Zt / np.sqrt(d[0] * d[-1])
    W0, V0 = _coordinates(problem, U.T @ point.Y @ U)
    return _Chart(problem, S0, W0, V0, np.minimum(1.0, d[:, None] / d))


def _point(problem: Problem, S: np.ndarray, Y: np.ndarray) -> Point:
    N = np.linalg.solve(S, Y @ S)
    margin = problem.precision * np.linalg.norm(S) * np.linalg.norm(np.linalg.inv(S)) * np.linalg.norm(N)
    X = _drawn_inward(problem, N, float(margin))
    return Point(S, Y, X, float(np.sum((X - problem.target) ** 2)))


def _drawn_inward(problem: Problem, N: np.ndarray, margin: float) -> np.ndarray:
    return N - margin * np.eye(len(N)) if problem.radius is None else problem.radius / (1 + margin) * N


def _distance(problem: Problem, S: np.ndarray, Y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """``|X - target|_F^2`` and its gradients with respect to S and Y."""
    S_inv = np.linalg.inv(S)
    N = S_inv @ Y @ S
    norm_S, norm_S_inv, norm_N = (float(np.sum(M * M)) for M in (S, S_inv, N))
    margin = problem.precision * float(np.sqrt(norm_S * norm_S_inv * norm_N))
    X = _drawn_inward(problem, N, margin)
    residual = X - problem.target
    if problem.radius is None:
        per_N, per_margin = 2 * residual, -2 * float(np.trace(residual))
    else:
        shrink = problem.radius / (1 + margin)
        per_N, per_margin = 2 * shrink * residual, -2 * float(np.sum(residual * X)) / (1 + margin)
    per_log_margin = per_margin * margin
    per_N = per_N + (per_log_margin / norm_N) * N if norm_N else per_N
    # d N = N (S^-1 dS) - (S^-1 dS) N + S^-1 dY S
    per_S = S_inv.T @ (N.T @ per_N - per_N @ N.T)
    per_S += per_log_margin * (S / norm_S - S_inv.T @ (S_inv @ S_inv.T) / norm_S_inv)
    return float(np.sum(residual * residual)), per_S, S_inv.T @ per_N @ S.T


def _admissible(problem: Problem) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, Pullback]]:
    return _dissipation if problem.radius is None else _contraction


def _contraction(W: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, Pullback]:
    """``Y = W L^-T`` with ``L L' = W'W + V'V``, so that ``I - Y'Y = (V L^-T)'(V L^-T) >= 0``."""
    L = np.linalg.cholesky(W.T @ W + V.T @ V)
    L_inv = _invert_triangular(L, lower=1)[0]
    Y = W @ L_inv.T

    def pullback(gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # dL = L Phi(L^-1 d(L L') L^-T), Phi the lower triangle with half the diagonal
        half = _half_lower((L_inv @ (W.T @ gradient)).T)
        per_gram = -L_inv.T @ (half + half.T) @ L_inv
        return gradient @ L_inv + W @ per_gram, V @ per_gram

    return Y, pullback


def _dissipation(W: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, Pullback]:
    """``Y + Y' = -2 VV'``, where the strict lower triangle of Y is that of W."""
    lower = np.tril(W, -1)
    Y = lower - lower.T - 2 * _half_lower(V @ V.T).T

    def pullback(gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        half = _half_lower(gradient.T)
        return np.tril(gradient - gradient.T, -1), -2 * (half + half.T) @ V

    return Y, pullback


def _coordinates(problem: Problem, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(W, V) with which the chart returns Y, or, where rounding has put Y outside, the same Y drawn just inside."""
    if problem.radius is None:
        eigenvalues, U = np.linalg.eigh(-(Y + Y.T) / 2)
        return np.tril(Y, -1), U * np.sqrt(np.maximum(eigenvalues, 0.0))
    norm = np.linalg.norm(Y, 2)
    Y = Y * min(1.0, (1 - 1e-9) / norm) if norm else Y
    return Y, np.linalg.cholesky(np.eye(len(Y)) - Y.T @ Y).T


def _half_lower(M: np.ndarray) -> np.ndarray:
    return np.tril(M, -1) + np.diag(np.diag(M) / 2)
