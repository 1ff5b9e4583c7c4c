"""Sessions in memory: turns one at a time, aborted turns kept, nothing shared between ids."""

from __future__ import annotations

import asyncio

import pytest
from runs import WAIT, ChunkProvider, collect

from lousho import SDKError, create_agent
from lousho.models.provider import Finish, TextDelta
from lousho.testing import mock_model


async def test_turns_run_in_the_order_they_were_asked_for():
    gate = asyncio.Event()

    async def slow(request):
        await asyncio.wait_for(gate.wait(), WAIT)
        yield TextDelta(f"{sum(message.role == 'user' for message in request.messages)} so far")
        yield Finish("stop")

    session = create_agent(provider=ChunkProvider(slow, slow, slow)).session("s")
    turns = [asyncio.ensure_future(session.send(text)) for text in ("a", "b", "c")]
    await asyncio.sleep(0)
    gate.set()
    results = await asyncio.wait_for(asyncio.gather(*turns), WAIT)
    assert [result.text for result in results] == ["1 so far", "2 so far", "3 so far"]
    assert [message.content for message in session.messages if message.role == "user"] == ["a", "b", "c"]


async def test_a_waiting_turn_that_is_cancelled_never_starts():
    gate = asyncio.Event()

    async def slow(_):
        await asyncio.wait_for(gate.wait(), WAIT)
        yield TextDelta("x")
        yield Finish("stop")

    provider = ChunkProvider(slow, slow)
    session = create_agent(provider=provider).session("s")
    first = asyncio.ensure_future(session.send("a"))
    second = asyncio.ensure_future(session.send("b"))
    third = asyncio.ensure_future(session.send("c"))
    await asyncio.sleep(0)
    second.cancel()
    gate.set()
    await asyncio.wait_for(asyncio.gather(first, third), WAIT)
    assert [message.content for message in session.messages if message.role == "user"] == ["a", "c"]
    assert second.cancelled()


async def test_run_done_of_a_session_comes_after_the_turn_was_saved():
    agent = create_agent(provider=mock_model(["Hello."]))
    session = agent.session("s")
    saved_at_done = None
    async for event in session.stream("hi"):
        if event.type == "run.done":
            saved_at_done = (await agent.store.sessions.load("s")).messages
    assert saved_at_done is not None
    assert [message["role"] for message in saved_at_done] == ["user", "assistant"]


async def test_a_failed_turn_ends_its_stream_normally_with_the_error_in_it():
    session = create_agent(provider=mock_model([{"error": OSError("down")}])).session("s")
    run = session.stream("hi")
    events = await collect(run)
    assert [event.type for event in events][-2:] == ["error", "run.done"]
    with pytest.raises(SDKError):
        await run.result


async def test_clearing_empties_the_transcript_and_keeps_the_id():
    session = create_agent(provider=mock_model(["One.", "Two."])).session("s")
    await session.send("a")
    assert await session.clear() == 2
    assert (session.messages, session.id) == ([], "s")
    await session.send("b")
    assert len(session.messages) == 2


@pytest.mark.spec("ERR-59")
@pytest.mark.parametrize("bad", ["", "a b", "../etc", "a/b", "x" * 129, "ä", "a\n", 7])
def test_session_ids_that_cannot_be_file_names_are_refused(bad):
    agent = create_agent(provider=mock_model(["x"]))
    with pytest.raises(SDKError) as caught:
        agent.session(bad)
    assert caught.value.code == "LOUSHO_SESSION_ID_INVALID"
    assert "1 to 128" in caught.value.detail
    assert agent.session("x" * 128).id == "x" * 128
