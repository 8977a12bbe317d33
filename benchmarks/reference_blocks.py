"""The fifteen candidates of Noferini and Poloni for the nearest real 2x2 Schur block, in extended precision.

Independent of schurfire: singular value decompositions and the roots of the quartics as in the paper's appendix A
(with the transposes that it lost), each candidate tested against the constraints that are not active by construction.
"""

import numpy as np

_LONG = np.longdouble


def nearest_distances(A: np.ndarray) -> np.ndarray:
    """The distance of each block of shape (N, 2, 2) to the closed set of Schur-stable ones, in extended precision."""
    A = A.astype(_LONG)
    size = np.maximum(np.abs(A).max(axis=(1, 2)), 1)
    best = np.full(len(A), np.inf, dtype=_LONG)
    for X, active in _candidates(A):
        trace, det = X[:, 0, 0] + X[:, 1, 1], _det(X)
        slack = 4e-18 * size * size  # of the determinant of a candidate with rounding error in its entries
        holds = np.ones(len(A), dtype=bool)
        if 0 not in active:
            holds &= det <= 1 + slack
        for sign in (1, -1):
            if sign not in active:
                holds &= sign * trace <= 1 + det + slack
        holds &= np.abs(trace) <= 2 + 4e-18 * size
        distance = np.sqrt((((X - A) / size[:, None, None]) ** 2).sum(axis=(1, 2))) * size
        best = np.where(holds & (distance < best), distance, best)
    return best


def _candidates(A):
    identity = np.eye(2, dtype=_LONG)
    yield A, ()
    U, s, V = _svd(A)
    for t in _critical_points(s[:, 0], s[:, 1]):
        yield _compose(U, t, V), (0,)
    G = _equal_diagonal_rotation(A)
    turned = _mul(_transposed(G), _mul(A, G))
    zero = np.zeros(len(A), dtype=_LONG)
    for sign in (1, -1):
        shift = sign * identity
        U, s, V = _svd(A - shift)
        yield shift + _compose(U, (s[:, 0], zero), V), (sign,)
        for upper in (True, False):
            M = np.zeros_like(A)
            M[:, 0, 0] = M[:, 1, 1] = sign
            M[:, 0, 1] = turned[:, 0, 1] if upper else 0
            M[:, 1, 0] = 0 if upper else turned[:, 1, 0]
            yield _mul(G, _mul(M, _transposed(G))), (0, sign)
    for first, second in _critical_points(turned[:, 0, 1], turned[:, 1, 0]):
        M = np.zeros_like(A)
        M[:, 0, 1], M[:, 1, 0] = first, second
        yield _mul(G, _mul(M, _transposed(G))), (1, -1)


def _critical_points(s1, s2):
    """Critical points of (t - s1)^2 + (1/t - s2)^2: the real roots of t^4 - s1 t^3 + s2 t - 1."""
    companion = np.zeros((len(s1), 4, 4))
    companion[:, 0, 0], companion[:, 0, 2], companion[:, 0, 3] = s1, -s2, 1
    companion[:, [1, 2, 3], [0, 1, 2]] = 1
    with np.errstate(all="ignore"):
        roots = np.linalg.eigvals(companion)
        for k in range(4):
            t = roots[:, k].real.astype(_LONG)
            for _ in range(60):
                f, slope = ((t - s1) * t * t + s2) * t - 1, (4 * t - 3 * s1) * t * t + s2
                step = f / slope
                t = np.where(np.isfinite(step), t - step, t)
            yield t, 1 / t


def _svd(A):
    """``A = U diag(s) V^T`` with rotations U and V, so that the second value may be negative."""
    e, f = (A[:, 0, 0] + A[:, 1, 1]) / 2, (A[:, 0, 0] - A[:, 1, 1]) / 2
    g, h = (A[:, 1, 0] + A[:, 0, 1]) / 2, (A[:, 1, 0] - A[:, 0, 1]) / 2
    q, r = np.hypot(e, h), np.hypot(f, g)
    plus, minus = np.arctan2(g, f), np.arctan2(h, e)
    return _rotation((plus + minus) / 2), np.stack([q + r, q - r], axis=1), _rotation((plus - minus) / 2)


def _equal_diagonal_rotation(A):
    f, g = (A[:, 0, 0] - A[:, 1, 1]) / 2, (A[:, 0, 1] + A[:, 1, 0]) / 2
    return _rotation(np.arctan2(-f, g) / 2)


def _rotation(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([c, -s], axis=1), np.stack([s, c], axis=1)], axis=1)


def _compose(U, t, V):
    return _mul(U * np.stack(t, axis=1)[:, None, :], _transposed(V))


def _mul(X, Y):
    return np.einsum("nij,njk->nik", X, Y)


def _transposed(X):
    return X.transpose(0, 2, 1)


def _det(X):
    return X[:, 0, 0] * X[:, 1, 1] - X[:, 0, 1] * X[:, 1, 0]
