"""``schurfire nearest``: a nearest stable matrix with its proof."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from schurfire.cli.certify import certificate_as_dict
from schurfire.cli.options import NO_REGION, Flag, RegionOptions, Whole
from schurfire.cli.terminal import search, show_json, show_row, show_verdict
from schurfire.errors import invalid

if TYPE_CHECKING:
    import numpy as np

    from schurfire.regions import Region
    from schurfire.stability.certificate import Certificate
    from schurfire.stability.nearest import NearestStable
    from schurfire.stability.nearest_dense import NearestProvable

EXAMPLES = """Examples:

    schurfire nearest A.npy -o X.npy
    schurfire nearest A.csv -o X.csv --radius 0.99 --plot eigenvalues.png
    schurfire nearest plant.mat --variable A --half-plane 0 -o X.mat
    schurfire nearest A.npy --form schur --starts 8 -o pair.npz
"""


@Parameter(name="*")
@dataclass(frozen=True)
class SearchOptions:
    """What is searched, and how long.

    Attributes:
        form: What to find: the nearest array that can be proven, or the nearest Schur pair.
        truncated: Take the Schur factor Z of the matrix instead of searching for a better one: fast, but further away.
            A plain array is then searched for from there.
        starts: Number of starting points of the search for the pair.
        seed: Of the random starting points.
    """

    form: Literal["dense", "schur"] = "dense"
    truncated: Flag = False
    starts: Whole = 1
    seed: Whole = 0


@Parameter(name="*")
@dataclass(frozen=True)
class OutputOptions:
    """Where results go.

    Attributes:
        output: Where to write: .npy, .csv or .mat for an array, .npz for a pair. An existing file is replaced when the
            new one is complete.
        plot: Where to draw the eigenvalues: .png, .svg or .pdf.
        json: Write one JSON object instead of text.
    """

    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None
    plot: Annotated[Path | None, Parameter(name="--plot")] = None
    json: Annotated[Flag, Parameter(name="--json")] = False


_HOW, _TO = SearchOptions(), OutputOptions()


def command(
    matrix: Path,
    /,
    *,
    where: RegionOptions = NO_REGION,
    how: SearchOptions = _HOW,
    to: OutputOptions = _TO,
    variable: str | None = None,
) -> int:
    """Find a nearest stable matrix, with proof.

    A plain array (--form dense) carries a proof about the very numbers written. The Schur pair (--form schur) comes
    nearer to the matrix and is proven exactly, but only as the two factors T and Z that it is.

    Args:
        matrix: A .npy, .csv or .mat file.
        where: The region.
        how: The search.
        to: The files.
        variable: The variable of a .mat file that holds several.
    """
    from schurfire.regions import Disc
    from schurfire.storage.matrices import read_matrix

    _check_outputs(matrix, how.form, to)
    region = where.region() or Disc()
    A = read_matrix(matrix, variable)
    began = time.perf_counter()
    found = search("searching", lambda: _find(A, region, how))
    seconds = time.perf_counter() - began
    _write(found, A, matrix.name, to, variable)
    show_result = _show_json if to.json else _show
    show_result(found, A, matrix, how, to, seconds)
    return 0


@dataclass(frozen=True)
class Found:
    """A Schur pair near a matrix and, if it was asked for, an array."""

    pair: "NearestStable"
    array: "NearestProvable | None"

    @property
    def certificate(self) -> "Certificate":
        """Of what was asked for."""
        return self.pair.form.certify() if self.array is None else self.array.certificate

    @property
    def distance(self) -> float:
        """Of what was asked for from the matrix."""
        return float(self.pair.distance if self.array is None else self.array.distance)


def _find(A: "np.ndarray", region: "Region", how: SearchOptions) -> Found:
    import schurfire as sf

    if how.truncated:
        pair = _truncated(A, region)
    else:
        pair = sf.nearest_stable(A, region=region, n_starts=how.starts, seed=how.seed)
    return Found(pair, None if how.form == "schur" else sf.nearest_provable(A, region, pair))


def _truncated(A: "np.ndarray", region: "Region") -> "NearestStable":
    """The truncated projection as the result of a search that has not begun."""
    import numpy as np

    import schurfire as sf

    form = sf.project_stable(A, region)
    Z = form.Z.astype(np.float64)
    distance = 0.0 if form.source is not None else _norm(Z.T @ A @ Z - form.T)
    return sf.NearestStable(form, distance, 0, False, np.array([distance]))


def describe_distance(distance: float, A: "np.ndarray") -> str:
    """A distance from A, and the normalised squared Frobenius error (NSFE) that it is."""
    nsfe = _relative(distance, A)
    return f"{distance:.6g}" + ("" if nsfe is None else f" (NSFE {nsfe:.4g})")


def _check_outputs(matrix: Path, form: str, to: OutputOptions) -> None:
    """Refuses, before any work, what could not be written after it."""
    from schurfire.files import check_output
    from schurfire.storage.matrices import MATRIX_SUFFIXES, PAIR_SUFFIXES

    if to.output is not None:
        check_output(to.output, MATRIX_SUFFIXES if form == "dense" else PAIR_SUFFIXES)
        if to.output.exists() and matrix.exists() and to.output.samefile(matrix):
            raise invalid("the output", "another file than the matrix", to.output)
    if to.plot is not None:
        from schurfire.report.eigenvalues import check_picture

        check_picture(to.plot)


def _write(found: Found, A: "np.ndarray", name: str, to: OutputOptions, variable: str | None) -> None:
    from schurfire.storage.matrices import write_matrix, write_pair

    form = found.pair.form
    array = None if found.array is None else found.array.matrix
    if to.output is not None and array is None:
        write_pair(to.output, form)
    elif to.output is not None:
        write_matrix(to.output, array, variable or "A")
    if to.plot is not None:
        from schurfire.report.eigenvalues import eigenvalue_figure, save_figure

        title = f"{name}, order {len(A)}, and stable matrices near it"
        save_figure(eigenvalue_figure(A, form, array, form.region, title), to.plot)


def _show(found: Found, A: "np.ndarray", matrix: Path, how: SearchOptions, to: OutputOptions, seconds: float) -> None:
    show_verdict(found.certificate)
    what, suffix = ("pair", ".npz") if found.array is None else ("array", ".npy")
    show_row("distance", f"{describe_distance(found.distance, A)} of this {what} from {matrix}")
    if found.array is not None:
        pair = describe_distance(float(found.pair.distance), A)
        show_row("truncated" if how.truncated else "optimum", f"{pair} of the Schur pair, proven only as a pair (T, Z)")
    stopped = "" if how.truncated or found.pair.converged else "; the search for the pair stopped before it converged"
    show_row("time", f"{seconds:.2g} s{stopped}")
    show_row("written", f"nothing; name a file: -o X{suffix}" if to.output is None else str(to.output))
    if to.plot is not None:
        show_row("picture", str(to.plot))


def _show_json(
    found: Found, A: "np.ndarray", matrix: Path, how: SearchOptions, to: OutputOptions, seconds: float
) -> None:
    from schurfire.storage.matrices import region_as_dict

    pair_distance = float(found.pair.distance)
    content = {
        "matrix": str(matrix),
        "n": len(A),
        "dtype": A.dtype.name,
        "region": region_as_dict(found.pair.form.region),
        "form": how.form,
        "truncated": how.truncated,
        "certificate": certificate_as_dict(found.certificate),
        "distance": found.distance,
        "nsfe": _relative(found.distance, A),
        "pair_distance": pair_distance,
        "pair_nsfe": _relative(pair_distance, A),
        "iterations": int(found.pair.iterations),
        "converged": bool(found.pair.converged),
        "seconds": round(seconds, 6),
        "output": None if to.output is None else str(to.output),
        "plot": None if to.plot is None else str(to.plot),
    }
    show_json(content)


def _norm(M: "np.ndarray") -> float:
    import numpy as np

    return float(np.linalg.norm(M.astype("float64")))


def _relative(distance: float, A: "np.ndarray") -> float | None:
    """The distance as NSFE, or None where that is undefined."""
    import numpy as np

    largest = float(np.max(np.abs(A), initial=0.0))
    return (distance / largest / _norm(A / largest)) ** 2 if largest else None
