"""An epoch of the engine against those of SIMBa and jax-sysid, and a pass of the layer in PyTorch against others."""

from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.figures import Figure, fastest
from benchmarks.peers import NotInstalledError, Peer, environment
from benchmarks.trainings import Task, Training

# jax-sysid asks for JAX 0.4.31; installed without what it asks for, it runs on the JAX of this package.
_PYTORCH = (("-c", "constraints.txt", "torch==2.13.0", "simbapy==0.4.1", "keras", "jax", "threadpoolctl"),)
_JAX_SYSID = (
    ("-c", "constraints.txt", "jax", "jaxopt==0.8.5", "joblib==1.6.0", "flax==0.12.8", "equinox==0.13.8"),
    ("-c", "constraints.txt", "diffrax==0.7.2"),
    ("--no-deps", "jax-sysid==1.1.0"),
)
_SIZES = {"state_size": 5, "channels": 3, "samples": 300, "sequences": 1}


def figures(smoke: bool) -> Iterator[Figure]:
    budget = 2 if smoke else 30
    trainings = {dtype: Training(Task(dtype=dtype)) for dtype in ("float32", "float64")}
    simba = ("simba", "pytorch", _PYTORCH, "SIMBa's fit (float64), stable form", 1000)
    sysid = ("sysid", "jax_sysid", _JAX_SYSID, "jax-sysid's Adam iteration (float64, no validation)", 8)
    for module, name, packages, what, least in (simba, sysid):
        try:
            python = environment(name, *packages)
        except NotInstalledError as error:
            yield Figure(what, f"at least {least} x", f"not measured: {error}", False)
            continue
        yield from _epochs(module, python, what, least, trainings, budget)
    try:
        yield from _passes(environment("pytorch", *_PYTORCH), budget)
    except NotInstalledError as error:
        yield Figure("PyTorch on CPU", "at least 50 x", f"not measured: {error}", False)


def _epochs(
    module: str, python: Path, what: str, least: int, trainings: dict[str, Training], budget: float
) -> Iterator[Figure]:
    with Peer(module, python) as peer:
        samples = {dtype: training.sample for dtype, training in trainings.items()}
        best = fastest({"rival": lambda: peer.ask(**_SIZES), **samples}, budget)
    for dtype in trainings:
        ratio = best["rival"] / best[dtype]
        text = f"{ratio:.0f} x ({best['rival'] * 1e3:.2f} ms / {best[dtype] * 1e6:.1f} us)"
        yield Figure(f"{what} / an epoch of the engine in {dtype}", f"at least {least} x", text, ratio >= least)


def _passes(python: Path, budget: float) -> Iterator[Figure]:
    with Peer("torch_pass", python, KERAS_BACKEND="torch") as peer:

        def asks(what: str, dtype: str, count: int) -> Callable[[], float]:
            return lambda: peer.ask(what=what, dtype=dtype, count=count)

        for dtype in ("float32", "float64"):
            rivals = {"loop": "the layer as a Python loop over time"}
            rivals |= {"simba": "SIMBa's model"} if dtype == "float64" else {}
            layers = ("schur-projected", "none")
            samples = {name: asks(name, dtype, 2) for name in rivals} | {s: asks(s, dtype, 20) for s in layers}
            best = fastest(samples, budget)
            for name, rival in rivals.items():
                ratios = {layer: best[name] / best[layer] for layer in layers}
                text = f"{ratios['schur-projected']:.0f} x; 'none' {ratios['none']:.0f} x "
                text += (
                    f"({best[name] * 1e3:.1f} ms / {best['schur-projected'] * 1e3:.2f} and {best['none'] * 1e3:.2f} ms)"
                )
                what = f"PyTorch on CPU, {dtype}, forward and backward: {rival} / schur-projected"
                yield Figure(what, "at least 50 x", text, ratios["schur-projected"] >= 50)
