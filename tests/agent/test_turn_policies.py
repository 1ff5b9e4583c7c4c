"""What a turn of a session does that is asked for while another one runs: wait, or join it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lousho import CancelSignal, PropagatingToolError, SDKError, Session, create_agent, tool
from lousho.models.provider import Finish, ModelChunk, ModelRequest, TextDelta
from lousho.testing import mock_model
from tests.support.runs import WAIT, ChunkProvider, call, collect, of_type


class Desk:
    """An agent whose first turn works at a tool until it is told to go on."""

    def __init__(self, *more: Any, fails: bool = False, pauses: bool = False) -> None:
        self.working, self.go = asyncio.Event(), asyncio.Event()

        @tool
        async def look() -> str:
            """Look."""
            self.working.set()
            await self.go.wait()
            if fails:
                raise PropagatingToolError("the desk is closed")
            return "seen"

        @tool(needs_approval=True)
        def pay() -> str:
            """Pay."""
            return "paid"

        first = {"tool_calls": [{"name": "look", "args": {}}, {"name": "pay", "args": {}}]} if pauses else call("look")
        self.agent = create_agent(provider=mock_model([first, *more]), tools=[look, pay])


def said(session: Session) -> list[tuple[str, str]]:
    return [(message.role, str(message.content)) for message in session.messages]


@pytest.mark.spec("QSTEER-09")
@pytest.mark.parametrize("running", [True, False], ids=["running", "waiting to start"])
async def test_a_send_with_the_queue_policy_joins_the_turn_and_has_its_very_result(running: bool) -> None:
    desk = Desk({"text": "done"})
    session = desk.agent.session("s", turn_policy="queue")
    first = asyncio.create_task(session.send("a"))
    if running:
        await asyncio.wait_for(desk.working.wait(), WAIT)
    second = asyncio.create_task(session.send("b", signal=CancelSignal()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    desk.go.set()
    results = await asyncio.wait_for(asyncio.gather(first, second), WAIT)
    assert results[0] is results[1]
    users = [text for role, text in said(session) if role == "user"]
    assert users == ["a", "b"]
    if running:
        assert [role for role, _ in said(session)] == ["user", "assistant", "tool", "user", "assistant"]


@pytest.mark.spec("QSTEER-09")
async def test_a_stream_that_joins_has_only_the_end_of_the_turn() -> None:
    desk = Desk({"text": "done"})
    session = desk.agent.session("s", turn_policy="queue")
    first = session.stream("a")
    reading = asyncio.create_task(collect(first))
    await asyncio.wait_for(desk.working.wait(), WAIT)
    second = session.stream("b")
    desk.go.set()
    own = [event async for event in second]
    events = await reading
    assert [event.type for event in own] == ["run.done"]
    assert own[0].run_id == first.run_id == second.run_id
    assert len(of_type(events, "input.queued", "input.applied")) == 2
    assert await second.result is await first.result


@pytest.mark.spec("QSTEER-28")
async def test_a_send_with_the_steer_policy_redirects_the_turn() -> None:
    began = asyncio.Event()

    async def hangs(request: ModelRequest) -> AsyncIterator[ModelChunk]:
        began.set()
        await asyncio.Event().wait()
        yield Finish("stop")

    async def answers(request: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield TextDelta("Paris")
        yield Finish("stop")

    provider = ChunkProvider(hangs, answers)
    session = create_agent(provider=provider).session("s", turn_policy="steer")
    first = session.stream("Rome")
    reading = asyncio.create_task(collect(first))
    await asyncio.wait_for(began.wait(), WAIT)
    second = await asyncio.wait_for(session.send("Paris, no: Lyon"), WAIT)
    events = await reading
    assert second is await first.result
    assert [event.mode for event in of_type(events, "input.steered")] == ["immediate"]
    assert [text for role, text in said(session)] == ["Rome", "Paris, no: Lyon", "Paris"]


@pytest.mark.spec("QSTEER-28")
async def test_a_stream_with_the_steer_policy_keeps_calls_from_running_that_have_not_begun() -> None:
    desk = Desk({"text": "done"}, pauses=True)
    session = desk.agent.session("s", turn_policy="steer")
    first = asyncio.create_task(session.send("a"))
    await asyncio.wait_for(desk.working.wait(), WAIT)
    second = session.stream("b")
    desk.go.set()
    assert [event.type async for event in second] == ["run.done"]
    assert (await first).finish_reason == "stop"
    assert await session.pending() is None


async def test_an_input_that_the_turn_left_out_becomes_a_turn_of_its_own() -> None:
    desk = Desk({"text": "one"}, {"text": "two"}, {"text": "three"})
    session = desk.agent.session("s", turn_policy="queue")
    stop = CancelSignal()
    first = asyncio.create_task(session.send("a", signal=stop))
    await asyncio.wait_for(desk.working.wait(), WAIT)
    second = session.stream("b")
    third = asyncio.create_task(session.send("c"))
    await asyncio.sleep(0)
    stop.abort()
    assert (await asyncio.wait_for(first, WAIT)).finish_reason == "aborted"
    events = await collect(second)
    assert events[0].type == "run.start"
    assert events[0].run_id == second.run_id
    assert (await asyncio.wait_for(third, WAIT)).finish_reason == "stop"
    assert [text for role, text in said(session) if role == "user"] == ["a", "b", "c"]


async def test_whoever_joined_a_turn_that_fails_gets_its_error() -> None:
    desk = Desk(fails=True)
    session = desk.agent.session("s", turn_policy="queue")
    first = asyncio.create_task(session.send("a"))
    await asyncio.wait_for(desk.working.wait(), WAIT)
    second = asyncio.create_task(session.send("b"))
    stream = session.stream("c")
    await asyncio.sleep(0)
    desk.go.set()
    outcomes = await asyncio.wait_for(asyncio.gather(first, second, return_exceptions=True), WAIT)
    assert outcomes[0] is outcomes[1]
    events: list[Any] = [event async for event in stream]
    assert [(event.type, event.finish_reason) for event in events] == [("run.done", "error")]
    assert said(session) == []


async def test_an_input_for_a_turn_that_pauses_is_refused_like_any_other_turn() -> None:
    desk = Desk(pauses=True)
    session = desk.agent.session("s", turn_policy="queue")
    first = asyncio.create_task(session.send("a"))
    await asyncio.wait_for(desk.working.wait(), WAIT)
    second = asyncio.create_task(session.send("b"))
    await asyncio.sleep(0)
    desk.go.set()
    assert (await first).finish_reason == "awaiting-approval"
    with pytest.raises(SDKError) as caught:
        await asyncio.wait_for(second, WAIT)
    assert caught.value.code == "LOUSHO_SESSION_AWAITING_APPROVAL"


async def test_joining_the_turn_one_is_inside_of_is_refused_instead_of_waiting_for_ever() -> None:
    caught: list[str] = []

    @tool
    async def ask_again() -> str:
        """Ask the same session."""
        try:
            await session.send("b")
        except SDKError as error:
            caught.append(str(error.code))
        return "asked"

    agent = create_agent(provider=mock_model([call("ask_again"), {"text": "done"}]), tools=[ask_again])
    session = agent.session("s", turn_policy="queue")
    await asyncio.wait_for(session.send("a"), WAIT)
    assert caught == ["LOUSHO_SESSION_BUSY"]


async def test_a_caller_that_stops_waiting_leaves_the_turn_and_the_others_alone() -> None:
    desk = Desk({"text": "done"})
    session = desk.agent.session("s", turn_policy="queue")
    first = asyncio.create_task(session.send("a"))
    await asyncio.wait_for(desk.working.wait(), WAIT)
    second = asyncio.create_task(session.send("b"))
    third = asyncio.create_task(session.send("c"))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second])
    desk.go.set()
    assert await asyncio.wait_for(third, WAIT) is await first
    assert [text for role, text in said(session) if role == "user"] == ["a", "b", "c"]


async def test_without_a_policy_turns_wait_and_an_unknown_policy_is_refused() -> None:
    desk = Desk({"text": "one"}, {"text": "two"})
    session = desk.agent.session("s")
    first, second = asyncio.create_task(session.send("a")), asyncio.create_task(session.send("b"))
    await asyncio.wait_for(desk.working.wait(), WAIT)
    desk.go.set()
    results = await asyncio.wait_for(asyncio.gather(first, second), WAIT)
    assert [result.text for result in results] == ["one", "two"]
    assert session.turn_policy == "wait"
    assert desk.agent.session("s", turn_policy="steer").turn_policy == "steer"
    for wrong in ("later", 7, ["queue"]):
        with pytest.raises(SDKError) as caught:
            desk.agent.session("s", turn_policy=wrong)  # type: ignore[arg-type]
        assert caught.value.code == "LOUSHO_CONFIG_INVALID"
