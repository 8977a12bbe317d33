"""The look of the figures: one palette (Okabe and Ito's, told apart by the colour-blind), quiet axes."""

from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#AA3377"
GREY, LIGHT_GREY = "#666666", "#BBBBBB"

_QUIET = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": "#222222",
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "xtick.color": GREY,
    "ytick.color": GREY,
}


def subplots(*args: Any, **kwargs: Any) -> tuple[Figure, Any]:
    """``pyplot.subplots`` in this style; the caller closes the figure with ``close``."""
    with plt.rc_context(_QUIET):
        return plt.subplots(*args, layout="constrained", **kwargs)


def close(figure: Figure) -> None:
    plt.close(figure)
