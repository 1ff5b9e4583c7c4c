"""Reading a run's words alone, async and blocking, and the result of a blocking stream."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hostile import ANSWER, chunks, within
from runs import ChunkProvider, call, of_type

from lousho import Agent, LLMProviderError, SDKError, create_agent, tool
from lousho.models.provider import Finish, ModelChunk, ReasoningDelta, TextDelta
from lousho.testing import mock_model

LOOK = {"text": "Let me look. ", "tool_calls": [{"name": "look"}], "reasoning": "They want a look."}


@tool
async def look() -> str:
    """Look."""
    return "seen"


def agent(*script: Any, **options: Any) -> Agent:
    return create_agent(provider=mock_model(script), tools=[look], **options)


@pytest.mark.spec("BEY-42")
async def test_the_words_are_the_text_deltas_of_all_steps_and_nothing_else():
    heard: list[Any] = []
    run = agent(LOOK, "It is on shelf B2.", on_event=heard.append).stream("go")
    pieces = [piece async for piece in run.text_stream()]
    assert pieces == [event.text for event in of_type(heard, "text.delta")]
    assert "".join(pieces) == "Let me look. It is on shelf B2."
    assert len(pieces) > 2
    assert (await run.result).text == "It is on shelf B2."


@pytest.mark.spec("BEY-42")
async def test_it_is_the_one_iteration_of_the_run():
    run = agent("Hi there.").stream("go")
    words = run.text_stream()
    for again in (run.text_stream, run.__aiter__):
        with pytest.raises(SDKError) as caught:
            again()
        assert caught.value.code == "LOUSHO_RUN_ALREADY_ITERATED"
    assert "".join([piece async for piece in words]) == "Hi there."
    assert [piece async for piece in words] == []
    read = agent("Hi there.").stream("go")
    assert len([event async for event in read]) > 3
    with pytest.raises(SDKError):
        read.text_stream()


async def test_words_that_are_read_late_are_all_there():
    run = agent(LOOK, "Done.").stream("go")
    await run.result
    assert "".join([piece async for piece in run.text_stream()]) == "Let me look. Done."


async def endless(_: Any) -> AsyncIterator[ModelChunk]:
    yield TextDelta("half an ")
    await asyncio.sleep(60)
    yield Finish("stop")


@pytest.mark.spec("BEY-42")
@pytest.mark.parametrize("how", ["break", "aclose", "async with"])
async def test_leaving_early_aborts_the_run(how: str):
    run = create_agent(provider=ChunkProvider(endless)).stream("go")
    if how == "async with":
        async with run:
            async for _ in run.text_stream():
                break
    elif how == "aclose":
        words = run.text_stream()
        assert await anext(words) == "half an "
        await within(words.aclose())
    else:
        async for _ in run.text_stream():
            break
        gc.collect()
    result = await within(run.result)
    assert (result.finish_reason, result.text) == ("aborted", "half an ")


@pytest.mark.parametrize("throws", [True, False])
async def test_a_failed_run_raises_at_the_end_unless_told_not_to(throws: bool):
    provider = chunks([TextDelta("So ")], ANSWER)
    run = create_agent(provider=provider).stream("go", throw_on_error=throws)
    pieces: list[str] = []

    async def read() -> None:
        async for piece in run.text_stream():
            pieces.append(piece)

    if throws:
        with pytest.raises(LLMProviderError, match="before it was finished"):
            await read()
    else:
        await read()
    assert pieces == ["So "]
    with pytest.raises(LLMProviderError):
        await run.result


async def test_a_pause_and_an_abort_end_it_normally():
    @tool(needs_approval=True)
    async def deploy() -> str:
        """Deploy."""
        return "deployed"

    pausing = create_agent(provider=mock_model([{"text": "Now. ", **call("deploy")}, "Done."]), tools=[deploy])
    run = pausing.stream("go")
    assert "".join([piece async for piece in run.text_stream()]) == "Now. "
    decided = pausing.approvals.stream_resolve(id=str((await run.result).approval_id), approved=True)
    assert [piece async for piece in decided.text_stream()] == ["Done."]
    stopped = agent("never").stream("go")
    stopped.abort()
    assert [piece async for piece in stopped.text_stream()] == []


async def test_reasoning_is_no_part_of_it():
    run = create_agent(provider=chunks([ReasoningDelta("hm"), TextDelta("Yes."), Finish("stop")])).stream("go")
    assert [piece async for piece in run.text_stream()] == ["Yes."]


@pytest.mark.spec("BEY-42")
def test_the_blocking_stream_gives_words_and_the_result_as_well():
    stream = agent(LOOK, "It is on shelf B2.").stream_sync("go")
    assert "".join(stream.text()) == "Let me look. It is on shelf B2."
    assert stream.result().text == "It is on shelf B2."
    assert stream.result().steps == 2


def test_the_words_of_a_blocking_stream_are_its_one_iteration():
    stream = agent("Hi.").stream_sync("go")
    words = stream.text()
    with pytest.raises(SDKError) as caught:
        next(stream)
    assert caught.value.code == "LOUSHO_RUN_ALREADY_ITERATED"
    assert list(words) == ["Hi."]


def test_words_in_one_expression_outlive_the_stream_they_came_from():
    assert "".join(agent("Hello there, reader.").stream_sync("go").text()) == "Hello there, reader."


def test_leaving_blocking_words_early_aborts_the_run():
    stream = create_agent(provider=ChunkProvider(endless)).stream_sync("go")
    with stream.text() as words:
        assert next(words) == "half an "
    result = stream.result()
    assert (result.finish_reason, result.text) == ("aborted", "half an ")


def test_a_blocking_stream_that_nobody_reads_has_its_result_and_one_that_fails_raises_it():
    assert agent(LOOK, "Done.").stream_sync("go").result().text == "Done."
    failing = agent({"error": "down"}).stream_sync("go", throw_on_error=False)
    assert [event.type for event in failing][-2:] == ["error", "run.done"]
    with pytest.raises(LLMProviderError):
        failing.result()


def test_a_blocking_stream_that_is_read_already_has_no_words_to_give():
    stream = agent("Hi.").stream_sync("go")
    assert next(stream).type == "run.start"
    with pytest.raises(SDKError) as caught:
        stream.text()
    assert caught.value.code == "LOUSHO_RUN_ALREADY_ITERATED"
    assert [event.type for event in stream][-1] == "run.done"
