"""The recurrence by doubling: log2(N) steps, each parallel over all of time.

After s steps of ``X[k] <- X[k] + A^(2^s) X[k - 2^s]`` (Hillis and Steele) X[k] holds the last 2^(s+1) terms of

    x[k] = A^k x[0] + sum over i < k of A^(k-1-i) b[i].
"""

from schurfire.kernels.forms import transposed
from schurfire.namespaces import Array, namespace


def states_by_doubling(A: Array, b: Array, x0: Array) -> tuple[Array, Array]:
    """The states ``x[0..N-1]`` and ``x[N]`` of ``x[k+1] = A x[k] + b[k]``; shapes as in ``states_by_steps``.

    Cost: ``N n^2 log2(N)`` multiplications. Where a power of A overflows the result is not finite.
    """
    xp = namespace(b)
    x = xp.concatenate([x0[..., None, :], b], axis=-2)
    N, unpadded = b.shape[-2], [(0, 0)] * (len(b.shape) - 2)
    power, reach = transposed(A), 1
    while reach <= N:
        x = x + xp.pad(xp.matmul(x[..., :-reach, :], power), [*unpadded, (reach, 0), (0, 0)])
        reach = 2 * reach
        if reach <= N:
            power = xp.matmul(power, power)
    return x[..., :-1, :], x[..., -1, :]
