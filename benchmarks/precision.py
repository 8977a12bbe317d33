"""Double precision against single precision on the CPU."""

from collections.abc import Iterator
from dataclasses import asdict, replace

from benchmarks.figures import Figure, fastest
from benchmarks.peers import Peer
from benchmarks.trainings import Task, Training

_TASKS = (Task(), Task(replicas=50), Task(state_size=10, channels=6, samples=512, sequences=8))
_PRECISIONS = ("float32", "float64")


def figures(smoke: bool) -> Iterator[Figure]:
    with Peer("engine", SCHURFIRE_NATIVE="0") as peer:
        for task in _TASKS[:1] if smoke else _TASKS:
            yield from _ratios(task, peer, 1 if smoke else 10)


def _ratios(task: Task, peer: Peer, budget: float) -> Iterator[Figure]:
    samples = {}
    for dtype in _PRECISIONS:
        in_precision = replace(task, dtype=dtype)
        samples[f"native {dtype}"] = Training(in_precision).sample
        samples[f"pure {dtype}"] = lambda in_precision=in_precision: peer.ask(**asdict(in_precision))
        samples[f"pure {dtype}"]()
    best = fastest(samples, budget)
    for path in ("native", "pure"):
        single, double = (best[f"{path} {dtype}"] for dtype in _PRECISIONS)
        text = f"{double / single:.2f} x ({double * 1e6:.0f} us / {single * 1e6:.0f} us)"
        data = f"{task.sequences} x {task.samples} samples" if task.sequences > 1 else f"{task.samples} samples"
        what = f"n_x = {task.state_size}, {data}, {task.replicas} at once, {path}: epoch in float64 / float32"
        yield Figure(what, "at most 2.2 x", text, double <= 2.2 * single)
