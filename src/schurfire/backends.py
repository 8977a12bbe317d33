"""Functions that the kernels take from the backend itself, under the names and with the meaning that ``keras.ops`` has.

- Precision: on GPUs JAX multiplies float32 matrices in TF32 unless told otherwise, and on PyTorch and TensorFlow Keras
  casts the float64 operands of some functions, and Python numbers beside them, to float32. Both are too coarse for
  rounding-error bounds.
- Time: ``keras.ops`` searches every argument for symbolic tensors, which takes 3 to 15 us. That is more than PyTorch
  takes to compute with the small matrices of a model.
"""

import functools
from collections.abc import Callable
from typing import Any

Array = Any  # a tensor of the backend


def jax_functions() -> dict[str, Callable]:
    """For JAX."""
    import jax
    import jax.numpy as jnp

    def settle(values: Any) -> Any:
        # XLA computes an element-wise result again for each of its consumers, once with fused multiply-add and once
        # without, so that a number that was checked need not be the number that is returned. (Its optimization
        # barrier is gone before it fuses.) The operands of a conditional are computed once and kept; its predicate,
        # whether the first value is a number, is known to nobody before. The other branch multiplies by a 1 that is
        # known to nobody either, so both return the values. ``vmap`` turns the conditional into a select and so
        # undoes it: the kernels take leading axes themselves.
        first = jnp.ravel(jax.tree.leaves(values)[0])[0]
        is_number = first == first  # noqa: PLR0124 - NaN differs from itself
        times_one = functools.partial(jax.tree.map, lambda x: x * jnp.where(is_number, 2, 1).astype(x.dtype))
        return jax.lax.cond(is_number, lambda x: x, times_one, values)

    def matmul(x: Array, y: Array) -> Array:
        # XLA's CPU library multiplies the small matrices of a stack one by one, at 0.4 us each for n = 5; as one fused
        # sum of products 50 of them take 2 us. From n = 10 on the library is as fast.
        if _is_stack_of_small(x, y) and jax.default_backend() == "cpu":
            return jnp.sum(x[..., :, :, None] * y[..., None, :, :], axis=-2)
        return jnp.matmul(x, y, precision="highest")

    return {"matmul": matmul, "settle": settle}


def _is_stack_of_small(x: Array, y: Array) -> bool:
    return x.ndim > 2 and y.ndim > 2 and x.shape[-2:] == y.shape[-2:] and x.shape[-2] == x.shape[-1] <= 8


def torch_functions() -> dict[str, Callable]:
    """For PyTorch."""
    import torch  # pyright: ignore[reportMissingImports]

    def both(function: Callable) -> Callable:
        def of_tensors(x: Array, y: Array) -> Array:
            tensor = x if isinstance(x, torch.Tensor) else y
            return function(*(torch.as_tensor(z, dtype=tensor.dtype, device=tensor.device) for z in (x, y)))

        return of_tensors

    def where(condition: Array, x: Array, y: Array) -> Array:
        return both(functools.partial(torch.where, condition))(x, y)

    def matmul(x: Array, y: Array) -> Array:
        if x.is_cuda and x.dtype == torch.float32 and torch.get_float32_matmul_precision() != "highest":
            return torch.matmul(x.double(), y.double()).float()  # the user allows TF32, our bounds do not
        return torch.matmul(x, y)

    return {
        "matmul": matmul,
        "where": where,
        "hypot": torch.hypot,
        "maximum": both(torch.maximum),
        "minimum": both(torch.minimum),
        "convert_to_tensor": _torch_conversion(),
        **{name: _where_tensors(name, function) for name, function in _torch_shortcuts().items()},
    }


def _torch_conversion() -> Callable:
    import keras
    import torch  # pyright: ignore[reportMissingImports]

    made_here: Any = keras.ops.zeros(())
    home_is_cpu = made_here.device.type == "cpu"

    def convert_to_tensor(x: Any, dtype: str | None = None) -> Array:
        value = x.value if isinstance(x, keras.Variable) else x
        if home_is_cpu and isinstance(value, torch.Tensor) and value.is_cpu:
            return value if dtype is None else value.to(getattr(torch, dtype))
        return keras.ops.convert_to_tensor(x, dtype=dtype)

    return convert_to_tensor


def _where_tensors(name: str, function: Callable) -> Callable:
    """The function for tensors and sequences of tensors, that of ``keras.ops`` for anything else, symbolic or not."""
    import keras
    import torch  # pyright: ignore[reportMissingImports]

    otherwise = getattr(keras.ops, name)

    def of_tensors(x: Any, *args: Any, **options: Any) -> Any:
        is_stack = isinstance(x, (list, tuple)) and all(isinstance(z, torch.Tensor) for z in x)
        return (function if is_stack or isinstance(x, torch.Tensor) else otherwise)(x, *args, **options)

    return of_tensors


def _torch_shortcuts() -> dict[str, Callable]:
    """What ``keras.ops`` ends in."""
    import torch  # pyright: ignore[reportMissingImports]

    def like(make: Callable) -> Callable:
        return lambda x, dtype=None: make(x, dtype=None if dtype is None else getattr(torch, dtype))

    def reduction(function: Callable) -> Callable:
        def along(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
            return function(x) if axis is None else function(x, dim=axis, keepdim=keepdims)

        return along

    def diagonal(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        return torch.diagonal(x, offset=offset, dim1=axis1, dim2=axis2)

    return {
        "abs": torch.abs,
        "all": reduction(torch.all),
        "any": reduction(torch.any),
        "broadcast_to": torch.broadcast_to,
        "concatenate": lambda xs, axis=0: torch.cat(xs, dim=axis),
        "cond": lambda pred, true_fn, false_fn: true_fn() if pred.is_meta or pred else false_fn(),
        "diagonal": diagonal,
        "isfinite": torch.isfinite,
        "logical_and": torch.logical_and,
        "logical_not": torch.logical_not,
        "logical_or": torch.logical_or,
        "moveaxis": torch.moveaxis,
        "ones_like": like(torch.ones_like),
        "reshape": torch.reshape,
        "shape": lambda x: tuple(x.shape),
        "sqrt": torch.sqrt,
        "stack": lambda xs, axis=0: torch.stack(xs, dim=axis),
        "stop_gradient": torch.Tensor.detach,
        "swapaxes": torch.swapaxes,
        "zeros_like": like(torch.zeros_like),
    }


def tensorflow_functions() -> dict[str, Callable]:
    """For TensorFlow."""
    import tensorflow as tf  # pyright: ignore[reportMissingModuleSource, reportMissingImports]

    def hypot(x: Array, y: Array) -> Array:
        larger, smaller = tf.maximum(abs(x), abs(y)), tf.minimum(abs(x), abs(y))
        return larger * tf.sqrt(1 + tf.math.divide_no_nan(smaller, larger) ** 2)

    def matmul(x: Array, y: Array) -> Array:
        if x.dtype == tf.float32 and tf.config.list_physical_devices("GPU"):  # multiplies in TF32 by default
            return tf.cast(tf.matmul(tf.cast(x, tf.float64), tf.cast(y, tf.float64)), tf.float32)
        return tf.matmul(x, y)

    return {"matmul": matmul, "where": tf.where, "hypot": hypot, "maximum": tf.maximum, "minimum": tf.minimum}


FUNCTIONS = {"jax": jax_functions, "torch": torch_functions, "tensorflow": tensorflow_functions}
