"""Reading a text file that a person wrote: bounded, UTF-8, and with a sentence for everything that can be wrong.

The readers of YAML, JSON, Markdown and `.env` all start here, so that a directory, a pipe, a binary file or a file of
another encoding is refused in the same words everywhere.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final, NamedTuple

MAX_CONFIG_BYTES: Final = 1_000_000
"""The largest configuration or instructions file that is read, in bytes."""

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Mark(NamedTuple):
    """A place in a text file, both counted from 1."""

    line: int
    column: int


class FileProblem(Exception):
    """Something is wrong with a file, told without its name; `mark` says where when that is known.

    It never leaves the loader: every caller turns it into an error with the code of what it was loading.
    """

    def __init__(self, text: str, mark: Mark | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.mark = mark

    def located(self, shown: str) -> str:
        """Return `agent.yaml:3:7: <problem>`, or `'agent.yaml' <problem>` where no place is known."""
        if self.mark is None:
            return f"'{shown}' {self.text}"
        return f"{shown}:{self.mark.line}:{self.mark.column}: {self.text}"


def read_text(path: Path, *, limit: int = MAX_CONFIG_BYTES) -> str:
    """Return the text of a file of at most `limit` bytes. Raises `FileProblem`.

    A byte order mark is dropped. Line ends stay as they are.
    """
    data = _read_bytes(path, limit)
    if data.startswith(_UTF16_MARKS):
        raise FileProblem("is UTF-16 text; save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileProblem(
            f"is not UTF-8 text (byte 0x{data[error.start]:02x} on line {line}); save it as UTF-8"
        ) from None


def _read_bytes(path: Path, limit: int) -> bytes:
    try:
        # Opening a named pipe would wait for its writer, so the kind is looked at first.
        kind = path.stat().st_mode
        if stat.S_ISDIR(kind):
            raise FileProblem("is a directory, not a file")
        if not stat.S_ISREG(kind):
            raise FileProblem("is not a regular file")
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise FileProblem(f"cannot be read: {os_reason(error)}") from error
    except ValueError as error:  # a path with a NUL character
        raise FileProblem(f"cannot be read: {error}") from error
    if len(data) > limit:
        raise FileProblem(f"is larger than {limit:,} bytes, which is the most that is read")
    return data


def os_reason(error: OSError) -> str:
    """Return why a file operation failed, e.g. `Permission denied`."""
    return error.strerror or str(error) or type(error).__name__
