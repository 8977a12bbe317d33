"""``x[k+1] = A x[k] + B u[k]``, ``y[k] = C x[k] + D u[k]``: the one primitive that every model runs on.

Ways to compute it, with the same derivative rule (``kernels.adjoint``) and chosen by shape and device:

- ``native``: a compiled loop for CPUs, where the package was built with a C++ compiler;
- ``scan``: step by step (``kernels.sequential``);
- ``associative``: doubling, log2(N) steps that are parallel over time (``kernels.associative``);
- ``blocked``: large matrix products and a shorter recurrence (``kernels.blocked``).
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from schurfire.arrays import real_array
from schurfire.errors import invalid
from schurfire.kernels.adjoint import respond
from schurfire.kernels.forms import FORMS
from schurfire.kernels.layouts import METHODS, Operands
from schurfire.kernels.leading import Shapes, axes_restored, joined_axes, shapes_of
from schurfire.kernels.native_response import is_available, native_response
from schurfire.namespaces import NUMPY, Array, dtype_name, namespace

_METHODS = ("auto", "native", *METHODS)


class Response(NamedTuple):
    """What a system answers to its inputs.

    Attributes:
        y: the outputs ``y[0..N-1]``, (..., N, n_y).
        x_end: the state ``x[N]`` after the last of them, (..., n).
    """

    y: Array
    x_end: Array


def linear_recurrence(
    A: Array, b: Array, x0: Array | None = None, method: str = "auto", *, form: str = "dense"
) -> Array:
    """The states ``x[0..N]`` of ``x[k+1] = A x[k] + b[k]``.

    The derivative is the adjoint recurrence; first derivatives in reverse mode only. NaN and infinity in the values
    are carried on, and what overflows is infinite or NaN; nothing is raised for them.

    Args:
        A: shape (..., n, n).
        b: shape (..., N, n), N >= 0. Leading axes of all arguments broadcast.
        x0: ``x[0]``, shape (..., n); zero if None.
        method: ``"auto"``, ``"native"``, ``"scan"``, ``"associative"`` or ``"blocked"``. They agree up to rounding
            errors, of ``c n N eps`` relative to the same recurrence on absolute values.
        form: the entries of A that are read: ``"dense"``, ``"quasi-triangular"`` (those with ``j >= i - 1``), or
            ``"block-diagonal"`` (those of the 2x2 blocks that start in rows 0, 2, 4, ...). The others are taken as
            zero and have gradient zero.

    Returns:
        Shape (..., N + 1, n).

    Raises:
        InvalidInputError: wrong ranks, sizes or data types, or an unknown method or form.

    Cost: ``N n^2`` multiplications, ``2 N n`` in block-diagonal form; ``associative`` and ``blocked`` do up to
    ``log2(N)`` and 9 times as many.

    >>> import numpy as np
    >>> linear_recurrence(np.array([[0.5]]), np.ones((3, 1))).tolist()
    [[0.0], [1.0], [1.5], [1.75]]
    """
    response = _response(_checked({"A": A, "B": None, "C": None, "D": None, "b": b, "x0": x0}), method, form)
    xp = namespace(response.y)
    return xp.concatenate([response.y, response.x_end[..., None, :]], axis=-2)


def state_space_response(  # noqa: PLR0913 - the model's four matrices, its input and its state
    A: Array,
    B: Array | None,
    C: Array | None,
    D: Array | None,
    u: Array,
    x0: Array | None = None,
    method: str = "auto",
    *,
    form: str = "dense",
) -> Response:
    """The outputs ``y[k] = C x[k] + D u[k]`` of ``x[k+1] = A x[k] + B u[k]``, and the state after the last input.

    Derivatives, values that are not finite, methods and forms as for ``linear_recurrence``.

    Args:
        A: shape (..., n, n).
        B: shape (..., n, n_u). None: u is added to the state as it is, ``n_u = n``.
        C: shape (..., n_y, n). None: ``y = x``, and D must be None as well.
        D: shape (..., n_y, n_u); zero if None.
        u: shape (..., N, n_u), N >= 0. Leading axes of all arguments broadcast: A of shape (R, 1, n, n) with u of
            shape (S, N, n_u) are R models on S shared sequences.
        x0: ``x[0]``, shape (..., n); zero if None.
        method: see ``linear_recurrence``.
        form: see ``linear_recurrence``.

    Returns:
        y of shape (..., N, n_y), and ``x[N]`` of shape (..., n).

    Raises:
        InvalidInputError: wrong ranks, sizes or data types, or an unknown method or form.

    Cost: that of ``linear_recurrence``, and one product each with B, C and D.

    >>> import numpy as np
    >>> A, B, C = np.array([[0.5]]), np.array([[2.0]]), np.array([[1.0]])
    >>> response = state_space_response(A, B, C, None, np.ones((3, 1)))
    >>> response.y.tolist(), response.x_end.tolist()
    ([[0.0], [2.0], [3.0]], [3.5])
    """
    return _response(_checked({"A": A, "B": B, "C": C, "D": D, "u": u, "x0": x0}), method, form)


def _response(operands: Operands, method: str, form: str) -> Response:
    if method not in _METHODS:
        raise invalid("method", f"one of {', '.join(map(repr, _METHODS))}", repr(method))
    if form not in FORMS:
        raise invalid("form", f"one of {', '.join(map(repr, FORMS))}", repr(form))
    is_native = method in ("auto", "native") and is_available(operands.u) and not _is_empty(operands)
    if method == "native" and not is_native:
        fix = (
            "Reinstall schurfire with a C++ compiler, or use method='auto'; it runs on CPUs, not with TensorFlow, "
            "and needs at least one state, input, output, sequence and model."
        )
        raise invalid("method", "one that is available here", "'native'", fix)
    if is_native:
        return Response(*native_response(operands, form))
    merged, leading = joined_axes(operands)
    y, x_end = respond(merged, form, method)
    return Response(axes_restored(y, leading, 2), axes_restored(x_end, leading, 1))


def _is_empty(operands: Operands) -> bool:
    """Whether any size but the number of steps is zero."""
    A, _, C, _, u, _ = operands
    sizes = (*A.shape, *u.shape[:-2], u.shape[-1], *(() if C is None else C.shape))
    return 0 in sizes


def _checked(arrays: dict[str, Any]) -> Operands:
    """The arguments as arrays of one library and one precision whose own axes fit together."""
    given = {name: _real(x, name) for name, x in arrays.items() if x is not None}
    xp = namespace(*(x for x, _ in given.values()))
    if xp is NUMPY:
        operands = {name: x for name, (x, _) in given.items()}
    else:
        operands = {name: xp.convert_to_tensor(x, dtype=dtype) for name, (x, dtype) in given.items()}
    full = Operands(*map(operands.get, arrays))
    _check_sizes(shapes_of(full), tuple(arrays))
    if len({dtype for _, dtype in given.values()}) > 1:
        found = ", ".join(f"{name} {dtype}" for name, (_, dtype) in given.items())
        raise invalid("the arrays", "of one data type", found, "Cast them to one.")
    return full


def _real(x: Any, name: str) -> tuple[Array, str]:
    """The array and its data type; only what is no array of real numbers is looked at, so NaN and infinity may pass."""
    dtype = dtype_name(x) if hasattr(x, "dtype") and not isinstance(x, np.ma.MaskedArray) else None
    if dtype in ("float32", "float64"):
        return x, dtype
    x = real_array(x, name)
    return x, dtype_name(x)


@functools.lru_cache(maxsize=1024)
def _check_sizes(shapes: Shapes, names: tuple[str, ...]) -> None:
    """Cached, because what has passed once is called again and again: this takes longer than a small response."""
    for name, shape in zip(names, shapes, strict=True):
        own, axes = (
            (1, "(..., n)") if name == "x0" else (2, "(..., N, n_u)" if name in "ub" else "(..., rows, columns)")
        )
        if shape is not None and len(shape) < own:
            raise invalid(name, f"of shape {axes}", f"shape {shape}")
    A, B, C, D, u, x0 = shapes
    n, n_u, input_name = A[-1], u[-1], names[4]
    if A[-2] != n:
        raise invalid("A", "square, of shape (..., n, n)", f"shape {A}")
    if B is None and n_u != n:
        raise invalid(input_name, f"of shape (..., N, {n})", f"shape {u}", f"A is of order {n}.")
    if C is None and D is not None:
        raise invalid("D", "None where C is None", f"shape {D}", "Give C = I to add D u to the states.")
    n_y = None if C is None else C[-2]
    wanted = {"B": (B, (n, n_u)), "C": (C, (n_y, n)), "D": (D, (n_y, n_u)), "x0": (x0, (n,))}
    for name, (shape, own) in wanted.items():
        if shape is not None and shape[-len(own) :] != own:
            axes = ", ".join(map(str, own))
            fix = f"A is {A}, {input_name} is {u}."
            raise invalid(name, f"of shape (..., {axes})", f"shape {shape}", fix)
