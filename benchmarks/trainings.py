"""Trainings whose epochs are timed: the engine's compiled block, called for a few milliseconds at a time."""

import re
import time
from dataclasses import dataclass
from typing import Any
from unittest import mock

import jax
import keras
import numpy as np

import schurfire as sf
from benchmarks.figures import of_one
from schurfire.identify import TrainingOptions, runs
from schurfire.identify.blocks import DIVERGED
from schurfire.stability.certificate import Certificate

METHODS = ("schur-projected", "schur-factored", "schur-triangular", "modal", "lmi", "spectral-penalty", "none")


@dataclass(frozen=True)
class Task:
    """One training: a layer with as many outputs as inputs, by default the paper's *original* setup."""

    state_size: int = 5
    channels: int = 3
    samples: int = 300
    sequences: int = 1
    replicas: int = 1
    stability: str = "schur-projected"
    dtype: str = "float32"
    learning_rate: float = 1e-3

    def data(self) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """Training and validation data (u, y); of several replicas each has a system of its own."""
        rng = np.random.default_rng(0)
        systems = sf.data.random_stable_systems(
            self.replicas, self.state_size, self.channels, self.channels, radius=0.95, seed=rng
        )
        training, validation = (self._responses(systems, rng, noise) for noise in (0.25, 0.0))
        return training, validation

    def epochs(self) -> int:
        """What takes about half a second at 1e9 products of a weight and a sample a second, but 1024 at most."""
        weights = (self.state_size + self.channels) ** 2
        return max(1, min(1024, int(5e8 / (weights * self.samples * self.sequences * self.replicas))))

    def layer(self, **options: Any) -> sf.layers.StateSpace:
        """The layer, not built yet."""
        return sf.layers.StateSpace(
            self.state_size, self.channels, stability=self.stability, seed=0, dtype=self.dtype, **options
        )

    def _responses(self, systems: list, rng: np.random.Generator, noise: float) -> tuple[np.ndarray, np.ndarray]:
        u = [sf.data.gbn(self.samples, self.channels, 0.1, sequences=self.sequences, seed=rng) for _ in systems]
        y = [sf.data.add_noise(s.simulate(inputs), noise, seed=rng) for s, inputs in zip(systems, u, strict=True)]
        if self.replicas == 1:
            return u[0].astype(self.dtype), y[0].astype(self.dtype)
        return np.stack(u).astype(self.dtype), np.stack(y).astype(self.dtype)


class Training:
    """A training by ``schurfire.identify.train`` that goes on for as many epochs as are asked for.

    The block of epochs is the program that ``train`` compiles and runs, taken from it at its first call.
    """

    def __init__(self, task: Task, **options: Any) -> None:
        self.task = task
        self.model = task.layer(**options)
        with self._precision():
            taken = []
            compile_block = runs.compile_block

            def keeping(epoch: Any, length: int, *arguments: Any) -> Any:
                program = compile_block(epoch, length, *arguments)
                taken.append((epoch, length, program, arguments))
                return program

            optimizer = keras.optimizers.AdamW(task.learning_rate)
            rules = TrainingOptions(progress=False)
            with mock.patch.object(runs, "compile_block", keeping):
                sf.identify.train(
                    self.model,
                    *task.data(),
                    epochs=task.epochs(),
                    replicas=task.replicas,
                    optimizer=optimizer,
                    options=rules,
                )
        ((self.epoch, self._length, self._program, (self.state, *self.data)),) = taken
        # The time of a call for no epochs does not count: a training has up to 4096 epochs in one call.
        self._sample = of_one(self._run, self._length)

    def sample(self) -> float:
        """The time of one epoch of all replicas in a run of some epochs, in seconds."""
        return self._sample()

    def advance(self, epochs: int) -> None:
        """Trains on."""
        for _ in range(epochs // self._length):
            self._run(self._length)
        self._run(epochs % self._length)

    def diverged(self) -> int:
        """How many replicas have ended because a number in them was no longer finite."""
        return int(np.sum(np.asarray(self.state.status) == DIVERGED))

    def certify(self, replica: int) -> Certificate:
        """The verdict on the matrix of a replica's weights as they are now."""
        theta = np.asarray(self.state.theta)[:, replica, None]
        with self._precision():
            self.model.set_weights([w[..., 0] for w in self.epoch.setup.layout.split(theta)])
            return self.model.certify()

    def operations(self) -> int:
        """How many operations XLA runs for one epoch; custom calls count as one."""
        text = self._program.as_text()
        bodies = set(re.findall(r"while\(.*body=%?([\w.\-]+)", text))
        computations = re.split(r"\n\n", text)
        free = ("get-tuple-element(", "parameter(", "bitcast(", "constant(", "tuple(")
        counts = [
            sum(" = " in line and not any(word in line for word in free) for line in computation.splitlines())
            for computation in computations
            if any(computation.lstrip().startswith((f"%{body} ", f"{body} ")) for body in bodies)
        ]
        return max(counts)

    def _run(self, epochs: int) -> float:
        with self._precision():
            count = np.int32(epochs)
            start = time.perf_counter()
            _, self.state, losses = self._program(self.state, *self.data, count)
            losses.block_until_ready()
            return time.perf_counter() - start

    def _precision(self) -> Any:
        return jax.enable_x64(self.task.dtype == "float64")
