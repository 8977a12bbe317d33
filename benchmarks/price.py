"""The price of stability: an epoch of each method over that of ``none``."""

from collections.abc import Iterator

from benchmarks.figures import Figure, fastest
from benchmarks.trainings import METHODS, Task, Training

_TARGETS = {"schur-projected": 1.15, "schur-factored": 1.3, "schur-triangular": 1.1, "modal": 1.1}


def figures(smoke: bool) -> Iterator[Figure]:
    for n in (5,) if smoke else (5, 10, 28):
        for replicas in (1, 2) if smoke else (1, 50):
            yield from _prices(n, replicas, 1 if smoke else 20)


def _prices(n: int, replicas: int, budget: float) -> Iterator[Figure]:
    trainings = {s: Training(Task(state_size=n, replicas=replicas, stability=s)) for s in METHODS}
    best = fastest({name: training.sample for name, training in trainings.items()}, budget)
    for name in METHODS[:-1]:
        ratio = best[name] / best["none"]
        each = {s: best[s] / replicas * 1e6 for s in (name, "none")}
        operations = {s: trainings[s].operations() for s in (name, "none")}
        text = f"{ratio:.2f} x ({each[name]:.1f} us / {each['none']:.1f} us per model; {operations[name]} / "
        text += f"{operations['none']} operations of XLA)"
        limit = _TARGETS.get(name)
        target = "shown" if limit is None else f"at most {limit} x"
        yield Figure(f"n_x = {n}, {replicas} at once: {name}", target, text, limit is None or ratio <= limit)
