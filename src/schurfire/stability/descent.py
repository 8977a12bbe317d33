"""The outer search of the nearest stable matrix: L-BFGS over the orthogonal matrices, compiled with a dynamic stop.

For an orthogonal Z let ``T = Z^T A Z`` and ``R = T - P(T)``, with P the projection onto the stable matrices that are
zero below a fixed grid of 2x2 diagonal blocks (and one 1x1 block if n is odd). The nearest stable matrix minimises

    f(Z) = 1/2 ||R||_F^2    (Noferini and Poloni, SIMAX 42, 2021).

P(T) is nearest to T, so by the envelope theorem ``df = <R, dT>``; its own derivative is not needed. Along
``Z exp(t W)``, W skew-symmetric, ``dT = T W - W T``. Hence the gradient among the skew-symmetric matrices is

    G = skew(T^T R - R T^T),    skew(M) = (M - M^T) / 2.

Steps and gradients at different Z are all skew-symmetric matrices, so L-BFGS needs no vector transport.

This module imports JAX and is itself imported on first use only.
"""

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from schurfire.kernels.blocks import _nearest_in_disc, _nearest_in_half_plane
from schurfire.kernels.inward import Invariants, divide

# On normal and uniform random matrices of order 10 to 50, memories of 10, 20 and 40 reach the same minima in iterations
# 1.3 : 1 : 0.7; 20 is the fastest from n = 50 on. Steps limited to 0.5, 1 or 2 rad end equally well.
_MEMORY = 20
_LONGEST_STEP = 1.0
_FIRST_STEP = 0.1
_SUFFICIENT_DECREASE = 1e-4
_BACKTRACKING = 0.4
_SHORTEST_STEP = 1e-10  # in multiples of the quasi-Newton step; rounding errors hide any smaller decrease
_CURVATURE = 1e-10  # smallest cosine between step and change of gradient that enters the memory


class Minima(NamedTuple):
    """Where the searches ended.

    Attributes:
        Z: orthogonal to about 1e-8, shape (lanes, n, n).
        f: objective, shape (lanes,).
        iterations: evaluations of the objective, shape (lanes,).
        converged: whether the gradient fell below its tolerance, shape (lanes,).
    """

    Z: np.ndarray
    f: np.ndarray
    iterations: np.ndarray
    converged: np.ndarray


def descend(A: np.ndarray, Z: np.ndarray, disc: bool, max_iterations: int, tolerance: float) -> Minima:
    """Local minima of f, one per lane, found from the given starts.

    A lane has converged where ``||G||_F <= tolerance ||A||_F^2``. Lanes do not influence each other.

    Args:
        A: float64, shape (lanes, n, n), in coordinates in which the region is the unit disc or the left half-plane.
        Z: orthogonal start values, same shape.
        disc: whether the region is the disc.
        max_iterations: evaluations of the objective per lane.
        tolerance: see above.

    Cost: 9 matrix products and ``80 n^2`` operations per lane and iteration.
    """
    with jax.enable_x64(True), jax.default_device(_processor()):
        minima = _compiled(*A.shape[:2], disc)(A, Z, np.int64(max_iterations), np.float64(tolerance))
        return Minima(*(np.asarray(x) for x in minima))


# --- compilation ------------------------------------------------------------------------------------------------------


def _processor() -> Any:
    """The CPU where JAX has it: an accelerator would spend the thousands of small steps on launching kernels."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return jax.local_devices()[0]


@functools.lru_cache(maxsize=64)
def _compiled(lanes: int, n: int, disc: bool) -> Callable:
    matrices = jax.ShapeDtypeStruct((lanes, n, n), np.float64)
    limits = jax.ShapeDtypeStruct((), np.int64), jax.ShapeDtypeStruct((), np.float64)
    lowered = jax.jit(functools.partial(_search, disc)).lower(matrices, matrices, *limits)
    with _compilation_cache():
        return lowered.compile()


_cache_lock = threading.Lock()


@contextlib.contextmanager
def _compilation_cache() -> Iterator[None]:
    """Lets JAX keep on disk what is compiled inside: in the user's directory if one is set, else in schurfire's.

    JAX reads these options when it compiles and has no scoped form of them, so they are set and put back. JAX's own
    switch ``JAX_ENABLE_COMPILATION_CACHE=false`` turns this cache off as well.
    """
    own = None if jax.config.jax_compilation_cache_dir else _cache_directory()
    options: dict[str, Any] = {"jax_persistent_cache_min_compile_time_secs": 0.0}
    if own is not None:
        options["jax_compilation_cache_dir"] = str(own)
    with _cache_lock:
        before = {name: getattr(jax.config, name) for name in options}
        try:
            for name, value in options.items():
                jax.config.update(name, value)
            yield
        finally:
            for name, value in before.items():
                jax.config.update(name, value)
            if own is not None:
                reset_cache()  # JAX opens its cache once per process and would keep using this directory


def _cache_directory() -> Path | None:
    """Where the operating system wants caches; None if that place cannot be written."""
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        root = "~/Library/Caches"
    else:
        root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        directory = Path(root or "~").expanduser() / "schurfire" / "jax"
        directory.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return directory if os.access(directory, os.W_OK) else None


# --- the search -------------------------------------------------------------------------------------------------------


class _Memory(NamedTuple):
    """The last steps S and changes of the gradient Y, in a ring: slot k holds iteration k modulo the length.

    ``weight`` is 1 / <S, Y>, or 0 for a slot that holds nothing of use. ``scale`` is that of the initial inverse Hessian.
    """

    S: Any
    Y: Any
    weight: Any
    scale: Any


class _State(NamedTuple):
    k: Any
    Z: Any
    f: Any
    G: Any
    direction: Any
    length: Any
    memory: _Memory
    iterations: Any
    done: Any


def _search(disc: bool, A: Any, Z: Any, max_iterations: Any, tolerance: Any) -> tuple:
    """Each pass of the loop tries one step, so that there is one place that evaluates the objective.

    A step that does not decrease f enough is taken back. What it says about the curvature is kept all the same, and
    the next attempt is shorter. The first pass tries the start value itself.
    """
    enough = tolerance * _inner(A, A)

    def unfinished(state: _State) -> Any:
        return (state.k < max_iterations) & ~jnp.all(state.done)

    def advance(state: _State) -> _State:
        step = _column(state.length) * state.direction
        Z, f, G = _retract(state.Z, step), *_objective(A, _retract(state.Z, step), disc)
        return state

    return jax.lax.while_loop(unfinished, advance, A)
