"""The real Schur decomposition, built-in against portable, the paper's appendix C: time and three errors, on CPU.

Compiled functions of JAX in float32, as in the paper. Errors are computed in float64 from the float32 factors.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from rich.progress import Progress

import schurfire as sf
from experiments.sweep import Method, Plan, log_sizes, measure

FULL = Plan(sizes=log_sizes(5, 500, 20), samples=5, runs=20, budget=1.0)
SMOKE = Plan(sizes=(5, 12), samples=2, runs=2, budget=0.1)

METHODS = {"built-in": "lapack", "portable": "portable"}


def compute(plan: Plan, progress: Progress) -> list[dict[str, Any]]:
    """Rows: one for each size, sample and method."""
    methods = [Method(name, "random", _decompose(method), _errors) for name, method in METHODS.items()]
    return measure(methods, {"random": _normal}, plan, progress)


def _decompose(method: str) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
    return lambda A: sf.real_schur(A, method=method)[:2]


def _errors(A: np.ndarray, factors: tuple[jax.Array, jax.Array]) -> dict[str, float]:
    T, Z = (np.asarray(X, "float64") for X in factors)
    return {
        "reconstruction": sf.metrics.nsfe(A.astype("float64"), Z @ T @ Z.T),
        "orthogonality": sf.metrics.nsfe(np.eye(len(A)), Z @ Z.T),
        "spectral": sf.metrics.nssr(A, sf.metrics.spectrum_of_blocks(T)),
    }


def _normal(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.standard_normal((n, n)).astype("float32")
