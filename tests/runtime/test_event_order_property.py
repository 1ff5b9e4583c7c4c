"""Any script against a model of the contract: order of events, one result a call, legal transcripts, pauses as JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest
from hostile import Played, play, told, within, wrong
from runs import of_type

from lousho import Agent, CancelSignal, SDKError, create_agent, define_tool
from lousho.core.messages import FunctionCall, ToolCall
from lousho.models.provider import Finish, ModelChunk, ModelRequest, ReasoningDelta, TextDelta, ToolCallChunk
from lousho.runtime.state_json import state_from_json, state_to_json
from lousho.testing import check_event_order, mock_model

KINDS = ("good", "raises", "slow", "blocking", "snapshots", "gated", "gated-raises", "denied", "ghost", "malformed")
GATED = ("gated", "gated-raises")
ERRORS = {
    "raises": "execution",
    "gated-raises": "execution",
    "denied": "denied",
    "ghost": "not-found",
    "malformed": "validation",
}


@dataclass(frozen=True)
class Turn:
    """One scripted model turn."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[str, ...] = ()
    fails: bool = False


class Script:
    """A provider that plays turns, streamed in pieces, and gives way between them."""

    name = "script"
    default_model = "script-1"

    def __init__(self, turns: list[Turn], ticks: int) -> None:
        self._turns = list(turns)
        self._ticks = ticks
        self.asked = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        number = self.asked
        turn = self._turns[number]
        self.asked += 1
        for _ in range(self._ticks):
            await asyncio.sleep(0)
        if turn.reasoning:
            yield ReasoningDelta(turn.reasoning)
        for piece in turn.text:
            yield TextDelta(piece)
            if self._ticks:
                await asyncio.sleep(0)
        if turn.fails:
            raise OSError("the line went dead")
        for index, kind in enumerate(turn.calls):
            arguments = "{" if kind == "malformed" else json.dumps({"number": index})
            yield ToolCallChunk(ToolCall(f"c{number}.{index}", FunctionCall(kind, arguments)))
        yield Finish("tool_calls" if turn.calls else "stop")

    async def generate(self, request: ModelRequest) -> Any:
        raise AssertionError("everything here is streamed")


class World:
    """An agent with one tool of every kind, and what its tools did."""

    def __init__(self, turns: list[Turn], *, ticks: int, concurrency: int | None, gates: bool = True) -> None:
        self.ran: list[str] = []
        self.script = Script(turns, ticks)
        self.agent: Agent = create_agent(
            loop_guard=False,  # the scripts repeat calls that fail
            provider=wrong(self.script),
            tools=[self._tool(kind, gates) for kind in KINDS if kind != "ghost"],
            permissions=[{"tool": "denied", "action": "deny", "reason": "not here"}],
            tool_concurrency=concurrency,
            max_steps=50,
        )

    def _tool(self, kind: str, gates: bool) -> Any:
        def note(context: Any) -> None:
            self.ran.append(context.tool_call_id)

        async def waiting(args: Any, context: Any) -> Any:
            for _ in range(args["number"] * 2 if kind == "slow" else 0):
                await asyncio.sleep(0)
            note(context)
            if "raises" in kind:
                raise LookupError(kind)
            return args["number"]

        def blocking(args: Any, context: Any) -> Any:
            note(context)
            return args["number"]

        async def snapshots(args: Any, context: Any) -> Any:
            note(context)
            for number in range(args["number"] + 1):
                yield number
                await asyncio.sleep(0)

        execute: Callable[..., Any] = {"blocking": blocking, "snapshots": snapshots}.get(kind, waiting)
        schema = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
        return define_tool(
            name=kind, description=kind, input=schema, execute=execute, needs_approval=gates and kind in GATED
        )

    async def check_pause(self) -> None:
        """Check that every saved run reads back as itself."""
        for step in await self.agent.approval_store.list():
            state = state_from_json(step.state)
            assert state_to_json(state) == step.state
            assert state_from_json(state_to_json(state)) == state


def expected(kind: str, index: int, approved: bool) -> Any:
    """Return what the model is told of a call: its value, or the kind of its failure."""
    if kind in GATED and not approved:
        return "rejected"
    return ERRORS.get(kind, index)


def shown(result: Any) -> Any:
    return result["kind"] if isinstance(result, dict) else result


TURNS = st.lists(
    st.builds(
        Turn,
        text=st.text("ab \u00e9", max_size=4),
        reasoning=st.sampled_from(["", "", "hm"]),
        calls=st.lists(st.sampled_from(KINDS), min_size=1, max_size=6).map(tuple),
    ),
    max_size=3,
)
LAST = st.builds(Turn, text=st.text("ab ", max_size=4), fails=st.sampled_from([False, False, False, True]))


async def decide(
    world: World, paused: Played, chance: Any, *, approve: bool | None = None
) -> tuple[Played, dict[str, bool]]:
    """Decide all calls of a pause in some order, one at a time; returns the continuation and the decisions by call."""
    waiting = {item.id: item for item in await world.agent.approvals.list()}
    assert list(waiting) == paused.ended.approval_ids
    decisions: dict[str, bool] = {}
    order = list(chance.draw(st.permutations(list(waiting))))
    while order:
        approval_id = order.pop(0)
        approved = chance.draw(st.booleans()) if approve is None else approve
        decisions[waiting[approval_id].tool_call_id] = approved
        before = list(world.ran)
        played = await play(world.agent.approvals.stream_resolve(id=approval_id, approved=approved))
        await world.check_pause()
        if order:
            assert played.ended.finish_reason == "awaiting-approval"
            assert played.ended.approval_ids == [one for one in waiting if one in order]
            assert world.ran == before
        paused = played
    return paused, decisions


@pytest.mark.spec("EVT-40", "EVT-43")
@hypothesis.given(TURNS, LAST, st.integers(0, 2), st.sampled_from([None, 1, 2]), st.booleans(), st.data())
async def test_every_script_does_what_the_contract_says(turns, last, ticks, concurrency, in_session, chance):
    script = [*turns, last]
    world = World(script, ticks=ticks, concurrency=concurrency)
    source = world.agent.session("s") if in_session else world.agent
    played = await play(source.stream("go"))
    decisions: dict[str, bool] = {}
    streams = [played]
    while played.result is not None and played.result.finish_reason == "awaiting-approval":
        await world.check_pause()
        played, made = await decide(world, played, chance)
        decisions |= made
        streams.append(played)

    wanted = [
        expected(kind, index, decisions.get(f"c{number}.{index}", False))
        for number, turn in enumerate(turns)
        for index, kind in enumerate(turn.calls)
    ]
    executed = [
        f"c{number}.{index}"
        for number, turn in enumerate(turns)
        for index, kind in enumerate(turn.calls)
        if expected(kind, index, decisions.get(f"c{number}.{index}", False)) in (index, "execution")
    ]
    assert sorted(world.ran) == sorted(executed)
    assert world.script.asked == len(script)
    if last.fails:
        assert isinstance(played.error, SDKError)
        assert played.error.code == "LOUSHO_PROVIDER_REQUEST_FAILED"
        assert world.agent.session("s").messages == []
        return
    result = played.ended
    assert [shown(one) for one in told(result)] == wanted
    assert (result.text, result.finish_reason, result.steps) == (last.text, "stop", len(script))
    assert [call.id for call in result.tool_calls] == [
        f"c{n}.{i}" for n, t in enumerate(turns) for i in range(len(t.calls))
    ]
    assert result.usage.model_calls == len(script)
    if in_session:
        assert world.agent.session("s").messages == result.messages == await world.agent.session("s").load()
    assert await world.agent.approvals.list() == []
    done = [event for stream in streams for event in of_type(stream.events, "tool.done", "tool.error")]
    assert len(done) == len(wanted)


@hypothesis.given(TURNS, st.integers(0, 2), st.data())
async def test_approving_everything_gives_the_run_that_was_never_asked_about(turns, ticks, chance):
    script = [*turns, Turn(text="end")]
    asked = World(script, ticks=ticks, concurrency=None)
    played = await play(asked.agent.stream("go"))
    while played.ended.finish_reason == "awaiting-approval":
        played, _ = await decide(asked, played, chance, approve=True)
    free = await play(World(script, ticks=ticks, concurrency=None, gates=False).agent.stream("go"))
    # The one trace is the note that a person approved.
    assert [replace(one, metadata=None) for one in played.ended.messages] == free.ended.messages
    assert played.ended.usage == free.ended.usage
    assert played.ended.step_usage == free.ended.step_usage
    assert (played.ended.text, played.ended.steps, played.ended.tool_errors) == (
        free.ended.text,
        free.ended.steps,
        free.ended.tool_errors,
    )


@hypothesis.given(
    TURNS,
    st.integers(0, 2),
    st.sampled_from([None, 1, 2]),
    st.integers(0, 60),
    st.sampled_from(["abort", "leave"]),
    st.data(),
)
async def test_a_stop_at_any_event_of_any_script_leaves_a_whole_stream_and_a_legal_transcript(
    turns, ticks, concurrency, moment, how, chance
):
    script = [*turns, Turn(text="the end")]
    world = World(script, ticks=ticks, concurrency=concurrency)
    session = world.agent.session("s")
    seen = 0

    async def stopped(run: Any) -> Any:
        nonlocal seen
        events = []
        async with run:
            async for event in run:
                events.append(event)
                seen += 1
                if seen == moment:
                    run.abort("enough")
                    if how == "leave":
                        break
        check_event_order(events, complete=how == "abort" or events[-1].type == "run.done")
        return run

    run = await within(stopped(session.stream("go")))
    result = await within(run.result)
    while result.finish_reason == "awaiting-approval":
        await world.check_pause()
        approval_id = chance.draw(st.sampled_from(result.approval_ids))
        run = await within(
            stopped(world.agent.approvals.stream_resolve(id=approval_id, approved=chance.draw(st.booleans())))
        )
        result = await within(run.result)
    assert result.finish_reason in ("aborted", "stop")
    assert len(world.ran) == len(set(world.ran))
    kept = await session.load()
    assert kept == session.messages
    assert kept in (result.messages, [])
    asked = [call.id for message in kept for call in message.tool_calls]
    assert [message.tool_call_id for message in kept if message.role == "tool"] == asked
    assert await world.agent.approvals.list() == []
    again = world.agent.with_options(provider=mock_model(["next"]))
    assert (await within(again.session("s").send("next"))).text == "next"


@hypothesis.given(TURNS, st.integers(0, 2), st.integers(0, 40))
async def test_aborts_by_signal_at_any_tick_never_raise(turns, ticks, moment):
    world = World([*turns, Turn(text="the end")], ticks=ticks, concurrency=None)
    signal = CancelSignal()
    run = world.agent.stream("go", signal=signal)
    reading = asyncio.ensure_future(play(run))
    for _ in range(moment):
        await asyncio.sleep(0)
    signal.abort("enough")
    played = await within(reading)
    assert played.ended.finish_reason in ("aborted", "stop", "awaiting-approval")
