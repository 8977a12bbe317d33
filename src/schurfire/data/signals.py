"""Test signals that excite a system over a band of frequencies, and noise."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from schurfire.arrays import concrete, real_array
from schurfire.data.checks import (
    Seed,
    finite_number,
    float_dtype,
    generator,
    positive_count,
    positive_number,
    probability,
)
from schurfire.errors import invalid


def gbn(
    samples: int,
    channels: int,
    switching_probability: float = 0.1,
    *,
    amplitude: float = 1.0,
    seed: Seed,
    sequences: int | None = None,
    dtype: str | np.dtype = "float64",
) -> np.ndarray:
    """Generalised binary noise: ``u[0] = +-a`` at even odds, ``u[k+1] = -u[k]`` with probability p, else ``u[k]``.

    Its autocorrelation is ``a^2 (1 - 2 p)^|k|`` and its mean time between switches ``1 / p`` samples: a small p puts
    the power at low frequencies. Channels and sequences are independent.

    Args:
        samples: of each sequence.
        channels: of each sequence.
        switching_probability: p.
        amplitude: a, positive.
        seed: an integer, or a generator, which goes on.
        sequences: how many; None for a single one without an axis for them.
        dtype: float32 or float64.

    Returns:
        shape (samples, channels), or (sequences, samples, channels).

    Raises:
        InvalidInputError: sizes below 1, no probability, an amplitude or dtype that is none of these.

    Reference: H. J. A. F. Tulleken, Automatica 26(1), 1990.

    >>> gbn(6, 1, 0.5, seed=0).ravel()
    array([ 1., -1.,  1., -1., -1., -1.])
    """
    shape = _shape(samples, channels, sequences)
    p = probability(switching_probability, "switching_probability")
    a = positive_number(amplitude, "amplitude")
    dtype = float_dtype(dtype)
    draws = generator(seed).random(shape)
    switches = draws < p
    switches[..., 0, :] = draws[..., 0, :] < 0.5
    is_low = np.logical_xor.accumulate(switches, axis=-2)
    return np.where(is_low, -a, a).astype(dtype)


def multisine(
    samples: int,
    channels: int,
    lines: int | Sequence[int],
    *,
    amplitude: float = 1.0,
    seed: Seed,
    sequences: int | None = None,
    dtype: str | np.dtype = "float64",
) -> np.ndarray:
    """Random-phase multisine: ``u[t] = a sqrt(2 / K) sum_k cos(2 pi k t / N + phi_k)`` over K lines k.

    One period of N samples: repeated, it goes on without a jump, and its spectrum is zero away from the lines up to
    rounding. Phases are independent and uniform for each line, channel and sequence.

    Args:
        samples: N, the length of the period.
        channels: of each sequence.
        lines: the number K of lines, k = 1, ..., K, or the lines themselves, ``0 < k < N / 2``. With sampling time dt,
            line k is at frequency ``k / (N dt)``.
        amplitude: a, the root mean square of each channel.
        seed: an integer, or a generator, which goes on.
        sequences: how many; None for a single one without an axis for them.
        dtype: float32 or float64.

    Returns:
        shape (samples, channels), or (sequences, samples, channels).

    Raises:
        InvalidInputError: sizes below 1, lines that repeat or lie outside of the range, an amplitude or dtype that is
            none of these.

    >>> spectrum = np.fft.rfft(multisine(64, 1, [3, 7], seed=0), axis=0)
    >>> np.flatnonzero(abs(spectrum.ravel()) > 1e-9)
    array([3, 7])
    """
    shape = _shape(samples, channels, sequences)
    harmonics = _harmonics(lines, samples)
    phases = generator(seed).uniform(0.0, 2 * math.pi, (*shape[:-2], len(harmonics), channels))
    return _sum_of_cosines(samples, harmonics, phases, amplitude, dtype)


def schroeder_multisine(
    samples: int,
    channels: int,
    lines: int | Sequence[int],
    *,
    amplitude: float = 1.0,
    dtype: str | np.dtype = "float64",
) -> np.ndarray:
    """A multisine with Schroeder's phases ``-pi j (j - 1) / K`` of the j-th of K lines: low peaks, no randomness.

    For neighbouring lines the crest factor is near 1.7, against 2 to 3 with random phases. Channel c of m is channel 0
    delayed by ``c N / m`` samples.

    Args:
        samples: N, the length of the period.
        channels: m.
        lines: as of ``multisine``.
        amplitude: the root mean square of each channel.
        dtype: float32 or float64.

    Returns:
        shape (samples, channels).

    Raises:
        InvalidInputError: as ``multisine``.

    Reference: M. R. Schroeder, IEEE Transactions on Information Theory 16(1), 1970.

    >>> round(float(crest_factor(schroeder_multisine(512, 1, 100))[0]), 2)
    1.66
    """
    _shape(samples, channels, None)
    harmonics = _harmonics(lines, samples)
    j = np.arange(1, len(harmonics) + 1)
    delay = np.arange(channels) / channels
    phases = (-math.pi * j * (j - 1) / len(j))[:, None] - 2 * math.pi * harmonics[:, None] * delay
    return _sum_of_cosines(samples, harmonics, phases, amplitude, dtype)


def crest_factor(u: Any) -> np.ndarray:
    """``max |u| / rms(u)`` over time of each channel: 1 for binary signals, sqrt(2) for a sine.

    Args:
        u: shape (..., N, channels), nowhere zero throughout.

    Returns:
        shape (..., channels).

    Raises:
        InvalidInputError: another shape or dtype, NaN or infinity, a channel of zeros.

    >>> crest_factor(np.array([[2.0, 1.0], [-2.0, 0.0], [2.0, 0.0], [2.0, 0.0]]))
    array([1., 2.])
    """
    u = concrete(real_array(u, "u"), "u")
    if u.ndim < 2 or u.shape[-2] == 0:
        raise invalid("u", "of shape (..., N, channels) with at least one sample", f"shape {u.shape}")
    peak = np.max(np.abs(u), axis=-2)
    if not (peak > 0).all():
        raise invalid("u", "different from zero in every channel", "a channel of zeros")
    return 1 / np.sqrt(np.mean((u / peak[..., None, :]) ** 2, axis=-2))


def add_noise(y: Any, scale: float | Any = None, *, snr_db: float | None = None, seed: Seed) -> np.ndarray:
    """``y + e`` with independent Gaussian e of mean 0 and standard deviation ``scale``, in the dtype of y.

    Args:
        y: noise-free outputs, shape (..., N, n_y).
        scale: non-negative, one number or one for each channel.
        snr_db: instead of ``scale``: 10 log10 of the ratio of each channel's variance, over all samples, to that of
            the noise.
        seed: an integer, or a generator, which goes on.

    Raises:
        InvalidInputError: both or neither of ``scale`` and ``snr_db``, or a constant channel with ``snr_db``.

    >>> y = add_noise(np.zeros((10_000, 1)), 0.5, seed=0)
    >>> round(float(np.std(y)), 2)
    0.5
    """
    y = concrete(real_array(y, "y"), "y")
    if y.ndim < 2:
        raise invalid("y", "of shape (..., N, n_y)", f"shape {y.shape}", "Write y[:, None] for a single channel.")
    if (scale is None) == (snr_db is None):
        raise invalid("the noise", "given by either scale or snr_db", "both" if snr_db is not None else "neither")
    deviation = _noise_scale(scale, y.shape[-1]) if snr_db is None else _scale_of_ratio(snr_db, y)
    return y + (deviation * generator(seed).standard_normal(y.shape)).astype(y.dtype)


def _noise_scale(scale: Any, channels: int) -> np.ndarray:
    deviation = np.asarray(scale)
    if deviation.dtype.kind not in "iuf" or deviation.shape not in ((), (channels,)):
        what = f"a number or an array of shape ({channels},)"
        raise invalid("scale", what, f"{deviation.dtype} of shape {deviation.shape}")
    if not (np.isfinite(deviation) & (deviation >= 0)).all():
        raise invalid("scale", "finite and not negative", scale)
    return deviation


def _scale_of_ratio(snr_db: Any, y: np.ndarray) -> np.ndarray:
    ratio = finite_number(snr_db, "snr_db")
    over = tuple(range(y.ndim - 1))
    if y.size == 0 or (np.ptp(y, axis=over) == 0).any():
        raise invalid("y", "varying in every channel", "a constant channel", "Give the noise by its scale.")
    return np.std(y, axis=over, dtype="float64") * 10 ** (-ratio / 20)


def _shape(samples: int, channels: int, sequences: int | None) -> tuple[int, ...]:
    shape = (positive_count(samples, "samples"), positive_count(channels, "channels"))
    return shape if sequences is None else (positive_count(sequences, "sequences"), *shape)


def _harmonics(lines: Any, samples: int) -> np.ndarray:
    if isinstance(lines, (int, np.integer)):
        lines = range(1, positive_count(lines, "lines") + 1)
    harmonics = np.asarray(lines)
    if harmonics.ndim != 1 or harmonics.dtype.kind not in "iu" or len(np.unique(harmonics)) != harmonics.size:
        raise invalid("lines", "a number of lines, or different integers", repr(lines))
    if not ((harmonics > 0) & (2 * harmonics < samples)).all():
        raise invalid("lines", f"above 0 and below half of the {samples} samples", repr(lines))
    return harmonics


def _sum_of_cosines(
    samples: int, harmonics: np.ndarray, phases: np.ndarray, amplitude: float, dtype: str | np.dtype
) -> np.ndarray:
    """By an inverse FFT, which is as exact at the end of a long period as at its beginning."""
    a, dtype = positive_number(amplitude, "amplitude"), float_dtype(dtype)
    spectrum = np.zeros((*phases.shape[:-2], samples // 2 + 1, phases.shape[-1]), complex)
    spectrum[..., harmonics, :] = 0.5 * samples * a * math.sqrt(2 / len(harmonics)) * np.exp(1j * phases)
    return np.fft.irfft(spectrum, samples, axis=-2).astype(dtype)
