"""Prints every figure beside its target: ``python -m benchmarks [NAME ...] [--smoke] [--save]``."""

import importlib
import platform
import sys
import time
from pathlib import Path

import cyclopts
from rich.console import Console
from rich.table import Table

from benchmarks.figures import Figure

MATRICES = ("blocks", "projection", "paper_rows", "pairs", "schur", "orthogonal", "certificates", "optimal", "provable")
TRAININGS = ("epochs", "limit", "rivals", "pure", "price", "precision", "scaling", "memory", "unproven")
NAMES = MATRICES + TRAININGS
_RESULTS = Path(__file__).parent / "results"
app = cyclopts.App(name="python -m benchmarks", help=__doc__)


@app.default
def main(*names: str, smoke: bool = False, save: bool = False) -> None:
    """Measures.

    Args:
        names: which benchmarks, by default all.
        smoke: small sizes, to see that they run; the figures mean little then.
        save: write each table to benchmarks/results/NAME.md.
    """
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        sys.exit(f"Expected names to be among {', '.join(NAMES)}, received {', '.join(unknown)}.")
    console = Console()
    for name in names or NAMES:
        module = importlib.import_module(f"benchmarks.{name}")
        start = time.perf_counter()
        figures = []
        table = Table("what", "target", "measured", "met", title=f"{name}: {module.__doc__.splitlines()[0]}")
        for figure in module.figures(smoke):
            figures.append(figure)
            table.add_row(figure.what, figure.target, figure.measured, "yes" if figure.met else "NO")
            console.log(figure.what, "|", figure.measured)
        console.print(table)
        if save:
            _save(name, module.__doc__.splitlines()[0], figures, time.perf_counter() - start)
            if hasattr(module, "draw"):
                module.draw(figures, _RESULTS)


def _save(name: str, title: str, figures: list[Figure], elapsed: float) -> None:
    import jax
    import numpy
    import scipy

    versions = f"NumPy {numpy.__version__}, SciPy {scipy.__version__}, JAX {jax.__version__}"
    lines = [
        f"# {title}",
        "",
        f"`python -m benchmarks {name}`, {elapsed:.0f} s, Python {platform.python_version()}, {versions}, "
        f"{platform.machine()}, 2 cores.",
        "",
        "| what | target | measured | met |",
        "|---|---|---|---|",
        *(f"| {f.what} | {f.target} | {f.measured} | {'yes' if f.met else '**no**'} |" for f in figures),
        "",
    ]
    _RESULTS.mkdir(exist_ok=True)
    (_RESULTS / f"{name}.md").write_text("\n".join(lines))


app()
