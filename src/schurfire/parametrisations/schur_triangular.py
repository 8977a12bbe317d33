"""Schur, triangular: the quasi-triangular factor alone.

The orthogonal factor of a state matrix is redundant where input and output matrices are free:
(Z T Z^T, B, C) and (T, Z^T B, C Z) have the same input-output map.
"""

from typing import ClassVar

import numpy as np

from schurfire.kernels.quasi_triangular import subdiagonal
from schurfire.namespaces import NUMPY, Array, namespace
from schurfire.parametrisations.base import Parametrisation, Weights
from schurfire.parametrisations.even_blocks import in_block, interleave, stable_blocks, within_structure
from schurfire.parametrisations.starts import even_schur


class SchurTriangular(Parametrisation):
    """``upper`` (n (n + 1) / 2,) and ``lower`` (floor(n/2),): the entries of a quasi-triangular T.

    ``lower`` holds ``T[1, 0], T[3, 2], ...``, the entries below the diagonal of the 2x2 blocks. ``upper`` holds the
    upper triangle, folded: with ``h = ceil(n / 2)`` and o = 1 if n is even, else 0, it is an (h, n + o) array R with

        T[i, j] = R[i, j + o]    for i < h,        T[n - o - i, n - 1 - j] = R[i, j]    for the rows from h on,

    so that row i of R holds row i of T and, mirrored, row n - o - i. (Unfolding it takes slices and a mirror, which
    compile to one loop; gathering from a packed vector has a scatter as its derivative.)

    Stable in exact arithmetic, in the precision of the weights. Every stable matrix is reached.

    >>> SchurTriangular(5).count(), SchurTriangular(6).count()
    (17, 24)
    """

    name: ClassVar[str] = "schur-triangular"
    form: ClassVar[str] = "quasi-triangular"

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """``upper``, and ``lower`` unless n = 1."""
        n = self.state_size
        return {"upper": (n * (n + 1) // 2,)} | ({"lower": (n // 2,)} if n > 1 else {})

    def matrix(self, weights: Weights) -> Array:
        """T, with blocks outside of the region replaced."""
        return stable_blocks(self._assembled(weights), self.region)

    def matrix_of_retracted(self, weights: Weights) -> Array:
        """T."""
        return self._assembled(weights)

    def retract(self, weights: Weights) -> Weights:
        """The entries of ``matrix``."""
        return self._taken_apart(self.matrix(weights))

    def honours(self, known: np.ndarray) -> bool:
        """Any entries above the diagonal blocks, and zeros below them."""
        below = ~within_structure(np, self.state_size)
        return bool(np.isnan(known[in_block(np, self.state_size)]).all() and not np.nan_to_num(known[below]).any())

    def _assembled(self, weights: Weights) -> Array:
        upper, n = weights["upper"], self.state_size
        xp, o, h = namespace(upper), 1 - n % 2, (n + 1) // 2
        R = xp.reshape(upper, (*upper.shape[:-1], h, n + o))
        bottom = xp.flip(xp.flip(R[..., 1 - o :, :n], axis=-1), axis=-2)
        T = xp.concatenate([R[..., o:], bottom], axis=-2)
        rows, columns = xp.arange(n)[:, None], xp.arange(n)
        T = xp.where(columns >= rows, T, xp.zeros_like(T))
        if n == 1:
            return T
        lower = weights["lower"]
        below = interleave(xp, lower, xp.zeros_like(lower))
        if n % 2:
            below = xp.concatenate([below, xp.zeros_like(lower[..., :1])], axis=-1)
        return xp.where((columns < rows) & in_block(xp, n), below[..., None, :], T)

    def _taken_apart(self, T: Array) -> Weights:
        xp, n = namespace(T), self.state_size
        o, h = 1 - n % 2, (n + 1) // 2
        rows, columns = xp.arange(n)[:, None], xp.arange(n)
        triangle = xp.where(columns >= rows, T, xp.zeros_like(T))
        top, bottom = triangle[..., :h, :], xp.flip(xp.flip(triangle[..., h:, :], axis=-1), axis=-2)
        if o:
            R = xp.concatenate([xp.zeros_like(top[..., :1]), top], axis=-1)
            R = R + xp.concatenate([bottom, xp.zeros_like(top[..., :1])], axis=-1)
        else:
            R = top + xp.concatenate([xp.zeros_like(top[..., :1, :]), bottom], axis=-2)
        weights = {"upper": xp.reshape(R, (*T.shape[:-2], n * (n + 1) // 2))}
        return weights | ({"lower": subdiagonal(xp, T)[..., : n - 1 : 2]} if n > 1 else {})

    def _weights_of(self, A: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        T, Z = even_schur(A)
        T = np.where(within_structure(NUMPY, len(A)), T, 0.0)
        return self._taken_apart(stable_blocks(T.astype(A.dtype), self.region)), Z.astype(A.dtype)
