"""Writing agents as files: a directory from a mapping, and the source of a small tool."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below `folder` and return it; texts lose their common indentation."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(textwrap.dedent(content), encoding="utf-8")
    return folder


def tool_source(name: str, answer: str = "done") -> str:
    """Return a Python file that defines one tool without arguments."""
    return f'from lousho import tool\n\n\n@tool\ndef {name}() -> str:\n    """Do {name}."""\n    return {answer!r}\n'
