"""Modal: a block-diagonal matrix, O(n) a step of the recurrence."""

import math
from typing import Any, ClassVar

import numpy as np

from schurfire.errors import invalid
from schurfire.namespaces import Array, namespace
from schurfire.parametrisations.base import Parametrisation, Weights
from schurfire.parametrisations.even_blocks import in_block, stable_blocks
from schurfire.regions import Disc


class Modal(Parametrisation):
    """``blocks`` (floor(n/2), 2, 2), each any real 2x2 matrix, and ``last`` (1,) if n is odd: 2 n weights, or 2 n - 1.

    A block moves freely between a complex pair and two real eigenvalues. Every diagonalisable matrix is reached by a
    change of coordinates. Stable in exact arithmetic, in the precision of the weights: blocks outside of the region
    are replaced by the nearest stable ones.

    >>> Modal(5).count(), Modal(6).count()
    (9, 12)
    """

    name: ClassVar[str] = "modal"
    form: ClassVar[str] = "block-diagonal"

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """``blocks``, unless n = 1, and ``last`` if n is odd."""
        pairs, odd = divmod(self.state_size, 2)
        return ({"blocks": (pairs, 2, 2)} if pairs else {}) | ({"last": (1,)} if odd else {})

    def matrix(self, weights: Weights) -> Array:
        """The block-diagonal matrix, with blocks outside of the region replaced."""
        return stable_blocks(self._assembled(weights), self.region)

    def matrix_of_retracted(self, weights: Weights) -> Array:
        """The block-diagonal matrix."""
        return self._assembled(weights)

    def retract(self, weights: Weights) -> Weights:
        """The blocks of ``matrix``."""
        return self._taken_apart(self.matrix(weights))

    def honours(self, known: np.ndarray) -> bool:
        """Zeros outside of the blocks."""
        inside = in_block(np, self.state_size)
        return bool(np.isnan(known[inside]).all() and not np.nan_to_num(known[~inside]).any())

    def _assembled(self, weights: Weights) -> Array:
        if self.state_size == 1:
            return weights["last"][..., None]
        blocks = weights["blocks"]
        xp, leading, n = namespace(blocks), blocks.shape[:-3], self.state_size
        spread = blocks[..., :, :, None, :]
        spread = xp.where(_same_block(xp, n // 2), spread, xp.zeros_like(spread))
        T = xp.reshape(spread, (*leading, n - n % 2, n - n % 2))
        if n % 2:
            edge = xp.zeros_like(T[..., :1])
            bottom = xp.concatenate([xp.swapaxes(edge, -1, -2), weights["last"][..., None]], axis=-1)
            T = xp.concatenate([xp.concatenate([T, edge], axis=-1), bottom], axis=-2)
        return T

    def _taken_apart(self, T: Array) -> Weights:
        xp, n, pairs = namespace(T), self.state_size, self.state_size // 2
        weights = {"last": T[..., -1, -1:]} if n % 2 else {}
        if pairs:
            tiles = xp.reshape(T[..., : 2 * pairs, : 2 * pairs], (*T.shape[:-2], pairs, 2, pairs, 2))
            tiles = xp.where(_same_block(xp, pairs), tiles, xp.zeros_like(tiles))
            weights["blocks"] = xp.sum(tiles, axis=-2)  # of one block and zeros
        return weights

    def _weights_of(self, A: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        if not A[~in_block(np, len(A))].any():
            T, V = A, np.eye(len(A), dtype=A.dtype)
        else:
            T, V = _block_diagonalised(A, self.region)
        return self._taken_apart(stable_blocks(T, self.region)), V


def _same_block(xp: Any, pairs: int) -> Array:
    return (xp.arange(pairs)[:, None] == xp.arange(pairs))[:, None, :, None]


def _block_diagonalised(A: np.ndarray, region: Disc) -> tuple[np.ndarray, np.ndarray]:
    """``A V = V T`` with T block-diagonal, complex pairs first.

    Raises:
        InvalidInputError: V is so ill-conditioned that more than half of the digits would be lost.
    """
    B = A.astype(np.float64) - region.centre * np.eye(len(A))
    eigenvalues, vectors = np.linalg.eig(B)
    T, V, k = np.zeros_like(B), np.empty_like(B), 0
    for value, v in zip(eigenvalues, vectors.T, strict=True):
        if value.imag > 0:
            v = v * np.exp(-0.5j * np.angle(v @ v))  # noqa: PLW2901 - makes real and imaginary part orthogonal
            T[k : k + 2, k : k + 2] = [[value.real, value.imag], [-value.imag, value.real]]
            V[:, k], V[:, k + 1] = v.real, v.imag
            k += 2
    for value, v in zip(eigenvalues, vectors.T, strict=True):
        if value.imag == 0:
            T[k, k], V[:, k] = value.real, v.real
            k += 1
    lengths = np.linalg.norm(V, axis=0)
    T, V = T * (lengths[:, None] / lengths), V / lengths
    condition = np.linalg.cond(V)
    if not condition <= 1 / math.sqrt(np.finfo(A.dtype).eps):
        raise invalid(
            "A",
            f"diagonalisable in {A.dtype}, with eigenvectors of condition up to {np.finfo(A.dtype).eps ** -0.5:.0e}",
            f"one with eigenvectors of condition {condition:.1e}",
            "Use 'schur-triangular', which holds every stable matrix.",
        )
    return (T + region.centre * np.eye(len(A))).astype(A.dtype), V.astype(A.dtype)
