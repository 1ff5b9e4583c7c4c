"""Long tool results as files: one folder for a session or a run, one file for a result. All of it blocks.

Only the owner can read them. A name is told to the model when its file is complete, and a file is never written twice.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

LARGEST_FILE = 64 * 2**20
"""Bytes of one result."""
LARGEST_FOLDER = 512 * 2**20
"""Bytes of all results of one session, or of one run outside a session."""
_MOST_OF_A_NAME = 1_000
_LONGEST_ID = 80
_ID = re.compile(r"[a-zA-Z0-9_-]{1,88}")
_ODD = re.compile(r"[^a-zA-Z0-9_-]")
_FOLDER = re.compile(r"(?:run|session)-[a-zA-Z0-9_-]{1,150}")
_BLOCK = 2**16
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)


class CannotKeep(OSError):
    """The result is larger than what may be kept."""


class Page(NamedTuple):
    """A part of a result, and whether the result goes on behind it."""

    text: str
    more: bool


def folder_name(agent_name: str, session_id: str | None, run_id: str) -> str:
    """Return the name of the folder for a session's results, or for those of a run outside a session.

    The digest keeps apart what a file system that ignores case, or another agent in the same place, would mix.
    """
    kind, owner = ("run", run_id) if session_id is None else ("session", session_id)
    digest = hashlib.sha256(f"{agent_name}\0{owner}".encode("utf-8", "replace")).hexdigest()[:12]
    return f"{kind}-{_ODD.sub('_', owner)[:128]}-{digest}"


def is_folder_name(name: str) -> bool:
    """Return whether `name` may be one that `folder_name()` returned: never a path."""
    return _FOLDER.fullmatch(name) is not None


def keep_result(folder: Path, call_id: str, text: str) -> str:
    """Write a result and return the id it is read by. Raises `OSError` when it cannot be kept."""
    data = text.encode("utf-8", "replace")
    if len(data) > LARGEST_FILE:
        raise CannotKeep(f"it has {len(data):,} bytes, and a file may have {LARGEST_FILE:,}")
    _make(folder)
    if _bytes_in(folder) + len(data) > LARGEST_FOLDER:
        raise CannotKeep(f"its folder would have more than {LARGEST_FOLDER:,} bytes")
    part = folder / f".{secrets.token_hex(8)}.part"
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS | _BINARY, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        return _named(folder, part, _ODD.sub("_", call_id)[:_LONGEST_ID] or "result", data)
    finally:
        part.unlink(missing_ok=True)


def read_page(folder: Path, result_id: str, offset: int, limit: int) -> Page | None:
    """Return `limit` characters of a result from `offset` on; `None`: there is no such result in the folder.

    Raises `OSError` for what is there and cannot be read.
    """
    path = _path(folder, result_id)
    if path is None or folder.is_symlink():
        return None
    try:
        handle = os.open(path, os.O_RDONLY | _NO_LINKS | _NO_WAIT | _BINARY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_FILE:  # not ours: a pipe, or something without end
        os.close(handle)
        return None
    with os.fdopen(handle, encoding="utf-8", errors="replace", newline="") as file:
        left = offset
        while left > 0:
            skipped = len(file.read(min(left, _BLOCK)))
            if not skipped:
                break
            left -= skipped
        text = file.read(limit + 1)
    return Page(text[:limit], len(text) > limit)


def result_ids(folder: Path) -> list[str]:
    """Return the ids of the results in a folder, in alphabetical order."""
    try:
        return sorted(path.stem for path in folder.glob("*.txt") if _ID.fullmatch(path.stem))
    except OSError:
        return []


def remove_results(folder: Path) -> None:
    """Remove a folder with all of its results. Raises `OSError` when something of it stays."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in list(folder.iterdir()):
        if path.suffix in (".txt", ".part"):
            path.unlink(missing_ok=True)
    folder.rmdir()


def _make(folder: Path) -> None:
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise CannotKeep(f"{folder} is no folder")


def _bytes_in(folder: Path) -> int:
    used = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # another call has given its unfinished file the final name
                used += entry.stat(follow_symlinks=False).st_size
    return used


def _named(folder: Path, part: Path, wanted: str, data: bytes) -> str:
    """Give a complete file its name, the wanted one or the next free one like it; return the id."""
    for number in range(1, _MOST_OF_A_NAME + 1):
        result_id = wanted if number == 1 else f"{wanted}-{number}"
        path = folder / f"{result_id}.txt"
        if _take(part, path) or _holds(path, data):
            return result_id
    raise CannotKeep(f"there are {_MOST_OF_A_NAME} results of this name")


def _take(part: Path, path: Path) -> bool:
    """Make `path` another name of the file `part`; `False`: there is such a file."""
    try:
        os.link(part, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if path.exists():
            return False
        part.rename(path)
    return True


def _holds(path: Path, data: bytes) -> bool:
    """Whether the same call left the same result before, as when a run is played again."""
    return not path.is_symlink() and path.stat().st_size == len(data) and path.read_bytes() == data


def _path(folder: Path, result_id: str) -> Path | None:
    return folder / f"{result_id}.txt" if _ID.fullmatch(result_id) else None
