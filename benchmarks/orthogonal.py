"""The nearest orthogonal matrix by Newton-Schulz against the singular value decomposition."""

from collections.abc import Iterator

import jax
import numpy as np

import schurfire as sf
from benchmarks.figures import Figure, seconds


def figures(smoke: bool) -> Iterator[Figure]:
    n = 20 if smoke else 100
    for dtype in ("float32", "float64"):
        rng = np.random.default_rng(0)
        Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        Z = (Q + 1e-3 * rng.standard_normal((n, n)) / np.sqrt(n)).astype(dtype)
        with jax.enable_x64(dtype == "float64"):
            compiled = jax.jit(_by_newton_schulz), jax.jit(_by_svd)
            yield from _compare(f"JAX, {dtype}, n = {n}", jax.numpy.asarray(Z), *compiled)
        yield from _compare(f"NumPy, {dtype}, n = {n}", Z, _by_newton_schulz, _by_svd)


def _by_newton_schulz(Z):
    return sf.nearest_orthogonal(Z, method="newton-schulz")


def _by_svd(Z):
    return sf.nearest_orthogonal(Z, method="svd")


def _compare(what: str, Z, newton_schulz, svd) -> Iterator[Figure]:
    times = [(seconds(lambda: svd(Z), repeats=2), seconds(lambda: newton_schulz(Z), repeats=2)) for _ in range(3)]
    slow, fast = np.min(times, axis=0)
    ratio = float(np.median([a / b for a, b in times]))
    text = f"{ratio:.0f} x ({slow * 1e3:.2f} ms / {fast * 1e3:.3f} ms)"
    yield Figure(f"{what}: speed over the SVD", "at least 20 x", text, ratio >= 20)
    ours, theirs = _orthogonality(newton_schulz(Z)), _orthogonality(svd(Z))
    target = f"at most the SVD's, {theirs:.2g}"
    yield Figure(f"{what}: orthogonality error, ||Q^T Q - I||_F", target, f"{ours:.2g}", ours <= theirs)


def _orthogonality(Q) -> float:
    Q = np.asarray(Q).astype(np.longdouble)
    return float(np.sqrt(np.sum((Q.T @ Q - np.eye(len(Q))) ** 2)))
