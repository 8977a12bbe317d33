"""How many threads NumPy's and SciPy's linear algebra may use."""

import contextlib
import functools
from collections.abc import Iterator

from threadpoolctl import ThreadpoolController

_SMALL = 256


@contextlib.contextmanager
def suited_to(n: int) -> Iterator[None]:
    """One thread for matrices of order n < 256, which gain nothing from more; the library's own choice above.

    OpenBLAS splits products from n = 50 or so over all cores and waits actively. On a machine with other work that
    made a search of 2 s take 48 s (n = 50, two cores).
    """
    with _controller().limit(limits=1, user_api="blas") if n < _SMALL else contextlib.nullcontext():
        yield


@functools.cache
def _controller() -> ThreadpoolController:
    import numpy  # noqa: F401 - both bring a library of their own, which has to be loaded to be found
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()
