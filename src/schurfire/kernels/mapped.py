"""``jax.vmap`` of a response: the mapped axis joins the models or the sequences instead of becoming one more axis.

So the method, and the memory layout that makes it fast, are chosen for all that is computed at once.
"""

from collections.abc import Callable
from typing import Any

from schurfire.kernels.layouts import Operands
from schurfire.namespaces import Array


def mapped_axis_joined(function: Callable) -> Callable:
    """``function(operands, *sequences)`` on the shapes of ``Operands``, with its own rule for ``vmap``.

    Where no matrix is mapped, and the result is not one for every model, the axis joins the sequences, which share
    the matrices; otherwise it joins the models. An input that is not mapped and that the models share stays shared.
    """
    import jax
    from jax.custom_batching import custom_vmap

    batched = custom_vmap(function)

    @batched.def_vmap
    def rule(size: int, is_mapped: tuple, operands: Operands, *sequences: Array) -> tuple:
        arrays, flags = (operands, *sequences), (Operands(*is_mapped[0]), *is_mapped[1:])
        join = _joins_sequences if not sequences and not any(flags[0][:4]) else _joins_models
        joined, apart = join(size, arrays, flags)
        result = jax.tree.map(apart, batched(*joined))
        return result, jax.tree.map(lambda _: True, result)

    return batched


def _joins_models(size: int, arrays: tuple, flags: tuple) -> tuple[tuple, Callable]:
    import jax.numpy as jnp

    operands, is_mapped = arrays[0], flags[0]
    R = operands.A.shape[1] if is_mapped.A else operands.A.shape[0]

    def join(x: Array, is_in: Any) -> Array:
        if x is None:
            return None
        x = x if is_in else x[None]
        return jnp.broadcast_to(x, (size, R, *x.shape[2:])).reshape(size * R, *x.shape[2:])

    joined = Operands(*map(join, operands, is_mapped))
    if not is_mapped.u and operands.u.shape[0] == 1:
        joined = joined._replace(u=operands.u)
    others = tuple(map(join, arrays[1:], flags[1:]))
    return (joined, *others), lambda x: x.reshape(size, R, *x.shape[1:])


def _joins_sequences(size: int, arrays: tuple, flags: tuple) -> tuple[tuple, Callable]:
    import jax.numpy as jnp

    def join(x: Array, is_in: Any) -> Array:
        x = jnp.broadcast_to(x if is_in else x[None], (size, *x.shape[-x.ndim + bool(is_in) :]))
        return jnp.moveaxis(x, 0, 1).reshape(x.shape[1], size * x.shape[2], *x.shape[3:])

    operands, is_mapped = arrays[0], flags[0]
    joined = operands._replace(u=join(operands.u, is_mapped.u), x0=join(operands.x0, is_mapped.x0))
    return (joined,), lambda x: jnp.moveaxis(x.reshape(x.shape[0], size, -1, *x.shape[2:]), 1, 0)
