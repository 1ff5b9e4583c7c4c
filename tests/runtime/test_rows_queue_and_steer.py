"""Input for a run that is going on: `enqueue()` and `steer()`."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from lousho import (
    CancelSignal,
    ConfigurationError,
    FunctionCall,
    InputQueue,
    PropagatingToolError,
    ToolCall,
    create_agent,
    tool,
)
from lousho.core.messages import Message, TextPart
from lousho.executor import AgentBuilder, AgentExecutor
from lousho.models.provider import Finish, ModelChunk, ModelRequest, ReasoningDelta, TextDelta, ToolCallChunk
from lousho.testing import check_event_order, mock_model
from tests.support.runs import WAIT, ChunkProvider, call, calls, collect, of_type, types


def said(messages: Any) -> list[tuple[str, str]]:
    """Return role and text of messages, the system prompt left out."""
    return [(message.role, str(message.content)) for message in messages if message.role != "system"]


def words(*texts: str) -> Callable[[ModelRequest], AsyncIterator[ModelChunk]]:
    """Return a turn that says `texts`."""

    async def turn(request: ModelRequest) -> AsyncIterator[ModelChunk]:
        for text in texts:
            yield TextDelta(text)
        yield Finish("stop")

    return turn


class Silent:
    """A turn that thinks and says nothing until it is cancelled; a stubborn one not even then."""

    def __init__(self, *, stubborn: bool = False, reasoning: bool = True) -> None:
        self.began = asyncio.Event()
        self.stopped = asyncio.Event()
        self.late = asyncio.Event()
        self.signal: CancelSignal | None = None
        self._stubborn = stubborn
        self._reasoning = reasoning

    async def __call__(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        self.signal = request.signal
        if self._reasoning:
            yield ReasoningDelta("Rome, then.")
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.stopped.set()
            if not self._stubborn:
                raise
            await self.late.wait()
        yield TextDelta("A late answer.")
        yield Finish("stop")


@pytest.mark.spec("QSTEER-01", "QSTEER-04", "EVT-25")
async def test_input_queued_during_a_tool_joins_after_its_result_and_the_next_call_sees_it() -> None:
    working, go = asyncio.Event(), asyncio.Event()

    @tool
    async def look() -> str:
        """Look."""
        working.set()
        await go.wait()
        return "seen"

    model = mock_model([call("look"), {"text": "done"}])
    run = create_agent(provider=model, tools=[look]).stream("Plan a weekend.")
    reading = asyncio.create_task(collect(run))
    await asyncio.wait_for(working.wait(), WAIT)
    texts = run.enqueue("Under 500 EUR.")
    parts = run.enqueue([TextPart("By train.")])
    messages = run.enqueue([Message("user", "Two"), Message("user", "of us")])
    go.set()
    events = await reading
    assert said((await run.result).messages) == [
        ("user", "Plan a weekend."),
        ("assistant", ""),
        ("tool", "seen"),
        ("user", "Under 500 EUR."),
        ("user", str((TextPart("By train."),))),
        ("user", "Two"),
        ("user", "of us"),
        ("assistant", "done"),
    ]
    assert [message.role for message in model.calls[1].messages][-6:] == ["assistant", "tool", *["user"] * 4]
    queued = of_type(events, "input.queued")
    assert [(event.id, event.text) for event in queued] == [
        (texts.id, "Under 500 EUR."),
        (parts.id, "By train."),
        (messages.id, "Two\nof us"),
    ]
    assert [event.id for event in of_type(events, "input.applied")] == [texts.id, parts.id, messages.id]


@pytest.mark.spec("QSTEER-02", "EVT-27")
async def test_input_queued_while_the_final_reply_is_written_gets_one_more_step() -> None:
    agent = create_agent(provider=mock_model([{"text": "first answer"}, {"text": "second answer"}]))
    run = agent.stream("hello")
    events: list[Any] = []
    written: list[Any] = []
    async for event in run:
        events.append(event)
        if event.type == "text.delta" and not written:
            written.append(run.enqueue("And more."))
    check_event_order(events)
    result = await run.result
    assert (result.text, result.steps, result.finish_reason) == ("second answer", 2, "stop")
    after = [event.type for event in events if event.type in ("step.start", "step.done", "input.applied")]
    assert after == ["step.start", "step.done", "input.applied", "step.start", "step.done"]
    assert of_type(events, "input.applied")[0].step == 2


@pytest.mark.spec("QSTEER-05")
async def test_inputs_queued_before_one_model_call_are_applied_together_in_their_order() -> None:
    model = mock_model([{"text": "one"}])
    run = create_agent(provider=model).stream("a")
    inputs = [run.enqueue(text) for text in ("b", "c", "d")]
    events = await collect(run)
    assert said(model.calls[0].messages) == [("user", text) for text in "abcd"]
    assert [event.id for event in of_type(events, "input.applied")] == [one.id for one in inputs]
    assert len(model.calls) == 1


@pytest.mark.spec("QSTEER-03")
async def test_applied_is_true_once_the_input_is_in_the_transcript() -> None:
    run = create_agent(provider=mock_model([{"text": "one"}])).stream("a")
    queued = run.enqueue("b")
    assert queued.applied is not False
    assert await asyncio.wait_for(queued.applied, WAIT) is True
    assert ("user", "b") in said((await run.result).messages)
    late = run.enqueue("c")
    assert late.applied is False


@pytest.mark.spec("QSTEER-03")
@pytest.mark.parametrize("ending", ["aborted", "awaiting-approval", "max-steps", "error"])
async def test_applied_is_false_when_the_run_stops_before_its_next_model_call(ending: str) -> None:
    working, go = asyncio.Event(), asyncio.Event()

    @tool
    async def look() -> str:
        """Look."""
        working.set()
        await go.wait()
        if ending == "error":
            raise PropagatingToolError("broken")
        return "seen"

    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    turn = calls(("look", {}), ("pay", {})) if ending == "awaiting-approval" else call("look")
    agent = create_agent(provider=mock_model([turn, {"text": "done"}]), tools=[look, pay])
    run = agent.stream("a", throw_on_error=False, max_steps=1 if ending == "max-steps" else 5)
    reading = asyncio.create_task(collect(run))
    await asyncio.wait_for(working.wait(), WAIT)
    queued = run.enqueue("b")
    if ending == "aborted":
        run.abort()
    go.set()
    events = await reading
    assert queued.applied is not False
    assert await asyncio.wait_for(queued.applied, WAIT) is False
    assert events[-1].finish_reason == ending
    assert len(of_type(events, "input.queued")) == 1
    assert of_type(events, "input.applied") == []


async def test_a_final_reply_at_the_last_step_stays_the_answer_and_the_input_is_left() -> None:
    run = create_agent(provider=mock_model([{"text": "the answer"}])).stream("a", max_steps=1)
    queued = None
    async for event in run:
        if event.type == "text.delta" and queued is None:
            queued = run.enqueue("b")
    result = await run.result
    assert (result.text, result.finish_reason) == ("the answer", "stop")
    assert queued is not None
    assert queued.applied is not False
    assert await queued.applied is False


@pytest.mark.spec("QSTEER-08")
async def test_the_executor_takes_input_through_a_queue_that_serves_one_run() -> None:
    silent = Silent()
    provider = ChunkProvider(silent, words("to Paris"))
    queue = InputQueue()
    config = AgentBuilder().set_name("planner").set_prompt("Plan.").build()
    execution = asyncio.create_task(
        AgentExecutor.execute(agent=config, provider=provider, input="a", input_queue=queue)
    )
    await asyncio.wait_for(silent.began.wait(), WAIT)
    queued = queue.push("b")
    steered = queue.steer("c")
    result = await asyncio.wait_for(execution, WAIT)
    assert said(result.messages) == [("user", "a"), ("user", "b"), ("user", "c"), ("assistant", "to Paris")]
    assert queued.applied is not False
    assert await queued.applied is True
    assert (steered.applied, await steered.joined) == ("immediate", True)
    assert queue.push("late").applied is False
    with pytest.raises(ConfigurationError, match="one run") as caught:
        await AgentExecutor.execute(agent=config, provider=provider, input="a", input_queue=queue)
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"


@pytest.mark.spec("QSTEER-20", "EVT-26", "EVT-44")
async def test_a_steer_cuts_a_call_that_has_said_nothing_by_a_signal_of_its_own() -> None:
    silent = Silent()
    provider = ChunkProvider(silent, words("Paris it is"))
    run = create_agent(provider=provider).stream("Plan Rome.")
    reading = asyncio.create_task(collect(run))
    await asyncio.wait_for(silent.began.wait(), WAIT)
    steered = run.steer("Make it Paris.")
    assert steered.applied == "immediate"
    events = await reading
    await asyncio.wait_for(silent.stopped.wait(), WAIT)
    assert silent.signal is not None
    assert silent.signal.aborted
    assert types(events) == [
        "run.start",
        "step.start",
        "reasoning.start",
        "reasoning.delta",
        "input.steered",
        "reasoning.done",
        "step.done",
        "input.applied",
        "step.start",
        "text.delta",
        "text.done",
        "step.done",
        "run.done",
    ]
    shown = of_type(events, "input.steered")[0]
    assert (shown.id, shown.text, shown.mode) == (steered.id, "Make it Paris.", "immediate")
    first = of_type(events, "step.done")[0]
    assert (first.finish_reason, first.usage) == ("steered", None)
    result = await run.result
    assert result.finish_reason == "stop"
    assert said(result.messages) == [("user", "Plan Rome."), ("user", "Make it Paris."), ("assistant", "Paris it is")]
    assert said(provider.requests[1].messages) == [("user", "Plan Rome."), ("user", "Make it Paris.")]


@pytest.mark.spec("QSTEER-21", "EVT-17")
async def test_a_provider_that_ignores_a_steer_is_not_waited_for_and_its_late_reply_is_dropped() -> None:
    silent = Silent(stubborn=True)
    run = create_agent(provider=ChunkProvider(silent, words("Paris"))).stream("a")
    reading = asyncio.create_task(collect(run))
    await asyncio.wait_for(silent.began.wait(), WAIT)
    run.steer("b")
    events = await reading
    assert of_type(events, "step.done")[0].to_dict()["finishReason"] == "steered"
    assert "usage" not in of_type(events, "step.done")[0].to_dict()
    silent.late.set()
    await asyncio.sleep(0)
    assert [event.text for event in of_type(events, "text.delta")] == ["Paris"]
    assert said((await run.result).messages)[-1] == ("assistant", "Paris")


@pytest.mark.spec("QSTEER-22")
async def test_a_steer_after_the_first_words_waits_for_the_end_of_the_step() -> None:
    spoke, go = asyncio.Event(), asyncio.Event()

    async def talks(request: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield TextDelta("Rome ")
        spoke.set()
        await go.wait()
        yield TextDelta("it is")
        yield Finish("stop")

    run = create_agent(provider=ChunkProvider(talks, words("Paris"))).stream("a")
    reading = asyncio.create_task(collect(run))
    await asyncio.wait_for(spoke.wait(), WAIT)
    steered = run.steer("b")
    assert steered.applied == "queued"
    go.set()
    events = await reading
    assert [event.mode for event in of_type(events, "input.steered")] == ["queued"]
    assert said((await run.result).messages) == [
        ("user", "a"),
        ("assistant", "Rome it is"),
        ("user", "b"),
        ("assistant", "Paris"),
    ]


@pytest.mark.spec("QSTEER-22", "QSTEER-23")
async def test_a_steer_after_a_tool_call_came_in_waits_and_the_call_is_not_run() -> None:
    spoke, go = asyncio.Event(), asyncio.Event()
    ran: list[str] = []

    @tool
    def look() -> str:
        """Look."""
        ran.append("look")
        return "seen"

    async def asks(request: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield ToolCallChunk(ToolCall("c1", FunctionCall("look", "{}")))
        spoke.set()
        await go.wait()
        yield Finish("tool_calls")

    run = create_agent(provider=ChunkProvider(asks, words("Paris")), tools=[look]).stream("a")
    reading = asyncio.create_task(collect(run))
    await asyncio.wait_for(spoke.wait(), WAIT)
    assert run.steer("b").applied == "queued"
    go.set()
    events = await reading
    assert ran == []
    assert of_type(events, "tool.start") == []
    result = await run.result
    assert [role for role, _ in said(result.messages)] == ["user", "assistant", "tool", "user", "assistant"]


@pytest.mark.spec("QSTEER-23")
async def test_a_steer_lets_running_calls_finish_and_skips_those_that_have_not_begun() -> None:
    working, go = asyncio.Event(), asyncio.Event()
    ran: list[int] = []

    @tool
    async def look(number: int) -> str:
        """Look."""
        ran.append(number)
        working.set()
        await go.wait()
        return f"seen {number}"

    turn = calls(*(("look", {"number": number}) for number in (1, 2, 3)))
    model = mock_model([turn, {"text": "done"}])
    run = create_agent(provider=model, tools=[look], tool_concurrency=1).stream("a")
    reading = asyncio.create_task(collect(run))
    await asyncio.wait_for(working.wait(), WAIT)
    steered = run.steer("b")
    assert steered.applied == "queued"
    go.set()
    events = await reading
    assert ran == [1]
    result = await run.result
    _, _, first, second, third, after, _ = result.messages
    assert (first.content, after.content) == ("seen 1", "b")
    for message in (second, third):
        told = json.loads(str(message.content))
        assert (told["kind"], told["error"]) == ("not-run", "ToolNotRunError")
        assert "cancelled before it ran" in told["message"]
        assert message.is_error
    assert result.tool_errors in (None, 0)
    assert [event.tool_call_id for event in of_type(events, "tool.start")] == [first.tool_call_id]


async def test_a_steer_during_a_batch_also_spares_the_person_who_would_have_been_asked() -> None:
    working, go = asyncio.Event(), asyncio.Event()

    @tool
    async def look() -> str:
        """Look."""
        working.set()
        await go.wait()
        return "seen"

    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    agent = create_agent(provider=mock_model([calls(("pay", {}), ("look", {})), {"text": "done"}]), tools=[look, pay])
    run = agent.stream("a")
    reading = asyncio.create_task(collect(run))
    await asyncio.wait_for(working.wait(), WAIT)
    run.steer("Do not pay.")
    go.set()
    events = await reading
    assert events[-1].finish_reason == "stop"
    assert of_type(events, "approval.requested") == []
    assert await agent.approvals.list() == []
    assert len(of_type(events, "tool.error")) == 1


@pytest.mark.spec("QSTEER-24", "QSTEER-25")
async def test_a_steer_says_how_it_was_taken_and_whether_it_joined() -> None:
    silent = Silent(reasoning=False)
    run = create_agent(provider=ChunkProvider(silent, words("x"))).stream("a")
    reading = asyncio.create_task(collect(run))
    await asyncio.wait_for(silent.began.wait(), WAIT)
    steered = run.steer("b")
    events = await reading
    assert await asyncio.wait_for(steered.joined, WAIT) is True
    assert [event.id for event in of_type(events, "input.steered", "input.applied")] == [steered.id, steered.id]
    late = run.steer("c")
    assert late.applied is False
    assert await late.joined is False


@pytest.mark.spec("QSTEER-26", "QSTEER-25")
async def test_the_call_that_was_cut_short_counts_as_a_step() -> None:
    silent = Silent()
    provider = ChunkProvider(silent, words("never"))
    run = create_agent(provider=provider).stream("a", max_steps=1)
    reading = asyncio.create_task(collect(run))
    await asyncio.wait_for(silent.began.wait(), WAIT)
    steered = run.steer("b")
    events = await reading
    assert steered.applied == "immediate"
    assert await steered.joined is False
    assert events[-1].finish_reason == "max-steps"
    assert len(provider.requests) == 1


@pytest.mark.spec("STRM-01")
def test_a_blocking_stream_takes_input_and_says_without_a_loop_what_became_of_it() -> None:
    go = threading.Event()

    @tool
    def look() -> str:
        """Look."""
        assert go.wait(WAIT)
        return "seen"

    agent = create_agent(provider=mock_model([call("look"), {"text": "two"}]), tools=[look])
    events: list[Any] = []
    with agent.stream_sync("a") as run:
        for event in run:
            events.append(event)
            if event.type == "tool.start":
                break
        queued = run.enqueue("b").applied
        steered = run.steer("c")
        assert queued is not False
        assert not queued.done
        with pytest.raises(TimeoutError):
            queued.wait(1)
        go.set()
        events.extend(run)
    check_event_order(events)
    assert queued.wait(WAIT * 1000) is True
    assert steered.joined.wait(WAIT * 1000) is True
    assert run.enqueue("d").applied is False
    assert len(of_type(events, "input.applied")) == 2


@pytest.mark.spec("STRM-01")
async def test_a_stream_of_the_executor_takes_input_too() -> None:
    silent = Silent()
    config = AgentBuilder().set_name("planner").set_prompt("Plan.").build()
    run = AgentExecutor.stream(agent=config, provider=ChunkProvider(silent, words("Paris")), input="a")
    reading = asyncio.create_task(collect(run))
    await asyncio.wait_for(silent.began.wait(), WAIT)
    run.enqueue("b")
    assert run.steer("c").applied == "immediate"
    await reading
    assert said((await run.result).messages)[:3] == [("user", "a"), ("user", "b"), ("user", "c")]


@pytest.mark.spec("STRM-42")
async def test_a_continued_run_takes_input_and_can_be_steered() -> None:
    silent = Silent()

    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    async def asks(request: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield ToolCallChunk(ToolCall("c1", FunctionCall("pay", "{}")))
        yield Finish("tool_calls")

    agent = create_agent(provider=ChunkProvider(asks, silent, words("Paris")), tools=[pay])
    paused = await agent.send("a")
    assert paused.approval_id is not None
    run = agent.approvals.stream_resolve(id=paused.approval_id, approved=True)
    queued = run.enqueue("b")
    reading = asyncio.create_task(collect(run))
    await asyncio.wait_for(silent.began.wait(), WAIT)
    assert run.steer("c").applied == "immediate"
    events = await reading
    assert queued.applied is not False
    assert await queued.applied is True
    assert [role for role, _ in said((await run.result).messages)] == [
        "user",
        "assistant",
        "tool",
        "user",
        "user",
        "assistant",
    ]
    assert [event.finish_reason for event in of_type(events, "step.done")] == ["steered", "stop"]


async def test_input_from_many_threads_is_applied_each_exactly_once() -> None:
    working, go = asyncio.Event(), asyncio.Event()

    @tool
    async def look() -> str:
        """Look."""
        working.set()
        await go.wait()
        return "seen"

    run = create_agent(provider=mock_model([call("look"), {"text": "x"}]), tools=[look]).stream("a")
    reading = asyncio.create_task(collect(run))
    await asyncio.wait_for(working.wait(), WAIT)
    texts = [f"t{number}" for number in range(40)]
    threads = [threading.Thread(target=run.enqueue, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    go.set()
    events = await reading
    given = [text for role, text in said((await run.result).messages) if role == "user"]
    assert sorted(given[1:]) == sorted(texts)
    assert given[1:] == [event.text for event in of_type(events, "input.queued")]


async def test_a_listener_may_add_input_in_the_middle_of_an_event_and_the_stream_stays_in_order() -> None:
    taken: list[Any] = []

    def listen(event: Any) -> None:
        if event.type in ("reasoning.delta", "step.done") and len(taken) < 2:
            taken.append(run.steer(f"after {event.type}"))

    async def thinks(request: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield ReasoningDelta("hm")
        yield TextDelta("never shown")
        yield Finish("stop")

    agent = create_agent(provider=ChunkProvider(thinks, words("x"), words("y")), on_event=listen)
    run = agent.stream("a")
    events = await collect(run)
    assert [event.seq for event in events] == list(range(len(events)))
    assert [one.applied for one in taken] == ["immediate", "queued"]
    assert [text for role, text in said((await run.result).messages) if role == "user"] == [
        "a",
        "after reasoning.delta",
        "after step.done",
    ]


@pytest.mark.parametrize("wrong", [None, 7, [], b"x", [Message("tool", "x", tool_call_id="c")], [{"role": "system"}]])
async def test_input_that_is_none_is_refused_and_loses_nothing(wrong: Any) -> None:
    run = create_agent(provider=mock_model([{"text": "x"}])).stream("a")
    for take in (run.enqueue, run.steer):
        with pytest.raises(ConfigurationError) as caught:
            take(wrong)
        assert caught.value.code == "LOUSHO_CONFIG_INVALID"
    await collect(run)
    assert said((await run.result).messages) == [("user", "a"), ("assistant", "x")]


async def test_a_run_takes_a_thousand_inputs_and_refuses_the_next() -> None:
    queue = InputQueue()
    for _ in range(1_000):
        queue.push("x")
    with pytest.raises(ConfigurationError, match="1,000"):
        queue.push("x")
