"""The real Schur decomposition ``A = Z T Z^T``, by LAPACK on CPU or by a portable kernel anywhere."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from schurfire.arrays import concrete, square_matrices
from schurfire.errors import NotConvergedError, invalid
from schurfire.kernels.francis import francis
from schurfire.kernels.hessenberg import hessenberg
from schurfire.kernels.quasi_triangular import block_structure, standardise
from schurfire.namespaces import NUMPY, Array, apply, finfo, is_jax, is_traced, kernel, namespace


class RealSchur(NamedTuple):
    """``A = Z T Z^T`` for matrices of shape (..., n, n).

    Attributes:
        T: quasi-triangular, shape (..., n, n).
        Z: orthogonal, shape (..., n, n).
        blocks: int32, shape (..., n): 1 for a 1x1 block, 2 and 0 for the first and second row of a 2x2 block.
        converged: boolean, shape (...). Where it is false ``T`` and ``Z`` are NaN and ``blocks`` are 0.
    """

    T: Array
    Z: Array
    blocks: Array
    converged: Array


def real_schur(A: Array, method: str = "auto") -> RealSchur:
    """``A = Z T Z^T`` with ``Z`` orthogonal and ``T`` quasi-triangular.

    ``T`` is quasi-triangular exactly: zero below its diagonal blocks, which are 1x1 for real eigenvalues and
    ``[[a, b], [c, a]]`` with ``b c < 0`` for complex pairs. Both methods are backward stable: in the precision of A,
    ``||A - Z T Z^T|| <= c n eps ||A||`` and ``||I - Z^T Z|| <= c n eps`` with a moderate constant c (LAPACK's tests
    demand 30). NumPy arrays come back as NumPy arrays, tensors as tensors, in their own precision. No method has a
    derivative rule.

    Args:
        A: shape (..., n, n), float32 or float64.
        method: ``"lapack"`` (xGEES, on CPU only: NumPy arrays, JAX tensors, other tensors outside of compiled
            functions), ``"portable"`` (Householder reduction and Francis double-shift sweeps written in array
            operations: any device, all matrices of a stack at once, jit-able with JAX) or ``"auto"``, which takes
            ``"lapack"`` where it is available.

    Returns:
        ``T, Z, blocks, converged``, see ``RealSchur``. Inside a compiled function matrices with NaN or infinity, and
        those whose iteration did not end, are reported by ``converged``.

    Raises:
        InvalidInputError: A is not square, real and finite, or there is no such method for it.
        NotConvergedError: outside of compiled functions, the iteration did not end for some matrix, or T overflows.

    Cost: about ``25 n^3`` operations per matrix. ``"portable"`` does them in about ``n^2`` sequential steps for the
    whole stack; on NumPy arrays these are a Python loop, meant for small n.

    >>> import numpy as np
    >>> A = np.array([[0.0, 2.0, 1.0], [-2.0, 0.0, 1.0], [0.0, 0.0, 3.0]])
    >>> schur = real_schur(A)
    >>> schur.blocks
    array([2, 0, 1], dtype=int32)
    >>> np.allclose(schur.Z @ schur.T @ schur.Z.T, A)
    True
    """
    A = square_matrices(A, "A")
    decompose = _portable if not _takes_lapack(method, A) else _lapack
    if is_traced(A):
        return decompose(A)
    schur = apply(decompose, A)
    _require_convergence(schur.converged)
    return schur


# --- which method -----------------------------------------------------------------------------------------------------


def _takes_lapack(method: str, A: Array) -> bool:
    if method not in ("auto", "lapack", "portable"):
        raise invalid("method", "'auto', 'lapack' or 'portable'", repr(method))
    if method == "lapack" and not _has_lapack(A):
        where = "a traced tensor" if is_traced(A) else f"a tensor on {A.device}"
        raise invalid("method", f"'auto' or 'portable' for {where}", repr(method), "LAPACK runs on CPU only.")
    return method != "portable" and _has_lapack(A)


def _has_lapack(A: Array) -> bool:
    if isinstance(A, np.ndarray):
        return True
    if not is_jax(A):
        return not is_traced(A) and "cpu" in str(A.device).lower()
    import jax

    # A traced array may be compiled for any device: JAX's default one is the best guess there is.
    return jax.default_backend() == "cpu" if is_traced(A) else all(d.platform == "cpu" for d in A.devices())


def _require_convergence(converged: Array) -> None:
    failed = np.argwhere(np.logical_not(concrete(converged, "converged")))
    if len(failed):
        first = tuple(int(i) for i in failed[0])
        where = f"{len(failed)} matrices of the stack, the first at index {first}" if first else "the matrix"
        raise NotConvergedError(f"The QR iteration did not end with a finite Schur factor for {where}.")


# --- the methods ------------------------------------------------------------------------------------------------------


def _flagged(method: Callable[[Any, Array], tuple[Array, Array, Array]]) -> Callable[[Array], RealSchur]:
    """Makes a ``RealSchur`` of a method's ``T, Z, converged``, and keeps NaN and infinity away from its loops."""

    @kernel
    @functools.wraps(method)
    def decompose(A: Array) -> RealSchur:
        xp = namespace(A)
        if A.shape[-1] == 0:
            return RealSchur(A, A, xp.zeros(A.shape[:-1], dtype="int32"), xp.ones(A.shape[:-2], dtype="bool"))
        finite = xp.all(xp.isfinite(A), axis=(-2, -1))
        T, Z, converged = method(xp, xp.where(finite[..., None, None], A, xp.zeros_like(A)))
        converged = xp.logical_and(xp.logical_and(finite, converged), xp.all(xp.isfinite(T), axis=(-2, -1)))
        converged = np.asarray(converged) if xp is NUMPY else converged  # NumPy makes scalars of arrays without axes
        blocks = xp.where(converged[..., None], block_structure(T), 0)
        T, Z = (xp.where(converged[..., None, None], X, xp.full_like(X, float("nan"))) for X in (T, Z))
        return RealSchur(T, Z, blocks, converged)

    return decompose


@_flagged
def _lapack(xp: Any, A: Array) -> tuple[Array, Array, Array]:
    if xp is NUMPY:
        return _lapack_each(A)
    if is_jax(A):
        import jax

        factors = jax.lax.linalg.schur(A)  # T and Z, NaN where LAPACK reports failure
        return factors[0], factors[1], xp.all(xp.isfinite(factors[1]), axis=(-2, -1))
    return tuple(xp.convert_to_tensor(x, dtype=x.dtype.name) for x in _lapack_each(concrete(A, "A")))


def _lapack_each(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    T, Z, converged = np.zeros_like(A), np.zeros_like(A), np.ones(A.shape[:-2], dtype=bool)
    for index in np.ndindex(A.shape[:-2]):
        try:
            factors = scipy.linalg.schur(A[index], output="real", check_finite=False)
            T[index], Z[index] = factors[0], factors[1]
        except scipy.linalg.LinAlgError:
            converged[index] = False
    return T, Z, converged


@_flagged
def _portable(xp: Any, A: Array) -> tuple[Array, Array, Array]:
    n = A.shape[-1]
    shape = xp.shape(A)
    A = xp.reshape(A, (-1, n, n))
    # Every step is linear in the matrix, so the middle half of the exponent range is free of over- and underflow.
    large = 2.0 ** (finfo(A).maxexp // 2)
    size = xp.max(xp.abs(A), axis=(-2, -1))[:, None, None]
    one = xp.ones_like(size)
    scale = xp.where(size > large, large * one, xp.where(size < 1 / large, one / large, one))
    T, Z, converged = francis(*hessenberg(A / scale))
    T, Z = standardise(T, Z)
    return xp.reshape(T * scale, shape), xp.reshape(Z, shape), xp.reshape(converged, shape[:-2])
