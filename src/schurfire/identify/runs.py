"""A training from block to block: what is kept of every replica, checkpoints, and Ctrl-C."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from schurfire.identify.blocks import DIVERGED, RUNNING, STOPPED, Epoch, Setup, State, compile_block
from schurfire.identify.checkpoints import CheckpointFile
from schurfire.identify.progress import progress_bar
from schurfire.identify.replicas import values_of_weights
from schurfire.identify.results import Snapshot, TrainingResult
from schurfire.identify.samples import Partition, Samples
from schurfire.identify.sizes import Work
from schurfire.identify.updates import retraction, update
from schurfire.layers.packing import Retraction

_CHECKPOINT_SECONDS = 5.0


class Kept(NamedTuple):
    """The best of every replica, running or not; fields as in ``State``."""

    best_theta: np.ndarray
    best_others: list[np.ndarray]
    best_loss: np.ndarray
    best_epoch: np.ndarray
    status: np.ndarray


@dataclass(frozen=True, eq=False)
class Run:
    """A training between two blocks.

    The columns of ``state`` are the replicas that ``columns`` names; ``kept`` is up to date for all others.
    ``losses`` (2, R, epochs) is filled for ``epoch`` epochs.
    """

    state: State
    columns: np.ndarray
    kept: Kept
    losses: np.ndarray
    epoch: int
    block_seconds: float
    seconds: float  # of the sessions before this one

    @property
    def running(self) -> np.ndarray:
        """Which columns go on."""
        return np.asarray(self.state.status) == RUNNING

    @property
    def best_losses(self) -> np.ndarray:
        """Of all replicas, so far."""
        losses = self.kept.best_loss.copy()
        losses[self.columns] = np.asarray(self.state.best_loss)
        return losses

    def all_kept(self) -> Kept:
        """``kept``, up to date for all replicas."""
        fresh = Kept(*(getattr(self.state, name) for name in Kept._fields))

        def merged(old: np.ndarray, new: Any) -> np.ndarray:
            old = old.copy()
            old[..., self.columns] = np.asarray(new)
            return old

        return jax.tree.map(merged, self.kept, fresh)

    def narrowed(self, replicas: int) -> "Run":
        """The run with only ``replicas`` columns: those that go on, then others to fill up."""
        chosen = np.argsort(~self.running, kind="stable")[:replicas]
        state = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[..., chosen]) if np.ndim(x) else x, self.state)
        return replace(self, state=state, columns=self.columns[chosen], kept=self.all_kept())


@dataclass(frozen=True, eq=False)
class Trainer:
    """Runs the blocks of a training."""

    setup: Setup
    training: Partition
    validation: Partition
    replicas: int
    epochs: int

    def train(
        self, values: list[list[np.ndarray]], file: CheckpointFile | None, progress: bool | None
    ) -> TrainingResult:
        """All epochs, from ``values`` or from the checkpoint; or, after Ctrl-C, those before."""
        started = saved = time.perf_counter()
        run = (self._restored(file, values) if file else None) or self._fresh(values)
        programs: dict[int, tuple[Callable, Samples, Samples]] = {}
        try:
            with progress_bar(self.epochs, progress) as report:
                while run.epoch < self.epochs and run.running.any():
                    run = self._narrowed(run)
                    size = len(run.columns)
                    if size not in programs:
                        programs = {size: self._program(run)}  # a larger one is not needed again
                    run = self._advanced(run, *programs[size])
                    if self.setup.options.observe is not None:
                        self.setup.options.observe(self._snapshot(run))
                    now = time.perf_counter()
                    if file and now - saved > _CHECKPOINT_SECONDS:
                        self._save(run, file, now - started)
                        saved = now
                    report(run.epoch, run.best_losses, int(run.running.sum()))
        except KeyboardInterrupt:  # the blocks that are done stay valid: a run is replaced, never changed
            pass
        seconds = time.perf_counter() - started
        if file:
            self._save(run, file, seconds)
        return self._result(run, seconds)

    @cached_property
    def _work(self) -> Work:
        parts = (self.training, self.validation)
        return Work(sum(p.u.shape[1] * p.u.shape[2] for p in parts), self.setup.layout.size)

    def _fresh(self, values: list[list[np.ndarray]]) -> Run:
        layout, replicas = self.setup.layout, len(values)
        count = len(layout.shapes)
        theta = np.stack([layout.join(v[:count]) for v in values], axis=-1)
        theta = np.asarray(jax.jit(retraction(self.setup.variables, layout, Retraction))(theta))
        others = [np.stack(list(x), axis=-1) for x in zip(*(v[count:] for v in values), strict=True)]
        best_loss = np.full(replicas, np.inf, theta.dtype)
        zeros = np.zeros(replicas, np.int32)
        kept = Kept(theta, others, best_loss, best_epoch=zeros, status=zeros)
        optimizer = update(self.setup.optimizer, self.setup.variables, layout, replicas).state
        state = State(
            theta, optimizer, others, **kept._asdict(), reference=best_loss, waited=zeros, epoch=np.zeros((), np.int32)
        )
        losses = np.full((2, replicas, self.epochs), np.nan, theta.dtype)
        return Run(jax.tree.map(_on_device, state), np.arange(replicas), kept, losses, 0, 0.0, 0.0)

    def _narrowed(self, run: Run) -> Run:
        size = self._work.bucket(int(run.running.sum()), len(run.columns), self.epochs - run.epoch)
        return run if size == len(run.columns) else run.narrowed(size)

    def _program(self, run: Run) -> tuple[Callable, Samples, Samples]:
        size = len(run.columns)
        step = update(self.setup.optimizer, self.setup.variables, self.setup.layout, size).step
        data = [jax.tree.map(_on_device, part.samples(run.columns)) for part in (self.training, self.validation)]
        length = self._work.block_length(size, self.epochs)
        return compile_block(Epoch(self.setup, step), length, run.state, *data), *data

    def _advanced(self, run: Run, program: Callable, training: Samples, validation: Samples) -> Run:
        before = time.perf_counter()
        done, state, losses = program(run.state, training, validation, np.int32(self.epochs - run.epoch))
        count, losses = int(done), np.asarray(losses)
        seconds = run.block_seconds + time.perf_counter() - before
        run.losses[:, run.columns, run.epoch : run.epoch + count] = losses[:count].transpose(1, 2, 0)
        return replace(run, state=state, epoch=run.epoch + count, block_seconds=seconds)

    def _snapshot(self, run: Run) -> Snapshot:
        going = np.flatnonzero(run.running)
        theta, others = jax.tree.map(lambda x: np.asarray(x)[..., going], (run.state.theta, run.state.others))
        return Snapshot(run.epoch, run.columns[going], tuple(values_of_weights(self.setup.model, theta, others)))

    def _save(self, run: Run, file: CheckpointFile, seconds: float) -> None:
        leaves = jax.tree.leaves((run.state, run.kept))
        times = np.array([run.block_seconds, run.seconds + seconds])
        arrays = {f"state{i}": np.asarray(x) for i, x in enumerate(leaves)}
        file.write({"columns": run.columns, "losses": run.losses[..., : run.epoch], "times": times, **arrays})

    def _restored(self, file: CheckpointFile, values: list[list[np.ndarray]]) -> Run | None:
        arrays = file.read()
        if arrays is None:
            return None
        run = self._fresh(values)
        structure = jax.tree.structure((run.state, run.kept))
        leaves = [arrays[f"state{i}"] for i in range(structure.num_leaves)]
        state, kept = jax.tree.unflatten(structure, leaves)
        epoch = arrays["losses"].shape[-1]
        run.losses[..., :epoch] = arrays["losses"]
        state = jax.tree.map(_on_device, state)
        return Run(state, arrays["columns"], kept, run.losses, epoch, *(float(t) for t in arrays["times"]))

    def _result(self, run: Run, seconds: float) -> TrainingResult:
        kept = run.all_kept()
        losses = run.losses.copy()
        losses[..., run.epoch :] = np.nan  # an interrupt can come while a block's losses are being copied
        finite = np.isfinite(losses).all(axis=0).sum(axis=-1)
        unfinished = "finished" if run.epoch == self.epochs else "interrupted"
        names = {RUNNING: unfinished, STOPPED: "stopped", DIVERGED: "diverged"}
        return TrainingResult(
            weights=tuple(values_of_weights(self.setup.model, kept.best_theta, kept.best_others)),
            loss=losses[0],
            validation_loss=losses[1],
            best_epoch=kept.best_epoch,
            epochs=finite + (kept.status == DIVERGED),
            status=tuple(names[int(status)] for status in kept.status),
            best=int(np.argmin(kept.best_loss)),
            seconds=run.seconds + seconds,
            epoch_seconds=run.block_seconds / max(run.epoch, 1),
            trained=self.setup.model,
        )


def _on_device(x: Any) -> Any:
    return jnp.asarray(x)
