"""The rules of a task list: what a written list may be, and which id each of its tasks has. No tool, no store.

Source: tools page ("Todo tools").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, cast

from lousho.core.errors import Issue
from lousho.core.json_values import clean_text

TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed"]
STATUSES: tuple[TodoStatus, ...] = ("pending", "in_progress", "completed")
MAX_TODOS = 100
"""Tasks of one list; a longer plan is no plan, and every write sends the whole list."""
MAX_CONTENT_CHARS = 400
MAX_ID_CHARS = 48
"""With these two, a full list still fits the 50,000 characters of a result that a model reads unless told otherwise."""
MOST_STORED = 10_000
"""Tasks that are read of a store; it may have more than a model can write, but not without end."""

_OWN_ID = re.compile(r"todo_([1-9][0-9]{0,8})")


class Todo(TypedDict):
    """One task of a list."""

    id: str
    content: str
    status: TodoStatus


class TodoCounts(TypedDict):
    """How many tasks have each status, and how many there are."""

    pending: int
    in_progress: int
    completed: int
    total: int


def counts_of(todos: Sequence[Todo]) -> TodoCounts:
    """Return how many tasks have each status."""
    found = [todo["status"] for todo in todos]
    return {
        "pending": found.count("pending"),
        "in_progress": found.count("in_progress"),
        "completed": found.count("completed"),
        "total": len(found),
    }


def copy_of(todos: Iterable[Todo]) -> list[Todo]:
    """Return a list that shares nothing with `todos`."""
    return [{"id": todo["id"], "content": todo["content"], "status": todo["status"]} for todo in todos]


def problems_of(items: Sequence[Mapping[str, Any]], path: str = "todos") -> list[Issue]:
    """Return what is wrong with a list as a whole, where a schema cannot say it."""
    issues: list[Issue] = []
    ids: dict[str, int] = {}
    working: list[int] = []
    for index, item in enumerate(items):
        if not str(item["content"]).strip():
            issues.append(Issue(f"{path}.{index}.content", "The content is empty; say what is to be done"))
        given = item.get("id")
        if given is not None and not str(given).strip():
            issues.append(Issue(f"{path}.{index}.id", "The id is empty; leave it out for a new task"))
        elif given is not None and ids.setdefault(str(given).strip(), index) != index:
            issues.append(
                Issue(f"{path}.{index}.id", f"The id {given!r} is that of task {ids[str(given).strip()]} too")
            )
        if item["status"] == "in_progress":
            working.append(index)
    if len(working) > 1:
        places = ", ".join(str(index) for index in working)
        issues += [
            Issue(
                f"{path}.{index}.status",
                f"At most one task may be in_progress, and tasks {places} are; make the others pending or completed",
            )
            for index in working[1:]
        ]
    return issues


def renewed(before: Sequence[Todo], items: Sequence[Mapping[str, Any]], highest: int = 0) -> tuple[list[Todo], int]:
    """Return the list that `items` makes of the list `before`, and the highest number an id has had by now.

    A task keeps the id it is given; one without an id has that of the same content in `before`, else a new one,
    `todo_<n>`, with a number that no task of either list had.
    """
    given = [str(item["id"]).strip() if item.get("id") is not None else None for item in items]
    taken = {one for one in given if one is not None}
    free: dict[str, list[str]] = {}
    for todo in before:
        if todo["id"] not in taken:
            free.setdefault(todo["content"], []).append(todo["id"])
    used = {*taken, *(todo["id"] for todo in before)}
    numbers = [int(match.group(1)) for one in used if (match := _own(one))]
    highest = max([highest, *numbers])
    after: list[Todo] = []
    for item, wanted in zip(items, given, strict=True):
        content = clean_text(str(item["content"]).strip())
        same = free.get(content)
        if wanted is not None:
            todo_id = clean_text(wanted)
        elif same:
            todo_id = same.pop(0)
        else:
            highest += 1
            while f"todo_{highest}" in used:  # its number is none that the pattern reads
                highest += 1
            todo_id = f"todo_{highest}"
        after.append({"id": todo_id, "content": content, "status": item["status"]})
    return after, highest


def read_stored(value: object) -> list[Todo] | None:
    """Return what a store had as a task list, or `None` when it is none. Nothing at all is an empty list."""
    if value is None:
        return []
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        return None
    todos: list[Todo] = []
    for item in cast("Iterable[object]", value):
        if not isinstance(item, Mapping) or len(todos) == MOST_STORED:
            return None
        record = cast("Mapping[str, object]", item)
        own, content, status = record.get("id"), record.get("content"), record.get("status")
        if not isinstance(own, str) or not isinstance(content, str) or status not in STATUSES:
            return None
        todos.append({"id": own, "content": content, "status": status})
    return todos


def _own(own: str) -> re.Match[str] | None:
    return _OWN_ID.fullmatch(own)
