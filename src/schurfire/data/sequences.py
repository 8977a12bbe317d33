"""Recordings: the inputs and outputs of one or many experiments, of equal or different length."""

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from schurfire.arrays import concrete, real_array
from schurfire.channels import channel_names, sampling_time
from schurfire.data.checks import float_dtype
from schurfire.errors import invalid
from schurfire.stability.definiteness import frozen

if TYPE_CHECKING:
    from schurfire.data.partitions import Partitions


class Stacked(NamedTuple):
    """Recordings as three arrays, padded with zeros at the end to the longest one's N samples.

    Attributes:
        u: inputs, shape (S, N, n_u).
        y: outputs, shape (S, N, n_y).
        mask: True where there is a sample, False where there is padding, shape (S, N).
    """

    u: np.ndarray
    y: np.ndarray
    mask: np.ndarray


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Sequences:
    """Inputs u and outputs y of one or many recordings, sampled every ``dt`` seconds.

    The arrays are copied and read-only. All have one dtype, float32 or float64; nothing is cast. Sequences, channels
    and samples are counted from 0 in messages.

    Args:
        u: inputs: an array of shape (N, n_u) for one recording or (S, N, n_u) for S, or a list of arrays of shape
            (N_i, n_u).
        y: outputs, likewise, with n_y channels and as many samples as the inputs.
        dt: sampling time in seconds.
        input_names: one for each input channel; by default u1, u2, ...
        output_names: one for each output channel; by default y1, y2, ...

    Attributes:
        u: a tuple of arrays of shape (N_i, n_u).
        y: a tuple of arrays of shape (N_i, n_y).

    Raises:
        InvalidInputError: other shapes, inputs and outputs of different length, no sequences or samples, more than one
            dtype, NaN or infinity (with sequence, channel and sample), or names that do not fit.

    >>> data = Sequences(u=np.zeros((2, 100, 1)), y=np.ones((2, 100, 3)), dt=0.5)
    >>> print(data)
    2 sequences of 100 samples, dt = 0.5 s, inputs u1, outputs y1, y2, y3, float64
    >>> print(data[0])
    1 sequence of 100 samples, dt = 0.5 s, inputs u1, outputs y1, y2, y3, float64
    """

    u: tuple[np.ndarray, ...]
    y: tuple[np.ndarray, ...]
    dt: float
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]

    def __init__(
        self, u: Any, y: Any, dt: float = 1.0, input_names: tuple[str, ...] = (), output_names: tuple[str, ...] = ()
    ) -> None:
        inputs, outputs = _recordings(u, "u"), _recordings(y, "y")
        _require_alike(inputs, outputs)
        input_names = channel_names(input_names, "input_names", "u", inputs[0].shape[1])
        output_names = channel_names(output_names, "output_names", "y", outputs[0].shape[1])
        _require_finite(inputs, "u", input_names)
        _require_finite(outputs, "y", output_names)
        values = (inputs, outputs, sampling_time(dt), input_names, output_names)
        for name, value in zip(("u", "y", "dt", "input_names", "output_names"), values, strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def concatenate(cls, *parts: "Sequences") -> "Sequences":
        """All sequences of all parts, in order; they stay separate recordings.

        Raises:
            InvalidInputError: no parts, or parts of different channels, sampling time or dtype.
        """
        if not parts:
            raise invalid("parts", "at least one Sequences", "none")
        require_same_channels({f"part {i}": part for i, part in enumerate(parts)})
        u, y = (tuple(array for part in parts for array in getattr(part, name)) for name in "uy")
        return parts[0]._with(u, y)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The number of samples of each sequence."""
        return tuple(len(u) for u in self.u)

    @property
    def samples(self) -> int:
        """The number of samples of all sequences together."""
        return sum(self.lengths)

    @property
    def input_size(self) -> int:
        """The number of input channels, n_u."""
        return self.u[0].shape[1]

    @property
    def output_size(self) -> int:
        """The number of output channels, n_y."""
        return self.y[0].shape[1]

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64."""
        return self.u[0].dtype

    def stacked(self) -> Stacked:
        """All sequences as arrays (u, y, mask), padded with zeros at the end.

        >>> data = Sequences([np.ones((3, 1)), np.ones((2, 1))], [np.ones((3, 1)), np.ones((2, 1))])
        >>> data.stacked().mask
        array([[ True,  True,  True],
               [ True,  True, False]])
        """
        mask = np.arange(max(self.lengths)) < np.array(self.lengths)[:, None]
        return Stacked(_padded(self.u, mask), _padded(self.y, mask), mask)

    def constant_outputs(self) -> tuple[str, ...]:
        """The names of the output channels that never change, over all sequences: their NMSE is undefined."""
        spread = np.ptp([extreme(y, axis=0) for y in self.y for extreme in (np.min, np.max)], axis=0)
        return tuple(name for name, s in zip(self.output_names, spread, strict=True) if s == 0)

    def split(
        self,
        train: float | int = 0.6,
        validation: float | int = 0.2,
        test: float | int | None = 0.2,
        by: str = "time",
    ) -> "Partitions":
        """Partitions for training, validation and test, in this order.

        Args:
            train: a share (float) or a count (int); all of them shares, which sum to 1, or all of them counts.
            validation: likewise.
            test: likewise; None or 0 for no test partition.
            by: ``"time"`` cuts every sequence into three contiguous parts, so that the partitions touch; counts are
                samples of each sequence. ``"sequence"`` gives whole sequences to each; counts are sequences. What
                counts leave over at the end is in no partition. Shares are rounded to the nearest cut.

        Raises:
            InvalidInputError: an empty partition, shares that do not sum to 1, counts beyond what there is.

        >>> data = Sequences(u=np.zeros((100, 1)), y=np.ones((100, 1)))
        >>> data.split(0.7, 0.3, test=None).validation.samples
        30
        """
        from schurfire.data.partitions import split

        return split(self, (train, validation, 0.0 if test is None else test), by)

    def astype(self, dtype: str | np.dtype) -> "Sequences":
        """The same recordings in another precision, rounded.

        Raises:
            InvalidInputError: neither float32 nor float64, or values that overflow.
        """
        wanted = float_dtype(dtype)
        with np.errstate(over="ignore"):  # infinity is reported with its place
            return self._with(*(tuple(x.astype(wanted) for x in arrays) for arrays in (self.u, self.y)))

    def _with(self, u: tuple[np.ndarray, ...], y: tuple[np.ndarray, ...]) -> "Sequences":
        return Sequences(u, y, self.dt, self.input_names, self.output_names)

    def __len__(self) -> int:
        return len(self.u)

    def __getitem__(self, index: int | slice) -> "Sequences":
        if isinstance(index, slice):
            return self._with(self.u[index], self.y[index])
        i = operator.index(index)
        return self._with((self.u[i],), (self.y[i],))

    def __iter__(self) -> Iterator["Sequences"]:
        return (self[i] for i in range(len(self)))

    def __str__(self) -> str:
        shortest, longest = min(self.lengths), max(self.lengths)
        samples = f"{longest}" if shortest == longest else f"{shortest} to {longest}"
        count = "1 sequence" if len(self) == 1 else f"{len(self)} sequences"
        names = f"inputs {', '.join(self.input_names)}, outputs {', '.join(self.output_names)}"
        return f"{count} of {samples} samples, dt = {self.dt:g} s, {names}, {self.dtype}"

    def __repr__(self) -> str:
        return f"<Sequences: {self}>"


def require_same_channels(parts: dict[str, Sequences]) -> None:
    """Requires channels, sampling time and dtype of all parts to be those of the first."""
    (first, reference), *others = parts.items()
    for name, part in others:
        for what in ("input_names", "output_names", "dt", "dtype"):
            mine, its = getattr(reference, what), getattr(part, what)
            if mine != its:
                raise invalid(name, f"of the same {what} as {first}", f"{its} and {mine}")


def _recordings(x: Any, name: str) -> tuple[np.ndarray, ...]:
    """Read-only copies of the recordings, each of shape (N, channels); not yet checked for NaN."""
    if isinstance(x, (list, tuple)):
        arrays = [_array(recording, f"{name}[{i}]", (2,)) for i, recording in enumerate(x)]
    else:
        array = _array(x, name, (2, 3))
        arrays = [array] if array.ndim == 2 else list(array)
    if not arrays:
        raise invalid(name, "at least one sequence", "none")
    channels = arrays[0].shape[1]
    for i, array in enumerate(arrays):
        if array.shape[1] != channels:
            raise invalid(name, "of as many channels in every sequence", f"{channels} and {array.shape[1]} in {i}")
        if 0 in array.shape:
            raise invalid(f"{name} of sequence {i}", "of at least one sample and channel", f"shape {array.shape}")
    return tuple(frozen(array) for array in arrays)


def _array(x: Any, name: str, ranks: tuple[int, ...]) -> np.ndarray:
    if not hasattr(x, "dtype"):
        fix = "Convert nested lists and tables with numpy.asarray first."
        raise invalid(name, "an array, or u and y lists of arrays", type(x).__name__, fix)
    array = concrete(x, name)
    if array.ndim not in ranks:
        shapes = {2: "(N, channels)", 3: "(sequences, N, channels)"}
        fix = "Write x[:, None] for a single channel." if array.ndim == 1 else ""
        raise invalid(name, f"of shape {' or '.join(shapes[rank] for rank in ranks)}", f"shape {array.shape}", fix)
    real_array(array[:0], name)  # refuses other dtypes; what is not finite is reported with sequence and channel
    return array


def _require_alike(u: tuple[np.ndarray, ...], y: tuple[np.ndarray, ...]) -> None:
    if len(u) != len(y):
        raise invalid("u and y", "of as many sequences", f"{len(u)} and {len(y)}")
    for i, (inputs, outputs) in enumerate(zip(u, y, strict=True)):
        if len(inputs) != len(outputs):
            raise invalid("u and y", "of one length", f"{len(inputs)} and {len(outputs)} samples in sequence {i}")
        for name, array in (("u", inputs), ("y", outputs)):
            if array.dtype != u[0].dtype:
                what = f"{u[0].dtype} in u of sequence 0 and {array.dtype} in {name} of sequence {i}"
                raise invalid("u and y", "of one dtype", what, "Cast one of them yourself.")


def _require_finite(arrays: tuple[np.ndarray, ...], name: str, channels: tuple[str, ...]) -> None:
    for i, array in enumerate(arrays):
        finite = np.isfinite(array)
        if not finite.all():
            sample, channel = np.argwhere(~finite)[0]
            where = f"{array[sample, channel]} in sequence {i}, channel {channels[channel]}, at sample {sample}"
            fix = "Cut the recording there, or fill in the value."
            raise invalid(name, "finite", f"{where} ({finite.size - np.count_nonzero(finite)} such values)", fix)


def _padded(arrays: tuple[np.ndarray, ...], mask: np.ndarray) -> np.ndarray:
    stack = np.zeros((*mask.shape, arrays[0].shape[1]), arrays[0].dtype)
    stack[mask] = np.concatenate(arrays)
    return stack
