"""Ahead-of-time compilation with JAX, kept on disk between processes. Imports JAX; import it lazily."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache

_options_lock = threading.Lock()


def compile_once(function: Callable, *arguments: jax.ShapeDtypeStruct) -> jax.stages.Compiled:
    """``function`` compiled for arguments of these shapes, from the disk if any process has compiled it before."""
    lowered = jax.jit(function).lower(*arguments)
    with _cached_on_disk():
        return lowered.compile()


@contextlib.contextmanager
def _cached_on_disk() -> Iterator[None]:
    """Lets JAX keep on disk what is compiled inside: in the user's directory if one is set, else in schurfire's.

    JAX has no scoped form of these options, so they are set and put back. Its own switch
    ``JAX_ENABLE_COMPILATION_CACHE=false`` turns this cache off as well.
    """
    with _options_lock:
        options: dict[str, Any] = {"jax_persistent_cache_min_compile_time_secs": 0.0}
        directory = None if _option("jax_compilation_cache_dir") else _cache_directory()
        if directory is not None:
            options["jax_compilation_cache_dir"] = str(directory)
        before = {name: _option(name) for name in options}
        try:
            for name, value in options.items():
                jax.config.update(name, value)
            yield
        finally:
            for name, value in before.items():
                jax.config.update(name, value)
            if directory is not None:
                reset_cache()  # JAX opens a cache once per process, and would go on using this directory


def _option(name: str) -> Any:
    return getattr(jax.config, name)


def _cache_directory() -> Path | None:
    """Where the operating system wants caches; None if nothing can be written there."""
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA", "~")
    elif sys.platform == "darwin":
        root = "~/Library/Caches"
    else:
        root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        directory = Path(root).expanduser() / "schurfire" / "jax"
        directory.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return directory if os.access(directory, os.W_OK) else None
