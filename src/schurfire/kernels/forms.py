"""The forms of a state matrix: which of its entries a recurrence reads, and how independent 2x2 blocks are cut out."""

from schurfire.namespaces import Array, namespace

FORMS = ("dense", "quasi-triangular", "block-diagonal")


def used_entries(A: Array, form: str) -> Array:
    """A with zeros in place of the entries that the form does not have, whatever they hold.

    Quasi-triangular: entries with ``j >= i - 1`` stay. Block-diagonal: those of the 2x2 blocks that start in the even
    rows 0, 2, 4, ... (and the last diagonal entry alone if n is odd).
    """
    if form == "dense":
        return A
    xp = namespace(A)
    index = xp.arange(A.shape[-1])
    i, j = index[:, None], index[None, :]
    used = j >= i - 1 if form == "quasi-triangular" else i // 2 == j // 2
    return xp.where(used, A, xp.zeros_like(A))


def transposed(A: Array | None) -> Array | None:
    """The transposes of a stack of matrices; None stays None."""
    return None if A is None else namespace(A).swapaxes(A, -1, -2)


def diagonal_pairs(A: Array) -> Array:
    """The 2x2 blocks of block-diagonal matrices, (..., n, n) to (..., P, 2, 2); an odd n gets a zero row and column."""
    xp, n = namespace(A), A.shape[-1]
    if n % 2:
        A = xp.pad(A, [(0, 0)] * (len(A.shape) - 2) + [(0, 1), (0, 1)])
    P, lead = (n + 1) // 2, tuple(A.shape[:-2])
    blocks = xp.diagonal(xp.reshape(A, (*lead, P, 2, P, 2)), axis1=-4, axis2=-2)  # (..., 2, 2, P)
    return xp.moveaxis(blocks, -1, -3)


def vector_pairs(x: Array, axis: int) -> Array:
    """Cuts the axis of length n, counted from the front, into (P, 2); a zero is added if n is odd."""
    xp, n = namespace(x), x.shape[axis]
    if n % 2:
        x = xp.pad(x, [(0, n % 2 if k == axis else 0) for k in range(len(x.shape))])
    shape = tuple(xp.shape(x))
    return xp.reshape(x, (*shape[:axis], (n + 1) // 2, 2, *shape[axis + 1 :]))


def pairs_joined(x: Array, axis: int, n: int) -> Array:
    """Undoes ``vector_pairs``: the axes (P, 2) at ``axis`` and after it become one of length n."""
    xp = namespace(x)
    shape = tuple(xp.shape(x))
    x = xp.reshape(x, (*shape[:axis], 2 * shape[axis], *shape[axis + 2 :]))
    return x[(slice(None),) * axis + (slice(0, n),)] if n % 2 else x
