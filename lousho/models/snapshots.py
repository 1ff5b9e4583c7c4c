"""What a scripted model remembers of a request: a picture that nothing can change afterwards.

A test asserts on what was sent at the time of a call, so a snapshot must not share anything mutable with the run.
Messages are immutable already; mappings and lists are copied into twins that refuse to be written. Source: testing page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn, cast

from lousho.core.cancel import CancelSignal
from lousho.core.messages import Message
from lousho.models.provider import FunctionDefinition, ModelRequest, ToolChoice, ToolDefinition


class FrozenDict(dict[str, Any]):
    """A dictionary that is equal to the one it was made from and raises `TypeError` when written."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a recorded request cannot be changed")

    __setitem__ = __delitem__ = update = setdefault = pop = popitem = clear = __ior__ = _refuse  # pyright: ignore[reportAssignmentType]

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: object) -> FrozenDict:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenDict, (dict(self),))


class FrozenList(list[Any]):
    """A list that is equal to the one it was made from and raises `TypeError` when written."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a recorded request cannot be changed")

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse  # pyright: ignore[reportAssignmentType]
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse  # pyright: ignore[reportAssignmentType]

    def __copy__(self) -> FrozenList:
        return self

    def __deepcopy__(self, memo: object) -> FrozenList:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenList, (list(self),))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """One recorded request: the fields of `ModelRequest` as they were sent; writing to it raises.

    `messages` and `tools` are tuples. `signal` is the run's own, so that a function turn can wait for it.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    tool_choice: ToolChoice | None = None
    response_format: Mapping[str, Any] | None = None
    reasoning: Mapping[str, Any] | None = None
    signal: CancelSignal | None = None


class Recorder:
    """Takes the snapshots of one model.

    Tools rarely change between two calls of a run, and their schemas are the costly part: a copy is used again while
    its source still says the same.
    """

    __slots__ = ("_tools",)

    def __init__(self) -> None:
        self._tools: dict[int, tuple[ToolDefinition, ToolDefinition]] = {}

    def snapshot(self, request: ModelRequest) -> RecordedRequest:
        """Return the picture of `request`."""
        return RecordedRequest(
            messages=tuple([_message(message) for message in request.messages]),
            tools=tuple([self._tool(tool) for tool in request.tools]),
            model=request.model,
            max_tokens=request.max_tokens,
            temperature=request.temperature,
            top_p=request.top_p,
            frequency_penalty=request.frequency_penalty,
            presence_penalty=request.presence_penalty,
            stop=None if request.stop is None else tuple(request.stop),
            seed=request.seed,
            tool_choice=request.tool_choice if isinstance(request.tool_choice, str) else freeze(request.tool_choice),
            response_format=freeze(request.response_format),
            reasoning=freeze(request.reasoning),
            signal=request.signal,
        )

    def _tool(self, tool: ToolDefinition) -> ToolDefinition:
        known = self._tools.get(id(tool))
        if known is not None and known[0] is tool and known[1] == tool:
            return known[1]
        function = tool.function
        copy = ToolDefinition(FunctionDefinition(function.name, function.description, freeze(function.parameters)))
        self._tools[id(tool)] = (tool, copy)
        return copy


def freeze(value: Any) -> Any:
    """Return a copy of a JSON-like value that cannot be written, at any depth. Other objects stay what they are."""
    if isinstance(value, Mapping):
        return FrozenDict({key: freeze(item) for key, item in cast("Mapping[str, Any]", value).items()})
    if isinstance(value, list):
        return FrozenList([freeze(item) for item in cast("list[Any]", value)])
    if isinstance(value, tuple):
        return tuple(freeze(item) for item in cast("tuple[Any, ...]", value))
    if isinstance(value, bytearray):
        return bytes(value)
    return value


def _message(message: Message) -> Message:
    if message.metadata is None and isinstance(message.content, (str, tuple)):  # pyright: ignore[reportUnnecessaryIsInstance]
        return message
    content = message.content if isinstance(message.content, str) else tuple(message.content)
    return replace(message, content=content, metadata=freeze(message.metadata))
