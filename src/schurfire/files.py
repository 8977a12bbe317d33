"""Output files: refused early if they cannot be written, and never seen half-written."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from schurfire.errors import invalid


def check_output(path: str | Path, suffixes: tuple[str, ...]) -> Path:
    """Returns the path of a file that can be written, as far as this can be told without writing it.

    Args:
        path: the file; whether it exists does not matter.
        suffixes: those that are allowed, in lower case with the dot.

    Raises:
        InvalidInputError: another suffix, a folder, or a file in a folder that is missing or read-only.
    """
    path = Path(path)
    check_suffix(path, suffixes, "the output")
    folder = path.parent
    if path.is_dir():
        raise invalid("the output", "a file", f"the folder {path}")
    if not folder.is_dir():
        raise invalid("the output", "in a folder that exists", path, f"Create {folder} first.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise invalid("the output", "in a folder that can be written", path, f"Choose another folder than {folder}.")
    return path


def check_suffix(path: Path, suffixes: tuple[str, ...], name: str) -> str:
    """The suffix of the path in lower case, which is one of ``suffixes``."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise invalid(name, f"a file of type {either(suffixes)}", path)
    return suffix


def either(words: tuple[str, ...]) -> str:
    """``a, b or c``."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """A binary file to write, which takes its place under ``path`` when the block ends without an exception.

    Until then it is a hidden file in the same folder. An exception, Ctrl-C included, removes that and leaves whatever
    was at ``path`` before as it was. A link is followed.
    """
    path = Path(os.path.realpath(path))
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(hidden, "x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(hidden, path)
    finally:
        hidden.unlink(missing_ok=True)
