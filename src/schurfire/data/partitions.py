"""Training, validation and test data, and how recordings are cut into them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from schurfire.data.sequences import Sequences, require_same_channels
from schurfire.errors import invalid

_NAMES = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class Partitions:
    """Data to train on, to choose a model by, and to report.

    Attributes:
        train: what the loss is computed on.
        validation: what early stopping and the choice among models watch.
        test: what figures of merit are computed on; None if there is none.
        touching: whether sequence i of each partition goes on where sequence i of the one before ends, so that a
            model's state can be carried over.

    Raises:
        InvalidInputError: partitions of different channels, sampling time or dtype, or touching ones with different
            numbers of sequences.
    """

    train: Sequences
    validation: Sequences
    test: Sequences | None = None
    touching: bool = False

    def __post_init__(self) -> None:
        names = _NAMES if self.test is not None else _NAMES[:2]
        parts: dict[str, Sequences] = {name: getattr(self, name) for name in names}
        for name, part in parts.items():
            if not isinstance(part, Sequences):
                raise invalid(name, "a Sequences", type(part).__name__)
        require_same_channels(parts)
        if self.touching and len({len(part) for part in parts.values()}) > 1:
            counts = ", ".join(f"{len(part)} in {name}" for name, part in parts.items())
            raise invalid("touching partitions", "of as many sequences", counts)


def split(sequences: Sequences, amounts: tuple[Any, ...], by: str) -> Partitions:
    """See ``Sequences.split``; ``amounts`` are those of training, validation and test."""
    amounts = _checked(amounts)
    if by == "sequence":
        cuts = _cuts(amounts, len(sequences), "sequences")
        return _partitions([sequences[cut] for cut in cuts], touching=False)
    if by != "time":
        raise invalid("by", '"time" or "sequence"', repr(by))
    cuts = [_cuts(amounts, n, f"samples of sequence {i}") for i, n in enumerate(sequences.lengths)]
    return _partitions([_taken(sequences, part) for part in zip(*cuts, strict=True)], touching=True)


def _partitions(parts: list[Sequences], touching: bool) -> Partitions:
    return Partitions(parts[0], parts[1], parts[2] if len(parts) > 2 else None, touching)


def _checked(amounts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The amounts, without that of an empty test partition; all positive integers, or all positive shares of 1."""
    if not isinstance(amounts[2], bool) and amounts[2] == 0:
        amounts = amounts[:2]
    text = " and ".join(f"{name}={amount!r}" for name, amount in zip(_NAMES, amounts, strict=False))
    is_count = [isinstance(x, (int, np.integer)) and not isinstance(x, bool) for x in amounts]
    is_share = [isinstance(x, (float, np.floating)) and math.isfinite(x) for x in amounts]
    if not (all(is_count) or all(is_share)):
        raise invalid("the partitions", "all shares (floats) or all counts (integers)", text)
    for name, amount in zip(_NAMES, amounts, strict=False):
        if not amount > 0:
            raise invalid(name, "positive", repr(amount), "Only test may be None or 0.")
    if all(is_share) and not math.isclose(sum(amounts), 1.0, rel_tol=1e-9):
        raise invalid("the shares", "summing to 1", text)
    return amounts


def _cuts(amounts: tuple[Any, ...], total: int, what: str) -> list[slice]:
    """Where each partition begins and ends."""
    ends = np.cumsum(amounts)
    if isinstance(amounts[0], (float, np.floating)):
        ends = np.rint(ends / ends[-1] * total).astype(int)
    if ends[-1] > total:
        raise invalid("the partitions", f"of at most {total} {what} in all", f"{ends[-1]}")
    cuts = [slice(int(start), int(end)) for start, end in zip((0, *ends[:-1]), ends, strict=True)]
    for name, cut in zip(_NAMES, cuts, strict=False):
        if cut.start == cut.stop:
            fix = "Give it a larger share, or split by counts."
            raise invalid(name, f"at least one of the {total} {what}", "an empty partition", fix)
    return cuts


def _taken(sequences: Sequences, cuts: tuple[slice, ...]) -> Sequences:
    u, y = ([x[cut] for x, cut in zip(arrays, cuts, strict=True)] for arrays in (sequences.u, sequences.y))
    return Sequences(u, y, sequences.dt, sequences.input_names, sequences.output_names)
