"""The truncated projection costs little more than the decomposition it needs."""

from collections.abc import Iterator

import jax
import numpy as np

from benchmarks.figures import Figure, seconds
from schurfire.kernels.projection import project_matrix


def figures(smoke: bool) -> Iterator[Figure]:
    for dtype in ("float32", "float64"):
        with jax.enable_x64(dtype == "float64"):
            for n in (20,) if smoke else (20, 50, 100):
                yield _ratio(n, dtype, smoke)


def _ratio(n: int, dtype: str, smoke: bool) -> Figure:
    A = jax.numpy.asarray(np.random.default_rng(n).standard_normal((n, n)).astype(dtype))

    @jax.jit
    def projected(A):
        pair = project_matrix(A)
        return pair.Z @ pair.T @ pair.Z.T

    @jax.jit
    def recomposed(A):
        T, Z = jax.lax.linalg.schur(A)
        return Z @ T @ Z.T

    ratios, times = [], []
    for _ in range(1 if smoke else 5):  # alternating, so that a busy machine disturbs both alike
        times.append((seconds(lambda: projected(A), repeats=2), seconds(lambda: recomposed(A), repeats=2)))
        ratios.append(times[-1][0] / times[-1][1])
    ratio = float(np.median(ratios))
    project, schur = np.min(times, axis=0) * 1e6
    text = f"{ratio:.2f} x ({project:.0f} us / {schur:.0f} us)"
    what = f"n = {n}, {dtype}: compiled projection / LAPACK Schur and two products"
    return Figure(what, "at most 1.2 x", text, ratio <= 1.2)
