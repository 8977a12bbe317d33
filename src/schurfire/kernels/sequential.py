"""The recurrence step by step: N dependent steps, no arithmetic beyond ``n^2`` products a step."""

import numpy as np

from schurfire.kernels.forms import transposed
from schurfire.namespaces import Array, namespace


def states_by_steps(A: Array, b: Array, x0: Array) -> tuple[Array, Array]:
    """The states ``x[0..N-1]`` and ``x[N]`` of ``x[k+1] = A x[k] + b[k]``, one matrix product a step.

    Args:
        A: shape (..., 1, n, n): the last leading axis is that of the sequences, which share A.
        b: shape (..., S, N, n).
        x0: shape (..., S, n), all leading axes in full length.
    """
    xp = namespace(b)
    A = transposed(A[..., 0, :, :])
    forcing = xp.moveaxis(b, -2, 0)
    if isinstance(b, np.ndarray):
        x = np.empty((len(forcing) + 1, *x0.shape), b.dtype)
        x[0] = x0
        for k, forced in enumerate(forcing):
            np.matmul(x[k], A, out=x[k + 1])
            x[k + 1] += forced
        x, x_end = x[:-1], x[-1]
    else:
        x_end, x = xp.scan(lambda state, forced: (xp.matmul(state, A) + forced, state), x0, forcing)
    return xp.moveaxis(x, 0, -2), x_end


def states_in_lanes(A: Array, b: Array, x0: Array) -> tuple[Array, Array]:
    """The same on JAX with models and sequences as the last, contiguous axes, so that they fill the SIMD lanes.

    A step is written as n multiply-and-adds rather than as a product or a sum over an axis: XLA then makes one small
    kernel of it, and of the whole loop where the state is small, in float64 as in float32. (A loop body with a dot or
    a reduction in it pays for every dispatch.)

    Args:
        A: shape (n, n, ...).
        b: shape (N, n, ...).
        x0: shape (n, ...), all trailing axes in full length.
    """
    import jax

    def step(state: Array, forced: Array) -> tuple[Array, Array]:
        return sum((A[:, j] * state[j] for j in range(A.shape[1])), start=forced), state

    x_end, x = jax.lax.scan(step, x0, b)
    return x, x_end
