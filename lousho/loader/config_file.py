"""One configuration file in hand: its keys, and how to say where one of them is wrong.

A data file (JSON, YAML) knows line and column of every value; a code file knows its name only. What checks the values
need not care.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

from lousho.core.console_text import one_line
from lousho.core.errors import ConfigurationError
from lousho.loader.document import Document, Path_, dotted
from lousho.loader.text_files import FileProblem, read_text

DATA_SUFFIXES = (".json", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A mapping of options and where it came from."""

    values: Mapping[str, Any]
    shown: str
    """The file as messages name it."""
    code: str
    """The error code of everything that is wrong in it."""
    document: Document | None = None
    """Where values stand, for a data file."""

    @property
    def is_code(self) -> bool:
        """Whether it is a Python file, which may hold objects and functions."""
        return self.document is None

    def fail(self, path: Path_, problem: str) -> NoReturn:
        """Raise the coded error for the value at `path`: `agent.json:3:5: 'permissions.0.tool': <problem>`."""
        mark = self.document.mark(path) if self.document is not None else None
        place = self.shown if mark is None else f"{self.shown}:{mark.line}:{mark.column}"
        named = f"'{dotted(path)}': " if path else ""
        raise ConfigurationError(f"{place}: {named}{problem}", field=dotted(path) or None, code=self.code)

    def text(self, path: Path_, value: Any) -> str:
        """Return a value that must be a text with something in it."""
        if not isinstance(value, str):
            self.fail(path, f"must be a text, not {kind_of(value)}{_quote_hint(value)}")
        if not value.strip():
            self.fail(path, "must not be empty")
        return value

    def mapping(self, path: Path_, value: Any) -> Mapping[str, Any]:
        """Return a value that must be a mapping with text keys."""
        if not isinstance(value, Mapping):
            self.fail(path, f"must be a mapping, not {kind_of(value)}")
        if not all(isinstance(key, str) for key in cast("Mapping[Any, Any]", value)):
            self.fail(path, "must be a mapping whose keys are texts")
        return cast("Mapping[str, Any]", value)

    def whole_number(self, path: Path_, value: Any) -> int:
        """Return a value that must be a whole number of at least 1."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.fail(path, f"must be a whole number of at least 1, not {shown_value(value)}")
        return value


def read_document(path: Path, shown: str, code: str) -> Document:
    """Return a JSON or YAML file, by its extension. Raises `code` with line and column for what cannot be read."""
    try:
        text = read_text(path)
        if path.suffix.lower() == ".json":
            from lousho.loader.json_reader import read_json

            return read_json(text)
        from lousho.loader.yaml_reader import read_yaml

        return read_yaml(text)
    except FileProblem as problem:
        raise ConfigurationError(problem.located(shown), code=code, cause=problem.__cause__) from problem.__cause__


def kind_of(value: object) -> str:
    """Return what a value is, in the words of a data file: `a list`, `true or false`, `nothing`."""
    if value is None:
        return "nothing"
    names: tuple[tuple[Any, str], ...] = (
        (bool, "true or false"),
        (str, "a text"),
        ((int, float), "a number"),
        ((list, tuple), "a list"),
        (Mapping, "a mapping"),
    )
    return next(
        (name for kind, name in names if isinstance(value, kind)), f"an object of the type {type(value).__name__}"
    )


def shown_value(value: object) -> str:
    """Return a value as an error message shows it: short, on one line."""
    if isinstance(value, str):
        return f"'{one_line(value, 60)}'"
    return one_line(value, 60) if value is None or isinstance(value, (bool, int, float)) else kind_of(value)


def _quote_hint(value: object) -> str:
    return "; put it in quotes" if isinstance(value, (bool, int, float)) else ""
