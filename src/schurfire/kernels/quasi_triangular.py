"""Quasi-triangular matrices: where their diagonal blocks are, and LAPACK's standard form of the 2x2 ones."""

from typing import Any, NamedTuple

from schurfire.namespaces import Array, kernel, namespace


@kernel
def block_structure(T: Array) -> Array:
    """``b[k] = 1 + [T[k+1, k] != 0] - [T[k, k-1] != 0]``: 1 for a 1x1 block, 2 and 0 for the rows of a 2x2 block.

    So ``b`` holds the order of the block that starts in row k, and 0 where none starts; it sums to n.

    Args:
        T: quasi-triangular, shape (..., n, n).

    Returns:
        int32, shape (..., n).

    >>> import numpy as np
    >>> block_structure(np.array([[1.0, 2.0, 3.0], [0.0, 4.0, 5.0], [0.0, -6.0, 4.0]]))
    array([1, 2, 0], dtype=int32)
    """
    xp = namespace(T)
    below = xp.cast(subdiagonal(xp, T) != 0, "int32")
    return 1 + below - previous_entries(xp, below)


@kernel
def standardise(T: Array, Z: Array) -> tuple[Array, Array]:
    """``Z T Z^T`` with every 2x2 block of T either split or in standard form: ``[[a, b], [c, a]]`` with ``b c < 0``.

    One plane rotation per block: to an eigenvector if the eigenvalues are real, else to equal diagonal entries and
    ``|b| >= |c|``, so that scaling T cannot underflow b alone. Backward stable. Blocks that have equal diagonal
    entries and ``b c < 0`` already are left bit-identical.

    Args:
        T: block triangular with diagonal blocks of order 1 and 2, shape (batch, n, n).
        Z: orthogonal, shape (batch, n, n).

    Cost: O(n^2) per matrix, no loop: the blocks are disjoint.
    """
    xp = namespace(T)
    a, b, c = xp.diagonal(T, axis1=-2, axis2=-1), superdiagonal(xp, T), subdiagonal(xp, T)
    is_first = c != 0
    is_second = previous_entries(xp, is_first)
    turn = _standard_block(xp, a, b, c, next_entries(xp, a))

    zero, one = xp.zeros_like(a), xp.ones_like(a)
    same = xp.where(is_first, turn.cos, xp.where(is_second, previous_entries(xp, turn.cos), one))[:, :, None]
    from_below = xp.where(is_first, turn.sin, zero)[:, :, None]
    from_above = xp.where(is_second, -previous_entries(xp, turn.sin), zero)[:, :, None]

    def rotate_rows(X: Array) -> Array:
        edge = xp.zeros_like(X[:, :1])
        up, down = xp.concatenate([X[:, 1:], edge], axis=-2), xp.concatenate([edge, X[:, :-1]], axis=-2)
        return same * X + from_below * up + from_above * down

    T = _transposed(xp, rotate_rows(_transposed(xp, rotate_rows(T))))
    Z = _transposed(xp, rotate_rows(_transposed(xp, Z)))

    diagonal = xp.where(is_first, turn.a, xp.where(is_second, previous_entries(xp, turn.d), a))
    above = xp.where(is_first, turn.b, superdiagonal(xp, T))
    return with_band(xp, T, diagonal, above, xp.where(is_first, turn.c, zero)), Z


class _Turn(NamedTuple):
    """``R [[., .], [., .]] R^T = [[a, b], [c, d]]`` with the rotation ``R = [[cos, sin], [-sin, cos]]``."""

    cos: Array
    sin: Array
    a: Array
    b: Array
    c: Array
    d: Array


def _standard_block(xp: Any, a: Array, b: Array, c: Array, d: Array) -> _Turn:
    """The rotation of one block for every entry; meaningless but finite where c = 0.

    A compiler may compute an expression anew for each of its uses, with or without fused multiply-add. So no branch
    depends on the rounding of a sum of products: cosine and sine could else come from two different branches.
    """
    half_gap = 0.5 * a - 0.5 * d
    unit = xp.maximum(xp.abs(half_gap), xp.maximum(xp.abs(b), xp.abs(c)))
    unit = xp.where(unit > 0, unit, xp.ones_like(unit))
    p, beta, gamma = half_gap / unit, b / unit, c / unit
    zero, one = xp.zeros_like(p), xp.ones_like(p)
    # Of (lambda - mean)^2 = discriminant, in units of unit^2.
    root_of_product = xp.sqrt(xp.abs(beta * gamma))
    gap = xp.abs(p) - root_of_product
    opposite = xp.sign(beta) * xp.sign(gamma) < 0
    discriminant = xp.where(opposite, gap * (xp.abs(p) + root_of_product), p * p + beta * gamma)

    # Rotated to equal diagonal entries, the off-diagonal ones keep their difference b - c and have the discriminant as
    # product: the larger is a sum without cancellation, dividing gives the smaller one and its sign. Where the larger
    # is c, a quarter turn follows.
    total, difference = beta + gamma, beta - gamma
    length = xp.sqrt(total * total + 4 * p * p)
    safe_length = xp.where(length > 0, length, one)
    cos = xp.where(length > 0, xp.sqrt(0.5 * (1 + xp.abs(total) / safe_length)), one)
    sin = xp.where(total < 0, p, -p) / (safe_length * cos)
    larger = 0.5 * (xp.abs(difference) + length)  # at least 1/2
    larger = xp.where(difference < 0, -larger, larger)
    is_upper = xp.where(total < 0, -difference, difference) >= 0
    mean = 0.5 * a + 0.5 * d
    cos, sin = xp.where(is_upper, cos, -sin), xp.where(is_upper, sin, cos)
    equal = _Turn(cos, sin, mean, unit * larger, unit * (discriminant / larger), mean)

    # (z, c) is the eigenvector of d + z; that z = p ± root has the sign of p avoids cancellation.
    root = xp.sqrt(xp.maximum(discriminant, zero))
    z = p + xp.where(p < 0, -root, root)
    product = xp.where(z == 0, zero, beta * gamma / xp.where(z == 0, one, z))
    norm = xp.sqrt(z * z + gamma * gamma)
    safe_norm = xp.where(norm > 0, norm, one)
    cos = xp.where(norm > 0, z / safe_norm, one)
    split = _Turn(cos, gamma / safe_norm, d + unit * z, b - c, zero, d - unit * product)

    turn = _chosen(xp, xp.logical_and(opposite, gap < 0), equal, split)
    is_standard = xp.logical_and(a == d, xp.sign(b) * xp.sign(c) < 0)
    return _chosen(xp, is_standard, _Turn(one, zero, a, b, c, d), turn)


def _chosen(xp: Any, condition: Array, yes: _Turn, no: _Turn) -> _Turn:
    return _Turn(*(xp.where(condition, x, y) for x, y in zip(yes, no, strict=True)))


def with_band(xp: Any, T: Array, diagonal: Array, above: Array, below: Array) -> Array:
    """T with its diagonal and both neighbours replaced, and zero below them; ``above`` and ``below`` end with a 0."""
    n = T.shape[-1]
    offset = xp.arange(n) - xp.arange(n)[:, None]
    T = xp.where(offset == 0, diagonal[..., :, None], T)
    T = xp.where(offset == 1, above[..., :, None], T)
    T = xp.where(offset == -1, below[..., None, :], T)
    return xp.where(offset < -1, xp.zeros_like(T), T)


def subdiagonal(xp: Any, T: Array) -> Array:
    """``T[k+1, k]`` for all k, 0 for the last."""
    return _followed_by_zero(xp, T, -1)


def superdiagonal(xp: Any, T: Array) -> Array:
    """``T[k, k+1]`` for all k, 0 for the last."""
    return _followed_by_zero(xp, T, 1)


def next_entries(xp: Any, x: Array) -> Array:
    """``x[k+1]`` for all k, 0 for the last."""
    return xp.concatenate([x[..., 1:], xp.zeros_like(x[..., :1])], axis=-1)


def previous_entries(xp: Any, x: Array) -> Array:
    """``x[k-1]`` for all k, 0 for the first."""
    return xp.concatenate([xp.zeros_like(x[..., :1]), x[..., :-1]], axis=-1)


def _followed_by_zero(xp: Any, T: Array, offset: int) -> Array:
    zero = xp.zeros_like(T[..., -1, :1])
    if T.shape[-1] == 1:  # TensorFlow knows no empty diagonals
        return zero
    return xp.concatenate([xp.diagonal(T, offset=offset, axis1=-2, axis2=-1), zero], axis=-1)


def _transposed(xp: Any, X: Array) -> Array:
    return xp.swapaxes(X, -1, -2)
