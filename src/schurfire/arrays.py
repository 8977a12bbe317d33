"""Checks at the door: every public function accepts the same arrays and refuses the rest with the same words."""

from typing import Any

import numpy as np

from schurfire.errors import invalid
from schurfire.namespaces import Array, dtype_name, is_traced, namespace


def real_array(x: Any, name: str) -> Array:
    """Returns ``x`` as a float32 or float64 array, finite where its values are known.

    NumPy arrays and tensors pass unchanged (no copy, no cast); nested lists of floats become float64 arrays.

    Raises:
        InvalidInputError: integer, boolean, complex or other data types; NaN or infinity.
    """
    given = x
    if isinstance(x, np.ma.MaskedArray):
        raise invalid(name, "an array without mask", "a masked array", "Fill in the masked entries first.")
    if not hasattr(x, "dtype"):
        x = _from_nested_lists(x, name)
    elif isinstance(x, (np.ndarray, np.generic)):
        x = np.asarray(x)
    dtype = dtype_name(x)
    if dtype == "object":
        fix = "Of a SchurForm pass the factors or .matrix." if type(given).__name__ == "SchurForm" else ""
        raise invalid(name, "an array of real numbers", f"an object of type {type(given).__name__}", fix)
    if dtype not in ("float32", "float64"):
        fix = f"Cast {name} to float64 yourself if that is meant."
        if "complex" in dtype:
            fix = f"Pass the real part if {name} is real; complex matrices are not supported."
        raise invalid(name, "a real array of dtype float32 or float64", f"dtype {dtype}", fix)
    if not is_traced(x):
        _require_finite(x, name)
    return x


def square_matrices(x: Any, name: str) -> Array:
    """Returns ``x`` as real square matrices of shape (..., n, n); leading axes may be any, but none of length 0."""
    x = real_array(x, name)
    shape = tuple(x.shape)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise invalid(name, "square, of shape (..., n, n)", f"shape {shape}")
    if 0 in shape[:-2]:
        raise invalid(name, "a stack of at least one matrix", f"shape {shape}", "Leave out empty stacks.")
    return x


def square_matrix(x: Any, name: str) -> np.ndarray:
    """Returns ``x`` as one real square NumPy matrix of shape (n, n)."""
    x = concrete(square_matrices(x, name), name)
    if x.ndim != 2:
        raise invalid(name, "one matrix of shape (n, n)", f"shape {x.shape}", "Treat a stack one matrix at a time.")
    return x


def concrete(x: Array, name: str) -> np.ndarray:
    """Returns a NumPy array of the values of ``x``.

    Raises:
        InvalidInputError: ``x`` is being traced, so that it has no values yet.
    """
    if isinstance(x, np.ndarray):
        return x
    if is_traced(x):
        fix = "Call this function outside of jit, or use the functions in schurfire.kernels inside."
        raise invalid(name, "an array with values", "a traced array", fix)
    return np.asarray(namespace(x).convert_to_numpy(x))


def frobenius_norm(X: np.ndarray) -> np.ndarray:
    """``||X||_F`` of NumPy matrices, in float64, over- and underflowing only if the norm itself does."""
    X = X.astype(np.float64)
    largest = np.abs(X).max(axis=(-2, -1), initial=0.0)
    scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    with np.errstate(over="ignore"):
        return scale * np.linalg.norm(X / scale[..., None, None], axis=(-2, -1))


def _from_nested_lists(x: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(x)
    except ValueError:
        raise invalid(name, "rectangular", "rows of different length", "Give every row the same length.") from None


def _require_finite(x: Array, name: str) -> None:
    xp = namespace(x)
    finite = np.asarray(xp.isfinite(x) if isinstance(x, np.ndarray) else xp.convert_to_numpy(xp.isfinite(x)))
    if not finite.all():
        first = tuple(int(i) for i in np.argwhere(~finite)[0])
        count = int(finite.size - np.count_nonzero(finite))
        raise invalid(name, "finite", f"{count} NaN or infinite value(s), the first at index {first}")
