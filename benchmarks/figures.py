"""A measured figure beside its target, and how time is measured."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Figure:
    """One measured number (or a few) beside what was promised."""

    what: str
    target: str
    measured: str
    met: bool


def seconds(run: Callable[[], Any], repeats: int = 5, at_least: float = 0.05) -> float:
    """The best mean time of one call, over ``repeats`` loops that each take ``at_least`` seconds."""
    _settle(run())
    loops = 1
    best = float("inf")
    for _ in range(repeats):
        while True:
            start = time.perf_counter()
            for _ in range(loops):
                _settle(run())
            elapsed = time.perf_counter() - start
            if elapsed >= at_least or loops >= 1 << 16:
                break
            loops = max(loops + 1, int(loops * at_least / max(elapsed, 1e-7) * 1.2))
        best = min(best, elapsed / loops)
    return best


def stack_of(rng: np.random.Generator, count: int, n: int) -> np.ndarray:
    """Matrices with independent standard normal entries."""
    return rng.standard_normal((count, n, n))


def _settle(result: Any) -> None:
    """JAX returns before it has computed."""
    for part in result if isinstance(result, tuple) else (result,):
        if hasattr(part, "block_until_ready"):
            part.block_until_ready()
