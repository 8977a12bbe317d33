"""The memory that a training of 50 models needs."""

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.peers import Peer

_GIB = 2.0**30


def figures(smoke: bool) -> Iterator[Figure]:
    replicas = 2 if smoke else 50
    for path, native in (("native", "1"), ("pure", "0")):
        with Peer("memory", SCHURFIRE_NATIVE=native) as peer:
            found = peer.ask(epochs=10 if smoke else 500, replicas=replicas, samples=1024)
        text = f"{found['peak'] / _GIB:.2f} GiB ({found['before'] / _GIB:.2f} of it before the training)"
        what = f"{replicas} models x 1024 samples, n_x = 5, {path}: peak memory of the process"
        yield Figure(what, "below 2 GiB", text, found["peak"] < 2 * _GIB)
