"""Two sizes for heavy tests: one that fits `make test`, and a longer one for `make soak`.

`LOUSHO_TEST_SIZE=soak` picks the longer one.
"""

from __future__ import annotations

import os

SOAK = os.environ.get("LOUSHO_TEST_SIZE") == "soak"


def sized(ci: int, soak: int) -> int:
    """The number of rounds, items or seconds to use in this run."""
    return soak if SOAK else ci
