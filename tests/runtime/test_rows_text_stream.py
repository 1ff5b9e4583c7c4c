"""The words of a run alone: what a program that only prints the answer iterates."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hostile import within
from runs import ChunkProvider, call, collect, of_type

from lousho import LLMProviderError, SDKError, create_agent, tool
from lousho.models.provider import ModelChunk, ModelRequest, ReasoningDelta, TextDelta
from lousho.testing import mock_model

SCRIPT = [{"text": "Let me see: ", "reasoning": "hm", **call("lookup", word="a")}, "it is a word."]


@tool
async def lookup(word: str) -> AsyncIterator[str]:
    """Look a word up."""
    yield "only"
    yield word


@tool(needs_approval=True)
async def deploy(to: str) -> str:
    """Deploy somewhere."""
    return to


def agent(script: list[Any] = SCRIPT) -> Any:
    return create_agent(provider=mock_model(script), tools=[lookup, deploy])


@pytest.mark.spec("BEY-42")
async def test_the_words_are_those_of_the_events_and_nothing_else():
    events = await collect(agent().stream("go"))
    deltas = [event.text for event in of_type(events, "text.delta")]
    run = agent().stream("go")
    assert [piece async for piece in run.text_stream()] == deltas
    assert "".join(deltas) == "Let me see: it is a word."
    assert (await run.result).text == "it is a word."
    turn = agent().session("s").stream("go")
    assert [piece async for piece in turn.text_stream()] == deltas


@pytest.mark.spec("BEY-42")
async def test_a_pause_ends_the_words_and_a_continuation_has_its_own():
    one = agent([{"text": "First. ", **call("deploy", to="a")}, "Done."])
    run = one.stream("go")
    assert [piece async for piece in run.text_stream()] == ["First. "]
    resumed = one.approvals.stream_resolve(id=(await run.result).approval_id, approved=True)
    assert [piece async for piece in resumed.text_stream()] == ["Done."]


@pytest.mark.spec("BEY-42")
def test_a_blocking_stream_has_its_words_and_its_result_too():
    stream = agent().stream_sync("go")
    assert "".join(stream.text()) == "Let me see: it is a word."
    assert stream.result().text == "it is a word."
    turn = agent().session("s").stream_sync("go")
    assert "".join(turn.text()) == "Let me see: it is a word."


@pytest.mark.spec("BEY-42")
@pytest.mark.parametrize("words_first", [True, False])
async def test_events_and_words_are_one_iteration(words_first: bool):
    run = agent().stream("go")
    first, second = (run.text_stream, run.__aiter__) if words_first else (run.__aiter__, run.text_stream)
    reader: Any = first()
    with pytest.raises(SDKError) as caught:
        second()
    assert caught.value.code == "LOUSHO_RUN_ALREADY_ITERATED"
    assert [item async for item in reader]


@pytest.mark.spec("BEY-42")
@pytest.mark.parametrize("how", ["aclose", "drop"])
async def test_leaving_the_words_early_aborts_the_run(how: str):
    async def endless(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield ReasoningDelta("hm")
        yield TextDelta("Half ")
        await asyncio.Event().wait()

    run = create_agent(provider=ChunkProvider(endless)).stream("go")
    words = run.text_stream()
    assert await within(anext(words)) == "Half "
    if how == "aclose":
        await within(words.aclose())
    else:
        del words
    result = await within(run.result)
    assert (result.finish_reason, result.text) == ("aborted", "Half ")


@pytest.mark.spec("BEY-42")
async def test_a_failed_run_raises_at_the_end_of_its_words_unless_it_must_not():
    async def breaks(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield TextDelta("Half ")
        raise ConnectionError("cut")

    for throws in (True, False):
        run = create_agent(provider=ChunkProvider(breaks)).stream("go", throw_on_error=throws)
        heard: list[str] = []

        async def read(run: Any, heard: list[str]) -> None:
            async for piece in run.text_stream():
                heard.append(piece)

        if throws:
            with pytest.raises(LLMProviderError, match="cut"):
                await within(read(run, heard))
        else:
            await within(read(run, heard))
        assert heard == ["Half "]
