"""How the arrays of a response lie in memory, and which pure method runs on them there.

``Rows``: matrices (R, 1, ., .), sequences (R or 1, S, N, .): everything is a matrix product, the home of the methods
that are parallel in time, and of every backend. ``Lanes``: matrices (., ., R, 1), sequences (N, ., R or 1, S): models
and sequences are contiguous, everything is multiply-and-add over small axes, the home of the step-by-step method
compiled by XLA.
"""

from typing import Any, NamedTuple

from schurfire.kernels.associative import states_by_doubling
from schurfire.kernels.blocked import states_by_blocks
from schurfire.kernels.forms import diagonal_pairs, pairs_joined, transposed, vector_pairs
from schurfire.kernels.sequential import states_by_steps, states_in_lanes
from schurfire.namespaces import Array, namespace


class Operands(NamedTuple):
    """The arrays of one response for R models and S sequences: A (R, n, n), B (R, n, m), C (R, p, n), D (R, p, m),
    u (R, S, N, m), or (1, S, N, m) where the models share it, and x0 (R, S, n). B, C, D may be None.
    """

    A: Array
    B: Array | None
    C: Array | None
    D: Array | None
    u: Array
    x0: Array


# Longest axis over which a product is written out as multiply-and-adds instead of one product a step. Microseconds of
# the two: n = 5 18 / 63, n = 10 41 / 93, n = 16 104 / 106, n = 28 227 / 177, and with 8 sequences 4800 / 1100.
_MOST_UNROLLED = 16
_PARALLEL = {"associative": states_by_doubling, "blocked": states_by_blocks}
METHODS = ("scan", *_PARALLEL)


def layout_of(operands: Operands, form: str, method: str) -> "Rows | Lanes":
    """The layout for one of the pure methods, or for the best of them if it is ``"auto"``."""
    xp = namespace(operands.A)
    method = _best(xp, operands) if method == "auto" else method
    n = 2 if form == "block-diagonal" else operands.A.shape[-1]
    axes = (n, operands.u.shape[-1], 0 if operands.C is None else operands.C.shape[-2])
    if method == "scan" and getattr(xp, "backend", "") == "jax" and n > 0 and max(axes) <= _MOST_UNROLLED:
        return Lanes(form)
    return Rows(form, method)


def _best(xp: Any, operands: Operands) -> str:
    # Microseconds per model for loss, gradient and a second forward pass (n = 5, 3 inputs, 3 outputs, 300 samples, one
    # core), with JAX 0.10.2 on a CPU, 1 / 50 models; float64 costs scan 1.0 to 1.2 times as much:
    #   scan 17 / 21, blocked 60 / 66, associative 109 / 115 (float32).
    # scan stays ahead for n = 28 (177, 280, 199) and n = 64 (177, 946, 349). On an accelerator each of its N steps
    # costs a kernel launch or more. On an H200, milliseconds for loss and gradient of 1 / 50 / 400 models:
    #   300 samples:  scan 3.4 / 3.5 / 3.7, blocked 0.13 / 0.15 / 0.24, associative 0.13 / 0.16 / 0.29
    #   4096 samples: scan 41 / 48 / 52,    blocked 0.15 / 0.28 / 0.92, associative 0.16 / 0.45 / 2.8
    # NumPy, forward alone: blocked 0.3 / 1.1 ms in all, scan 0.6 / 1.3 ms, and 0.9 against 29 ms for 20 000 samples.
    # PyTorch, forward and backward: blocked 3 / 6 ms in all, scan 4 / 6 ms, growing with N.
    if operands.u.shape[-2] is None:
        return "scan"  # TensorFlow while it traces: only a loop can run for an unknown time
    if getattr(xp, "backend", "numpy") != "jax":
        return "blocked"
    import jax

    return "scan" if jax.default_backend() == "cpu" else "blocked"


class Rows:
    """Matrices (R, 1, ., .), sequences (R or 1, S, N, .), states (R, S, n)."""

    def __init__(self, form: str, method: str) -> None:
        self._form, self._method = form, method

    def matrices(self, M: Array | None) -> Array | None:
        """From and to (R, ., .)."""
        return None if M is None else M[:, None]

    def sequences(self, u: Array) -> Array:
        """From (R or 1, S, N, .)."""
        return u

    def sequences_back(self, u: Array) -> Array:
        """To (R or 1, S, N, .)."""
        return u

    def vectors(self, x: Array) -> Array:
        """From (R, S, n)."""
        return x

    def vectors_back(self, x: Array) -> Array:
        """To (R, S, n)."""
        return x

    def product(self, M: Array, x: Array) -> Array:
        """``M x[k]`` for all k."""
        return namespace(x).matmul(x, transposed(M))

    def outer(self, x: Array, z: Array) -> Array:
        """The sum of ``x[k] z[k]^T`` over all k and all sequences, (R, ., .)."""
        xp = namespace(x)
        x, z = (xp.reshape(a, (a.shape[0], -1, a.shape[-1])) for a in (x, z))
        return xp.matmul(transposed(x), z)

    def joined(self, x: Array, z: Array) -> Array:
        """``[x[k]; z[k]]`` for all k."""
        xp = namespace(x)
        return xp.concatenate([x, _shared(z, x.shape[0])], axis=-1)

    def backwards(self, x: Array) -> Array:
        """The sequences with time reversed."""
        return namespace(x).flip(x, axis=-2)

    def states(self, A: Array, b: Array, x0: Array) -> tuple[Array, Array]:
        """``x[0..N-1]`` and ``x[N]``."""
        xp, n = namespace(x0), A.shape[-1]
        b = _shared(b, A.shape[0])
        if b.shape[-2] == 0:
            return b, x0
        if self._form != "block-diagonal":
            return self._states(A, b, x0)
        b, x0 = xp.moveaxis(vector_pairs(b, 3), 3, 1), xp.moveaxis(vector_pairs(x0, 2), 2, 1)
        x, x_end = self._states(xp.swapaxes(diagonal_pairs(A), 1, 2), b, x0)
        return pairs_joined(xp.moveaxis(x, 1, 3), 3, n), pairs_joined(xp.moveaxis(x_end, 1, 2), 2, n)

    def _states(self, A: Array, b: Array, x0: Array) -> tuple[Array, Array]:
        if self._method == "scan":
            return states_by_steps(A, b, x0)
        xp = namespace(x0)
        x, x_end = _PARALLEL[self._method](A, b, x0)
        # A power of A that overflows makes NaN of a state that is zero, and infinity of one that is tiny. Whatever it
        # touches is not finite, so a finite result is sound, and any other is computed again step by step.
        is_sound = xp.all(xp.isfinite(x)) & xp.all(xp.isfinite(x_end))
        return xp.cond(is_sound, lambda: (x, x_end), lambda: states_by_steps(A, b, x0))


class Lanes:
    """Matrices (., ., R, 1), sequences (N, ., R or 1, S), states (n, R, S); JAX only."""

    def __init__(self, form: str) -> None:
        self._form = form

    def matrices(self, M: Array | None) -> Array | None:
        """From (R, ., .)."""
        return None if M is None else namespace(M).moveaxis(M, 0, -1)[..., None]

    def sequences(self, u: Array) -> Array:
        """From (R or 1, S, N, .)."""
        return namespace(u).transpose(u, (2, 3, 0, 1))

    def sequences_back(self, u: Array) -> Array:
        """To (R or 1, S, N, .)."""
        return namespace(u).transpose(u, (2, 3, 0, 1))

    def vectors(self, x: Array) -> Array:
        """From (R, S, n)."""
        return namespace(x).moveaxis(x, -1, 0)

    def vectors_back(self, x: Array) -> Array:
        """To (R, S, n)."""
        return namespace(x).moveaxis(x, 0, -1)

    def product(self, M: Array, x: Array) -> Array:
        """``M x[k]`` for all k."""
        terms = [M[:, j] * x[:, j, None] for j in range(M.shape[1])]
        return sum(terms[1:], start=terms[0])

    def outer(self, x: Array, z: Array) -> Array:
        """The sum of ``x[k] z[k]^T`` over all k and all sequences, (R, ., .)."""
        import jax.numpy as jnp

        return jnp.einsum("kirs,kjrs->rij", x, z, precision="highest")

    def joined(self, x: Array, z: Array) -> Array:
        """``[x[k]; z[k]]`` for all k."""
        xp = namespace(x)
        return xp.concatenate([x, xp.broadcast_to(z, (*z.shape[:2], *x.shape[2:]))], axis=1)

    def backwards(self, x: Array) -> Array:
        """The sequences with time reversed."""
        return namespace(x).flip(x, axis=0)

    def states(self, A: Array, b: Array, x0: Array) -> tuple[Array, Array]:
        """``x[0..N-1]`` and ``x[N]``."""
        if self._form != "block-diagonal":
            return states_in_lanes(A, b, x0)
        xp, n = namespace(x0), A.shape[0]
        blocks = xp.transpose(diagonal_pairs(xp.transpose(A, (2, 3, 0, 1))), (3, 4, 2, 0, 1))
        b, x0 = xp.swapaxes(vector_pairs(b, 1), 1, 2), xp.swapaxes(vector_pairs(x0, 0), 0, 1)
        x, x_end = states_in_lanes(blocks, b, x0)
        return pairs_joined(xp.swapaxes(x, 1, 2), 1, n), pairs_joined(xp.swapaxes(x_end, 0, 1), 0, n)


def _shared(x: Array, R: int) -> Array:
    """Sequences (R or 1, S, N, .) as (R, S, N, .)."""
    xp = namespace(x)
    return x if x.shape[0] == R else xp.broadcast_to(x, (R, *tuple(xp.shape(x))[1:]))
