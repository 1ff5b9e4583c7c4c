"""One recorded model call: its request, and the reply, the chunks or the rejection that answered it.

Everything is written in full, so that usage, cost and reasoning are the same in a replay; the vendor's own
`raw_response` is not. Either kind of entry answers either kind of call: what was recorded with `send()` also replays
under `stream()`. Source: testing page ("Errors, streaming and usage").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, assert_never, cast

from lousho.core.json_values import to_json_value
from lousho.core.messages import FunctionCall, ReasoningBlock, ToolCall
from lousho.core.usage import ModelUsage
from lousho.models.chunks import chunks_of
from lousho.models.provider import (
    Failure,
    Finish,
    ModelChunk,
    ModelResponse,
    ReasoningDelta,
    ReasoningEnd,
    ServedBy,
    TextDelta,
    ToolCallChunk,
    finish_reason_of,
)
from lousho.testing.cassettes.failures import failure_of, recorded_failure
from lousho.testing.cassettes.redaction import Redact

JsonObject: TypeAlias = "dict[str, Any]"

_USAGE: tuple[tuple[str, str], ...] = (
    ("inputTokens", "input_tokens"),
    ("outputTokens", "output_tokens"),
    ("totalTokens", "total_tokens"),
    ("cachedInputTokens", "cached_input_tokens"),
    ("reasoningTokens", "reasoning_tokens"),
    ("costUsd", "cost_usd"),
)


class TimedChunk(NamedTuple):
    """A chunk and when it came, in milliseconds after the call began."""

    at_ms: float
    chunk: ModelChunk


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One entry of a cassette, in the form of the file: JSON values with camelCase keys."""

    kind: Literal["generate", "stream"]
    request: JsonObject
    response: JsonObject | None = None
    chunks: list[JsonObject] | None = None
    error: JsonObject | None = None
    """The rejection; of a stream, what ended it after its chunks. `aborted` marks a call that the caller stopped."""

    def to_dict(self) -> JsonObject:
        """Return the entry as it is written."""
        out: JsonObject = {"kind": self.kind, "request": self.request}
        for key, value in (("response", self.response), ("chunks", self.chunks), ("error", self.error)):
            if value is not None:
                out[key] = value
        return out

    @property
    def aborted(self) -> bool:
        """Whether the call ended because its caller stopped it."""
        return self.error is not None and self.error.get("aborted") is True

    def failure(self) -> Exception | None:
        """Return the exception this exchange ends with, if any."""
        return None if self.error is None else failure_of(self.error)

    def whole(self) -> ModelResponse:
        """Return the reply as `generate()` gives it."""
        if self.response is not None:
            return _response_of(self.response)
        return _assembled(chunk for _, chunk in self.pieces())

    def pieces(self) -> Iterable[TimedChunk]:
        """Return the reply as `stream()` gives it."""
        if self.chunks is not None:
            read = [(_number(one.get("atMs")), _chunk_of(one)) for one in self.chunks]
            return [TimedChunk(at_ms, chunk) for at_ms, chunk in read if chunk is not None]
        if self.response is not None:
            return [TimedChunk(0, chunk) for chunk in chunks_of(_response_of(self.response))]
        return []


def recorded_response(response: ModelResponse, redact: Redact) -> JsonObject:
    """Return a whole reply as it is written; `redact` runs on every text in it."""
    out: JsonObject = {"text": _clean(response.text, redact)}
    if response.tool_calls:
        out["toolCalls"] = [_recorded_call(call, redact) for call in response.tool_calls]
    out["finishReason"] = response.finish_reason
    if response.reasoning:
        out["reasoning"] = [_recorded_reasoning(block, redact) for block in response.reasoning]
    return {**out, **_recorded_end(response.usage, response.served_by)}


def recorded_chunks(chunks: Iterable[TimedChunk], redact: Redact, provider: str) -> list[JsonObject]:
    """Return a stream as it is written; `redact` sees each text as a whole, however it was cut into chunks."""
    out: list[JsonObject] = []
    run: list[JsonObject] = []
    for at_ms, chunk in chunks:
        written = _recorded_chunk(chunk, redact, provider)
        written["atMs"] = round(at_ms)
        if run and run[0]["type"] != written["type"]:
            out.extend(_redacted_run(run, redact))
            run = []
        if "text" in written:
            run.append(written)
        else:
            out.append(written)
    return [*out, *_redacted_run(run, redact)]


def recorded_error(error: Exception, redact: Redact, provider: str, *, aborted: bool = False) -> JsonObject:
    """Return a rejection as it is written."""
    out = recorded_failure(error, provider)
    out["message"] = _clean(out["message"], redact)
    return {**out, "aborted": True} if aborted else out


def without_noise(entry: JsonObject) -> JsonObject:
    """Return an entry without what differs each time although nothing changed: chunk times, ids of tool calls."""
    out = dict(entry)
    response = out.get("response")
    if isinstance(response, Mapping):
        record = cast("Mapping[str, Any]", response)
        out["response"] = {**record, "toolCalls": [_without_id(call) for call in record.get("toolCalls") or ()]}
    chunks = out.get("chunks")
    if isinstance(chunks, list):
        out["chunks"] = [
            {
                key: _without_id(value) if key == "toolCall" else value
                for key, value in cast("Mapping[str, Any]", chunk).items()
                if key != "atMs"
            }
            for chunk in cast("list[Any]", chunks)
            if isinstance(chunk, Mapping)
        ]
    return out


def _without_id(call: Any) -> Any:
    if not isinstance(call, dict):
        return call
    return {key: value for key, value in cast("JsonObject", call).items() if key != "id"}


def _clean(text: str, redact: Redact) -> str:
    return redact(cast("str", to_json_value(text)))


def _recorded_call(call: ToolCall, redact: Redact) -> JsonObject:
    wire = call.to_dict()
    wire["function"]["arguments"] = _clean(call.arguments, redact)
    return wire


def _recorded_reasoning(block: ReasoningBlock, redact: Redact) -> JsonObject:
    return {key: _clean(value, redact) for key, value in block.to_dict().items()}


def _recorded_end(usage: ModelUsage | None, served_by: ServedBy | None) -> JsonObject:
    out: JsonObject = {}
    if usage is not None:
        counts = {key: to_json_value(getattr(usage, attribute)) for key, attribute in _USAGE}
        out["usage"] = {key: value for key, value in counts.items() if value is not None}
    if served_by is not None:
        out["servedBy"] = {"provider": served_by.provider}
        if served_by.model is not None:
            out["servedBy"]["model"] = served_by.model
    return out


def _recorded_chunk(chunk: ModelChunk, redact: Redact, provider: str) -> JsonObject:
    out: JsonObject = {"type": chunk.type}
    if isinstance(chunk, (TextDelta, ReasoningDelta)):
        # Redacted together with its neighbours.
        out["text"] = to_json_value(chunk.text)
    elif isinstance(chunk, ReasoningEnd):
        out["block"] = _recorded_reasoning(chunk.block, redact)
    elif isinstance(chunk, ToolCallChunk):
        out["toolCall"] = _recorded_call(chunk.tool_call, redact)
    elif isinstance(chunk, Finish):
        out["finishReason"] = chunk.finish_reason
        out.update(_recorded_end(chunk.usage, chunk.served_by))
    elif isinstance(chunk, Failure):  # pyright: ignore[reportUnnecessaryIsInstance]
        cause = chunk.error
        out["error"] = recorded_error(
            cause if isinstance(cause, Exception) else Exception(str(cause)), redact, provider
        )
    else:
        assert_never(chunk)
    return out


def _redacted_run(run: list[JsonObject], redact: Redact) -> list[JsonObject]:
    """Redact neighbouring deltas as one text; they stay apart unless something was taken out of it."""
    text = "".join(one["text"] for one in run)
    redacted = redact(text)
    if redacted == text or not run:
        return run
    return [{**run[0], "text": redacted, "atMs": run[0]["atMs"]}]


def _response_of(record: Mapping[str, Any]) -> ModelResponse:
    return ModelResponse(
        text=str(record.get("text") or ""),
        tool_calls=tuple(_call_of(call) for call in _objects(record.get("toolCalls"))),
        finish_reason=finish_reason_of(cast("str | None", record.get("finishReason", "stop"))),
        usage=_usage_of(record.get("usage")),
        reasoning=tuple(_reasoning_of(block) for block in _objects(record.get("reasoning"))),
        served_by=_served_by(record.get("servedBy")),
    )


def _chunk_of(record: Mapping[str, Any]) -> ModelChunk | None:
    """Return the chunk a record stands for, or None for a kind this version does not know."""
    kind = record.get("type")
    if kind == "text-delta":
        return TextDelta(str(record.get("text") or ""))
    if kind == "reasoning-delta":
        return ReasoningDelta(str(record.get("text") or ""))
    if kind == "reasoning-end":
        return ReasoningEnd(_reasoning_of(_object(record.get("block")) or record))
    if kind == "tool-call":
        return ToolCallChunk(_call_of(_object(record.get("toolCall")) or record))
    if kind == "error":
        return Failure(failure_of(_object(record.get("error"))))
    if kind != "finish":
        return None
    return Finish(
        finish_reason_of(cast("str | None", record.get("finishReason"))),
        _usage_of(record.get("usage")),
        _served_by(record.get("servedBy")),
    )


def _assembled(chunks: Iterable[ModelChunk]) -> ModelResponse:
    """Return the chunks of a stream as one reply; a stream without an end finished for another reason."""
    response = ModelResponse(finish_reason="other")
    for chunk in chunks:
        if isinstance(chunk, TextDelta):
            response.text += chunk.text
        elif isinstance(chunk, ReasoningEnd):
            response.reasoning = (*response.reasoning, chunk.block)
        elif isinstance(chunk, ToolCallChunk):
            response.tool_calls = (*response.tool_calls, chunk.tool_call)
        elif isinstance(chunk, Finish):
            response.finish_reason = chunk.finish_reason
            response.usage, response.served_by = chunk.usage, chunk.served_by
        elif isinstance(chunk, Failure):
            raise chunk.error
    return response


def _call_of(record: Mapping[str, Any]) -> ToolCall:
    function = _object(record.get("function")) or record
    return ToolCall(
        str(record.get("id") or ""),
        FunctionCall(str(function.get("name") or ""), str(function.get("arguments") or "{}")),
    )


def _reasoning_of(record: Mapping[str, Any]) -> ReasoningBlock:
    return ReasoningBlock(str(record.get("text") or ""), record.get("signature"), record.get("redactedData"))


def _usage_of(value: object) -> ModelUsage | None:
    if not isinstance(value, Mapping):
        return None
    counts = {attribute: cast("Mapping[str, Any]", value).get(key) for key, attribute in _USAGE}
    known = {key: number for key, number in counts.items() if isinstance(number, (int, float))}
    return ModelUsage(**{"input_tokens": 0, "output_tokens": 0, **cast("dict[str, Any]", known)})


def _served_by(value: object) -> ServedBy | None:
    record = _object(value)
    return ServedBy(str(record.get("provider") or ""), record.get("model")) if record else None


def _objects(value: object) -> list[Mapping[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping)]


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _number(value: object) -> float:
    return max(0.0, float(value)) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0
