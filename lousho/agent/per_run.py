"""Options that are functions of the run: what they are told, when they are called, what becomes of their failure.

They are called once a run, in the order model, instructions, tools, before the first model call; an abort of the run does
not wait for one that hangs. Source: api-overview page ("Dynamic config").
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from lousho.core.cancel import CancelSignal
from lousho.core.errors import ConfigurationError, bare_message, never_wrap
from lousho.core.events import error_name
from lousho.core.messages import Message
from lousho.core.redact import redact
from lousho.models.resolve import keys_in_environment
from lousho.runtime.arguments import copied
from lousho.runtime.racing import Aborted, unless_aborted
from lousho.tools.definition import Tool

if TYPE_CHECKING:
    from lousho.runtime.state import RunState

T = TypeVar("T")
_MOST_SHOWN_CHARS = 500
_MOST_READ_CHARS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfigContext:
    """What a function given as `model`, `instructions` or `tools` is told of the run. It is a copy.

    Source: api-overview page ("Dynamic config").
    """

    input: str | list[Message]
    """What the run was asked: the text, or the messages where it was not one text."""
    session_id: str | None = None
    """The session of the turn, or `None` outside of one."""
    metadata: Mapping[str, Any] | None = None
    """The call's `metadata`, or `None` when it had none."""
    principal: Mapping[str, Any] | None = None
    """Who calls, as far as somebody verified it, or `None`."""


PerRun: TypeAlias = T | Callable[[RunConfigContext], T | Awaitable[T]]
"""A value, or a function of the run, sync or async, that gives it."""


def is_per_run(value: object) -> bool:
    """Whether an option was given as a function of the run. A tool, which can be called too, is none."""
    return callable(value) and not isinstance(value, (type, Tool, Mapping))


def check_function(field: str, function: Callable[..., Any]) -> None:
    """Refuse a function that could not be called with the run's context. Raises `LOUSHO_CONFIG_INVALID`."""
    target = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    if inspect.isasyncgenfunction(target) or inspect.isgeneratorfunction(target):
        raise ConfigurationError(
            f"create_agent: the function for {field!r} is a generator; it must return the value.", field=field
        )
    try:
        inspect.signature(function).bind(None)
    except ValueError:  # a built-in that does not tell its parameters
        return
    except TypeError as error:
        raise ConfigurationError(
            f"create_agent: the function for {field!r} must take one argument, the RunConfigContext of the run: {error}.",
            field=field,
        ) from error


def context_of(state: RunState) -> RunConfigContext:
    """Return a new context of the run, also of one that was saved and goes on."""
    given = state.input
    if given is None:  # saved by an agent that had no functions
        given = _asked(state)
    only = given[0] if len(given) == 1 else None
    is_text = only is not None and only.role == "user" and isinstance(only.content, str)
    return RunConfigContext(
        input=str(only.content) if only is not None and is_text else [_copied_message(message) for message in given],
        session_id=state.session_id,
        metadata=copied(state.metadata),
    )


async def value_of(field: str, function: Callable[..., Any], state: RunState, signal: CancelSignal) -> Any:
    """Return what an option's function gives for this run.

    Raises `LOUSHO_CONFIG_RESOLVER_FAILED` when it raises, `Aborted` as soon as `signal` fires.
    """
    try:
        return await unless_aborted(_called(function, context_of(state)), signal)
    except (Aborted, asyncio.CancelledError):
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, Exception) and never_wrap(error):
            raise
        raise resolver_failed(field, error) from error


def resolver_failed(field: str, error: BaseException) -> ConfigurationError:
    """Return the error of a function that raised, or that returned what the option cannot be."""
    shown = redact(bare_message(error)[:_MOST_READ_CHARS], keys_in_environment())[:_MOST_SHOWN_CHARS]
    return ConfigurationError(
        f"The function for {field!r} failed: {error_name(error)}: {shown}",
        field=field,
        code="LOUSHO_CONFIG_RESOLVER_FAILED",
        cause=error,
    )


async def _called(function: Callable[..., Any], context: RunConfigContext) -> Any:
    value = function(context)
    if inspect.isawaitable(value):
        value = await value
    if inspect.iscoroutine(value):
        value.close()  # an unusable value like any other, which nobody will await
    return value


def _asked(state: RunState) -> list[Message]:
    """Return the messages of the turn up to the first answer: what it was asked, as far as can still be told."""
    asked: list[Message] = []
    for message in state.new_messages:
        if message.role == "assistant":
            break
        asked.append(message)
    return asked


def _copied_message(message: Message) -> Message:
    if message.metadata is None:
        return message
    return replace(message, metadata=copied(dict(message.metadata)))
