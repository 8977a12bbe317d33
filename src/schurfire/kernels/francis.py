"""Francis double-shift QR iteration: from Hessenberg form to real Schur form, batched and without branches.

One sweep visits rows ``k, k+1, k+2`` for rising ``k``, the same ``k`` for every matrix of the stack, and applies a
3x3 Householder reflector from both sides. Where a matrix has no bulge at ``k`` its reflector is the identity (a null
iteration), so matrices that converged early wait for the others unchanged. Every unreduced diagonal block gets its
own bulge with its own shifts, so all blocks of all matrices are swept at once.

The bulge is chased implicitly. Forming ``M = T^2 - s T + t I`` and its QR factorisation, as the explicit method does,
costs O(n^3) per sweep instead of O(n^2), and rounds ``M`` relative to ``||T||^2``: subdiagonal entries and shifts that
are small compared with ``||T||`` are lost in it. Chasing needs only the first column of ``M``, three numbers.
"""

from typing import Any, NamedTuple

from schurfire.kernels.quasi_triangular import next_entries, previous_entries, subdiagonal, superdiagonal
from schurfire.namespaces import Array, finfo, kernel, namespace

_SWEEPS_PER_ROW = 30  # where LAPACK's xLAHQR gives up, too
_SWEEPS_BEFORE_EXCEPTION = 10  # sweeps in which a block keeps its last row before its shifts are replaced


@kernel
def francis(H: Array, Q: Array) -> tuple[Array, Array, Array]:
    """``Q H Q^T = Z T Z^T`` with ``T`` block triangular, its diagonal blocks of order 1 and 2.

    Backward stable: the residual is of the order ``n eps ||H||``. Blocks of order 2 may have real eigenvalues.

    Args:
        H: upper Hessenberg, shape (batch, n, n), its largest entry far from over- and underflow: subdiagonal entries
            below the smallest normal number times ``n / eps`` count as zero.
        Q: orthogonal, shape (batch, n, n).

    Returns:
        ``T``, ``Z`` and for each matrix, shape (batch,), whether all its blocks were reduced to order 1 or 2 within
        ``30 max(n, 10)`` sweeps; if not, its ``T`` and ``Z`` are unfinished.

    Cost: for random matrices about ``1.9 n`` sweeps, together ``n^2`` steps of O(n) operations per matrix.
    """
    xp = namespace(H)
    n = H.shape[-1]
    if n < 2:
        return H, Q, xp.all(xp.isfinite(H), axis=(-2, -1))
    limit = _SWEEPS_PER_ROW * max(n, 10)

    def unfinished(sweeps, active, *_):
        return xp.logical_and(sweeps < limit, xp.any(active))

    def sweep(sweeps, _active, age, W):
        W, band = _deflated(xp, W)
        links = _Links(xp, band)
        age = age + xp.cast(links.last, "int32")
        plan = _plan(xp, band, links, age)
        rows = xp.arange(n, dtype="int32")
        start = xp.min(xp.where(links.first, rows, n))
        stop = xp.max(xp.where(links.last, rows, 0))
        no_bulge = xp.zeros_like(plan[:, 0, :3])
        W, _ = xp.fori_loop(start, stop, lambda k, state: _chase(xp, plan, k, *state), (W, no_bulge))
        return sweeps + 1, xp.any(links.inner, axis=-1), age, W

    age = xp.zeros_like(H[:, :, 0], dtype="int32")
    active = xp.ones_like(H[:, 0, 0], dtype="bool")
    _, active, _, W = xp.while_loop(unfinished, sweep, (0, active, age, _workspace(xp, H, Q)))
    return _factor(W), xp.swapaxes(W[:, :n, n:], -1, -2), xp.logical_not(active)


def _workspace(xp: Any, H: Array, Q: Array) -> Array:
    """``W = [H Q^T; 0 0]``, shape (batch, n + 2, 2n): a reflector acts on T and Z^T as one update of adjacent rows.

    The zero rows complete the last windows of three rows. Windows of three columns may reach into Z^T, where the
    reflector's last entry is zero.
    """
    W = xp.concatenate([H, xp.swapaxes(Q, -1, -2)], axis=-1)
    return xp.concatenate([W, xp.zeros_like(W[:, :2])], axis=-2)


def _factor(W: Array) -> Array:
    n = W.shape[-1] // 2
    return W[:, :n, :n]


# --- the structure of T -----------------------------------------------------------------------------------------------


class _Band(NamedTuple):
    """``T[k, k]``, ``T[k, k+1]`` and ``T[k+1, k]`` for all rows k, shape (batch, n), the last two ending with a 0."""

    diagonal: Array
    above: Array
    below: Array


class _Links:
    """Which rows k of T, shape (batch, n), lie where in unreduced diagonal blocks of order 3 and more."""

    def __init__(self, xp: Any, band: _Band) -> None:
        below = band.below != 0
        above = previous_entries(xp, below)
        self.ends = xp.logical_not(below)  # last rows of blocks of any order
        self.inner = xp.logical_and(above, below)
        self.first = xp.logical_and(xp.logical_not(above), xp.logical_and(below, next_entries(xp, below)))
        self.last = xp.logical_and(xp.logical_not(below), xp.logical_and(above, previous_entries(xp, above)))


def _deflated(xp: Any, W: Array) -> tuple[Array, _Band]:
    """W and the band of its T, with zeros for negligible subdiagonal entries and for rounding errors below them.

    An entry ``c = T[k+1, k]`` beside ``a, b, d = T[k, k], T[k, k+1], T[k+1, k+1]`` is negligible if it is small
    compared with ``|a| + |d|`` and if ``|b c| <= eps |d| |a - d|`` (Ahues and Tisseur, 1997), written in the order
    of magnitudes that keeps quotients from overflowing: then it moves no eigenvalue by more than eps relatively.
    No sum of products is compared, so that W and the band agree however often a compiler evaluates the test.
    """
    T = _factor(W)
    n = T.shape[-1]
    eps, tiny = float(finfo(T).eps), float(finfo(T).tiny)
    floor = tiny * (n / eps)
    band = _Band(xp.diagonal(T, axis1=-2, axis2=-1), superdiagonal(xp, T), subdiagonal(xp, T))
    a, b, c = band.diagonal, xp.abs(band.above), xp.abs(band.below)
    d = next_entries(xp, a)
    size = xp.abs(a) + xp.abs(d)
    size = xp.where(size == 0, previous_entries(xp, c) + next_entries(xp, c), size)
    gap, d = xp.abs(a - d), xp.abs(d)
    large, small = xp.maximum(d, gap), xp.minimum(d, gap)
    more, less = xp.maximum(b, c), xp.minimum(b, c)
    scale = xp.maximum(large + more, tiny)
    ahues_tisseur = less * (more / scale) <= xp.maximum(eps * (small * (large / scale)), floor)
    negligible = xp.logical_or(c <= floor, xp.logical_and(c <= eps * size, ahues_tisseur))
    band = band._replace(below=xp.where(negligible, xp.zeros_like(c), band.below))
    negligible = xp.concatenate([negligible, xp.zeros_like(negligible)], axis=-1)
    column = xp.arange(2 * n)
    below = xp.arange(n + 2)[:, None] - xp.where(column < n, column, n + 2)
    drop = xp.logical_or(below > 1, xp.logical_and(below == 1, negligible[:, None, :]))
    return xp.where(drop, xp.zeros_like(W), W), band


# --- one sweep --------------------------------------------------------------------------------------------------------


def _plan(xp: Any, band: _Band, links: _Links, age: Array) -> Array:
    """What a sweep does at row k, shape (batch, n, 4): ``[x, 0]`` starts a bulge with x, ``[0, 1]`` chases one."""
    a, b, c = band
    n = a.shape[-1]
    rows = xp.arange(n, dtype="int32")
    here_or_below = xp.logical_and(links.ends[:, None, :], rows >= rows[:, None])
    end = xp.min(xp.where(here_or_below, rows, n - 1), axis=-1)
    re, im = _shifts(xp, band, age)
    re, im = xp.take_along_axis(re, end, axis=-1), xp.take_along_axis(im, end, axis=-1)

    scale = xp.abs(a - re) + im + xp.abs(c)
    scale = xp.where(scale > 0, scale, xp.ones_like(scale))
    c_scaled = c / scale
    x0 = c_scaled * b + (a - re) * ((a - re) / scale) + im * (im / scale)
    x1 = c_scaled * ((a - re) + (next_entries(xp, a) - re))
    x2 = c_scaled * next_entries(xp, c)
    zero = xp.zeros_like(a)
    starts = [xp.where(links.first, x, zero) for x in (x0, x1, x2)]
    return xp.stack([*starts, xp.cast(links.inner, a.dtype)], axis=-1)


def _shifts(xp: Any, band: _Band, age: Array) -> tuple[Array, Array]:
    """Shifts ``re + i im`` and ``re - i im`` for a block with last row k, shape (batch, n) each.

    They are the eigenvalues of its last 2x2 block if these are complex, else twice the one nearer to ``T[k, k]``. A
    block that has kept its last row for ten sweeps (cyclic permutations would for ever) gets once the eigenvalues of
    ``[[d + 0.75 s, -0.4375 s], [s, d + 0.75 s]]`` with the size s of its last two subdiagonal entries: EISPACK's and
    LAPACK's choice.
    """
    d = band.diagonal
    a, b, c = (previous_entries(xp, x) for x in band)
    s = xp.abs(c) + xp.abs(previous_entries(xp, c))
    exceptional = age % _SWEEPS_BEFORE_EXCEPTION == 0
    a, b = xp.where(exceptional, d + 0.75 * s, a), xp.where(exceptional, -0.4375 * s, b)
    c, d = xp.where(exceptional, s, c), xp.where(exceptional, d + 0.75 * s, d)

    scale = xp.abs(a) + xp.abs(b) + xp.abs(c) + xp.abs(d)
    unit = xp.where(scale > 0, scale, xp.ones_like(scale))
    half_gap = 0.5 * (a / unit - d / unit)
    discriminant = half_gap * half_gap + (b / unit) * (c / unit)
    root = xp.sqrt(xp.abs(discriminant)) * scale
    mean = 0.5 * a + 0.5 * d
    nearer = xp.where(half_gap > 0, mean - root, mean + root)
    is_complex = discriminant < 0
    return xp.where(is_complex, mean, nearer), xp.where(is_complex, root, xp.zeros_like(root))


def _chase(xp: Any, plan: Array, k: Any, W: Array, bulge: Array) -> tuple[Array, Array]:
    """Applies the reflector of rows ``k, k+1, k+2`` to T from both sides and to Z^T from the left.

    The bulge, ``T[k : k+3, k-1]``, comes from the step before instead of from W: XLA would read it from W in the same
    operation that overwrites W, and copy W in every step.
    """
    batch, height, width = xp.shape(W)
    zero = k - k  # XLA wants all indices of one integer type
    todo = xp.slice(plan, (zero, k, zero), (batch, 1, 4))[:, 0]
    v, tau = _reflector(xp, todo[:, :3] + todo[:, 3:] * bulge)
    v0, v1, v2 = v[:, :1, None], v[:, 1:2, None], v[:, 2:, None]
    tau = tau[:, :, None]

    rows = xp.slice(W, (zero, k, zero), (batch, 3, width))
    product = tau * (v0 * rows[:, :1] + v1 * rows[:, 1:2] + v2 * rows[:, 2:])
    W = xp.slice_update(W, (zero, k, zero), rows - v[:, :, None] * product)

    columns = xp.slice(W, (zero, zero, k), (batch, height, 3))
    product = tau * (v0 * columns[:, :, :1] + v1 * columns[:, :, 1:2] + v2 * columns[:, :, 2:])
    W = xp.slice_update(W, (zero, zero, k), columns - product * v[:, None, :])
    return W, xp.slice(W, (zero, k + 1, k), (batch, 3, 1))[:, :, 0]


def _reflector(xp: Any, x: Array) -> tuple[Array, Array]:
    """``v, tau`` with ``(I - tau v v^T) x`` zero but for its first entry; ``v[0] = 1``; x has shape (batch, 3).

    Written out for three entries, because a loop step on CPU costs as much as its number of separate reductions.
    ``tau = 0`` exactly where nothing is to be annihilated.
    """
    x0, x1, x2 = x[:, :1], x[:, 1:2], x[:, 2:]
    size = xp.maximum(xp.abs(x0), xp.maximum(xp.abs(x1), xp.abs(x2)))
    needed = xp.maximum(xp.abs(x1), xp.abs(x2)) > 0
    size = xp.where(needed, size, xp.ones_like(size))
    x0, x1, x2 = x0 / size, x1 / size, x2 / size
    norm = xp.sqrt(x0 * x0 + x1 * x1 + x2 * x2)
    beta = xp.where(needed, xp.where(x0 < 0, norm, -norm), xp.ones_like(norm))
    v0 = xp.where(needed, x0 - beta, xp.ones_like(norm))
    v = xp.concatenate([xp.ones_like(x0), x1 / v0, x2 / v0], axis=-1)
    return v, xp.where(needed, -v0 / beta, xp.zeros_like(beta))
