"""The memory of one training."""

import resource
from typing import Any

import keras

import schurfire as sf
from benchmarks.peers import serve
from benchmarks.trainings import Task
from schurfire.identify import TrainingOptions


def answer(epochs: int, **sizes: Any) -> dict[str, float]:
    """Bytes in memory at most: ``before``, with everything loaded and the data drawn, and after the training."""
    task = Task(**sizes)
    layer, data = task.layer(), task.data()
    before = _peak()
    optimizer, options = keras.optimizers.AdamW(task.learning_rate), TrainingOptions(progress=False)
    sf.identify.train(layer, *data, epochs=epochs, replicas=task.replicas, optimizer=optimizer, options=options)
    return {"before": before, "peak": _peak()}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


serve(answer)
