"""A measured figure beside its target, and how time is measured."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_RUN = 3e-3  # s


@dataclass(frozen=True)
class Figure:
    """One measured number (or a few) beside what was promised; ``points`` are what a picture of it shows."""

    what: str
    target: str
    measured: str
    met: bool
    points: tuple[tuple[float, float], ...] = ()


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


def fastest(samples: dict[str, Callable[[], float]], budget: float) -> dict[str, float]:
    """The least that each function returned, in turns until ``budget`` seconds have passed, three times at least.

    Each returns the time of a run of a few milliseconds: beside other work on the machine some of them are undisturbed.
    """
    best = dict.fromkeys(samples, float("inf"))
    start, rounds = time.perf_counter(), 0
    while rounds < 3 or time.perf_counter() - start < budget:
        for name, sample in samples.items():
            best[name] = min(best[name], sample())
        rounds += 1
    return best


def of_one(run: Callable[[int], float], longest: int = 1 << 14) -> Callable[[], float]:
    """What returns the time of one repetition, in a run of some milliseconds, less the time of a call for none.

    Args:
        run: of so many repetitions, returns their time in seconds.
        longest: the most repetitions that it can do.
    """
    run(1)
    call = min(run(0) for _ in range(20))
    count = 1
    while count < longest and min(run(count) for _ in range(3)) < _RUN:
        count = min(2 * count, longest)
    return lambda: (run(count) - call) / count


def stack_of(rng: np.random.Generator, count: int, n: int) -> np.ndarray:
    """Matrices with independent standard normal entries."""
    return rng.standard_normal((count, n, n))


def _settle(result: Any) -> None:
    """JAX returns before it has computed."""
    for part in result if isinstance(result, tuple) else (result,):
        if hasattr(part, "block_until_ready"):
            part.block_until_ready()
