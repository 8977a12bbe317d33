"""The native recurrence in JAX programs: values and gradients of a loop over time, under every transformation."""

import functools
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from schurfire.kernels.forms import FORMS
from schurfire.kernels.recurrence import linear_recurrence, state_space_response
from schurfire.native import library

pytestmark = pytest.mark.skipif(not library.is_available(), reason="the native recurrence is not installed")

NAMES = ("A", "B", "C", "D", "u", "x0")
ABSENT = ((), ("x0",), ("D",), ("B",), ("C", "D"), ("B", "C", "D"), ("B", "C", "D", "x0"), ("B", "D"))

Arrays = dict[str, np.ndarray | None]
native = functools.partial(state_space_response, method="native")


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def example(sizes: tuple[int, ...], absent=(), dtype="float64", is_shared=False) -> Arrays:
    """R models on S sequences of N steps, or all on the same S sequences if that is shared; n, m, p channels."""
    R, S, N, n, m, p = sizes
    m, p = n if "B" in absent else m, n if "C" in absent else p
    inputs = (S, N, m) if is_shared else (R, S, N, m)
    shapes = ((R, 1, n, n), (R, 1, n, m), (R, 1, p, n), (R, 1, p, m), inputs, (R, S, n))
    rng = np.random.default_rng(sizes)
    arrays: Arrays = {name: rng.standard_normal(shape).astype(dtype) for name, shape in zip(NAMES, shapes, strict=True)}
    arrays["A"] *= np.asarray(0.45 / np.sqrt(n), dtype)
    return {name: None if name in absent else x for name, x in arrays.items()}


def slopes(arrays: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Weights of y and of ``x[N]`` in the scalar that is differentiated."""
    R, S, N, n = len(arrays["A"]), *arrays["u"].shape[-3:-1], arrays["A"].shape[-1]
    p, rng = n if arrays["C"] is None else arrays["C"].shape[-2], np.random.default_rng(1)
    return rng.standard_normal((R, S, N, p)), rng.standard_normal((R, S, n))


def by_loop(arrays: Arrays, y_bar, x_end_bar, form: str = "dense") -> tuple[np.ndarray, np.ndarray, Arrays]:
    """y, ``x[N]`` and the gradients of ``sum(y_bar y) + sum(x_end_bar x[N])``: the definition and the chain rule."""
    A, B, C, D, u, x0 = (None if arrays[name] is None else arrays[name].astype("float64") for name in NAMES)
    n, m = A.shape[-1], u.shape[-1]
    i, j = np.indices((n, n))
    used = {"dense": i >= 0, "quasi-triangular": j >= i - 1, "block-diagonal": i // 2 == j // 2}[form]
    A, B, C = A * used, np.eye(n) if B is None else B, np.eye(n) if C is None else C
    D = np.zeros((C.shape[-2], m)) if D is None else D
    R, S, N = *x_end_bar.shape[:2], u.shape[-2]
    xs, ys = [np.zeros((R, S, n)) if x0 is None else x0], []
    for k in range(N):
        ys.append(np.einsum("...ij,...j->...i", C, xs[k]) + np.einsum("...ij,...j->...i", D, u[..., k, :]))
        xs.append(np.einsum("...ij,...j->...i", A, xs[k]) + np.einsum("...ij,...j->...i", B, u[..., k, :]))
    costate = x_end_bar
    full = {"A": (R, S, n, n), "B": (R, S, n, m), "C": (R, S, *C.shape[-2:]), "D": (R, S, *D.shape[-2:])}
    bars = {name: np.zeros(shape) for name, shape in full.items()} | {"u": np.zeros((R, S, N, m))}
    for k in reversed(range(N)):
        now = y_bar[..., k, :]
        bars["A"] += used * costate[..., :, None] * xs[k][..., None, :]
        bars["B"] += costate[..., :, None] * u[..., k, None, :]
        bars["C"] += now[..., :, None] * xs[k][..., None, :]
        bars["D"] += now[..., :, None] * u[..., k, None, :]
        bars["u"][..., k, :] = np.einsum("...ij,...i->...j", B, costate) + np.einsum("...ij,...i->...j", D, now)
        costate = np.einsum("...ij,...i->...j", A, costate) + np.einsum("...ij,...i->...j", C, now)
    bars |= {"x0": costate}
    summed = {name: _sum_to(bars[name], x.shape) if x is not None else None for name, x in arrays.items()}
    return np.stack(ys, -2) if ys else np.zeros((R, S, 0, C.shape[-2])), xs[-1], summed


def _sum_to(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The gradient of what was broadcast from this shape."""
    x = x.sum(tuple(range(x.ndim - len(shape))))
    return x.sum(tuple(axis for axis, size in enumerate(shape) if size == 1), keepdims=True).reshape(shape)


def by_library(form: str = "dense"):
    """The same from the library, as a function to transform."""

    def scalar(arrays, y_bar, x_end_bar):
        y, x_end = native(**arrays, form=form)
        return jnp.sum(y * y_bar.astype(y.dtype)) + jnp.sum(x_end * x_end_bar.astype(y.dtype)), (y, x_end)

    def computed(arrays, y_bar, x_end_bar):
        gradients, (y, x_end) = jax.grad(scalar, has_aux=True)(arrays, y_bar, x_end_bar)
        return y, x_end, gradients

    return computed


def close(found, expected, dtype: str = "float64", factor: float = 500) -> None:
    """Sums of some hundred terms in models of norm below 1: some units of rounding of the largest entry."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == dtype
        assert a.shape == b.shape
        size = max(1.0, np.abs(b).max(initial=0.0))
        np.testing.assert_allclose(a, b, rtol=0, atol=factor * np.finfo(dtype).eps * size)


# --- values and gradients ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("absent", ABSENT)
@pytest.mark.parametrize(("form", "dtype"), [("dense", "float32"), *[(form, "float64") for form in FORMS]])
def test_against_a_loop(form, dtype, absent):
    arrays = example((3, 2, 37, 5, 3, 2), absent, dtype)
    found = jax.jit(by_library(form))(arrays, *slopes(arrays))
    close(found, by_loop(arrays, *slopes(arrays), form), dtype)


@pytest.mark.parametrize(
    ("sizes", "dtype"),
    [
        ((1, 1, 0, 3, 2, 2), "float32"),
        ((2, 2, 1, 1, 1, 1), "float64"),
        ((1, 1, 300, 5, 3, 3), "float32"),
        ((1, 1, 1000, 2, 5, 2), "float32"),
        ((1, 1, 1000, 2, 5, 2), "float64"),
        ((1, 16, 33, 10, 6, 6), "float32"),
        ((20, 1, 33, 4, 1, 3), "float64"),
        ((8, 1, 500, 2, 2, 2), "float32"),
        ((1, 3, 129, 28, 16, 8), "float64"),
        ((50, 2, 17, 7, 2, 1), "float32"),
    ],
)
def test_sizes(sizes, dtype):
    arrays = example(sizes, dtype=dtype)
    close(jax.jit(by_library())(arrays, *slopes(arrays)), by_loop(arrays, *slopes(arrays)), dtype, 2000)


@pytest.mark.parametrize(
    "sizes", [(16, 1, 40, 5, 3, 3), (5, 3, 20, 2, 2, 2), (1, 4, 20, 3, 2, 2), (33, 1, 99, 1, 1, 1)]
)
def test_inputs_that_the_models_share(sizes):
    arrays = example(sizes, is_shared=True)
    close(jax.jit(by_library())(arrays, *slopes(arrays)), by_loop(arrays, *slopes(arrays)))


@pytest.mark.parametrize("form", FORMS)
def test_large_models_of_each_form(form):
    arrays = example((2, 1, 40, 23, 2, 2))
    close(jax.jit(by_library(form))(arrays, *slopes(arrays)), by_loop(arrays, *slopes(arrays), form), factor=2000)


@pytest.mark.parametrize("part", [0, 1])
def test_a_result_that_is_not_used(part):
    arrays = example((3, 2, 20, 4, 2, 3))
    weights = list(slopes(arrays))
    found = jax.jit(jax.grad(lambda given: jnp.sum(native(**given)[part] * weights[part])))(arrays)
    weights[1 - part] = np.zeros_like(weights[1 - part])
    close(found, by_loop(arrays, *weights)[2])


@pytest.mark.parametrize("name", NAMES)
def test_one_gradient_alone(name):
    arrays = example((3, 2, 20, 4, 2, 3))
    y_bar, x_end_bar = slopes(arrays)

    def scalar(x):
        y, x_end = native(**(arrays | {name: x}))
        return jnp.sum(y * y_bar) + jnp.sum(x_end * x_end_bar)

    close(jax.jit(jax.grad(scalar))(arrays[name]), by_loop(arrays, y_bar, x_end_bar)[2][name])


def test_states():
    arrays = example((2, 3, 30, 4, 4, 4), ("B", "C", "D"))
    found = linear_recurrence(*(jnp.asarray(arrays[name]) for name in ("A", "u", "x0")), "native")
    y, x_end, _ = by_loop(arrays, *slopes(arrays))
    close(found, np.concatenate([y, x_end[..., None, :]], axis=-2))


def test_values_that_are_not_finite_stay_in_their_model():
    arrays = example((20, 1, 40, 3, 2, 2))
    clean = native(**arrays).y
    arrays["A"][3] = np.nan
    spoiled = native(**arrays).y
    others = np.arange(20) != 3
    assert (spoiled[others] == clean[others]).all()
    assert np.isnan(spoiled[3, :, 1:]).all()


# --- JAX's transformations --------------------------------------------------------------------------------------------


def stacked(arrays: Arrays, names, size: int = 3) -> tuple[Arrays, dict]:
    """Arguments of which those named have one more leading axis, and the axes for ``vmap``."""
    factors = np.linspace(0.5, 1.0, size)
    more = {k: np.stack([factor * x for factor in factors]) if k in names else x for k, x in arrays.items()}
    return more, {k: 0 if k in names else None for k in arrays}


def each(arrays: Arrays, names, size: int = 3) -> list[Arrays]:
    """The arguments of every call that ``vmap`` stands for."""
    return [{k: x[i] if k in names else x for k, x in arrays.items()} for i in range(size)]


@pytest.mark.parametrize(
    ("names", "sizes"),
    [
        *[(names, (2, 3)) for names in (("A",), ("B", "D"), ("u",), ("x0",), ("u", "x0"), ("A", "x0"), NAMES)],
        *[(names, (1, 1)) for names in (("A",), ("u",), NAMES)],
    ],
)
def test_vmap(names, sizes):
    sizes = (*sizes, 20, 3, 2, 2)
    weights = slopes(example(sizes))
    arrays, axes = stacked(example(sizes), names)
    expected = [by_loop(one, *weights) for one in each(arrays, names)]
    mapped = jax.vmap(by_library(), in_axes=(axes, None, None))
    close(jax.jit(mapped)(arrays, *weights), jax.tree.map(lambda *x: np.stack(x), *expected))

    def total(given):
        y, x_end = jax.vmap(lambda one: native(**one), in_axes=(axes,))(given)
        return jnp.sum(y * weights[0]) + jnp.sum(x_end * weights[1])

    gradients = {k: [one[2][k] for one in expected] for k in NAMES}
    summed = {k: np.stack(x) if k in names else sum(x[1:], start=x[0]) for k, x in gradients.items()}
    close(jax.jit(jax.grad(total))(arrays), summed)


@pytest.mark.parametrize(
    ("inner", "outer"), [(("A",), ("u",)), (("u",), ("A", "B")), (("u",), ("x0",)), (NAMES, NAMES)]
)
def test_vmap_of_vmap(inner, outer):
    sizes = (1, 2, 20, 3, 2, 2)
    weights = slopes(example(sizes))
    arrays, inner_axes = stacked(example(sizes), inner)
    arrays, outer_axes = stacked(arrays, outer, 2)
    mapped = jax.vmap(by_library(), in_axes=(inner_axes, None, None))
    found = jax.jit(jax.vmap(mapped, in_axes=(outer_axes, None, None)))(arrays, *weights)
    rows = [[by_loop(one, *weights) for one in each(row, inner)] for row in each(arrays, outer, 2)]
    close(found, jax.tree.map(lambda *x: np.stack(x), *[jax.tree.map(lambda *x: np.stack(x), *row) for row in rows]))


def test_vmap_over_later_axes():
    arrays = example((1, 1, 20, 3, 2, 2))
    A = np.stack([arrays["A"], 0.5 * arrays["A"]], axis=-1)
    found = jax.vmap(lambda A: native(**(arrays | {"A": A})).y, in_axes=-1, out_axes=-1)(A)
    expected = [by_loop(arrays | {"A": A[..., i]}, *slopes(arrays))[0] for i in range(2)]
    close(found, np.stack(expected, axis=-1))


def test_jit_changes_nothing():
    arrays = example((20, 1, 50, 5, 3, 3), dtype="float32")
    arguments = jax.tree.map(jnp.asarray, (arrays, *slopes(arrays)))
    eager, compiled = by_library()(*arguments), jax.jit(by_library())(*arguments)
    assert all((a == b).all() for a, b in zip(jax.tree.leaves(eager), jax.tree.leaves(compiled), strict=True))


def test_numpy_and_jax_agree():
    arrays = example((3, 2, 40, 5, 3, 2))
    close(native(**jax.tree.map(jnp.asarray, arrays)), native(**arrays))


def test_loop_around_it():
    """Gradient descent in a compiled loop, as in training."""
    arrays = example((4, 1, 30, 3, 2, 2))
    weights = slopes(arrays)

    def epoch(A, _):
        y, _, gradients = by_library()(arrays | {"A": A}, *weights)
        return A - 1e-3 * gradients["A"], jnp.sum(y)

    found = jax.jit(lambda A: jax.lax.scan(epoch, A, length=5))(arrays["A"])
    A, sums = arrays["A"], []
    for _ in range(5):
        y, _, gradients = by_loop(arrays | {"A": A}, *weights)
        A = A - 1e-3 * gradients["A"]
        sums.append(y.sum())
    close(found, (A, np.array(sums)), factor=3000)


def test_checkpointed():
    arrays = example((2, 1, 30, 3, 2, 2))
    y_bar, _ = slopes(arrays)
    found = jax.jit(jax.grad(jax.checkpoint(lambda given: jnp.sum(native(**given).y * y_bar))))(arrays)
    close(found, by_loop(arrays, y_bar, np.zeros((2, 1, 3)))[2])


def test_traced_once():
    traces = []

    @jax.jit
    def gradients(arrays, y_bar, x_end_bar):
        traces.append(None)
        return by_library()(arrays, y_bar, x_end_bar)

    for scale in (1.0, 0.5, 0.1):
        arrays = example((2, 1, 30, 3, 2, 2))
        gradients(arrays | {"A": scale * arrays["A"]}, *slopes(arrays))
    assert len(traces) == 1
    assert gradients._cache_size() == 1


# --- processors -------------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np
from schurfire.kernels.recurrence import state_space_response
from schurfire.native import library, problem

with np.load(sys.argv[1]) as file:
    arrays = dict(file)
found = {"y": state_space_response(**arrays, method="native").y}
R, S, N = arrays["u"].shape[:3]
arrays = {name: x.reshape(R, *x.shape[2:]) if name in "ABCD" else x for name, x in arrays.items()}
states = state_space_response(arrays["A"][:, None], arrays["B"][:, None], None, None, arrays["u"], arrays["x0"]).y
bars = {f"{name}_bar": np.empty_like(array) for name, array in arrays.items()}
given = arrays | {"x0": None, "x": states, "y_bar": found["y"]} | bars
problem.differentiate("float64", "dense", **{name: problem.strided(array) for name, array in given.items()})
np.savez(sys.argv[2], **found, **bars)
print(library.instruction_set())
"""


@pytest.mark.parametrize("most", ["baseline", "avx2", "avx512"])
def test_every_instruction_set(most, tmp_path):
    arrays = example((19, 1, 61, 5, 3, 2))
    np.savez(tmp_path / "given.npz", **arrays)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "given.npz"), str(tmp_path / "found.npz")]
    environment = os.environ | {"SCHURFIRE_INSTRUCTIONS": most}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("baseline", *([] if most == "baseline" else ["avx2", most]))
    y = by_loop(arrays, *slopes(arrays))[0]
    gradients = by_loop(arrays, y, np.zeros((19, 1, 5)))[2]
    with np.load(tmp_path / "found.npz") as found:
        close(found["y"], y)
        for name in NAMES:
            close(found[f"{name}_bar"].reshape(gradients[name].shape), gradients[name])
