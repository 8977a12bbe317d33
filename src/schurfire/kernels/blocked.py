"""The recurrence in blocks of K steps: few large matrix products, and a recurrence that is K times shorter.

In the block that starts at time s the states are, with ``l`` the response from zero state,

    x[s + i] = A^i x[s] + l[i],    l[i] = sum over j < i of A^(i-1-j) b[s + j],    i = 1..K.

All l are one product with the block Toeplitz matrix of the powers of A, and ``x[s + K] = A^K x[s] + l[K]`` is a
recurrence over the blocks, done in the same way until it is a single block.
"""

import numpy as np

from schurfire.kernels.forms import transposed
from schurfire.namespaces import Array, namespace


def states_by_blocks(A: Array, b: Array, x0: Array) -> tuple[Array, Array]:
    """The states ``x[0..N-1]`` and ``x[N]`` of ``x[k+1] = A x[k] + b[k]``; shapes as in ``states_by_steps``.

    Cost: ``(K + 1) N n^2`` multiplications. Where a power of A overflows the result is not finite.
    """
    xp = namespace(b)
    N, n = b.shape[-2:]
    K = min(_block_length(n), N)
    blocks = -(-N // K)
    powers = _powers(A, K)

    full = xp.pad(b, [(0, 0)] * (len(b.shape) - 2) + [(0, blocks * K - N), (0, 0)])
    local = xp.matmul(_refolded(full, 2, blocks, K * n), transposed(_toeplitz(powers[..., :-1, :, :])))
    if blocks == 1:
        starts = x0[..., None, :]
    else:
        starts, _ = states_by_blocks(powers[..., -1, :, :], local[..., -n:], x0)
    onward = transposed(_refolded(powers[..., 1:, :, :], 3, K * n, n))
    x = _refolded(local + xp.matmul(starts, onward), 2, blocks * K, n)[..., :N, :]
    return xp.concatenate([x0[..., None, :], x[..., :-1, :]], axis=-2), x[..., -1, :]


def _block_length(n: int) -> int:
    # The products grow with K, the number of levels with log(N) / log(K). Of 8, 16 and 32, compiled for n = 5 and 300
    # samples: 66, 108, 258 us; of 4, 8, 16, in NumPy for n = 28 and 8 sequences of 1024 samples: 2.5, 3.4, 5.5 ms.
    return 8 if n <= 16 else 4


def _powers(A: Array, K: int) -> Array:
    """``A^0, ..., A^K`` along a new axis -3, by doubling."""
    xp = namespace(A)
    powers = A[..., None, :, :]
    while powers.shape[-3] < K:
        powers = xp.concatenate([powers, xp.matmul(powers, powers[..., -1:, :, :])], axis=-3)
    one = xp.broadcast_to(xp.eye(A.shape[-1], dtype=A.dtype), tuple(A.shape))
    return xp.concatenate([one[..., None, :, :], powers[..., :K, :, :]], axis=-3)


def _toeplitz(powers: Array) -> Array:
    """The (K n, K n) matrix with the block ``A^(i-j)`` in block row i and column j <= i."""
    xp = namespace(powers)
    K, n = powers.shape[-3], powers.shape[-1]
    age = np.arange(K)[:, None] - np.arange(K)
    with_zero = xp.concatenate([powers, xp.zeros_like(powers[..., :1, :, :])], axis=-3)
    blocks = xp.take(with_zero, np.where(age >= 0, age, K).ravel(), axis=-3)
    blocks = _refolded(blocks, 3, K, K, n, n)
    return _refolded(xp.swapaxes(blocks, -3, -2), 4, K * n, K * n)


def _refolded(x: Array, axes: int, *shape: int) -> Array:
    """The same numbers with the last ``axes`` axes in another shape."""
    xp = namespace(x)
    return xp.reshape(x, (*tuple(xp.shape(x))[: len(x.shape) - axes], *shape))
