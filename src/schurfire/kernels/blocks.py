"""The nearest stable 1x1 and real 2x2 block.

A 2x2 block is written with its mean diagonal ``e``, its antisymmetric part ``h`` and the length ``w`` of its
traceless symmetric part ``(f, g)``:

    X = [[e + f, g - h], [g + h, e - f]],   det X = e^2 + h^2 - w^2,   ||X||_F^2 = 2 (e^2 + h^2 + w^2).

A rotation turns ``(f, g)`` and leaves ``e, h, w`` alone, so the nearest stable block keeps the direction of
``(f, g)`` and the problem is to project a point of three coordinates. Transposing and negating X flip the signs of
``h`` and ``e``, so all three may be taken non-negative. With ``s = w + h``, ``t = w - h`` and ``p = s t`` the closed
unit disc is then the set where

    e^2 - p <= 1   (the determinant)    and    p <= (1 - e)^2   (no real eigenvalue beyond 1),

and the nearest point is one of five: X itself, the nearest point of either surface, of the line where they meet
(e = 1, t = 0), and of the ridge where the second surface meets its mirror image (e = 0, p = 1). These are the fifteen
candidates of Noferini and Poloni (SIMAX 42, 2021, section 5) without those that lose in every case;
``docs/design/nearest-block.md`` has the proof.
"""

import math
from typing import Any

import numpy as np

from schurfire.arrays import real_array
from schurfire.errors import invalid
from schurfire.exact import real_limits
from schurfire.kernels.inward import (
    Entries,
    Invariants,
    divide,
    entries_of,
    frame_of,
    inside,
    round_inward,
    shape_of,
)
from schurfire.namespaces import Array, apply, dtype_name, kernel, namespace
from schurfire.regions import UNIT_DISC, HalfPlane, Region, check_region

_NEWTON_STEPS = 24  # 20 reach rounding error away from the triple root at (m, w) = (2, 0), where the distance is flat
_CHUNK = 8192  # blocks that NumPy treats at a time, so that intermediate results stay in the cache


def nearest_stable_block(blocks: Array, region: Region = UNIT_DISC, *, inward: bool = True) -> Array:
    """The nearest stable block: ``argmin ||X - blocks||_F`` over X with all eigenvalues in the closed region.

    With ``inward=True`` the numbers returned lie strictly inside the open region in exact arithmetic, further away than
    the optimum by about 100 units in the last place of the block's norm N (or of the radius, if that is larger); where
    N is large beside the distance d, by up to about ``8 eps N^2 / d``.
    Blocks that are strictly inside come back bit-identical; a tensor's blocks do if floating-point arithmetic can tell
    that they are inside, which it cannot within some ten units in the last place of the boundary. ``inward=False``
    returns the closed-set minimiser, rounded. Inside ``jit`` blocks with NaN or infinity become NaN.

    Args:
        blocks: shape (..., 1, 1) or (..., 2, 2), float32 or float64; a NumPy array, or a tensor of the active Keras
            backend inside or outside of ``jit``.
        region: where the eigenvalues may live.
        inward: whether the result must lie strictly inside.

    Raises:
        InvalidInputError: another shape or dtype, values that are not finite, or a region too small to hold a number
            of the blocks' precision.

    >>> import numpy as np
    >>> nearest_stable_block(np.array([[1.2, 4.0], [0.0, 1.2]]), inward=False)
    array([[1., 4.],
           [0., 1.]])
    """
    blocks = real_array(blocks, "blocks")
    region = check_region(region)
    if not isinstance(inward, bool):
        raise invalid("inward", "True or False", repr(inward))
    shape = tuple(blocks.shape)
    if len(shape) < 2 or shape[-2:] not in ((1, 1), (2, 2)):
        raise invalid("blocks", "of shape (..., 1, 1) or (..., 2, 2)", f"shape {shape}")
    if 0 in shape[:-2]:
        raise invalid("blocks", "a stack of at least one block", f"shape {shape}", "Leave out empty stacks.")
    project = nearest_1x1 if shape[-1] == 1 else nearest_2x2
    if not isinstance(blocks, np.ndarray):
        return apply(project, blocks, region, inward)
    flat = blocks.reshape(-1, *shape[-2:])
    chunks = (flat[i : i + _CHUNK] for i in range(0, len(flat), _CHUNK))
    return np.concatenate([project(chunk, region, inward) for chunk in chunks]).reshape(shape)


@kernel
def nearest_1x1(blocks: Array, region: Region, inward: bool) -> Array:
    """The nearest number in the region's real section, entry by entry."""
    xp = namespace(blocks)
    lowest, highest = real_limits(region, dtype_name(blocks), closed=not inward)
    return xp.where(xp.isfinite(blocks), xp.minimum(xp.maximum(blocks, lowest), highest), math.nan * blocks)


@kernel
def nearest_2x2(blocks: Array, region: Region, inward: bool) -> Array:
    """The nearest stable real 2x2 block, for shape (..., 2, 2)."""
    xp = namespace(blocks)
    block = Entries(blocks[..., 0, 0], blocks[..., 0, 1], blocks[..., 1, 0], blocks[..., 1, 1])
    nearest = nearest_entries(block, region, inward, xp.ones_like(block.a, dtype="bool"))
    return xp.reshape(xp.stack(nearest, axis=-1), blocks.shape)


@kernel
def nearest_entries(block: Entries, region: Region, inward: bool, wanted: Array) -> Entries:
    """The entries of the nearest stable 2x2 blocks; those of blocks that are not ``wanted`` come back as they are."""
    xp = namespace(block.a)
    frame = frame_of(region, block.a)
    block = Entries(*xp.settle(tuple(block)))
    nearest = nearest_in_half_plane if isinstance(region, HalfPlane) else nearest_in_disc
    settled = inside(block, region) | ~wanted

    def move() -> Entries:
        shape = shape_of(block, frame)
        point, is_stable = nearest(xp, shape.invariants)
        if inward:
            stays, moved = settled, round_inward(block, shape, point, frame)
        else:
            stays, moved = is_stable | ~wanted, entries_of(shape, point, frame)
        finite = xp.isfinite(block.a) & xp.isfinite(block.b) & xp.isfinite(block.c) & xp.isfinite(block.d)
        moved = (xp.where(finite, new, math.nan * new) for new in moved)
        return Entries(*(xp.where(stays, old, new) for old, new in zip(block, moved, strict=True)))

    # In training nearly every call ends here. XLA also gains a place where it must stop fusing: without the two
    # conds it computes shared intermediate results anew for every entry, at 30 times the cost.
    return Entries(*xp.cond(xp.all(settled), lambda: block, move))


def nearest_in_disc(xp: Any, point: Invariants) -> tuple[Invariants, Array]:
    """The nearest point with e^2 - p <= 1 and p <= (1 - e)^2, and whether ``point`` is such a point."""
    e, s, p = point
    t = divide(xp, p, s)
    w, h = (s + t) / 2, (s - t) / 2
    large_determinant, large_trace = (e - 1) * (e + 1) > p, p > (1 - e) * (1 - e)
    is_stable = ~large_determinant & ~large_trace & (e <= 1)

    # Where the determinant is at fault, (hypot(e, h), w) goes to the hyperbola x^2 - y^2 = 1 and (e, h) keeps its
    # direction; on the ridge it is (w, h) that does. No block needs both.
    m = xp.hypot(e, h)
    z = _nearest_on_hyperbola(xp, xp.where(large_determinant, m, w), xp.where(large_determinant, w, h))
    q = xp.sqrt(1 + z * z)
    shrink = divide(xp, q, m)
    # On C0, p = e^2 - 1 = (z - turned)(z + turned); the rounding errors are u and u (z + turned)^2.
    turned = h * shrink
    onto = z + turned
    onto_p = xp.where(onto < 1, (z - turned) * onto, (e * shrink - 1) * (e * shrink + 1))
    on_determinant = Invariants(e * shrink, onto, onto_p)
    on_ridge = Invariants(xp.zeros_like(e), q + z, xp.ones_like(e))

    on_cone = _nearest_on_cone(xp, 1 - e, s, p, w, h)
    on_trace = Invariants(1 - on_cone.e, on_cone.s, on_cone.p)
    on_line = Invariants(xp.ones_like(e), s, xp.zeros_like(e))

    best = on_line
    for candidate, feasible in (
        (on_determinant, large_determinant & (on_determinant.p <= 0)),  # e <= 1, without rounding
        (on_trace, large_trace & (e <= 1) & (on_trace.e >= 0)),
        (on_ridge, ~large_determinant),
        (point, is_stable),
    ):
        best = _nearer(xp, point, t, candidate, feasible, best)
    return best, is_stable


def nearest_in_half_plane(xp: Any, point: Invariants) -> tuple[Invariants, Array]:
    """The nearest point with e <= 0 and p <= e^2, and whether ``point`` is such a point."""
    e, s, p = point
    t = divide(xp, p, s)
    is_stable = (e <= 0) & (p <= e * e)
    on_determinant = _nearest_on_cone(xp, e, s, p, (s + t) / 2, (s - t) / 2)
    zero = xp.zeros_like(e)
    best = Invariants(zero, s, zero)
    for candidate, feasible in (
        (Invariants(zero, s, p), p <= 0),
        (on_determinant, (e <= 0) & (p > e * e)),
        (point, is_stable),
    ):
        best = _nearer(xp, point, t, candidate, feasible, best)
    return best, is_stable


def _nearest_on_hyperbola(xp: Any, x: Array, y: Array) -> Array:
    """The ordinate z of the point of x^2 - y^2 = 1 nearest to (x, y), a point with x^2 - y^2 > 1, x > 0, y >= 0.

    It is the largest root of 2 z - y - x z / sqrt(1 + z^2), which is convex for z >= 0 and positive at (x + y) / 2,
    so Newton's method comes down to it without a safeguard. (The quartic of the paper's appendix A is the same
    equation in exp(arsinh z).)
    """

    def newton(_: int, z: Array) -> Array:
        q = xp.sqrt(1 + z * z)
        slope = 2 - x / q / (q * q)
        step = (2 * z - y - x * (z / q)) / slope
        return xp.where(slope > 0, xp.maximum(z - step, 0), z)

    return xp.fori_loop(0, _NEWTON_STEPS, newton, (x + y) / 2)


def _nearest_on_cone(xp: Any, e: Array, s: Array, p: Array, w: Array, h: Array) -> Invariants:
    """The nearest point of the cone p = e^2, that is w = hypot(e, h), to a point with p > e^2."""
    radius = xp.hypot(e, h)
    excess = divide(xp, p - e * e, 2 * (w + radius))  # (w - radius) / 2 without cancellation
    growth = divide(xp, excess, radius)
    e = e + e * growth
    return Invariants(e, s - excess + h * growth, e * e)


def _nearer(xp: Any, point: Invariants, t: Array, new: Invariants, feasible: Array, best: Invariants) -> Invariants:
    def distance(x: Invariants) -> Array:
        return 2 * (x.e - point.e) ** 2 + (x.s - point.s) ** 2 + (divide(xp, x.p, x.s) - t) ** 2

    takes = feasible & (distance(new) <= distance(best))
    return Invariants(*(xp.where(takes, x, y) for x, y in zip(new, best, strict=True)))
