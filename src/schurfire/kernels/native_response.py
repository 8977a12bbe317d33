"""The native recurrence under JAX's transformations and on NumPy arrays; ``native_tensors`` has it for PyTorch.

The library takes the shapes of ``layouts.Operands``. The derivative rule is the library's adjoint; a gradient that
nobody asks for is not computed, and a transparent system (C None) needs no room for its states, which are its outputs.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from schurfire.kernels.layouts import Operands
from schurfire.kernels.leading import axes_restored, joined_axes
from schurfire.kernels.mapped import mapped_axis_joined
from schurfire.kernels.native_tensors import torch_response
from schurfire.namespaces import NUMPY, Array, is_jax, keras_namespace, namespace
from schurfire.native import library, problem, xla

_NAMES = Operands._fields
_MATRICES = _NAMES[:4]


def is_available(array: Array) -> bool:
    """Whether the native recurrence can take this kind of array, where it is."""
    if not library.is_available():
        return False
    if isinstance(array, np.ndarray):
        return True
    if is_jax(array):
        import jax

        return jax.default_backend() == "cpu"
    return keras_namespace().backend == "torch" and array.device.type == "cpu"


def native_response(operands: Operands, form: str) -> tuple[Array, Array]:
    """The outputs ``y`` (..., N, p) and last states ``x[N]`` (..., n) of operands whose leading axes broadcast."""
    if namespace(operands.u) is NUMPY:
        return _numpy_response(operands, form)
    if is_jax(operands.u):
        full, leading = joined_axes(operands)
        y, x_end = _jax_response(form)(*full)
        return axes_restored(y, leading, 2), axes_restored(x_end, leading, 1)
    return torch_response(operands, form)


def _result_shapes(operands: Operands) -> dict[str, tuple[int, ...]]:
    A, C, u = operands.A, operands.C, operands.u
    (R, n), (S, N) = A.shape[:2], u.shape[1:3]
    return {"y": (R, S, N, n if C is None else C.shape[-2]), "x_end": (R, S, n), "x": (R, S, N, n)}


def _gradient_shapes(operands: Operands) -> dict[str, tuple[int, ...]]:
    """Those of the operands; an input that the models share has a gradient for each of them."""
    R = operands.A.shape[0]
    shapes = {name: tuple(x.shape) for name, x in operands._asdict().items() if x is not None}
    return shapes | {"u": (R, *operands.u.shape[1:])}


def _numpy_response(operands: Operands, form: str) -> tuple[np.ndarray, np.ndarray]:
    full, leading = joined_axes(operands)
    shapes = _result_shapes(full)
    y, x_end = (np.empty(shapes[name], full.u.dtype) for name in ("y", "x_end"))
    arrays = {**full._asdict(), "y": y, "x_end": x_end}
    problem.respond(y.dtype.name, form, **{name: problem.strided(array) for name, array in arrays.items()})
    return axes_restored(y, leading, 2), axes_restored(x_end, leading, 1)


@functools.cache
def _jax_response(form: str) -> Callable:
    import jax
    from jax.custom_derivatives import SymbolicZero

    _register_names()

    @mapped_axis_joined
    def plain(operands: Operands) -> tuple[Array, Array]:
        return xla.respond(operands._asdict(), _result_shapes(operands), form, ("y", "x_end"))

    @mapped_axis_joined
    def keeping_states(operands: Operands) -> tuple[Array, Array, Array]:
        return xla.respond(operands._asdict(), _result_shapes(operands), form, ("y", "x_end", "x"))

    @jax.custom_vjp
    def response(*operands: Array | None) -> tuple[Array, Array]:
        return plain(Operands(*operands))

    def forward_rule(*operands: Any) -> tuple:
        wanted = tuple(name for name, x in zip(_NAMES, operands, strict=True) if x is not None and x.perturbed)
        values = Operands(*(None if x is None else x.value for x in operands))
        if values.C is None:
            y, x_end = plain(values)
            x = y
        else:
            y, x_end, x = keeping_states(values)
        return (y, x_end), (values, x, _Names(wanted))

    def backward_rule(kept: tuple, bars: tuple) -> tuple:
        operands, x, wanted = kept
        y_bar, x_end_bar = (None if isinstance(bar, SymbolicZero) else bar for bar in bars)
        found = _jax_gradients(form, wanted)(operands, x, y_bar, x_end_bar)
        return tuple(_summed_over_models(found, operands).get(name) for name in _NAMES)

    response.defvjp(forward_rule, backward_rule, symbolic_zeros=True)
    return response


@functools.cache
def _jax_gradients(form: str, wanted: "_Names") -> Callable:
    @mapped_axis_joined
    def gradients(operands: Operands, x: Array, y_bar: Array | None, x_end_bar: Array | None) -> dict[str, Array]:
        given = operands._replace(x0=None)._asdict() | {"x": x, "y_bar": y_bar, "x_end_bar": x_end_bar}
        return xla.differentiate(given, _gradient_shapes(operands), form, wanted)

    return gradients


def _summed_over_models(gradients: dict[str, Array], operands: Operands) -> dict[str, Array]:
    """The gradient of a shared u is the sum over the models that share it."""
    if "u" not in gradients or operands.u.shape[0] == gradients["u"].shape[0]:
        return gradients
    return gradients | {"u": gradients["u"].sum(0, keepdims=True)}


class _Names(tuple[str, ...]):
    """Names that are known when a program is traced, among arrays that are not."""

    __slots__ = ()


@functools.cache
def _register_names() -> None:
    import jax

    jax.tree_util.register_static(_Names)
