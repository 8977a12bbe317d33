"""The native recurrence under JAX's transformations, PyTorch's autograd, and on NumPy arrays.

The library computes R models on S sequences each: A (R, n, n), B (R, n, m), C (R, o, n), D (R, o, m), u (R, S, N, m) or
(1, S, N, m) where the models share it, x0 (R, S, n). ``jax.vmap`` becomes more models (or, where it maps the data
alone, more sequences) of one call. The derivative rule is the library's adjoint; what is not differentiated is not
computed.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from schurfire.namespaces import NUMPY, Array, dtype_name, is_jax, keras_namespace, namespace
from schurfire.native import library, problem, xla

_NAMES = ("A", "B", "C", "D", "u", "x0")
_PARAMETERS = ("A", "B", "C", "D")


class Operands(NamedTuple):
    """The arguments in canonical axes; absent ones are None."""

    A: Array
    B: Array | None
    C: Array | None
    D: Array | None
    u: Array
    x0: Array | None


def is_available(array: Array) -> bool:
    """Whether the native recurrence can take this kind of array, where it is."""
    if not library.is_available() or dtype_name(array) not in ("float32", "float64"):
        return False
    if isinstance(array, np.ndarray):
        return True
    if is_jax(array):
        import jax

        return jax.default_backend() == "cpu"
    return keras_namespace().backend == "torch" and array.device.type == "cpu"


def native_response(operands: Operands, form: str) -> tuple[Array, Array]:
    """``y`` (R, S, N, o) and ``x_end`` (R, S, n)."""
    if namespace(operands.u) is NUMPY:
        return _numpy_response(operands, form)
    if is_jax(operands.u):
        return _jax_response(form)(*operands)
    return _torch_response()(form, *operands)


def _numpy_response(operands: Operands, form: str) -> tuple[np.ndarray, np.ndarray]:
    A, C, u = operands.A, operands.C, operands.u
    R, (S, N) = A.shape[0], u.shape[1:3]
    y = np.empty((R, S, N, A.shape[-1] if C is None else C.shape[-2]), u.dtype)
    x_end = np.empty((R, S, A.shape[-1]), u.dtype)
    arrays = {**operands._asdict(), "y": y, "x_end": x_end}
    problem.respond(u.dtype.name, form, **{name: problem.strided(array) for name, array in arrays.items()})
    return y, x_end


@functools.cache
def _jax_response(form: str) -> Callable:
    import jax
    from jax.custom_derivatives import SymbolicZero

    plain, keeping = _jax_respond(form, False), _jax_respond(form, True)

    @jax.custom_vjp
    def response(*operands: Array | None) -> tuple[Array, Array]:
        y, x_end, _ = plain(*operands)
        return y, x_end

    def forward(*operands: Any) -> tuple[tuple[Array, Array], tuple]:
        wanted = tuple(name for name, x in zip(_NAMES, operands, strict=True) if x is not None and x.perturbed)
        values = Operands(*(None if x is None else x.value for x in operands))
        transparent = values.C is None
        y, x_end, x = (plain if transparent else keeping)(*values)
        return (y, x_end), (values, y if transparent else x, _Static(wanted))

    def backward(residuals: tuple, bars: tuple) -> tuple:
        values, x, wanted = residuals
        y_bar, x_end_bar = (None if isinstance(bar, SymbolicZero) else bar for bar in bars)
        given = values._replace(x0=None)
        gradients = _jax_differentiate(form, wanted.value)(*given[:5], x, y_bar, x_end_bar)
        found = dict(zip(wanted.value, gradients, strict=True))
        if "u" in found and values.u.shape[0] == 1:
            found["u"] = found["u"].sum(0, keepdims=True)
        return tuple(found.get(name) for name in _NAMES)

    response.defvjp(forward, backward, symbolic_zeros=True)
    return response


class _Static:
    """A value that is known when a program is traced, among those that are not."""

    def __init__(self, value: tuple[str, ...]) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and self.value == other.value


@functools.cache
def _register_static() -> None:
    import jax

    jax.tree_util.register_static(_Static)


@functools.cache
def _jax_respond(form: str, keep_states: bool) -> Callable:
    """A mapped axis becomes more models; where it maps the data alone, more sequences."""
    import jax.numpy as jnp
    from jax.custom_batching import custom_vmap

    _register_static()

    @custom_vmap
    def respond(*operands: Array | None) -> tuple[Array, Array, Array | None]:
        return xla.respond(dict(zip(_NAMES, operands, strict=True)), form, keep_states)

    @respond.def_vmap
    def mapped(size: int, is_mapped: tuple, *operands: Array | None) -> tuple:
        if any(is_mapped[:4]):
            return _split_models(size, respond(*_as_models(size, is_mapped, operands, _NAMES)))
        moved = [
            jnp.moveaxis(x, 0, 1).reshape(x.shape[1], -1, *x.shape[3:]) if is_one else x
            for x, is_one in zip(operands[4:], is_mapped[4:], strict=True)
        ]
        if not is_mapped[4]:
            moved[0] = jnp.tile(operands[4], (1, size, 1, 1))
        if not is_mapped[5] and moved[1] is not None:
            moved[1] = jnp.tile(operands[5], (1, size, 1))
        results = respond(*operands[:4], *moved)
        apart = [
            None if x is None else jnp.moveaxis(x.reshape(x.shape[0], size, -1, *x.shape[2:]), 1, 0) for x in results
        ]
        return tuple(apart), tuple(None if x is None else True for x in apart)

    return respond


@functools.cache
def _jax_differentiate(form: str, wanted: tuple[str, ...]) -> Callable:
    """A mapped axis becomes more models: each has gradients of its own."""
    from jax.custom_batching import custom_vmap

    names = (*_PARAMETERS, "u", "x", "y_bar", "x_end_bar")

    @custom_vmap
    def differentiate(*operands: Array | None) -> tuple[Array, ...]:
        gradients = xla.differentiate(dict(zip(names, operands, strict=True)), wanted, form)
        return tuple(gradients[name] for name in wanted)

    @differentiate.def_vmap
    def mapped(size: int, is_mapped: tuple, *operands: Array | None) -> tuple:
        return _split_models(size, differentiate(*_as_models(size, is_mapped, operands, names)))

    return differentiate


def _as_models(size: int, is_mapped: tuple, operands: tuple, names: tuple[str, ...]) -> list[Array | None]:
    """Operands with a mapped leading axis, that axis joined with the models; u stays shared where it is."""
    import jax.numpy as jnp

    models = next(x.shape[1] if is_one else x.shape[0] for x, is_one in zip(operands, is_mapped, strict=True))
    joined: list[Array | None] = []
    for name, x, is_one in zip(names, operands, is_mapped, strict=True):
        if x is None or (name == "u" and not is_one and x.shape[0] == 1):
            joined.append(x)
            continue
        own = x if is_one else jnp.broadcast_to(x, (size, *x.shape))
        own = jnp.broadcast_to(own, (size, models, *own.shape[2:]))
        joined.append(own.reshape(size * models, *own.shape[2:]))
    return joined


def _split_models(size: int, results: tuple) -> tuple[tuple, tuple]:
    apart = tuple(None if x is None else x.reshape(size, -1, *x.shape[1:]) for x in results)
    return apart, tuple(None if x is None else True for x in apart)


@functools.cache
def _torch_response() -> Callable:
    import torch  # pyright: ignore[reportMissingImports]

    def strided(tensor: Any) -> problem.Strided | None:
        return None if tensor is None else problem.Strided(tensor.data_ptr(), tensor.stride(), tuple(tensor.shape))

    def call(function: Callable, form: str, tensors: dict[str, Any]) -> None:
        views = {name: strided(tensor) for name, tensor in tensors.items()}
        function(str(tensors["u"].dtype).removeprefix("torch."), form, **views)

    class NativeResponse(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, form: str, *operands: Any) -> tuple[Any, Any]:
            A, C, u = operands[0], operands[2], operands[4]
            R, (S, N), n = A.shape[0], u.shape[1:3], A.shape[-1]
            y = u.new_empty((R, S, N, n if C is None else C.shape[-2]))
            x_end = u.new_empty((R, S, n))
            x = u.new_empty((R, S, N, n)) if C is not None and any(ctx.needs_input_grad) else None
            call(problem.respond, form, {**dict(zip(_NAMES, operands, strict=True)), "y": y, "x_end": x_end, "x": x})
            ctx.form = form
            ctx.save_for_backward(*operands[:5], y if C is None else x)
            ctx.set_materialize_grads(False)
            return y, x_end

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, y_bar: Any, x_end_bar: Any) -> tuple:
            *operands, x = ctx.saved_tensors
            A, u = operands[0], operands[4]
            given = dict(zip((*_PARAMETERS, "u"), operands, strict=True)) | {"x": x, "y_bar": y_bar, "x_end_bar": x_end_bar}
            shapes = {name: getattr(given[name], "shape", None) for name in _PARAMETERS}
            shapes |= {"u": (A.shape[0], *u.shape[1:]), "x0": (A.shape[0], u.shape[1], A.shape[-1])}
            needed = zip(_NAMES, ctx.needs_input_grad[1:], strict=True)
            found = {name: u.new_empty(shapes[name]) for name, is_needed in needed if is_needed}
            call(problem.differentiate, ctx.form, given | {f"{name}_bar": bar for name, bar in found.items()})
            if "u" in found and u.shape[0] == 1:
                found["u"] = found["u"].sum(0, keepdim=True)
            return (None, *(found.get(name) for name in _NAMES))

    return NativeResponse.apply


def canonical(operands: Operands) -> tuple[Operands, tuple[int, ...]]:
    """Operands with any leading axes in the axes of the library, and the leading axes of the result.

    The axes that the parameters vary along become models, those behind them sequences. Where the parameters vary
    along a later axis but not along an earlier one, every combination counts as a model of its own.
    """
    xp = namespace(operands.u)
    parameters = [x for x in operands[:4] if x is not None]
    of_parameters = np.broadcast_shapes(*(tuple(x.shape[:-2]) for x in parameters))
    of_data = tuple(operands.u.shape[:-2])
    if operands.x0 is not None:
        of_data = np.broadcast_shapes(of_data, tuple(operands.x0.shape[:-1]))
    leading = np.broadcast_shapes(of_parameters, of_data)
    varying = [size > 1 for size in (1,) * (len(leading) - len(of_parameters)) + of_parameters]
    split = len(varying) - varying[::-1].index(True) if any(varying) else 0
    if not all(varying[i] or leading[i] == 1 for i in range(split)):
        split = len(leading)
    models, sequences = leading[:split], leading[split:]

    def of_model(x: Array | None) -> Array | None:
        if x is None:
            return None
        full = (1,) * (len(leading) - (len(x.shape) - 2)) + tuple(x.shape)
        full = (*full[:split], *full[len(leading) :])
        x = xp.broadcast_to(xp.reshape(x, full), (*models, *full[split:]))
        return xp.reshape(x, (math.prod(models), *full[split:]))

    def of_sequence(x: Array | None, axes: int, may_be_shared: bool) -> Array | None:
        if x is None:
            return None
        full = (1,) * (len(leading) - (len(x.shape) - axes)) + tuple(x.shape)
        own = full[len(leading) :]
        is_shared = may_be_shared and all(size == 1 for size in full[:split])
        to_models = (1,) * split if is_shared else models
        x = xp.broadcast_to(xp.reshape(x, full), (*to_models, *sequences, *own))
        return xp.reshape(x, (math.prod(to_models), math.prod(sequences), *own))

    canonical_operands = Operands(
        *(of_model(x) for x in operands[:4]), of_sequence(operands.u, 2, True), of_sequence(operands.x0, 1, False)
    )
    return canonical_operands, leading
