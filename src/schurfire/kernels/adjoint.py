"""The state-space response and its adjoint, and how each backend is told that they belong together.

With ``b = B u`` and the states of ``x[k+1] = A x[k] + b[k]`` the response is ``y = C x + D u``. For the cotangents g
of y and h of ``x[N]`` the adjoint states run backwards,

    lambda[N] = h,    lambda[k] = A^T lambda[k+1] + C^T g[k],

a recurrence of the same kind, computed by the same method. All gradients are then one product over time:

    [dA dB; dC dD] = sum over k of [lambda[k+1]; g[k]] [x[k]; u[k]]^T,
    du[k] = B^T lambda[k+1] + D^T g[k],    dx[0] = lambda[0].

The shapes are those of ``layouts.Operands``.
"""

import functools
from collections.abc import Callable
from typing import Any

from schurfire.kernels.forms import transposed, used_entries
from schurfire.kernels.layouts import Operands, layout_of
from schurfire.kernels.mapped import mapped_axis_joined
from schurfire.namespaces import Array, kernel, namespace


@kernel
def respond(operands: Operands, form: str, method: str) -> tuple[Array, Array]:
    """The outputs (R, S, N, p) and last states (R, S, n), with the adjoint as derivative on the backend of the arrays.

    Args:
        operands: arrays of one library and one precision.
        form: one of ``forms.FORMS``.
        method: one of ``layouts.METHODS``, or ``"auto"``.
    """
    backend = getattr(namespace(operands.A), "backend", "numpy")
    if backend == "numpy":
        return _forward(operands, form, method)[:2]
    return _RULES[backend](form, method)(*operands)


def _forward(operands: Operands, form: str, method: str) -> tuple[Array, Array, Array]:
    """y, ``x[N]``, and the states ``x[0..N-1]`` that the adjoint needs."""
    layout = layout_of(operands, form, method)
    A, B, C, D = (layout.matrices(M) for M in (used_entries(operands.A, form), *operands[1:4]))
    u = layout.sequences(operands.u)
    x, x_end = layout.states(A, u if B is None else layout.product(B, u), layout.vectors(operands.x0))
    y = x if C is None else layout.product(C, x)
    if D is not None:
        y = y + layout.product(D, u)
    return layout.sequences_back(y), layout.vectors_back(x_end), layout.sequences_back(x)


def _backward(operands: Operands, x: Array, y_bar: Array, x_end_bar: Array, form: str, method: str) -> Operands:
    """The gradients; None for what is None; that of u for every model, (R, S, N, m), even where the models share u."""
    layout = layout_of(operands, form, method)
    A, B, C, D = (layout.matrices(transposed(M)) for M in (used_entries(operands.A, form), *operands[1:4]))
    u, x, g = (layout.sequences(z) for z in (operands.u, x, y_bar))
    forcing = g if C is None else layout.product(C, g)
    reached, start = layout.states(A, layout.backwards(forcing), layout.vectors(x_end_bar))
    after = layout.backwards(reached)  # lambda[k+1]

    n = operands.A.shape[-1]
    left = after if C is None else layout.joined(after, g)
    Z = layout.outer(left, x if B is None and D is None else layout.joined(x, u))
    u_bar = after if B is None else layout.product(B, after)
    if D is not None:
        u_bar = u_bar + layout.product(D, g)
    return Operands(
        used_entries(Z[:, :n, :n], form),
        None if B is None else Z[:, :n, n:],
        None if C is None else Z[:, n:, :n],
        None if D is None else Z[:, n:, n:],
        layout.sequences_back(u_bar),
        layout.vectors_back(start),
    )


def _summed_over_models(gradients: Operands, operands: Operands) -> Operands:
    """The gradient of a shared u is the sum over the models that share it."""
    if operands.u.shape[0] == gradients.A.shape[0]:
        return gradients
    u_bar = namespace(gradients.u).sum(gradients.u, axis=0, keepdims=True)
    return gradients._replace(u=u_bar)


@functools.cache
def _jax_rule(form: str, method: str) -> Callable:
    import jax

    @mapped_axis_joined
    def forward(operands: Operands) -> tuple[Array, Array, Array]:
        return _forward(operands, form, method)

    @mapped_axis_joined
    def backward(operands: Operands, x: Array, y_bar: Array, x_end_bar: Array) -> Operands:
        return _backward(operands, x, y_bar, x_end_bar, form, method)

    @jax.custom_vjp
    def response(*operands: Array | None) -> tuple[Array, Array]:
        return forward(Operands(*operands))[:2]

    def forward_rule(*operands: Array | None) -> tuple:
        y, x_end, x = forward(Operands(*operands))
        return (y, x_end), (Operands(*operands), x)

    def backward_rule(kept: tuple, bars: tuple) -> tuple:
        operands, x = kept
        return tuple(_summed_over_models(backward(operands, x, *bars), operands))

    response.defvjp(forward_rule, backward_rule)
    return jax.jit(response)


@functools.cache
def _torch_rule(form: str, method: str) -> Callable:
    import torch  # pyright: ignore[reportMissingImports]

    class Rule(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *operands: Array | None) -> tuple[Array, Array]:
            y, x_end, x = _forward(Operands(*operands), form, method)
            ctx.save_for_backward(*operands, x)
            return y, x_end

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, y_bar: Array, x_end_bar: Array) -> tuple:
            *given, x = ctx.saved_tensors
            operands = Operands(*given)
            return tuple(_summed_over_models(_backward(operands, x, y_bar, x_end_bar, form, method), operands))

    return Rule.apply


@functools.cache
def _tensorflow_rule(form: str, method: str) -> Callable:
    import tensorflow as tf  # pyright: ignore[reportMissingModuleSource, reportMissingImports]

    def response(*operands: Array | None) -> tuple[Array, Array]:
        given = [name for name, z in zip(Operands._fields, operands, strict=True) if z is not None]
        absent = dict.fromkeys(Operands._fields)

        @tf.custom_gradient
        def of_given(*tensors: Array) -> tuple:
            full = Operands(**{**absent, **dict(zip(given, tensors, strict=True))})
            y, x_end, x = _forward(full, form, method)

            def gradients(y_bar: Array, x_end_bar: Array) -> list:
                found = _summed_over_models(_backward(full, x, y_bar, x_end_bar, form, method), full)
                return [getattr(found, name) for name in given]

            return (y, x_end), gradients

        return of_given(*(z for z in operands if z is not None))

    return response


_RULES = {"jax": _jax_rule, "torch": _torch_rule, "tensorflow": _tensorflow_rule}
