"""Command lines as the person's own shell reads them: bash and its kin, PowerShell on Windows."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from lousho.scaffold.errors import InitUsageError

WINDOWS = os.name == "nt"


def expanded(path: str) -> Path:
    """Return `path` with `~` and `~name` replaced. Raises `InitUsageError` where no such home directory is known."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InitUsageError(f"{path!r} names a home directory that is not known. Write the whole path.") from None


def quoted(word: str, *, windows: bool = WINDOWS) -> str:
    """Return `word` as one word of a command line."""
    if not windows:
        return shlex.quote(word)
    if re.fullmatch(r"[\w.:/\\+=@-]+", word):
        return word
    return "'" + word.replace("'", "''") + "'"


def command_line(words: list[str], *, windows: bool = WINDOWS) -> str:
    """Return a command and its arguments as one line that can be pasted."""
    line = " ".join(quoted(word, windows=windows) for word in words)
    # PowerShell takes a quoted first word for a string, not for a program.
    return f"& {line}" if windows and line.startswith("'") else line


def chained(lines: Iterable[str], *, windows: bool = WINDOWS) -> str:
    """Return several command lines as one, each run after the one before (in bash: only if that went well)."""
    return ("; " if windows else " && ").join(lines)


def copy_line(source: str, target: str, *, windows: bool = WINDOWS) -> str:
    """Return the line that copies a file."""
    return command_line(["copy" if windows else "cp", source, target], windows=windows)
