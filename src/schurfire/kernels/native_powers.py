"""The bound of the powers of a stack of matrices by the native library: NumPy arrays, JAX and PyTorch on CPU."""

import math

import numpy as np

from schurfire.kernels.native_response import is_available
from schurfire.namespaces import NUMPY, Array, dtype_name, is_jax, namespace
from schurfire.native.powers import Question, prove, prove_compiled
from schurfire.native.problem import Strided, strided

__all__ = ["Question", "is_available", "proven_by_library"]


def proven_by_library(A: Array, question: Question) -> Array:
    """The flags (...) for matrices (..., n, n)."""
    xp, leading, n = namespace(A), tuple(A.shape[:-2]), A.shape[-1]
    matrices = xp.reshape(A, (math.prod(leading), n, n))
    if is_jax(A):
        flags = prove_compiled(matrices, question)
    elif xp is NUMPY:
        flags = np.empty(len(matrices), bool)
        prove(strided(matrices), A.dtype.name, question, flags.ctypes.data)
    else:
        import torch

        flags = torch.empty(len(matrices), dtype=torch.bool)
        view = Strided(matrices.data_ptr(), matrices.stride(), tuple(matrices.shape))
        prove(view, dtype_name(A), question, flags.data_ptr())
    return xp.reshape(flags, leading)
