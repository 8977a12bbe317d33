"""Programs in processes of their own: other packages, other backends, other settings; timed in turns with this one.

A peer is a module that calls ``serve``; ``Peer`` starts it and asks it, one JSON object a line each way. Between two
questions it waits and costs nothing. This file needs nothing but Python, so that it runs in any environment.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_MARK = "answer: "


class Peer:
    """A running peer; a context manager.

    Args:
        module: its name in this package.
        python: the interpreter to run it with.
        settings: environment variables.
    """

    def __init__(self, module: str, python: str | Path = sys.executable, **settings: str) -> None:
        path = os.pathsep.join((str(_ROOT), str(_ROOT / "src")))
        self._process = subprocess.Popen(
            [str(python), "-m", f"benchmarks.peers.{module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": path, **settings},
        )

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def ask(self, **question: Any) -> Any:
        """The peer's answer."""
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(_MARK):
                return json.loads(line.removeprefix(_MARK))
        raise RuntimeError(f"a benchmark's peer ended with status {self._process.wait()}")


def serve(answer: Callable[..., Any]) -> None:
    """Answers questions until there are no more."""
    for line in sys.stdin:
        print(_MARK + json.dumps(answer(**json.loads(line))), flush=True)


class NotInstalledError(Exception):
    """Another package cannot be had here."""


def environment(name: str, *installations: tuple[str, ...]) -> Path:
    """The interpreter of ``build/peers/NAME``, a virtual environment that is made at first use.

    Args:
        name: of the folder.
        installations: arguments of one ``pip install`` each.

    Raises:
        NotInstalledError: pip failed.
    """
    folder = _ROOT / "build" / "peers" / name
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        commands = [(sys.executable, "-m", "venv", str(folder))]
        commands += [(str(python), "-m", "pip", "install", "--quiet", *arguments) for arguments in installations]
        for command in commands:
            done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
            if done.returncode:
                raise NotInstalledError(done.stderr.strip().splitlines()[-1])
        ready.touch()
    return python
