"""Models without a proof of stability, while they are trained with a learning rate that is much too large."""

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.trainings import METHODS, Task, Training

_PROMISING = [method for method in METHODS if method not in ("spectral-penalty", "none")]


def figures(smoke: bool) -> Iterator[Figure]:
    for dtype in ("float32",) if smoke else ("float32", "float64"):
        for stability in _PROMISING[:1] if smoke else _PROMISING:
            yield _counted(
                Task(stability=stability, dtype=dtype, replicas=2 if smoke else 20, learning_rate=0.3), smoke
            )


def _counted(task: Task, smoke: bool) -> Figure:
    """Some 20 checks of every replica, the first ones an epoch apart, as the weights move most then."""
    training = Training(task)
    checked = unproven = epochs = 0
    for step in [1] * 2 if smoke else [1] * 8 + [2**i for i in range(1, 11)]:
        training.advance(step)
        epochs += step
        for replica in range(task.replicas):
            checked += 1
            unproven += not training.certify(replica).is_stable
    what = f"{task.dtype}, {task.stability}: of {checked} models in {task.replicas} trainings of {epochs} epochs"
    return Figure(what, "0 unproven", f"{unproven} unproven; {training.diverged()} trainings diverged", unproven == 0)
