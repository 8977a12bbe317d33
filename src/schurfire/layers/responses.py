"""The response of a layer's matrices, to sequences of which some steps may not exist."""

from typing import NamedTuple

from schurfire.kernels.recurrence import Response, linear_recurrence, state_space_response
from schurfire.namespaces import Array, keras_namespace


class Matrices(NamedTuple):
    """What a recurrence runs on.

    Attributes:
        A: (n_x, n_x).
        B: (n_x, n_u).
        C: (n_y, n_x); None: ``y = x``, and D is None too.
        D: (n_y, n_u); None: zero.
        Z: the states of the layer are ``Z x``, with Z orthogonal; None: they are x.
    """

    A: Array
    B: Array
    C: Array | None
    D: Array | None
    Z: Array | None


def respond(matrices: Matrices, u: Array, x0: Array | None, mask: Array | None, method: str, form: str) -> Response:
    """Outputs (S, N, n_y) and final states (S, n_x) for inputs (S, N, n_u).

    Args:
        matrices: with C given wherever Z is.
        u: the inputs.
        x0: the layer's initial states, (S, n_x); None for zero.
        mask: boolean, (S, N): the steps that exist; None for all. See ``masked_response``.
        method: how to compute the recurrence.
        form: which entries of A are read.
    """
    A, B, C, D, Z = matrices
    xp = keras_namespace()
    if Z is not None and x0 is not None:
        x0 = xp.matmul(x0, Z)
    if mask is None:
        response = state_space_response(A, B, C, D, u, x0, method, form=form)
    else:
        response = masked_response(matrices, u, x0, mask, method, form)
    return response if Z is None else Response(response.y, xp.matmul(response.x_end, _transposed(Z)))


def masked_response(matrices: Matrices, u: Array, x0: Array | None, mask: Array, method: str, form: str) -> Response:
    """``y = C x + D u`` over the steps where ``mask`` holds: at the others the state stays and the output repeats.

    The steps that exist are moved to the front of each sequence, where any method of ``linear_recurrence`` runs over
    them at full speed, and their outputs are moved back. Before the first of them the output is 0. What ``u`` holds at
    masked steps, NaN too, has no influence on the outputs of the others, on the final state or on any gradient.

    Returns:
        y of shape (S, N, n_y), and x after each sequence's last existing step, of shape (S, n_x).
    """
    xp = keras_namespace()
    A, B, C, D, _ = matrices
    mask = xp.cast(mask, "bool")
    steps = xp.arange(xp.shape(u)[-2], dtype="int32")
    order = xp.argsort(xp.where(mask, steps, steps + xp.shape(u)[-2]), axis=-1)  # no two keys are equal: any sort does
    done = xp.cumsum(xp.cast(mask, "int32"), axis=-1)

    u = xp.where(mask[..., None], u, xp.zeros_like(u))
    u = xp.take_along_axis(u, order[..., None], axis=-2)
    x = linear_recurrence(A, xp.matmul(u, _transposed(B)), x0, method, form=form)
    y = x[..., :-1, :] if C is None else xp.matmul(x[..., :-1, :], _transposed(C))
    if D is not None:
        y = y + xp.matmul(u, _transposed(D))
    y = xp.concatenate([xp.zeros_like(y[..., :1, :]), y], axis=-2)
    last = xp.take_along_axis(x, done[..., -1:, None], axis=-2)
    return Response(xp.take_along_axis(y, done[..., None], axis=-2), last[..., 0, :])


def _transposed(X: Array) -> Array:
    return keras_namespace().swapaxes(X, -1, -2)
