"""The state of a training in one file: written whole or not at all, and read back bit for bit."""

import hashlib
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from schurfire.errors import InvalidInputError, invalid
from schurfire.files import whole_file

_FORMAT = 1


@dataclass(frozen=True)
class CheckpointFile:
    """``training.npz`` in a folder: named arrays, and as JSON text which training they belong to.

    Args:
        path: the file.
        configuration: everything that the result of the training depends on.
    """

    path: Path
    configuration: dict[str, Any]

    @classmethod
    def within(cls, folder: str | Path, configuration: dict[str, Any]) -> "CheckpointFile":
        """The file in this folder, which is created if need be."""
        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise invalid("checkpoint", "a folder", f"the file {folder}")
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder / "training.npz", json.loads(json.dumps({"format": _FORMAT, **configuration}, default=str)))

    def write(self, arrays: dict[str, np.ndarray]) -> None:
        """Replaces the file."""
        with whole_file(self.path) as file:
            np.savez(file, **{**arrays, "configuration": np.array(json.dumps(self.configuration))})  # pyright: ignore[reportArgumentType]

    def read(self) -> dict[str, np.ndarray] | None:
        """The arrays; None if there is no file.

        Raises:
            InvalidInputError: the file is damaged, or belongs to another training.
        """
        if not self.path.exists():
            return None
        try:
            with open(self.path, "rb") as whole, np.load(whole, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            found = json.loads(arrays.pop("configuration").item())
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise invalid("checkpoint", "a file written by train", f"{self.path}: {error}", "Remove it.") from error
        names = sorted({*found, *self.configuration})
        different = [name for name in names if found.get(name) != self.configuration.get(name)]
        if different:
            raise InvalidInputError(
                f"Expected checkpoint to be of this training, received {self.path} of one with another "
                f"{', '.join(different)}. Choose another folder, or remove the file to start anew."
            )
        return arrays


def digest(*arrays: np.ndarray | None) -> str:
    """A number that identifies the values, shapes and types of the arrays."""
    sha = hashlib.sha256()
    for x in arrays:
        sha.update(b"none" if x is None else f"{x.shape}{x.dtype}".encode() + np.ascontiguousarray(x).tobytes())
    return sha.hexdigest()


def described(thing: Any) -> Any:
    """The configuration of a Keras object without the names that Keras numbers anew in every process."""
    if not hasattr(thing, "get_config"):
        return getattr(thing, "__qualname__", str(thing))
    configuration: Any = keras.saving.serialize_keras_object(thing)
    for key in ("compile_config", "build_config"):
        configuration.pop(key, None)
    names: dict[str, str] = {}
    _collect_names(configuration, names)
    return _renamed(configuration, names)


def _collect_names(configuration: Any, names: dict[str, str]) -> None:
    if isinstance(configuration, dict):
        if isinstance(configuration.get("name"), str):
            names.setdefault(configuration["name"], f"name{len(names)}")
        for value in configuration.values():
            _collect_names(value, names)
    elif isinstance(configuration, (list, tuple)):
        for value in configuration:
            _collect_names(value, names)


def _renamed(configuration: Any, names: dict[str, str]) -> Any:
    if isinstance(configuration, dict):
        return {key: _renamed(value, names) for key, value in configuration.items() if key != "seed"}
    if isinstance(configuration, (list, tuple)):
        return [_renamed(value, names) for value in configuration]
    return names.get(configuration, configuration) if isinstance(configuration, str) else configuration
