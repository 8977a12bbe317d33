"""Timings as in the paper: the average of consecutive runs, after one that is not counted."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Timed:
    """What a function returned, the seconds of one run, and over how many runs they were averaged."""

    result: Any
    seconds: float
    runs: int


def average_time(function: Callable[[], Any], runs: int, budget: float) -> Timed:
    """Averages ``runs`` consecutive runs, or as many (at least one) as fit into about ``budget`` seconds.

    A first run compiles what is compiled; how many runs fit follows from a second one.
    """
    function()
    start = time.perf_counter()
    result = function()
    first = time.perf_counter() - start
    count = min(runs, int(budget / first))
    if count <= 1:
        return Timed(result, first, 1)
    start = time.perf_counter()
    for _ in range(count):
        result = function()
    return Timed(result, (time.perf_counter() - start) / count, count)
