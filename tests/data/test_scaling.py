"""Scaling: what it makes of the data, and that it can be undone."""

import numpy as np
import pytest

from schurfire.data import Scaling, Sequences
from schurfire.errors import InvalidInputError


def recordings(dtype="float64"):
    rng = np.random.default_rng(5)
    scales = np.array([1e-3, 1.0, 1e4])
    u, y = ([(scales * (3 + rng.standard_normal((n, 3)))).astype(dtype) for n in (40, 25)] for _ in range(2))
    return Sequences(u, y, 0.1, ("a", "b", "c"), ("p", "q", "r"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["u", "y"])
def test_standard(kind, dtype):
    data = recordings(dtype)
    scaled = Scaling.of(data).apply(data)
    x = np.concatenate(getattr(scaled, kind)).astype(float)
    # Offset and scale are rounded once, and so is each value: relative errors of eps times |x| / spread, here 6.
    tolerance = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=tolerance)
    np.testing.assert_allclose(x.std(axis=0), 1, rtol=tolerance)
    assert (scaled.dtype, scaled.dt, scaled.input_names, scaled.output_names) == (
        dtype, 0.1, ("a", "b", "c"), ("p", "q", "r"),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_range(dtype):
    data = recordings(dtype)
    scaled = Scaling.of(data, "range").apply(data)
    for x in (np.concatenate(scaled.u), np.concatenate(scaled.y)):
        np.testing.assert_allclose(x.min(axis=0), -1, rtol=20 * np.finfo(dtype).eps)
        np.testing.assert_allclose(x.max(axis=0), 1, rtol=20 * np.finfo(dtype).eps)


def test_none_changes_nothing():
    data = recordings()
    scaled = Scaling.of(data, "none").apply(data)
    assert all(np.array_equal(a, b) for a, b in zip(scaled.u + scaled.y, data.u + data.y, strict=True))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", ["standard", "range", "none"])
def test_outputs_come_back(method, dtype):
    data = recordings(dtype)
    scaling = Scaling.of(data, method)
    for original, scaled in zip(data.y, scaling.apply(data).y, strict=True):
        back = scaling.unscaled_outputs(scaled)
        assert back.dtype == dtype
        size = np.abs(original) + np.abs(scaling.output_offset)
        assert (np.abs(back - original) <= 3 * np.finfo(dtype).eps * size).all()


def test_inputs_and_outputs_have_their_own_numbers():
    data = Sequences(np.array([[0.0], [2.0]]), np.array([[10.0], [30.0]]))
    scaling = Scaling.of(data)
    assert scaling.scaled_inputs(np.array([4.0])) == [3.0]
    assert scaling.scaled_outputs(np.array([40.0])) == [2.0]
    assert scaling.unscaled_outputs(np.array([2.0])) == [40.0]
    assert scaling.scaled_inputs(np.ones((2, 5, 1))).shape == (2, 5, 1)


@pytest.mark.parametrize("method", ["standard", "range"])
def test_a_constant_channel_becomes_zero_with_scale_one(method):
    u = np.stack([np.full(7, 0.1), np.arange(7.0)], axis=-1)
    scaling = Scaling.of(Sequences(u, u), method)
    assert scaling.input_scale[0] == scaling.output_scale[0] == 1
    assert scaling.input_offset[0] == 0.1
    assert not scaling.scaled_inputs(u)[:, 0].any()


@pytest.mark.parametrize("method", ["standard", "range"])
@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1.5e308])
def test_no_square_over_or_underflows(method, size):
    y = size * np.array([[-1.0], [1.0], [0.5]])
    x = Scaling.of(Sequences(y, y), method).scaled_outputs(y)
    reference = Scaling.of(Sequences(y / size, y / size), method).scaled_outputs(y / size)
    np.testing.assert_allclose(x, reference, rtol=1e-14)


def test_a_small_variation_of_a_large_value_is_kept():
    y = np.array([[1e8], [1e8 + 1], [1e8 + 2]])
    np.testing.assert_allclose(Scaling.of(Sequences(y, y)).scaled_outputs(y).ravel(), np.array([-1, 0, 1]) * 1.5**0.5)


def test_tensors_stay_tensors():
    jnp = pytest.importorskip("jax.numpy")
    import jax

    scaling = Scaling.of(recordings("float32"))
    y = recordings("float32").y[0]
    for function in (scaling.unscaled_outputs, scaling.scaled_outputs, scaling.scaled_inputs):
        eager, compiled = function(jnp.asarray(y)), jax.jit(function)(jnp.asarray(y))
        assert isinstance(eager, jax.Array)
        # XLA may fuse the product and the sum: one rounding instead of two.
        np.testing.assert_allclose(eager, function(y), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(compiled, function(y), rtol=1e-6, atol=1e-6)


def test_bad_scalings():
    data = recordings()
    scaling = Scaling.of(data)
    with pytest.raises(InvalidInputError, match="method to be 'standard' or 'range' or 'none', received 'unit'"):
        Scaling.of(data, "unit")
    with pytest.raises(InvalidInputError, match=r"u to be of dtype float64 and shape \(..., 3\), received float32"):
        scaling.apply(data.astype("float32"))
    with pytest.raises(InvalidInputError, match=r"y to be of dtype float64 and shape \(..., 3\), received .*\(5, 2\)"):
        scaling.unscaled_outputs(np.ones((5, 2)))
    with pytest.raises(InvalidInputError, match="y to be an array, received list"):
        scaling.unscaled_outputs([[1.0, 2.0, 3.0]])
    one, two = np.ones(1), np.ones(2)
    with pytest.raises(InvalidInputError, match="input_scale to be positive"):
        Scaling(one, 0 * one, one, one)
    with pytest.raises(
        InvalidInputError, match=r"input_offset and input_scale to be of one shape, .* \(1,\) and \(2,\)"
    ):
        Scaling(one, two, one, one)
    with pytest.raises(InvalidInputError, match="of one dtype, received float32 and float64"):
        Scaling(one.astype("float32"), one, one, one)
    with pytest.raises(ValueError, match="read-only"):
        scaling.output_scale[0] = 2.0
