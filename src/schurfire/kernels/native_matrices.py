"""Stacks of square matrices by the native library: NumPy arrays, and JAX and PyTorch tensors on CPU."""

import math
from typing import Any

import numpy as np

from schurfire.kernels.native_response import is_available
from schurfire.namespaces import NUMPY, Array, dtype_name, is_jax, namespace
from schurfire.native import matrices
from schurfire.native.matrices import Orthogonalisation, PowerBound
from schurfire.native.problem import Strided, strided

__all__ = ["Orthogonalisation", "PowerBound", "is_available", "orthogonalised_by_library", "proven_by_library"]


def proven_by_library(A: Array, bound: PowerBound) -> Array:
    """The flags (...) for matrices (..., n, n)."""
    stack = _stack(A)
    if is_jax(A):
        flags = matrices.prove_compiled(stack, bound)
    else:
        flags, address = _flags(stack)
        matrices.prove(_strided(stack), dtype_name(A), bound, address)
    return namespace(A).reshape(flags, tuple(A.shape[:-2]))


def orthogonalised_by_library(Z: Array, task: Orthogonalisation) -> tuple[Array, Array]:
    """The matrices Q (..., n, n), and the flags (...) of those that were within reach."""
    stack, xp = _stack(Z), namespace(Z)
    if is_jax(Z):
        Q, flags = matrices.orthogonalise_compiled(stack, task)
    else:
        Q = xp.zeros_like(stack)
        flags, address = _flags(stack)
        matrices.orthogonalise(_strided(stack), _strided(Q), dtype_name(Z), task, address)
    return xp.reshape(Q, tuple(Z.shape)), xp.reshape(flags, tuple(Z.shape[:-2]))


def _stack(A: Array) -> Array:
    return namespace(A).reshape(A, (math.prod(A.shape[:-2]), *A.shape[-2:]))


def _strided(stack: Array) -> Strided:
    if namespace(stack) is NUMPY:
        view = strided(stack)
        return view if view is not None else Strided(0, (), ())
    return Strided(stack.data_ptr(), stack.stride(), tuple(stack.shape))


def _flags(stack: Array) -> tuple[Any, int]:
    """Room for a flag of each matrix, and its address."""
    if namespace(stack) is NUMPY:
        flags = np.empty(len(stack), bool)
        return flags, flags.ctypes.data
    import torch  # pyright: ignore[reportMissingImports]

    flags = torch.empty(len(stack), dtype=torch.bool)
    return flags, flags.data_ptr()
