"""What the chat needs of an agent, and nothing more: any object with these few methods can be talked to.

Kept as protocols so that the loop provably reads only the public event stream. Source: CLI page, "lousho chat".
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

from lousho.core.events import AgentEvent
from lousho.core.messages import Message


class ChatRun(Protocol):
    """A running turn: its events, and a way to stop it."""

    def __aiter__(self) -> AsyncIterator[AgentEvent]: ...

    @property
    def result(self) -> Awaitable[Any]:
        """The result of the run, or the exception it failed with."""
        ...

    def abort(self, reason: object = None) -> None:
        """Ask the run to stop; it ends with `finish_reason == 'aborted'`."""
        ...


class ChatSession(Protocol):
    """One conversation."""

    @property
    def id(self) -> str: ...

    def stream(self, input: str) -> ChatRun:  # noqa: A002 - the public name of the argument
        """Start a turn."""
        ...


class ChatApprovals(Protocol):
    """Decides what waits for a person."""

    def stream_resolve(self, *, id: str, approved: bool, note: str | None = None) -> ChatRun: ...  # noqa: A002

    def stream_answer(self, *, id: str, answer: str) -> ChatRun: ...  # noqa: A002


class ChatAgent(Protocol):
    """An agent that can be talked to."""

    @property
    def approvals(self) -> ChatApprovals: ...

    def session(self, id: str | None = None) -> ChatSession: ...  # noqa: A002

    async def close(self) -> None: ...


CreateAgent: TypeAlias = Callable[[str | None], "ChatAgent | Awaitable[ChatAgent]"]
"""Builds the agent; called with None at first, and with `provider/model` for `/model`."""

Transcript: TypeAlias = Sequence[Message]
