"""Entries of A, B, C, D that are known and therefore not learned."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schurfire.errors import invalid
from schurfire.namespaces import Array, dtype_name, keras_namespace


@dataclass(frozen=True)
class KnownEntries:
    """For each of ``A, B, C, D`` an array that broadcasts to its shape, NaN (or None) where an entry is free.

    Attributes:
        entries: the arrays, float64.

    Raises:
        InvalidInputError: another name, an infinite entry, or what is no array of numbers.

    >>> known = KnownEntries.of({"D": 0.0, "A": [[0.5, None]]})
    >>> known.config()
    {'D': 0.0, 'A': [[0.5, None]]}
    >>> known.fill("A", np.ones((2, 2)))
    array([[0.5, 1. ],
           [0.5, 1. ]])
    """

    entries: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Mapping[str, Any] | None) -> "KnownEntries":
        """Checks and copies what a user gave."""
        entries = {}
        for name, values in (known or {}).items():
            if name not in ("A", "B", "C", "D"):
                raise invalid("known", "a dict with the keys 'A', 'B', 'C', 'D' or some of them", f"the key {name!r}")
            try:
                array = np.array(values, np.float64)
            except (TypeError, ValueError):
                fix = "Write NaN or None for a free entry."
                raise invalid(f"known[{name!r}]", "an array of numbers", repr(values), fix) from None
            if np.isinf(array).any():
                raise invalid(f"known[{name!r}]", "finite, NaN where an entry is free", "infinite values")
            entries[name] = array
        return cls(entries)

    def config(self) -> dict[str, Any]:
        """Nested lists of numbers, None where an entry is free."""
        return {name: _without_nan(x.tolist()) for name, x in self.entries.items()}

    def matrix(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """The known entries of one matrix in its full shape, NaN where an entry is free."""
        known = self.entries.get(name, np.array(np.nan))
        try:
            return np.broadcast_to(known, shape)
        except ValueError:
            raise invalid(f"known[{name!r}]", f"of shape {shape}", f"shape {known.shape}") from None

    def fill(self, name: str, X: np.ndarray) -> np.ndarray:
        """X with its known entries in place."""
        known = self.matrix(name, X.shape)
        return np.where(np.isnan(known), X, known.astype(X.dtype))

    def hold(self, name: str, X: Array) -> Array:
        """The tensor X with its known entries in place; they have gradient 0."""
        if name not in self.entries:
            return X
        xp = keras_namespace()
        known = self.matrix(name, tuple(X.shape))
        values = xp.convert_to_tensor(np.nan_to_num(known), dtype=dtype_name(X))
        return xp.where(xp.convert_to_tensor(np.isnan(known)), X, values)


def _without_nan(values: Any) -> Any:
    if isinstance(values, list):
        return [_without_nan(value) for value in values]
    return None if np.isnan(values) else values
