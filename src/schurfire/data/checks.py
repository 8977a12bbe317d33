"""Checks of the numbers, seeds and data types that the functions of this room are given."""

import math
from typing import Any

import numpy as np

from schurfire.errors import invalid

Seed = int | np.random.Generator


def positive_count(value: Any, name: str) -> int:
    """Returns ``value`` if it is an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise invalid(name, "an integer of at least 1", repr(value))
    return int(value)


def finite_number(value: Any, name: str) -> float:
    """Returns ``value`` as a float if it is a finite real number."""
    is_real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_real or not math.isfinite(value):
        raise invalid(name, "a finite real number", repr(value))
    return float(value)


def positive_number(value: Any, name: str) -> float:
    """Returns ``value`` as a float if it is a finite number above 0."""
    number = finite_number(value, name)
    if not number > 0:
        raise invalid(name, "positive", repr(value))
    return number


def probability(value: Any, name: str) -> float:
    """Returns ``value`` as a float if it lies between 0 and 1."""
    number = finite_number(value, name)
    if not 0 <= number <= 1:
        raise invalid(name, "between 0 and 1", repr(value))
    return number


def generator(seed: Any) -> np.random.Generator:
    """The random generator of an integer, or the given one, which goes on where it stands."""
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise invalid("seed", "an integer of at least 0 or a numpy.random.Generator", repr(seed))
    return np.random.default_rng(int(seed))


def float_dtype(dtype: Any) -> np.dtype:
    """The NumPy data type of ``float32`` or ``float64``, given by name or type."""
    for allowed in (np.float32, np.float64):
        if dtype is not None and dtype in (allowed, np.dtype(allowed), allowed.__name__):  # NumPy reads None as float64
            return np.dtype(allowed)
    raise invalid("dtype", "float32 or float64", repr(dtype))
