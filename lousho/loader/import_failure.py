"""What to tell a person whose Python file could not be run: where, what, and what to install.

The frames of the import system and of this program say nothing to them; the last line of their own code does.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lousho.core.console_text import one_line
from lousho.core.errors import SDKError
from lousho.loader.python_code import ROOT, CodeLoad, absolute

_LONGEST_TEXT: Final = 300
_LONGEST_LINE: Final = 120

# Packages whose import name is not the name they are installed by.
_DISTRIBUTIONS: Final = {
    "Crypto": "pycryptodome",
    "MySQLdb": "mysqlclient",
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "discord": "discord.py",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "git": "gitpython",
    "github": "pygithub",
    "googleapiclient": "google-api-python-client",
    "jose": "python-jose",
    "jwt": "pyjwt",
    "kafka": "kafka-python",
    "magic": "python-magic",
    "pptx": "python-pptx",
    "psycopg2": "psycopg2-binary",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "telegram": "python-telegram-bot",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}

PASSED_THROUGH: Final = frozenset({"LOUSHO_PROVIDER_MISSING_API_KEY", "LOUSHO_PEER_MISSING"})
"""Codes of failures that lie in the environment and not in the file; they keep their code."""


@dataclass(frozen=True, slots=True)
class ImportFailure:
    """Why a file could not be run."""

    place: str
    """The file and, where it is known, the line: `my-agent/tools/send.py:3`."""
    text: str
    """What is wrong, and what to do about it when that is clear; one sentence without its full stop."""

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


def explain(error: BaseException, file: Path, load: CodeLoad) -> ImportFailure:
    """Return what to say about `error`, raised while `file` was run."""
    if isinstance(error, SyntaxError) and error.filename:
        place = shown_path(Path(error.filename))
        if error.lineno:
            place += f":{error.lineno}" + (f":{error.offset}" if error.offset else "")
        return ImportFailure(place, f"{type(error).__name__}: {error.msg}{_line_of(error)}")
    return ImportFailure(_place(error, file, load), _text(error, load))


def _line_of(error: SyntaxError) -> str:
    """Return what to add to a message: the line itself without anything that looks like a key; empty if not known."""
    from lousho.models.errors import redact

    line = one_line((error.text or "").strip(), _LONGEST_LINE)
    return f" in `{redact(line)}`" if line else ""


def _place(error: BaseException, file: Path, load: CodeLoad) -> str:
    """Return the last line of the user's own code that was running."""
    found: str | None = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__", "")).startswith(f"{load.package}."):
            found = f"{shown_path(Path(frame.f_code.co_filename))}:{line}"
    return found or shown_path(file)


def _text(error: BaseException, load: CodeLoad) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return _missing_module(error.name, load)
    if isinstance(error, SystemExit):
        return f"the file calls sys.exit({'' if error.code is None else repr(error.code)}) while it is loaded"
    if isinstance(error, SDKError):
        return error.detail
    text = _words(error).replace(f"{load.package}.", "")
    if isinstance(error, ImportError) and "beyond top-level package" in text:
        return f"a relative import reaches outside {shown_path(load.folder)}"
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename is not None else error.strerror
    first_line = one_line(text.strip().partition("\n")[0], _LONGEST_TEXT)
    return f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - user code owns this __str__, and it must not replace the failure it tells of
        return ""


def _missing_module(name: str, load: CodeLoad) -> str:
    if name.startswith(f"{load.package}."):
        local = load.local_name(name)
        return f"there is no module '{local}' in {shown_path(load.folder)}"
    if name.startswith(f"{ROOT}."):
        return f"a relative import reaches outside {shown_path(load.folder)}"
    top = name.partition(".")[0]
    return f"there is no module '{name}'. Install it with: pip install {_DISTRIBUTIONS.get(top, top)}"


def shown_path(path: Path) -> str:
    """Return a path as a person would type it: relative when it lies below the working directory."""
    full = absolute(path)
    try:
        below = full.relative_to(Path.cwd())
    except (ValueError, OSError):  # elsewhere, or the working directory is gone
        return str(full)
    return str(below)
