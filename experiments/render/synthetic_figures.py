"""The figures of the synthetic benchmark: loss histories, and the outputs of the best and the worst models."""

from typing import Any

import numpy as np
import polars as pl

from experiments.render import style
from experiments.synthetic_training import METHODS

_LOOKS = {
    "schur-projected": (style.BLUE, "-"),
    "schur-factored": (style.ORANGE, "-"),
    "lmi": (style.GREEN, "-"),
    "spectral-penalty": (style.PURPLE, "-"),
    "schur-triangular": (style.BLUE, "--"),
    "modal": (style.ORANGE, "--"),
}


def histories(rows: pl.DataFrame) -> Any:
    """Median and quartiles over the systems of the least validation loss so far, a line for each method."""
    figure, axes = style.subplots(figsize=(7.2, 4.4))
    for method in (m for m in METHODS if m in rows["method"]):
        here = rows.filter(method=method)
        epochs = np.linspace(1, float(np.median(here["epochs"])), 200)
        curves = [
            np.interp(epochs, row["history_epochs"], row["history"])
            for row in here.iter_rows(named=True)
            if row["history"]
        ]
        lower, median, upper = 10 ** np.quantile(curves, (0.25, 0.5, 0.75), axis=0)
        colour, dashes = _LOOKS[method]
        axes.plot(epochs, median, color=colour, linestyle=dashes, linewidth=1.4, label=method)
        axes.fill_between(epochs, lower, upper, color=colour, alpha=0.1, linewidth=0)
    axes.set(yscale="log", xlabel="epoch", ylabel="least validation loss so far, relative", title=rows["setup"][0])
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8.5, frameon=False)
    return figure


def outputs(rows: pl.DataFrame) -> Any:
    """Test output and model for the best and the worst system of each method; None where the rows hold none."""
    shown = rows.filter(pl.col("shown").is_not_null())
    methods = [m for m in METHODS if m in shown["method"]]
    if not methods:
        return None
    size = (11.0, 1.7 * len(methods) + 0.6)
    figure, axes = style.subplots(len(methods), 2, figsize=size, squeeze=False, sharex=True)
    for i, method in enumerate(methods):
        for j, which in enumerate(("best", "worst")):
            _panel(axes[i, j], shown.filter(method=method, shown=which).row(0, named=True))
        axes[i, 0].set_ylabel(method, fontsize=8.5)
    for axis in axes[-1]:
        axis.set_xlabel("sample")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    return figure


def _panel(axes: Any, row: dict[str, Any]) -> None:
    colour, _ = _LOOKS[row["method"]]
    axes.plot(row["y"], color=style.LIGHT_GREY, linewidth=1.8, label="system")
    axes.plot(row["y_hat"], color=colour, linewidth=0.8, label="model")
    title = f"{row['shown']}: system {row['system']}, output {row['channel'] + 1}, NMSE {row['nmse']:.1e}"
    axes.set_title(title, fontsize=8.5)
    axes.tick_params(labelsize=7)
