"""The paper's synthetic benchmark: five setups of random systems, six methods, one row for each training.

The rows are saved whenever a cell (setup and method) is finished, with what it takes to tell whether it is up to date.
A run that is started again skips what is up to date and resumes what is not finished.
"""

import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.provenance import provenance
from experiments.results import load_rows, save_rows
from experiments.synthetic_setups import SETUPS
from experiments.synthetic_training import METHODS, Cell, train_cell

FULL = tuple(Cell(setup, method) for setup in SETUPS.values() for method in METHODS)
_SMALL = {name: replace(setup, systems=3, epochs=60, patience=30) for name, setup in SETUPS.items()}
SMOKE = (*(Cell(_SMALL["smaller"], method, 3) for method in METHODS), Cell(_SMALL["large"], METHODS[0], 3))
_CURRENT = ("revision", "settings")  # a row is up to date if these are

Rows = list[dict[str, Any]]
Done = Callable[[Cell, Rows], None]


@dataclass(frozen=True)
class Table:
    """The rows in a folder, by cell.

    Attributes:
        folder: gets ``rows.parquet``, and while cells are in progress their checkpoints.
        revision: of the code.
    """

    folder: Path
    revision: str

    def rows(self) -> Rows:
        """What is there."""
        return load_rows(self.folder).to_dicts() if (self.folder / "rows.parquet").exists() else []

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """The cells that are not there, or not from this revision and these settings; those of most work first."""
        found = {tuple(row[name] for name in _CURRENT) for row in self.rows()}
        missing = [cell for cell in cells if (self.revision, repr(cell)) not in found]
        return sorted(missing, key=lambda cell: -cell.work)

    def add(self, cell: Cell, rows: Rows) -> None:
        """Puts the rows of a cell in the place of those that were there, and forgets its checkpoint."""
        others = [row for row in self.rows() if (row["setup"], row["method"]) != (cell.setup.name, cell.method)]
        save_rows(others + rows, self.folder)
        shutil.rmtree(self.checkpoint(cell))
        if not any(self._checkpoints.iterdir()):
            self._checkpoints.rmdir()

    def checkpoint(self, cell: Cell) -> Path:
        """Where the state of its training is."""
        return self._checkpoints / f"{cell.setup.name}.{cell.method}.{self.revision}"

    @property
    def _checkpoints(self) -> Path:
        return self.folder / "checkpoints"


def compute(cells: Sequence[Cell], folder: Path, jobs: int, console: Console) -> None:
    """Trains the cells that are missing in the folder, ``jobs`` at once, each in a process with its share of cores."""
    origin = {**provenance(), "jobs": jobs}
    table = Table(folder, str(origin["revision"]))
    missing = table.missing(cells)

    def done(cell: Cell, rows: Rows) -> None:
        table.add(cell, [row | origin for row in rows])

    with _Display.shown(console, len(cells), len(cells) - len(missing)) as display:
        run = _one_after_the_other if jobs == 1 else _side_by_side(jobs)
        run([(cell, table.checkpoint(cell)) for cell in missing], display, done)


def _one_after_the_other(tasks: Sequence[tuple[Cell, Path]], display: "_Display", done: Done) -> None:
    for cell, checkpoint in tasks:
        done(cell, train_cell(cell, checkpoint, lambda *state, cell=cell: display.update(cell, *state)))
        display.finish(cell)


def _side_by_side(jobs: int) -> Callable[[Sequence[tuple[Cell, Path]], "_Display", Done], None]:
    def run(tasks: Sequence[tuple[Cell, Path]], display: "_Display", done: Done) -> None:
        context = multiprocessing.get_context("spawn")
        shares, reports = context.Queue(), context.Queue()
        for share in core_shares(jobs):
            shares.put(share)
        with ProcessPoolExecutor(jobs, context, _start_worker, (shares, reports)) as pool:
            cells = {pool.submit(_work, *task): task[0] for task in tasks}
            waiting = set(cells)
            try:
                while waiting:
                    finished, waiting = wait(waiting, timeout=0.2)
                    _show(reports, display)
                    for future in finished:
                        done(cells[future], future.result())
                        display.finish(cells[future])
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    return run


def core_shares(jobs: int) -> list[tuple[int, ...]]:
    """The cores of this process dealt out to ``jobs`` processes; every one gets all if there are too few.

    XLA starts as many threads as there are cores that the process may use. Two trainings of small models on the same
    two cores each would spend their time on waiting for each other's.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return [tuple(cores[i::jobs]) or tuple(cores) for i in range(jobs)]


_reports: Any = None  # of a worker: the queue for what the display shows


def _start_worker(shares: Any, reports: Any) -> None:
    global _reports  # noqa: PLW0603 - a process pool's tasks have no other way to a queue
    _reports = reports
    share = shares.get()
    if share:
        os.sched_setaffinity(0, share)


def _work(cell: Cell, checkpoint: Path) -> Rows:
    return train_cell(cell, checkpoint, lambda *state: _reports.put((cell, *state)))


def _show(reports: Any, display: "_Display") -> None:
    while True:
        try:
            display.update(*reports.get_nowait())
        except Empty:
            return


class _Display:
    """A bar for all cells, and one for each that is in progress."""

    def __init__(self, progress: Progress, total: int, done: int) -> None:
        self._progress = progress
        self._all = progress.add_task("cells", total=total, completed=done)
        self._bars: dict[Cell, Any] = {}

    @classmethod
    @contextmanager
    def shown(cls, console: Console, total: int, done: int) -> Iterator["_Display"]:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
            yield cls(progress, total, done)

    def update(self, cell: Cell, epoch: int, going: int) -> None:
        if cell not in self._bars:
            self._bars[cell] = self._progress.add_task("", total=cell.setup.epochs)
        text = f"{cell.setup.name}, {cell.method}: {going} of {cell.setup.systems} go on"
        self._progress.update(self._bars[cell], completed=epoch, description=text)

    def finish(self, cell: Cell) -> None:
        if cell in self._bars:
            self._progress.remove_task(self._bars.pop(cell))
        self._progress.advance(self._all)
