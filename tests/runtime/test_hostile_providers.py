"""Providers that break their contract: the run ends with a coded error, or with what was meant, and never half."""

from __future__ import annotations

import asyncio
import itertools
import math
from types import SimpleNamespace
from typing import Any

import pytest
from hostile import ANSWER, asks, chunks, play, told, within, wrong
from runs import ChunkProvider, of_type, types

from lousho import CancelSignal, ModelResponse, ReasoningBlock, SDKError, create_agent, tool
from lousho.core.usage import ModelUsage
from lousho.models.provider import Failure, Finish, ReasoningDelta, ReasoningEnd, ServedBy, TextDelta, ToolCallChunk


class Odd(BaseException):
    """Neither an `Exception` nor one of Python's own exits."""


class Mute(Exception):
    """Cannot be shown."""

    def __str__(self) -> str:
        raise ValueError("no text for you")

    __repr__ = __str__


@tool
async def ping() -> str:
    """Answer."""
    return "pong"


def raising(error: BaseException) -> ChunkProvider:
    async def turn(_):
        yield TextDelta("half ")
        raise error

    return ChunkProvider(turn)


@pytest.mark.parametrize(
    "items",
    [
        pytest.param([5], id="a number"),
        pytest.param([None], id="None"),
        pytest.param([{"type": "text-delta", "text": "x"}], id="a chunk in wire form"),
        pytest.param([SimpleNamespace(error="x")], id="an object with an error that is none"),
        pytest.param([Failure(wrong("x"))], id="a failure that is no exception"),
        pytest.param([TextDelta(wrong(5)), Finish("stop")], id="text that is a number"),
        pytest.param([TextDelta(wrong(b"x")), Finish("stop")], id="text that is bytes"),
        pytest.param([ToolCallChunk(wrong(None)), Finish("tool_calls")], id="no call"),
        pytest.param([ToolCallChunk(wrong({"id": "a"})), Finish("tool_calls")], id="a call in wire form"),
        pytest.param([asks(None), Finish("tool_calls")], id="a call without a name"),
        pytest.param([asks("ping", 7), Finish("tool_calls")], id="arguments that are a number"),
        pytest.param([ReasoningEnd(wrong("hm")), Finish("stop")], id="reasoning that is text"),
        pytest.param([TextDelta("x")], id="no finish"),
        pytest.param([], id="nothing at all"),
        pytest.param([asks("ping")], id="a call and no finish"),
    ],
)
async def test_a_stream_that_makes_no_sense_is_a_coded_error_and_nothing_of_it_runs(items):
    ran: list[str] = []

    @tool
    async def ping() -> str:
        """Answer."""
        ran.append("ping")
        return "pong"

    played = await play(create_agent(provider=chunks(items), tools=[ping]).stream("go"))
    assert isinstance(played.error, SDKError)
    assert played.error.code == "LOUSHO_PROVIDER_REQUEST_FAILED"
    assert "attribute" not in played.error.detail
    assert ran == []
    assert types(played.events)[-3:] == ["step.done", "error", "run.done"]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(asyncio.CancelledError(), id="CancelledError"),
        pytest.param(Mute(), id="an exception without text"),
        pytest.param(StopAsyncIteration("x"), id="StopAsyncIteration"),
        pytest.param(ExceptionGroup("several", [ExceptionGroup("inner", [OSError("down")])]), id="ExceptionGroup"),
        pytest.param(RecursionError("deep"), id="RecursionError"),
        pytest.param(MemoryError(), id="MemoryError"),
    ],
)
async def test_whatever_a_provider_raises_is_a_provider_error(error):
    played = await play(create_agent(provider=raising(error)).stream("go"))
    assert isinstance(played.error, SDKError)
    assert played.error.code == "LOUSHO_PROVIDER_REQUEST_FAILED"
    if isinstance(error, ExceptionGroup):
        assert "down" in played.error.detail


@pytest.mark.parametrize("error", [Odd("odd"), GeneratorExit()], ids=lambda error: type(error).__name__)
async def test_an_exit_that_is_no_exception_passes_through_a_stream_that_is_whole(error):
    played = await play(create_agent(provider=raising(error)).stream("go"))
    assert type(played.error) is type(error)
    assert types(played.events)[-3:] == ["step.done", "error", "run.done"]


async def test_a_provider_that_cancels_its_own_task_does_not_cancel_the_run():
    async def turn(_):
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        yield TextDelta("never")

    agent = create_agent(provider=ChunkProvider(turn))
    with pytest.raises(SDKError) as caught:
        await within(agent.send("go"))
    assert caught.value.code == "LOUSHO_PROVIDER_REQUEST_FAILED"


async def test_chunks_after_the_end_and_a_second_end_lose_nothing():
    items = [
        TextDelta("one "),
        Finish("stop", ModelUsage(input_tokens=3, output_tokens=2)),
        TextDelta("two"),
        asks("ping"),
        Finish("tool_calls"),
    ]
    played = await play(create_agent(provider=chunks(items, ANSWER), tools=[ping]).stream("go"))
    assert of_type(played.events, "text.done")[0].text == "one two"
    assert told(played.ended) == ["pong"]
    assert (played.ended.step_usage[0].input_tokens, played.ended.step_usage[0].estimated) == (3, False)


async def test_reasoning_that_comes_after_text_is_kept_and_the_stream_stays_in_order():
    block = ReasoningBlock("again", signature="s")
    items = [
        ReasoningDelta("first"),
        TextDelta("one "),
        ReasoningDelta("between"),
        TextDelta("two"),
        ReasoningDelta("again"),
        ReasoningEnd(block),
        Finish("stop"),
    ]
    played = await play(create_agent(provider=chunks(items)).stream("go"))
    assert played.ended.text == "one two"
    assert played.ended.messages[-1].reasoning == (ReasoningBlock("first"), ReasoningBlock("between"), block)
    assert [event.text for event in of_type(played.events, "reasoning.delta")] == ["first"]


@pytest.mark.parametrize(
    "usage",
    [
        pytest.param({"input_tokens": 5}, id="a mapping"),
        pytest.param(ModelUsage(input_tokens=wrong(None), output_tokens=wrong(None)), id="no counts"),
        pytest.param(ModelUsage(input_tokens=-5, output_tokens=1), id="a negative count"),
        pytest.param(ModelUsage(input_tokens=10**400, output_tokens=1), id="a huge count"),
        pytest.param(ModelUsage(input_tokens=wrong(math.nan), output_tokens=1), id="NaN"),
        pytest.param(ModelUsage(input_tokens=1, output_tokens=1, cost_usd=math.inf), id="an infinite price"),
        pytest.param(ModelUsage(input_tokens=1, output_tokens=1, reasoning_tokens=wrong("2")), id="a text"),
    ],
)
async def test_usage_that_makes_no_sense_becomes_an_estimate(usage):
    items = [TextDelta("hi"), Finish(wrong("odd"), usage, wrong("nobody"))]
    played = await play(create_agent(provider=chunks(items)).stream("go"))
    assert played.ended.usage.estimated
    assert played.ended.usage.total_tokens > 0
    assert played.ended.finish_reason == "other"


@pytest.mark.spec("HAZ-18")
async def test_a_thousand_calls_with_the_same_id_all_run_and_have_one_result_each():
    count = 0

    @tool
    async def tick() -> int:
        """Count."""
        nonlocal count
        count += 1
        return count

    turn = [asks("tick") for _ in range(1000)]
    played = await play(create_agent(provider=chunks([*turn, Finish("tool_calls")], ANSWER), tools=[tick]).stream("go"))
    assert count == 1000
    assert len({call.id for call in played.ended.tool_calls}) == len(told(played.ended)) == 1000
    assert played.ended.tool_calls[0].id == "c1"


async def test_ids_that_are_missing_or_no_text_are_given_and_the_others_kept():
    turn = [asks("ping", call_id=given) for given in ("", None, 5, "5", "call_1", {"a": 1}, "c\ud800")]
    played = await play(create_agent(provider=chunks([*turn, Finish("tool_calls")], ANSWER), tools=[ping]).stream("go"))
    ids = [call.id for call in played.ended.tool_calls]
    assert ids == ["call_1", "call_2", "5", "5_2", "call_1_2", "call_6", "c\ufffd"]
    assert told(played.ended) == ["pong"] * 7


@pytest.mark.spec("HAZ-19")
@pytest.mark.parametrize("name", ["ping", "functions.ping", "default_api:ping", "tools/ping", "a.b.ping"])
async def test_a_vendor_prefix_on_a_tool_name_resolves_to_the_tool(name):
    provider = chunks([asks(name), Finish("tool_calls")], ANSWER)
    played = await play(create_agent(provider=provider, tools=[ping]).stream("go"))
    assert told(played.ended) == ["pong"]
    assert [call.name for call in played.ended.tool_calls] == ["ping"]
    assert [event.tool_name for event in of_type(played.events, "tool.start", "tool.done")] == ["ping", "ping"]


@pytest.mark.parametrize("name", ["", "functions.", "a b", "x" * 10_000, "päng", "\ud800", "a\nb"])
async def test_a_name_that_no_provider_would_take_back_is_answered_and_made_one_that_it_takes(name):
    provider = chunks([asks(name), Finish("tool_calls")], ANSWER)
    played = await play(create_agent(provider=provider, tools=[ping]).stream("go"))
    assert told(played.ended)[0]["kind"] == "not-found"
    kept = played.ended.tool_calls[0].name
    assert kept.isascii()
    assert 1 <= len(kept) <= 64
    assert kept.replace("_", "").replace("-", "").isalnum() or set(kept) == {"_"}


class Whole:
    """A provider that only has `generate()`, and answers with whatever it was given."""

    name = "whole"

    def __init__(self, *responses: Any) -> None:
        self._responses = list(responses)

    async def generate(self, request: Any) -> Any:
        response = self._responses.pop(0)
        if isinstance(response, BaseException):
            raise response
        return response


@pytest.mark.parametrize("response", [None, "text", {"text": "x"}, [], ModelResponse(text=wrong(5))])
async def test_a_whole_answer_that_is_none_is_a_coded_error(response):
    for streamed in (True, False):
        agent = create_agent(provider=wrong(Whole(response)))
        with pytest.raises(SDKError) as caught:
            await within(agent.stream("go").result if streamed else agent.send("go"))
        assert caught.value.code == "LOUSHO_PROVIDER_REQUEST_FAILED"
        assert "broke its contract" in caught.value.detail


async def test_a_provider_needs_no_more_than_a_name_and_generate():
    none = wrong(None)
    empty = ModelResponse(text=none, tool_calls=none, reasoning=none, usage=wrong({}), finish_reason=none)
    provider = wrong(Whole(ModelResponse(text="Hello.", served_by=wrong("me")), empty))
    agent = create_agent(provider=provider)
    played = await play(agent.stream("go"))
    assert (played.ended.text, agent.model) == ("Hello.", None)
    assert list(played.ended.usage.by_model) == ["whole"]
    assert (await agent.send("again")).finish_reason == "other"


async def test_a_provider_whose_supports_streaming_takes_no_model_is_streamed():
    class Plain(ChunkProvider):
        supports_streaming = wrong(lambda self: True)

    async def turn(_):
        yield TextDelta("a")
        yield TextDelta("b")
        yield Finish("stop")

    played = await play(create_agent(provider=Plain(turn)).stream("go"))
    assert [event.text for event in of_type(played.events, "text.delta")] == ["a", "b"]


async def test_an_async_stream_method_that_returns_the_stream_will_do():
    class Late(Whole):
        async def stream(self, request):
            return chunks(ANSWER).stream(request)

    assert (await play(create_agent(provider=wrong(Late())).stream("go"))).ended.text == "Done."


async def test_a_stream_that_is_no_async_iterator_is_a_coded_error():
    class Lists(Whole):
        def stream(self, request):
            return list(ANSWER)

    played = await play(create_agent(provider=wrong(Lists())).stream("go"))
    assert isinstance(played.error, SDKError)
    assert "async iterator" in played.error.detail


async def test_a_stream_is_closed_when_the_run_does_not_read_it_to_its_end():
    closed: list[str] = []

    async def turn(_):
        try:
            yield TextDelta("a")
            yield wrong(5)
            yield TextDelta("b")
        finally:
            closed.append("closed")

    await play(create_agent(provider=ChunkProvider(turn)).stream("go"))
    assert closed == ["closed"]


async def test_who_answered_is_read_only_in_the_one_form_there_is():
    served = [TextDelta("x"), Finish("stop", None, ServedBy("other", "m-2"))]
    played = await play(create_agent(provider=chunks(served)).stream("go"))
    assert list(played.ended.usage.by_model) == ["other/m-2"]


@pytest.mark.parametrize("chunk", [TextDelta("x"), TextDelta(""), ReasoningDelta("x"), asks("ping", "{}")])
async def test_a_stream_without_end_that_never_waits_can_be_stopped(chunk):
    signal = CancelSignal()

    async def turn(_):
        for number in itertools.count():
            if number == 100:
                signal.abort("enough")
            yield chunk

    played = await play(create_agent(provider=ChunkProvider(turn), tools=[ping]).stream("go", signal=signal))
    assert played.ended.finish_reason == "aborted"


@pytest.mark.parametrize(
    "chunk",
    [
        pytest.param(TextDelta("x" * 5_000_000), id="text"),
        pytest.param(ReasoningDelta("x" * 5_000_000), id="reasoning"),
        pytest.param(asks("ping", '"' + "x" * 5_000_000 + '"'), id="arguments"),
    ],
)
async def test_a_turn_without_end_is_cut_off_before_the_memory_is(chunk):
    closed: list[str] = []

    async def turn(_):
        try:
            while True:
                yield chunk
        finally:
            closed.append("closed")

    agent = create_agent(provider=ChunkProvider(turn), tools=[ping])
    run = agent.stream("go", throw_on_error=False)
    with pytest.raises(SDKError, match="50,000,000 characters"):
        await within(run.result)
    assert closed == ["closed"]


async def test_what_a_provider_does_to_its_request_changes_nothing_of_the_run():
    class Vandal(ChunkProvider):
        def stream(self, request):
            for held in (request.messages, request.tools, request.stop):
                assert held
                held.clear()
            return super().stream(request)

    async def asking(_):
        yield asks("ping")
        yield Finish("tool_calls")

    async def ending(_):
        yield TextDelta("Done.")
        yield Finish("stop")

    agent = create_agent(provider=Vandal(asking, ending, ending), tools=[ping], model_settings={"stop": ["END"]})
    for _ in range(2):
        played = await play(agent.stream("go"))
        assert played.ended.text == "Done."
    assert agent.options.model_settings == {"stop": ["END"]}
