"""The compiled library: whether it is there, and its functions."""

import ctypes
import functools
import os
from pathlib import Path

from schurfire.errors import InvalidInputError

_NAMES = ("kernels.so", "kernels.dylib")
_SWITCH = "SCHURFIRE_NATIVE"


@functools.cache
def library() -> ctypes.CDLL | None:
    """The library, or None where the package was installed without it or the switch ``SCHURFIRE_NATIVE=0`` is set."""
    path = library_path()
    if path is None or os.environ.get(_SWITCH) == "0":
        return None
    return ctypes.CDLL(str(path))


def library_path() -> Path | None:
    """Where the library lies."""
    import schurfire.native

    candidates = (Path(folder) / name for folder in schurfire.native.__path__ for name in _NAMES)
    return next((path for path in candidates if path.is_file()), None)


def is_available() -> bool:
    """Whether the native recurrence can be used."""
    return library() is not None


def instruction_set() -> str | None:
    """The instruction set that the library chose for this processor, or None without the library."""
    found = library()
    if found is None:
        return None
    found.schurfire_instruction_set.restype = ctypes.c_char_p
    return found.schurfire_instruction_set().decode()


def require_library() -> ctypes.CDLL:
    """The library.

    Raises:
        InvalidInputError: there is none.
    """
    found = library()
    if found is None:
        raise InvalidInputError(
            "Expected the native recurrence to be installed for method 'native', received an installation without it. "
            "Install a C++ compiler and reinstall schurfire, or use method='auto'."
        )
    return found
