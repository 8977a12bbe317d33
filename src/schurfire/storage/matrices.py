"""One matrix or one Schur pair, from and to a file.

| suffix | holds | reading | writing |
|---|---|---|---|
| ``.npy`` | a matrix, float32 or float64 | bit by bit, integers are refused | bit by bit |
| ``.csv`` | a matrix as text, without a header | as float64 | every number exactly, see ``write_matrix`` |
| ``.mat`` | a matrix, MATLAB version 5 to 7.2 | single bit by bit, else as float64 | bit by bit, named ``A`` |
| ``.npz`` | a Schur pair: ``T``, ``Z``, ``region`` and where there is one ``source`` | bit by bit | bit by bit |

Nothing is unpickled, so that a file cannot run code.
"""

import json
import re
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from schurfire.arrays import square_matrix
from schurfire.errors import InvalidInputError, invalid
from schurfire.files import check_suffix, whole_file
from schurfire.regions import Disc, HalfPlane, Region
from schurfire.stability.certificate import certify
from schurfire.stability.schur_form import SchurForm

MATRIX_SUFFIXES = (".npy", ".csv", ".mat")
PAIR_SUFFIXES = (".npz",)

_REGIONS = {"disc": Disc, "half-plane": HalfPlane}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_LARGEST_EXACT_INTEGER = 2**53


def read_matrix(path: str | Path, variable: str | None = None) -> np.ndarray:
    """Reads one real, finite, square matrix.

    A ``.csv`` file has one row per line and one separator: semicolons if there are any, else commas, else white
    space. Blank lines are skipped. A ``.mat`` file may hold other things besides the matrix if they are no 2-D
    numeric arrays; sparse matrices become dense. Integers become float64: MATLAB stores every matrix as integers if its
    numbers allow it, whatever its class.

    Args:
        path: a ``.npy``, ``.csv`` or ``.mat`` file.
        variable: which variable of a ``.mat`` file; needed where several qualify.

    Returns:
        float64, or float32 if a ``.npy`` or ``.mat`` file stores that, of shape (n, n).

    Raises:
        InvalidInputError: a file that is missing, of another type, damaged, or holds anything else than one such
            matrix; for text the message names line and column.
    """
    path = Path(path)
    suffix = check_suffix(path, MATRIX_SUFFIXES, "the matrix")
    if variable is not None and suffix != ".mat":
        raise invalid("variable", "given for a .mat file only", f"{variable!r} for {path}", "Leave it out.")
    _require_file(path)
    match suffix:
        case ".npy":
            matrix = _load_numpy(path, zipped=False)
        case ".csv":
            matrix = _parse_csv(path)
        case _:
            matrix = _load_mat(path, variable)
    return square_matrix(matrix, str(path))


def write_matrix(path: str | Path, A: Any, variable: str = "A") -> None:
    """Writes one matrix, at once or not at all; an existing file is replaced.

    Text holds the shortest digits that give back the float64 number exactly. A float32 matrix is written as the
    float64 numbers that it equals: read again, it is float64 with the same values, so that a proof about the one is
    a proof about the other.

    Args:
        path: a ``.npy``, ``.csv`` or ``.mat`` file.
        A: float32 or float64, shape (n, n); n = 0 not as text, which could not be read again.
        variable: its name in a ``.mat`` file.

    Raises:
        InvalidInputError: another suffix, or A is no finite real square matrix.
        OSError: the file cannot be written.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_matrix(f"{folder}/A.csv", [[0.1, 0.2], [0.0, 1e-300]])
    ...     read_matrix(f"{folder}/A.csv").tolist()
    [[0.1, 0.2], [0.0, 1e-300]]
    """
    path = Path(path)
    suffix = check_suffix(path, MATRIX_SUFFIXES, "the output")
    A = square_matrix(A, "A")
    if suffix == ".csv" and A.size == 0:
        raise invalid("A", "of order 1 or more for a .csv file", f"shape {A.shape}", "Write a .npy file.")
    with whole_file(path) as file:
        match suffix:
            case ".npy":
                np.save(file, A, allow_pickle=False)
            case ".csv":
                file.write("".join(",".join(map(repr, row)) + "\n" for row in A.tolist()).encode())
            case _:
                from scipy.io import savemat

                savemat(file, {variable: A})


def read_pair(path: str | Path) -> SchurForm:
    """Reads the Schur pair that ``write_pair`` wrote, bit by bit.

    Raises:
        InvalidInputError: a file that is missing, of another type, damaged, or holds no Schur pair.
    """
    path = Path(path)
    check_suffix(path, PAIR_SUFFIXES, "the Schur pair")
    _require_file(path)
    arrays = _load_numpy(path, zipped=True)
    if not {"T", "Z", "region"} <= arrays.keys():
        raise invalid(str(path), "a Schur pair with the arrays T, Z and region", ", ".join(arrays) or "no array")
    for name in ("T", "Z"):
        square_matrix(arrays[name], f"{name} of {path}")
    form = SchurForm(arrays["T"], arrays["Z"], _parse_region(arrays["region"], path), arrays.get("source"))
    if form.source is not None and not certify(form.source, form.region).is_stable:
        raise invalid(f"source in {path}", "a matrix that is proven stable", "one that is not", "Leave it out.")
    return form


def write_pair(path: str | Path, form: SchurForm) -> None:
    """Writes one Schur pair, at once or not at all; an existing file is replaced.

    Args:
        path: a ``.npz`` file: the arrays ``T``, ``Z``, the region as JSON, and ``source`` if the form has one.
        form: a single pair.

    Raises:
        InvalidInputError: another suffix, or a stack of pairs.
        OSError: the file cannot be written.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_pair(f"{folder}/A.npz", SchurForm(np.array([[0.5]]), np.eye(1), HalfPlane(2.0)))
    ...     read_pair(f"{folder}/A.npz").region
    HalfPlane(bound=2.0)
    """
    path = Path(path)
    check_suffix(path, PAIR_SUFFIXES, "the output")
    arrays = {"T": square_matrix(form.T, "T"), "Z": square_matrix(form.Z, "Z")}
    if form.source is not None:
        arrays["source"] = form.source
    with whole_file(path) as file:
        np.savez(file, allow_pickle=False, region=np.array(json.dumps(region_as_dict(form.region))), **arrays)


def region_as_dict(region: Region) -> dict[str, Any]:
    """The region in words and numbers that JSON can hold exactly.

    >>> region_as_dict(HalfPlane(2.0))
    {'kind': 'half-plane', 'bound': 2.0}
    """
    kind = next(name for name, cls in _REGIONS.items() if isinstance(region, cls))
    return {"kind": kind, **asdict(region)}


def _parse_region(stored: np.ndarray, path: Path) -> Region:
    try:
        fields = json.loads(str(stored))
        return _REGIONS[fields.pop("kind")](**fields)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise invalid(f"the region of {path}", "a disc or a half-plane as JSON", str(stored)) from None


def _require_file(path: Path) -> None:
    """Refuses what cannot be opened before a reader does so in its own words."""
    if path.is_dir():
        raise invalid("the matrix", "a file", f"the folder {path}")
    try:
        with open(path, "rb") as file:
            empty = not file.read(1)
    except FileNotFoundError:
        raise invalid("the matrix", "a file that exists", path) from None
    except OSError as error:
        raise invalid("the matrix", "a file that can be read", f"{path} ({error.strerror})") from None
    if empty:
        raise invalid(str(path), "a matrix", "an empty file")


def _load_numpy(path: Path, zipped: bool) -> Any:
    """The array of a ``.npy`` file, or the dict of arrays of a ``.npz`` file."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            arrays = _native(loaded)
        else:
            with loaded:
                arrays = {name: _native(loaded[name]) for name in loaded.files}
    except Exception:  # what NumPy raises depends on where its parser of a foreign or damaged file trips
        fix = "Write it with NumPy and without Python objects."
        raise invalid(str(path), "an intact NumPy file of plain numbers", "something else", fix) from None
    if isinstance(arrays, dict) != zipped:
        expected, received = ("several arrays", "one array")[:: 1 if zipped else -1]
        raise invalid(str(path), f"a file of {expected}", received, "Its suffix is not that of its contents.")
    return arrays


def _native(array: np.ndarray) -> np.ndarray:
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _load_mat(path: Path, variable: str | None) -> np.ndarray:
    from scipy.io import loadmat

    try:
        with warnings.catch_warnings(action="ignore"):  # about variables that are no matrices
            contents = loadmat(path, appendmat=False)  # mat_dtype=True would drop imaginary parts
    except NotImplementedError:
        raise invalid(str(path), "a MATLAB file of version 5 to 7.2", "version 7.3", "Save it with -v7.") from None
    except Exception:  # what SciPy raises depends on where its parser of a foreign or damaged file trips
        raise invalid(str(path), "an intact MATLAB file", "something else") from None
    matrices = {name: value for name, value in contents.items() if _is_numeric_matrix(value)}
    listed = ", ".join(f"{name} ({'x'.join(map(str, value.shape))})" for name, value in matrices.items()) or "none"
    if variable is None and len(matrices) != 1:
        fix = "Choose one with --variable NAME." if matrices else ""
        raise invalid(str(path), "a file with exactly one 2-D numeric variable", listed, fix)
    if variable is not None and variable not in matrices:
        raise invalid(f"variable {variable!r}", f"a 2-D numeric variable of {path}", f"one of these: {listed}")
    matrix = matrices[variable or next(iter(matrices))]
    return _as_floats(matrix if isinstance(matrix, np.ndarray) else matrix.toarray(), path)


def _is_numeric_matrix(value: Any) -> bool:
    """Whether this is a 2-D array of numbers, dense or sparse."""
    return getattr(getattr(value, "dtype", None), "kind", "O") in "iufc" and len(value.shape) == 2


def _as_floats(matrix: np.ndarray, path: Path) -> np.ndarray:
    if matrix.dtype.kind not in "iu":
        return matrix
    if np.any(matrix > _LARGEST_EXACT_INTEGER) or np.any(matrix < -_LARGEST_EXACT_INTEGER):
        raise invalid(str(path), "integers that float64 can hold exactly", "some beyond 2^53")
    return matrix.astype(np.float64)


def _parse_csv(path: Path) -> np.ndarray:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise invalid(str(path), "text in UTF-8", "other bytes") from None
    numbered = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
    if not numbered:
        raise invalid(str(path), "a matrix", "only blank lines")
    text = "".join(line for _, line in numbered)
    separator = next((mark for mark in ";," if mark in text), None)
    rows = [_parse_row(line.split(separator), number, path, first=not i) for i, (number, line) in enumerate(numbered)]
    for (number, _), row in zip(numbered, rows, strict=True):
        if len(row) != len(rows[0]):
            condition = f"as long as the first row, {len(rows[0])} numbers"
            raise invalid(f"line {number} of {path}", condition, f"{len(row)} numbers")
    return np.array(rows)


def _parse_row(fields: list[str], number: int, path: Path, first: bool) -> list[float]:
    for column, field in enumerate(map(str.strip, fields), 1):
        if not _NUMBER.fullmatch(field):
            raise _no_number(field, number, column, path, header=first and _looks_like_header(fields))
    return [float(field) for field in fields]


def _looks_like_header(fields: list[str]) -> bool:
    return not any(_NUMBER.fullmatch(field.strip()) for field in fields)


def _no_number(field: str, number: int, column: int, path: Path, header: bool) -> InvalidInputError:
    fix = ""
    if header:
        fix = "Delete the line if it is a header."
    elif _NUMBER.fullmatch(field.replace(",", ".", 1)):
        fix = "Write decimal fractions with a point."
    received = repr(field) if field else "an empty field"
    return invalid(f"line {number}, column {column} of {path}", "a finite number", received, fix)
