"""Scaling: channels brought to a common size, and predicted outputs brought back."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from schurfire.arrays import concrete, real_array
from schurfire.data.sequences import Sequences
from schurfire.errors import invalid
from schurfire.namespaces import Array, dtype_name, namespace

_METHODS = ("standard", "range", "none")
_FIELDS = ("input_offset", "input_scale", "output_offset", "output_scale")


@dataclass(frozen=True, eq=False)
class Scaling:
    """The map ``(x - offset) / scale`` of each input and output channel, and its inverse.

    Attributes:
        input_offset: shape (n_u,).
        input_scale: positive, shape (n_u,).
        output_offset: shape (n_y,).
        output_scale: positive, shape (n_y,).

    Raises:
        InvalidInputError: other shapes or values, or more than one dtype.

    >>> data = Sequences(u=np.ones((4, 1)), y=np.array([[1.0], [2.0], [4.0], [5.0]]))
    >>> scaling = Scaling.of(data, "range")
    >>> scaling.apply(data).y[0].ravel()
    array([-1. , -0.5,  0.5,  1. ])
    >>> scaling.unscaled_outputs(np.array([[0.0]]))
    array([[3.]])
    """

    input_offset: np.ndarray
    input_scale: np.ndarray
    output_offset: np.ndarray
    output_scale: np.ndarray

    def __post_init__(self) -> None:
        for name in _FIELDS:
            array = np.array(concrete(real_array(getattr(self, name), name), name))
            if array.ndim != 1 or (name.endswith("scale") and not (array > 0).all()):
                what = "positive, of shape (channels,)" if name.endswith("scale") else "of shape (channels,)"
                raise invalid(name, what, f"{array} of shape {array.shape}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        dtypes = {getattr(self, name).dtype.name for name in _FIELDS}
        if len(dtypes) > 1:
            raise invalid("offsets and scales", "of one dtype", " and ".join(sorted(dtypes)))
        for kind in ("input", "output"):
            offset, scale = getattr(self, f"{kind}_offset"), getattr(self, f"{kind}_scale")
            if offset.shape != scale.shape:
                raise invalid(f"{kind}_offset and {kind}_scale", "of one shape", f"{offset.shape} and {scale.shape}")

    @classmethod
    def of(cls, sequences: Sequences, method: str = "standard") -> "Scaling":
        """The scaling that brings these recordings to a common size, in their dtype.

        Take it from the training data alone, and apply it to all partitions. A constant channel has scale 1, so that
        it becomes 0; ``Sequences.constant_outputs`` names those that cannot be fitted.

        Args:
            sequences: recordings; every channel is scaled over all of them together.
            method: ``"standard"`` for mean 0 and standard deviation 1, ``"range"`` for smallest value -1 and largest
                value 1, ``"none"`` for no change.
        """
        if method not in _METHODS:
            raise invalid("method", " or ".join(map(repr, _METHODS)), repr(method))
        values = (value for arrays in (sequences.u, sequences.y) for value in _offset_and_scale(arrays, method))
        return cls(*values)

    def apply(self, sequences: Sequences) -> Sequences:
        """The recordings with inputs and outputs scaled.

        Raises:
            InvalidInputError: another number of channels or another dtype.
        """
        u = [self.scaled_inputs(u) for u in sequences.u]
        y = [self.scaled_outputs(y) for y in sequences.y]
        return Sequences(u, y, sequences.dt, sequences.input_names, sequences.output_names)

    def scaled_inputs(self, u: Array) -> Array:
        """``(u - input_offset) / input_scale``: what a model that was trained on scaled data takes.

        Args:
            u: in units of the recordings, shape (..., n_u); a NumPy array or a tensor.
        """
        offset, scale = _alike(u, "u", self.input_offset, self.input_scale)
        return (u - offset) / scale

    def scaled_outputs(self, y: Array) -> Array:
        """``(y - output_offset) / output_scale`` of measured outputs, shape (..., n_y)."""
        offset, scale = _alike(y, "y", self.output_offset, self.output_scale)
        return (y - offset) / scale

    def unscaled_outputs(self, y: Array) -> Array:
        """``y output_scale + output_offset``: predictions in units of the recordings, shape (..., n_y).

        Undoes ``scaled_outputs`` up to rounding: the error is a few units in the last place of |y| + |offset|.
        """
        offset, scale = _alike(y, "y", self.output_offset, self.output_scale)
        return y * scale + offset


def _offset_and_scale(arrays: tuple[np.ndarray, ...], method: str) -> tuple[np.ndarray, np.ndarray]:
    """Computed in float64 relative to the range, so that no square over- or underflows."""
    x = np.concatenate(arrays)
    if method == "none":
        return np.zeros_like(x[0]), np.ones_like(x[0])
    largest, smallest = (0.5 * extreme(x, axis=0).astype("float64") for extreme in (np.max, np.min))
    middle, half_range = largest + smallest, largest - smallest
    if method == "standard":
        z = (x - middle) / np.where(half_range > 0, half_range, 1.0)
        middle, half_range = middle + half_range * z.mean(axis=0), half_range * z.std(axis=0)
    offset, scale = middle.astype(x.dtype), half_range.astype(x.dtype)
    constant = scale == 0
    return np.where(constant, x[0], offset), np.where(constant, np.ones_like(scale), scale)


def _alike(x: Any, name: str, offset: np.ndarray, scale: np.ndarray) -> tuple[Array, Array]:
    """Offset and scale as arrays of the kind of x, which must have their dtype and number of channels."""
    if not hasattr(x, "dtype"):
        raise invalid(name, "an array", type(x).__name__, "Convert it with numpy.asarray first.")
    if dtype_name(x) != offset.dtype.name or tuple(x.shape[-1:]) != offset.shape:
        expected = f"of dtype {offset.dtype} and shape (..., {len(offset)})"
        raise invalid(name, expected, f"{dtype_name(x)} and {tuple(x.shape)}", "Cast it yourself if that is meant.")
    xp = namespace(x)
    return xp.array(offset), xp.array(scale)
