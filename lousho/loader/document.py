"""A YAML or JSON file after reading: its plain value, and where each part of it stands in the file.

Both readers make one, so that a check which finds `permissions[2].when` wrong can say line and column whatever the
format was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from lousho.core.json_values import Json
from lousho.loader.text_files import FileProblem, Mark

Path_: TypeAlias = "tuple[str | int, ...]"

MAX_DEPTH: Final = 64
"""How deeply lists and mappings may nest."""
MAX_VALUES: Final = 100_000
"""How many values a document may hold, repeated ones (YAML aliases) counted each time."""
MAX_DIGITS: Final = 400
"""How long a number may be written; longer ones cannot be what anybody meant."""


@dataclass(frozen=True, slots=True)
class Document:
    """What was read. `value` is `None` for an empty file."""

    value: Json
    marks: Mapping[Path_, Mark] = field(default_factory=dict[Path_, Mark])
    """The place of each value by its path, e.g. `("permissions", 0, "tool")`; a key's value counts from its key."""

    def mark(self, path: Path_) -> Mark | None:
        """Return the place of the value at `path`, or of the nearest value around it that was written down."""
        if not path:
            return self.marks.get(())
        for end in range(len(path), 0, -1):
            found = self.marks.get(path[:end])
            if found is not None:
                return found
        return None


def dotted(path: Path_) -> str:
    """Return a path as messages show it, e.g. `permissions.0.tool`."""
    return ".".join(str(part) for part in path)


def whole_number(text: str, base: int, mark: Mark) -> int:
    """Return an integer literal as a number. Raises `FileProblem` for one of an absurd length."""
    if len(text) > MAX_DIGITS:
        raise FileProblem(f"a number of {len(text):,} characters is too long", mark)
    return int(text, base)


def decimal_number(text: str, mark: Mark) -> float:
    """Return a decimal literal as a number. Raises `FileProblem` for one that no float can hold."""
    if len(text) > MAX_DIGITS:
        raise FileProblem(f"a number of {len(text):,} characters is too long", mark)
    number = float(text)
    if math.isinf(number):
        raise FileProblem(f"the number {text} is too large", mark)
    return number


def refuse_lone_surrogate(text: str, mark: Mark) -> None:
    """Raise `FileProblem` for half a surrogate pair, which could be neither stored nor sent."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise FileProblem("half a surrogate pair (\\uD800 to \\uDFFF) is not a character", mark)
