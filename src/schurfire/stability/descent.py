"""The outer search for the nearest stable matrix: L-BFGS over the orthogonal matrices, compiled, with a dynamic stop.

For orthogonal Z let ``T = Z^T A Z`` and ``R = T - P(T)``, where P projects onto the stable matrices that are zero below
a fixed grid of 2x2 diagonal blocks (and a last 1x1 block if n is odd). The nearest stable matrix minimises

    f(Z) = 1/2 ||R||_F^2    (Noferini and Poloni, SIMAX 42, 2021).

P(T) is nearest to T, so by the envelope theorem ``df = <R, dT>``: the derivative of P is not needed. Along
``Z exp(t W)`` with W skew-symmetric ``dT = T W - W T``, so the gradient among the skew-symmetric matrices is

    G = skew(T^T R - R T^T),    skew(M) = (M - M^T) / 2.

Steps and gradients at different Z are all plain skew-symmetric matrices, so L-BFGS needs no vector transport.

Imports JAX; import it lazily.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from schurfire.kernels.blocks import nearest_in_disc, nearest_in_half_plane
from schurfire.kernels.inward import Invariants, divide
from schurfire.stability.compilation import compile_once

# Measured on normal and uniform matrices of order 10, 20 and 50: memories of 10, 20 and 40 end at the same objectives
# (within 2 % on average), as do steps of at most 0.5, 1 and 2 rad; 20 takes the least time at order 50.
_MEMORY = 20
_LONGEST_STEP = 1.0  # Frobenius norm, so that no plane turns by more than 0.71 rad
_FIRST_STEP = 0.1
_SUFFICIENT_DECREASE = 1e-4
_ROUNDING = 1e-15  # relative; near a minimum the decrease is below the rounding error of f long before G is small
_BACKTRACKING = 0.4
_SHORTEST_STEP = 1e-10  # relative to the quasi-Newton step: the decrease would drown in rounding errors
_LEAST_COSINE = 1e-10  # between a step and the change of the gradient, for the pair to enter the memory


class Minima(NamedTuple):
    """Where the searches ended, one per lane.

    Attributes:
        Z: shape (lanes, n, n), orthogonal up to what the last step's retraction left (see ``_retract``).
        f: the objective, shape (lanes,).
        iterations: evaluations of the objective, shape (lanes,).
        converged: whether the gradient is below the tolerance, shape (lanes,).
    """

    Z: np.ndarray
    f: np.ndarray
    iterations: np.ndarray
    converged: np.ndarray


def descend(A: np.ndarray, Z: np.ndarray, disc: bool, max_iterations: int, tolerance: float) -> Minima:
    """Local minima of f, one per lane, until ``||G||_F <= tolerance ||A||_F^2``.

    Args:
        A: float64, shape (lanes, n, n), n >= 2, in coordinates where the region is the unit disc or Re < 0.
        Z: orthogonal start values, same shape. Lanes do not influence each other.
        disc: whether the region is the disc.
        max_iterations: evaluations of the objective per lane.
        tolerance: see above.

    Cost: 9 matrix products and about ``200 n^2`` operations per lane and iteration.
    """
    with jax.enable_x64(True), jax.default_device(_processor()):
        search = _compiled(*A.shape[:2], disc)
        return Minima(*map(np.asarray, search(A, Z, np.int64(max_iterations), np.float64(tolerance))))


def _processor() -> Any:
    """The CPU if JAX has it: an accelerator would spend these thousands of small steps on launching kernels."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return jax.local_devices()[0]


@functools.lru_cache(maxsize=64)
def _compiled(lanes: int, n: int, disc: bool) -> Callable:
    matrices = jax.ShapeDtypeStruct((lanes, n, n), np.float64)
    limit, tolerance = jax.ShapeDtypeStruct((), np.int64), jax.ShapeDtypeStruct((), np.float64)
    return compile_once(functools.partial(_search, disc), matrices, matrices, limit, tolerance)


# --- the search -------------------------------------------------------------------------------------------------------


class _Memory(NamedTuple):
    """The last steps S and changes Y of the gradient, a ring with the lanes on the second axis.

    ``weight`` is ``1 / <S, Y>``, and 0 for a slot without use; ``scale`` times the identity is the initial inverse
    Hessian.
    """

    S: Any
    Y: Any
    weight: Any
    scale: Any


class _State(NamedTuple):
    """``length`` is the fraction of the direction D that the next pass tries; ``iterations`` counts per lane."""

    k: Any
    Z: Any
    f: Any
    G: Any
    D: Any
    length: Any
    memory: _Memory
    iterations: Any
    done: Any


def _search(disc: bool, A: Any, start: Any, max_iterations: Any, tolerance: Any) -> Minima:
    """Each pass of the loop tries one step. The first pass tries a step of length 0, which evaluates the start.

    A step without sufficient decrease is taken back and the next one is shorter, but what it says about the curvature
    is kept: the next direction is better informed.
    """
    enough = tolerance * _inner(A, A)

    def unfinished(state: _State) -> Any:
        return (state.k < max_iterations) & ~jnp.all(state.done)

    def advance(state: _State) -> _State:
        step = _wide(state.length) * state.D
        Z = _retract(state.Z, step)
        f, G = _objective(disc, A, Z)
        ceiling = state.f * (1 + _ROUNDING) + _SUFFICIENT_DECREASE * _inner(state.G, step)
        accepted = (f <= ceiling) & ~state.done
        memory = _remember(state.memory, state.k, step, G - state.G)
        Z, G = (jnp.where(_wide(accepted), new, old) for new, old in ((Z, state.Z), (G, state.G)))
        gradient = _norm(G)
        memory = memory._replace(scale=jnp.where(state.k == 0, _FIRST_STEP / gradient, memory.scale))
        D = -_inverse_hessian_times(G, memory, state.k)
        length = jnp.where(accepted, 1.0, _BACKTRACKING * state.length)
        return _State(
            k=state.k + 1,
            Z=Z,
            f=jnp.where(accepted, f, state.f),
            G=G,
            D=D * _wide(jnp.minimum(1.0, _LONGEST_STEP / _norm(D))),
            length=length,
            memory=memory,
            iterations=state.iterations + ~state.done,
            done=state.done | (gradient <= enough) | (length < _SHORTEST_STEP),
        )

    end = jax.lax.while_loop(unfinished, advance, _before_the_start(start))
    return Minima(end.Z, end.f, end.iterations, _norm(end.G) <= enough)


def _before_the_start(Z: Any) -> _State:
    lanes = Z.shape[0]
    zeros, ring = jnp.zeros_like(Z), jnp.zeros((_MEMORY, *Z.shape))
    return _State(
        k=jnp.zeros((), int),
        Z=Z,
        f=jnp.full(lanes, jnp.inf),
        G=zeros,
        D=zeros,
        length=jnp.ones(lanes),
        memory=_Memory(ring, ring, jnp.zeros((_MEMORY, lanes)), jnp.zeros(lanes)),
        iterations=jnp.zeros(lanes, int),
        done=jnp.zeros(lanes, bool),
    )


def _remember(memory: _Memory, k: Any, step: Any, change: Any) -> _Memory:
    slope, size = _inner(step, change), _norm(change)
    useful = slope > _LEAST_COSINE * _norm(step) * size
    slot = k % _MEMORY
    return _Memory(
        S=memory.S.at[slot].set(step),
        Y=memory.Y.at[slot].set(change),
        weight=memory.weight.at[slot].set(jnp.where(useful, 1 / slope, 0.0)),
        scale=jnp.where(useful, slope / size**2, memory.scale),
    )


def _inverse_hessian_times(G: Any, memory: _Memory, k: Any) -> Any:
    """The two-loop recursion of L-BFGS, from the newest slot ``k % _MEMORY`` to the oldest and back."""
    S, Y, weight, scale = memory

    def newest_first(i: Any, carry: tuple) -> tuple:
        Q, shares = carry
        slot = (k - i) % _MEMORY
        share = weight[slot] * _inner(S[slot], Q)
        return Q - _wide(share) * Y[slot], shares.at[slot].set(share)

    def oldest_first(i: Any, Q: Any) -> Any:
        slot = (k + 1 + i) % _MEMORY
        return Q + _wide(shares[slot] - weight[slot] * _inner(Y[slot], Q)) * S[slot]

    Q, shares = jax.lax.fori_loop(0, _MEMORY, newest_first, (G, jnp.zeros_like(weight)))
    return jax.lax.fori_loop(0, _MEMORY, oldest_first, _wide(scale) * Q)


def _retract(Z: Any, W: Any) -> Any:
    """``Z exp(W)`` to second order, made orthogonal by one Newton-Schulz step.

    ``Y = Z (I + W + W^2/2)`` has ``Y^T Y = I + W^4/4``, and one step leaves 5/8 of the cube of that deviation: 2e-4 for
    the longest step, below rounding for ``||W|| < 1e-3``. The deviation does not add up: the next step removes it.
    """
    V = Z @ W
    Y = Z + V + V @ W / 2
    gram = _transposed(Y) @ Y
    return Y @ (15 * jnp.eye(Z.shape[-1]) - 10 * gram + 3 * gram @ gram) / 8


# --- the objective ----------------------------------------------------------------------------------------------------


def _objective(disc: bool, A: Any, Z: Any) -> tuple[Any, Any]:
    """f(Z) and its gradient G."""
    T = _transposed(Z) @ A @ Z
    R = _residual(disc, T)
    M = _transposed(T) @ R - R @ _transposed(T)
    return _inner(R, R) / 2, (M - _transposed(M)) / 2


def _residual(disc: bool, T: Any) -> Any:
    """``T - P(T)``: all of T below the grid of blocks, block minus nearest stable block on it, zero above."""
    n = T.shape[-1]
    block_of = np.arange(n) // 2
    R = jnp.where(block_of[:, None] > block_of, T, 0.0)
    i = np.arange(0, n - 1, 2)
    corners = ((i, i), (i, i + 1), (i + 1, i), (i + 1, i + 1))
    entries = [T[:, *corner] for corner in corners]
    for corner, entry, nearest in zip(corners, entries, _nearest_entries(disc, *entries), strict=True):
        R = R.at[:, *corner].set(entry - nearest)
    if n % 2:
        last = T[:, -1, -1]
        R = R.at[:, -1, -1].set(last - jnp.clip(last, -1.0 if disc else -jnp.inf, 1.0 if disc else 0.0))
    return R


class _JaxNamespace:
    """``jax.numpy`` under the names of ``keras.ops``: the search runs on JAX whichever backend Keras has."""

    fori_loop = staticmethod(jax.lax.fori_loop)

    def __getattr__(self, name: str) -> Any:
        return getattr(jnp, name)


_JAX = _JaxNamespace()


def _nearest_entries(disc: bool, a: Any, b: Any, c: Any, d: Any) -> list[Any]:
    """The entries of the blocks of the closed region nearest to [[a, b], [c, d]] (see ``kernels.blocks``)."""
    e, f, g, h = (a + d) / 2, (a - d) / 2, (b + c) / 2, (c - b) / 2
    w = jnp.hypot(f, g)
    sign = jnp.where(e < 0, -1.0, 1.0) if disc else 1.0
    nearest = nearest_in_disc if disc else nearest_in_half_plane
    point, is_stable = nearest(_JAX, Invariants(sign * e, w + jnp.abs(h), f * f + b * c))
    t = divide(_JAX, point.p, point.s)
    stretch = divide(_JAX, (point.s + t) / 2, w)
    e, f, g = sign * point.e, f * stretch, jnp.where(w > 0, g * stretch, (point.s + t) / 2)
    h = jnp.where(h < 0, -1.0, 1.0) * (point.s - t) / 2
    moved = (e + f, g - h, g + h, e - f)
    return [jnp.where(is_stable, old, new) for old, new in zip((a, b, c, d), moved, strict=True)]


# --- stacks of matrices -----------------------------------------------------------------------------------------------


def _transposed(X: Any) -> Any:
    return jnp.swapaxes(X, -1, -2)


def _inner(X: Any, Y: Any) -> Any:
    return jnp.sum(X * Y, axis=(-2, -1))


def _norm(X: Any) -> Any:
    return jnp.sqrt(_inner(X, X))


def _wide(x: Any) -> Any:
    """One number per lane, to be multiplied with one matrix per lane."""
    return x[:, None, None]
