"""What the two sweeps over matrix sizes share: medians, a table with the paper's statements, a figure a quantity."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from experiments.paper_values import Statement
from experiments.render import style
from experiments.render.markdown import number, origin, table
from experiments.results import save_figure, save_text

_SAMPLES = """\
- Medians of {samples} samples and half their interquartile range; the bands of the figures are the quartiles. A time is
  the average of consecutive runs of a compiled function, at most {runs}.
- Compiled functions of JAX on CPU, float32, as in the paper. Errors are computed in float64 from the float32 results.
- The paper shows figures without numbers; the first table holds what its text says about them.
"""


@dataclass(frozen=True)
class Line:
    """How a method is drawn; its name is that of the rows."""

    method: str
    colour: str
    dashes: str = "-"
    marker: str = "o"


@dataclass(frozen=True)
class Quantity:
    """A column of the rows, its figure's name and its axis."""

    column: str
    figure: str
    label: str


@dataclass(frozen=True)
class Sweep:
    """Everything that tells the two sweeps' tables and figures apart."""

    title: str
    notes: str
    lines: tuple[Line, ...]
    quantities: tuple[Quantity, ...]
    statements: tuple[Statement, ...]

    def render(self, rows: pl.DataFrame, folder: Path) -> None:
        """Writes ``table.md`` and one PNG for each quantity."""
        medians = {quantity.column: _medians(rows, quantity.column) for quantity in self.quantities}
        save_text(self._document(rows, medians), folder / "table.md")
        for quantity in self.quantities:
            figure = _figure(medians[quantity.column], quantity, self.lines)
            save_figure(figure, folder / f"{quantity.figure}.png")
            style.close(figure)

    def _document(self, rows: pl.DataFrame, medians: dict[str, pl.DataFrame]) -> str:
        parts = [
            f"# {self.title}",
            origin(rows),
            _SAMPLES.format(samples=rows["sample"].n_unique(), runs=rows["runs"].max()) + self.notes + _failures(rows),
            _statements(self.statements, medians),
        ]
        shown = _few(rows["n"].unique().sort().to_list())
        for quantity in self.quantities:
            header = ("method", *(f"n = {n}" for n in shown))
            body = [
                [line.method, *(_median_cell(medians[quantity.column], line.method, n) for n in shown)]
                for line in self.lines
                if line.method in medians[quantity.column]["method"]
            ]
            parts.append(f"## {quantity.label}\n\n![{quantity.label}]({quantity.figure}.png)\n\n{table(header, body)}")
        return "\n\n".join(parts) + "\n"


def _medians(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    value = pl.col(column)
    return (
        rows.filter(value.is_finite())
        .group_by("method", "n")
        .agg(value.median().alias("median"), value.quantile(0.25).alias("lower"), value.quantile(0.75).alias("upper"))
        .sort("method", "n")
    )


def _median_cell(medians: pl.DataFrame, method: str, n: int) -> str:
    found = medians.filter(method=method, n=n)
    if found.is_empty():
        return number(None)
    row = found.row(0, named=True)
    return f"{number(row['median'])} ± {number((row['upper'] - row['lower']) / 2, digits=2)}"


def _few(sizes: list[int]) -> list[int]:
    """At most five of the sizes, evenly spread, with both ends."""
    steps = min(5, len(sizes)) - 1
    return [sizes[round(i * (len(sizes) - 1) / max(steps, 1))] for i in range(steps + 1)]


def _failures(rows: pl.DataFrame) -> str:
    """A line about samples without a result, if there are any."""
    columns = [name for name in ("distance", "reconstruction") if name in rows.columns]
    failed = rows.filter(pl.any_horizontal(pl.col(name).is_nan() for name in columns)).group_by("method").len()
    listed = ", ".join(f"{method} {count}" for method, count in sorted(failed.iter_rows()))
    return f"\n- Samples that a method gave up, as singular to working precision: {listed}." if listed else ""


def _statements(statements: Sequence[Statement], medians: dict[str, pl.DataFrame]) -> str:
    header = ("ratio of medians", "n", "paper", "here: median", "smallest", "largest")
    return table(header, [_statement(statement, medians[statement.quantity]) for statement in statements])


def _statement(statement: Statement, medians: pl.DataFrame) -> list[str]:
    both = medians.filter(pl.col("n").is_between(*statement.n))
    over, under = (both.filter(method=name).select("n", "median") for name in (statement.over, statement.under))
    ratio = over.join(under, on="n", suffix="_under").select(pl.col("median") / pl.col("median_under")).to_series()
    if ratio.is_empty():
        return [statement.text, *(number(None),) * 5]
    sizes = f"{both['n'].min()} to {both['n'].max()}"
    return [statement.text, sizes, statement.paper, *(f"{x:.3g}" for x in (ratio.median(), ratio.min(), ratio.max()))]


def _figure(medians: pl.DataFrame, quantity: Quantity, lines: Sequence[Line]) -> Any:
    figure, axes = style.subplots(figsize=(7.2, 4.4))
    for line in lines:
        points = medians.filter(method=line.method)
        if points.is_empty():
            continue
        look = {
            "color": line.colour,
            "linestyle": line.dashes,
            "marker": line.marker,
            "markersize": 3.5,
            "linewidth": 1.4,
        }
        axes.plot(points["n"], points["median"], label=line.method, **look)
        axes.fill_between(points["n"], points["lower"], points["upper"], color=line.colour, alpha=0.15, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel="n", ylabel=quantity.label)
    sizes = _few(medians["n"].unique().sort().to_list())
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8.5, frameon=False)
    return figure
