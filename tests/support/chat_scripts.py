"""Words that the tests of the chat share: model turns that call tools, and what came of a chat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


def call(name: str, **args: Any) -> dict[str, Any]:
    """A model turn that calls one tool."""
    return {"tool_calls": [{"name": name, "args": args}]}


def calls(*each: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A model turn that calls several tools."""
    return {"tool_calls": [{"name": name, "args": args} for name, args in each]}


@dataclass
class Talked:
    """What came of a chat."""

    code: int
    text: str
    """What was written to the output."""
    talk: str
    """What was written beside it, where the two were apart."""
    model: Any
    """The scripted model, with the requests it got."""

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def last_result(self) -> str:
        """The result of the last tool call, as the model read it."""
        results = [message for message in self.model.last_call.messages if message.role == "tool"]
        return str(results[-1].content)


class Talk(Protocol):
    async def __call__(
        self,
        script: Sequence[Any],
        lines: Iterable[str],
        *,
        apart: bool = False,
        session_id: str | None = None,
        create: Callable[[str | None], Any] | None = None,
        **options: Any,
    ) -> Talked: ...
