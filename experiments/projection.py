"""The nearest stable matrix, optimal and truncated, of the paper's four cases: its table and figure of appendix B.

A projection is read in three ways, because they differ:

- ``pair``: the eigenvalues of the exact Schur pair (T, Z), which are those of the blocks of T;
- ``recomposed``: those of the array ``Z T Z^T``, in float64 and in float32. The paper's MSVR is that of this array;
- ``dense``: those of the array of ``nearest_provable``, which is proven stable as it stands.
"""

import time
from collections.abc import Callable
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
SMOKE = Settings(sizes=(3, 4, 5, 6), n_starts=1, patience=0.0)


def compute(settings: Settings, progress: Progress) -> list[dict[str, Any]]:
    """Rows: one for each case, size, method and reading, and one for the eigenvalues of the matrix itself."""
    rows = []
    task = progress.add_task("", total=4 * len(CASES) * len(settings.sizes))
    for n in settings.sizes:
        for case in CASES:
            A = case_matrix(case, n, settings.seed)
            for method, rows_of in _METHODS.items():
                progress.update(task, description=f"case {case}, n = {n}, {method}")
                common = {"case": case, "n": n, "method": method, "dtype": A.dtype.name, "seed": settings.seed}
                rows += [common | row for row in rows_of(A, settings)]
                progress.advance(task)
    return rows


def _reference(A: np.ndarray, _settings: Settings) -> list[dict[str, Any]]:
    return [_reading("matrix", A, A, np.linalg.eigvals(A))]


def _optimal(A: np.ndarray, settings: Settings) -> list[dict[str, Any]]:
    timed = _timed_search(lambda: sf.nearest_stable(A, n_starts=settings.n_starts, seed=settings.seed), settings)
    search = {"iterations": int(timed.result.iterations), "converged": bool(timed.result.converged)}
    return [row | search for row in _pair_readings(A, timed.result.form, timed)]


def _truncated(A: np.ndarray, _settings: Settings) -> list[dict[str, Any]]:
    timed = average_time(lambda: sf.project_stable(A), runs=100, budget=0.5)
    return _pair_readings(A, timed.result, timed)


def _provable(A: np.ndarray, settings: Settings) -> list[dict[str, Any]]:
    timed = _timed_search(lambda: sf.nearest_provable(A), settings)
    result = timed.result
    return [_reading("dense", A, result.matrix, None) | _verdict(result.certificate) | _time(timed)]


_METHODS: dict[str, Callable[[np.ndarray, Settings], list[dict[str, Any]]]] = {
    "reference": _reference,
    "optimal": _optimal,
    "truncated": _truncated,
    "provable": _provable,
}


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
