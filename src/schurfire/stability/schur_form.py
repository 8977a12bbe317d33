"""A stable matrix as a pair of Schur factors."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from schurfire.arrays import concrete, square_matrices
from schurfire.errors import invalid
from schurfire.regions import UNIT_DISC, Region, check_region

if TYPE_CHECKING:
    from schurfire.stability.certificate import Certificate


@dataclass(frozen=True, eq=False)
class SchurForm:
    """The matrix ``Z T Z^-1`` (or a stack of them) as its quasi-triangular and its orthogonal factor.

    The eigenvalues of an exactly quasi-triangular T are those of its diagonal blocks, and whether a block of
    floating-point numbers lies in the region is two inequalities in rational arithmetic. So a pair can be proven
    stable whatever its conditioning, while rounding ``Z T Z^T`` to an array may move eigenvalues across the boundary.

    Attributes:
        T: quasi-triangular, shape (..., n, n): zero below its 1x1 and 2x2 diagonal blocks.
        Z: orthogonal up to rounding, shape (..., n, n), of the same dtype.
        region: where the eigenvalues are meant to live; ``certify`` tells whether they do.
        source: what ``matrix`` returns instead of the recomposed product, for pairs that were computed from an array
            that is itself proven stable. Where its eigenvalues are ill-conditioned, Z T Z^-1 may be some way from it.

    Raises:
        InvalidInputError: T is not exactly quasi-triangular, Z is not orthogonal, or their shapes or dtypes differ.

    >>> import numpy as np
    >>> form = SchurForm(np.array([[0.5, 9.0], [0.0, 0.5]]), np.eye(2))
    >>> print(form.certify())
    stable: both eigenvalues in |z| < 1, at least 0.499 inside; proven exactly by 2 diagonal blocks
    """

    T: np.ndarray
    Z: np.ndarray
    region: Region = UNIT_DISC
    source: np.ndarray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_region(self.region)
        T, Z = (_read_only(concrete(square_matrices(getattr(self, name), name), name)) for name in "TZ")
        if T.shape != Z.shape or T.dtype != Z.dtype:
            raise invalid("T and Z", "of one shape and dtype", f"{T.shape} {T.dtype} and {Z.shape} {Z.dtype}")
        _require_quasi_triangular(T)
        _require_orthogonal(Z)
        object.__setattr__(self, "T", T)
        object.__setattr__(self, "Z", Z)
        if self.source is not None:
            source = _read_only(concrete(square_matrices(self.source, "source"), "source"))
            _require_alike(source, T)
            object.__setattr__(self, "source", source)

    @property
    def matrix(self) -> np.ndarray:
        """The array ``Z T Z^T``, rounded; or ``source``, bit for bit, if there is one.

        The recomposed array need not be stable, see ``certify(form.matrix)``; for a plain array that is, use
        ``nearest_provable``.
        """
        return self.Z @ self.T @ np.swapaxes(self.Z, -1, -2) if self.source is None else self.source

    @property
    def blocks(self) -> tuple[np.ndarray, ...]:
        """The diagonal blocks of T, from top left to bottom right, of shape (1, 1) or (2, 2); for a single pair."""
        if self.T.ndim != 2:
            raise invalid("form", "a single pair", f"a stack of shape {self.T.shape[:-2]}", "Index it first: form[0].")
        return diagonal_blocks(self.T)

    def certify(self) -> "Certificate":
        """The exact proof that T is stable, or the block that is not. Same as ``schurfire.certify(form)``."""
        from schurfire.stability.certificate import certify

        return certify(self, self.region)

    def __len__(self) -> int:
        if self.T.ndim == 2:
            raise TypeError("A single SchurForm has no length; only a stack of them has.")
        return len(self.T)

    def __getitem__(self, index: int | slice | tuple) -> "SchurForm":
        if self.T.ndim == 2:
            raise TypeError("A single SchurForm cannot be indexed; only a stack of them can.")
        source = None if self.source is None else self.source[index]
        return SchurForm(self.T[index], self.Z[index], self.region, source)

    def __iter__(self) -> Iterator["SchurForm"]:
        return (self[i] for i in range(len(self)))


def diagonal_blocks(T: np.ndarray) -> tuple[np.ndarray, ...]:
    """The diagonal blocks of one quasi-triangular matrix."""
    starts_pair = np.append(np.diagonal(T, -1) != 0, False)
    blocks, i = [], 0
    while i < len(T):
        order = 2 if starts_pair[i] else 1
        blocks.append(T[i : i + order, i : i + order])
        i += order
    return tuple(blocks)


def is_quasi_triangular(T: np.ndarray) -> bool:
    """Whether all matrices of a stack are zero below 1x1 and 2x2 diagonal blocks, exactly."""
    below = np.diagonal(T, -1, -2, -1) != 0
    return not np.tril(T, -2).any() and not (below[..., :-1] & below[..., 1:]).any()


def _require_quasi_triangular(T: np.ndarray) -> None:
    if not is_quasi_triangular(T):
        fix = "Compute it with schurfire.real_schur, or zero what rounding left below the blocks."
        raise invalid("T", "quasi-triangular", "non-zero entries below its 1x1 and 2x2 diagonal blocks", fix)


def _require_orthogonal(Z: np.ndarray) -> None:
    n = Z.shape[-1]
    if n == 0:
        return
    residual = np.abs(np.swapaxes(Z, -1, -2) @ Z - np.eye(n, dtype=Z.dtype)).sum(axis=-1).max()
    # LAPACK's own tests accept 30 n eps; the row-sum norm used here can be sqrt(n) larger than the 2-norm.
    tolerance = 30 * n**1.5 * np.finfo(Z.dtype).eps
    if not residual <= tolerance:
        fix = "Pass it through schurfire.nearest_orthogonal first."
        raise invalid("Z", f"orthogonal to {tolerance:.1e}", f"a residual of {residual:.1e}", fix)


def _require_alike(source: np.ndarray, T: np.ndarray) -> None:
    if source.shape != T.shape or source.dtype != T.dtype:
        what = f"an array of shape {T.shape} and dtype {T.dtype}"
        raise invalid("source", what, f"shape {source.shape} and dtype {source.dtype}")


def _read_only(array: np.ndarray) -> np.ndarray:
    copy = array.copy()
    copy.flags.writeable = False
    return copy
