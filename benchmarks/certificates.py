"""The dense certificate: never wrong, seldom silent, quick."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

import schurfire as sf
from benchmarks.adversaries import adversaries, half_plane_adversaries
from benchmarks.figures import Figure, seconds


def figures(smoke: bool) -> Iterator[Figure]:
    count = 500 if smoke else 12_000
    yield _false_proofs(adversaries(count), sf.Disc(), "radius at or above 1")
    yield _false_proofs(half_plane_adversaries(count), sf.HalfPlane(), "an eigenvalue on or right of the axis")

    for dtype in ("float64", "float32"):
        rng = np.random.default_rng(0)
        trials = 5 if smoke else 200
        proven = []
        for n in (3, 5, 10, 20, 28, 50):
            for _ in range(trials):
                A = rng.standard_normal((n, n))
                # Rounding to float32 moves eigenvalues by more than 1e-6; there the radius leaves room for that.
                A *= (1 - (1e-6 if dtype == "float64" else 1e-4)) / np.abs(np.linalg.eigvals(A)).max()
                proven.append(sf.certify(A.astype(dtype)).is_stable)
        radius = "1 - 1e-6" if dtype == "float64" else "1 - 1e-4"
        share = 100 * float(np.mean(proven))
        what = f"{dtype}: accepted of {len(proven)} random matrices, radius {radius}, n <= 50"
        yield Figure(what, "at least 99 %", f"{share:.2f} %", share >= 99)
    yield from _times()


def _false_proofs(matrices: Iterator[tuple[str, np.ndarray]], region: sf.Disc | sf.HalfPlane, what: str) -> Figure:
    accepted, families = Counter(), Counter()
    for family, A in matrices:
        families[family] += 1
        accepted[family] += sf.certify(A, region).is_stable
    false = sum(accepted.values())
    name = f"false proofs among {sum(families.values())} matrices with {what} ({len(families)} families)"
    return Figure(name, "0", f"{false} {dict(accepted) if false else ''}".strip(), false == 0)


def _times() -> Iterator[Figure]:
    A = np.random.default_rng(1).standard_normal((28, 28))
    A *= (1 - 1e-6) / np.abs(np.linalg.eigvals(A)).max()
    for what, B in (("by Lyapunov (radius 1 - 1e-6)", A), ("by powers (radius 0.9)", 0.9 * A)):
        elapsed = 1e3 * seconds(lambda B=B: sf.certify(B))
        yield Figure(f"n = 28 {what}", "under 10 ms", f"{elapsed:.2f} ms, {sf.certify(B).method}", elapsed < 10)
