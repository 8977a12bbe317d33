"""One source for every kernel: NumPy arrays run on NumPy, tensors run on ``keras.ops``.

A kernel asks ``namespace(A)`` for its functions and writes ``xp.matmul(A, A)``. A NumPy array is therefore
computed by NumPy in its own precision, at once and without a compiler, and Keras is not even imported; a tensor
(traced or not) of the active Keras backend is computed by that backend, inside ``jit`` as well.
"""

import functools
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from schurfire.backends import FUNCTIONS
from schurfire.errors import InvalidInputError

Array = Any  # a NumPy array or a tensor of the active Keras backend


class _NumpyNamespace:
    """NumPy under the names that ``keras.ops`` uses."""

    svd = staticmethod(np.linalg.svd)
    eigh = staticmethod(np.linalg.eigh)
    solve = staticmethod(np.linalg.solve)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def cast(x: Array, dtype: str) -> Array:
        return np.asarray(x).astype(dtype)

    @staticmethod
    def view(x: Array, dtype: str) -> Array:
        return np.asarray(x).view(dtype)

    @staticmethod
    def slice(x: Array, start: tuple, shape: tuple) -> Array:
        return x[tuple(slice(int(i), int(i) + size) for i, size in zip(start, shape, strict=True))]

    @staticmethod
    def slice_update(x: Array, start: tuple, values: Array) -> Array:
        x = x.copy()
        x[tuple(slice(int(i), int(i) + size) for i, size in zip(start, values.shape, strict=True))] = values
        return x

    @staticmethod
    def stop_gradient(x: Array) -> Array:
        return x

    @staticmethod
    def settle(values: Any) -> Any:
        return values

    @staticmethod
    def cond(pred: Array, true_fn: Callable, false_fn: Callable) -> Any:
        return true_fn() if pred else false_fn()

    @staticmethod
    def while_loop(cond: Callable, body: Callable, loop_vars: tuple) -> tuple:
        while cond(*loop_vars):
            loop_vars = body(*loop_vars)
        return loop_vars

    @staticmethod
    def fori_loop(lower: int, upper: int, body_fun: Callable, init_val: Any) -> Any:
        for i in range(lower, upper):
            init_val = body_fun(i, init_val)
        return init_val


class _KerasNamespace:
    """``keras.ops``, and in place of some of its functions those of ``backends``, which say why."""

    def __init__(self) -> None:
        _choose_keras_backend()
        import keras

        self._ops = keras.ops
        self.backend: str = keras.backend.backend()
        self.standardize_dtype = functools.cache(keras.backend.standardize_dtype)
        for name, function in FUNCTIONS[self.backend]().items():
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ops, name)

    @staticmethod
    def settle(values: Any) -> Any:
        """The same values, computed once: every consumer sees the same bits.

        Only XLA needs it, see ``backends.jax_functions``; the other backends compute eagerly, or keep every result.
        """
        return values


NUMPY = _NumpyNamespace()
_OF_NUMPY = (np.ndarray, np.generic, float, int)


@functools.cache
def keras_namespace() -> _KerasNamespace:
    """The namespace of the active Keras backend; imports Keras on first use."""
    return _KerasNamespace()


def namespace(*arrays: Array) -> Any:
    """The functions to compute with: NumPy's for NumPy arrays, those of ``keras.ops`` for tensors."""
    for x in arrays:
        if not isinstance(x, _OF_NUMPY):
            return keras_namespace()
    return NUMPY


def kernel(function: Callable) -> Callable:
    """Marks a branch-free kernel: NumPy's floating-point warnings are silent inside it.

    Both sides of every ``where`` are computed, so a division by zero on the side that is not taken is no event.
    """

    @functools.wraps(function)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return quiet


def apply(function: Callable, x: Array, *options: Any) -> Any:
    """``function(x, *options)``; for a JAX tensor outside of ``jit`` compiled once per shape and options.

    Called eagerly, JAX would compile every loop and conditional inside the function at each call.
    """
    if is_jax(x) and not is_traced(x):
        return _jitted(function, *options)(x)
    return function(x, *options)


@functools.cache
def _jitted(function: Callable, *options: Any) -> Callable:
    import jax

    return jax.jit(lambda x: function(x, *options))


def batched(function: Callable, *options: Any) -> Callable:
    """``function(*arrays, *options)``, taking the axis that JAX's ``vmap`` maps over as one more leading axis.

    The function takes arrays with leading axes as it is. Mapped the ordinary way its conditionals would become selects
    that compute both branches, and ``settle`` would be undone. No derivative rule: stop the gradients of the arrays.
    """

    def call(*arrays: Array) -> Any:
        if any(is_jax(x) for x in arrays):
            return _mappable(function, *options)(*arrays)
        return function(*arrays, *options)

    return call


@functools.cache
def _mappable(function: Callable, *options: Any) -> Callable:
    import jax
    import jax.numpy as jnp

    mappable = jax.custom_batching.custom_vmap(jax.jit(lambda *arrays: function(*arrays, *options)))

    @mappable.def_vmap
    def rule(axis_size: int, is_mapped: list[bool], *arrays: Array) -> tuple[Any, Any]:
        stacks = (
            x if mapped else jnp.broadcast_to(x, (axis_size, *x.shape))
            for x, mapped in zip(arrays, is_mapped, strict=True)
        )
        results = mappable(*stacks)
        return results, jax.tree.map(lambda _: True, results)

    return mappable


def with_gradient_of(source: Array, value: Array, where: Array) -> Array:
    """``value``, bit for bit, with the derivative of ``source`` where ``where`` holds and zero elsewhere.

    Args:
        source: differentiable; equal to ``value`` where ``where`` holds.
        value: what is returned; its own derivative is not used.
        where: boolean.
    """
    xp = namespace(source)
    if is_jax(source):
        return _jax_graft()(source, value, where)
    if xp is NUMPY or xp.backend == "torch":  # they compute at once: where nothing was replaced, nothing is done
        return xp.cond(xp.all(where), lambda: source, lambda: xp.where(where, source, xp.stop_gradient(value)))
    return xp.where(where, source, xp.stop_gradient(value))


@functools.cache
def _jax_graft() -> Callable:
    """As a ``where``, XLA could return a source that it has computed anew, with other roundings than the value's."""
    import jax
    import jax.numpy as jnp

    @jax.custom_jvp
    def graft(source: Array, value: Array, where: Array) -> Array:  # noqa: ARG001
        return value

    @graft.defjvp
    def tangent(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
        source, value, where = primals
        return graft(source, value, where), jnp.where(where, tangents[0], 0)

    return graft


def is_jax(x: Array) -> bool:
    """Whether the array is a tensor of JAX, traced or not."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.Array)


def dtype_name(x: Array) -> str:
    """``"float32"`` or ``"float64"``, whichever library made the array."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype.name
    return keras_namespace().standardize_dtype(x.dtype)


def finfo(x: Array) -> np.finfo:
    """Machine constants of the array's precision."""
    return np.finfo(dtype_name(x))


def is_traced(x: Array) -> bool:
    """Whether the array has no values yet, because a function is being compiled around it."""
    if isinstance(x, np.ndarray):
        return False
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(x, jax.core.Tracer):
        return True
    tensorflow = sys.modules.get("tensorflow")
    return tensorflow is not None and tensorflow.is_tensor(x) and not hasattr(x, "numpy")


def _choose_keras_backend() -> None:
    """Before the first import of Keras: an installed backend, JAX first, unless the user has chosen one.

    Keras itself writes a ``keras.json`` that names TensorFlow at its first import, installed or not; so the file
    counts as a choice only where its backend is installed.
    """
    if "keras" in sys.modules or "KERAS_BACKEND" in os.environ:
        return
    installed = [name for name in ("jax", "torch", "tensorflow") if importlib.util.find_spec(name) is not None]
    if not installed:
        raise InvalidInputError("Expected JAX, PyTorch or TensorFlow to be installed. Run: pip install jax")
    if _backend_in_keras_json() not in installed:
        os.environ["KERAS_BACKEND"] = installed[0]


def _backend_in_keras_json() -> str | None:
    folder = Path(os.environ.get("KERAS_HOME", Path.home() / ".keras"))
    try:
        return json.loads((folder / "keras.json").read_text()).get("backend")
    except (OSError, ValueError, AttributeError):
        return None
