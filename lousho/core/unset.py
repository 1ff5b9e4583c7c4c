"""A value that means "not given", where `None` already means something."""

from __future__ import annotations

import enum
from typing import Final, Literal


class Unset(enum.Enum):
    """The type of `UNSET`; compare with `is`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> Literal[False]:
        return False


UNSET: Final = Unset.UNSET
