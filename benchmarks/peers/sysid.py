"""Iterations of jax-sysid's own Adam solver on its own cost function; runs where jax-sysid is installed."""

import functools
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import jax
import numpy as np
from jax_sysid import _model, _solvers
from jax_sysid.models import LinearModel

from benchmarks.peers import serve

_RUN = 3e-3  # s


@functools.cache
def _solver(state_size: int, channels: int, samples: int, sequences: int) -> tuple[Callable[[int], Callable], list]:
    """The solver for a number of iterations, and what it starts from, taken from the package's ``fit``."""
    rng = np.random.default_rng(0)
    u, y = ([rng.standard_normal((samples, channels)) for _ in range(sequences)] for _ in range(2))
    model = LinearModel(state_size, channels, channels, feedthrough=True)
    model.loss(rho_th=0.0, rho_x0=0.0, train_x0=False)
    model.optimization(adam_eta=1e-3, adam_epochs=1, lbfgs_epochs=0, iprint=-1)
    taken = []

    def keeping(cost: Callable, z: list, *_: Any) -> tuple[list, float]:
        taken.append((cost, [jax.numpy.asarray(zi) for zi in z]))
        return z, 0.0

    with mock.patch.object(_model, "adam_solver", keeping):
        model.fit(y, u)
    ((cost, start),) = taken
    # The solver ends with float(cost), which a compiled function cannot do: it stays an array. As it stands the solver
    # is compiled anew at each call, for half a second; here it is compiled once.
    _solvers.float = lambda x: x
    return lambda count: jax.jit(lambda z: _solvers.adam_solver(cost, z, count, 1e-3, -1)), start


@functools.cache
def _program(**sizes: int) -> tuple[Callable, list, int]:
    solver, start = _solver(**sizes)
    count, run = 1, solver(1)
    while min(_seconds(run, start) for _ in range(3)) < _RUN and count < 256:
        count *= 4
        run = solver(count)
    return run, start, count


def answer(**sizes: int) -> float:
    """The time of one iteration, cost and gradient and update, in a run of a few milliseconds, in seconds."""
    run, start, count = _program(**sizes)
    return _seconds(run, start) / count


def _seconds(run: Callable, start: list) -> float:
    before = time.perf_counter()
    jax.block_until_ready(run(start))
    return time.perf_counter() - before


serve(answer)
