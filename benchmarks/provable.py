"""The nearest plain array that can be proven: NSFE and time in both precisions.

The times, like those of the targets, are of the search among provable arrays alone. A call without ``optimum`` runs
``nearest_stable`` as well; the benchmark *optimal* has its times.
"""

import time
from collections.abc import Iterator

import numpy as np

import schurfire as sf
from benchmarks.figures import Figure
from experiments.matrices import CASES, case_matrix

# A naive search (free factors, plain L-BFGS), measured before this project began; case 2 failed for n = 50 and 100.
_TARGETS = {
    (1, 10): 0.543, (1, 20): 0.633, (1, 50): 0.653, (1, 100): 0.663,
    (2, 10): 0.101, (2, 20): 0.201,
    (3, 10): 0.0144, (3, 20): 0.069, (3, 50): 0.117, (3, 100): 0.159,
    (4, 10): 0.231, (4, 20): 0.276, (4, 50): 0.392, (4, 100): 0.449,
}  # fmt: skip
_TIME_LIMITS = {10: 1.4, 20: 1.6, 50: 3.5, 100: 11.0}


def figures(smoke: bool) -> Iterator[Figure]:
    for n in (10,) if smoke else (10, 20, 50, 100):
        for case in CASES:
            for dtype in ("float64", "float32"):
                yield _case(case, n, dtype)


def _case(case: int, n: int, dtype: str) -> Figure:
    A = case_matrix(case, n, 0).astype(dtype)
    optimum = sf.nearest_stable(A)
    start = time.perf_counter()
    result = sf.nearest_provable(A, optimum=optimum)
    elapsed = time.perf_counter() - start
    value = sf.metrics.nsfe(A, result.matrix)
    target = _TARGETS.get((case, n)) or _scaled_truncation(A)
    proven = result.certificate.verify(result.matrix) and sf.certify(result.matrix).is_stable
    price = optimum.distance**2 / np.sum(A.astype(float) ** 2)
    text = f"{value:.4g} (optimum of the pair {price:.4g}), {elapsed:.2f} s, {result.certificate.method}"
    limit = _TIME_LIMITS[n]
    met = proven and value <= target and elapsed <= limit
    return Figure(
        f"case {case}, n = {n}, {dtype}: NSFE, time beyond nearest_stable's",
        f"{target:.4g}, {limit} s, proven",
        text,
        met,
    )


def _scaled_truncation(A: np.ndarray) -> float:
    """NSFE of the truncated projection, scaled down in steps of 1 % until it is proven."""
    X = sf.project_stable(A).matrix
    while not sf.certify(X).is_stable:
        X = (0.99 * X).astype(A.dtype)
    return sf.metrics.nsfe(A, X)
