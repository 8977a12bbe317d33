"""Real Schur decompositions: backward error of both methods, and no failures."""

from collections.abc import Iterator

import jax
import numpy as np

import schurfire as sf
from benchmarks.figures import Figure
from tests.zoo import zoo


def figures(smoke: bool) -> Iterator[Figure]:
    sizes = (2, 3, 10) if smoke else (1, 2, 3, 5, 10, 30, 100, 200)
    for dtype in ("float64", "float32"):
        for method in ("lapack", "portable"):
            yield _over_the_zoo(method, dtype, sizes)
            yield _random(method, dtype, 1_000 if smoke else 100_000)


def _over_the_zoo(method: str, dtype: str, sizes: tuple[int, ...]) -> Figure:
    worst, where, count = 0.0, "", 0
    for n in sizes:
        members = {name: A for name, A in zoo(n, dtype).items() if _fits(A, dtype)}
        names, stack = list(members), np.stack(list(members.values()))
        residual, orthogonality = _errors(stack, *_decompose(stack, method))
        error = np.maximum(residual, orthogonality)
        count += len(names)
        if error.max() > worst:
            worst, where = float(error.max()), f"{names[int(error.argmax())]}, n = {n}"
    what = f"{method}, {dtype}: worst residual or orthogonality over {count} zoo matrices, n <= {sizes[-1]}"
    return Figure(what, "below 30 (in n eps)", f"{worst:.2g} ({where})", worst < 30)


def _fits(A: np.ndarray, dtype: str) -> bool:
    """Whether the entries are numbers of the data type's range, subnormal ones left out: JAX takes those for 0."""
    sizes = np.abs(A[A != 0])
    return sizes.size == 0 or (sizes.min() > float(np.finfo(dtype).tiny) and sizes.max() < float(np.finfo(dtype).max))


def _random(method: str, dtype: str, count: int) -> Figure:
    rng = np.random.default_rng(0)
    failures, total, worst = 0, 0, 0.0
    for n in range(2, 13):
        stack = rng.standard_normal((count // 11 + 1, n, n)).astype(dtype)
        T, Z, converged = _decompose(stack, method)
        error = np.maximum(*_errors(stack, T, Z, converged))
        failures += int(np.sum(~converged | ~(error < 30)))
        total += len(stack)
        worst = max(worst, float(error.max()))
    what = f"{method}, {dtype}: failures among {total} random matrices of order 2 to 12"
    return Figure(what, "0", f"{failures} (worst error {worst:.2g} n eps)", failures == 0)


def _decompose(stack: np.ndarray, method: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    with jax.enable_x64(stack.dtype == np.float64):
        schur = jax.jit(lambda A: sf.real_schur(A, method=method))(jax.numpy.asarray(stack))
        return np.asarray(schur.T), np.asarray(schur.Z), np.asarray(schur.converged)


def _errors(A: np.ndarray, T: np.ndarray, Z: np.ndarray, converged: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Residual and orthogonality in units of n eps, in the 1-norm as LAPACK's tests have it."""
    n, eps = A.shape[-1], np.finfo(A.dtype).eps
    A, T, Z = (X.astype(np.longdouble) for X in (A, T, Z))
    Zt = Z.transpose(0, 2, 1)
    size = np.abs(A).sum(axis=-2).max(axis=-1)
    residual = np.abs(A - Z @ T @ Zt).sum(axis=-2).max(axis=-1) / np.where(size > 0, size, 1) / (n * eps)
    orthogonality = np.abs(np.eye(n) - Z @ Zt).sum(axis=-2).max(axis=-1) / (n * eps)
    return np.where(converged, residual, np.inf).astype(float), np.where(converged, orthogonality, np.inf).astype(float)
