"""``schurfire info``: versions, and with ``--system`` what computations will run on."""

import os

from schurfire.cli.options import Flag
from schurfire.cli.terminal import show_row

EXAMPLES = """Examples:

    schurfire info
    schurfire info --system
"""

_PACKAGES = ("schurfire", "numpy", "scipy", "jax", "jaxlib", "keras", "matplotlib")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def command(*, system: Flag = False) -> int:
    """Show versions, for reports of problems.

    Args:
        system: Also load the libraries and show the backend, why it was chosen, devices and threads.
    """
    import platform
    from importlib.metadata import PackageNotFoundError, version

    show_row("python", f"{platform.python_version()}, {platform.system()} {platform.machine()}")
    for package in _PACKAGES:
        try:
            show_row(package, version(package))
        except PackageNotFoundError:
            show_row(package, "not installed")
    if system:
        backend, reason = _backend()
        show_row("backend", f"{backend}, {reason}")
        if backend == "jax":
            show_row("devices", _jax_devices())
        show_row("recurrence", _recurrence())
        show_row("blas", _blas())
        show_row("threads", _threads())
    return 0


def _backend() -> tuple[str, str]:
    """The Keras backend and who chose it."""
    from schurfire.namespaces import keras_namespace

    chosen_before = os.environ.get("KERAS_BACKEND")
    keras_namespace()
    import keras

    if chosen_before:
        reason = "because KERAS_BACKEND is set"
    elif os.environ.get("KERAS_BACKEND"):
        reason = "the first one installed of jax, torch, tensorflow"
    else:
        reason = "because keras.json names it"
    return keras.backend.backend(), reason


def _jax_devices() -> str:
    import jax

    return ", ".join(str(device) for device in jax.devices())


def _recurrence() -> str:
    from schurfire.native import library

    if library.is_available():
        return f"native, {library.instruction_set()}"
    if library.library_path() is not None:
        return "pure: SCHURFIRE_NATIVE=0 is set"
    return "pure, slower: schurfire was installed without a C++ compiler"


def _blas() -> str:
    import numpy as np

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip() + ", as NumPy was built with"


def _threads() -> str:
    limits = [f"{name}={os.environ[name]}" for name in _THREADS if name in os.environ]
    return f"{os.cpu_count()} logical processors, " + (", ".join(limits) or "BLAS threads not limited")
