"""What every schema offers, and the error a value gets that does not fit. The kinds of schema build on this file.

Import from `lousho.core.json_schema`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from lousho.core.errors import ROOT_PATH, Issue, ValidationError, describe_issues
from lousho.core.json_values import JsonObject

MAX_ISSUES = 50
"""Issues kept of one mismatch: a list of ten thousand bad items is described by its first ones."""
MAX_ISSUE_CHARS = 500


class SchemaMismatch(ValidationError):
    """A value does not match its schema; `issues` says where and what. Code: `LOUSHO_VALIDATION_FAILED`.

    Paths are dotted, with positions as numbers (`items.2.price`); `(root)` is the value itself.
    """

    def __init__(self, issues: Iterable[Issue], cause: BaseException | None = None) -> None:
        self.issues: list[Issue] = _bounded(issues)
        errors: dict[str, list[str]] = {}
        for issue in self.issues:
            errors.setdefault(issue.path, []).append(issue.message)
        super().__init__(f"The value does not match its schema: {describe_issues(self.issues)}", errors, cause=cause)


class Schema(ABC):
    """A description of a value: what a model is shown of it, and how a value that arrives is read."""

    @property
    @abstractmethod
    def json_schema(self) -> JsonObject:
        """The JSON Schema a model sees, in canonical form. It is shared: copy it before changing it."""

    @abstractmethod
    def parse(self, value: object) -> object:
        """Return `value`, a JSON value, as the schema's own type, with defaults and conversions applied.

        Raises `SchemaMismatch` (`LOUSHO_VALIDATION_FAILED`).
        """

    @abstractmethod
    def dump(self, value: object) -> object:
        """Return a parsed value as a JSON value again. It does not validate and does not fail."""

    @property
    def is_object(self) -> bool:
        """Whether the root is one JSON object."""
        return self.json_schema.get("type") == "object"


def json_type_name(value: object) -> str | None:
    """Return what JSON calls the type of `value`, or None for what JSON cannot hold."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, (list, tuple)):
        return "array"
    return "object" if isinstance(value, dict) else None


def path_text(parts: Iterable[object]) -> str:
    """Return the parts of a path as `items.2.price`, or `(root)` when there are none."""
    return ".".join(str(part) for part in parts) or ROOT_PATH


def _bounded(issues: Iterable[Issue]) -> list[Issue]:
    kept: list[Issue] = []
    more = 0
    for issue in issues:
        if len(kept) == MAX_ISSUES:
            more += 1
        elif len(issue.message) > MAX_ISSUE_CHARS:
            kept.append(Issue(issue.path, f"{issue.message[:MAX_ISSUE_CHARS]}..."))
        else:
            kept.append(issue)
    if more:
        kept.append(Issue(ROOT_PATH, f"and {more} more issues"))
    return kept
