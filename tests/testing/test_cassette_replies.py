"""What comes back in a replay: replies, streams, usage, reasoning and rejections, as they were live."""

from __future__ import annotations

import asyncio
import builtins
import json
import selectors
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

from lousho.core.errors import (
    CompactedError,
    CompactedLLMProviderError,
    LLMProviderError,
    RateLimitError,
    SDKError,
    TimeoutError,
    bare_message,
)
from lousho.core.messages import FunctionCall, ReasoningBlock, ToolCall
from lousho.core.usage import ModelUsage
from lousho.models.errors import compact_provider_error
from lousho.models.provider import (
    Failure,
    Finish,
    ModelResponse,
    ReasoningDelta,
    ReasoningEnd,
    ServedBy,
    TextDelta,
    ToolCallChunk,
)
from lousho.testing import mock_model, read_cassette, record_replay

USAGE = ModelUsage(
    input_tokens=120, output_tokens=30, total_tokens=155, cached_input_tokens=100, reasoning_tokens=12, cost_usd=0.00123
)
CALL = ToolCall("toolu_1", FunctionCall("get_weather", '{ "city":"Paris" }'))
THOUGHTS = (ReasoningBlock("Paris, then.", "c2lnbmVk"), ReasoningBlock("", None, "b3BhcXVl"))
CHUNKS = [
    ReasoningDelta("Paris, "),
    ReasoningDelta("then."),
    ReasoningEnd(THOUGHTS[0]),
    ReasoningEnd(THOUGHTS[1]),
    TextDelta("It is "),
    TextDelta("21 °C."),
    ToolCallChunk(CALL),
    Finish("tool_calls", USAGE, ServedBy("vendor", "model-1")),
]
REPLY = ModelResponse(
    text="It is 21 °C.",
    tool_calls=(CALL,),
    finish_reason="tool_calls",
    usage=USAGE,
    reasoning=THOUGHTS,
    served_by=ServedBy("vendor", "model-1"),
)


async def collected(stream: Any) -> list[Any]:
    return [chunk async for chunk in stream]


class AuthenticationError(Exception):
    """A foreign client's error."""

    status_code = 401


class TooLong(Exception):
    """A foreign error that is classified by its body alone."""

    status_code = 400
    body: ClassVar = {"error": {"code": "context_length_exceeded"}}


class Busy(Exception):
    """A foreign error with a wait in its headers."""

    status_code = 429
    headers: ClassVar = {"Retry-After": "3"}


class GatewayError(LLMProviderError):
    """A subclass of ours that a replay does not know."""


ERRORS: list[Exception] = [
    AuthenticationError("Incorrect API key provided"),
    TooLong("no"),
    Busy("slow down"),
    GatewayError("bad gateway", provider="vendor", status_code=502),
    LLMProviderError("refused", provider="vendor", status_code=400),
    CompactedLLMProviderError(
        CompactedError("overloaded", "rate-limit", True, 429, 1500, "vendor"),
    ),
    RateLimitError("throttled", retry_after_ms=250),
    TimeoutError("no answer", "generate", 5000),
    builtins.TimeoutError("late"),
    SDKError("no such media type", code="LOUSHO_UNSUPPORTED_CONTENT"),
    httpx.ReadTimeout("read timed out"),
    httpx.ConnectError("refused"),
    ConnectionRefusedError(111, "Connection refused"),
    json.JSONDecodeError("Expecting value", "x", 0),
    KeyError("choices"),
    RuntimeError("rate limit reached"),
    OSError("disk"),
]


@pytest.mark.spec("TEST-20")
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_a_rejection_is_raised_again_with_its_name_and_message(
    error: Exception, ask: Any, vendor: Any, cassette: Path
):
    recording = record_replay(vendor([error]), cassette=cassette, mode="record")
    with pytest.raises(type(error)) as live:
        await recording.generate(ask("hi"))
    assert live.value is error

    with pytest.raises(Exception) as caught:
        await record_replay(cassette=cassette).generate(ask("hi"))
    replayed = caught.value
    assert (type(replayed).__name__, str(replayed)) == (type(error).__name__, str(error))
    assert bare_message(replayed) == bare_message(error)
    # What retry and fallback see of the two is the same.
    compacted = [compact_provider_error(one, "vendor") for one in (error, replayed)]
    assert all(isinstance(one, CompactedLLMProviderError) for one in compacted)
    assert compacted[0].compacted == compacted[1].compacted  # type: ignore[attr-defined]
    assert compacted[0].code == compacted[1].code  # type: ignore[attr-defined]


@pytest.mark.spec("TEST-20")
async def test_an_error_of_ours_is_raised_again_as_its_class(ask: Any, cassette: Path):
    error = LLMProviderError("down", provider="vendor", status_code=503)
    recording = record_replay(mock_model([{"error": error}, "up"]), cassette=cassette, mode="record")
    with pytest.raises(LLMProviderError):
        await recording.generate(ask("hi"))
    await recording.generate(ask("hi"))
    replay = record_replay(cassette=cassette)
    with pytest.raises(LLMProviderError) as caught:
        await replay.generate(ask("hi"))
    assert type(caught.value) is LLMProviderError
    assert (caught.value.provider, caught.value.status_code) == ("vendor", 503)
    assert (await replay.generate(ask("hi"))).text == "up"


@pytest.mark.spec("TEST-20", "TEST-21")
async def test_a_stream_that_breaks_is_replayed_up_to_the_break(ask: Any, vendor: Any, cassette: Path):
    script = [[TextDelta("It "), AuthenticationError("expired")], [TextDelta("a"), Failure(RuntimeError("in a chunk"))]]
    recording = record_replay(vendor(script), cassette=cassette, mode="record")
    for provider in (recording, record_replay(cassette=cassette)):
        seen: list[Any] = []
        with pytest.raises(Exception, match="expired") as caught:
            async for chunk in provider.stream(ask("hi")):
                seen.append(chunk)
        assert (type(caught.value).__name__, seen) == ("AuthenticationError", [TextDelta("It ")])
        text, failure = await collected(provider.stream(ask("hi")))
        assert (text, type(failure.error), str(failure.error)) == (TextDelta("a"), RuntimeError, "in a chunk")


@pytest.mark.spec("TEST-21")
async def test_a_stream_is_replayed_chunk_by_chunk(ask: Any, vendor: Any, cassette: Path):
    recording = record_replay(vendor([CHUNKS]), cassette=cassette, mode="record")
    assert await collected(recording.stream(ask("hi"))) == CHUNKS
    assert await collected(record_replay(cassette=cassette).stream(ask("hi"))) == CHUNKS


@pytest.mark.spec("TEST-21")
async def test_while_recording_the_stream_is_read_to_its_end_first(ask: Any, vendor: Any, cassette: Path):
    read: list[str] = []

    async def last(_: Any) -> None:
        read.append("the end")

    recording = record_replay(vendor([[TextDelta("a"), TextDelta("b"), last]]), cassette=cassette, mode="record")
    stream = recording.stream(ask("hi"))
    assert (await anext(stream), read) == (TextDelta("a"), ["the end"])
    await stream.aclose()  # type: ignore[attr-defined]
    assert await collected(record_replay(cassette=cassette).stream(ask("hi"))) == [TextDelta("a"), TextDelta("b")]


class VirtualClock(asyncio.SelectorEventLoop):
    """An event loop whose time stands still and jumps to the next timer when nothing else is to be done."""

    def __init__(self) -> None:
        super().__init__(selectors.SelectSelector())
        self.now = 0.0
        inner = self._selector.select  # type: ignore[attr-defined]

        def select(timeout: float | None = None) -> Any:
            if timeout:
                self.now += timeout
            return inner(0 if timeout else timeout)

        self._selector.select = select  # type: ignore[attr-defined]

    def time(self) -> float:
        return self.now


@pytest.mark.spec("TEST-21")
def test_the_gaps_between_chunks_are_kept_only_when_asked(ask: Any, vendor: Any, cassette: Path):
    script = [60, TextDelta("a"), 120, TextDelta("b"), Finish("stop")]

    async def timed(provider: Any) -> list[int]:
        loop = asyncio.get_running_loop()
        times = [loop.time()]
        async for _ in provider.stream(ask("hi")):
            times.append(loop.time())
        return [round((after - before) * 1000) for before, after in pairwise(times)]

    async def main() -> None:
        await collected(record_replay(vendor([script]), cassette=cassette, mode="record").stream(ask("hi")))
        assert await timed(record_replay(cassette=cassette, replay_timing=True)) == [60, 120, 0]
        assert await timed(record_replay(cassette=cassette)) == [0, 0, 0]

    with asyncio.Runner(loop_factory=VirtualClock) as runner:
        runner.run(main())


async def test_a_timed_replay_can_be_stopped(ask: Any, cassette: Path):
    from lousho.core.cancel import CancelSignal

    entry = {
        "kind": "stream",
        "request": {"messages": [{"role": "user", "content": "hi"}]},
        "chunks": [{"type": "text-delta", "text": "a", "atMs": 1e300}],
    }
    cassette.parent.mkdir()
    cassette.write_text(json.dumps({"version": 1, "entries": [entry]}), encoding="utf-8")
    signal = CancelSignal()
    replay = record_replay(cassette=cassette, replay_timing=True)
    task = asyncio.create_task(collected(replay.stream(ask("hi", signal=signal))))
    await asyncio.sleep(0)
    signal.abort("enough")
    with pytest.raises(Exception, match="enough"):
        await asyncio.wait_for(task, 5)


@pytest.mark.spec("TEST-22")
async def test_usage_cost_and_reasoning_are_the_same_in_a_replay(ask: Any, vendor: Any, cassette: Path):
    recording = record_replay(vendor([REPLY, CHUNKS]), cassette=cassette, mode="record")
    live = await recording.generate(ask("hi"))
    streamed = await collected(recording.stream(ask("hi")))
    replay = record_replay(cassette=cassette)
    assert await replay.generate(ask("hi")) == live == REPLY
    assert await collected(replay.stream(ask("hi"))) == streamed


@pytest.mark.spec("TEST-22")
async def test_a_reply_without_usage_has_none_in_the_replay(ask: Any, vendor: Any, cassette: Path):
    replies = [ModelResponse(text="a"), ModelResponse(text="b", usage=ModelUsage(input_tokens=1, output_tokens=2))]
    recording = record_replay(vendor(replies), cassette=cassette, mode="record")
    for _ in replies:
        await recording.generate(ask("hi"))
    replay = record_replay(cassette=cassette)
    assert [(await replay.generate(ask("hi"))).usage for _ in replies] == [None, replies[1].usage]


@pytest.mark.spec("TEST-22")
async def test_an_older_cassette_without_reasoning_or_the_whole_usage_replays(ask: Any, vendor: Any, cassette: Path):
    await record_replay(vendor([REPLY]), cassette=cassette, mode="record").generate(ask("hi"))
    document = json.loads(cassette.read_text(encoding="utf-8"))
    del document["entries"][0]["response"]["reasoning"]
    cassette.write_text(json.dumps(document), encoding="utf-8")
    reply = await record_replay(cassette=cassette).generate(ask("hi"))
    assert (reply.text, reply.usage, reply.reasoning) == (REPLY.text, USAGE, ())

    usage = document["entries"][0]["response"]["usage"]
    document["entries"][0]["response"]["usage"] = {key: usage[key] for key in ("inputTokens", "outputTokens")}
    cassette.write_text(json.dumps(document), encoding="utf-8")
    reply = await record_replay(cassette=cassette).generate(ask("hi"))
    assert (reply.text, reply.usage) == (REPLY.text, ModelUsage(input_tokens=120, output_tokens=30))


async def test_what_one_way_of_calling_recorded_the_other_replays(ask: Any, vendor: Any, cassette: Path):
    recording = record_replay(vendor([REPLY, CHUNKS]), cassette=cassette, mode="record")
    await recording.generate(ask("whole"))
    await collected(recording.stream(ask("chunks")))
    replay = record_replay(cassette=cassette)
    chunks = await collected(replay.stream(ask("whole")))
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta)) == REPLY.text
    assert chunks[-2:] == CHUNKS[-2:]
    assert await replay.generate(ask("chunks")) == REPLY


async def test_the_raw_reply_is_not_kept(ask: Any, vendor: Any, cassette: Path):
    reply = ModelResponse(text="a", raw_response={"secret-header": "x"})
    recording = record_replay(vendor([reply]), cassette=cassette, mode="record")
    assert (await recording.generate(ask("hi"))).raw_response == {"secret-header": "x"}
    assert (await record_replay(cassette=cassette).generate(ask("hi"))).raw_response is None
    assert "secret-header" not in cassette.read_text(encoding="utf-8")


async def test_text_that_is_no_valid_unicode_is_recorded_readably(ask: Any, vendor: Any, cassette: Path):
    recording = record_replay(vendor(["half \ud83d a pair", "\u2028 \x00 ok"]), cassette=cassette, mode="record")
    await recording.generate(ask("\udc00"))
    await recording.generate(ask("hi"))
    assert [entry.response for entry in read_cassette(cassette).entries] == [
        {"text": "half \ufffd a pair", "finishReason": "stop"},
        {"text": "\u2028 \x00 ok", "finishReason": "stop"},
    ]
    replay = record_replay(cassette=cassette)
    assert (await replay.generate(ask("\udc00"))).text == "half \ufffd a pair"
    assert (await replay.generate(ask("hi"))).text == "\u2028 \x00 ok"


async def test_the_provider_shows_itself_as_the_recorded_one(ask: Any, vendor: Any, cassette: Path):
    recording = record_replay(
        vendor(["x"], name="openai", default_model="gpt-4.1-mini"), cassette=cassette, mode="record"
    )
    await recording.generate(ask("hi"))
    assert (recording.name, recording.default_model, await recording.get_models()) == (
        "openai",
        "gpt-4.1-mini",
        ["model-1"],
    )
    replay = record_replay(cassette=cassette)
    assert (replay.name, replay.default_model, await replay.get_models()) == ("openai", "gpt-4.1-mini", [])
    assert replay.supports_streaming()
    assert replay.supports_tools()
    await replay.save()
    missing = record_replay(cassette=cassette.with_name("none.json"))
    assert (missing.name, missing.default_model) == ("record-replay", None)
