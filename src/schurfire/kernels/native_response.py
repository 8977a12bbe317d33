"""The native recurrence under JAX's transformations, PyTorch's autograd, and on NumPy arrays.

The shapes are those of ``layouts.Operands``. The derivative rule is the library's adjoint; a gradient that nobody asks
for is not computed, and a transparent system (C None) needs no room for its states, which are its outputs.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from schurfire.kernels.layouts import Operands
from schurfire.kernels.mapped import mapped_axis_joined
from schurfire.namespaces import NUMPY, Array, dtype_name, is_jax, keras_namespace, namespace
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
    """The outputs ``y`` (R, S, N, p) and the last states ``x[N]`` (R, S, n)."""
    if namespace(operands.u) is NUMPY:
        return _numpy_response(operands, form)
    if is_jax(operands.u):
        return _jax_response(form)(*operands)
    return _torch_response()(form, *operands)


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
    shapes = _result_shapes(operands)
    y, x_end = (np.empty(shapes[name], operands.u.dtype) for name in ("y", "x_end"))
    arrays = {**operands._asdict(), "y": y, "x_end": x_end}
    problem.respond(y.dtype.name, form, **{name: problem.strided(array) for name, array in arrays.items()})
    return y, x_end


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
        return tuple(_summed_over_models(found, operands, "keepdims").get(name) for name in _NAMES)

    response.defvjp(forward_rule, backward_rule, symbolic_zeros=True)
    return response


@functools.cache
def _jax_gradients(form: str, wanted: "_Names") -> Callable:
    @mapped_axis_joined
    def gradients(operands: Operands, x: Array, y_bar: Array | None, x_end_bar: Array | None) -> dict[str, Array]:
        given = operands._replace(x0=None)._asdict() | {"x": x, "y_bar": y_bar, "x_end_bar": x_end_bar}
        return xla.differentiate(given, _gradient_shapes(operands), form, wanted)

    return gradients


def _summed_over_models(gradients: dict[str, Array], operands: Operands, keepdims: str) -> dict[str, Array]:
    """The gradient of a shared u is the sum over the models that share it."""
    if "u" not in gradients or operands.u.shape[0] == gradients["u"].shape[0]:
        return gradients
    return gradients | {"u": gradients["u"].sum(0, **{keepdims: True})}


class _Names(tuple[str, ...]):
    """Names that are known when a program is traced, among arrays that are not."""

    __slots__ = ()


@functools.cache
def _register_names() -> None:
    import jax

    jax.tree_util.register_static(_Names)


@functools.cache
def _torch_response() -> Callable:
    import torch  # pyright: ignore[reportMissingImports]

    def call(function: Callable, form: str, tensors: dict[str, Any]) -> None:
        views = {
            name: None if x is None else problem.Strided(x.data_ptr(), x.stride(), tuple(x.shape))
            for name, x in tensors.items()
        }
        function(dtype_name(tensors["u"]), form, **views)

    class NativeResponse(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, form: str, *given: Any) -> tuple[Any, Any]:
            operands = Operands(*given)
            wanted = ["y", "x_end"]
            if operands.C is not None and any(ctx.needs_input_grad):
                wanted.append("x")
            shapes = _result_shapes(operands)
            results = {name: operands.u.new_empty(shapes[name]) for name in wanted}
            call(problem.respond, form, {**operands._asdict(), **results})
            ctx.form = form
            ctx.save_for_backward(*operands, results.get("x", results["y"]))
            ctx.set_materialize_grads(False)
            return results["y"], results["x_end"]

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, y_bar: Any, x_end_bar: Any) -> tuple:
            *given, x = ctx.saved_tensors
            operands = Operands(*given)
            shapes = _gradient_shapes(operands)
            needed = zip(_NAMES, ctx.needs_input_grad[1:], strict=True)
            found = {name: x.new_empty(shapes[name]) for name, is_needed in needed if is_needed}
            arrays = operands._replace(x0=None)._asdict() | {"x": x, "y_bar": y_bar, "x_end_bar": x_end_bar}
            call(problem.differentiate, ctx.form, arrays | {f"{name}_bar": bar for name, bar in found.items()})
            found = _summed_over_models(found, operands, "keepdim")
            return (None, *(found.get(name) for name in _NAMES))

    return NativeResponse.apply
