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
    T = _with_stable_blocks(T, region)
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


def _with_stable_blocks(T: np.ndarray, region: Region) -> np.ndarray:
    """The upper triangle of T with the nearest stable diagonal blocks of order 1 and 2.

    Which neighbours share a block is decided by dynamic programming over the squared distances.
    """
    n = len(T)
    upper = np.triu(T)
    singles = nearest_stable_block(T.diagonal().reshape(n, 1, 1), region)
    pairs = np.stack([T[k : k + 2, k : k + 2] for k in range(n - 1)]) if n > 1 else np.empty((0, 2, 2), T.dtype)
    stable_pairs = nearest_stable_block(pairs, region) if n > 1 else pairs
    scale = max(float(np.max(np.abs(blocks), initial=0.0)) for blocks in (T, singles, stable_pairs)) or 1.0
    lost = np.square(np.diagonal(T, -1) / scale, dtype=np.float64)  # at a cut; the rest below is lost in any case
    cost = [0.0]  # of the first k rows and columns
    is_pair = [False]
    for k in range(n):
        apart = cost[k] + _squared_distance(singles[k], T[k, k], scale) + (lost[k - 1] if k else 0.0)
        together = np.inf
        if k:
            together = cost[k - 1] + _squared_distance(stable_pairs[k - 1], pairs[k - 1], scale)
            together += lost[k - 2] if k > 1 else 0.0
        cost.append(min(apart, together))
        is_pair.append(bool(together < apart))
    end = n
    while end > 0:
        order = 2 if is_pair[end] else 1
        start = end - order
        upper[start:end, start:end] = stable_pairs[start] if order == 2 else singles[start]
        end = start
    return upper


def _squared_distance(X: np.ndarray, Y: np.ndarray, scale: float) -> float:
    return float(np.sum(np.square((X.astype(np.float64) - Y) / scale)))
