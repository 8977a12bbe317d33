"""Which matrices their powers prove to have all eigenvalues in a disc, by the library; see ``kernels/guard.py``."""

import ctypes
import os
from dataclasses import dataclass

import numpy as np

from schurfire.errors import InvalidInputError
from schurfire.namespaces import Array
from schurfire.native.library import require_library
from schurfire.native.problem import Strided, View
from schurfire.native.xla import target


@dataclass(frozen=True)
class Question:
    """Whether some ``||B^(2^k)|| + doubt err < 1``, ``k <= squarings``, with ``B = (A - centre I) scale``.

    Attributes:
        centre: a number of the matrices' precision.
        scale: about ``1 / radius``; rounded to the precision, which is accounted for.
        lost: what flushing entries of B to zero can cost its norm.
        doubt: how often the bound ``err`` of the rounding errors must fit.
        squarings: how many powers are tried.
    """

    centre: float
    scale: float
    lost: float
    doubt: float
    squarings: int


class _Powers(ctypes.Structure):
    _fields_ = (
        ("A", View),
        ("n", ctypes.c_int64),
        ("models", ctypes.c_int64),
        *((name, ctypes.c_float) for name in ("centre", "scale", "lost", "doubt")),
        ("squarings", ctypes.c_int32),
        ("proven", ctypes.c_void_p),
    )


class _PowersOfDoubles(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_double if kind is ctypes.c_float else kind) for name, kind in _Powers._fields_)


def prove(A: Strided, dtype: str, question: Question, flags: int) -> None:
    """Writes one byte for each of the matrices (R, n, n) to the address ``flags``."""
    suffix, kind = {"float32": ("f32", _Powers), "float64": ("f64", _PowersOfDoubles)}[dtype]
    model, row, column = A.strides
    view = View(A.address, row, column, 0, model)
    powers = kind(view, A.shape[-1], A.shape[0], *_numbers(question), flags)
    function = getattr(require_library(), f"schurfire_prove_{suffix}")
    function.restype, function.argtypes = ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_int64)
    fault = function(ctypes.addressof(powers), os.cpu_count() or 1)
    if fault is not None:
        raise InvalidInputError(f"Expected matrices that the native bound can take: {fault.decode()}.")


def prove_compiled(A: Array, question: Question) -> Array:
    """The flags (R,) for JAX matrices (R, n, n), as an operation of a compiled program."""
    import jax

    models_innermost = A.shape[0] > 1
    call = jax.ffi.ffi_call(
        target("prove", np.dtype(A.dtype).name),
        jax.ShapeDtypeStruct(A.shape[:1], bool),
        input_layouts=[(1, 2, 0) if models_innermost else (0, 1, 2)],
    )
    centre, scale, lost, doubt, squarings = _numbers(question)
    return call(
        A,
        centre=np.float64(centre),
        scale=np.float64(scale),
        lost=np.float64(lost),
        doubt=np.float64(doubt),
        squarings=np.int32(squarings),
        models_innermost=models_innermost,
    )


def _numbers(question: Question) -> tuple[float, float, float, float, int]:
    return question.centre, question.scale, question.lost, question.doubt, question.squarings
