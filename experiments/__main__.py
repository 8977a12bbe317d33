"""The experiments of the paper, one command each."""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

import cyclopts
import polars as pl
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments import orthogonal, projection, schur, synthetic
from experiments.provenance import provenance
from experiments.render import orthogonal as render_orthogonal
from experiments.render import projection as render_projection
from experiments.render import schur as render_schur
from experiments.render import synthetic as render_synthetic
from experiments.results import load_rows, save_rows

app = cyclopts.App(name="python -m experiments", help=__doc__)


class Experiment(NamedTuple):
    """What a command runs: settings for all of it and for a quick look, rows from settings, files from rows."""

    full: Any
    smoke: Any
    compute: Callable[[Any, Progress], list[dict[str, Any]]]
    render: Callable[[pl.DataFrame, Path], None]


EXPERIMENTS = {
    "projection": Experiment(projection.FULL, projection.SMOKE, projection.compute, render_projection.render),
    "orthogonal": Experiment(orthogonal.FULL, orthogonal.SMOKE, orthogonal.compute, render_orthogonal.SWEEP.render),
    "schur": Experiment(schur.FULL, schur.SMOKE, schur.compute, render_schur.SWEEP.render),
}


@app.default
def main(
    name: Literal["projection", "orthogonal", "schur"],
    *,
    smoke: bool = False,
    out: Path | None = None,
    render_only: bool = False,
) -> None:
    """Computes an experiment's rows and renders its table and figures.

    Args:
        name: which experiment.
        smoke: run a small version, under 30 seconds.
        out: folder that gets a folder of the experiment's name; experiments/results, or a temporary one for a small
            version.
        render_only: render the rows that are in the folder again, and compute nothing.
    """
    experiment, console = EXPERIMENTS[name], Console(stderr=True)
    folder = (out or _default_folder(smoke)) / name
    if render_only:
        rows = load_rows(folder)
    else:
        rows = save_rows(run(experiment.smoke if smoke else experiment.full, experiment.compute, console), folder)
    experiment.render(rows, folder)
    console.print(f"{len(rows)} rows, table and figures in [bold]{folder}[/bold]")


_Setup = Literal["smaller", "small", "original", "extended", "large"]
_Method = Literal["schur-projected", "schur-factored", "lmi", "spectral-penalty", "schur-triangular", "modal"]
_SEVERAL = cyclopts.Parameter(negative=(), consume_multiple=False)


@app.command(name="synthetic")
def run_synthetic(
    *,
    setup: Annotated[tuple[_Setup, ...], _SEVERAL] = get_args(_Setup),
    method: Annotated[tuple[_Method, ...], _SEVERAL] = get_args(_Method),
    smoke: bool = False,
    out: Path | None = None,
    jobs: Annotated[int, cyclopts.Parameter(validator=cyclopts.validators.Number(gte=1))] = 1,
    render_only: bool = False,
) -> None:
    """Trains what the folder does not hold yet, and renders all of it. It can be stopped and started again.

    Args:
        setup: which setups; may be given several times.
        method: which methods; may be given several times.
        smoke: a small version, of a few setups and methods.
        out: folder that gets a folder ``synthetic``; experiments/results, or a temporary one for a small version.
        jobs: how many setups and methods to train side by side, each on its share of the cores.
        render_only: render the rows that are in the folder again, and compute nothing.
    """
    console, folder = Console(stderr=True), (out or _default_folder(smoke)) / "synthetic"
    cells = [c for c in (synthetic.SMOKE if smoke else synthetic.FULL) if c.setup.name in setup and c.method in method]
    if not render_only:
        if not cells:
            raise SystemExit("The small version has no such setup and method.")
        synthetic.compute(cells, folder, jobs, console)
    rows = load_rows(folder)
    render_synthetic.render(rows, folder)
    console.print(f"{len(rows)} rows, table and figures in [bold]{folder}[/bold]")


def run(settings: Any, compute: Callable, console: Console) -> list[dict[str, Any]]:
    """The rows, with a progress bar while they are computed, each with its provenance."""
    origin, start = provenance(), time.perf_counter()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        rows = compute(settings, progress)
    wall = time.perf_counter() - start
    return [row | origin | {"wall_s": wall} for row in rows]


def _default_folder(smoke: bool) -> Path:
    return Path(tempfile.mkdtemp(prefix="schurfire-")) if smoke else Path(__file__).parent / "results"


if __name__ == "__main__":
    sys.exit(app())
