"""Reduction of real matrices to upper Hessenberg form by Householder reflections."""

from typing import Any

from schurfire.namespaces import Array, kernel, namespace


@kernel
def hessenberg(A: Array) -> tuple[Array, Array]:
    """``A = Q H Q^T`` with ``Q`` orthogonal and ``H`` zero below the first subdiagonal (exactly).

    Backward stable: ``||A - Q H Q^T||`` and ``||I - Q^T Q||`` are of the order ``n eps ||A||`` and ``n eps``.
    Column ``k`` that is zero below row ``k + 1`` already is left alone: for a matrix ``A`` in Hessenberg form
    ``H = A`` and ``Q = I``.

    Args:
        A: shape (..., n, n), its squares must not overflow.

    Returns:
        ``H`` and ``Q``, each of the shape of ``A``.

    Cost: ``n - 2`` steps of three matrix-vector products and three rank-one updates each.

    >>> import numpy as np
    >>> H, Q = hessenberg(np.array([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0], [4.0, 6.0, 7.0]]))
    >>> float(H[2, 0]), round(float(abs(H[1, 0])), 12)
    (0.0, 5.0)
    """
    xp = namespace(A)
    n = A.shape[-1]
    rows = xp.arange(n)

    def step(k, factors):
        H, Q = factors
        v, tau = _reflector(xp, xp.take(H, k, axis=-1), rows - (k + 1))
        column, row = v[..., :, None], v[..., None, :]
        H = H - (tau[..., None] * column) * xp.matmul(row, H)
        H = H - xp.matmul(H, column) * (tau[..., None] * row)
        Q = Q - xp.matmul(Q, column) * (tau[..., None] * row)
        return H, Q

    identity = xp.zeros_like(A) + xp.eye(n, dtype=A.dtype)
    H, Q = xp.fori_loop(0, max(n - 2, 0), step, (A, identity))
    return xp.where(rows[:, None] <= rows + 1, H, xp.zeros_like(H)), Q


def _reflector(xp: Any, x: Array, position: Array) -> tuple[Array, Array]:
    """``v, tau`` so that ``(I - tau v v^T) x`` is zero where ``position > 0`` and equals ``x`` where it is negative.

    ``v`` is 1 at ``position == 0`` and 0 before; ``tau = 0`` if there is nothing to annihilate.
    """
    x = xp.where(position >= 0, x, xp.zeros_like(x))
    size = xp.max(xp.abs(x), axis=-1, keepdims=True)  # squares of x itself could underflow
    x = x / xp.where(size > 0, size, xp.ones_like(size))
    head = xp.sum(xp.where(position == 0, x, xp.zeros_like(x)), axis=-1, keepdims=True)
    tail = xp.where(position > 0, x, xp.zeros_like(x))
    rest = xp.sum(tail * tail, axis=-1, keepdims=True)
    norm = xp.sqrt(head * head + rest)
    beta = xp.where(head < 0, norm, -norm)
    needed = rest > 0
    v = tail / xp.where(needed, head - beta, xp.ones_like(head))
    v = xp.where(position == 0, xp.ones_like(v), v)
    tau = xp.where(needed, (beta - head) / xp.where(needed, beta, xp.ones_like(beta)), xp.zeros_like(beta))
    return v, tau
