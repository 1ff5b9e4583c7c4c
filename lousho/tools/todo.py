"""Todo tools: a plan that a model writes down and keeps up to date while it works. Source: tools page ("Todo tools")."""

from __future__ import annotations

import asyncio
import inspect
import logging
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypedDict, cast

from lousho.core.errors import ConfigurationError, ToolArgumentsValidationError, ToolExecutionError
from lousho.core.events import TodoUpdatedEvent
from lousho.core.suggest import unknown_key_message
from lousho.tools.context import ToolContext
from lousho.tools.definition import Tool, define_tool
from lousho.tools.todo_list import (
    MAX_CONTENT_CHARS,
    MAX_ID_CHARS,
    MAX_TODOS,
    STATUSES,
    Todo,
    TodoCounts,
    copy_of,
    counts_of,
    problems_of,
    read_stored,
    renewed,
)

TODO_WRITE = "todo_write"
TODO_READ = "todo_read"
STORE_TIMEOUT_MS = 30_000
"""The longest a call may wait for its store, in milliseconds."""
LISTENER_SECONDS = 5.0
"""The longest an async `on_change` may keep the call waiting."""

_log = logging.getLogger("lousho.tools")

_WRITE_TEXT = (
    "Write down the plan of the work and keep it up to date. Use it for work of three or more steps, as soon as you know"
    " them, and again whenever a step begins, ends or turns out to be needed. Every call replaces the whole list, so"
    " always send all tasks, finished ones too. Keep exactly one task in_progress while you work, and mark it completed"
    " as soon as it is done, not later together with others. Returns the list with its ids and counts."
)
_READ_TEXT = "Read the plan as it stands: all tasks with their ids and statuses, and how many have each status."
_WRITE_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "description": "The whole list in the order of the work; it replaces the one before. Empty clears it.",
            "maxItems": MAX_TODOS,
            "items": {
                "type": "object",
                "properties": {
                    "id": {
                        "type": "string",
                        "description": "The id the list gave this task. Leave it out for a new one.",
                        "maxLength": MAX_ID_CHARS,
                    },
                    "content": {
                        "type": "string",
                        "description": "What is to be done, in a few words that begin with a verb.",
                        "minLength": 1,
                        "maxLength": MAX_CONTENT_CHARS,
                    },
                    "status": {
                        "type": "string",
                        "enum": list(STATUSES),
                        "description": "pending: not begun. in_progress: being done now, at most one. completed: done.",
                    },
                },
                "required": ["content", "status"],
            },
        }
    },
    "required": ["todos"],
}


class TodoStore(Protocol):
    """Where a task list is kept; both methods may be async. They are called on the event loop.

    A mapping with the functions `get` and `set` does as well.
    """

    def get(self) -> Sequence[Todo] | Awaitable[Sequence[Todo] | None] | None:
        """Return the list, or `None` when there is none yet."""
        ...

    def set(self, todos: list[Todo], /) -> Awaitable[None] | None:
        """Keep the list, which is the store's own copy."""
        ...


TodoListener: TypeAlias = "Callable[[list[Todo]], object]"
_Functions: TypeAlias = "tuple[Callable[[], Any], Callable[[list[Todo]], Any]]"


class TodoResult(TypedDict):
    """What both tools return."""

    todos: list[Todo]
    counts: TodoCounts


class _MemoryStore:
    def __init__(self) -> None:
        self._todos: list[Todo] = []

    def get(self) -> list[Todo]:
        return self._todos

    def set(self, todos: list[Todo], /) -> None:
        self._todos = todos


class TodoTools:
    """The two tools of one task list, and the list. Made by `create_todo_tools()`."""

    def __init__(self, store: _Functions, on_change: TodoListener | None) -> None:
        self._get, self._set = store
        self._on_change = on_change
        self._highest = 0
        self._warned = False
        self._turns: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()
        self.tools: list[Tool] = [
            define_tool(
                name=TODO_WRITE,
                description=_WRITE_TEXT,
                input=_WRITE_INPUT,
                execute=self._write,
                timeout_ms=STORE_TIMEOUT_MS,
                display_name="Update the plan",
            ),
            define_tool(
                name=TODO_READ,
                description=_READ_TEXT,
                input={"type": "object", "properties": {}},
                execute=self._read,
                timeout_ms=STORE_TIMEOUT_MS,
                display_name="Read the plan",
                annotations={"readOnlyHint": True},
            ),
        ]
        """`todo_write` and `todo_read`, for `create_agent(tools=...)`."""

    async def get_todos(self) -> list[Todo]:
        """Return the list as it stands. Raises what the store raises, or `LOUSHO_TOOL_EXECUTION_FAILED`."""
        return _checked(await _awaited(self._get()))

    def get_todos_sync(self) -> list[Todo]:
        """Blocking twin of `get_todos()`. A store with an async `get` is refused with `LOUSHO_CONFIG_INVALID`."""
        found = self._get()
        if inspect.isawaitable(found):
            if inspect.iscoroutine(found):
                found.close()
            raise ConfigurationError("This store is async: write `await todos.get_todos()`.", field="store")
        return _checked(found)

    async def _write(self, arguments: Mapping[str, Any], ctx: ToolContext | None = None) -> TodoResult:
        items = cast("list[Mapping[str, Any]]", arguments["todos"])
        issues = problems_of(items)
        if issues:
            raise ToolArgumentsValidationError(TODO_WRITE if ctx is None else ctx.tool_name, issues)
        async with self._turn():
            todos, self._highest = renewed(await self.get_todos(), items, self._highest)
            await _awaited(self._set(copy_of(todos)))
        await self._tell(todos)
        counts = counts_of(todos)
        if ctx is not None:
            ctx.follow_ups.append(
                TodoUpdatedEvent(
                    todos=[dict(todo) for todo in todos], counts=dict(counts), tool_call_id=ctx.tool_call_id
                )
            )
        return {"todos": todos, "counts": counts}

    async def _read(self) -> TodoResult:
        async with self._turn():
            todos = await self.get_todos()
        return {"todos": todos, "counts": counts_of(todos)}

    def _turn(self) -> asyncio.Lock:
        """Return the lock under which one call after the other reads and writes, in the order they came."""
        return self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    async def _tell(self, todos: list[Todo]) -> None:
        if self._on_change is None:
            return
        try:
            async with asyncio.timeout(LISTENER_SECONDS):
                await _awaited(self._on_change(copy_of(todos)))
        except (Exception, SystemExit, asyncio.CancelledError):  # the application's code, and the list is kept
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # it is the call that was given up
                raise
            if not self._warned:
                self._warned = True
                _log.warning("on_change of the todo tools raised; the list is kept all the same.", exc_info=True)

    def __repr__(self) -> str:
        return "TodoTools(['todo_write', 'todo_read'])"


def create_todo_tools(
    *,
    store: TodoStore | Mapping[str, Callable[..., Any]] | None = None,
    on_change: TodoListener | None = None,
    **unknown: object,
) -> TodoTools:
    """Return the tools `todo_write` and `todo_read` over one task list: `create_agent(tools=todos.tools)`.

    The list is kept in memory, or in `store`, an object or a mapping with `get()` and `set(todos)`, sync or async.
    `on_change` is called with the new list after every write; what it raises is logged once and fails nothing. A write
    that succeeds emits `todo.updated`. A list has at most 100 tasks of at most 400 characters each; one that is not
    valid is a tool error of the kind `validation`. Raises `LOUSHO_CONFIG_INVALID`.
    Source: tools page ("Todo tools").
    """
    for key in unknown:
        raise ConfigurationError(f"create_todo_tools: {unknown_key_message(key, ('store', 'on_change'))}.", field=key)
    if on_change is not None and not callable(on_change):
        raise ConfigurationError("create_todo_tools: on_change must be a function of the list.", field="on_change")
    return TodoTools(_functions(_MemoryStore() if store is None else store), on_change)


def _functions(store: object) -> _Functions:
    found: list[object] = []
    for name in ("get", "set"):
        # A mapping's own `get` is not the one that is meant.
        function: object = (
            cast("Mapping[str, object]", store).get(name) if isinstance(store, Mapping) else getattr(store, name, None)
        )
        if not callable(function):
            raise ConfigurationError(
                f"create_todo_tools: the store has no {name}(); it needs get() and set(todos).", field="store"
            )
        found.append(function)
    get, set_ = found
    return cast("Callable[[], Any]", get), cast("Callable[[list[Todo]], Any]", set_)


def _checked(value: object) -> list[Todo]:
    todos = read_stored(value)
    if todos is None:
        raise ToolExecutionError(
            "The todo store returned something else than a list of {id, content, status}.", help_line=False
        )
    return todos


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
