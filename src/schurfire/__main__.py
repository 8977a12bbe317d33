"""``python -m schurfire`` is the command ``schurfire``."""

import sys

from schurfire.cli import main

sys.exit(main())
