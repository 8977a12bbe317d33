"""The nearest array that a permutation makes block triangular: stable exactly, at any scale and conditioning."""

import numpy as np

from schurfire.kernels.blocks import nearest_stable_block
from schurfire.regions import Region

_PASSES = 10  # of the insertion search; it stops by itself after 2 to 5 on random matrices up to n = 200


def triangular_part(A: np.ndarray, region: Region) -> np.ndarray:
    """``min |X - A|_F`` over X that are, in a common order of rows and columns, block upper triangular and stable.

    The diagonal blocks are of order 1 and 2, and nearest stable ones; above them X is A. So the numbers of X are
    proven stable by their blocks alone. The best blocks for an order are found exactly, the order by local search (it
    is a linear ordering problem). For the matrix with equal entries this is the nearest stable matrix of all.

    Args:
        A: shape (n, n), float32 or float64, n >= 1.
        region: where the eigenvalues must lie.

    Raises:
        InvalidInputError: the region holds no number of A's data type.
    """
    largest = np.max(np.abs(A)).astype(np.float64)
    order = _order(np.square(A / largest, dtype=np.float64) if largest else np.zeros(A.shape))
    T = A[np.ix_(order, order)]
    T = np.triu(T) + _diagonal_blocks(T, region)
    X = np.empty_like(A)
    X[np.ix_(order, order)] = T
    return X


def _order(weights: np.ndarray) -> np.ndarray:
    """An order that leaves little weight below the diagonal: heavy rows first, then every index where it fits best."""
    order = np.argsort(weights.sum(axis=0) - weights.sum(axis=1), kind="stable")
    for _ in range(_PASSES):
        moved = False
        for index in order.copy():
            place = int(np.flatnonzero(order == index)[0])
            gain = weights[order, index] - weights[index, order]  # of a step to the right over each other index
            # change of the weight below the diagonal if the index goes to each place
            left = np.cumsum(gain[:place][::-1])[::-1]
            right = -np.cumsum(gain[place + 1 :])
            change = np.concatenate([left, [0.0], right])
            best = int(np.argmin(change))
            if change[best] < -1e-12 * weights.sum():
                order = np.insert(np.delete(order, place), best, index)
                moved = True
        if not moved:
            break
    return order


def _diagonal_blocks(T: np.ndarray, region: Region) -> np.ndarray:
    """What to add to the upper triangle of T to give it the nearest stable diagonal blocks, each of order 1 or 2.

    Which pairs of neighbours share a block is decided by dynamic programming over the squared distances.
    """
    n = len(T)
    diagonal = T.diagonal()
    singles = nearest_stable_block(diagonal.reshape(n, 1, 1), region).reshape(n)
    pairs = np.stack([T[k : k + 2, k : k + 2] for k in range(n - 1)]) if n > 1 else np.empty((0, 2, 2), T.dtype)
    stable = nearest_stable_block(pairs, region) if n > 1 else pairs
    scale = max(float(np.max(np.abs(T))), float(np.max(np.abs(singles))))
    cost_single = np.square((singles.astype(np.float64) - diagonal) / scale)
    cost_pair = np.square((stable.astype(np.float64) - pairs) / scale).sum(axis=(1, 2))
    below = np.square(np.diagonal(T, -1).astype(np.float64) / scale)
    best, joined = [0.0, cost_single[0]], [False, False]
    for k in range(1, n):
        apart, together = best[k] + cost_single[k] + below[k - 1], best[k - 1] + cost_pair[k - 1]
        best.append(min(apart, together))
        joined.append(together < apart)
    added = np.zeros_like(T)
    k = n
    while k > 0:
        if joined[k]:
            added[k - 2 : k, k - 2 : k] = stable[k - 2] - np.triu(pairs[k - 2])
            k -= 2
        else:
            added[k - 1, k - 1] = singles[k - 1] - diagonal[k - 1]
            k -= 1
    return added
