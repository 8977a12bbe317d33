"""Leading axes of a response: any that broadcast, made into one of models and one of sequences.

The axes along which a matrix varies, and all before them, become the models; those behind, the sequences that a model
runs on. Sizes may be unknown while TensorFlow traces a function: they are None in a shape, and tensors in its place
where numbers are needed.
"""

import math
from typing import Any

from schurfire.errors import invalid
from schurfire.kernels.layouts import Operands
from schurfire.namespaces import Array, namespace

_MATRICES = ("A", "B", "C", "D")
_OWN_AXES = {**dict.fromkeys(_MATRICES, 2), "u": 2, "x0": 1}


def joined_axes(operands: Operands) -> tuple[Operands, tuple]:
    """The operands in the shapes that ``Operands`` describes, and the leading axes that the results shall have.

    Where x0 is None it becomes zero.

    Raises:
        InvalidInputError: the leading axes do not broadcast.
    """
    given = {name: x for name, x in operands._asdict().items() if x is not None}
    rank = max(len(x.shape) - _OWN_AXES[name] for name, x in given.items())
    leading = {name: _padded(x.shape, rank, _OWN_AXES[name]) for name, x in given.items()}
    of_matrices = [_common_size(leading, axis, _MATRICES) for axis in range(rank)]
    varying = [axis for axis, size in enumerate(of_matrices) if size != 1]
    split = varying[-1] + 1 if varying else 0

    sizes: list[Any] = [_common_size(leading, axis, Operands._fields) for axis in range(rank)]
    known: list[Any] = _dynamic_sizes(given, rank, sizes)

    def merged(name: str) -> Array | None:
        x = given.get(name)
        if x is None:
            return None
        xp, own = namespace(x), tuple(namespace(x).shape(x))[len(x.shape) - _OWN_AXES[name] :]
        is_shared = name == "u" and all(size == 1 for size in leading[name][:split])
        static, dynamic = (
            [1 if is_shared else size for size in both[:split]] + [1 if name in _MATRICES else s for s in both[split:]]
            for both in (sizes, known)
        )
        if list(leading[name]) != static:
            x = xp.reshape(x, (*(1,) * (rank + len(own) - len(x.shape)), *tuple(xp.shape(x))))
            x = xp.broadcast_to(x, (*dynamic, *own))
        models, sequences = math.prod(dynamic[:split]), math.prod(dynamic[split:])
        return xp.reshape(x, (models, *own) if name in _MATRICES else (models, sequences, *own))

    full = Operands(*(merged(name) for name in Operands._fields))
    if full.x0 is None:
        shape = (math.prod(known[:split]), math.prod(known[split:]), operands.A.shape[-1])
        full = full._replace(x0=namespace(full.u).zeros(shape, dtype=operands.A.dtype))
    return full, tuple(known)


def axes_restored(x: Array, leading: tuple, own_axes: int) -> Array:
    """A result (R, S, ...) with the leading axes that the operands had together."""
    xp = namespace(x)
    return xp.reshape(x, (*leading, *tuple(xp.shape(x))[len(x.shape) - own_axes :]))


def _padded(shape: Any, rank: int, own_axes: int) -> tuple:
    axes = tuple(shape)[: len(shape) - own_axes]
    return (1,) * (rank - len(axes)) + axes


def _common_size(leading: dict[str, tuple], axis: int, names: tuple[str, ...]) -> int | None:
    sizes = {leading[name][axis] for name in names if name in leading} - {1}
    if len(sizes - {None}) > 1:
        shapes = ", ".join(f"{name} {axes}" for name, axes in leading.items())
        raise invalid("the leading axes", "such that they broadcast", shapes, "Give each the same size, or 1.")
    return next(iter(sizes - {None}), None) if sizes else 1


def _dynamic_sizes(given: dict[str, Array], rank: int, sizes: list) -> list:
    """The sizes, with a tensor in place of each that is unknown."""
    known = list(sizes)
    for name, x in given.items():
        own = _OWN_AXES[name]
        for axis, size in enumerate(_padded(namespace(x).shape(x), rank, own)):
            if known[axis] is None and not isinstance(size, int):
                known[axis] = size
    return known
