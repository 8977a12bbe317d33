"""What the commands write on the terminal, and how they stay interruptible."""

import json
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from schurfire.stability.certificate import Certificate

Result = TypeVar("Result")


def show(*parts: str | tuple[str, str]) -> None:
    """One line on the standard output, made of words and (words, style); never wrapped, never read as markup."""
    Console().print(Text.assemble(*parts), soft_wrap=True, highlight=False)


def show_row(label: str, *parts: str | tuple[str, str]) -> None:
    """A line with a label in its first column."""
    show((f"{label:<12}", "bold"), *parts)


def show_verdict(certificate: "Certificate") -> None:
    """The one line of a certificate."""
    show((str(certificate), "bold green" if certificate.is_stable else "bold yellow"))


def show_json(content: dict) -> None:
    """One JSON object on the standard output."""
    sys.stdout.write(json.dumps(content, indent=2, allow_nan=False) + "\n")


def show_error(error: object) -> None:
    """One line on the standard error output."""
    line = " ".join(str(error).split())
    Console(stderr=True).print(Text.assemble(("Error: ", "bold red"), line), soft_wrap=True, highlight=False)


def search(what: str, function: Callable[[], Result]) -> Result:
    """Returns ``function()`` while a terminal shows that work is going on, and lets Ctrl-C through at once.

    Compiled code does not look for signals. So it runs in a thread of its own, for which this one waits.
    """
    future: Future[Result] = Future()

    def work() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    with Console(stderr=True).status(what):
        return future.result()
