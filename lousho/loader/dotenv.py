"""`./.env`: variables for the commands that run an agent. What the environment already says wins.

Source: cli page (".env").
"""

from __future__ import annotations

import io
import os
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lousho.loader.import_failure import shown_path
from lousho.loader.text_files import FileProblem, read_text

FILE_NAME: Final = ".env"
_LISTED_LINES: Final = 5


@dataclass(frozen=True, slots=True)
class DotenvFile:
    """What a `.env` file brought."""

    path: Path | None = None
    """The file, or `None` where there is none."""
    names: tuple[str, ...] = ()
    """Variables that came from the file, in its order."""
    shadowed: tuple[str, ...] = ()
    """Variables of the file that were already set and kept their value."""
    notes: tuple[str, ...] = ()
    """What could not be used, for stderr. Never holds a value."""


def load_dotenv_file(
    cwd: str | os.PathLike[str] | None = None, *, environ: MutableMapping[str, str] | None = None
) -> DotenvFile:
    """Set the variables of `<cwd>/.env` that are not set yet, and return which those were.

    A missing file is fine, a byte order mark is dropped, values are taken as they stand (no `${...}`). What cannot be
    read or understood becomes a note; nothing is raised. Source: cli page.
    """
    environ = os.environ if environ is None else environ
    try:
        path = Path.cwd() / FILE_NAME if cwd is None else Path(cwd) / FILE_NAME
        if not path.exists() or path.is_dir():  # a directory of that name is a virtual environment
            return DotenvFile()
    except (OSError, ValueError):  # no permission to look, or no working directory
        return DotenvFile()
    try:
        text = read_text(path)
    except FileProblem as problem:
        return DotenvFile(path, notes=(f"{problem.located(shown_path(path))}; its variables are not set",))
    return _apply(path, text, environ)


def unread_dotenv_note(agent: str | os.PathLike[str], cwd: str | os.PathLike[str] | None = None) -> str | None:
    """Return the sentence to say when a `.env` lies beside the agent at the path `agent` and is not the one of `cwd`."""
    try:
        here = Path.cwd() if cwd is None else Path(cwd)
        place = here / agent
        beside = (place if place.is_dir() else place.parent) / FILE_NAME
        if not beside.is_file() or beside.parent.resolve() == here.resolve():
            return None
    except (OSError, ValueError):  # a path that nobody can look at is reported by whoever loads it
        return None
    return (
        f"'{shown_path(beside)}' exists but only ./{FILE_NAME} is read:"
        " run the command in that directory, or copy the file here."
    )


def _apply(path: Path, text: str, environ: MutableMapping[str, str]) -> DotenvFile:
    from dotenv.parser import parse_stream

    values: dict[str, str] = {}
    bad_lines: list[int] = []
    for binding in parse_stream(io.StringIO(text)):
        if binding.error or (binding.key is not None and _unusable(binding.key, binding.value)):
            bad_lines.append(binding.original.line)
        elif binding.key is not None and binding.value is not None:
            values[binding.key] = binding.value
    notes = [_about(path, bad_lines)] if bad_lines else []
    new: list[str] = []
    shadowed: list[str] = []
    unfit: list[str] = []
    for name, value in values.items():
        try:
            if name in environ:
                shadowed.append(name)
                continue
            environ[name] = value
            new.append(name)
        except UnicodeEncodeError:  # the locale's encoding lacks a character
            unfit.append(name if name.isascii() else ascii(name))
    if unfit:
        notes.append(
            f"'{shown_path(path)}': {', '.join(unfit[:_LISTED_LINES])} cannot be set, because the encoding of this locale"
            " lacks a character; set PYTHONUTF8=1"
        )
    return DotenvFile(path, tuple(new), tuple(shadowed), tuple(notes))


def _unusable(name: str, value: str | None) -> bool:
    return not name or "=" in name or "\0" in name or "\0" in (value or "")


def _about(path: Path, lines: list[int]) -> str:
    listed = ", ".join(str(line) for line in lines[:_LISTED_LINES])
    more = "" if len(lines) <= _LISTED_LINES else f" and {len(lines) - _LISTED_LINES} more"
    return (
        f"'{shown_path(path)}': line{'' if len(lines) == 1 else 's'} {listed}{more} could not be understood and"
        f" {'was' if len(lines) == 1 else 'were'} left out; write NAME=value"
    )
