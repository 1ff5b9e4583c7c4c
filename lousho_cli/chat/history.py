"""What was typed before, one file a project, readable by its owner alone.

Lines that start with a space are never kept, so that a secret can be typed. When the file cannot be read or written,
the chat goes on without it and says so once.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.history import History, InMemoryHistory

MOST_BYTES = 1_000_000
LONGEST_ENTRY = 20_000
"""Characters; a longer paste can be sent, but is not worth remembering."""

_PROJECT_MARKS = (".git", "pyproject.toml")


def history_file(target: Path) -> Path:
    """Return the history file of the project that `target` belongs to. Raises `OSError` where there is no home."""
    import platformdirs

    folder = platformdirs.user_state_path("lousho", appauthor=False)
    if not folder.is_absolute():  # no home directory is known
        raise FileNotFoundError(f"there is no home directory for {folder}")
    project = project_of(target)
    digest = hashlib.sha256(str(project).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    name = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in project.name) or "project"
    return folder / "chat" / f"{name[:40]}-{digest}.history"


def open_history(target: Path, complain: Callable[[str], None]) -> History:
    """Return the history of the project of `target`; where there is no place for a file, one that ends with the chat."""
    try:
        return PrivateHistory(history_file(target))
    except (OSError, RuntimeError) as error:
        complain(f"what you type is not kept: {error}")
        return InMemoryHistory()


def project_of(target: Path) -> Path:
    """Return the nearest folder above `target` that is a project, else the folder of `target`."""
    target = target.resolve()
    start = target if target.is_dir() else target.parent
    for folder in (start, *start.parents):
        if any((folder / mark).exists() for mark in _PROJECT_MARKS):
            return folder
    return start


class PrivateHistory(History):
    """A history file of mode 0600, in the format of `prompt_toolkit`'s own. Raises `OSError` when there can be none.

    What fails later, while an editor owns the screen, waits in `problem` for somebody who may write there.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self.problem: str | None = None
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._append(b"")
        data = path.read_bytes()
        self._kept = parse((self._shorten(data) if len(data) > MOST_BYTES else data).decode("utf-8", "replace"))

    def append_string(self, string: str) -> None:
        """Remember one message, unless it starts with a space."""
        if not string.startswith(" ") and string.strip() and len(string) <= LONGEST_ENTRY:
            super().append_string(string)

    def load_history_strings(self) -> Iterable[str]:
        """Return the kept messages, the newest first."""
        return reversed(self._kept)

    def store_string(self, string: str) -> None:
        """Append one message to the file."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        entry = "".join(f"+{line}\n" for line in string.split("\n"))
        try:
            self._append(f"\n# {stamp}\n{entry}".encode("utf-8", "replace"))
        except OSError as error:
            self.problem = f"what you type is not kept: {error.strerror or error} ({self._path})"

    def _append(self, data: bytes) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, data)  # one write: two terminals in a project do not mix their lines
        finally:
            os.close(descriptor)

    def _shorten(self, data: bytes) -> bytes:
        """Drop the older half of a file that grew too large."""
        kept = data[-MOST_BYTES // 2 :]
        kept = kept[max(kept.find(b"\n#"), 0) :]
        scratch = self._path.with_suffix(f".{os.getpid()}.tmp")
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(kept)
        scratch.replace(self._path)
        return kept


def parse(text: str) -> list[str]:
    """Return the messages of a history file, the oldest first."""
    messages: list[str] = []
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith("+"):
            lines.append(line[1:])
        elif lines:
            messages.append("\n".join(lines))
            lines = []
    if lines:
        messages.append("\n".join(lines))
    return messages
