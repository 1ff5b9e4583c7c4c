"""Plays the scripts of `run_model.py` for real: an agent with a tool of every kind, asked in every way there is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from run_model import RUNNABLE, Call, Halt, Script, ScriptedFailure, Turn, call_id, check_messages, number_of
from runs import WAIT

from lousho import Agent, CancelSignal, ModelResponse, RunResult, ToolContext, create_agent, define_tool
from lousho.core.messages import FunctionCall, ToolCall
from lousho.models.provider import Finish, ModelChunk, ModelRequest, TextDelta, ToolCallChunk
from lousho.testing import check_event_order

Way = Literal["send", "heard", "stream", "session", "session-stream"]
WAYS: tuple[Way, ...] = ("send", "heard", "stream", "session", "session-stream")
Style = Literal["streams", "whole", "bare"]
STYLES: tuple[Style, ...] = ("streams", "whole", "bare")


class WholeProvider:
    """Plays a script, a whole turn at a time; what it was asked is kept as it was then."""

    name = "script"
    default_model = "script-1"

    def __init__(self, world: World) -> None:
        self._world = world
        self.requests: list[list[dict[str, Any]]] = []

    def next_turn(self, request: ModelRequest) -> tuple[int, Turn]:
        sent = [message.to_dict() for message in request.messages]
        self.requests.append(json.loads(json.dumps(sent)))
        self._world.check(lambda: check_messages([one for one in request.messages if one.role != "system"]))
        step = len(self.requests)
        return step, self._world.script.turns[step - 1]

    def fail(self) -> None:
        self._world.note_failure()
        raise ScriptedFailure("the line went dead")

    async def generate(self, request: ModelRequest) -> ModelResponse:
        step, turn = self.next_turn(request)
        await self._world.give_way()
        if turn.fails:
            self.fail()
        return ModelResponse(text=turn.text, tool_calls=scripted_calls(step, turn), finish_reason=_any(turn.finish))


class UnstreamableProvider(WholeProvider):
    """Has `stream()`, and says that it must not be used."""

    def supports_streaming(self, model: str | None = None) -> bool:
        return False

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        self._world.problems.append(AssertionError("stream() was called although it must not be used"))
        raise ScriptedFailure("not here")


class StreamingProvider(WholeProvider):
    """Gives the text of a turn in pieces."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        step, turn = self.next_turn(request)
        await self._world.give_way()
        for piece in turn.text:
            yield TextDelta(piece)
            await self._world.give_way()
        if turn.fails:
            self.fail()
        for call in scripted_calls(step, turn):
            yield ToolCallChunk(call)
        yield Finish(_any(turn.finish))


PROVIDERS: dict[Style, type[WholeProvider]] = {
    "streams": StreamingProvider,
    "whole": UnstreamableProvider,
    "bare": WholeProvider,
}


def _any(value: object) -> Any:
    return value


def scripted_calls(step: int, turn: Turn) -> tuple[ToolCall, ...]:
    """Return the calls of a turn as a provider gives them."""
    made: list[ToolCall] = []
    for index, call in enumerate(turn.calls):
        arguments = {"nothing": number_of(step, index)} if call.kind == "bad" else {"number": number_of(step, index)}
        name = {"bad": "fine", "ghost": "qqqqqqqqqqqq"}.get(call.kind, call.kind)
        made.append(ToolCall(call_id(step, index), FunctionCall(name, json.dumps(arguments))))
    return tuple(made)


class World:
    """An agent for a script, what its tools did, and the moment at which it was stopped."""

    def __init__(self, script: Script, style: Style, *, heard: bool, stop_at: int | str | None = None) -> None:
        self.script = script
        self.signal = CancelSignal()
        self.problems: list[BaseException] = []
        self.heard: list[Any] = []
        self.gates: list[str] = []
        """The calls whose gate was asked, in that order."""
        self.started: list[str] = []
        self.ended: list[str] = []
        self.running = self.peak = 0
        self.stop_at = stop_at
        self.asked_at_stop = -1
        self.started_at_stop: set[str] = set()
        self.done_at_stop: set[str] = set()
        self.text_at_stop: str | None = None
        """What was said in the step so far, when the abort came with a piece of it."""
        self.failed_before_stop = False
        self._calls = {
            call_id(step, index): call
            for step, turn in enumerate(script.turns, start=1)
            for index, call in enumerate(turn.calls)
        }
        self._waiting: list[asyncio.Event] = []
        self._arrived = asyncio.Event()
        self.provider = PROVIDERS[style](self)
        self.agent: Agent = create_agent(
            provider=_any(self.provider),
            tools=[self._tool(kind) for kind in RUNNABLE],
            tool_concurrency=script.concurrency,
            max_steps=script.max_steps,
            on_event=self.hear if heard else None,
        )

    def check(self, assertion: Any) -> None:
        """Keep what an assertion says where the run would swallow it."""
        try:
            assertion()
        except AssertionError as problem:
            self.problems.append(problem)

    async def give_way(self) -> None:
        for _ in range(self.script.gaps):
            await asyncio.sleep(0)

    def hear(self, event: Any) -> None:
        self.heard.append(event)
        if len(self.heard) == self.stop_at:
            self.stop()

    def note_failure(self) -> None:
        if not self.signal.aborted:
            self.failed_before_stop = True

    def stop(self) -> None:
        """Abort the run, and remember how far it was."""
        self.asked_at_stop = len(self.provider.requests)
        self.started_at_stop = {one.tool_call_id for one in self.heard if one.type in ("tool.start", "tool.resume")}
        self.started_at_stop |= set(self.started)
        self.done_at_stop = {one.tool_call_id for one in self.heard if one.type in ("tool.done", "tool.error")}
        if self.heard and self.heard[-1].type == "text.delta":
            steps = [index for index, one in enumerate(self.heard) if one.type == "step.start"]
            self.text_at_stop = "".join(one.text for one in self.heard[steps[-1] :] if one.type == "text.delta")
        self.signal.abort("enough")

    async def let_go(self) -> None:
        """Let one of the calls that wait go on, then another: the order of the script, not that of the calls."""
        while True:
            await self._arrived.wait()
            for _ in range(3):
                await asyncio.sleep(0)
            self._waiting.pop(self.script.order % len(self._waiting)).set()
            if not self._waiting:
                self._arrived.clear()

    def _begin(self, context: ToolContext) -> Call:
        self.started.append(context.tool_call_id)
        self.running += 1
        self.peak = max(self.peak, self.running)
        if self.stop_at == context.tool_call_id and not self.signal.aborted:
            self.stop()
        return self._calls[context.tool_call_id]

    def _end(self, context: ToolContext) -> None:
        self.running -= 1
        self.ended.append(context.tool_call_id)

    def _tool(self, kind: str) -> Any:
        async def act(args: Any, context: ToolContext) -> Any:
            self._begin(context)
            try:
                await self.give_way()
                if kind == "waits":
                    released = asyncio.Event()
                    self._waiting.append(released)
                    self._arrived.set()
                    await released.wait()
                if kind == "raises":
                    raise LookupError(str(args["number"]))
                if kind == "halts":
                    self.note_failure()
                    raise Halt(str(args["number"]))
                return args["number"]
            finally:
                self._end(context)

        def threaded(args: Any, context: ToolContext) -> Any:
            self.started.append(context.tool_call_id)
            if self.stop_at == context.tool_call_id and not self.signal.aborted:
                self.stop()
            self.ended.append(context.tool_call_id)
            return args["number"]

        async def counts(args: Any, context: ToolContext) -> Any:
            call = self._begin(context)
            try:
                for number in range(call.snapshots):
                    yield args["number"] + number
                    await self.give_way()
            finally:
                self._end(context)

        execute: Any = {"threaded": threaded, "counts": counts}.get(kind, act)

        async def gate(args: Any, context: ToolContext) -> bool:
            self.gates.append(context.tool_call_id)
            await self.give_way()
            return kind == "gated"

        schema = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
        return define_tool(name=kind, description=f"Does {kind}.", input=schema, execute=execute, needs_approval=gate)


@dataclass
class Outcome:
    """All that came of a script."""

    world: World
    result: RunResult | None = None
    error: BaseException | None = None
    streams: list[list[Any]] = field(default_factory=lambda: [])
    pauses: int = 0

    @property
    def events(self) -> list[Any]:
        """All events there are, of the run and of those that went on from its pauses."""
        return [event for stream in self.streams for event in stream]

    @property
    def ended(self) -> RunResult:
        assert self.result is not None, f"the run failed: {self.error!r}"
        return self.result


async def play(script: Script, way: Way, style: Style = "streams", *, stop_at: int | str | None = None) -> Outcome:
    """Run a script to its end, deciding what it asks; `stop_at` is 0, the number of an event, or the id of a call."""
    heard = way == "heard" or stop_at is not None
    world = World(script, style, heard=heard, stop_at=stop_at)
    if stop_at == 0:
        world.stop()
    outcome = Outcome(world)
    before = asyncio.all_tasks()
    driver = asyncio.ensure_future(world.let_go())
    try:
        await asyncio.wait_for(_play(outcome, way), WAIT)
    finally:
        driver.cancel()
        with suppress(asyncio.CancelledError):
            await driver
    for _ in range(20 if world.signal.aborted else 3):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == before, "a task was left behind"
    _check_streams(outcome, heard=heard)
    if world.problems:
        raise world.problems[0]
    return outcome


async def _play(outcome: Outcome, way: Way) -> None:
    world = outcome.world
    source: Any = world.agent.session("s") if way.startswith("session") else world.agent
    streamed = way in ("stream", "session-stream")
    await _once(outcome, source.stream if streamed else source.send, "go", streamed=streamed, signal=world.signal)
    approvals = world.agent.approvals
    decide: Any = approvals.stream_resolve if streamed else approvals.resolve
    while outcome.result is not None and outcome.result.finish_reason == "awaiting-approval":
        outcome.pauses += 1
        check_messages(outcome.result.messages, waiting=True)
        waiting = {item.id: item for item in await approvals.list()}
        assert [*waiting] == outcome.result.approval_ids
        chosen = outcome.result.approval_ids[world.script.order % len(waiting)]
        approved = world._calls[waiting[chosen].tool_call_id].approved
        await _once(outcome, decide, streamed=streamed, id=chosen, approved=approved, signal=world.signal)


async def _once(outcome: Outcome, ask: Any, *inputs: Any, streamed: bool, **options: Any) -> None:
    """Ask once, and take what comes of it into the outcome."""
    outcome.result = outcome.error = None
    try:
        if streamed:
            run = ask(*inputs, **options)
            outcome.streams.append([])
            try:
                async for event in run:
                    outcome.streams[-1].append(event)
            except Exception as error:
                outcome.error = error
            try:
                outcome.result = await run.result
            except Exception as error:
                assert outcome.error in (None, error)
                outcome.error = error
        else:
            outcome.result = await ask(*inputs, **options)
    except Exception as error:
        outcome.error = error


def _check_streams(outcome: Outcome, *, heard: bool) -> None:
    """Check the order of all events; what a listener heard is what a reader read."""
    if heard:
        by_run: dict[str, list[Any]] = {}
        for event in outcome.world.heard:
            by_run.setdefault(event.run_id, []).append(event)
        assert not outcome.streams or outcome.streams == [*by_run.values()]
        outcome.streams = [*by_run.values()]
    for stream in outcome.streams:
        check_event_order(stream)
