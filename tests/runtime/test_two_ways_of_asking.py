"""A model that streams and one that cannot, asked in every way, with a listener and without: one and the same run.

Each case is a script that is played once as the measure and then in all other ways. Whatever differs, besides how the text
arrives, is a failure.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from asking_cases import CASES, N1, NUMBER, PROVIDERS, STYLES, Case, Streaming, asked, said, tools
from hostile import check_transcript, wrong
from runs import WAIT, types

from lousho import Agent, CancelSignal, ModelResponse, create_agent, define_tool
from lousho.models.provider import ModelRequest
from lousho.testing import check_event_order

Way = Literal["send", "stream", "session", "session-stream", "send_sync", "stream_sync", "session_sync"]
WAYS: tuple[Way, ...] = ("send", "stream", "session", "session-stream", "send_sync", "stream_sync", "session_sync")
MOVING = ("runId", "seq", "timestamp", "durationMs", "expiresAt", "at", "sessionId")


@dataclass
class Told:
    """All that a play of a case said, without what differs between any two runs."""

    answers: list[Any] = field(default_factory=lambda: [])
    """The result of the run and of what went on from its pauses, or the error."""
    streams: list[list[Any]] = field(default_factory=lambda: [])
    heard: list[Any] = field(default_factory=lambda: [])
    provider: Any = None
    kept: Any = None

    def take(self, result: Any) -> Any:
        check_transcript(result)
        wire = result.to_dict()
        assert json.loads(json.dumps(wire, allow_nan=False)) == wire
        hidden = (*MOVING, "approvalId", "approvalIds")
        self.answers.append({key: value for key, value in wire.items() if key not in hidden})
        return result

    def fail(self, error: Exception) -> None:
        self.answers.append(
            (type(error), str(error), getattr(error, "code", None), _wire(getattr(error, "usage", None)))
        )


def _wire(value: Any) -> Any:
    return value.to_dict() if hasattr(value, "to_dict") else value


def normal(events: list[Any]) -> Any:
    """Return what must be the same of two streams: all but deltas and stamps, and which of several calls was quicker."""
    check_event_order(events)
    kept: list[Any] = []
    settled: list[Any] = []
    for event in events:
        wire = {key: value for key, value in event.to_dict().items() if key not in MOVING}
        if "approvalId" in wire:
            wire["approvalId"] = wire["approvalId"].rsplit(".", 1)[-1]
        if event.type in ("tool.partial", "tool.done", "tool.error"):
            settled.append(wire)
        elif event.type not in ("text.delta", "reasoning.delta"):
            kept.append(wire)
    return kept, sorted(settled, key=lambda wire: (wire["toolCallId"], wire.get("index", 99)))


def build(case: Case, style: str, heard: bool, told: Told) -> tuple[Agent, CancelSignal]:
    """Return a fresh agent for a case and the signal of its run."""
    signal = CancelSignal()
    told.provider = PROVIDERS[style](case.turns)
    options: dict[str, Any] = {"provider": told.provider, "tools": tools(signal), **case.options}
    return create_agent(**options, on_event=told.heard.append if heard else None), signal


def decide(case: Case, index: int, waiting: Any) -> tuple[str, dict[str, Any]]:
    """Return which method of the approvals decides what waits first, and with what."""
    decision = case.decisions[index]
    if isinstance(decision, str):
        return "answer", {"id": waiting.id, "answer": decision}
    return "resolve", {"id": waiting.id, "approved": decision}


async def play(case: Case, style: str, way: Way, heard: bool) -> Told:
    """Ask a case on an event loop."""
    told = Told()
    agent, signal = build(case, style, heard, told)
    streamed = "stream" in way

    async def once(source: Any, name: str, *inputs: Any, **options: Any) -> Any:
        if not streamed:
            return told.take(await getattr(source, name)(*inputs, **options))
        told.streams.append([])
        run = getattr(source, "stream" if name == "send" else f"stream_{name}")(*inputs, **options)
        with suppress(Exception):  # the error of the run, which its result has as well
            async for event in run:
                told.streams[-1].append(event)
        return told.take(await run.result)

    try:
        result = await once(agent.session("s") if "session" in way else agent, "send", "go", signal=signal)
        for index in range(len(case.decisions)):
            assert result.finish_reason == "awaiting-approval"
            name, options = decide(case, index, (await agent.approvals.list())[0])
            result = await once(agent.approvals, name, **options)
        assert result.finish_reason != "awaiting-approval"
    except Exception as error:
        told.fail(error)
    told.kept = await agent.session("s").load()
    return told


def play_blocking(case: Case, style: str, way: Way, heard: bool) -> Told:
    """Ask a case without an event loop. A blocking stream gives its events and no result."""
    told = Told()
    agent, signal = build(case, style, heard, told)
    streamed = "stream" in way

    def once(source: Any, name: str, *inputs: Any, **options: Any) -> None:
        if not streamed:
            told.take(getattr(source, f"{name}_sync")(*inputs, **options))
            return
        told.streams.append([])
        for event in getattr(source, "stream_sync" if name == "send" else f"stream_{name}_sync")(*inputs, **options):
            told.streams[-1].append(event)

    try:
        once(agent.session("s") if "session" in way else agent, "send", "go", signal=signal)
        for index in range(len(case.decisions)):
            name, options = decide(case, index, agent.approvals.list_sync()[0])
            once(agent.approvals, name, **options)
    except Exception as error:
        told.fail(error)
    told.kept = agent.session("s").messages
    return told


def play_in(case: Case, style: str, way: Way, heard: bool) -> Told:
    if "sync" in way:
        return play_blocking(case, style, way, heard)
    return asyncio.run(asyncio.wait_for(play(case, style, way, heard), WAIT))


@pytest.mark.spec("STRM-61", "STRM-20", "STRM-01")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_streaming_and_listening_change_nothing_but_how_the_text_arrives(case: Case):
    measure = play_in(case, "streams", "stream", heard=True)
    streams = [normal(stream) for stream in measure.streams]
    kept = play_in(case, "streams", "session", heard=False).kept
    for style in STYLES:
        for way in WAYS:
            for heard in (True, False):
                told = play_in(case, style, way, heard)
                where = f"{style}, {way}, {heard}"
                if "sync" not in way or "stream" not in way:
                    assert told.answers == measure.answers, where
                assert told.provider.sent == measure.provider.sent, where
                assert told.kept == (kept if "session" in way else []), where
                assert [normal(stream) for stream in told.streams] == (streams if told.streams else []), where
                if heard:
                    runs = by_run(told.heard)
                    assert [normal(run) for run in runs] == streams, where
                    assert told.streams in ([], runs), where


def by_run(events: list[Any]) -> list[list[Any]]:
    found: dict[str, list[Any]] = {}
    for event in events:
        found.setdefault(event.run_id, []).append(event)
    return [*found.values()]


@pytest.mark.spec("STRM-22", "STRM-60")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("heard", [True, False])
@pytest.mark.parametrize("style", STYLES)
def test_a_model_is_asked_for_a_stream_where_somebody_listens_and_it_can(style, heard, way):
    case = Case("two steps", [asked(("double", N1), text="One two."), said("Three four.")])
    told = play_in(case, style, way, heard)
    followed = heard or "stream" in way
    assert told.provider.asked == (["stream"] * 2 if style == "streams" and followed else ["generate"] * 2)
    for events in (*told.streams, told.heard):
        deltas = [event.text for event in events if event.type == "text.delta"]
        if events and style == "streams":
            assert deltas == list("One two.Three four.")
        elif events:
            assert deltas == ["One two.", "Three four."]
        assert [event.text for event in events if event.type == "text.done"] == (
            ["One two.", "Three four."] if events else []
        )


@pytest.mark.spec("STRM-60")
async def test_whether_a_model_streams_is_asked_of_the_model_that_runs():
    models: list[str | None] = []

    class Asked(Streaming):
        def supports_streaming(self, model: str | None = None) -> bool:
            models.append(model)
            return model == "quick"

    provider: Any = Asked([said("One."), said("Two.")])
    await create_agent(provider=provider, model="quick").stream("go").result
    await create_agent(provider=provider, model="slow").stream("go").result
    assert set(models) == {"quick", "slow"}
    assert provider.asked == ["stream", "generate"]


@pytest.mark.spec("STRM-20")
@pytest.mark.parametrize("way", ["send", "stream", "session", "session-stream"])
async def test_a_listener_is_called_at_once_and_in_the_middle_of_what_happens(way):
    order: list[str] = []

    async def note(args: Any) -> str:
        order.append("the tool runs")
        return "ok"

    class Noting(Streaming):
        def next_turn(self, request: ModelRequest, how: str) -> ModelResponse:
            order.append("the model is asked")
            return super().next_turn(request, how)

    tool = define_tool(name="note", description="Note.", input=NUMBER, execute=note, needs_approval=True)
    provider: Any = Noting([asked(("note", N1)), said("x")])
    agent = create_agent(provider=provider, tools=[tool], on_event=lambda event: order.append(event.type))
    source: Any = agent.session("s") if "session" in way else agent
    if "stream" in way:
        await source.stream("go").result
        await agent.approvals.stream_resolve(id=(await agent.approvals.list())[0].id, approved=True).result
    else:
        await source.send("go")
        await agent.approvals.resolve(id=(await agent.approvals.list())[0].id, approved=True)
    assert order == [
        "run.start",
        "step.start",
        "the model is asked",
        "tool.start",
        "approval.requested",
        "step.done",
        "run.done",
        "run.start",
        "tool.resume",
        "the tool runs",
        "tool.done",
        "step.start",
        "the model is asked",
        "text.delta",
        "text.done",
        "step.done",
        "run.done",
    ]


@pytest.mark.spec("STRM-20", "STRM-61")
@pytest.mark.parametrize("style", STYLES)
async def test_one_agent_asked_in_several_ways_at_once_tells_its_listener_of_every_run(style):
    heard: list[Any] = []
    turns = [said("Hello.") for _ in range(12)]
    agent = create_agent(provider=wrong(PROVIDERS[style](turns)), on_event=heard.append)
    runs = [agent.stream("go") for _ in range(4)]
    results = await asyncio.gather(
        *(agent.send("go") for _ in range(4)),
        *(agent.session(f"s{number}").send("go") for number in range(4)),
        *(result_of(run) for run in runs),
    )
    assert {result.text for result in results} == {"Hello."}
    streams = by_run(heard)
    assert len(streams) == 12
    assert {run.run_id for run in runs} <= {stream[0].run_id for stream in streams}
    for stream in streams:
        check_event_order(stream)
        assert types(stream) == ["run.start", "step.start", "text.delta", "text.done", "step.done", "run.done"]


async def result_of(run: Any) -> Any:
    return await run.result
