"""The nearest stable 2x2 block: distance, strictness and speed on a million blocks."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

import schurfire as sf
from benchmarks.figures import Figure, seconds
from benchmarks.reference_blocks import nearest_distances


def figures(smoke: bool) -> Iterator[Figure]:
    count = 20_000 if smoke else 1_000_000
    for dtype, ulps in (("float64", 128), ("float32", 128)):
        worst, worst_family, outside, nan = 0.0, "", 0, 0
        for name, blocks in families(count, dtype).items():
            nearest = sf.nearest_stable_block(blocks)
            error = _excess(blocks, nearest, nearest_distances(blocks), ulps * float(np.finfo(dtype).eps))
            if error.max() > worst:
                worst, worst_family = float(error.max()), name
            outside += sum(not _inside(block) for block in nearest.astype(float))
            nan += int(np.isnan(nearest).sum())
        allowance = f"1e-9 relative + {ulps} eps of the block's norm" if dtype == "float64" else f"{ulps} eps of the norm"
        yield Figure(
            f"{dtype}: largest excess of the distance over the reference's, {count:.0e} blocks",
            f"at most 1 (in units of {allowance})",
            f"{worst:.2g} ({worst_family})",
            worst <= 1,
        )
        yield Figure(f"{dtype}: blocks not strictly inside (fractions); NaN", "0; 0", f"{outside}; {nan}", outside + nan == 0)
    rng = np.random.default_rng(1)
    for dtype in ("float64", "float32"):
        blocks = (3 * rng.standard_normal((count, 2, 2))).astype(dtype)
        rate = count / seconds(lambda blocks=blocks: sf.nearest_stable_block(blocks), repeats=3) / 1e6
        yield Figure(f"{dtype}: speed, NumPy arrays", "over 1 million blocks/s", f"{rate:.2f} million blocks/s", rate > 1)


def families(count: int, dtype: str) -> dict[str, np.ndarray]:
    """Blocks of every kind, about ``count`` in all."""
    rng = np.random.default_rng(0)
    each = count // 8

    def normal() -> np.ndarray:
        return rng.standard_normal((each, 2, 2))

    def equal_diagonal(scale: float) -> np.ndarray:
        A = scale * normal()
        A[:, 1, 1] = A[:, 0, 0]
        return A

    near = normal()
    gap = 1 + rng.standard_normal(each) * 10.0 ** rng.uniform(-15, -1, each)
    near *= (gap / np.abs(np.linalg.eigvals(near)).max(axis=1))[:, None, None]
    symmetric = 3 * normal()
    scaled_rotation = equal_diagonal(3)
    scaled_rotation[:, 1, 0] = -scaled_rotation[:, 0, 1]
    exponent = 150 if dtype == "float64" else 15
    huge_range = normal() * 10.0 ** rng.uniform(-exponent, exponent, each)[:, None, None]
    result = {
        "random": 3 * normal(),
        "near the boundary": near,
        "equal diagonal": equal_diagonal(3),
        "large mean": equal_diagonal(1) + (1 + rng.exponential(size=each))[:, None, None] * np.eye(2),
        "symmetric": symmetric + symmetric.transpose(0, 2, 1),
        "scaled rotation": scaled_rotation,
        "norms 1 to 1e8": normal() * 10.0 ** rng.uniform(0, 8, each)[:, None, None],
        f"norms 1e-{exponent} to 1e{exponent}": huge_range,
    }
    return {name: blocks.astype(dtype) for name, blocks in result.items()}


def _excess(blocks: np.ndarray, nearest: np.ndarray, reference: np.ndarray, allowance: float) -> np.ndarray:
    """How far the distance exceeds the reference's, in units of what is allowed."""
    long = blocks.astype(np.longdouble)
    size = np.abs(long).max(axis=(1, 2))
    distance = np.sqrt((((long - nearest.astype(np.longdouble)) / size[:, None, None]) ** 2).sum(axis=(1, 2))) * size
    return np.abs(distance - reference) / (1e-9 * reference + allowance * np.maximum(size, 1))


def _inside(block: np.ndarray) -> bool:
    (a, b), (c, d) = [[Fraction(x) for x in row] for row in block.tolist()]
    det = a * d - b * c
    return det < 1 and abs(a + d) < 1 + det
