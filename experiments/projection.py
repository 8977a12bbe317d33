"""The nearest stable matrix, optimal and truncated, of the paper's four cases: its table and figure of appendix B.

A projection is read in three ways, because they differ:

- ``pair``: the eigenvalues of the exact Schur pair (T, Z), which are those of the blocks of T;
- ``recomposed``: those of the array ``Z T Z^T``, in float64 and in float32. The paper's MSVR is that of this array;
- ``dense``: those of the array of ``nearest_provable``, which is proven stable as it stands.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.progress import Progress

import schurfire as sf
from experiments.matrices import CASES, case_matrix
from experiments.timing import Timed, average_time


@dataclass(frozen=True)
class Settings:
    """How much is computed.

    Attributes:
        sizes: matrix orders.
        n_starts: starting points of the search for the optimum.
        patience: a search that takes fewer seconds than this is run again, so that compiling is not timed.
        seed: of the random matrices and of the starting points.
    """

    sizes: tuple[int, ...] = (10, 20, 50, 100)
    n_starts: int = 4
    patience: float = 20.0
    seed: int = 0


FULL = Settings()
SMOKE = Settings(sizes=(3, 5), n_starts=1, patience=0.0)

METHODS = ("reference", "truncated", "optimal", "provable")


def compute(settings: Settings, progress: Progress) -> list[dict[str, Any]]:
    """Rows: one for each case, size, method and reading, and one for the eigenvalues of the matrix itself."""
    rows = []
    task = progress.add_task("", total=len(METHODS) * len(CASES) * len(settings.sizes))
    for n in settings.sizes:
        for case in CASES:
            A = case_matrix(case, n, settings.seed)
            common = {"case": case, "n": n, "dtype": A.dtype.name, "seed": settings.seed}
            progress.update(task, description=f"case {case}, n = {n}")
            for method, readings in _measured(A, settings):
                rows += [common | {"method": method} | reading for reading in readings]
                progress.advance(task)
    return rows


def _measured(A: np.ndarray, settings: Settings) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The rows of the ``METHODS``, one after the other."""
    yield "reference", [_reading("matrix", A, A, None)]

    truncated = average_time(lambda: sf.project_stable(A), runs=100, budget=0.5)
    yield "truncated", _pair_readings(A, truncated.result, truncated)

    search = _timed_search(lambda: sf.nearest_stable(A, n_starts=settings.n_starts, seed=settings.seed), settings)
    optimum = search.result
    ending = {
        "iterations": int(optimum.iterations),
        "converged": bool(optimum.converged),
        "n_starts": settings.n_starts,
    }
    yield "optimal", [reading | ending for reading in _pair_readings(A, optimum.form, search)]

    search = _timed_search(lambda: sf.nearest_provable(A, optimum=optimum), settings)
    array, proof = search.result.matrix, search.result.certificate
    yield "provable", [_reading("dense", A, array, None) | _verdict(proof) | _time(search)]


def _pair_readings(A: np.ndarray, form: sf.SchurForm, timed: Timed) -> list[dict[str, Any]]:
    T, Z = (np.asarray(X, "float32") for X in (form.T, form.Z))
    pair = _reading("pair", A, form.matrix, sf.metrics.spectrum_of_blocks(form.T)) | _verdict(form.certify())
    arrays = {"recomposed": form.matrix, "recomposed float32": Z @ T @ Z.T}
    dense = [_reading(name, A, X, None) | _verdict(sf.certify(X)) for name, X in arrays.items()]
    return [row | _time(timed) for row in (pair, *dense)]


def _reading(reading: str, A: np.ndarray, X: np.ndarray, spectrum: np.ndarray | None) -> dict[str, Any]:
    """The metrics of X; ``spectrum`` are its eigenvalues where they are known better than LAPACK finds them."""
    if spectrum is None:
        spectrum = np.linalg.eigvals(X.astype("float64"))
    spectrum = spectrum.astype("complex128")
    return {
        "reading": reading,
        "nsfe": sf.metrics.nsfe(A, X),
        "nssr": sf.metrics.nssr(A, spectrum),
        "msvr": sf.metrics.msvr(spectrum),
        "eigenvalues_re": spectrum.real.tolist(),
        "eigenvalues_im": spectrum.imag.tolist(),
    }


def _verdict(certificate: Any) -> dict[str, Any]:
    return {"proven": bool(certificate.is_stable), "proof": str(certificate.method)}


def _time(timed: Timed) -> dict[str, Any]:
    return {"seconds": timed.seconds, "runs": timed.runs}


def _timed_search(search: Callable[[], Any], settings: Settings) -> Timed:
    """The time of the second run; of the only one where that takes so long that compiling hardly matters."""
    for _ in range(2):
        start = time.perf_counter()
        timed = Timed(search(), time.perf_counter() - start, 1)
        if timed.seconds > settings.patience:
            return timed
    return timed
