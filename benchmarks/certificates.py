"""The dense certificate: never wrong, seldom silent, quick."""

from collections.abc import Iterator

import numpy as np

import schurfire as sf
from benchmarks.adversaries import adversaries
from benchmarks.figures import Figure, seconds


def figures(smoke: bool) -> Iterator[Figure]:
    count = 500 if smoke else 12_000
    accepted, families = {}, {}
    for family, A in adversaries(count):
        families[family] = families.get(family, 0) + 1
        if sf.certify(A).is_stable:
            accepted[family] = accepted.get(family, 0) + 1
    total = sum(families.values())
    what = f"false proofs among {total} matrices with radius at or above 1 ({len(families)} families)"
    yield Figure(what, "0", f"{sum(accepted.values())} {accepted or ''}".strip(), not accepted)

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
    A = np.random.default_rng(1).standard_normal((28, 28))
    A *= (1 - 1e-6) / np.abs(np.linalg.eigvals(A)).max()
    for what, B in (("by Lyapunov (radius 1 - 1e-6)", A), ("by powers (radius 0.9)", 0.9 * A)):
        elapsed = 1e3 * seconds(lambda B=B: sf.certify(B))
        yield Figure(f"n = 28 {what}", "under 10 ms", f"{elapsed:.2f} ms, {sf.certify(B).method}", elapsed < 10)
