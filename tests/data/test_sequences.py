"""Recordings: what is accepted, what is refused with which words, and what comes out again."""

import dataclasses

import numpy as np
import pytest

from schurfire.data import Sequences
from schurfire.errors import InvalidInputError
from schurfire.metrics import nmse


def recordings(lengths=(5, 3, 8), inputs=2, outputs=3, dtype="float64"):
    rng = np.random.default_rng(3)
    u, y = ([rng.standard_normal((n, m)).astype(dtype) for n in lengths] for m in (inputs, outputs))
    return u, y


def same(a, b):
    return len(a) == len(b) and all(
        np.array_equal(p, q) and p.dtype == q.dtype for p, q in zip(a.u + a.y, b.u + b.y, strict=True)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lists_of_different_length(dtype):
    u, y = recordings(dtype=dtype)
    data = Sequences(u, tuple(y), dt=0.1, input_names=["a", "b"])
    assert (len(data), data.lengths, data.samples, data.input_size, data.output_size) == (3, (5, 3, 8), 16, 2, 3)
    assert (data.dt, data.input_names, data.output_names, data.dtype) == (0.1, ("a", "b"), ("y1", "y2", "y3"), dtype)
    assert all(np.array_equal(a, b) for a, b in zip(data.u + data.y, [*u, *y], strict=True))


def test_one_array_is_one_recording_and_a_stack_is_many():
    u, y = np.zeros((4, 7, 2)), np.ones((4, 7, 1))
    assert Sequences(u, y).lengths == (7, 7, 7, 7)
    assert Sequences(u[0], y[0]).lengths == (7,)
    assert same(Sequences(u, y), Sequences(list(u), list(y)))
    assert same(Sequences(u[:1], y[:1]), Sequences(u[0], y[0]))


def test_arrays_are_read_only_copies():
    u, y = recordings()
    data = Sequences(u, y)
    u[0][:] = 7.0
    assert not (data.u[0] == 7.0).any()
    for array in data.u + data.y:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.dt = 2.0


def test_tensors_become_arrays():
    jax = pytest.importorskip("jax")
    u, y = recordings(dtype="float32")
    data = Sequences([jax.numpy.asarray(x) for x in u], y)
    assert same(data, Sequences(u, y))
    assert all(type(x) is np.ndarray for x in data.u)
    with pytest.raises(InvalidInputError, match=r"u\[0\] to be an array with values"):
        jax.jit(lambda x: Sequences([x], y[:1]).samples)(u[0])


def test_indexing_slicing_and_iteration():
    u, y = recordings()
    data = Sequences(u, y, 0.5, ("a", "b"), ("p", "q", "r"))
    assert same(data[1], Sequences(u[1], y[1]))
    assert same(data[-1], data[2])
    assert same(data[np.int64(0)], data[0])
    assert same(data[1:], Sequences(u[1:], y[1:]))
    assert same(data[::-1], Sequences(u[::-1], y[::-1]))
    assert [part.lengths for part in data] == [(5,), (3,), (8,)]
    for part in (data[0], data[:2], data.astype("float32"), *data):
        assert (part.dt, part.input_names, part.output_names) == (0.5, ("a", "b"), ("p", "q", "r"))
    with pytest.raises(IndexError):
        data[3]
    with pytest.raises(TypeError):
        data[1.0]
    with pytest.raises(InvalidInputError, match="Expected u to be at least one sequence, received none"):
        data[3:]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_stacking_pads_with_zeros_at_the_end(dtype):
    u, y = recordings(dtype=dtype)
    stack = Sequences(u, y).stacked()
    assert (stack.u.shape, stack.y.shape, stack.mask.shape) == ((3, 8, 2), (3, 8, 3), (3, 8))
    assert (stack.u.dtype, stack.y.dtype, stack.mask.dtype) == (dtype, dtype, bool)
    for i in range(3):
        n = len(u[i])
        assert np.array_equal(stack.u[i, :n], u[i])
        assert np.array_equal(stack.y[i, :n], y[i])
        assert not stack.u[i, n:].any()
        assert not stack.y[i, n:].any()
        assert stack.mask[i].tolist() == [True] * n + [False] * (8 - n)


def test_stacking_recordings_of_one_length_gives_them_back():
    u, y = np.random.default_rng(1).standard_normal((2, 4, 6, 2))
    stack = Sequences(u, y).stacked()
    assert np.array_equal(stack.u, u)
    assert np.array_equal(stack.y, y)
    assert stack.mask.all()


def test_concatenation_keeps_the_recordings_apart():
    u, y = recordings()
    data = Sequences(u, y)
    assert same(Sequences.concatenate(data[:1], data[1:]), data)
    assert same(Sequences.concatenate(data), data)
    with pytest.raises(InvalidInputError, match="at least one Sequences, received none"):
        Sequences.concatenate()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dt": 2.0}, "part 1 to be of the same dt as part 0, received 2.0 and 1.0"),
        ({"input_names": ("a", "b")}, "part 1 to be of the same input_names"),
        ({"output_names": ("a", "b", "c")}, "part 1 to be of the same output_names"),
    ],
)
def test_only_alike_recordings_are_concatenated(change, message):
    data = Sequences(*recordings())
    with pytest.raises(InvalidInputError, match=message):
        Sequences.concatenate(data, dataclasses.replace(data, **change))
    with pytest.raises(InvalidInputError, match="same dtype as part 0"):
        Sequences.concatenate(data, data.astype("float32"))


def test_constant_outputs_are_those_that_the_nmse_refuses():
    y = np.random.default_rng(0).standard_normal((2, 6, 3))
    y[:, :, 1] = 0.1
    data = Sequences(np.ones((2, 6, 1)), y)
    assert data.constant_outputs() == ("y2",)
    with pytest.raises(InvalidInputError, match="constant channel 1"):
        nmse(y, y)
    y[1, :, 1] = 0.2  # constant in each sequence, not over both
    assert Sequences(np.ones((2, 6, 1)), y).constant_outputs() == ()
    assert Sequences(np.ones((1, 1)), np.ones((1, 2))).constant_outputs() == ("y1", "y2")


def test_casting_rounds_once():
    u, y = recordings()
    data = Sequences(u, y).astype("float32")
    assert data.dtype == np.float32
    assert all(np.array_equal(a, b.astype("float32")) for a, b in zip(data.u + data.y, [*u, *y], strict=True))
    assert same(data.astype(np.float64).astype(np.dtype("float32")), data)
    for dtype in ("float16", int, None, "number"):
        with pytest.raises(InvalidInputError, match="dtype to be float32 or float64"):
            data.astype(dtype)
    with pytest.raises(InvalidInputError, match="y to be finite, received inf in sequence 0, channel y1, at sample 1"):
        Sequences([[1.0]] * np.ones((2, 1)), np.array([[1.0], [1e39]])).astype("float32")


def test_text():
    assert str(Sequences(*recordings())) == (
        "3 sequences of 3 to 8 samples, dt = 1 s, inputs u1, u2, outputs y1, y2, y3, float64"
    )
    data = Sequences(np.zeros((4, 1), "float32"), np.zeros((4, 1), "float32"), 0.25, ("force",), ("angle",))
    assert str(data) == "1 sequence of 4 samples, dt = 0.25 s, inputs force, outputs angle, float32"
    assert repr(data) == f"<Sequences: {data}>"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_named_by_sequence_channel_and_sample(value):
    u, y = recordings()
    y[2][6, 1] = y[2][7, 0] = value
    message = rf"y to be finite, received {value} in sequence 2, channel angle, at sample 6 \(2 such values\)"
    with pytest.raises(InvalidInputError, match=message):
        Sequences(u, y, output_names=("p", "angle", "r"))
    u[1][0, 0] = value
    with pytest.raises(
        InvalidInputError, match=f"u to be finite, received {value} in sequence 1, channel u1, at sample"
    ):
        Sequences(u, y)


@pytest.mark.parametrize(
    ("u", "y", "message"),
    [
        (np.ones(5), np.ones((5, 1)), r"u to be of shape .*, received shape \(5,\). Write x\[:, None\]"),
        (np.ones((5, 1)), np.ones((1, 1, 5, 1)), r"y to be of shape .*, received shape \(1, 1, 5, 1\)"),
        ([np.ones((1, 5, 1))], [np.ones((5, 1))], r"u\[0\] to be of shape \(N, channels\), received shape \(1, 5, 1\)"),
        ([], [], "u to be at least one sequence, received none"),
        (np.ones((0, 5, 1)), np.ones((0, 5, 1)), "u to be at least one sequence, received none"),
        (np.ones((0, 1)), np.ones((0, 1)), r"u of sequence 0 to be of at least one sample and channel, .* \(0, 1\)"),
        (np.ones((5, 1)), np.ones((5, 0)), r"y of sequence 0 to be of at least one sample and channel, .* \(5, 0\)"),
        ([np.ones((5, 1))] * 2, [np.ones((5, 1))], "u and y to be of as many sequences, received 2 and 1"),
        (
            [np.ones((5, 1))] * 2,
            [np.ones((5, 1)), np.ones((4, 1))],
            "u and y to be of one length, received 5 and 4 samples in sequence 1",
        ),
        (
            [np.ones((5, 1)), np.ones((5, 2))],
            [np.ones((5, 1))] * 2,
            "as many channels in every sequence, .* 1 and 2 in 1",
        ),
        (
            np.ones((5, 1)),
            np.ones((5, 1), "float32"),
            "one dtype, received float64 in u of sequence 0 and float32 in y of sequence 0",
        ),
        (
            np.ones((5, 1), int),
            np.ones((5, 1)),
            "u to be a real array of dtype float32 or float64, received dtype int64",
        ),
        (np.ones((5, 1)), np.ones((5, 1), complex), "y to be a real array of dtype .*, received dtype complex128"),
        (np.ones((5, 1)), [[[1.0]]], r"y\[0\] to be an array, .*, received list"),
        (None, np.ones((5, 1)), "u to be an array, .*, received NoneType"),
        (np.ma.masked_array(np.ones((5, 1))), np.ones((5, 1)), "u to be an array without mask"),
    ],
)
def test_bad_recordings(u, y, message):
    with pytest.raises(InvalidInputError, match=message):
        Sequences(u, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dt": 0.0}, "dt to be a positive number"),
        ({"dt": np.nan}, "dt to be a positive number"),
        ({"input_names": ("a",)}, r"input_names to be 2 different name\(s\)"),
        ({"input_names": ("a", "a")}, r"input_names to be 2 different name\(s\)"),
        ({"output_names": "xyz"}, "output_names to be a sequence of non-empty strings"),
    ],
)
def test_bad_descriptions(options, message):
    with pytest.raises(InvalidInputError, match=message):
        Sequences(*recordings(), **options)
