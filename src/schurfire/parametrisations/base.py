"""What a parametrisation can do."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from schurfire.arrays import square_matrix
from schurfire.errors import invalid
from schurfire.kernels.guard import stable_or_replaced
from schurfire.namespaces import Array, dtype_name, namespace
from schurfire.parametrisations.starts import random_matrix, require_stable
from schurfire.regions import UNIT_DISC, Disc

Weights = dict[str, Array]


@dataclass(frozen=True)
class Parametrisation(ABC):
    """A way to write matrices of order ``state_size`` as weights.

    All functions of weights are pure, take leading batch axes and run on NumPy arrays and on tensors, inside ``jit``
    and ``vmap`` too, in the precision of the weights.

    Attributes:
        state_size: order n of the matrix, at least 1.
        region: the open disc for the eigenvalues.
        name: how users call it.
        form: which entries of the matrix can be non-zero: ``"dense"``, ``"quasi-triangular"``, ``"block-diagonal"``.
        is_proven: whether ``matrix`` is strictly stable, rigorously, whatever the weights hold.
    """

    state_size: int
    region: Disc = UNIT_DISC
    name: ClassVar[str]
    form: ClassVar[str] = "dense"
    is_proven: ClassVar[bool] = True

    def __post_init__(self) -> None:
        n = self.state_size
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise invalid("state_size", "a whole number of at least 1", repr(n))
        if not isinstance(self.region, Disc):
            raise invalid("region", "a schurfire.Disc", repr(self.region), "Recurrences run in discrete time.")

    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The names and shapes of the weights, without batch axes; no weight is empty."""

    def count(self) -> int:
        """How many numbers the weights hold."""
        return sum(math.prod(shape) for shape in self.shapes().values())

    def start(self, rng: np.random.Generator, radius: float, dtype: str = "float32") -> dict[str, np.ndarray]:
        """Weights of a random stable matrix ``Q diag(blocks) Q^T`` with Q orthogonal.

        Each two states are, with equal chances, a complex pair of any angle or two real eigenvalues of any sign. The
        distances of the eigenvalues to the centre of the region are uniform in (0, radius].

        Raises:
            InvalidInputError: ``radius`` is not positive or exceeds that of the region; another dtype.
        """
        if not 0 < radius <= self.region.radius:
            raise invalid("radius", f"positive and at most the region's, {self.region.radius:g}", radius)
        if np.dtype(dtype).name not in ("float32", "float64"):
            raise invalid("dtype", "float32 or float64", repr(dtype))
        A = random_matrix(rng, self.state_size, radius, self.region.centre).astype(dtype)
        return self._weights_of(stable_or_replaced(A, self.region))[0]

    def start_from(self, A: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Weights of a given matrix, and V: the matrix in use is ``V^-1 A V``, up to rounding.

        Args:
            A: shape (n, n), float32 or float64, which is the precision of the weights.

        Raises:
            InvalidInputError: A has another order; it is not stable though ``is_proven``; or it cannot be written this
                way in its precision.
        """
        A = square_matrix(A, "A")
        if len(A) != self.state_size:
            raise invalid("A", f"of shape {(self.state_size, self.state_size)}", f"shape {A.shape}")
        if self.is_proven:
            require_stable(A, self.region)
        weights, V = self._weights_of(A)
        self._require_reached(A, weights, V)
        return weights, V

    @abstractmethod
    def _weights_of(self, A: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """``start_from`` for a stable A, without its checks."""

    @abstractmethod
    def retract(self, weights: Weights) -> Weights:
        """The weights after an optimizer's update: the same matrix, if it is stable, in weights as they should be.

        Idempotent, bit for bit. Not differentiable.
        """

    @abstractmethod
    def matrix(self, weights: Weights) -> Array:
        """The matrix that the recurrence runs on, shape (..., n, n); differentiable.

        Where weights had to be replaced for the sake of stability, their derivative is zero. After ``retract`` no
        weight has to be.
        """

    def matrix_of_retracted(self, weights: Weights) -> Array:
        """``matrix``, bit for bit, of weights that ``retract`` returned, without the price of its checks."""
        return self.matrix(weights)

    def basis(self, weights: Weights) -> Array | None:  # noqa: ARG002
        """An orthogonal Z, (..., n, n), where the state matrix is meant to be ``Z matrix Z^T``; else None."""
        return None

    def basis_of_retracted(self, weights: Weights) -> Array | None:
        """``basis``, bit for bit, of weights that ``retract`` returned, without the price of its checks."""
        return self.basis(weights)

    def penalty(self, weights: Weights) -> Array:
        """What is to be added to the loss, shape (...)."""
        name, shape = next(iter(self.shapes().items()))
        weight = weights[name]
        return namespace(weight).zeros(weight.shape[: len(weight.shape) - len(shape)], dtype=dtype_name(weight))

    def honours(self, known: np.ndarray) -> bool:
        """Whether ``matrix`` stays stable with its entries fixed to those of ``known``, (n, n), that are not NaN."""
        return bool(np.isnan(known).all())

    def _require_reached(self, A: np.ndarray, weights: dict[str, np.ndarray], V: np.ndarray) -> None:
        A64, V64, X = (M.astype(np.float64) for M in (A, V, self.matrix(weights)))
        size = np.linalg.norm(V64) * max(np.linalg.norm(A64), self.region.radius)
        error = np.linalg.norm(A64 @ V64 - V64 @ X) / size
        if not error <= math.sqrt(np.finfo(A.dtype).eps):
            raise invalid(
                "A",
                f"a matrix that {self.name!r} can hold in {A.dtype}",
                f"one that it changes by {error:.1e} of its norm",
                "Its stability is too sensitive to rounding: use float64 or 'schur-triangular'.",
            )
