"""The command ``schurfire``.

Nothing here, nor in the modules of the commands, imports numerical libraries before a command has been parsed, so that
help is there at once.
"""

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line (default: that of the process) and returns its exit status.

    An interrupted process ends here and now: a compiled search still running would hold up the regular way out.
    """
    from schurfire.cli.app import INTERRUPTED, run

    status = run(arguments)
    if status == INTERRUPTED:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status
