"""Methods against matrix sizes: time and errors of several samples each, as in the paper's appendices C and D.

Functions are compiled by JAX and timed on its tensors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from rich.progress import Progress

from experiments.timing import average_time


@dataclass(frozen=True)
class Method:
    """One line of a figure.

    Attributes:
        name: in rows, table and legend.
        kind: of matrices that it is given.
        function: of one tensor of JAX; it is compiled.
        errors: of the matrix and the result, by name; a method that is timed for scale only has none.
    """

    name: str
    kind: str
    function: Callable[[jax.Array], Any]
    errors: Callable[[np.ndarray, Any], dict[str, float]] | None = None


@dataclass(frozen=True)
class Plan:
    """How much a sweep measures.

    Attributes:
        sizes: matrix orders.
        samples: random matrices of each size.
        runs: consecutive runs that a time is the average of, at most.
        budget: seconds that these runs may take for one sample.
        seed: of the random matrices.
    """

    sizes: tuple[int, ...]
    samples: int
    runs: int
    budget: float
    seed: int = 0


def log_sizes(smallest: int, largest: int, count: int) -> tuple[int, ...]:
    """``count`` matrix orders, evenly spaced on a logarithmic axis and rounded."""
    return tuple(int(n) for n in np.rint(np.geomspace(smallest, largest, count)))


def measure(
    methods: Sequence[Method],
    draw: dict[str, Callable[[np.random.Generator, int], np.ndarray]],
    plan: Plan,
    progress: Progress,
) -> list[dict[str, Any]]:
    """One row for each size, sample and method; all methods of one kind get the same matrices."""
    rows = []
    compiled = {method.name: jax.jit(method.function) for method in methods}
    task = progress.add_task("", total=len(plan.sizes) * plan.samples * len(methods))
    for n in plan.sizes:
        for sample in range(plan.samples):
            matrices = {kind: make(np.random.default_rng([plan.seed, n, sample]), n) for kind, make in draw.items()}
            for method in methods:
                progress.update(task, description=f"{method.name}, n = {n}")
                rows.append(_row(method, compiled[method.name], matrices[method.kind], sample, plan))
                progress.advance(task)
    return rows


def _row(method: Method, compiled: Callable, A: np.ndarray, sample: int, plan: Plan) -> dict[str, Any]:
    tensor = jax.numpy.asarray(A)
    timed = average_time(lambda: jax.block_until_ready(compiled(tensor)), plan.runs, plan.budget)
    row = {"method": method.name, "kind": method.kind, "n": len(A), "sample": sample, "dtype": A.dtype.name}
    row |= {"seed": plan.seed, "seconds": timed.seconds, "runs": timed.runs}
    return row | (method.errors(A, timed.result) if method.errors else {})
