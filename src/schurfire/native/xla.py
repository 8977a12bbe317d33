"""The two computations as operations of a compiled JAX program, by XLA's foreign function interface.

With more than one model the arrays lie in memory with the models innermost, as the lanes of the kernel want them; the
logical shapes are the same, and XLA lays out what comes before and after accordingly instead of transposing.
"""

import functools
from typing import Any

import numpy as np

from schurfire.namespaces import Array
from schurfire.native.library import require_library
from schurfire.native.problem import FORMS, VECTORS

_RESULTS = ("y", "x_end", "x")
_OPERANDS = ("A", "B", "C", "D", "u", "x0")

Shapes = dict[str, tuple[int, ...]]


def respond(arrays: dict[str, Array | None], shapes: Shapes, form: str, wanted: tuple[str, ...]) -> tuple[Array, ...]:
    """Those of ``y``, ``x_end`` and the states ``x`` that are wanted, from A, B, C, D, u and x0."""
    results = {name: shapes[name] if name in wanted else None for name in _RESULTS}
    found = _call("respond", arrays, results, form)
    return tuple(found[name] for name in wanted)


def differentiate(
    arrays: dict[str, Array | None], shapes: Shapes, form: str, wanted: tuple[str, ...]
) -> dict[str, Array]:
    """The gradients of the operands that are wanted, from A, B, C, D, u, x, y_bar and x_end_bar."""
    order = ("A", "B", "C", "D", "u", "x", "y_bar", "x_end_bar")
    results = {f"{name}_bar": shapes[name] if name in wanted else None for name in _OPERANDS}
    found = _call("differentiate", {name: arrays[name] for name in order}, results, form)
    return {name: found[f"{name}_bar"] for name in wanted}


def _call(name: str, arrays: dict[str, Any], results: dict[str, tuple[int, ...] | None], form: str) -> dict[str, Array]:
    import jax
    import jax.numpy as jnp

    models_innermost, dtype = arrays["A"].shape[0] > 1, arrays["A"].dtype
    absent = jnp.zeros((0,), dtype)
    operands = {key: absent if array is None else array for key, array in arrays.items()}
    shapes = {key: (0,) if shape is None else shape for key, shape in results.items()}
    call = jax.ffi.ffi_call(
        target(name, np.dtype(dtype).name),
        [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes.values()],
        input_layouts=[_layout(key, array.ndim, models_innermost) for key, array in operands.items()],
        output_layouts=[_layout(key, len(shape), models_innermost) for key, shape in shapes.items()],
    )
    found = call(*operands.values(), form=np.int32(FORMS[form]), models_innermost=models_innermost)
    return dict(zip(shapes, found, strict=True))


def _layout(key: str, axes: int, models_innermost: bool) -> tuple[int, ...]:
    """The axes from the slowest to the fastest."""
    if axes == 1 or not models_innermost:
        return tuple(range(axes))
    if axes == 4:
        return (2, 3, 1, 0)
    return (2, 1, 0) if key in VECTORS else (1, 2, 0)


@functools.cache
def target(name: str, dtype: str) -> str:
    """The name under which XLA knows one of the library's computations."""
    import jax

    suffix = {"float32": "f32", "float64": "f64"}[dtype]
    handler = getattr(require_library(), f"schurfire_xla_{name}_{suffix}")
    target = f"schurfire_{name}_{suffix}"
    jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(handler), platform="cpu")
    return target
