"""The finer print of the errors page: what a failure carries, who is refused, what the model is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hostile import ANSWER, asks, chunks, within
from runs import WAIT, ChunkProvider, call, calls, collect, of_type

import lousho
from lousho import (
    AgentStore,
    CassetteMismatchError,
    ConfigurationError,
    InMemoryApprovalStore,
    ModelChunk,
    ModelRequest,
    PropagatingToolError,
    SDKError,
    SessionAwaitingApprovalError,
    ToolExecutionError,
    ask,
    create_agent,
    memory_store,
    tool,
)
from lousho.models.provider import Finish, TextDelta
from lousho.testing import mock_model, record_replay

if TYPE_CHECKING:
    from conftest import RunLousho


def gated(ran: list[str]) -> Any:
    @tool(needs_approval=True)
    async def note(word: str) -> str:
        """Note a word."""
        ran.append(word)
        return "noted"

    return note


def code_of(outcome: object) -> str | None:
    return outcome.code if isinstance(outcome, SDKError) else None


@pytest.mark.spec("ERR-08", "ERR-58")
async def test_every_way_into_a_paused_session_is_refused_with_the_ids_it_waits_for():
    ran: list[str] = []
    agent = create_agent(
        provider=mock_model([calls(("note", {"word": "a"}), ("note", {"word": "b"})), "Done.", "Hello."]),
        tools=[gated(ran)],
    )
    paused = await agent.session("s").send("go")
    same = agent.session("s")
    for attempt in (same.send("more"), same.stream("more").result, same.clear()):
        with pytest.raises(SessionAwaitingApprovalError) as caught:
            await attempt
        assert caught.value.code == "LOUSHO_SESSION_AWAITING_APPROVAL"
        assert (caught.value.approval_id, caught.value.approval_ids) == (paused.approval_id, paused.approval_ids)
    await agent.approvals.resolve(id=paused.approval_ids[0], approved=True)
    with pytest.raises(SessionAwaitingApprovalError) as half:
        await same.send("more")
    assert half.value.approval_ids == paused.approval_ids[1:] == [half.value.approval_id]
    await agent.approvals.resolve(id=paused.approval_ids[1], approved=True)
    assert ((await same.send("hi")).text, ran) == ("Hello.", ["a", "b"])


@pytest.mark.spec("ERR-08", "ERR-102")
async def test_a_request_that_a_cassette_lacks_names_the_cassette_and_the_call(tmp_path: Path):
    cassette = tmp_path / "flow.json"
    recording = create_agent(provider=record_replay(mock_model(["One.", "Two."]), cassette=cassette, mode="record"))
    for text in ("one", "two"):
        await recording.send(text)
    replaying = create_agent(provider=record_replay(cassette=cassette))
    await replaying.send("one")
    with pytest.raises(CassetteMismatchError) as caught:
        await replaying.send("three")
    assert (caught.value.code, caught.value.cassette, caught.value.call_number) == (
        "LOUSHO_CASSETTE_INVALID",
        str(cassette),
        2,
    )


class FullApprovals(InMemoryApprovalStore):
    """An approval store that cannot write."""

    async def save(self, step: Any) -> bool:
        raise OSError(f"no space left for {step.id[:2]}")


class FullSessions:
    """A session store that cannot write."""

    def __init__(self) -> None:
        self._inner = memory_store().sessions

    async def load(self, session_id: str) -> Any:
        return await self._inner.load(session_id)

    async def save(self, record: Any) -> bool:
        raise OSError(f"no space left for {record.id}")

    async def delete(self, session_id: str) -> None:
        await self._inner.delete(session_id)


@pytest.mark.spec("ERR-13", "ERR-14")
async def test_a_failure_that_is_not_ours_says_what_was_spent_too_and_shows_it_nowhere():
    pausing = create_agent(
        provider=mock_model([call("note", word="a")], on_exhausted="repeat-last"),
        tools=[gated([])],
        approval_store=FullApprovals(),
    )
    store = AgentStore(sessions=FullSessions(), approvals=InMemoryApprovalStore())
    talking = create_agent(provider=mock_model(["Hello."], on_exhausted="repeat-last"), store=store)
    for attempt in (
        pausing.send("go"),
        pausing.stream("go").result,
        pausing.session("s").send("go"),
        talking.session("s").send("hi"),
        talking.session("s").stream("hi").result,
    ):
        with pytest.raises(OSError, match="^no space left for ") as caught:
            await within(attempt)
        spent = getattr(caught.value, "usage", None)
        assert spent is not None
        assert (spent.model_calls, spent.total_tokens > 0) == (1, True)
        assert "usage" not in f"{caught.value} {caught.value!r} {caught.value.args}".lower()


@pytest.mark.spec("ERR-13", "ERR-14")
async def test_a_decided_run_that_fails_says_what_all_of_it_spent():
    @tool(needs_approval=True)
    async def stop(word: str) -> str:
        """Stop the run."""
        raise PropagatingToolError(f"stop at {word}")

    agent = create_agent(
        provider=mock_model([{"text": "First.", **call("look")}, call("stop", word="b")]), tools=[look, stop]
    )
    paused = await agent.send("go")
    with pytest.raises(PropagatingToolError) as caught:
        await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    spent = getattr(caught.value, "usage", None)
    assert spent == paused.usage
    assert (paused.usage.model_calls, repr(caught.value)) == (2, "PropagatingToolError('stop at b')")


@tool
async def look() -> str:
    """Look around."""
    return "nothing"


@pytest.mark.spec("ERR-20")
@pytest.mark.parametrize("ttl_ms", [0, -1, 3_200_000_000_000, float("nan"), True, "1"], ids=str)
def test_a_time_to_live_is_above_0_and_at_most_100_years(ttl_ms: Any):
    with pytest.raises(ConfigurationError) as of_agent:
        create_agent(provider=mock_model(["x"]), approval_ttl_ms=ttl_ms)
    with pytest.raises(ConfigurationError) as of_rule:
        ask("look", ttl_ms=ttl_ms)
    assert {of_agent.value.code, of_rule.value.code} == {"LOUSHO_CONFIG_INVALID"}
    assert of_agent.value.field == "approvalTtlMs"
    assert "ttlMs" in of_rule.value.detail
    assert create_agent(provider=mock_model(["x"]), approval_ttl_ms=3_100_000_000_000)


@pytest.mark.spec("ERR-20")
@pytest.mark.parametrize("concurrency", [0, -1, 1.5, True, "many", [2]], ids=str)
def test_a_tool_concurrency_is_a_whole_number_from_1_or_unbounded(concurrency: Any):
    with pytest.raises(ConfigurationError) as caught:
        create_agent(provider=mock_model(["x"]), tool_concurrency=concurrency)
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_INVALID", "toolConcurrency")
    for fine in (1, 64, "unbounded"):
        assert create_agent(provider=mock_model(["x"]), tool_concurrency=fine)


@pytest.mark.spec("ERR-20")
@pytest.mark.parametrize(
    ("args", "said"),
    [
        pytest.param(["chat", "--modle", "x"], "Did you mean --model?", id="a flag"),
        pytest.param(["docter"], "Did you mean lousho doctor?", id="a command"),
        pytest.param(["chat", "--model"], "--model", id="a flag without its value"),
    ],
)
def test_a_usage_error_of_a_command_is_a_configuration_error_with_exit_code_2(
    run_lousho: RunLousho, args: list[str], said: str
):
    done = run_lousho(args)
    first, second = done.stderr.splitlines()[:2]
    assert (done.returncode, done.stdout) == (2, "")
    assert said in first
    assert second.startswith("[LOUSHO_CONFIG_INVALID] usage: lousho")


@pytest.mark.spec("ERR-43")
async def test_a_tool_error_names_its_tool_and_cause_and_the_run_goes_on():
    seen: list[BaseException] = []
    cause = KeyError("k")

    @tool
    async def search(query: str) -> str:
        """Search."""
        raise ToolExecutionError(f"nothing for {query}", "search", cause)

    def shown(error: BaseException, info: Any) -> str:
        seen.append(error)
        return f"{info.tool_name} failed"

    model = mock_model([call("search", query="tea"), "Sorry."])
    run = create_agent(provider=model, tools=[search], tool_error_message=shown).stream("go")
    error = of_type(await collect(run), "tool.error")[0].error
    result = await run.result
    (raised,) = seen
    assert isinstance(raised, ToolExecutionError)
    assert (raised.code, raised.tool_name, raised.cause) == ("LOUSHO_TOOL_EXECUTION_FAILED", "search", cause)
    assert (error.name, error.message) == ("ToolExecutionError", "search failed")
    assert json.loads(str(model.calls[1].messages[-1].content))["kind"] == "execution"
    assert (result.text, result.finish_reason, result.tool_errors) == ("Sorry.", "stop", 1)


@pytest.mark.spec("ERR-44", "EVT-09")
@pytest.mark.parametrize(
    ("sent", "shown", "ran"),
    [
        pytest.param('{"to": "sam', '; received: {"to": "sam', [], id="cut off"),
        pytest.param("x" * 5000, f"; received: {'x' * 200}... (5000 characters)", [], id="long"),
        pytest.param('```json\n{"to": "sam"}\n```', None, ["sam"], id="a code fence"),
        pytest.param('{"to": "sam",}', None, ["sam"], id="a trailing comma"),
        pytest.param('"{\\"to\\": \\"sam\\"}"', None, ["sam"], id="encoded twice"),
        pytest.param("```\n[1]\n```", "; received: ```\n[1]\n```", [], id="a fence around no object"),
    ],
)
async def test_arguments_that_are_no_json_are_repaired_or_are_one_issue_that_shows_them(
    sent: str, shown: str | None, ran: list[str]
):
    got: list[str] = []

    @tool
    async def mail(to: str) -> str:
        """Send a mail."""
        got.append(to)
        return "sent"

    provider = chunks([asks("mail", sent), Finish("tool_calls")], ANSWER)
    run = create_agent(provider=provider, tools=[mail]).stream("go")
    events = await collect(run)
    start = of_type(events, "tool.start")[0].to_dict()
    assert (start["rawArgs"], start["args"]) == (sent, {"to": "sam"} if ran else {})
    assert got == ran
    told = str(provider.requests[1].messages[-1].content)
    if shown is None:
        assert told == "sent"
        return
    (issue,) = json.loads(told)["issues"]
    assert issue["path"] == "(root)"
    assert issue["message"].startswith("arguments are not valid JSON: ")
    assert issue["message"].endswith(shown)
    assert (await run.result).text == "Done."


@pytest.mark.spec("ERR-44")
async def test_no_arguments_at_all_are_an_empty_object():
    provider = chunks([asks("look", ""), asks("look", " \n", "c2"), Finish("tool_calls")], ANSWER)
    run = create_agent(provider=provider, tools=[look]).stream("go")
    starts = [event.to_dict() for event in of_type(await collect(run), "tool.start")]
    assert [(start["args"], "rawArgs" in start) for start in starts] == [({}, False)] * 2
    assert (await run.result).tool_errors is None


class Slow(InMemoryApprovalStore):
    """An approval store that two callers read before one of them writes."""

    def __init__(self) -> None:
        super().__init__()
        self.readers: asyncio.Barrier | None = None

    async def load(self, step_id: str) -> Any:
        step = await super().load(step_id)
        if self.readers is not None:
            await asyncio.wait_for(self.readers.wait(), WAIT)
        return step


@pytest.mark.spec("ERR-50")
@pytest.mark.parametrize("number", [1, 2], ids=["one approval", "two approvals of a step"])
async def test_of_two_decisions_that_read_the_same_step_one_wins_and_the_other_is_a_conflict(number: int):
    ran: list[str] = []
    store = Slow()
    turn = calls(*[("note", {"word": word}) for word in "ab"[:number]])
    agent = create_agent(provider=mock_model([turn, "Done."]), tools=[gated(ran)], approval_store=store)
    ids = (await agent.send("go")).approval_ids
    store.readers = asyncio.Barrier(2)
    decisions = [agent.approvals.resolve(id=one, approved=True) for one in (ids[0], ids[-1])]
    outcomes = await within(asyncio.gather(*decisions, return_exceptions=True))
    store.readers = None
    assert sorted(map(code_of, outcomes), key=str) == ["LOUSHO_APPROVAL_CONFLICT", None]
    (won,) = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    if number == 1:
        assert (won.text, ran, await agent.approvals.list()) == ("Done.", ["a"], [])
        return
    assert (won.finish_reason, ran) == ("awaiting-approval", [])
    assert [item.id for item in await agent.approvals.list()] == won.approval_ids
    assert (await agent.approvals.resolve(id=won.approval_ids[0], approved=True)).text == "Done."
    assert ran == ["a", "b"]


@pytest.mark.spec("ERR-48")
@pytest.mark.parametrize("how", ["resolve", "answer", "stream_resolve", "stream_answer"])
async def test_an_id_that_nothing_waits_under_is_refused_by_every_way_to_decide(how: str):
    agent = create_agent(provider=mock_model([call("note", word="a"), "Done."]), tools=[gated([])])
    paused = await agent.send("go")
    decide: Any = getattr(agent.approvals, how)
    decision = {"answer": "yes"} if "answer" in how else {"approved": True}
    for unknown in ("nope", "", f"{paused.approval_id}x", str(paused.approval_id).rpartition(".")[0]):
        run = decide(id=unknown, **decision)
        with pytest.raises(SDKError) as caught:
            await (run.result if how.startswith("stream") else run)
        assert caught.value.code == "LOUSHO_APPROVAL_NOT_FOUND"
    assert [item.id for item in await agent.approvals.list()] == [paused.approval_id]


@pytest.mark.spec("ERR-53")
@pytest.mark.parametrize("streamed", [False, True], ids=["resolve", "stream"])
async def test_a_question_is_declined_without_a_note_and_is_no_yes_or_no(streamed: bool):
    question = call("ask_question", question="Which?")
    model = mock_model([question, "Never mind.", call("note", word="a")])
    agent = create_agent(provider=model, ask_question=True, tools=[gated([])])
    asked = str((await agent.send("go")).approval_id)

    async def decide(**decision: Any) -> Any:
        if streamed:
            return await agent.approvals.stream_resolve(**decision).result
        return await agent.approvals.resolve(**decision)

    with pytest.raises(SDKError) as bare:
        await decide(id=asked, approved=True)
    assert bare.value.code == "LOUSHO_APPROVAL_KIND_MISMATCH"
    assert [item.id for item in await agent.approvals.list()] == [asked]
    assert (await decide(id=asked, approved=False)).text == "Never mind."
    assert json.loads(str(model.calls[1].messages[-1].content))["kind"] == "rejected"

    waiting = str((await agent.send("again")).approval_id)
    answered: Any = agent.approvals.stream_answer if streamed else agent.approvals.answer
    attempt = answered(id=waiting, answer="yes")
    with pytest.raises(SDKError) as wrong:
        await (attempt.result if streamed else attempt)
    assert wrong.value.code == "LOUSHO_APPROVAL_KIND_MISMATCH"
    assert [item.id for item in await agent.approvals.list()] == [waiting]


@pytest.mark.spec("ERR-61")
async def test_a_session_with_turns_that_run_or_wait_their_turn_is_not_cleared():
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        begun.set()
        await asyncio.wait_for(go_on.wait(), WAIT)
        yield TextDelta("One.")
        yield Finish("stop")

    async def quick(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield TextDelta("Two.")
        yield Finish("stop")

    agent = create_agent(provider=ChunkProvider(slow, quick))
    session = agent.session("s")
    first, second = session.stream("first"), session.stream("second")
    await asyncio.wait_for(begun.wait(), WAIT)
    with pytest.raises(SDKError) as caught:
        await session.clear()
    assert caught.value.code == "LOUSHO_SESSION_BUSY"
    go_on.set()
    assert [(await within(first.result)).text, (await within(second.result)).text] == ["One.", "Two."]
    assert [message.content for message in session.messages] == ["first", "One.", "second", "Two."]
    assert await session.clear() == 4


@pytest.mark.spec("ERR-61")
async def test_a_turn_that_lost_to_another_writer_changes_nothing_of_what_that_one_wrote():
    ran: list[str] = []

    @tool
    async def note(word: str) -> str:
        """Note a word, and let another agent take a turn."""
        ran.append(word)
        await other.session("s").send("quick")
        return "noted"

    turn = [asks("note", '{"word": "a"}'), Finish("tool_calls")]
    agent = create_agent(provider=chunks(turn, [TextDelta("Late."), Finish("stop")]), tools=[note])
    other = agent.with_options(provider=mock_model(["First."]), tools=[])
    run = agent.session("s").stream("go")
    events = await collect(run)
    with pytest.raises(SDKError) as lost:
        await run.result
    assert (lost.value.code, ran) == ("LOUSHO_SESSION_BUSY", ["a"])
    assert [event.type for event in events][-2:] == ["error", "run.done"]
    assert [message.content for message in await agent.session("s").load()] == ["quick", "First."]


@pytest.mark.spec("ERR-107")
async def test_a_tool_that_is_overdue_is_an_operation_timeout_with_its_name_and_limit():
    seen: list[BaseException] = []

    @tool(timeout_ms=20)
    async def wait() -> str:
        """Wait for ever."""
        await asyncio.sleep(WAIT)
        return "never"

    def shown(error: BaseException, _: Any) -> str:
        seen.append(error)
        return "too slow"

    model = mock_model([call("wait"), "Sorry."])
    result = await within(create_agent(provider=model, tools=[wait], tool_error_message=shown).send("go"))
    (overdue,) = seen
    assert isinstance(overdue, lousho.TimeoutError)
    assert (overdue.code, overdue.operation, overdue.timeout_ms) == ("LOUSHO_OPERATION_TIMEOUT", "tool wait", 20)
    assert "Raise the timeout" in overdue.hint
    assert (result.text, result.tool_errors) == ("Sorry.", 1)
