"""Checks at the door for what sampled signals come with: sampling time, number of samples, names of channels."""

import math
from typing import Any

import numpy as np

from schurfire.errors import invalid


def sampling_time(dt: Any) -> float:
    """Returns ``dt`` in seconds, a positive finite number."""
    is_number = isinstance(dt, (int, float, np.integer, np.floating)) and not isinstance(dt, bool)
    if not is_number or not 0 < dt < math.inf:
        raise invalid("dt", "a positive number of seconds", repr(dt))
    return float(dt)


def sample_count(N: Any) -> int:
    """Returns ``N``, a whole number of samples, at least one."""
    if isinstance(N, bool) or not isinstance(N, (int, np.integer)) or N < 1:
        raise invalid("N", "a whole number of samples, at least 1", repr(N))
    return int(N)


def channel_names(names: Any, name: str, letter: str, count: int) -> tuple[str, ...]:
    """Returns one name for each of ``count`` channels, all different: those given, or ``"u1"``, ``"u2"``, ...

    Args:
        names: a sequence of non-empty strings; if it is empty, the channels are numbered.
        name: of the argument, for the message.
        letter: what numbered names start with.
        count: how many channels there are.

    Raises:
        InvalidInputError: too few, too many or repeated names, or none at all.

    >>> channel_names((), "input_names", "u", 2)
    ('u1', 'u2')
    """
    if not isinstance(names, (tuple, list)) or not all(isinstance(each, str) and each for each in names):
        raise invalid(name, "a sequence of non-empty strings", repr(names))
    chosen = tuple(names) or tuple(f"{letter}{i + 1}" for i in range(count))
    if len(chosen) != count or len(set(chosen)) != count:
        raise invalid(name, f"{count} different name(s)", repr(names))
    return chosen
