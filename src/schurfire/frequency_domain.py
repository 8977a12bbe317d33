"""A discrete-time system in the frequency domain: its transfer function, and its modes in the words of real time.

Measures in double precision, whatever the precision of the matrices; they prove nothing about stability.
"""

import cmath
import math
from dataclasses import dataclass

import numpy as np

from schurfire.errors import invalid
from schurfire.metrics import spectrum_of_blocks

_CHUNK = 2**20  # complex entries of z I - A that are held at a time: 16 MiB


@dataclass(frozen=True)
class Mode:
    """One real eigenvalue z, or one complex pair, as the motion ``exp(s t)`` with ``s = ln(z) / dt``.

    Attributes:
        eigenvalue: z; of a pair the one with positive imaginary part.
        frequency_hz: of the oscillation, ``|Im s| / (2 pi)``: 0 for z >= 0, and half the sampling rate for z < 0. The
            natural frequency of a damped oscillator is this over ``sqrt(1 - damping^2)``.
        damping: the ratio ``-Re s / |s|``: 1 for z in (0, 1), 0 for a pair on the unit circle, negative if the motion
            grows, NaN for z = 1, which does neither.
        time_constant_s: ``-1 / Re s``, after which the amplitude has fallen to 1/e: infinite on the unit circle,
            negative if the motion grows, 0 for z = 0.
        is_oscillating: whether the motion changes its sign: every z but the real numbers z >= 0.
    """

    eigenvalue: complex
    frequency_hz: float
    damping: float
    time_constant_s: float
    is_oscillating: bool

    def __str__(self) -> str:
        what = f"{self.frequency_hz:.4g} Hz, damping {self.damping:.3g}, " if self.is_oscillating else ""
        return f"{what}time constant {self.time_constant_s:.4g} s"


def transfer_function(A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray, z: np.ndarray) -> np.ndarray:
    """``C (z I - A)^-1 B + D`` for every z, by linear solves.

    Args:
        A: shape (n_x, n_x); the matrices are those of a ``LinearSystem``.
        B: shape (n_x, n_u).
        C: shape (n_y, n_x).
        D: shape (n_y, n_u).
        z: complex, shape (...).

    Returns:
        complex128, shape (..., n_y, n_u).

    Raises:
        InvalidInputError: ``z I - A`` is singular exactly.

    >>> A, B, C, D = (np.array([[x]]) for x in (0.5, 1.0, 2.0, 3.0))
    >>> transfer_function(A, B, C, D, np.array([1.0, -1.5])).real.ravel()
    array([7., 2.])
    """
    A, B, C, D = (M.astype(np.float64) for M in (A, B, C, D))
    points = z.ravel()
    values = np.empty((points.size, *D.shape), np.complex128)
    length = max(1, _CHUNK // A.size)
    for start in range(0, points.size, length):
        part = slice(start, start + length)
        try:
            values[part] = C @ np.linalg.solve(points[part, None, None] * np.eye(len(A)) - A, B) + D
        except np.linalg.LinAlgError:
            raise invalid("the frequencies", "different from the poles of the system", "an exact pole") from None
    return values.reshape(*z.shape, *D.shape)


def modes_of(eigenvalues: np.ndarray, dt: float) -> tuple[Mode, ...]:
    """One mode for each real eigenvalue and each conjugate pair, in the order of falling modulus: slowest first.

    Args:
        eigenvalues: those of a real matrix, shape (n,): complex ones in exactly conjugate pairs.
        dt: sampling time in seconds.

    >>> for mode in modes_of(np.array([0.5, 0.9j, -0.9j]), dt=0.25):
    ...     print(mode)
    1 Hz, damping 0.0669, time constant 2.373 s
    time constant 0.3607 s
    """
    upper = [complex(z) for z in eigenvalues if z.imag >= 0]
    return tuple(_mode(z, dt) for z in sorted(upper, key=abs, reverse=True))


def eigenvalues_of(A: np.ndarray, is_quasi_triangular: bool) -> np.ndarray:
    """The eigenvalues in double precision: by the diagonal blocks, right to the last digits, or as LAPACK finds them.

    LAPACK's are measures: they may be far from the truth where A is far from normal, and prove nothing.
    """
    if is_quasi_triangular:
        return spectrum_of_blocks(A)
    return np.linalg.eigvals(A.astype(np.float64)).astype(np.complex128)


def _mode(z: complex, dt: float) -> Mode:
    is_oscillating = z.imag != 0 or z.real < 0
    angle = abs(cmath.phase(z)) if is_oscillating else 0.0
    if z == 0:
        return Mode(z, 0.0, 1.0, 0.0, is_oscillating)
    decay = 0.0 - math.log(abs(z))  # on the unit circle 0, not -0
    s = complex(-decay, angle)
    damping = decay / abs(s) if s else math.nan
    return Mode(z, angle / (2 * math.pi * dt), damping, dt / decay if decay else math.inf, is_oscillating)
