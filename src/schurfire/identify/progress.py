"""The progress bar of a training."""

import contextlib
import sys
from collections.abc import Callable, Iterator

import numpy as np


@contextlib.contextmanager
def progress_bar(epochs: int, shown: bool | None) -> Iterator[Callable[[int, np.ndarray, int], None]]:
    """Yields ``report(epoch, best_losses, active)``; it shows nothing if ``shown`` is False, or None off a terminal."""
    if shown is False or (shown is None and not sys.stderr.isatty()):
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("epoch"),
        MofNCompleteColumn(),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[state]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=shown is None) as bar:
        task = bar.add_task("training", total=epochs, state="compiling")

        def report(epoch: int, best_losses: np.ndarray, active: int) -> None:
            state = f"best validation loss {np.min(best_losses):.4g}, {active} of {len(best_losses)} running"
            bar.update(task, completed=epoch, state=state)

        yield report
