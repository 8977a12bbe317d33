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

    sizes = [_common_size(leading, axis, Operands._fields) for axis in range(rank)]
    known = _dynamic_sizes(given, rank, sizes)
    R, S = math.prod(known[:split]), math.prod(known[split:])

    def merged(name: str) -> Array | None:
        x = given.get(name)
        if x is None:
            return None
        xp, own = namespace(x), _OWN_AXES[name]
        axes = leading[name]
        shape = tuple(xp.shape(x))[len(x.shape) - own :]
        is_shared = name == "u" and all(size == 1 for size in axes[:split])
        models = [1] * split if is_shared else known[:split]
        sequences = [1] * (rank - split) if name in _MATRICES else known[split:]
        if list(axes) != [*(1 if is_shared else size for size in sizes[:split]), *_static(sequences, sizes[split:])]:
            x = xp.reshape(x, (*(1,) * (rank + own - len(x.shape)), *tuple(xp.shape(x))))
            x = xp.broadcast_to(x, (*models, *sequences, *shape))
        own_leading = (math.prod(models),) if name in _MATRICES else (math.prod(models), S)
        return xp.reshape(x, (*own_leading, *shape))

    full = Operands(*(merged(name) for name in Operands._fields))
    if full.x0 is None:
        full = full._replace(x0=namespace(full.u).zeros((R, S, operands.A.shape[-1]), dtype=operands.A.dtype))
    return full, tuple(known)


def axes_restored(x: Array, leading: tuple, own_axes: int) -> Array:
    """A result (R, S, ...) with the leading axes that the operands had together."""
    xp = namespace(x)
    return xp.reshape(x, (*leading, *tuple(xp.shape(x))[len(x.shape) - own_axes :]))


def _padded(shape: Any, rank: int, own_axes: int) -> tuple:
    axes = tuple(shape)[: len(shape) - own_axes]
    return (1,) * (rank - len(axes)) + axes


def _static(sequences: list, sizes: list) -> list:
    """What a shape shows for sequence axes of these sizes."""
    return [1 if isinstance(size, int) and size == 1 else shown for size, shown in zip(sequences, sizes, strict=True)]


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
