"""An epoch of the engine against the same epoch as a hand-written C loop, and where the difference goes."""

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.figures import Figure, fastest, of_one
from benchmarks.trainings import Task, Training

_SOURCE = Path(__file__).with_name("c_loop.c")
_WEIGHTS, _SAMPLES, _CHANNELS = 5 * 5 + 5 * 3 + 3 * 5 + 3 * 3, 300, 3
_EPOCHS = 8  # of the C loop in one timed run


class CLoop:
    """``c_loop.c`` for so many models as lanes."""

    def __init__(self, lanes: int, dtype: str, folder: str) -> None:
        name = f"{folder}/c_loop_{lanes}_{dtype}"
        real = "float" if dtype == "float32" else "double"
        # Linked without -ffast-math, which would make the whole process flush denormal numbers to zero.
        options = ["-O3", "-march=native", "-ffast-math", "-fPIC", f"-DLANES={lanes}", f"-DREAL={real}"]
        subprocess.run(["gcc", *options, "-c", str(_SOURCE), "-o", f"{name}.o"], check=True)
        subprocess.run(["gcc", "-shared", f"{name}.o", "-o", f"{name}.so", "-lm"], check=True)
        self._train = ctypes.CDLL(f"{name}.so").train
        rng = np.random.default_rng(0)
        weights = [(0.1 * rng.standard_normal((_WEIGHTS, lanes))).astype(dtype)]
        weights += [np.zeros((_WEIGHTS, lanes), dtype) for _ in range(3)]
        data = [rng.standard_normal((_SAMPLES, _CHANNELS, lanes)).astype(dtype) for _ in range(4)]
        self._arrays = [*weights, np.full(lanes, np.inf, dtype), *data]

    def sample(self) -> float:
        """Seconds of one epoch of all lanes."""
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in self._arrays]
        start = time.perf_counter()
        self._train(*pointers, _EPOCHS)
        return (time.perf_counter() - start) / _EPOCHS


class Parts:
    """Parts of the engine's epoch, each in a compiled loop of its own."""

    def __init__(self, training: Training) -> None:
        self._epoch, self._state = training.epoch, training.state
        self._samples = training.data[0]

    def samples(self) -> dict[str, Callable[[], float]]:
        """For each part what returns the seconds of one."""
        split = self._epoch.setup.layout.split
        others = self._state.others

        def losses(theta: Any, samples: Any) -> Any:
            return self._epoch._losses(split(theta), others, samples, training=False)[0]

        def forward(theta: Any, samples: Any) -> Any:
            return theta * (1 + 1e-30 * losses(theta, samples))  # so that no repetition can be left out

        def gradient(theta: Any, samples: Any) -> Any:
            return theta + 1e-30 * jax.grad(lambda theta: jnp.sum(losses(theta, samples)))(theta)

        def update(theta: Any, optimizer: Any) -> Any:
            theta, optimizer = self._epoch.step(optimizer, 1e-3 * theta, theta)
            return theta, optimizer

        def retraction(theta: Any, _: Any) -> Any:
            return self._epoch._retract(theta * (1 - 1e-6))

        theta, optimizer = self._state.theta, self._state.optimizer
        return {
            "forward": self._timed(lambda theta, samples: (forward(theta, samples), samples), theta, self._samples),
            "gradient": self._timed(lambda theta, samples: (gradient(theta, samples), samples), theta, self._samples),
            "update": self._timed(update, theta, optimizer),
            "retraction": self._timed(lambda theta, _: (retraction(theta, _), _), theta, 0.0),
        }

    def _timed(self, part: Callable, *start: Any) -> Callable[[], float]:
        loop = jax.jit(lambda count, *carry: jax.lax.fori_loop(0, count, lambda _, carry: part(*carry), carry))

        def run(count: int) -> float:
            before = time.perf_counter()
            jax.block_until_ready(loop(np.int32(count), *start))
            return time.perf_counter() - before

        return of_one(run)


def figures(smoke: bool) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        for dtype in ("float32", "float64"):
            for replicas, lanes in ((1, 1), (64, 16)):
                yield _against_c(replicas, CLoop(lanes, dtype, folder), lanes, dtype, smoke)
    for replicas in (1, 64):
        yield from _explained(replicas, smoke)


def _against_c(replicas: int, loop: CLoop, lanes: int, dtype: str, smoke: bool) -> Figure:
    trainings = {s: Training(Task(replicas=replicas, dtype=dtype, stability=s)) for s in ("none", "schur-projected")}
    samples = {name: training.sample for name, training in trainings.items()}
    best = fastest({"C": loop.sample, **samples}, 1 if smoke else 10)
    limit = best["C"] * (replicas // lanes)
    ratios = {name: best[name] / limit for name in trainings}
    each = {name: seconds / replicas * 1e6 for name, seconds in {**best, "C": limit}.items()}
    text = f"{ratios['none']:.2f} x; schur-projected {ratios['schur-projected']:.2f} x "
    text += f"({each['none']:.2f} and {each['schur-projected']:.2f} us / {each['C']:.2f} us per model)"
    what = f"{dtype}, {replicas} models: epoch / that of the C loop, which computes 'none'"
    return Figure(what, "at most 2 x", text, ratios["none"] <= 2)


def _explained(replicas: int, smoke: bool) -> Iterator[Figure]:
    training = Training(Task(replicas=replicas))
    best = fastest({"epoch": training.sample, **Parts(training).samples()}, 1 if smoke else 10)
    each = {name: seconds / replicas * 1e6 for name, seconds in best.items()}
    rest = each["epoch"] - sum(each[name] for name in ("forward", "gradient", "update", "retraction"))
    text = f"{each['epoch']:.2f} = {each['gradient']:.2f} loss and gradient + {each['forward']:.2f} validation loss + "
    text += f"{each['update']:.2f} AdamW + {each['retraction']:.2f} projection (skipped) + {rest:.2f} best weights, "
    text += f"stopping rule, history; {training.operations()} operations of XLA"
    yield Figure(f"float32, {replicas} models, schur-projected: us per model and epoch, by parts", "shown", text, True)
