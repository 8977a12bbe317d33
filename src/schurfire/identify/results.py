"""What a training returns."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schurfire.errors import invalid
from schurfire.identify.replicas import clone


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The replicas that go on, between two blocks of epochs.

    Attributes:
        epoch: epochs done.
        replicas: their numbers.
        weights: of each of them the arrays of ``model.get_weights()`` after this epoch, the best or not.
    """

    epoch: int
    replicas: np.ndarray
    weights: tuple[list[np.ndarray], ...] = field(repr=False)


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """The best weights of every replica, and how it came to them.

    Attributes:
        weights: for each replica the arrays of ``model.get_weights()`` after its best epoch; its initial weights if
            its first epoch diverged.
        loss: training losses, shape (R, epochs), of the weights before the epoch's updates and with the model's own
            losses (regularisers, penalties); NaN after the replica's end.
        validation_loss: validation losses after the epoch's updates, alike, without the model's own losses; NaN also
            where the training, the weights or this loss became infinite or NaN.
        best_epoch: how many epochs lead to the best weights, shape (R,).
        epochs: how many epochs each replica ran, shape (R,).
        status: for each replica "finished" (all epochs), "stopped" (early), "diverged" or "interrupted".
        best: the replica with the least validation loss.
        seconds: wall-clock time of the whole training, compilation included.
        epoch_seconds: mean time of an epoch of all replicas together, compilation excluded: the time spent inside the
            compiled blocks, which are compiled ahead, divided by the epochs that they ran.
    """

    weights: tuple[list[np.ndarray], ...] = field(repr=False)
    loss: np.ndarray = field(repr=False)
    validation_loss: np.ndarray = field(repr=False)
    best_epoch: np.ndarray
    epochs: np.ndarray
    status: tuple[str, ...]
    best: int
    seconds: float
    epoch_seconds: float
    trained: Any = field(repr=False)  # the Keras model or layer whose replicas these are

    @property
    def best_loss(self) -> np.ndarray:
        """The validation loss of each replica's best weights, shape (R,); infinite if its first epoch diverged."""
        losses = np.concatenate([np.full((len(self.loss), 1), np.inf), self.validation_loss], axis=1)
        return np.take_along_axis(losses, self.best_epoch[:, None], axis=1)[:, 0]

    def assign(self, model: Any, replica: int | None = None) -> None:
        """Sets the weights of ``model`` to those of a replica, by default the best one."""
        model.set_weights(self.weights[self._index(replica)])

    def model(self, replica: int | None = None) -> Any:
        """A new model with the weights of a replica, by default the best one."""
        model = clone(self.trained)
        self.assign(model, replica)
        return model

    def _index(self, replica: int | None) -> int:
        if replica is None:
            return self.best
        if isinstance(replica, bool) or not 0 <= replica < len(self.weights):
            raise invalid("replica", f"from 0 to {len(self.weights) - 1}", repr(replica))
        return replica
