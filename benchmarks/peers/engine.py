"""Epochs of the engine under the settings of this process, such as SCHURFIRE_NATIVE=0."""

import functools
from typing import Any

from benchmarks.peers import serve
from benchmarks.trainings import Task, Training


@functools.cache
def _training(**sizes: Any) -> Training:
    return Training(Task(**sizes))


def answer(**sizes: Any) -> float:
    """Seconds of one epoch of this task; the first question compiles."""
    return _training(**sizes).sample()


serve(answer)
