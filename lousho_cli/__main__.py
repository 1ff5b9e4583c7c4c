"""`python -m lousho_cli`: the same program as the `lousho` console script."""

from __future__ import annotations

import sys

from lousho_cli.main import main

if __name__ == "__main__":
    sys.exit(main())
