"""The tool calls of one model turn, row by row of the runs page: beside each other, gated, failing, aborted."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hostile import check_transcript, told, within
from runs import calls, collect, of_type

from lousho import CancelSignal, ConfigurationError, PropagatingToolError, create_agent, tool
from lousho.testing import mock_model


@tool
async def lookup(word: str) -> str:
    """Look a word up."""
    return word.upper()


class Meeting:
    """A tool whose calls wait for each other, and a count of how many were inside at once."""

    def __init__(self, size: int) -> None:
        self.most = self.inside = 0
        self.full = asyncio.Event()
        self.size = size
        self.order: list[int] = []

    async def enter(self, number: int) -> int:
        self.order.append(number)
        self.inside += 1
        self.most = max(self.most, self.inside)
        if self.inside == self.size:
            self.full.set()
        await within(self.full.wait())
        for _ in range(3):
            await asyncio.sleep(0)
        self.inside -= 1
        return number


@pytest.mark.spec("RUN-30")
@pytest.mark.parametrize(("limit", "most"), [(1, 1), (2, 2), (3, 3), ("unbounded", 8), (None, 8)])
async def test_as_many_calls_run_at_once_as_the_limit_allows(limit: Any, most: int):
    meeting = Meeting(most)

    @tool
    async def meet(number: int) -> int:
        """Wait for the others."""
        return await meeting.enter(number)

    options = {} if limit is None else {"tool_concurrency": limit}
    model = mock_model([calls(*[("meet", {"number": n}) for n in range(8)]), "Done."])
    result = await within(create_agent(provider=model, tools=[meet], **options).send("go"))
    assert meeting.most == most
    assert meeting.order == list(range(8))
    assert told(result) == list(range(8))


@pytest.mark.spec("RUN-30")
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2", "all", [1]], ids=repr)
def test_a_limit_that_is_none_is_refused(value: Any):
    with pytest.raises(ConfigurationError, match="tool_concurrency") as caught:
        create_agent(provider=mock_model([]), tool_concurrency=value)
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"


@pytest.mark.spec("RUN-31", "RUN-32")
async def test_results_stand_in_call_order_and_events_come_as_calls_start_and_end():
    second_done = asyncio.Event()
    log: list[str] = []

    @tool(needs_approval=lambda word: log.append(f"gate {word}") or False)
    async def slow(word: str) -> str:
        """End after the other."""
        log.append(f"run {word}")
        await within(second_done.wait())
        return word

    @tool(needs_approval=lambda word: log.append(f"gate {word}") or False)
    async def fast(word: str) -> str:
        """End first."""
        log.append(f"run {word}")
        return word

    def hear(event: Any) -> None:
        if event.type.startswith("tool."):
            log.append(f"{event.type} {event.tool_call_id}")
        if event.type == "tool.done" and event.tool_call_id == "call_3":
            second_done.set()

    turn = calls(("slow", {"word": "a"}), ("slow", {}), ("fast", {"word": "c"}))
    model = mock_model([turn, "Done."])
    result = await within(create_agent(provider=model, tools=[slow, fast], on_event=hear).send("go"))
    assert [message.tool_call_id for message in model.calls[1].messages[-3:]] == ["call_1", "call_2", "call_3"]
    assert [told(result)[0], told(result)[2]] == ["a", "c"]
    starts = ["tool.start call_1", "gate a", "tool.start call_2", "tool.error call_2", "tool.start call_3", "gate c"]
    assert [line for line in log if line in starts] == starts  # a call is checked whole before the next one starts
    assert log.index("run a") < log.index("tool.done call_3") < log.index("tool.done call_1")


@pytest.mark.spec("RUN-32")
async def test_one_at_a_time_means_that_starts_and_ends_take_turns():
    events: list[Any] = []
    model = mock_model([calls(*[("lookup", {"word": word}) for word in "abc"]), "Done."])
    agent = create_agent(provider=model, tools=[lookup], tool_concurrency=1, on_event=events.append)
    await agent.send("go")
    order = [(event.type, event.tool_call_id) for event in of_type(events, "tool.start", "tool.done")]
    assert order == [(kind, f"call_{n}") for n in (1, 2, 3) for kind in ("tool.start", "tool.done")]


@pytest.mark.spec("RUN-33", "RUN-34")
@pytest.mark.parametrize("approved", [True, False])
async def test_the_ungated_calls_of_a_step_run_before_one_pause_on_all_gated_ones(approved: bool):
    ran: list[str] = []

    @tool
    async def free(word: str) -> str:
        """Run without asking."""
        ran.append(word)
        return word

    @tool(needs_approval=True)
    async def gated(word: str) -> str:
        """Run only when a person agrees."""
        ran.append(word)
        return word

    turn = calls(("free", {"word": "a"}), ("gated", {"word": "b"}), ("free", {"word": "c"}), ("gated", {"word": "d"}))
    model = mock_model([turn, "Done."])
    agent = create_agent(provider=model, tools=[free, gated])
    run = agent.stream("go")
    events = await collect(run)
    paused = await run.result
    assert (paused.finish_reason, ran, len(model.calls)) == ("awaiting-approval", ["a", "c"], 1)
    assert len(paused.approval_ids) == 2
    names = [event.type for event in events]
    assert names.count("run.done") == 1
    assert max(n for n, name in enumerate(names) if name == "tool.done") < names.index("approval.requested")

    between = await agent.approvals.resolve(id=paused.approval_ids[0], approved=approved)
    assert (between.finish_reason, ran) == ("awaiting-approval", ["a", "c"])
    result = await agent.approvals.resolve(id=paused.approval_ids[1], approved=True)
    assert (result.finish_reason, ran) == ("stop", ["a", "c", *(["b"] if approved else []), "d"])
    sent = model.calls[1].messages[-4:]
    assert [message.tool_call_id for message in sent] == ["call_1", "call_2", "call_3", "call_4"]
    first, second, third, fourth = told(result)
    assert (first, third, fourth) == ("a", "c", "d")
    assert second == "b" if approved else second["kind"] == "rejected"
    check_transcript(result)


@pytest.mark.spec("RUN-35")
async def test_a_call_that_fails_does_not_touch_its_siblings():
    @tool
    async def fail() -> str:
        """Fail."""
        raise ValueError("out of paper")

    turn = calls(("lookup", {"word": "a"}), ("fail", {}), ("ghost", {}), ("lookup", {}), ("lookup", {"word": "b"}))
    model = mock_model([turn, "Done."])
    result = await within(create_agent(provider=model, tools=[lookup, fail]).send("go"))
    answers = told(result)
    assert (answers[0], answers[4], result.text) == ("A", "B", "Done.")
    assert [one["kind"] for one in answers[1:4]] == ["execution", "not-found", "validation"]
    assert answers[1]["message"] == "out of paper"
    assert result.tool_errors == 3


@pytest.mark.spec("RUN-36")
@pytest.mark.parametrize("limit", [2, "unbounded"])
async def test_an_error_that_ends_the_run_waits_for_the_running_calls_and_lets_none_start(limit: Any):
    class Stop(PropagatingToolError):
        pass

    log: list[str] = []
    raised = asyncio.Event()

    @tool
    async def slow() -> str:
        """End after the error was raised."""
        log.append("slow begins")
        await within(raised.wait())
        for _ in range(5):
            await asyncio.sleep(0)
        log.append("slow ends")
        return "x"

    @tool
    async def stop() -> str:
        """End the run."""
        log.append("stop")
        raised.set()
        raise Stop("no further")

    @tool
    async def later() -> str:
        """Begin only where there was a place."""
        log.append("later")
        return "x"

    events: list[Any] = []
    turn = calls(("slow", {}), ("stop", {}), *[("later", {})] * (3 if limit == 2 else 0))
    model = mock_model([turn, "never"])
    agent = create_agent(provider=model, tools=[slow, stop, later], tool_concurrency=limit, on_event=events.append)
    before = asyncio.all_tasks()
    with pytest.raises(Stop, match="no further"):
        await within(agent.send("go"))
    assert log == ["slow begins", "stop", "slow ends"]
    assert len(model.calls) == 1
    assert (events[-1].type, events[-1].finish_reason) == ("run.done", "error")
    assert asyncio.all_tasks() - before == set()  # nothing is left running by itself


@pytest.mark.spec("RUN-37")
async def test_an_abort_in_a_step_cancels_the_calls_that_had_not_ended():
    begun = asyncio.Event()
    ran: list[str] = []

    @tool
    async def quick(word: str) -> str:
        """End at once."""
        ran.append(word)
        return word

    @tool
    async def endless(word: str) -> str:
        """Wait for ever."""
        ran.append(word)
        begun.set()
        await asyncio.sleep(3600)
        return word

    turn = calls(("quick", {"word": "a"}), ("endless", {"word": "b"}), ("quick", {"word": "c"}))
    agent = create_agent(provider=mock_model([turn, "never"]), tools=[quick, endless], tool_concurrency=1)
    signal = CancelSignal()
    task = asyncio.ensure_future(agent.send("go", signal=signal))
    await within(begun.wait())
    signal.abort()
    result = await within(task)
    assert (result.finish_reason, ran) == ("aborted", ["a", "b"])
    answers = told(result)
    assert answers[0] == "a"
    assert [(one["kind"], "cancelled" in one["message"]) for one in answers[1:]] == [("cancelled", True)] * 2
    assert [message.is_error for message in result.messages if message.role == "tool"] == [False, True, True]
    check_transcript(result)
    json.dumps(result.to_dict())
