"""What the library does with stacks of square matrices (R, n, n): it judges their powers and orthogonalises them."""

import ctypes
import functools
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from schurfire.errors import InvalidInputError
from schurfire.namespaces import Array
from schurfire.native.library import require_library
from schurfire.native.problem import Strided, View
from schurfire.native.xla import target


@dataclass(frozen=True)
class PowerBound:
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


@dataclass(frozen=True)
class Orthogonalisation:
    """At most ``steps`` Newton-Schulz steps, until ``||I - Q^T Q||_F <= tolerance``, where it is at most ``reach``."""

    reach: float
    tolerance: float
    steps: int


def prove(A: Strided, dtype: str, bound: PowerBound, flags: int) -> None:
    """Writes for each matrix one byte, whether it is proven, to the address ``flags``."""
    numbers = (bound.centre, bound.scale, bound.lost, bound.doubt)
    names = ("centre", "scale", "lost", "doubt")
    fields = [("A", View), *_SIZES, *((name, _NUMBERS[dtype]) for name in names), ("squarings", ctypes.c_int32)]
    _call("prove", dtype, fields, (_view(A), *_sizes(A), *numbers, bound.squarings, flags))


def orthogonalise(Z: Strided, Q: Strided, dtype: str, task: Orthogonalisation, flags: int) -> None:
    """Writes the matrices Q, and for each one byte, whether Z was within reach, to the address ``flags``."""
    number = _NUMBERS[dtype]
    fields = [("Z", View), ("Q", View), *_SIZES, ("reach", number), ("tolerance", number), ("steps", ctypes.c_int32)]
    _call(
        "orthogonalise", dtype, fields, (_view(Z), _view(Q), *_sizes(Z), task.reach, task.tolerance, task.steps, flags)
    )


def prove_compiled(A: Array, bound: PowerBound) -> Array:
    """The flags (R,) for JAX matrices (R, n, n), as an operation of a compiled program."""
    import jax

    flags = jax.ShapeDtypeStruct(A.shape[:1], bool)
    return _compiled("prove", A, flags, [(0,)], vars(bound))


def orthogonalise_compiled(Z: Array, task: Orthogonalisation) -> tuple[Array, Array]:
    """Q (R, n, n) and the flags (R,) for JAX matrices Z (R, n, n), as an operation of a compiled program."""
    import jax

    results = (jax.ShapeDtypeStruct(Z.shape, Z.dtype), jax.ShapeDtypeStruct(Z.shape[:1], bool))
    return tuple(_compiled("orthogonalise", Z, results, [_layout(Z), (0,)], vars(task)))


_NUMBERS = {"float32": ctypes.c_float, "float64": ctypes.c_double}
_SIZES = (("n", ctypes.c_int64), ("models", ctypes.c_int64))


def _sizes(A: Strided) -> tuple[int, int]:
    return A.shape[-1], A.shape[0]


def _view(A: Strided) -> View:
    model, row, column = A.strides
    return View(A.address, row, column, 0, model)


def _call(name: str, dtype: str, fields: list, values: tuple) -> None:
    structure = _structure(name, tuple(fields))(*values)
    function, threads = _function(name, dtype)
    fault = function(ctypes.addressof(structure), threads)
    if fault is not None:
        raise InvalidInputError(f"Expected matrices that the library can take: {fault.decode()}.")


@functools.cache
def _structure(name: str, fields: tuple) -> type[ctypes.Structure]:
    """Made once: making a class takes longer than the library takes for a small matrix."""
    return type(name, (ctypes.Structure,), {"_fields_": (*fields, ("flags", ctypes.c_void_p))})


@functools.cache
def _function(name: str, dtype: str) -> tuple[Any, int]:
    """The function, and how many threads it may use: counting processors opens a file, 5 to 28 us each time."""
    function = getattr(require_library(), f"schurfire_{name}_{'f32' if dtype == 'float32' else 'f64'}")
    function.restype, function.argtypes = ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_int64)
    return function, os.cpu_count() or 1


def _compiled(name: str, A: Array, results: Any, output_layouts: list, attributes: dict[str, Any]) -> Any:
    import jax

    call = jax.ffi.ffi_call(
        target(name, np.dtype(A.dtype).name),
        results,
        input_layouts=[_layout(A)],
        output_layouts=output_layouts if isinstance(results, tuple) else output_layouts[0],
    )
    counts = ("squarings", "steps")
    typed = {key: np.int32(x) if key in counts else np.float64(x) for key, x in attributes.items()}
    return call(A, **typed, models_innermost=A.shape[0] > 1)


def _layout(A: Array) -> tuple[int, ...]:
    return (1, 2, 0) if A.shape[0] > 1 else (0, 1, 2)
