"""One forward and backward pass of a model in PyTorch: this package's layer, a loop over time, or SIMBa's model."""

import functools
import time
from collections.abc import Callable

import torch

import schurfire as sf
from benchmarks.peers import serve
from benchmarks.peers.simba import model as simba_model

_N, _M, _SAMPLES = 5, 3, 300


def _loop(dtype: torch.dtype) -> tuple[Callable, list]:
    """``x+ = A x + B u``, ``y = C x + D u``; what is not sequential is one product before or after."""
    A = (0.5 * torch.eye(_N)).to(dtype).requires_grad_()
    B, C, D = (torch.randn(*shape, dtype=dtype).requires_grad_() for shape in ((_N, _M), (_M, _N), (_M, _M)))

    def respond(u: torch.Tensor) -> torch.Tensor:
        x, driven, states = u.new_zeros(1, _N), u @ B.T, []
        for k in range(u.shape[1]):
            states.append(x)
            x = x @ A.T + driven[:, k]
        return torch.stack(states, 1) @ C.T + u @ D.T

    return respond, [A, B, C, D]


def _layer(stability: str, dtype: str) -> tuple[Callable, list]:
    layer = sf.layers.StateSpace(_N, _M, stability=stability, seed=0, dtype=dtype)
    layer.build((None, None, _M))
    return layer, [v.value for v in layer.trainable_variables]


def _simba(dtype: torch.dtype) -> tuple[Callable, list]:
    model, start = simba_model(_N, _M, 1), torch.zeros(1, 1, _N, dtype=dtype)
    return lambda u: model.forward(u, x0=start)[0], list(model.parameters())


@functools.cache
def _pass(what: str, dtype: str) -> Callable[[], None]:
    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    others = {"loop": _loop, "simba": _simba}
    respond, weights = others[what](kind) if what in others else _layer(what, dtype)
    u, y = (torch.randn(1, _SAMPLES, _M, dtype=kind) for _ in range(2))

    def run() -> None:
        for w in weights:
            w.grad = None
        ((respond(u) - y) ** 2).mean().backward()

    for _ in range(3):
        run()
    return run


def answer(what: str, dtype: str, count: int) -> float:
    """The least time of one pass among ``count``, in seconds."""
    run, best = _pass(what, dtype), float("inf")
    for _ in range(count):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


serve(answer)
