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

    A run before the first counted one compiles what is compiled. If that run alone is long, the number of
    counted runs follows from the second.
    """
    function()
    start = time.perf_counter()
    result = function()
    first = time.perf_counter() - start
    more = min(runs - 1, int(budget / first) - 1)
    if more <= 0:
        return Timed(result, first, 1)
    start = time.perf_counter()
    for _ in range(more):
        result = function()
    return Timed(result, (time.perf_counter() - start) / more, more)
