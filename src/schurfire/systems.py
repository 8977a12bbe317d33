"""Linear state-space systems in discrete time, as values."""

from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from schurfire.arrays import concrete, real_array, square_matrix
from schurfire.channels import channel_names, sample_count, sampling_time
from schurfire.errors import invalid
from schurfire.frequency_domain import Mode, eigenvalues_of, modes_of, transfer_function
from schurfire.kernels.projection import project_factor
from schurfire.kernels.recurrence import Response, state_space_response
from schurfire.kernels.schur import real_schur
from schurfire.regions import UNIT_DISC, Disc, Region, check_region
from schurfire.stability.certificate import Certificate, certify
from schurfire.stability.definiteness import frozen
from schurfire.stability.schur_form import is_quasi_triangular


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """``x[k+1] = A x[k] + B u[k]``, ``y[k] = C x[k] + D u[k]``, one sample every ``dt`` seconds.

    The region is where the eigenvalues are meant to live; a system need not be stable, and ``certify`` alone says
    whether it is. Simulations run in the precision of the matrices. What only describes a system (frequency response,
    gain, modes) is computed in double precision and proves nothing.

    Attributes:
        A: shape (n_x, n_x), float32 or float64, n_x >= 1; read-only, as are the others.
        B: shape (n_x, n_u), n_u >= 1, of the same dtype, as are the others.
        C: shape (n_y, n_x), n_y >= 1.
        D: shape (n_y, n_u).
        dt: sampling time in seconds.
        region: a ``Disc``.
        input_names: one for each input, all different; default ``"u1"``, ``"u2"``, ...
        output_names: one for each output, all different; default ``"y1"``, ``"y2"``, ...

    Raises:
        InvalidInputError: matrices that are not real and finite, of these shapes and of one dtype; a half-plane; a
            sampling time that is no positive number; too few, too many or repeated names.

    >>> import numpy as np
    >>> system = LinearSystem([[0.5, 1.0], [0.0, 0.25]], [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]], dt=0.1)
    >>> print(system)
    LinearSystem: 2 states, 1 input, 1 output, float64, dt = 0.1 s
      radius        0.5 (of the diagonal blocks)
      slowest mode  time constant 0.1443 s
      proof         stable: both eigenvalues in |z| < 1, at least 0.499 inside; proven exactly by 2 diagonal blocks
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    dt: float = 1.0
    region: Region = UNIT_DISC
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(check_region(self.region), Disc):
            fix = "Time is discrete here: discretise a continuous-time system first."
            raise invalid("region", "a schurfire.Disc", self.region, fix)
        matrices = {"A": square_matrix(self.A, "A")}
        matrices |= {name: concrete(real_array(getattr(self, name), name), name) for name in "BCD"}
        _require_matching(**matrices)
        for name, matrix in matrices.items():
            object.__setattr__(self, name, frozen(matrix))
        object.__setattr__(self, "dt", sampling_time(self.dt))
        for name, letter, count in (("input_names", "u", self.input_size), ("output_names", "y", self.output_size)):
            object.__setattr__(self, name, channel_names(getattr(self, name), name, letter, count))

    @property
    def state_size(self) -> int:
        """``n_x``, the number of states."""
        return self.A.shape[0]

    @property
    def input_size(self) -> int:
        """``n_u``, the number of inputs."""
        return self.B.shape[1]

    @property
    def output_size(self) -> int:
        """``n_y``, the number of outputs."""
        return self.C.shape[0]

    @property
    def is_quasi_triangular(self) -> bool:
        """Whether A is zero below 1x1 and 2x2 diagonal blocks, exactly, so that its blocks decide about stability.

        >>> LinearSystem([[0.5]], [[1.0]], [[1.0]], [[0.0]]).is_quasi_triangular
        True
        """
        return is_quasi_triangular(self.A)

    # --- responses ----------------------------------------------------------------------------------------------------

    def simulate(self, u: Any, x0: Any = None) -> np.ndarray:
        """The outputs y for the inputs u from the initial state x0; ``respond`` returns the final state too.

        Args:
            u: shape (..., N, n_u), N >= 1, of the system's dtype: time is axis -2.
            x0: shape (..., n_x), of the system's dtype; its leading axes broadcast against those of u. Default: 0.

        Returns:
            Shape (..., N, n_y), of the system's dtype. The outputs of an unstable system may overflow to infinity.

        Raises:
            InvalidInputError: arrays that are not real and finite, of these shapes and of the system's dtype.

        Cost: ``N (n_x + n_y) (n_x + n_u)`` multiplications for each sequence.

        >>> system = LinearSystem([[0.5]], [[1.0]], [[2.0]], [[1.0]])
        >>> system.simulate([[1.0], [0.0], [0.0]]).T
        array([[1., 2., 1.]])
        """
        return self.respond(u, x0).y

    def respond(self, u: Any, x0: Any = None) -> Response:
        """``y`` as ``simulate`` and ``x_end = x[N]``, shape (..., n_x): the initial state for the samples to follow.

        Args and errors are those of ``simulate``.

        >>> system = LinearSystem([[0.5]], [[1.0]], [[2.0]], [[1.0]])
        >>> system.respond([[1.0], [0.0], [0.0]]).x_end
        array([0.25])
        """
        u = self._signals(u, "u")
        if u.ndim < 2 or u.shape[-1] != self.input_size or u.shape[-2] == 0:
            fix = "Time is axis -2, at least one sample long; inputs are axis -1."
            raise invalid("u", f"of shape (..., N, {self.input_size})", f"shape {u.shape}", fix)
        if x0 is not None:
            x0 = self._signals(x0, "x0")
            if x0.ndim < 1 or x0.shape[-1] != self.state_size:
                raise invalid("x0", f"of shape (..., {self.state_size})", f"shape {x0.shape}")
        form = "quasi-triangular" if self.is_quasi_triangular else "dense"
        return state_space_response(self.A, self.B, self.C, self.D, u, x0, form=form)

    def impulse_response(self, N: int) -> np.ndarray:
        """``D, C B, C A B, C A^2 B, ...``: column j is the output for the pulse ``u_j[0] = 1`` from rest.

        Args:
            N: how many samples, at least 1.

        Returns:
            Shape (N, n_y, n_u), of the system's dtype.

        Raises:
            InvalidInputError: N is no positive whole number.

        >>> LinearSystem([[0.5]], [[1.0]], [[2.0]], [[3.0]]).impulse_response(4).ravel()
        array([3. , 2. , 1. , 0.5])
        """
        u = np.zeros((self.input_size, sample_count(N), self.input_size), self.A.dtype)
        u[:, 0] = np.eye(self.input_size)
        return np.moveaxis(self.simulate(u), 0, -1)

    def step_response(self, N: int) -> np.ndarray:
        """Column j is the output for ``u_j[k] = 1``, k >= 0, from rest: the running sum of the impulse response.

        Args, result and errors are those of ``impulse_response``.

        >>> LinearSystem([[0.5]], [[1.0]], [[2.0]], [[3.0]]).step_response(4).ravel()
        array([3. , 5. , 6. , 6.5])
        """
        each = np.eye(self.input_size, dtype=self.A.dtype)[:, None]
        return np.moveaxis(self.simulate(np.repeat(each, sample_count(N), axis=1)), 0, -1)

    def frequency_response(self, frequencies: Any) -> np.ndarray:
        """``C (z I - A)^-1 B + D`` at ``z = exp(2 pi i f dt)``, f in hertz; by linear solves in double precision.

        Args:
            frequencies: f, float32 or float64, of any shape. The response has the period ``1 / dt`` in f.

        Returns:
            complex128, of shape (..., n_y, n_u), with the leading axes of ``frequencies``.

        Raises:
            InvalidInputError: frequencies that are not real and finite, or one that is exactly a pole.

        Cost: about ``n_x^3`` operations for each frequency.

        >>> LinearSystem([[0.5]], [[1.0]], [[3.0]], [[0.0]], dt=0.1).frequency_response([0.0, 5.0]).real.ravel()
        array([ 6., -2.])
        """
        f = concrete(real_array(frequencies, "frequencies"), "frequencies").astype(np.float64)
        z = np.exp(2j * np.pi * (f * self.dt))
        return transfer_function(self.A, self.B, self.C, self.D, z)

    @property
    def dc_gain(self) -> np.ndarray:
        """``C (I - A)^-1 B + D``, float64 of shape (n_y, n_u): where the step response of a stable system ends.

        Raises:
            InvalidInputError: ``I - A`` is singular: the system integrates.

        >>> LinearSystem([[0.5]], [[1.0]], [[2.0]], [[3.0]]).dc_gain
        array([[7.]])
        """
        return np.real(self.frequency_response(0.0))

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Frequency, damping and time constant of each real eigenvalue and complex pair, slowest first.

        The eigenvalues are those of the diagonal blocks, right to the last digits, if A is quasi-triangular; LAPACK's
        otherwise. Either way these are measures; ``certify`` proves.

        >>> print(*LinearSystem([[0.0, 0.5], [-0.5, 0.0]], [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]]).modes)
        0.25 Hz, damping 0.404, time constant 1.443 s
        """
        return modes_of(eigenvalues_of(self.A, self.is_quasi_triangular), self.dt)

    # --- the same system otherwise ------------------------------------------------------------------------------------

    def in_coordinates(self, V: Any) -> "LinearSystem":
        """``(V^-1 A V, V^-1 B, C V, D)``, the system of the state ``V^-1 x``: the same outputs, up to rounding.

        Rounding errors grow with the condition of V, and eigenvalues move with them: certify the result anew.

        Args:
            V: shape (n_x, n_x), of the system's dtype, invertible.

        Raises:
            InvalidInputError: another shape or dtype, or a matrix that is singular to working precision.

        >>> LinearSystem([[0.5]], [[1.0]], [[2.0]], [[3.0]]).in_coordinates([[4.0]]).C
        array([[8.]])
        """
        V = square_matrix(V, "V")
        if V.shape != self.A.shape or V.dtype != self.A.dtype:
            what = f"of shape {self.A.shape} and dtype {self.A.dtype}"
            raise invalid("V", what, f"shape {V.shape} and dtype {V.dtype}")
        if not np.linalg.cond(V) * len(V) * np.finfo(V.dtype).eps < 1:
            raise invalid("V", "invertible", "a matrix that is singular to working precision")
        moved = np.linalg.solve(V, np.concatenate([self.A @ V, self.B], axis=1))
        n = self.state_size
        return replace(self, A=moved[:, :n], B=moved[:, n:], C=self.C @ V)

    def in_schur_coordinates(self) -> "LinearSystem":
        """``(T, Z^T B, C Z, D)`` with the real Schur decomposition ``A = Z T Z^T``: the system with an exact proof.

        T is exactly quasi-triangular and each of its diagonal blocks is strictly stable in exact arithmetic, in the
        system's own precision. So the system returned is the model that everything proven is about. A system that is
        such a one already comes back unchanged, as the same object.

        The decomposition is computed in double precision and rounded once. So the response is that of a dense matrix
        ``A + E`` with ``||E|| <= c n_x eps ||A||``, eps of double precision and c about 30 at most, and relative
        rounding errors of half an eps of its own in T, ``Z^T B`` and ``C Z`` if the system is float32. Usually that is
        all. A block of T that lies outside although A is proven stable, because its eigenvalues are ill-conditioned, is
        replaced by the nearest stable block, and E grows by the distance. The frequency response changes by
        ``C (z I - A)^-1 E (z I - A)^-1 B`` in first order.

        Raises:
            InvalidInputError: A is not proven stable, and neither is its Schur factor.
            NotConvergedError: the Schur decomposition failed.

        Cost: the decomposition, about ``25 n_x^3`` operations; O(n_x) if A is quasi-triangular.

        >>> A = [[0.5, 0.25, 0.0], [0.25, 0.5, 0.25], [0.0, 0.25, 0.5]]
        >>> system = LinearSystem(A, [[1.0], [0.0], [0.0]], [[0.0, 0.0, 1.0]], [[0.0]]).in_schur_coordinates()
        >>> system.is_quasi_triangular, system.certify().method
        (True, 'blocks')
        >>> system.dc_gain.round(9)
        array([[1.]])
        """
        if self.is_quasi_triangular:
            return self if self.certify().is_stable else self._refuse()
        double = self.astype("float64")
        T, Z = real_schur(double.A)[:2]
        if not certify(T, self.region).is_stable and not self.certify().is_stable:
            self._refuse()
        system = replace(double, A=project_factor(T, self.region), B=Z.T @ double.B, C=double.C @ Z)
        return system.astype(self.A.dtype)

    def astype(self, dtype: Any) -> "LinearSystem":
        """The system with its matrices rounded to another precision, proven stable again if it was so before.

        The diagonal blocks of a quasi-triangular A that rounding has moved out of the region are rounded inward. A
        dense A is certified anew. A system that was not proven stable is rounded, no more.

        Args:
            dtype: ``"float32"`` or ``"float64"``.

        Raises:
            InvalidInputError: another dtype, a matrix that overflows, or a dense A whose proof does not survive.

        >>> A = [[1 - 1e-12]]
        >>> system = LinearSystem(A, [[1.0]], [[1.0]], [[0.0]]).astype("float32")
        >>> np.float32(A[0][0]), system.A[0, 0]
        (np.float32(1.0), np.float32(0.99999994))
        """
        precision = _precision(dtype)
        if precision == self.A.dtype:
            return self
        with np.errstate(over="ignore"):
            A, B, C, D = (M.astype(precision) for M in (self.A, self.B, self.C, self.D))
        rounded = replace(self, A=A, B=B, C=C, D=D)
        is_exact = np.array_equal(A, self.A)  # then the proof of the old A is one of the new
        if is_exact or not self.certify().is_stable or rounded.certify().is_stable:
            return rounded
        if not self.is_quasi_triangular:
            fix = "Call in_schur_coordinates() first: the proof of that form survives every cast."
            raise invalid("A", f"proven stable in {precision}", rounded.certify(), fix)
        return replace(rounded, A=project_factor(A, self.region))

    def certify(self) -> Certificate:
        """The verdict on A and the region, with its evidence: ``schurfire.certify(A, region)``.

        >>> print(LinearSystem([[0.5]], [[1.0]], [[1.0]], [[0.0]], region=Disc(0.75)).certify())
        stable: the eigenvalue in |z| < 0.75, at least 0.249 inside; proven exactly by 1 diagonal block
        """
        return certify(self.A, self.region)

    def __str__(self) -> str:
        sizes = ((self.state_size, "state"), (self.input_size, "input"), (self.output_size, "output"))
        counts = ", ".join(f"{size} {what}{'s' * (size != 1)}" for size, what in sizes)
        slowest = self.modes[0]
        how = "of the diagonal blocks" if self.is_quasi_triangular else "as LAPACK measures it"
        return (
            f"LinearSystem: {counts}, {self.A.dtype}, dt = {self.dt:g} s\n"
            f"  radius        {abs(slowest.eigenvalue):.6g} ({how})\n"
            f"  slowest mode  {slowest}\n"
            f"  proof         {self.certify()}"
        )

    def _refuse(self) -> NoReturn:
        fix = (
            "Make it stable first: form = schurfire.project_stable(A, region), and form.T, form.Z.T @ B, C @ form.Z "
            "in place of A, B, C."
        )
        raise invalid("A", "proven stable", f"one that is {self.certify()}", fix)

    def _signals(self, x: Any, name: str) -> np.ndarray:
        x = concrete(real_array(x, name), name)
        if x.dtype != self.A.dtype:
            fix = f"Cast {name}, or the system with astype()."
            raise invalid(name, f"of the system's dtype {self.A.dtype}", f"dtype {x.dtype}", fix)
        return x


def _require_matching(A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray) -> None:
    if not len(A):
        raise invalid("A", "of order 1 or more", f"shape {A.shape}")
    for name, matrix in (("B", B), ("C", C), ("D", D)):
        if matrix.ndim != 2 or not matrix.size:
            raise invalid(name, "a matrix with at least one row and one column", f"shape {matrix.shape}")
    shapes = {"B": (len(A), B.shape[1]), "C": (C.shape[0], len(A)), "D": (C.shape[0], B.shape[1])}
    for name, matrix in (("B", B), ("C", C), ("D", D)):
        if matrix.shape != shapes[name]:
            fix = "A is (n_x, n_x), B (n_x, n_u), C (n_y, n_x) and D (n_y, n_u)."
            raise invalid(name, f"of shape {shapes[name]}", f"shape {matrix.shape}", fix)
        if matrix.dtype != A.dtype:
            raise invalid(name, f"of the dtype of A, {A.dtype}", f"dtype {matrix.dtype}")


def _precision(dtype: Any) -> np.dtype:
    try:
        precision = np.dtype("object" if dtype is None else dtype)  # to NumPy None means float64
    except TypeError:
        precision = np.dtype("object")
    if precision.name not in ("float32", "float64"):
        raise invalid("dtype", "float32 or float64", repr(dtype))
    return precision
