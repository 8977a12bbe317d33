"""The commands together, and what becomes of their errors."""

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from schurfire import __version__
from schurfire.cli import certify, demo, info, nearest
from schurfire.cli.terminal import show_error
from schurfire.errors import InvalidInputError, NotConvergedError

STABLE, NOT_PROVEN, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

_HELP = """Stable matrices with proof.

Exit status: 0 stable, 1 not proven stable, 2 bad input, 130 interrupted.
"""
_EXAMPLES = """Examples:

    schurfire demo
    schurfire nearest A.npy -o X.npy --plot eigenvalues.png
    schurfire certify X.npy
    schurfire nearest A.csv --half-plane 0 --form schur -o pair.npz
    schurfire certify pair.npz --blocks
"""


def build() -> App:
    """The application with its commands."""
    app = App(
        name="schurfire",
        help=_HELP,
        help_epilogue=_EXAMPLES,
        help_format="markdown",
        version=__version__,
        suppress_keyboard_interrupt=False,
    )
    for module in (nearest, certify, demo, info):
        app.command(module.command, name=module.__name__.rpartition(".")[2], help_epilogue=module.EXAMPLES)
    return app


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status; an expected error is one line on the standard error output."""
    try:
        status = build()(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
        return STABLE if status is None else status
    except (CycloptsError, InvalidInputError) as error:
        show_error(error)
        return BAD_INPUT
    except NotConvergedError as error:
        show_error(error)
        return NOT_PROVEN
    except BrokenPipeError:  # whoever read the output has left; Python must not try to flush to them again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOT_PROVEN
    except OSError as error:
        show_error(f"{error.strerror or error}: {error.filename}" if error.filename else error)
        return BAD_INPUT
    except KeyboardInterrupt:
        show_error("Interrupted.")
        return INTERRUPTED
