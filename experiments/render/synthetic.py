"""The table of the synthetic benchmark beside the paper's, and what can be counted in its rows."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import polars as pl

from experiments.paper_values import SYNTHETIC, Spread, Trained
from experiments.render import style
from experiments.render.markdown import number, table
from experiments.render.synthetic_figures import histories, outputs
from experiments.results import save_figure, save_text
from experiments.synthetic_setups import SETUPS
from experiments.synthetic_training import METHODS, MIN_DELTA


class Metric(NamedTuple):
    """A row of the table in each setup: its column in the rows, and the paper's value of a cell."""

    text: str
    column: str
    paper: Callable[[Trained], Spread]


METRICS = (
    Metric("NMSE", "nmse", lambda cell: cell.nmse),
    Metric("NSSR", "nssr", lambda cell: cell.nssr),
    Metric("epoch time [s]", "epoch_seconds", lambda cell: cell.epoch_seconds),
    Metric("epoch count", "epochs", lambda cell: cell.epochs),
)
_NOTES = f"""\
- Median over the systems ± half the interquartile range; the smallest median of a row is bold. Behind the slash: the
  paper's value. The systems are drawn by the paper's rules, but are not its own. Its table has the first four methods.
- NMSE: mean over the output channels, noise-free test outputs. NSSR: squared distance of the eigenvalues from the true
  ones in the best pairing, relative. Both are of the weights with the best validation loss.
- Epoch time: for one model, compilation excluded. All systems of a cell are trained together, so that it is the time of
  all their epochs over the number of these, one number for a cell.
- AdamW with Keras' weight decay, float32, x[0] = 0. A training stops after the setup's patience without an improvement
  of the validation loss by at least {MIN_DELTA:g}; the weights of the least validation loss are kept. The paper prints
  this delta for its real data only; with it the trainings of *smaller* are as long as the paper's. *original* has no
  early stopping.
- The region of all models is the unit disc: the smaller bounds in the paper's table are those of the systems. They
  start from random stable matrices with eigenvalues up to 0.9. The penalty has the strength 1e3 and the epsilon 1e-3,
  which the paper does not print."""
_VERDICTS = """\
*attainable*: what the noise on the training data leaves to an efficient estimate,
`sigma^2 (n_x (n_u + n_y) + n_u n_y) / (N n_y)` over the variance of each output, N all training samples; *best epoch*:
that of the kept weights, median; *epochs used up*: trainings that ran to the last epoch; *still falling*: a cell above
the paper's, with its median best epoch in the last tenth of all epochs."""
_STABILITY = """\
What `certify` says of every kept model, and of the models that are still trained after about every tenth of the epochs.
The penalty promises nothing."""
_TIMES = """\
Wall time of the trainings, compilation and certificates included, added up over the cells: those that ran side by side
count in full each. The paper's: its median epoch count times its median epoch time, for as many systems."""
_FIGURES = """\
Histories: the least validation loss so far, relative to that of the first epoch, median and quartiles over the systems,
up to the median epoch count; a training that has ended keeps its last value. Outputs: the best and the worst system of
each method, in the channel with the largest error."""


def render(rows: pl.DataFrame, folder: Path) -> None:
    """Writes ``table.md``, and for each setup ``history_SETUP.png`` and, if there are any, ``outputs_SETUP.png``."""
    save_text(_document(rows), folder / "table.md")
    for setup in _setups(rows):
        here = rows.filter(setup=setup)
        figures = {"history": histories(here), "outputs": outputs(here)}
        for name, figure in figures.items():
            if figure is not None:
                save_figure(figure, folder / f"{name}_{setup}.png")
                style.close(figure)


def _document(rows: pl.DataFrame) -> str:
    setups = _setups(rows)
    figures = [f"![{setup}: loss histories](history_{setup}.png)" for setup in setups]
    shown = [s for s in setups if rows.filter(setup=s)["shown"].drop_nulls().len()]
    figures += [f"![{setup}: best and worst test outputs](outputs_{setup}.png)" for setup in shown]
    parts = [
        "# Synthetic benchmark",
        _origin(rows),
        _NOTES,
        _metrics(rows),
        f"## NMSE against the paper's\n\n{_verdicts(rows)}",
        f"## Stability\n\n{_stability(rows)}",
        f"## Time\n\n{_times(rows)}",
        f"## Figures\n\n{_FIGURES}",
        *figures,
    ]
    return "\n\n".join(parts) + "\n"


def _origin(rows: pl.DataFrame) -> str:
    def listed(name: str) -> str:
        return ", ".join(str(x) for x in rows[name].unique().sort())

    return (
        f"{len(rows)} trainings. Revision `{listed('revision')}`, started {rows['started'].min()}. "
        f"Python {listed('python')}, {listed('versions')}. Device: {listed('device')}; threads: {listed('threads')}, "
        f"cells at once: {listed('jobs')}. Data type {listed('dtype')}, seed {listed('seed')}."
    )


def _setups(rows: pl.DataFrame) -> list[str]:
    return [name for name in SETUPS if name in rows["setup"]]


def _methods(rows: pl.DataFrame) -> list[str]:
    return [name for name in METHODS if name in rows["method"]]


def _spread(rows: pl.DataFrame, column: str) -> Spread | None:
    values = rows[column].drop_nans()
    if values.is_empty():
        return None
    lower, median, upper = (float(values.quantile(q, "linear") or 0.0) for q in (0.25, 0.5, 0.75))
    return Spread(median, (upper - lower) / 2)


def _metrics(rows: pl.DataFrame) -> str:
    methods, body = _methods(rows), []
    for setup in _setups(rows):
        for metric in METRICS:
            found = {m: _spread(rows.filter(setup=setup, method=m), metric.column) for m in methods}
            least = min(float(f"{s.median:.2e}") for s in found.values() if s)
            cells = [_cell(found[m], least, SYNTHETIC.get((setup, m)), metric) for m in methods]
            body.append([setup if metric is METRICS[0] else "", metric.text, *cells])
    return table(("setup", "metric", *methods), body)


def _cell(spread: Spread | None, least: float, paper: Trained | None, metric: Metric) -> str:
    if spread is None:
        return number(None)
    text = f"**{_text(spread)}**" if float(f"{spread.median:.2e}") == least else _text(spread)
    return f"{text} / {_text(metric.paper(paper))}" if paper else text


def _text(spread: Spread) -> str:
    return f"{number(spread.median)} ± {number(spread.half_iqr)}"


def _verdicts(rows: pl.DataFrame) -> str:
    """Which cells are above the paper's median, with what the noise leaves to be attained."""
    header = ("setup", "method", "NMSE", "paper", "ratio", "attainable", "best epoch", "epochs used up", "verdict")
    body = []
    for setup in _setups(rows):
        for method in _methods(rows.filter(setup=setup)):
            if (setup, method) in SYNTHETIC:
                body.append(_verdict(rows.filter(setup=setup, method=method), setup, method))
    below = sum(line[-1] == "at or below" for line in body)
    count = f"{below} of {len(body)} cells have a median NMSE at or below the paper's."
    return f"{count}\n\n{_VERDICTS}\n\n{table(header, body)}"


def _verdict(rows: pl.DataFrame, setup: str, method: str) -> list[str]:
    nmse, attainable, best = (float(rows[name].median()) for name in ("nmse", "attainable", "best_epoch"))  # pyright: ignore[reportArgumentType]
    paper = SYNTHETIC[setup, method].nmse.median
    used_up = int((rows["status"] == "finished").sum())
    diverged = int((rows["status"] == "diverged").sum())
    verdict = "at or below" if float(f"{nmse:.2e}") <= paper else "above"
    if verdict == "above":
        if diverged:
            verdict += f", {diverged} diverged"
        if best > 0.9 * SETUPS[setup].epochs:
            verdict += ", still falling"
        elif best < SYNTHETIC[setup, method].epochs.median - (SETUPS[setup].patience or 0):
            verdict += ", its best epoch is earlier than the paper's"
        if paper < attainable:
            verdict += ", the paper's is below what is attainable here"
    values = (number(nmse), number(paper), f"{nmse / paper:.2g}", number(attainable), f"{best:.0f}")
    return [setup, method, *values, f"{used_up} of {len(rows)}", verdict]


def _stability(rows: pl.DataFrame) -> str:
    header = ("method", "trainings", "best models unproven", "looks during training", "of these unproven", "diverged")
    body = []
    for method in _methods(rows):
        here = rows.filter(method=method)
        counts = (len(here), (~here["proven"]).sum(), here["checks"].sum(), here["unproven_checks"].sum())
        body.append([method, *map(str, counts), str((here["status"] == "diverged").sum())])
    return f"{_STABILITY}\n\n{table(header, body)}"


def _times(rows: pl.DataFrame) -> str:
    header = ("method", "trainings", "wall time [s]", "paper [h]")
    body, cells = [], rows.group_by("setup", "method").agg(pl.col("train_s").first(), pl.len())
    for method in _methods(rows):
        here = cells.filter(method=method)
        hours = [_paper_hours(setup, method, count) for setup, count in here.select("setup", "len").iter_rows()]
        paper = f"{sum(hours):.1f}" if all(hours) else number(None)
        body.append([method, str(here["len"].sum()), f"{here['train_s'].sum():.0f}", paper])
    body.append(["all", str(len(rows)), f"{cells['train_s'].sum():.0f}", ""])
    return f"{_TIMES}\n\n{table(header, body)}"


def _paper_hours(setup: str, method: str, count: int) -> float:
    cell = SYNTHETIC.get((setup, method))
    return count * cell.epochs.median * cell.epoch_seconds.median / 3600 if cell else 0.0
