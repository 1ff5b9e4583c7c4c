"""Decisions that race, fail, are cut off, come too late or meet a broken store: nothing runs twice, no session is stuck."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest
from hostile import play, told, within, wrong
from runs import WAIT, call, calls, of_type, types

from lousho import CancelSignal, SDKError, SessionAwaitingApprovalError, create_agent, define_tool, tool
from lousho.stores.memory import InMemoryApprovalStore, InMemorySessionStore
from lousho.stores.protocol import AgentStore, PausedStepRecord
from lousho.testing import mock_model


def mailer(sent: list[str], *, wait: asyncio.Event | None = None, began: asyncio.Event | None = None) -> Any:
    async def send(args: dict[str, Any]) -> str:
        sent.append(args["to"])
        if began is not None:
            began.set()
        if wait is not None:
            await wait.wait()
        return "sent"

    schema = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
    return define_tool(name="mail", description="Send", input=schema, execute=send, needs_approval=True)


def mails(*to: str) -> Any:
    return calls(*[("mail", {"to": one}) for one in to])


@pytest.mark.parametrize("round_", range(20))
async def test_decisions_on_all_calls_of_a_step_that_race_run_each_approved_call_once(round_):
    chance = random.Random(round_)
    sent: list[str] = []
    names = list("abcde")
    agent = create_agent(provider=mock_model([mails(*names), "Done."]), tools=[mailer(sent)])
    paused = await agent.session("s").send("go")
    approved = dict(zip(paused.approval_ids, [chance.random() < 0.7 for _ in names], strict=True))

    async def decide(approval_id: str) -> Any:
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        return await agent.approvals.resolve(id=approval_id, approved=approved[approval_id])

    finished: list[Any] = []
    while not finished:
        undecided = [item.id for item in await agent.approvals.list()]
        twice = chance.sample(undecided * 2, len(undecided) * 2)
        outcomes = await within(asyncio.gather(*[decide(one) for one in twice], return_exceptions=True))
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                assert getattr(outcome, "code", None) in ("LOUSHO_APPROVAL_CONFLICT", "LOUSHO_APPROVAL_NOT_FOUND")
            elif outcome.finish_reason == "stop":
                finished.append(outcome)
    assert len(finished) == 1
    assert sent == [name for name, one in zip(names, paused.approval_ids, strict=True) if approved[one]]
    assert agent.session("s").messages == finished[0].messages


def test_decisions_from_many_threads_run_the_call_once():
    for _ in range(20):
        sent: list[str] = []
        agent = create_agent(provider=mock_model([mails("a"), "Done."]), tools=[mailer(sent)])
        approval_id = str(agent.send_sync("go").approval_id)
        ready = threading.Barrier(8)
        outcomes: list[Any] = []

        def decide(
            agent: Any = agent, approval_id: str = approval_id, ready: Any = ready, outcomes: Any = outcomes
        ) -> None:
            ready.wait(WAIT)
            try:
                outcomes.append(asyncio.run(agent.approvals.resolve(id=approval_id, approved=True)).finish_reason)
            except SDKError as error:
                outcomes.append(error.code)

        threads = [threading.Thread(target=decide) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
        assert sent == ["a"]
        assert len(outcomes) == 8
        assert outcomes.count("stop") == 1
        assert set(outcomes) <= {"stop", "LOUSHO_APPROVAL_CONFLICT", "LOUSHO_APPROVAL_NOT_FOUND"}


async def test_a_decision_while_other_turns_wait_goes_on_and_they_are_refused():
    sent: list[str] = []
    agent = create_agent(provider=mock_model([mails("a"), "Done.", "Next."]), tools=[mailer(sent)])
    session = agent.session("s")
    turns = [asyncio.ensure_future(session.send(text)) for text in ("one", "two", "three")]
    paused = await within(turns[0])
    deciding = asyncio.ensure_future(agent.approvals.resolve(id=str(paused.approval_id), approved=True))
    refused = await within(asyncio.gather(*turns[1:], return_exceptions=True))
    assert [type(error) for error in refused] == [SessionAwaitingApprovalError] * 2
    assert (await within(deciding)).text == "Done."
    assert (await within(session.send("four"))).text == "Next."
    assert sent == ["a"]
    assert [message.content for message in session.messages if message.role == "user"] == ["one", "four"]


async def test_a_turn_that_is_asked_for_while_a_decision_goes_on_comes_after_it():
    sent: list[str] = []
    wait, began = asyncio.Event(), asyncio.Event()
    agent = create_agent(
        provider=mock_model([mails("a"), "Done.", "Next."]), tools=[mailer(sent, wait=wait, began=began)]
    )
    session = agent.session("s")
    paused = await within(session.send("one"))
    deciding = asyncio.ensure_future(agent.approvals.resolve(id=str(paused.approval_id), approved=True))
    await within(began.wait())
    following = asyncio.ensure_future(session.send("two"))
    await asyncio.sleep(0)
    wait.set()
    assert (await within(deciding)).text == "Done."
    assert (await within(following)).text == "Next."
    assert len(session.messages) == 6


async def test_a_continuation_that_fails_runs_nothing_twice_and_frees_the_session():
    sent: list[str] = []
    model = mock_model([mails("a", "b"), {"error": OSError("down")}, "Next."])
    agent = create_agent(provider=model, tools=[mailer(sent)])
    session = agent.session("s")
    paused = await session.send("go")
    first, second = paused.approval_ids
    await agent.approvals.resolve(id=first, approved=True)
    played = await play(agent.approvals.stream_resolve(id=second, approved=True))
    assert isinstance(played.error, SDKError)
    assert played.error.code == "LOUSHO_PROVIDER_REQUEST_FAILED"
    assert played.error.usage is not None
    assert types(played.events)[-2:] == ["error", "run.done"]
    assert sent == ["a", "b"]
    for again in (first, second):
        with pytest.raises(SDKError) as caught:
            await agent.approvals.resolve(id=again, approved=True)
        assert caught.value.code == "LOUSHO_APPROVAL_NOT_FOUND"
    assert (await session.send("next")).text == "Next."
    assert [message.content for message in session.messages] == ["next", "Next."]
    assert sent == ["a", "b"]


async def test_a_continuation_whose_task_is_cancelled_keeps_its_results_and_frees_the_session():
    sent: list[str] = []
    wait, began = asyncio.Event(), asyncio.Event()
    agent = create_agent(provider=mock_model([mails("a"), "Next."]), tools=[mailer(sent, wait=wait, began=began)])
    session = agent.session("s")
    paused = await session.send("go")
    deciding = asyncio.ensure_future(agent.approvals.resolve(id=str(paused.approval_id), approved=True))
    await within(began.wait())
    deciding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deciding
    assert [message.role for message in session.messages] == ["user", "assistant", "tool"]
    assert json.loads(str(session.messages[-1].content))["kind"] == "cancelled"
    assert (await within(session.send("next"))).text == "Next."
    assert sent == ["a"]


@pytest.mark.parametrize("approved", [True, False])
async def test_a_decision_that_is_aborted_at_once_settles_the_pause_and_runs_nothing(approved):
    sent: list[str] = []
    agent = create_agent(provider=mock_model([mails("a"), "Next."]), tools=[mailer(sent)])
    session = agent.session("s")
    paused = await session.send("go")
    signal = CancelSignal()
    signal.abort("enough")
    result = await agent.approvals.resolve(id=str(paused.approval_id), approved=approved, signal=signal)
    assert (result.finish_reason, sent) == ("aborted", [])
    assert told(result)[0]["kind"] == "cancelled"
    assert (await session.send("next")).text == "Next."


async def test_some_calls_of_a_step_may_expire_and_the_others_run():
    sent: list[str] = []
    agent = create_agent(
        provider=mock_model([mails("late", "in time", "rejected late"), "Done."]),
        tools=[mailer(sent)],
        permissions=[
            {"tool": "mail", "action": "ask", "ttl_ms": 1, "when": lambda args, _: "late" in args["to"]},
            {"tool": "mail", "action": "ask", "ttl_ms": 3_600_000},
        ],
    )
    paused = await agent.send("go")
    late, in_time, rejected = paused.approval_ids
    await asyncio.sleep(0.01)
    for approval_id, approved in ((in_time, True), (rejected, False)):
        await agent.approvals.resolve(id=approval_id, approved=approved)
    played = await play(agent.approvals.stream_resolve(id=late, approved=True))
    results = told(played.ended)
    assert sent == ["in time"]
    assert [result if isinstance(result, str) else result["kind"] for result in results] == ["denied", "sent", "denied"]
    assert results[0]["message"] == "Approval of 'mail' expired before it was decided"
    assert [event.tool_call_id for event in of_type(played.events, "tool.resume")] == ["call_1", "call_2", "call_3"]


@pytest.mark.parametrize("bad", ["", ".", "ap-x", "ap-x.1", "x" * 1_000_000, None, 5, "\ud800", "ap-x.1.1"])
async def test_ids_of_any_kind_are_not_found(bad):
    agent = create_agent(provider=mock_model(["x"]))
    with pytest.raises(SDKError) as caught:
        await agent.approvals.resolve(id=wrong(bad), approved=True)
    assert caught.value.code == "LOUSHO_APPROVAL_NOT_FOUND"
    assert await agent.approvals.get(wrong(bad)) is None
    played = await play(agent.approvals.stream_resolve(id=wrong(bad), approved=True))
    assert types(played.events) == ["run.start", "error", "run.done"]


@pytest.mark.parametrize(
    "decision", [{"approved": "yes"}, {"approved": 1}, {"approved": None}, {"approved": True, "note": 5}]
)
async def test_a_decision_that_is_none_leaves_the_pause_as_it_was(decision):
    sent: list[str] = []
    agent = create_agent(provider=mock_model([mails("a"), "Done."]), tools=[mailer(sent)])
    approval_id = str((await agent.send("go")).approval_id)
    with pytest.raises(SDKError) as caught:
        await agent.approvals.resolve(id=approval_id, **decision)
    assert caught.value.code == "LOUSHO_APPROVAL_DECISION_INVALID"
    assert [item.id for item in await agent.approvals.list()] == [approval_id]
    assert (await agent.approvals.resolve(id=approval_id, approved=True)).text == "Done."
    assert sent == ["a"]


async def test_an_agent_without_the_tool_leaves_the_pause_for_one_that_has_it():
    sent: list[str] = []
    agent = create_agent(provider=mock_model([mails("a"), "Done."]), tools=[mailer(sent)])
    paused = await agent.session("s").send("go")
    without = agent.with_options(tools=[])
    with pytest.raises(SDKError) as caught:
        await without.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert caught.value.code == "LOUSHO_RESUME_TOOL_MISSING"
    assert (await agent.approvals.resolve(id=str(paused.approval_id), approved=True)).text == "Done."
    assert sent == ["a"]


async def test_arguments_that_no_longer_fit_the_tool_do_not_run_it():
    sent: list[str] = []
    agent = create_agent(provider=mock_model([mails("a"), "Done."]), tools=[mailer(sent)])
    paused = await agent.send("go")
    schema = {"type": "object", "properties": {"to": {"type": "integer"}}, "required": ["to"]}
    changed = define_tool(
        name="mail", description="Send", input=schema, execute=wrong(sent.append), needs_approval=True
    )
    newer = agent.with_options(tools=[changed])
    result = await newer.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert (told(result)[0]["kind"], sent) == ("validation", [])


class SlowApprovals(InMemoryApprovalStore):
    """Gives way inside of every call, as a database does, and fails where it is told to."""

    def __init__(self, *fails: str) -> None:
        super().__init__()
        self.fails = set(fails)
        self.saving = asyncio.Event()
        self.release = asyncio.Event()

    async def save(self, step: PausedStepRecord) -> bool:
        self.saving.set()
        await self.release.wait()
        self._fail("save")
        return await super().save(step)

    async def claim(self, step_id: str, revision: int) -> bool:
        await asyncio.sleep(0)
        self._fail("claim")
        return await super().claim(step_id, revision)

    async def list(self) -> list[PausedStepRecord]:
        await asyncio.sleep(0)
        self._fail("list")
        return await super().list()

    def _fail(self, verb: str) -> None:
        if verb in self.fails:
            raise OSError(f"the disk is full: {verb}")


def stored(approvals: InMemoryApprovalStore) -> AgentStore:
    return AgentStore(sessions=InMemorySessionStore(), approvals=approvals)


async def test_a_cancellation_while_a_pause_is_saved_leaves_a_pause_that_can_be_decided():
    sent: list[str] = []
    heard: list[Any] = []
    store = SlowApprovals()
    agent = create_agent(
        provider=mock_model([mails("a"), "Done."]), tools=[mailer(sent)], store=stored(store), on_event=heard.append
    )
    task = asyncio.ensure_future(agent.session("s").send("go"))
    await within(store.saving.wait())
    task.cancel()
    await asyncio.sleep(0)
    store.release.set()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    assert types(heard)[-3:] == ["approval.requested", "step.done", "run.done"]
    assert heard[-1].finish_reason == "awaiting-approval"
    pending = await agent.approvals.list()
    result = await within(agent.approvals.resolve(id=pending[0].id, approved=True))
    assert (result.text, sent) == ("Done.", ["a"])
    assert agent.session("s").messages == result.messages


async def test_a_pause_that_cannot_be_saved_fails_the_run_and_asks_nobody():
    store = SlowApprovals("save")
    store.release.set()
    agent = create_agent(provider=mock_model([mails("a"), "Next."]), tools=[mailer([])], store=stored(store))
    played = await play(agent.session("s").stream("go"))
    assert isinstance(played.error, OSError)
    assert types(played.events)[-3:] == ["step.done", "error", "run.done"]
    assert (await within(agent.session("s").send("next"))).text == "Next."


async def test_a_store_that_cannot_claim_runs_nothing_and_keeps_the_pause():
    sent: list[str] = []
    store = SlowApprovals("claim")
    store.release.set()
    agent = create_agent(provider=mock_model([mails("a"), "Done."]), tools=[mailer(sent)], store=stored(store))
    paused = await within(agent.session("s").send("go"))
    with pytest.raises(OSError, match="claim"):
        await within(agent.approvals.resolve(id=str(paused.approval_id), approved=True))
    assert sent == []
    store.fails.clear()
    assert (await within(agent.approvals.resolve(id=str(paused.approval_id), approved=True))).text == "Done."
    assert sent == ["a"]


async def test_a_store_that_cannot_list_fails_the_turn_and_the_next_one_goes_on():
    store = SlowApprovals("list")
    agent = create_agent(provider=mock_model(["Next."]), store=stored(store))
    with pytest.raises(OSError, match="list"):
        await within(agent.session("s").send("go"))
    store.fails.clear()
    assert (await within(agent.session("s").send("next"))).text == "Next."


async def saved_state() -> tuple[Any, PausedStepRecord]:
    agent = create_agent(provider=mock_model([mails("a", "b"), "Done."] * 2), tools=[mailer([])])
    await agent.session("s").send([{"role": "user", "content": [{"type": "text", "text": "go"}], "metadata": {"a": 1}}])
    return agent, (await agent.approval_store.list())[0]


def broken(value: Any, path: list[Any], other: Any) -> Any:
    """Return `value` with what is at `path` (as far as there is such a place) replaced by `other`."""
    if path and isinstance(value, dict) and value:
        key = list(value)[path[0] % len(value)]
        return {**value, key: broken(value[key], path[1:], other)}
    if path and isinstance(value, list) and value:
        index = path[0] % len(value)
        return [*value[:index], broken(value[index], path[1:], other), *value[index + 1 :]]
    return other


@hypothesis.given(
    st.lists(st.integers(0, 20), max_size=7),
    st.sampled_from([None, "", "x", 5, -1, [], {}, [None], {"a": 1}, True, 1e300]),
)
async def test_a_saved_run_with_anything_wrong_in_it_is_decided_or_refused_with_a_code(path, other):
    agent, step = await saved_state()
    first, second = [str(approval["id"]) for approval in step.approvals]
    await agent.approval_store.claim(step.id, step.revision)
    step.state = json.dumps(broken(json.loads(step.state), path, other))
    step.revision = 0
    await agent.approval_store.save(step)
    for approval_id in (first, second):
        try:
            result = await within(agent.approvals.resolve(id=approval_id, approved=True))
        except SDKError as error:
            assert error.code in ("LOUSHO_CHECKPOINT_CORRUPT", "LOUSHO_RESUME_TOOL_MISSING", "LOUSHO_SESSION_BUSY")
            return
        assert result.finish_reason in ("awaiting-approval", "stop", "max-steps")


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "5", "{}", "\x00", '"x"', "[" * 10_000, '{"version":2}'])
async def test_a_saved_run_that_cannot_be_read_is_refused_and_nothing_is_claimed(text):
    agent, step = await saved_state()
    step.state = text
    assert await agent.approval_store.save(step)
    approval_id = str(step.approvals[0]["id"])
    with pytest.raises(SDKError) as caught:
        await agent.approvals.resolve(id=approval_id, approved=True)
    assert caught.value.code == "LOUSHO_CHECKPOINT_CORRUPT"
    assert approval_id in [item.id for item in await agent.approvals.list()]


@pytest.mark.spec("HAZ-21")
async def test_the_result_of_a_continued_run_has_the_calls_from_before_the_pause():
    @tool
    async def ping() -> str:
        """Answer."""
        return "pong"

    model = mock_model([call("ping"), calls(("ping", {}), ("mail", {"to": "a"})), mails("b"), "Done."])
    agent = create_agent(provider=model, tools=[ping, mailer([])])
    result = await agent.send("go")
    while result.finish_reason == "awaiting-approval":
        result = await agent.approvals.resolve(id=str(result.approval_id), approved=True)
    assert [call.name for call in result.tool_calls] == ["ping", "ping", "mail", "mail"]
    assert (result.steps, result.usage.model_calls, len(result.step_usage)) == (4, 4, 4)
