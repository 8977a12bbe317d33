"""An epoch of the engine against an epoch of Keras' ``fit`` of the same layer with the same data."""

import tempfile
import time
from collections.abc import Iterator

import keras
import numpy as np

from benchmarks.figures import Figure, fastest
from benchmarks.limit import CLoop
from benchmarks.trainings import Task, Training


class Fit:
    """``model.fit`` with validation data, the whole data as one batch, and nothing to print or to keep."""

    def __init__(self, task: Task) -> None:
        self._training, self._validation = task.data()
        self._model = keras.Sequential([task.layer()])
        self._model.compile(keras.optimizers.AdamW(task.learning_rate), "mse")
        self._batch_size = task.sequences
        self.times: list[float] = []  # of all epochs but the first of each call
        self.sample(5)
        self.times.clear()

    def sample(self, epochs: int = 20) -> float:
        """The least time of one epoch among ``epochs``, in seconds; the callback notes the time and does no more."""
        ends = []
        clock = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: ends.append(time.perf_counter()))
        self._model.fit(
            *self._training,
            validation_data=self._validation,
            batch_size=self._batch_size,
            epochs=epochs,
            verbose=0,
            callbacks=[clock],
        )
        times = np.diff(ends)
        self.times.extend(times)
        return float(times.min())


def figures(smoke: bool) -> Iterator[Figure]:
    yield from _against_fit(smoke)
    yield from _of_the_limit(smoke)


def _against_fit(smoke: bool) -> Iterator[Figure]:
    for stability in ("schur-projected", "none"):
        one, fifty = (Training(Task(stability=stability, replicas=r)) for r in (1, 5 if smoke else 50))
        fit = Fit(Task(stability=stability))
        samples = {"fit": fit.sample, "one": one.sample, "fifty": fifty.sample}
        best = fastest(samples, 1 if smoke else 20)
        for name, training, least in (("one", one, 50), ("fifty", fifty, 800)):
            replicas = training.task.replicas
            ratio = best["fit"] * replicas / best[name]
            what = f"{stability}: Keras fit / engine, {replicas} at once, per model and epoch"
            text = f"{ratio:.0f} x ({best['fit'] * 1e3:.2f} ms, median {np.median(fit.times) * 1e3:.2f} / "
            text += f"{best[name] / replicas * 1e6:.1f} us)"
            yield Figure(what, f"at least {least} x", text, ratio >= least)


def _of_the_limit(smoke: bool) -> Iterator[Figure]:
    """What no engine can exceed: the same ratio for a hand-written C loop."""
    fit = Fit(Task(stability="none"))
    with tempfile.TemporaryDirectory() as folder:
        loops = {lanes: CLoop(lanes, "float32", folder) for lanes in (1, 16)}
    samples = {"fit": fit.sample} | {str(lanes): loop.sample for lanes, loop in loops.items()}
    best = fastest(samples, 1 if smoke else 10)
    for lanes in loops:
        each = best[str(lanes)] / lanes
        text = f"{best['fit'] / each:.0f} x ({best['fit'] * 1e3:.2f} ms / {each * 1e6:.2f} us)"
        yield Figure(
            f"none: Keras fit / hand-written C loop, {lanes} at once, per model and epoch", "shown", text, True
        )
