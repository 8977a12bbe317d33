"""The plain C entry points: what they refuse, memory of any layout, and results that do not depend on threads."""

import ctypes

import numpy as np
import pytest

from schurfire import InvalidInputError
from schurfire.native import library, problem
from schurfire.native.problem import strided

pytestmark = pytest.mark.skipif(not library.is_available(), reason="the native recurrence is not installed")

Arrays = dict[str, np.ndarray | None]


def example(R: int = 2, S: int = 3, N: int = 7, n: int = 2, m: int = 4, p: int = 5, dtype: str = "float64") -> Arrays:
    """Arguments and results of a response."""
    rng = np.random.default_rng(0)
    given = {"A": (R, n, n), "B": (R, n, m), "C": (R, p, n), "D": (R, p, m), "u": (R, S, N, m), "x0": (R, S, n)}
    arrays: Arrays = {name: 0.2 * rng.standard_normal(shape).astype(dtype) for name, shape in given.items()}
    results = {"y": (R, S, N, p), "x": (R, S, N, n), "x_end": (R, S, n)}
    return arrays | {name: np.full(shape, np.nan, dtype) for name, shape in results.items()}


def respond(arrays: Arrays, form: str = "dense") -> None:
    found = next(array for array in arrays.values() if array is not None)
    problem.respond(found.dtype.name, form, **{name: strided(array) for name, array in arrays.items()})


def outputs(arrays: Arrays) -> np.ndarray:
    """y by the definition."""
    x, ys = arrays["x0"], []
    for k in range(arrays["u"].shape[2]):
        u = arrays["u"][:, :, k]
        ys.append(np.einsum("rij,rsj->rsi", arrays["C"], x) + np.einsum("rij,rsj->rsi", arrays["D"], u))
        x = np.einsum("rij,rsj->rsi", arrays["A"], x) + np.einsum("rij,rsj->rsi", arrays["B"], u)
    return np.stack(ys, axis=2)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("A", (2, 2, 3)),
        ("B", (2, 2, 5)),
        ("B", (1, 2, 4)),
        ("C", (2, 5, 3)),
        ("D", (2, 4, 4)),
        ("u", (3, 3, 7, 4)),
        ("x0", (2, 1, 2)),
        ("y", (2, 3, 6, 5)),
        ("x", (2, 3, 7, 3)),
        ("x_end", (1, 3, 2)),
    ],
)
def test_wrong_shapes(name, shape):
    with pytest.raises(InvalidInputError, match=r"Expected \w+ to be of shape \(.*\), received shape \("):
        respond(example() | {name: np.zeros(shape)})


@pytest.mark.parametrize("name", ["A", "u"])
def test_missing_arrays(name):
    with pytest.raises(InvalidInputError, match="Expected A and u to be given, received None"):
        respond(example() | {name: None})


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (example(S=0), "a size is not positive"),
        (example() | {"B": None}, "B is missing, but inputs and states differ in number"),
        (example(p=2) | {"C": None}, "D is given without C"),
    ],
)
def test_faults_are_reported(arrays, message):
    with pytest.raises(InvalidInputError, match=f"that the native recurrence can compute: {message}"):
        respond(arrays)


@pytest.mark.parametrize("entry", ["respond", "differentiate"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": -1}, "a size is not positive"),
        *[({size: 0}, "a size is not positive") for size in ("states", "inputs", "outputs", "sequences", "models")],
        ({"models": -(2**63)}, "a size is not positive"),
        ({"form": 3}, "the form is unknown"),
        ({"form": -1}, "the form is unknown"),
        ({"A": 0}, "A is missing"),
        ({"u": 0}, "u is missing"),
        ({"B": 0}, "B is missing, but inputs and states differ in number"),
        ({"C": 0}, "C is missing, but outputs and states differ in number"),
        ({"C": 0, "outputs": 2}, "D is given without C"),
        *[({size: 2**63 - 1}, "the sizes are too large") for size in ("steps", "states", "inputs", "outputs")],
        ({"sequences": 2**32, "models": 2**32}, "the sizes are too large"),
        ({"states": 2**20, "sequences": 2}, "the sizes are too large"),
        ({"steps": 2**39}, "the sizes are too large"),
    ],
)
def test_faults_of_the_entry_points(entry, changes, message):
    """No caller in Python can bring about all of them; the library checks before it touches any memory."""
    made = problem.problem_of("dense", {name: strided(array) for name, array in example().items()})
    for name, value in changes.items():
        if name in ("A", "B", "C", "u"):
            getattr(made, name).data = value
        else:
            setattr(made, name, value)
    function = getattr(library.require_library(), f"schurfire_{entry}_f64")
    function.restype, function.argtypes = ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_int64)
    assert function(ctypes.addressof(made), 1).decode() == message


# --- what is computed -------------------------------------------------------------------------------------------------


def _reversed_in_time(u: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(u[:, :, ::-1])[:, :, ::-1]


def _models_innermost(u: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(u.transpose(2, 3, 1, 0)).transpose(3, 2, 0, 1)


def _with_gaps(u: np.ndarray) -> np.ndarray:
    return np.repeat(u, 2, axis=-1)[..., ::2]


@pytest.mark.parametrize("layout", [_reversed_in_time, _models_innermost, _with_gaps])
@pytest.mark.parametrize(("R", "S", "N"), [(1, 1, 100), (1, 17, 33), (40, 1, 33), (3, 5, 16)])
def test_any_strides(layout, R, S, N):
    arrays = example(R, S, N)
    respond(arrays | {"u": layout(arrays["u"])})
    expected = outputs(arrays)
    np.testing.assert_allclose(arrays["y"], expected, rtol=0, atol=1e-13 * np.abs(expected).max())


def test_one_sequence_for_all_models():
    arrays = example(20, 2, 40)
    arrays["u"] = arrays["u"][:1]
    respond(arrays)
    expected = outputs(arrays | {"u": np.broadcast_to(arrays["u"], (20, *arrays["u"].shape[1:]))})
    np.testing.assert_allclose(arrays["y"], expected, rtol=0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_threads_do_not_change_a_bit(dtype):
    """64 models are several groups of lanes, and so many steps several threads."""
    arrays = example(64, 1, 2000, 5, 3, 3, dtype)
    results = {name: arrays.pop(name) for name in ("y", "x", "x_end")}
    bars = {f"{name}_bar": np.empty_like(array) for name, array in arrays.items()}
    given = arrays | {"x0": None, "x": results["x"], "y_bar": results["y"]}
    for name, inputs, written in (("respond", arrays, results), ("differentiate", given, bars)):
        found = []
        for threads in (1, 2, 5):
            for array in written.values():
                array.fill(np.nan)
            assert _call(name, inputs | written, threads) is None
            found.append([array.tobytes() for array in written.values()])
        assert found[0] == found[1] == found[2]
        assert all(np.isfinite(array).all() for array in written.values())


def _call(name: str, arrays: Arrays, threads: int) -> bytes | None:
    made = problem.problem_of("dense", {key: strided(array) for key, array in arrays.items()})
    function = getattr(library.require_library(), f"schurfire_{name}_f{arrays['A'].dtype.itemsize * 8}")
    function.restype, function.argtypes = ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_int64)
    return function(ctypes.addressof(made), threads)
