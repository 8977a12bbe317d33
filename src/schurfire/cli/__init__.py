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

    _keep_blas_on_one_thread()
    status = run(arguments)
    if status == INTERRUPTED:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


def _keep_blas_on_one_thread() -> None:
    """Sets OpenBLAS to one thread, unless the user has chosen.

    Its threads wait for each other actively. The searches factorise thousands of small matrices: order 8 took 1.2 s on
    one thread, and 10 to 30 s on two while other programs were using the two processors.
    """
    if not {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"} & os.environ.keys():
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
