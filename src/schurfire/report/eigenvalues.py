"""A picture of eigenvalues in the complex plane, with the region where they ought to be."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schurfire.arrays import square_matrix
from schurfire.errors import InvalidInputError
from schurfire.files import check_output, check_suffix, whole_file
from schurfire.metrics import spectrum_of_blocks
from schurfire.regions import Disc, HalfPlane, Region
from schurfire.stability.certificate import Certificate, certify
from schurfire.stability.schur_form import SchurForm

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE_SUFFIXES = (".png", ".svg", ".pdf")

_WIDE = 20.0  # sizes that differ by more are shown on logarithmic axes, or the region is left to fill the background
_SHOWN = 1.15  # half-width of the picture over the size of what must be seen
# Okabe and Ito's colours, told apart with any colour vision; marker shapes say the same once more
_GIVEN, _PAIR, _DENSE, _REGION = "#D55E00", "#0072B2", "#009E73", "#56B4E9"


def require_matplotlib() -> None:
    """Raises ``InvalidInputError`` unless Matplotlib can be imported, without importing it."""
    import importlib.util

    if importlib.util.find_spec("matplotlib") is None:
        raise InvalidInputError("Expected Matplotlib to be installed. Run: pip install 'schurfire[plot]'")


def check_picture(path: str | Path) -> Path:
    """Returns the path if a picture can be written there; see ``schurfire.files.check_output``."""
    require_matplotlib()
    return check_output(path, PICTURE_SUFFIXES)


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Writes a figure as ``.png``, ``.svg`` or ``.pdf``, at once or not at all; an existing file is replaced."""
    path = Path(path)
    kind = check_suffix(path, PICTURE_SUFFIXES, "the picture")[1:]
    with whole_file(path) as file:
        figure.savefig(file, format=kind, dpi=160)


def eigenvalue_figure(
    A: Any, form: SchurForm | None = None, dense: Any = None, region: Region | None = None, title: str = ""
) -> "Figure":
    """Draws the eigenvalues of a matrix and of stable matrices near it.

    Those of the pair are exact to a few units in the last place, from its diagonal blocks. Those of arrays are
    LAPACK's, which may be far off for matrices far from normal; what is stable is said in the legend, by ``certify``.

    Args:
        A: the given matrix, shape (n, n).
        form: a Schur pair near it.
        dense: an array near it, shape (n, n).
        region: default: that of the form, else the open unit disc.
        title: default: says what is shown.

    Raises:
        InvalidInputError: an argument that is no such matrix; Matplotlib is missing.

    >>> from schurfire import project_stable
    >>> A = np.array([[0.0, 2.0], [-2.0, 0.5]])
    >>> figure = eigenvalue_figure(A, project_stable(A))
    >>> figure.axes[0].get_title()
    'Eigenvalues of a matrix of order 2 and of stable ones near it'
    """
    require_matplotlib()
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if region is None:
        region = Disc() if form is None else form.region
    clouds = _clouds(A, form, dense, region)
    figure = Figure(figsize=(6.4, 7.9), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12))
    axes = figure.add_subplot()
    frame = _Frame.around(np.concatenate([cloud.values for cloud in clouds]), region)
    frame.apply(axes)
    _draw_region(axes, region, frame)
    for order, cloud in enumerate(clouds, start=3):
        values = cloud.values - frame.origin
        axes.plot(values.real, values.imag, linestyle="none", zorder=order, label=cloud.label, **cloud.style)
    shift = f" {'-' if frame.origin > 0 else '+'} {abs(frame.origin):g}" if frame.origin else ""
    axes.set(xlabel=f"real part{shift}", ylabel="imaginary part")
    title = title or f"Eigenvalues of a matrix of order {len(A)} and of stable ones near it"
    axes.set_title(title, fontsize=12, pad=12)
    figure.legend(loc="outside lower center", fontsize=9.5, frameon=False, alignment="left")
    return figure


@dataclass(frozen=True)
class _Cloud:
    values: np.ndarray
    label: str
    style: dict[str, Any]


def _clouds(A: Any, form: SchurForm | None, dense: Any, region: Region) -> list[_Cloud]:
    A = square_matrix(A, "A")
    style = {"marker": "x", "color": _GIVEN, "markersize": 7.5, "markeredgewidth": 1.8}
    clouds = [_Cloud(np.linalg.eigvals(A), f"given matrix: {_verdict(certify(A, region))}", style)]
    if form is not None:
        style = {"marker": "o", "color": _PAIR, "markersize": 9, "fillstyle": "none", "markeredgewidth": 1.5}
        label = f"Schur pair (T, Z): {_verdict(certify(form, region))}"
        clouds.append(_Cloud(spectrum_of_blocks(form.T), label, style))
    if dense is not None:
        dense = square_matrix(dense, "dense")
        style = {"marker": "D", "color": _DENSE, "markersize": 5, "markeredgecolor": "white", "markeredgewidth": 0.5}
        clouds.append(_Cloud(np.linalg.eigvals(dense), f"plain array: {_verdict(certify(dense, region))}", style))
    return clouds


def _verdict(certificate: Certificate) -> str:
    if certificate.is_stable:
        by = {
            "blocks": "exactly, by its blocks",
            "power-bound": "by a bound of its powers",
            "lyapunov": "by a Lyapunov matrix",
            "gramian": "by a factor of a Gramian",
        }
        return f"stable, proven {by[certificate.method]}"
    return "not stable" if certificate.method == "blocks" else "not proven stable"


@dataclass(frozen=True)
class _Frame:
    """A square window with the same scale on both axes.

    Attributes:
        origin: what is subtracted from everything drawn.
        middle: the middle of the real axis, after that.
        reach: half of the side.
        linear: None if the axes are linear; else they are logarithmic from this distance on.
    """

    origin: float
    middle: float
    reach: float
    linear: float | None

    @staticmethod
    def around(values: np.ndarray, region: Region) -> "_Frame":
        """The window that shows all values, and the region where that leaves them room."""
        origin = region.origin
        distances = np.abs(values - origin)
        farthest = float(distances.max(initial=0.0))
        if isinstance(region, Disc):
            size = region.radius
            seen = farthest if 0 < farthest * _WIDE < size else max(farthest, size)
        else:
            size = float(np.median(distances)) if len(distances) else 0.0
            seen = farthest or 1.0
        if 0 < size * _WIDE < seen:
            return _Frame(origin, 0.0, 2.0 * seen, 1.5 * size)
        return _Frame(0.0, origin, _SHOWN * seen, None)

    def apply(self, axes: "Axes") -> None:
        axes.grid(True, color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        if self.linear is not None:
            decades = math.log10(self.reach / self.linear)
            scale = {"linthresh": self.linear, "linscale": max(1.0, decades / 4)}
            axes.set_xscale("symlog", **scale)
            axes.set_yscale("symlog", **scale)
        axes.set(xlim=(self.middle - self.reach, self.middle + self.reach), ylim=(-self.reach, self.reach))
        if self.linear is not None:
            ticks = _decades(self.linear, self.reach)
            axes.set_xticks(ticks)
            axes.set_yticks(ticks)
            axes.minorticks_off()
        axes.set_box_aspect(1)
        for spine in axes.spines.values():
            spine.set_color("0.7")
        axes.tick_params(color="0.7")


def _decades(start: float, end: float) -> list[float]:
    """Zero and the powers of ten from start to end with both signs, few enough to be read."""
    exponents = range(math.ceil(math.log10(start)), math.floor(math.log10(end)) + 1)
    powers = [10.0**k for k in exponents[:: -(-len(exponents) // 4)]]
    return [-power for power in reversed(powers)] + [0.0] + powers


def _draw_region(axes: "Axes", region: Region, frame: _Frame) -> None:
    """Shades the region and draws its boundary; as curves, which any scale of the axes bends rightly."""
    inside = {"color": _REGION, "alpha": 0.13, "linewidth": 0, "zorder": 0}
    boundary = {"color": _REGION, "linewidth": 1.4, "zorder": 1, "label": "boundary of the region"}
    if isinstance(region, HalfPlane):
        bound = region.bound - frame.origin
        axes.axvspan(frame.middle - frame.reach, bound, **inside)
        axes.axvline(bound, **boundary)
        return
    angle = np.linspace(0, 2 * np.pi, 721)
    x, y = region.centre - frame.origin + region.radius * np.cos(angle), region.radius * np.sin(angle)
    axes.fill(x, y, **inside)
    axes.plot(x, y, **boundary)
