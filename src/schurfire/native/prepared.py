"""A computation of which everything but the addresses is known, for callers to whom the call is a large part."""

import ctypes
import os
from array import array
from collections.abc import Iterable

from schurfire.errors import InvalidInputError
from schurfire.native.library import require_library
from schurfire.native.problem import Problem, Strided, problem_of


class Prepared:
    """One of the computations of ``problem`` for arrays of given shapes and strides, which are checked here.

    A call takes 2 us and what the library takes; ``problem.respond`` takes 20 us before the library begins.

    Args:
        name: ``"respond"`` or ``"differentiate"``.
        dtype: of the arrays.
        form: which entries of A are read.
        arrays: by their names, in the order of the addresses later; those that are given here are not used.
    """

    def __init__(self, name: str, dtype: str, form: str, arrays: dict[str, Strided | None]) -> None:
        suffix = {"float32": "f32", "float64": "f64"}[dtype]
        self._function = getattr(require_library(), f"schurfire_{name}_{suffix}")
        self._function.restype, self._function.argtypes = ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_int64)
        self._threads = os.cpu_count() or 1
        self._numbers = array("q", bytes(problem_of(form, arrays)))  # all fields are words, or padded to one
        self._places = [getattr(Problem, key).offset // self._numbers.itemsize for key in arrays]

    def __call__(self, addresses: Iterable[int]) -> None:
        """Reads and writes what lies at the addresses; 0 for an array that is absent."""
        numbers = self._numbers[:]
        for place, address in zip(self._places, addresses, strict=True):
            numbers[place] = address
        fault = self._function(numbers.buffer_info()[0], self._threads)
        if fault is not None:
            raise InvalidInputError(f"Expected a problem that the native recurrence can compute: {fault.decode()}.")
