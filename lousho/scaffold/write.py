"""Writing a project's files: all of them, or none."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from lousho.scaffold.errors import InitUsageError
from lousho.scaffold.render import ProjectFile

IGNORED = frozenset({".git", ".DS_Store"})
"""What may lie in a directory that counts as empty: a fresh clone has its `.git`."""
LISTED = 12
CONFIG_FILES = frozenset({"agent.py", "agent.json", "agent.yaml", "agent.yml"})


def refuse_if_not_empty(folder: Path, files: Sequence[ProjectFile]) -> None:
    """Raise `InitUsageError` if something lies in `folder`, naming what is there and which files would be replaced."""
    there = occupants(folder)
    if not there:
        return
    replaced = [str(file.path) for file in files if os.path.lexists(folder / file.path)]
    added = [str(file.path) for file in files if not os.path.lexists(folder / file.path)]
    lines = [f"{folder.name!r} is not empty: it holds {_listed(there)}."]
    if replaced:
        lines.append(f"init would replace {_listed(replaced)}.")
    if added:
        lines.append(f"init would add {_listed(added)}.")
    lines.append("Choose another directory, or pass --force to write into this one.")
    raise InitUsageError("\n".join(lines))


def refuse_a_second_config(folder: Path, files: Sequence[ProjectFile]) -> None:
    """Raise `InitUsageError` when `folder` has the config of another template, which `files` would not replace.

    An agent directory has one config file, so the project would not load; and init never deletes what a person wrote.
    """
    ours = {str(file.path) for file in files}
    old = sorted(name for name in CONFIG_FILES if name not in ours and os.path.lexists(folder / name))
    new = sorted(ours & CONFIG_FILES)
    if not old or not new:
        return
    raise InitUsageError(
        f"{folder.name!r} already has {_listed(old)}, and this template writes {_listed(new)}: an agent has one config"
        f" file. Move {_listed(old)} away first, or choose the template that it came from."
    )


def occupants(folder: Path) -> list[str]:
    """Return the names in `folder` that make it not empty, sorted; none where there is no such directory."""
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.name not in IGNORED)


def write_files(folder: Path, files: Iterable[ProjectFile]) -> None:
    """Write the files into `folder`. What stops it half way, an interruption too, undoes what was written and is raised."""
    undo = _Undo()
    try:
        undo.make_folder(folder)
        for file in files:
            undo.write(folder / file.path, file.content)
    except BaseException:
        undo.roll_back()
        raise


class _Undo:
    """Remembers how things were, so that they can be so again."""

    def __init__(self) -> None:
        self._folders: list[Path] = []
        self._files: list[tuple[Path, bytes | None]] = []
        self._links: list[tuple[Path, str]] = []

    def make_folder(self, folder: Path) -> None:
        missing: list[Path] = []
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for path in reversed(missing):
            path.mkdir()
            self._folders.append(path)

    def write(self, path: Path, content: bytes) -> None:
        self.make_folder(path.parent)
        before = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        if path.is_symlink():  # never write through a link to a file elsewhere
            self._links.append((path, os.readlink(path)))  # noqa: PTH115 - as it is, not as a path is normalized
            path.unlink()
        self._files.append((path, before))
        path.write_bytes(content)

    def roll_back(self) -> None:
        """Undo what can be undone: one file that resists must not keep the others."""
        for path, before in reversed(self._files):
            with contextlib.suppress(OSError):
                if before is None:
                    path.unlink()
                else:
                    path.write_bytes(before)
        for path, aim in self._links:
            with contextlib.suppress(OSError):
                path.symlink_to(aim)
        for folder in reversed(self._folders):
            with contextlib.suppress(OSError):  # not empty: somebody else put something there
                folder.rmdir()


def _listed(names: Sequence[str]) -> str:
    more = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {more} more" if more > 0 else "")
