"""The nearest orthogonal matrix by four methods, the paper's appendix D: time, distance and orthogonality error.

Compiled functions of JAX in float32, as in the paper. Beside its normally distributed matrices there are nearly
orthogonal ones: what an optimizer's update makes of an orthogonal factor, and what the methods are for.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.progress import Progress

import schurfire as sf
from experiments.sweep import Method, Plan, log_sizes, measure

FULL = Plan(sizes=log_sizes(5, 100, 20), samples=5, runs=100, budget=0.5)
SMOKE = Plan(sizes=(5, 10), samples=2, runs=3, budget=0.05)

METHODS = ("svd", "eigh", "sherif", "newton-schulz")
SCALE = ("Schur decomposition", "block projection", "spectral norm")
_PERTURBATION = 1e-3  # relative, in the spectral norm: the learning rate of the paper


def compute(plan: Plan, progress: Progress) -> list[dict[str, Any]]:
    """Rows: one for each size, sample and method."""
    methods = [Method(name, "random", _nearest(name), _errors) for name in METHODS]
    methods += [Method(f"{name}, nearly orthogonal", "nearly orthogonal", _nearest(name), _errors) for name in METHODS]
    methods += [
        Method("Schur decomposition", "random", lambda A: sf.real_schur(A)[:2]),
        Method("block projection", "random", _project_blocks),
        Method("spectral norm", "random", lambda A: jnp.linalg.norm(A, 2)),
    ]
    return measure(methods, {"random": _normal, "nearly orthogonal": _nearly_orthogonal}, plan, progress)


def _nearest(method: str) -> Callable[[jax.Array], jax.Array]:
    return lambda Z: sf.nearest_orthogonal(Z, method=method)


def _project_blocks(A: jax.Array) -> jax.Array:
    """The nearest stable blocks of a quasi-triangular matrix, without the decomposition that yields it."""
    pairs = A.shape[-1] // 2
    blocks = A[: 2 * pairs, : 2 * pairs].reshape(pairs, 2, pairs, 2)
    return sf.nearest_stable_block(blocks[jnp.arange(pairs), :, jnp.arange(pairs)])


def _errors(Z: np.ndarray, Q: jax.Array) -> dict[str, float]:
    """NaN where the method gave up: the matrix is singular to its precision."""
    Q64 = np.asarray(Q, "float64")
    if not np.isfinite(Q64).all():
        return {"distance": float("nan"), "orthogonality": float("nan")}
    return {"distance": sf.metrics.nsfe(Z, Q64), "orthogonality": sf.metrics.nsfe(np.eye(len(Z)), Q64.T @ Q64)}


def _normal(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.standard_normal((n, n)).astype("float32")


def _nearly_orthogonal(rng: np.random.Generator, n: int) -> np.ndarray:
    Q, E = np.linalg.qr(rng.standard_normal((n, n)))[0], rng.standard_normal((n, n))
    return (Q + _PERTURBATION * E / np.linalg.norm(E, 2)).astype("float32")
