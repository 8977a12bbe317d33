"""One source for NumPy arrays and tensors: both namespaces, and which of them is taken."""

import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from schurfire import namespaces
from schurfire.errors import InvalidInputError
from schurfire.namespaces import NUMPY, dtype_name, finfo, is_traced, keras_namespace, kernel, namespace


def test_arrays_choose_their_library():
    assert namespace(np.ones(2)) is namespace(np.float32(1), 2.0, 3, np.ones(2)) is NUMPY
    assert namespace(jnp.ones(2)) is namespace(np.ones(2), jnp.ones(2)) is keras_namespace()
    seen = []
    jax.jit(lambda x: seen.append(namespace(x)) or x)(jnp.ones(2))
    assert seen == [keras_namespace()]


def test_numpy_arrays_load_neither_jax_nor_keras():
    code = """
import sys, numpy as np, schurfire as sf
sf.nearest_stable_block(np.eye(2) * 2)
sf.project_stable(np.eye(2) * 2).certify()
sf.spectral_radius_bound(np.eye(2))
print([name for name in ("jax", "keras", "torch", "tensorflow") if name in sys.modules])
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray])
def test_loops_and_branches_mean_the_same(make):
    x = make(np.arange(4, dtype="float32"))
    xp = namespace(x)
    assert xp.fori_loop(0, 5, lambda i, s: s + i * x, x).tolist() == [0, 11, 22, 33]
    assert xp.fori_loop(3, 3, lambda i, s: s + i, x).tolist() == [0, 1, 2, 3]
    count, total = xp.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, s + x), (0, x))
    assert int(count) == 3
    assert total.tolist() == [0, 4, 8, 12]
    assert xp.cond(xp.all(x < 9), lambda: x + 1, lambda: x).tolist() == [1, 2, 3, 4]
    assert xp.cond(xp.all(x < 3), lambda: x + 1, lambda: x).tolist() == [0, 1, 2, 3]
    assert dtype_name(xp.cast(x > 1, "int32")) == "int32"
    assert xp.view(x, "int32")[1] == 0x3F800000
    U, s, V = xp.svd(xp.reshape(x, (2, 2)))
    np.testing.assert_allclose((U * s) @ V, np.reshape(x, (2, 2)), atol=1e-6)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_data_types_and_machine_constants(name):
    with jax.enable_x64(True):
        for x in (np.ones(1, name), np.ones((), name)[()], jnp.ones(1, name)):
            assert dtype_name(x) == name
            assert finfo(x).eps == np.finfo(name).eps


def test_products_of_tensors_use_their_full_precision():
    """TF32, the default of JAX on GPUs, has 10 bits: too few for orthogonality and for rounding-error bounds."""
    x = jnp.ones((2, 2))
    assert "HIGHEST" in str(jax.make_jaxpr(keras_namespace().matmul)(x, x))


def test_traced_arrays_are_recognised():
    traced = []
    jax.jit(lambda x: traced.append(is_traced(x)) or x)(jnp.ones(2))
    jax.vmap(lambda x: traced.append(is_traced(x)) or x)(jnp.ones((2, 2)))
    assert traced == [True, True]
    assert not is_traced(jnp.ones(2))
    assert not is_traced(np.ones(2))


def test_kernels_are_silent_and_leave_the_settings_alone():
    @kernel
    def reciprocal(x):
        """Of everything."""
        return 1 / x

    before = np.geterr()
    assert reciprocal(np.zeros(1)) == np.inf
    assert np.geterr() == before
    assert (reciprocal.__name__, reciprocal.__doc__) == ("reciprocal", "Of everything.")
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        np.zeros(1) / np.zeros(1)


@pytest.mark.parametrize(
    ("installed", "configured", "chosen"),
    [
        (["jax", "torch"], None, "jax"),
        (["torch", "tensorflow"], None, "torch"),
        (["tensorflow"], "jax", "tensorflow"),
        (["jax"], "tensorflow", "jax"),  # what Keras writes by itself at its first import
        (["jax", "torch"], "torch", None),  # the user's own choice
        (["jax"], "not json", "jax"),
    ],
)
def test_the_backend_is_an_installed_one(installed, configured, chosen, monkeypatch, tmp_path):
    fresh(monkeypatch, tmp_path, installed)
    if configured is not None:
        text = configured if configured == "not json" else json.dumps({"backend": configured})
        (tmp_path / "keras.json").write_text(text)
    namespaces._choose_keras_backend()
    assert namespaces.os.environ.get("KERAS_BACKEND") == chosen


def test_the_user_chooses_the_backend(monkeypatch, tmp_path):
    fresh(monkeypatch, tmp_path, ["jax"])
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    namespaces._choose_keras_backend()
    assert namespaces.os.environ["KERAS_BACKEND"] == "torch"


def test_no_backend_at_all(monkeypatch, tmp_path):
    fresh(monkeypatch, tmp_path, [])
    with pytest.raises(
        InvalidInputError, match=r"Expected JAX, PyTorch or TensorFlow to be installed. Run: pip install"
    ):
        namespaces._choose_keras_backend()


def fresh(monkeypatch, home, installed):
    """As in a process that has not imported Keras yet."""
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    monkeypatch.setenv("KERAS_BACKEND", "")  # so that what the function sets is taken back afterwards
    monkeypatch.delenv("KERAS_BACKEND")
    monkeypatch.setenv("KERAS_HOME", str(home))
    monkeypatch.setattr(namespaces.importlib.util, "find_spec", lambda name: object() if name in installed else None)
