"""The exact proof of the pair: nothing stable refused, nothing unstable accepted."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

import schurfire as sf
from benchmarks.figures import Figure
from experiments.matrices import CASES, case_matrix


def figures(smoke: bool) -> Iterator[Figure]:
    yield _rows_of_the_table((10, 20) if smoke else (10, 20, 50, 100))
    yield _random_pairs(2_000 if smoke else 200_000)
    yield _pairs_one_ulp_outside(1_000 if smoke else 10_000)


def _rows_of_the_table(sizes: tuple[int, ...]) -> Figure:
    verdicts = []
    for dtype in ("float64", "float32"):
        for A in (case_matrix(case, n, 0).astype(dtype) for case in CASES for n in sizes):
            verdicts += [form.certify().is_stable for form in (sf.project_stable(A), sf.nearest_stable(A).form)]
    what = "rows of the paper's table (truncated and optimal) proven, float64 and float32"
    return Figure(what, f"{len(verdicts)} of {len(verdicts)}", f"{sum(verdicts)} of {len(verdicts)}", all(verdicts))


def _random_pairs(each: int) -> Figure:
    rng = np.random.default_rng(0)
    refused = total = 0
    for dtype in ("float64", "float32"):
        for n in (2, 3, 4, 5, 8):
            T = _quasi_triangular(rng, each // 2, n).astype(dtype)
            Z = np.broadcast_to(np.eye(n, dtype=dtype), T.shape)
            forms = sf.project_stable((T, Z))
            refused += sum(not form.certify().is_stable for form in forms)
            total += len(forms)
    return Figure(f"refused among {total} random projected pairs", "0", str(refused), refused == 0)


def _pairs_one_ulp_outside(count: int) -> Figure:
    """One block of a stable pair is moved to the first floating-point numbers on or beyond the boundary."""
    rng = np.random.default_rng(1)
    accepted = 0
    for i in range(count):
        n = int(rng.integers(2, 9))
        form = sf.project_stable((_quasi_triangular(rng, 1, n)[0], np.eye(n)))
        T = form.T.copy()
        starts = [k for k in range(n - 1) if T[k + 1, k] != 0]
        if i % 2 and starts:
            k = int(rng.choice(starts))
            T[k : k + 2, k : k + 2] = _block_just_outside(rng)
        else:
            k = int(rng.choice([k for k in range(n) if k not in starts and k - 1 not in starts] or [0]))
            if k in starts:
                T[k + 1, k] = 0.0
            T[k, k] = rng.choice([-1.0, 1.0])
        accepted += sf.certify(sf.SchurForm(T, np.eye(n))).is_stable
    return Figure(f"accepted among {count} pairs with one block outside by one ulp", "0", str(accepted), accepted == 0)


def _quasi_triangular(rng: np.random.Generator, count: int, n: int) -> np.ndarray:
    """Quasi-triangular matrices with a random pattern of blocks."""
    T = np.triu(1.5 * rng.standard_normal((count, n, n)))
    taken = np.zeros(count, dtype=bool)
    for k in range(n - 1):
        pair = ~taken & (rng.random(count) < 0.5)
        T[pair, k + 1, k] = rng.standard_normal(int(pair.sum()))
        taken = pair
    return T


def _block_just_outside(rng: np.random.Generator) -> np.ndarray:
    """``[[a, b], [c, a]]`` whose determinant is 1 or more by less than one unit in the last place of c."""
    a, b = rng.uniform(-0.9, 0.9), rng.uniform(0.1, 10.0)
    exact = (Fraction(a) ** 2 - 1) / Fraction(b)
    c = float(exact)
    if Fraction(c) > exact:
        c = float(np.nextafter(c, -np.inf))
    return np.array([[a, b], [c, a]])
