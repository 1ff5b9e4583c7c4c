"""`mock/demo`: a model without a model. It needs no key and no network, and it really drives an agent's tools."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from lousho.core.messages import FunctionCall, Message, ToolCall, text_of
from lousho.models.chunks import chunks_of
from lousho.models.demo.answers import answer_text, question_text, structured_answer
from lousho.models.demo.conversation import Ask, Call, Conversation
from lousho.models.demo.requests import forced_task
from lousho.models.demo.schema import Field
from lousho.models.demo.views import ToolView, view_of, views_of
from lousho.models.provider import ModelChunk, ModelRequest, ModelResponse, ToolDefinition

ASK_TOOL = "ask_question"
"""The built-in tool that puts a question to the user; its own schema says what it takes."""


_RECENT = 10
_AT_ONCE = 20_000
"""Letters times tools that are read at once; more is read in a thread, so that the event loop goes on."""


class DemoProvider:
    """A rule-based provider that calls an agent's tools from the user's words and the tools' schemas.

    It is not a language model and says so. The same request and the same day give the same reply. It reports no usage,
    because it uses none. `clock` returns the local time that words such as "tomorrow" are seen from.
    Source: command-line page (the model used when none is named).
    """

    name = "mock"
    default_model = "demo"

    def __init__(self, *, clock: Callable[[], datetime] | None = None) -> None:
        self._clock = clock or _local_now

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Return the next turn: tool calls, a question, or an answer. Raises the signal's reason when aborted."""
        if request.signal is not None:
            request.signal.throw_if_aborted()
        size = sum(len(text_of(message)) for message in request.messages[-_RECENT:]) * (1 + len(request.tools))
        if size <= _AT_ONCE:
            return respond(request, self._clock())
        import asyncio

        return await asyncio.to_thread(respond, request, self._clock())

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Return the turn word by word, then its tool calls, then the finish."""
        response = await self.generate(request)
        for chunk in chunks_of(response, by_words=True):
            if request.signal is not None:
                request.signal.throw_if_aborted()
            yield chunk

    def supports_tools(self, model: str | None = None) -> bool:
        """Return `True`."""
        return True

    def supports_streaming(self, model: str | None = None) -> bool:
        """Return `True`."""
        return True

    async def get_models(self) -> list[str]:
        """Return the one model there is."""
        return [self.default_model]


def _local_now() -> datetime:
    return datetime.now().astimezone().replace(tzinfo=None)


def respond(request: ModelRequest, now: datetime) -> ModelResponse:
    """Return the demo model's turn for a request, seen from `now` (local time without a zone)."""
    offered, ask_tool = _offered(request)
    conversation = Conversation(offered, now, ask_tool=ask_tool.function.name if ask_tool else None)
    conversation.replay(request.messages)
    _force(conversation, request, offered)
    decision = conversation.decide()
    if isinstance(decision, Call):
        calls = [(task.tool.name, task.arguments.call()) for task in decision.tasks]
        return _calling(request.messages, calls, "")
    if isinstance(decision, Ask):
        said = question_text(conversation, decision)
        if ask_tool is not None and not conversation.declined:
            arguments = _question_arguments(ask_tool, said, decision)
            if arguments is not None:
                return _calling(request.messages, [(ask_tool.function.name, arguments)], "")
        return ModelResponse(text=said)
    said = answer_text(conversation, request.messages, decision, tools_off=request.tool_choice == "none")
    schema = _wanted_schema(request)
    return ModelResponse(text=said if schema is None else structured_answer(schema, conversation, said))


def _offered(request: ModelRequest) -> tuple[list[ToolView], ToolDefinition | None]:
    if request.tool_choice == "none":
        return [], None
    ask_tool = next((tool for tool in request.tools if tool.function.name == ASK_TOOL), None)
    return views_of([tool for tool in request.tools if tool is not ask_tool]), ask_tool


def _force(conversation: Conversation, request: ModelRequest, tools: Sequence[ToolView]) -> None:
    """Make the first call of a turn one of the tools that the request insists on."""
    choice = request.tool_choice
    if not tools or choice in (None, "auto", "none") or conversation.calls_made:
        return
    wanted = conversation.tasks[:1] if choice == "required" else []
    if isinstance(choice, Mapping):
        named = {str(part) for part in _strings(choice)}
        view = next((tool for tool in tools if tool.name in named), None)
        wanted = [task for task in conversation.tasks if task.tool is view]
        if not wanted and view is not None:
            wanted = [forced_task(conversation.message, view, conversation.now)]
    if not wanted and choice == "required":
        evidence = conversation.evidence
        closest = evidence.closest(0, len(evidence.reading.units)) if evidence is not None else None
        wanted = [forced_task(conversation.message, closest or tools[0], conversation.now)]
    if wanted:
        for task in wanted:
            task.candidates = []
            task.arguments.fields = ()
            task.arguments.complaints.clear()
        conversation.tasks = wanted


def _strings(value: object) -> list[str]:
    if isinstance(value, Mapping):
        return [text for part in cast("Mapping[str, object]", value).values() for text in _strings(part)]
    return [value] if isinstance(value, str) else []


def _calling(messages: Sequence[Message], calls: Sequence[tuple[str, dict[str, Any]]], said: str) -> ModelResponse:
    """Return a turn of calls. Their ids count on from the transcript's, so that they repeat with it."""
    made = sum(len(message.tool_calls) for message in messages)
    return ModelResponse(
        text=said,
        tool_calls=tuple(
            ToolCall(f"demo-{made + number}", FunctionCall(name, json.dumps(arguments, ensure_ascii=False)))
            for number, (name, arguments) in enumerate(calls, 1)
        ),
        finish_reason="tool_calls",
    )


def _question_arguments(tool: ToolDefinition, said: str, ask: Ask) -> dict[str, Any] | None:
    """Return the arguments that put a question through the agent's own tool, `None` when its schema takes none."""
    view = view_of(tool.function.name, tool.function.description, tool.function.parameters)
    field = next((leaf for leaf in view.leaves if leaf.kind == "string"), None)
    if field is None or len(field.path) != 1:
        return None
    arguments: dict[str, Any] = {field.path[-1]: said}
    listed = next((leaf for leaf in view.leaves if leaf.kind == "list" and len(leaf.path) == 1), None)
    options = _options(ask)
    if listed is not None and 1 < len(options) <= 50:
        arguments[listed.path[-1]] = options
    return arguments


def _options(ask: Ask) -> list[str]:
    if ask.task.candidates:
        return [match.tool.name for match in ask.task.candidates]
    if len(ask.fields) != 1:
        return []
    leaf: Field = ask.fields[0]
    return ["yes", "no"] if leaf.kind == "boolean" else [str(choice) for choice in leaf.choices]


def _wanted_schema(request: ModelRequest) -> Mapping[str, Any] | None:
    wanted = request.response_format
    if wanted is None or "json" not in str(wanted.get("type", "")):
        return None
    schema = wanted.get("schema")
    return cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
