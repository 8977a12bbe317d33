"""The two computations as operations of a compiled JAX program, by XLA's foreign function interface.

With more than one model the arrays lie in memory with the models innermost, as the lanes of the kernel want them; the
logical shapes are the same, and XLA lays out what comes before and after accordingly instead of transposing.
"""

import functools
from typing import Any

import numpy as np

from schurfire.namespaces import Array
from schurfire.native.library import require_library
from schurfire.native.problem import FORMS


def respond(arrays: dict[str, Any], form: str, keep_states: bool) -> tuple[Array, Array, Array | None]:
    """``y``, ``x_end`` and, if they are to be kept, the states ``x`` from A, B, C, D, u and x0."""
    A, C, u = arrays["A"], arrays["C"], arrays["u"]
    R, (S, N) = A.shape[0], u.shape[1:3]
    n, o = A.shape[-1], A.shape[-1] if C is None else C.shape[-2]
    results = {"y": (R, S, N, o), "x_end": (R, S, n), "x": (R, S, N, n) if keep_states else None}
    y, x_end, x = _call("respond", arrays, results, form, R, A.dtype)
    return y, x_end, x if keep_states else None


def differentiate(arrays: dict[str, Any], wanted: tuple[str, ...], form: str) -> dict[str, Array]:
    """The gradients that are wanted, by the names of the arguments, from A, B, C, D, u, x, y_bar and x_end_bar."""
    A, u = arrays["A"], arrays["u"]
    R, S, n = A.shape[0], u.shape[1], A.shape[-1]
    shapes: dict[str, Any] = {name: getattr(arrays[name], "shape", None) for name in ("A", "B", "C", "D")}
    shapes |= {"u": (R, *u.shape[1:]), "x0": (R, S, n)}
    results = {f"{name}_bar": shapes[name] if name in wanted else None for name in ("A", "B", "C", "D", "u", "x0")}
    values = _call("differentiate", arrays, results, form, R, A.dtype)
    return {name: value for name, value in zip(shapes, values, strict=True) if name in wanted}


def _call(name: str, arrays: dict[str, Any], results: dict[str, Any], form: str, models: int, dtype: Any) -> list[Array]:
    import jax
    import jax.numpy as jnp

    innermost = models > 1
    absent = jnp.zeros((0,), dtype)
    operands = [absent if array is None else array for array in arrays.values()]
    shapes = [(0,) if shape is None else shape for shape in results.values()]
    call = jax.ffi.ffi_call(
        _target(name, np.dtype(dtype).name),
        [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes],
        input_layouts=[_layout(key, array.ndim, innermost) for key, array in zip(arrays, operands, strict=True)],
        output_layouts=[_layout(key, len(shape), innermost) for key, shape in zip(results, shapes, strict=True)],
    )
    return call(*operands, form=np.int32(FORMS[form]), models_innermost=innermost)


def _layout(key: str, axes: int, models_innermost: bool) -> tuple[int, ...]:
    """The axes from the slowest to the fastest."""
    if axes == 1 or not models_innermost:
        return tuple(range(axes))
    if axes == 4:
        return (2, 3, 1, 0)
    return (2, 1, 0) if key.removesuffix("_bar") in ("x0", "x_end") else (1, 2, 0)


@functools.cache
def _target(name: str, dtype: str) -> str:
    import jax

    suffix = {"float32": "f32", "float64": "f64"}[dtype]
    handler = getattr(require_library(), f"schurfire_xla_{name}_{suffix}")
    target = f"schurfire_{name}_{suffix}"
    jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(handler), platform="cpu")
    return target
