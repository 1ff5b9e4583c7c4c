"""What a docstring says about a function and its parameters, in the Google, Sphinx and NumPy styles."""

from __future__ import annotations

import inspect
import re
from typing import NamedTuple

_SECTIONS = frozenset({"args", "arguments", "parameters", "params", "keyword args", "keyword arguments"})
_HEADING = re.compile(r"^([A-Z][A-Za-z ]{2,24}):\s*$")
_GOOGLE_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_SPHINX_ENTRY = re.compile(r"^:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)$")
_NUMPY_ENTRY = re.compile(r"^\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")


class DocText(NamedTuple):
    """A docstring read."""

    summary: str
    """The first paragraph on one line; empty when there is none."""
    parameters: dict[str, str]
    """What is said of each parameter, on one line."""


def read_docstring(docstring: str | None) -> DocText:
    """Return the first paragraph of `docstring` and its parameter descriptions."""
    lines = inspect.cleandoc(docstring or "").split("\n")
    parameters = {**_numpy(lines), **_google(lines), **_sphinx(lines)}
    return DocText(_summary(lines), {name: text for name, text in parameters.items() if text})


def _summary(lines: list[str]) -> str:
    kept: list[str] = []
    for index, line in enumerate(lines):
        underlined = index + 1 < len(lines) and _is_underline(lines[index + 1])
        if not line.strip() or _HEADING.match(line) or line.startswith(":param") or (underlined and not kept):
            break
        kept.append(line.strip())
    return " ".join(kept)


def _google(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    entry_indent: int | None = None
    inside = False
    current: list[str] | None = None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        heading = _HEADING.match(line)
        if heading is not None or (line.strip() and indent == 0):
            inside = heading is not None and heading.group(1).lower() in _SECTIONS
            entry_indent, current = None, None
            continue
        if not inside or not line.strip():
            continue
        entry_indent = indent if entry_indent is None else entry_indent
        entry = _GOOGLE_ENTRY.match(line.strip()) if indent <= entry_indent else None
        if entry is not None:
            current = found.setdefault(entry.group(1), [])
            current.append(entry.group(2))
        elif current is not None:
            current.append(line.strip())
    return {name: " ".join(filter(None, parts)) for name, parts in found.items()}


def _sphinx(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        text = line.strip()
        entry = _SPHINX_ENTRY.match(text)
        if entry is not None:
            current = found.setdefault(entry.group(1), [])
            current.append(entry.group(2))
        elif not text or text.startswith(":"):
            current = None
        elif current is not None:
            current.append(text)
    return {name: " ".join(filter(None, parts)) for name, parts in found.items()}


def _numpy(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    inside = False
    current: list[list[str]] = []
    for index, line in enumerate(lines):
        if index + 1 < len(lines) and _is_underline(lines[index + 1]):
            inside = line.strip().lower() in _SECTIONS | {"other parameters"}
            continue
        if not inside or not line.strip() or _is_underline(line):
            continue
        if line.startswith((" ", "\t")):
            for parts in current:
                parts.append(line.strip())
        elif (entry := _NUMPY_ENTRY.match(line)) is not None:
            current = [found.setdefault(name.strip(), []) for name in entry.group(1).split(",")]
    return {name: " ".join(parts) for name, parts in found.items()}


def _is_underline(line: str) -> bool:
    text = line.strip()
    return len(text) >= 3 and set(text) == {"-"}
