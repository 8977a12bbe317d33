"""The path without a compiled library against the native one."""

from collections.abc import Iterator
from dataclasses import asdict

from benchmarks.figures import Figure, fastest
from benchmarks.peers import Peer
from benchmarks.trainings import Task, Training


def figures(smoke: bool) -> Iterator[Figure]:
    with Peer("engine", SCHURFIRE_NATIVE="0") as peer:
        for dtype in ("float32", "float64"):
            for replicas in (1, 2) if smoke else (1, 50):
                yield _ratio(Task(replicas=replicas, dtype=dtype), peer, 1 if smoke else 10)


def _ratio(task: Task, peer: Peer, budget: float) -> Figure:
    native = Training(task)
    peer.ask(**asdict(task))
    best = fastest({"native": native.sample, "pure": lambda: peer.ask(**asdict(task))}, budget)
    ratio = best["pure"] / best["native"]
    each = {name: seconds / task.replicas * 1e6 for name, seconds in best.items()}
    text = f"{ratio:.1f} x ({each['pure']:.1f} us / {each['native']:.1f} us per model)"
    what = f"{task.dtype}, {task.replicas} at once, {task.stability}: epoch of the pure path / native"
    return Figure(what, "at most 8 x", text, ratio <= 8)
