"""The time of an epoch against the number of samples and against n_x."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.figures import Figure, fastest
from benchmarks.trainings import Task, Training

_SAMPLES = (300, 1000, 3000, 10_000, 30_000, 100_000, 300_000)
_STATES = (2, 4, 8, 16, 32, 64)
_FIXED = 3000  # samples, where n_x changes


def figures(smoke: bool) -> Iterator[Figure]:
    samples, states = (_SAMPLES[:3], _STATES[:3]) if smoke else (_SAMPLES, _STATES)
    over_samples = _times([Task(samples=n) for n in samples], smoke)
    over_states = _times([Task(state_size=n, samples=_FIXED) for n in states], smoke)
    points = tuple(zip(map(float, samples), over_samples, strict=True))
    exponent = _exponent(points[-5:])
    text = f"time ~ samples^{exponent:.2f} over the upper {len(points[-5:])} ({_listed(points)})"
    yield Figure("n_x = 5, against samples", "linear: an exponent of at most 1.1", text, exponent <= 1.1, points)
    points = tuple(zip(map(float, states), over_states, strict=True))
    text = f"time ~ n_x^{_exponent(points[-4:]):.2f} over the upper {len(points[-4:])} ({_listed(points)})"
    yield Figure(f"{_FIXED} samples, against n_x", "shown", text, True, points)


def draw(figures: list[Figure], folder: Path) -> None:
    """Both curves as ``scaling.svg``."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    picture, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, figure, label in zip(axes, figures, ("samples", "n_x"), strict=True):
        x, y = np.array(figure.points).T
        axis.loglog(x, y * 1e3, "o-")
        axis.loglog(x, y[-1] * 1e3 * x / x[-1], ":", color="gray", label="linear")
        axis.set(title=figure.what, xlabel=label, ylabel="time of an epoch in ms")
        axis.legend(frameon=False)
        axis.grid(visible=True, alpha=0.3)
    picture.savefig(folder / "scaling.svg", metadata={"Date": None})
    plt.close(picture)


def _times(tasks: list[Task], smoke: bool) -> list[float]:
    samples = {str(i): Training(task).sample for i, task in enumerate(tasks)}
    return list(fastest(samples, 1 if smoke else 20).values())


def _exponent(points: tuple[tuple[float, float], ...]) -> float:
    x, y = np.log(np.array(points)).T
    return float(np.polyfit(x, y, 1)[0])


def _listed(points: tuple[tuple[float, float], ...]) -> str:
    return ", ".join(f"{x:g}: {y * 1e3:.3g} ms" for x, y in points)
