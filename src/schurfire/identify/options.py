"""What a training can be told besides its model, its data and its optimizer."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schurfire.errors import invalid


@dataclass(frozen=True)
class EarlyStopping:
    """A replica stops after ``patience`` epochs in a row without an improvement of its validation loss.

    An epoch improves if ``loss < (1 - relative_delta) last - min_delta``, with ``last`` the loss of the last epoch that
    did. The weights that are kept are those of the least loss, whether or not it counted as an improvement.

    Args:
        patience: epochs, at least 1.
        min_delta: absolute improvement that counts.
        relative_delta: relative improvement that counts, below 1. A fixed ``min_delta`` as large as the loss that can
            be reached ends a training long before its optimum; a relative one does not.

    >>> EarlyStopping(patience=100, relative_delta=1e-3)
    EarlyStopping(patience=100, min_delta=0.0, relative_delta=0.001)
    """

    patience: int
    min_delta: float = 0.0
    relative_delta: float = 0.0

    def __post_init__(self) -> None:
        whole_number(self.patience, "patience")
        for name, value in (("min_delta", self.min_delta), ("relative_delta", self.relative_delta)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
                raise invalid(name, "a number of at least 0", repr(value))
        if self.relative_delta >= 1:
            raise invalid("relative_delta", "below 1", self.relative_delta, "A loss cannot improve by more than 100 %.")


@dataclass(frozen=True, eq=False)
class TrainingOptions:
    """The rarely changed choices of ``train``.

    Args:
        stopping: early stopping; None trains every replica to the last epoch and keeps its best weights.
        loss: name of a Keras loss, ``keras.losses.Loss``, or a function of ``(y_true, y_pred)`` whose value has the
            shape (S, N). Its mean over the samples is minimised.
        batch_size: sequences in a batch, drawn anew in every epoch; None takes all of them at once.
        seed: of the replicas' initial weights and of the batches.
        checkpoint: folder to keep the state of the training in, and to resume it from.
        progress: whether to show a progress bar; None shows it in a terminal only.
        start: initial weights of each replica, as ``model.get_weights()`` lists them.
        observe: called with a ``Snapshot`` of the replicas that go on, between the compiled blocks of epochs, as a
            Keras callback would be. It changes nothing about the training.
    """

    stopping: EarlyStopping | None = None
    loss: str | Callable = "mse"
    batch_size: int | None = None
    seed: int = 0
    checkpoint: str | Path | None = None
    progress: bool | None = None
    start: Sequence[Sequence[Any]] | None = None
    observe: Callable[[Any], None] | None = None

    def __post_init__(self) -> None:
        if self.stopping is not None and not isinstance(self.stopping, EarlyStopping):
            raise invalid("stopping", "an EarlyStopping or None", repr(self.stopping))
        if self.batch_size is not None:
            whole_number(self.batch_size, "batch_size")
        whole_number(self.seed, "seed", least=0)
        if self.observe is not None and not callable(self.observe):
            raise invalid("observe", "a function of a Snapshot, or None", repr(self.observe))


def whole_number(value: object, name: str, least: int = 1) -> int:
    """Returns ``value`` if it is an ``int`` of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise invalid(name, f"a whole number of at least {least}", repr(value))
    return value
