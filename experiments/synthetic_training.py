"""One cell of the synthetic benchmark: all systems of a setup, trained by one method at once, and judged.

The paper prints neither a minimum delta for these trainings nor the strength of the penalty, nor does it say how its
models start. The minimum delta here is that of its real-data table: with it the trainings of *smaller* end after a
median of 1.9e4 epochs, as the paper's do (1.84e4), without one after 3.8e4 (Schur projected, 32 systems). The penalty
has the strength and the epsilon that are the defaults of jax-sysid, whose author the method is from. The models' region
is the unit disc: the smaller bounds that the paper prints are those of the systems.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import schurfire as sf
from experiments.synthetic_setups import Setup, draw

PAPER_METHODS = ("schur-projected", "schur-factored", "lmi", "spectral-penalty")
METHODS = (*PAPER_METHODS, "schur-triangular", "modal")
MIN_DELTA = 1e-3
_OPTIONS = {"spectral-penalty": {"strength": 1e3, "epsilon": 1e-3}}
_POINTS = 100  # of a loss history
_SEED = 0

Report = Callable[[int, int], None]  # of the epochs done and the trainings that go on


@dataclass(frozen=True)
class Cell:
    """What one call trains.

    Attributes:
        setup: systems, data, and how long.
        method: parametrisation of the state matrix.
        checks: how often during the longest training the state matrices are certified, about.
    """

    setup: Setup
    method: str
    checks: int = 10

    @property
    def work(self) -> int:
        """A number that grows with the time it takes."""
        setup = self.setup
        return setup.systems * setup.sequences * setup.samples * setup.epochs * setup.state_size**2


class Watch:
    """Certifies the state matrices of the trainings that go on, every so many epochs.

    What it finds is kept in a file by epoch, so that a run that is killed and resumed counts every check once.
    """

    def __init__(self, cell: Cell, folder: Path, report: Report) -> None:
        self._layer, self._report = make_layer(cell), report
        self._every = max(1, cell.setup.epochs // cell.checks)
        self._path = folder / "checks.json"
        self._found = json.loads(self._path.read_text()) if self._path.exists() else {}
        self._due = self._every

    def __call__(self, snapshot: Any) -> None:
        """Looks at a ``Snapshot``."""
        if snapshot.epoch >= self._due:
            self._certify(snapshot)
        self._report(snapshot.epoch, len(snapshot.replicas))

    def counts(self, system: int) -> dict[str, int]:
        """How often the system's model was looked at, and how often it was not proven stable."""
        verdicts = [found[str(system)] for found in self._found.values() if str(system) in found]
        return {"checks": len(verdicts), "unproven_checks": len(verdicts) - sum(verdicts)}

    def _certify(self, snapshot: Any) -> None:
        self._due = (snapshot.epoch // self._every + 1) * self._every
        matrices = (_matrix_in_use(self._layer, weights) for weights in snapshot.weights)
        self._found[str(snapshot.epoch)] = {
            str(system): sf.certify(A).is_stable for system, A in zip(snapshot.replicas, matrices, strict=True)
        }
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(self._found))
        part.replace(self._path)


def make_layer(cell: Cell) -> Any:
    """The layer that the models of a cell are replicas of, built, with a random start."""
    from schurfire.layers import StateSpace

    setup, options = cell.setup, _OPTIONS.get(cell.method)
    layer = StateSpace(setup.state_size, setup.output_size, cell.method, seed=_SEED, stability_options=options)
    layer.build((None, None, setup.input_size))
    return layer


def train_cell(cell: Cell, folder: Path, report: Report) -> list[dict[str, Any]]:
    """A row for each system. The state of the training is kept in the folder, and resumed from it.

    Raises:
        KeyboardInterrupt: the training was interrupted.
    """
    from schurfire.identify import EarlyStopping, TrainingOptions, train

    setup = cell.setup
    folder.mkdir(parents=True, exist_ok=True)
    watch = Watch(cell, folder, report)
    drawn = [Drawn(*draw(setup, index)) for index in range(setup.systems)]
    training, validation = ([getattr(system, part) for system in drawn] for part in ("training", "validation"))
    layer, optimizer = make_layer(cell), _adamw(setup.learning_rate)
    stopping = None if setup.patience is None else EarlyStopping(setup.patience, min_delta=MIN_DELTA)
    options = TrainingOptions(stopping, seed=_SEED, checkpoint=folder, progress=False, observe=watch)
    result = train(layer, training, validation, epochs=setup.epochs, optimizer=optimizer, options=options)
    if "interrupted" in result.status:
        raise KeyboardInterrupt
    same = {"setup": setup.name, "method": cell.method, "settings": repr(cell), "dtype": "float32", "seed": _SEED}
    same["epoch_seconds"] = float(result.epoch_seconds * result.epochs.max() / result.epochs.sum())
    same["train_s"] = result.seconds
    rows = _rows(setup, layer, drawn, result)
    return [same | row | watch.counts(row["system"]) for row in rows]


class Drawn(NamedTuple):
    """A system and its data."""

    system: sf.LinearSystem
    training: sf.data.Sequences
    validation: sf.data.Sequences
    test: sf.data.Sequences


def attainable_nmse(setup: Setup, y: np.ndarray) -> float:
    """What the noise leaves to an efficient estimate of the right order, for these noise-free outputs.

    For inputs alike in training and test its mean squared output error, summed over the channels, is about
    ``sigma^2 p / N`` with N training samples and p identifiable parameters: all of (A, B, C, D) but the n_x^2 of the
    choice of coordinates. Here it is spread evenly over the channels, and divided by their variances.
    """
    sizes = setup.state_size * (setup.input_size + setup.output_size) + setup.input_size * setup.output_size
    variance = setup.noise**2 * sizes / (setup.sequences * setup.samples * setup.output_size)
    return float(np.mean(variance / np.var(y.reshape(-1, setup.output_size).astype("float64"), axis=0)))


def history(validation_loss: np.ndarray) -> list[list[float]]:
    """Epochs, and the logarithm (base 10) of the least validation loss until then over the first, at most 100 points.

    Three decimals are kept: they are for a figure.
    """
    losses = validation_loss[: np.flatnonzero(np.isfinite(validation_loss)).max(initial=0) + 1].astype("float64")
    least = np.fmin.accumulate(losses) / losses[0]
    epochs = np.unique(np.linspace(1, len(losses), _POINTS).round().astype(int))
    return [epochs.tolist(), np.round(np.log10(least[epochs - 1]), 3).tolist()]


def _rows(setup: Setup, layer: Any, drawn: list[Drawn], result: Any) -> list[dict[str, Any]]:
    """What is different for each system; the outputs of the best and of the worst model, one channel each."""
    rows, outputs = [], []
    predicted = _predict(layer, result.weights, np.stack([system.test.stacked().u for system in drawn]))
    for index, (system, found) in enumerate(zip(drawn, predicted, strict=True)):
        y, A = system.test.stacked().y, _matrix_in_use(layer, result.weights[index])
        errors = np.asarray(sf.metrics.nmse(y, found) if np.isfinite(found).all() else np.full(y.shape[-1], np.inf))
        channel = int(np.argmax(errors))
        outputs.append({"channel": channel, "y": y[0, :, channel].tolist(), "y_hat": found[0, :, channel].tolist()})
        epochs, losses = history(result.validation_loss[index])
        rows.append(
            {
                "system": index,
                "nmse": float(errors.mean()),
                "nssr": sf.metrics.nssr(system.system.A, A),
                "attainable": attainable_nmse(setup, y),
                "epochs": int(result.epochs[index]),
                "best_epoch": int(result.best_epoch[index]),
                "status": result.status[index],
                "proven": sf.certify(A).is_stable,
                "history_epochs": epochs,
                "history": losses,
                "shown": None,
                **dict.fromkeys(("channel", "y", "y_hat")),
            }
        )
    order = np.argsort([row["nmse"] for row in rows])
    for which, index in (("best", order[0]), ("worst", order[-1])) if setup.sequences == 1 else ():
        rows[index] |= {"shown": which, **outputs[index]}
    return rows


def _adamw(learning_rate: float) -> Any:
    """With Keras' weight decay, 4e-3."""
    from keras.optimizers import AdamW  # after schurfire has chosen Keras' backend

    return AdamW(learning_rate)


def _matrix_in_use(layer: Any, weights: list[np.ndarray]) -> np.ndarray:
    layer.set_weights(weights)
    return layer.state_matrix()


def _predict(layer: Any, weights: Sequence[list[np.ndarray]], u: np.ndarray) -> np.ndarray:
    """Outputs (R, S, N, n_y) of replicas for inputs (R, S, N, n_u) of their own."""
    import jax

    each = jax.jit(jax.vmap(lambda values, u: layer.stateless_call(values, [], u)[0]))
    return np.asarray(each([np.stack(values) for values in zip(*weights, strict=True)], u))
