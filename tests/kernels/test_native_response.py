"""The native recurrence in JAX programs: values and gradients of a scan over time, under every transformation."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from schurfire.kernels.forms import FORMS, used_entries
from schurfire.kernels.recurrence import Response, linear_recurrence, state_space_response
from schurfire.native import library

pytestmark = pytest.mark.skipif(not library.is_available(), reason="the native recurrence is not installed")

NAMES = ("A", "B", "C", "D", "u", "x0")
ABSENT = ((), ("x0",), ("D",), ("B",), ("C", "D"), ("B", "C", "D"), ("B", "C", "D", "x0"), ("B", "D"))


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def example(R: int, S: int, N: int, n: int, m: int, p: int, absent=(), dtype="float64", shared=False) -> dict:
    """Arguments with leading axes (R, 1) and (R, S), or (S,) of an input that the models share."""
    rng = np.random.default_rng(R + 10 * S + 100 * N + n)
    m, p = n if "B" in absent else m, n if "C" in absent else p
    inputs = (S, N, m) if shared else (R, S, N, m)
    shapes = ((R, 1, n, n), (R, 1, n, m), (R, 1, p, n), (R, 1, p, m), inputs, (R, S, n))
    arrays = {name: rng.standard_normal(shape) for name, shape in zip(NAMES, shapes, strict=True)}
    arrays["A"] *= 0.45 / np.sqrt(n)
    return {name: None if name in absent else jnp.asarray(x.astype(dtype)) for name, x in arrays.items()}


def native(arrays: dict, form: str = "dense") -> Response:
    return state_space_response(**arrays, method="native", form=form)


def reference(arrays: dict, form: str = "dense") -> Response:
    """Step by step, in float64, differentiated by JAX."""
    A, B, C, D, u, x0 = (None if arrays[name] is None else arrays[name].astype("float64") for name in NAMES)
    A, n = used_entries(A, form), A.shape[-1]
    B, C = jnp.eye(n) if B is None else B, jnp.eye(n) if C is None else C
    leading = jnp.broadcast_shapes(A.shape[:-2], u.shape[:-2])
    x0 = jnp.zeros((*leading, n)) if x0 is None else jnp.broadcast_to(x0, (*leading, n))

    def step(x, now):
        y = jnp.einsum("...ij,...j->...i", C, x)
        y = y if D is None else y + jnp.einsum("...ij,...j->...i", D, now)
        return jnp.einsum("...ij,...j->...i", A, x) + jnp.einsum("...ij,...j->...i", B, now), y

    x_end, y = jax.lax.scan(step, x0, jnp.moveaxis(u, -2, 0))
    return Response(jnp.moveaxis(y, 0, -2), x_end)


def scalar(response: Response) -> jax.Array:
    """A function of everything, with other slopes everywhere."""
    y, x = response.y.astype("float64"), response.x_end.astype("float64")
    return jnp.sum(jnp.sin(y + jnp.arange(y.size).reshape(y.shape))) + jnp.sum(
        x * jnp.cos(jnp.arange(x.size)).reshape(x.shape)
    )


def close(found, expected, dtype: str = "float64", factor: float = 300) -> None:
    """Sums of some hundred terms of models of norm below 1: some units of rounding of the largest entry."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == dtype
        assert a.shape == b.shape
        size = max(1.0, float(jnp.abs(b).max(initial=0.0)))
        np.testing.assert_allclose(a, b, rtol=0, atol=factor * np.finfo(dtype).eps * size)


def gradient_of(response, form: str = "dense"):
    return jax.grad(lambda arrays: scalar(response(arrays, form)))


# --- values and gradients ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("absent", ABSENT)
@pytest.mark.parametrize("form", FORMS)
def test_against_a_scan(form, absent, dtype):
    for sizes in ((1, 1, 70, 5, 3, 2), (20, 1, 33, 4, 1, 3), (2, 3, 17, 7, 2, 1)):
        arrays = example(*sizes, absent, dtype)
        close(native(arrays, form), reference(arrays, form), dtype)
        close(gradient_of(native, form)(arrays), gradient_of(reference, form)(arrays), dtype, 1000)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "sizes", [(16, 1, 40, 5, 3, 3), (5, 3, 20, 2, 2, 2), (1, 4, 20, 3, 2, 2), (33, 1, 300, 1, 1, 1)]
)
def test_inputs_that_the_models_share(sizes, dtype):
    arrays = example(*sizes, dtype=dtype, shared=True)
    close(native(arrays), reference(arrays), dtype)
    close(gradient_of(native)(arrays), gradient_of(reference)(arrays), dtype, 1000)


@pytest.mark.parametrize(
    "sizes", [(1, 1, 0, 3, 2, 2), (2, 2, 1, 1, 1, 1), (1, 16, 16, 10, 6, 6), (1, 1, 129, 28, 16, 8)]
)
def test_sizes(sizes):
    arrays = example(*sizes)
    close(native(arrays), reference(arrays))
    close(gradient_of(native)(arrays), gradient_of(reference)(arrays), factor=3000)


@pytest.mark.parametrize("part", ["y", "x_end"])
def test_a_result_that_is_not_used(part):
    arrays = example(3, 2, 20, 4, 2, 3)

    def gradient(response):
        return jax.grad(lambda arrays: jnp.sum(jnp.sin(getattr(response(arrays), part))))(arrays)

    close(gradient(native), gradient(reference))


@pytest.mark.parametrize("name", NAMES)
def test_one_gradient_alone(name):
    arrays = example(3, 2, 20, 4, 2, 3)

    def gradient(response):
        return jax.grad(lambda x: scalar(response(arrays | {name: x})))(arrays[name])

    close(gradient(native), gradient(reference))


def test_states():
    arrays = example(2, 3, 30, 4, 4, 4)
    found = linear_recurrence(arrays["A"], arrays["u"], arrays["x0"], "native")
    expected = reference(arrays | {"B": None, "C": None, "D": None})
    close(found, jnp.concatenate([expected.y, expected.x_end[..., None, :]], axis=-2))


def test_values_that_are_not_finite_stay_in_their_model():
    arrays = example(20, 1, 40, 3, 2, 2)
    spoiled = native(arrays | {"A": arrays["A"].at[3].set(np.nan)}).y
    clean = native(arrays).y
    others = np.arange(20) != 3
    assert (spoiled[others] == clean[others]).all()
    assert np.isnan(spoiled[3, :, 1:]).all()


# --- JAX's transformations --------------------------------------------------------------------------------------------


def stacked(arrays: dict, names, size: int = 3) -> tuple[dict, dict]:
    """Arguments of which those named have one more leading axis, and the axes for ``vmap``."""
    factors = jnp.linspace(0.5, 1.0, size)
    more = {
        k: None if x is None else jnp.stack([f * x for f in factors]) if k in names else x for k, x in arrays.items()
    }
    return more, {k: 0 if k in names else None for k in arrays}


@pytest.mark.parametrize("sizes", [(1, 1), (4, 1), (1, 3), (2, 3)])
@pytest.mark.parametrize("names", [("A",), ("B", "D"), ("u",), ("x0",), ("u", "x0"), ("A", "x0"), NAMES])
def test_vmap(names, sizes):
    arrays, axes = stacked(example(*sizes, 20, 3, 2, 2), names)
    found = jax.vmap(native, in_axes=(axes,))(arrays)
    close(found, jax.vmap(reference, in_axes=(axes,))(arrays))
    found = jax.vmap(gradient_of(native), in_axes=(axes,))(arrays)
    close(found, jax.vmap(gradient_of(reference), in_axes=(axes,))(arrays))
    found = jax.grad(lambda given: jnp.sum(jax.vmap(lambda x: scalar(native(x)), in_axes=(axes,))(given)))(arrays)
    close(
        found, jax.grad(lambda given: jnp.sum(jax.vmap(lambda x: scalar(reference(x)), in_axes=(axes,))(given)))(arrays)
    )


@pytest.mark.parametrize(
    ("inner", "outer"), [(("A",), ("u",)), (("u",), ("A", "B")), (("u",), ("x0",)), (NAMES, NAMES)]
)
def test_vmap_of_vmap(inner, outer):
    arrays, inner_axes = stacked(example(1, 2, 20, 3, 2, 2), inner)
    arrays, outer_axes = stacked(arrays, outer, 2)

    def twice(function):
        return jax.vmap(jax.vmap(function, in_axes=(inner_axes,)), in_axes=(outer_axes,))(arrays)

    close(twice(native), twice(reference))
    close(twice(gradient_of(native)), twice(gradient_of(reference)))


def test_vmap_over_later_axes():
    arrays = example(1, 1, 20, 3, 2, 2)
    A = jnp.stack([arrays["A"], 0.5 * arrays["A"]], axis=-1)

    def mapped(response):
        return jax.vmap(lambda A: response(arrays | {"A": A}).y, in_axes=-1, out_axes=-1)(A)

    close(mapped(native), mapped(reference))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_jit_changes_nothing(dtype):
    arrays = example(20, 1, 50, 5, 3, 3, dtype=dtype)
    eager, compiled = native(arrays), jax.jit(native)(arrays)
    assert all((a == b).all() for a, b in zip(eager, compiled, strict=True))
    close(jax.jit(gradient_of(native))(arrays), gradient_of(native)(arrays), dtype)


def test_numpy_and_jax_agree():
    arrays = example(3, 2, 40, 5, 3, 2)
    close(native(arrays), Response(*native({name: np.asarray(x) for name, x in arrays.items()})))


def test_loop_around_it():
    """Gradient descent in a compiled loop, as in training."""
    arrays = example(4, 1, 30, 3, 2, 2)

    def trained(response):
        def epoch(A, _):
            slope = jax.grad(lambda A: jnp.sum(response(arrays | {"A": A}).y ** 2))(A)
            return A - 1e-4 * slope, jnp.sum(slope**2)

        return jax.jit(lambda A: jax.lax.scan(epoch, A, length=10))(arrays["A"])

    close(trained(native), trained(reference), factor=3000)


def test_checkpointed():
    arrays = example(2, 1, 30, 3, 2, 2)
    found = jax.grad(jax.checkpoint(lambda given: scalar(native(given))))(arrays)
    close(found, gradient_of(native)(arrays))


def test_traced_once():
    traces = []

    @jax.jit
    def gradient(arrays):
        traces.append(None)
        return gradient_of(native)(arrays)

    for scale in (1.0, 0.5, 0.1):
        arrays = example(2, 1, 30, 3, 2, 2)
        gradient(arrays | {"A": scale * arrays["A"]})
    assert len(traces) == 1
    assert gradient._cache_size() == 1


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
x = np.stack([state_space_response(*(arrays[k][:, None] for k in "AB"), None, None, arrays["u"], arrays["x0"]).y])[0]
bars = {f"{name}_bar": np.empty_like(array) for name, array in arrays.items()}
given = arrays | {"x0": None, "x": x, "y_bar": found["y"]} | bars
problem.differentiate("float64", "dense", **{name: problem.strided(array) for name, array in given.items()})
np.savez(sys.argv[2], **found, **bars)
print(library.instruction_set())
"""


@pytest.mark.parametrize("most", ["baseline", "avx2", "avx512"])
def test_every_instruction_set(most, tmp_path):
    arrays = example(19, 1, 61, 5, 3, 2)
    np.savez(tmp_path / "given.npz", **arrays)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "given.npz"), str(tmp_path / "found.npz")]
    environment = os.environ | {"SCHURFIRE_INSTRUCTIONS": most}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("baseline", *([] if most == "baseline" else ["avx2", most]))
    y = reference(arrays).y
    gradients = jax.grad(lambda given: jnp.sum(reference(given).y * y))(arrays)
    with np.load(tmp_path / "found.npz") as found:
        close(jnp.asarray(found["y"]), y)
        for name in NAMES:
            close(jnp.asarray(found[f"{name}_bar"]).reshape(gradients[name].shape), gradients[name], factor=3000)
