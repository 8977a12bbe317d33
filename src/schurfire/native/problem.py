"""Whole problems on arrays in memory: the plain C entry points, for NumPy arrays and PyTorch tensors on CPU.

An array is passed as its address and strides, so nothing is copied. The logical shapes are those of the recurrence: A
(R, n, n), B (R, n, m), C (R, o, n), D (R, o, m), x0 (R, S, n), u (R or 1, S, N, m), for R models and S sequences.
"""

import ctypes
import os
from typing import Any, NamedTuple

import numpy as np

from schurfire.errors import InvalidInputError
from schurfire.native.library import require_library

VECTORS = ("x0", "x_end", "x0_bar", "x_end_bar")  # (R, S, n), all others are (R, ., .) or (R, S, N, .)
FORMS = {"dense": 0, "quasi-triangular": 1, "block-diagonal": 2}


class Strided(NamedTuple):
    """The address of an array's first element and the strides of its axes, counted in elements."""

    address: int
    strides: tuple[int, ...]
    shape: tuple[int, ...]


class View(ctypes.Structure):
    """Where an array lies and how its axes are strided, as the library wants it."""

    _fields_ = (("data", ctypes.c_void_p), *((name, ctypes.c_int64) for name in ("row", "column", "sequence", "model")))


_SIZES = ("steps", "states", "inputs", "outputs", "sequences", "models")
_ARGUMENTS = ("A", "B", "C", "D", "u", "x0", "x", "y", "x_end", "y_bar", "x_end_bar")
_GRADIENTS = ("A_bar", "B_bar", "C_bar", "D_bar", "u_bar", "x0_bar")


class Problem(ctypes.Structure):
    """The library's description of one computation; see ``problem.hpp``."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in _SIZES),
        ("form", ctypes.c_int32),
        *((name, View) for name in _ARGUMENTS + _GRADIENTS),
    )


def respond(dtype: str, form: str, **arrays: Strided | None) -> None:
    """Writes ``x_end``, and ``y`` and the states ``x`` where they are given, from A, B, C, D, u, x0."""
    _call("respond", dtype, form, arrays)


def differentiate(dtype: str, form: str, **arrays: Strided | None) -> None:
    """Writes those of ``A_bar`` to ``x0_bar`` that are given, from A, B, C, D, u, x, y_bar, x_end_bar."""
    _call("differentiate", dtype, form, arrays)


def strided(array: np.ndarray | None) -> Strided | None:
    """Address, strides and shape of a NumPy array."""
    if array is None:
        return None
    return Strided(array.ctypes.data, tuple(s // array.itemsize for s in array.strides), array.shape)


def _call(name: str, dtype: str, form: str, arrays: dict[str, Strided | None]) -> None:
    suffix = {"float32": "f32", "float64": "f64"}[dtype]
    function = getattr(require_library(), f"schurfire_{name}_{suffix}")
    function.restype, function.argtypes = ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_int64)
    problem = problem_of(form, arrays)
    fault = function(ctypes.addressof(problem), os.cpu_count() or 1)
    if fault is not None:
        raise InvalidInputError(f"Expected a problem that the native recurrence can compute: {fault.decode()}.")


def problem_of(form: str, arrays: dict[str, Strided | None]) -> Problem:
    """The description, with all shapes checked against each other."""
    A, u, C = arrays["A"], arrays["u"], arrays.get("C")
    if A is None or u is None:
        raise InvalidInputError("Expected A and u to be given, received None.")
    (models, states, _), (_, sequences, steps, inputs) = A.shape, u.shape
    outputs = states if C is None else C.shape[-2]
    sizes: dict[str, Any] = dict(zip(_SIZES, (steps, states, inputs, outputs, sequences, models), strict=True))
    shapes = {
        "A": (models, states, states),
        "B": (models, states, inputs),
        "C": (models, outputs, states),
        "D": (models, outputs, inputs),
        "x0": (models, sequences, states),
        "u": (models, sequences, steps, inputs),
        "x": (models, sequences, steps, states),
        "y": (models, sequences, steps, outputs),
        "x_end": (models, sequences, states),
    }
    views = {}
    for key, array in arrays.items():
        if array is not None:
            expected = shapes[key.removesuffix("_bar")]
            is_shared = key == "u" and array.shape == (1, *expected[1:])
            if array.shape != expected and not is_shared:
                raise InvalidInputError(f"Expected {key} to be of shape {expected}, received shape {array.shape}.")
            views[key] = _view(array, is_vector=key in VECTORS)
    return Problem(**sizes, form=FORMS[form], **views)


def _view(array: Strided, is_vector: bool) -> View:
    model, *rest = array.strides
    if array.shape[0] == 1:
        model = 0
    if is_vector:
        rest = [rest[0], 0, rest[1]]
    sequence, row, column = rest if len(rest) == 3 else (0, *rest)
    return View(array.address, row, column, sequence, model)
