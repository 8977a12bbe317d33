"""Training and validation data as arrays with the axes in the order in which the compiled loop reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from schurfire.errors import invalid


class Samples(NamedTuple):
    """u (N, n_u, S), y (N, n_y, S) and the weights (N, S) of the samples in the loss, None if all count the same.

    Data that the replicas do not share have the replicas as a last axis.
    """

    u: Any
    y: Any
    weights: Any


@dataclass(frozen=True, eq=False)
class Partition:
    """Checked data: u (R, S, N, n_u), y (R, S, N, n_y), mask (R, S, N) or None; R = 1 where replicas share them."""

    u: np.ndarray
    y: np.ndarray
    mask: np.ndarray | None
    replicas: int | None  # None: shared

    @property
    def sequences(self) -> int:
        """S."""
        return self.u.shape[1]

    def samples(self, replicas: np.ndarray) -> Samples:
        """The arrays with time first, then channels, sequences and these replicas, so that lanes run over the last."""
        chosen = 0 if self.replicas is None else replicas  # an index drops the axis of the replicas
        u, y = (np.ascontiguousarray(x.transpose(2, 3, 1, 0)[..., chosen]) for x in (self.u, self.y))
        if self.mask is None:
            return Samples(u, y, None)
        weights = self.mask.transpose(2, 1, 0)[..., chosen].astype(self.y.dtype)
        return Samples(u, y, np.ascontiguousarray(weights))


def partition(data: Any, name: str) -> Partition:
    """Reads ``Sequences``, a list of them (one for each replica), or arrays ``(u, y)`` with 3 or 4 axes.

    Args:
        data: see ``train``.
        name: "training" or "validation", for the messages.

    Raises:
        InvalidInputError: the arrays have the wrong rank, type or length, hold NaN or infinity, or are empty.
    """
    if hasattr(data, "stacked"):
        stacked = data.stacked()
        u, y, mask, own = stacked.u[None], stacked.y[None], np.asarray(stacked.mask)[None], False
    elif isinstance(data, Sequence) and data and all(hasattr(x, "stacked") for x in data):
        u, y, mask = _joined([x.stacked() for x in data], name)
        own = True
    elif isinstance(data, tuple) and len(data) == 2:
        u, y = (np.asarray(x) for x in data)
        if u.ndim not in (3, 4) or u.ndim != y.ndim:
            fix = "Give u the shape (S, N, n_u) or (R, S, N, n_u), and y as many axes."
            raise invalid(name, "arrays of 3 axes, or of 4 for data of each replica", f"{u.shape} and {y.shape}", fix)
        own, mask = u.ndim == 4, None
        u, y = (u, y) if own else (u[None], y[None])
    else:
        fix = "Pass schurfire.data.Sequences, a list of them, or a tuple of arrays (u, y)."
        raise invalid(name, "sequences of inputs and outputs", type(data).__name__, fix)
    _check(u, y, name)
    if mask is not None and mask.all():
        mask = None
    return Partition(u, y, mask, len(u) if own else None)


def require_variation(part: Partition, name: str) -> None:
    """Refuses a constant output channel, which has nothing to learn from and no normalised error."""
    y = part.y if part.mask is None else np.where(part.mask[..., None], part.y, np.nan)
    constant = np.nanmax(y, axis=(1, 2)) == np.nanmin(y, axis=(1, 2))
    if constant.any():
        replica, channel = np.argwhere(constant)[0]
        where = f"output channel {channel}" + (f" of replica {replica}" if part.replicas else "")
        raise invalid(
            f"the outputs of {name}", "varying", f"a constant {where}", "Its NMSE is undefined; leave it out."
        )


def _joined(stacks: list[Any], name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The stacks of all replicas with a leading axis, padded to the longest."""
    counts = {(len(x.u), x.u.shape[-1], x.y.shape[-1]) for x in stacks}
    if len(counts) > 1:
        fix = "Train them one after the other."
        raise invalid(name, "of one shape for all replicas", f"(sequences, inputs, outputs) {sorted(counts)}", fix)
    longest = max(x.u.shape[1] for x in stacks)

    def padded(x: np.ndarray) -> np.ndarray:
        return np.pad(x, [(0, 0), (0, longest - x.shape[1]), *[(0, 0)] * (x.ndim - 2)])

    u, y, mask = (np.stack([padded(np.asarray(x)) for x in field]) for field in zip(*stacks, strict=True))
    return u, y, mask


def _check(u: np.ndarray, y: np.ndarray, name: str) -> None:
    if u.shape[:-1] != y.shape[:-1]:
        shapes = f"{u.shape[-3:-1]} and {y.shape[-3:-1]}" if len(u) == len(y) else f"{len(u)} and {len(y)} replicas"
        fix = "Inputs and outputs are recorded together."
        raise invalid(name, "inputs and outputs of the same number of sequences and samples", shapes, fix)
    if 0 in u.shape or 0 in y.shape:
        raise invalid(name, "at least one sample of one input and output", f"shapes {u.shape[1:]} and {y.shape[1:]}")
    for x, kind in ((u, "inputs"), (y, "outputs")):
        label = f"the {kind} of {name}"
        if x.dtype.name not in ("float32", "float64"):
            raise invalid(label, "a real array of dtype float32 or float64", f"dtype {x.dtype}", "Cast it yourself.")
        finite = np.isfinite(x)
        if not finite.all():
            replica, sequence, index, channel = (int(i) for i in np.argwhere(~finite)[0])
            value = x[replica, sequence, index, channel]
            of = f"replica {replica}, " if len(x) > 1 else ""
            raise invalid(label, "finite", f"{value} at {of}sequence {sequence}, channel {channel}, index {index}")
