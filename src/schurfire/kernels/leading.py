"""Leading axes of a response: any that broadcast, made into one of models and one of sequences.

The axes along which a matrix varies, and all before them, become the models; those behind, the sequences that a model
runs on. Sizes may be unknown while TensorFlow traces a function: they are None in a shape, and tensors in its place
where numbers are needed.
"""

import functools
import math
from typing import Any, NamedTuple

from schurfire.errors import invalid
from schurfire.kernels.layouts import Operands
from schurfire.namespaces import Array, namespace

_MATRICES = ("A", "B", "C", "D")
_OWN_AXES = {**dict.fromkeys(_MATRICES, 2), "u": 2, "x0": 1}

Shape = tuple[Any, ...]
Shapes = tuple[Any, ...]  # those of ``Operands`` in their order, None for what is None


class Way(NamedTuple):
    """How an array comes into its shape: reshaped and broadcast where it has to be, and reshaped."""

    padded: Shape
    broadcast: Shape | None
    joined: Shape


class Joining(NamedTuple):
    """The leading axes of the results, the models and the sequences they are, and the way of each operand."""

    leading: Shape
    models: Any
    sequences: Any
    ways: tuple[Way | None, ...]


def joined_axes(operands: Operands) -> tuple[Operands, tuple]:
    """The operands in the shapes that ``Operands`` describes, and the leading axes that the results shall have.

    Where x0 is None it becomes zero.

    Raises:
        InvalidInputError: the leading axes do not broadcast.
    """
    joining = joining_of(operands)
    full = joined(operands, joining)
    if full.x0 is None:
        shape = (joining.models, joining.sequences, operands.A.shape[-1])
        full = full._replace(x0=namespace(full.u).zeros(shape, dtype=operands.A.dtype))
    return full, joining.leading


def joining_of(operands: Operands) -> Joining:
    """How the leading axes are joined.

    Raises:
        InvalidInputError: they do not broadcast.
    """
    shapes = shapes_of(operands)
    if any(None in shape for shape in shapes if shape is not None):
        xp = namespace(operands.u)
        return _joining(shapes, tuple(None if x is None else tuple(xp.shape(x)) for x in operands))
    return joining_of_shapes(shapes)


def joined(operands: Operands, joining: Joining) -> Operands:
    """The operands in their shapes; what is None stays None."""
    xp = namespace(operands.u)
    return Operands(*(x if way is None else _moved(xp, x, way) for x, way in zip(operands, joining.ways, strict=True)))


def axes_restored(x: Array, leading: tuple, own_axes: int) -> Array:
    """A result (R, S, ...) with the leading axes that the operands had together."""
    xp = namespace(x)
    return xp.reshape(x, (*leading, *tuple(xp.shape(x))[len(x.shape) - own_axes :]))


def shapes_of(operands: Operands) -> Shapes:
    """The shapes as tuples."""
    return tuple(None if x is None else tuple(x.shape) for x in operands)


def _moved(xp: Any, x: Array, way: Way) -> Array:
    if way.broadcast is not None:
        x = xp.broadcast_to(xp.reshape(x, way.padded), way.broadcast)
    return xp.reshape(x, way.joined)


@functools.lru_cache(maxsize=1024)
def joining_of_shapes(shapes: Shapes) -> Joining:
    """``joining_of`` operands of these shapes, all of whose sizes are known."""
    return _joining(shapes, shapes)


def _joining(shapes: Shapes, dynamic_shapes: Shapes) -> Joining:
    """The joining for shapes in which a size may be None, and the same shapes with a tensor in its place."""
    given = {name: shape for name, shape in zip(Operands._fields, shapes, strict=True) if shape is not None}
    rank = max(len(shape) - _OWN_AXES[name] for name, shape in given.items())
    leading = {name: _padded(shape, rank, _OWN_AXES[name]) for name, shape in given.items()}
    of_matrices = [_common_size(leading, axis, _MATRICES) for axis in range(rank)]
    varying = [axis for axis, size in enumerate(of_matrices) if size != 1]
    split = varying[-1] + 1 if varying else 0

    sizes: list[Any] = [_common_size(leading, axis, Operands._fields) for axis in range(rank)]
    dynamic = dict(zip(Operands._fields, dynamic_shapes, strict=True))
    known = _known_sizes({name: dynamic[name] for name in given}, rank, sizes)

    def way(name: str) -> Way | None:
        if name not in given:
            return None
        shape = dynamic[name]
        own = shape[len(shape) - _OWN_AXES[name] :]
        is_shared = name == "u" and all(size == 1 for size in leading[name][:split])
        static, now = (
            [1 if is_shared else size for size in both[:split]] + [1 if name in _MATRICES else s for s in both[split:]]
            for both in (sizes, known)
        )
        models, sequences = math.prod(now[:split]), math.prod(now[split:])
        return Way(
            (*(1,) * (rank + len(own) - len(shape)), *shape),
            None if list(leading[name]) == static else (*now, *own),
            (models, *own) if name in _MATRICES else (models, sequences, *own),
        )

    ways = tuple(way(name) for name in Operands._fields)
    return Joining(tuple(known), math.prod(known[:split]), math.prod(known[split:]), ways)


def _padded(shape: Shape, rank: int, own_axes: int) -> Shape:
    axes = shape[: len(shape) - own_axes]
    return (1,) * (rank - len(axes)) + axes


def _common_size(leading: dict[str, Shape], axis: int, names: tuple[str, ...]) -> int | None:
    sizes = {leading[name][axis] for name in names if name in leading} - {1}
    if len(sizes - {None}) > 1:
        shapes = ", ".join(f"{name} {axes}" for name, axes in leading.items())
        raise invalid("the leading axes", "such that they broadcast", shapes, "Give each the same size, or 1.")
    return next(iter(sizes - {None}), None) if sizes else 1


def _known_sizes(dynamic: dict[str, Any], rank: int, sizes: list) -> list:
    """The sizes, with a tensor in place of each that is unknown."""
    known = list(sizes)
    for name, shape in dynamic.items():
        for axis, size in enumerate(_padded(shape, rank, _OWN_AXES[name])):
            if known[axis] is None and not isinstance(size, int):
                known[axis] = size
    return known
