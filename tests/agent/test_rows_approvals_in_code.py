"""Deciding in code with `approve`, and pauses that expire."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from runs import WAIT, call, calls, collect, of_type

from lousho import (
    APPROVAL_EXPIRED_REASON,
    ApprovalRequest,
    CancelSignal,
    SDKError,
    ToolContext,
    ask,
    create_agent,
    tool,
)
from lousho.testing import check_event_order, mock_model


def mailer(sent: list[Any]) -> Any:
    @tool(needs_approval=True)
    def send_email(to: str, ctx: ToolContext) -> str:
        """Send an e-mail."""
        sent.append((to, ctx.approval.note if ctx.approval is not None else None))
        return f"sent to {to}"

    return send_email


def mails(*names: str) -> Any:
    return calls(*[("send_email", {"to": name}) for name in names])


def results(result: Any) -> list[Any]:
    """Return the results of the turn's calls, errors as what the model reads in them."""
    return [json.loads(m.content)["kind"] if m.is_error else m.content for m in result.messages if m.role == "tool"]


async def _later(answer: Any) -> Any:
    await asyncio.sleep(0)
    return answer


@pytest.mark.spec("APPR-40", "API-25")
@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
async def test_an_approve_function_decides_with_a_bool_or_a_note(awaited: bool):
    sent: list[Any] = []
    asked: list[ApprovalRequest] = []
    answers: dict[str, Any] = {"yes": True, "no": False, "note": "as you like"}

    def decide(request: ApprovalRequest) -> Any:
        asked.append(request)
        return answers[request.args["to"]]

    async def decide_later(request: ApprovalRequest) -> Any:
        return await _later(decide(request))

    agent = create_agent(
        provider=mock_model([mails("yes", "no", "note"), "Done."]),
        tools=[mailer(sent)],
        approve=decide_later if awaited else decide,
    )
    result = await agent.send("go")
    assert (result.text, result.approval_ids) == ("Done.", [])
    assert sorted(sent) == [("note", "as you like"), ("yes", None)]
    assert results(result) == ["sent to yes", "rejected", "sent to note"]
    assert [(one.tool_name, one.kind, one.principal, one.expires_at) for one in asked] == [
        ("send_email", None, None, None)
    ] * 3
    assert await agent.approvals.list() == []


@pytest.mark.spec("APPR-40", "APPR-29")
async def test_a_call_that_is_deferred_waits_for_a_person_while_the_others_are_decided():
    sent: list[Any] = []
    answers: dict[str, Any] = {"a": True, "b": "defer", "c": False, "d": "defer"}
    agent = create_agent(
        provider=mock_model([mails("a", "b", "c", "d"), "Done."]),
        tools=[mailer(sent)],
        approve=lambda request: answers[request.args["to"]],
    )
    chat = agent.session("s")
    paused = await chat.send("go")
    assert (paused.finish_reason, sent) == ("awaiting-approval", [])
    assert [item.args["to"] for item in await agent.approvals.list()] == ["b", "d"]
    waiting = await chat.pending()
    assert waiting is not None
    assert waiting.approval_ids == paused.approval_ids
    b, d = paused.approval_ids
    await agent.approvals.resolve(id=d, approved=False)
    result = await agent.approvals.resolve(id=b, approved=True, note="by hand")
    assert result.text == "Done."
    assert sorted(sent) == [("a", None), ("b", "by hand")]
    assert results(result) == ["sent to a", "sent to b", "rejected", "rejected"]


@pytest.mark.spec("APPR-41", "API-25")
async def test_sessions_and_resumed_runs_ask_the_function_and_streams_do_not():
    sent: list[Any] = []
    agent = create_agent(
        provider=mock_model([mails("a"), "1", mails("b"), mails("c"), "2", mails("d"), mails("e")]),
        tools=[mailer(sent)],
        approve=lambda request: True,
    )
    assert (await agent.session("s").send("go")).text == "1"
    run = agent.stream("go")
    events = await collect(run)
    [asked] = of_type(events, "approval.requested")
    assert (events[-1].finish_reason, [to for to, _ in sent]) == ("awaiting-approval", ["a"])
    assert (await agent.approvals.resolve(id=asked.approval_id, approved=True)).text == "2"
    assert [to for to, _ in sent] == ["a", "b", "c"]
    [asked] = of_type(await collect(agent.stream("go")), "approval.requested")
    run = agent.approvals.stream_resolve(id=asked.approval_id, approved=True)
    assert (await collect(run))[-1].finish_reason == "awaiting-approval"
    assert [to for to, _ in sent] == ["a", "b", "c", "d"]


async def test_a_run_decided_in_code_is_one_run_for_who_listens():
    events: list[Any] = []
    agent = create_agent(
        provider=mock_model([mails("a", "b"), "Done."]),
        tools=[mailer([])],
        approve=lambda request: request.args["to"] == "a",
        on_event=events.append,
    )
    await agent.send("go")
    check_event_order(events)
    assert of_type(events, "approval.requested", "tool.resume") == []
    assert len(of_type(events, "run.start")) == len(of_type(events, "run.done")) == 1


@pytest.mark.parametrize("answer", [None, 1, 0, {"approved": True}, b"yes"], ids=str)
async def test_an_answer_that_is_none_fails_the_call_and_runs_nothing(answer: Any):
    sent: list[Any] = []
    agent = create_agent(
        provider=mock_model([mails("a"), "Done."]), tools=[mailer(sent)], approve=lambda request: answer
    )
    result = await agent.send("go")
    told = json.loads(str(result.messages[2].content))
    assert (sent, told["kind"]) == ([], "execution")
    assert "return True, False, a text" in told["message"]


async def test_a_function_that_raises_fails_the_call_and_runs_nothing():
    sent: list[Any] = []

    def decide(request: ApprovalRequest) -> bool:
        raise LookupError("no such policy")

    agent = create_agent(provider=mock_model([mails("a"), "Done."]), tools=[mailer(sent)], approve=decide)
    result = await agent.send("go")
    assert (result.text, sent, results(result)) == ("Done.", [], ["execution"])


@pytest.mark.parametrize("bad", [True, "yes", 1], ids=str)
def test_approve_must_be_a_function(bad: Any):
    with pytest.raises(SDKError, match="approve must be a function") as caught:
        create_agent(provider=mock_model(["x"]), approve=bad)
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"


async def test_an_abort_while_the_function_thinks_ends_the_run():
    stop = CancelSignal()
    sent: list[Any] = []

    async def decide(request: ApprovalRequest) -> bool:
        stop.abort("enough")
        await asyncio.Event().wait()
        return True

    agent = create_agent(provider=mock_model([mails("a"), "Done."]), tools=[mailer(sent)], approve=decide)
    result = await asyncio.wait_for(agent.send("go", signal=stop), WAIT)
    assert (result.finish_reason, sent, results(result)) == ("aborted", [], ["cancelled"])


async def test_a_blocking_function_keeps_nobody_waiting():
    import threading

    gate = threading.Event()
    agent = create_agent(
        provider=mock_model([mails("a"), "Done."]), tools=[mailer([])], approve=lambda request: gate.wait(WAIT)
    )
    run = asyncio.ensure_future(agent.send("go"))
    await asyncio.sleep(0)
    gate.set()  # the loop is free to do so
    assert (await asyncio.wait_for(run, WAIT)).text == "Done."


@pytest.mark.spec("APPR-47")
async def test_a_question_is_answered_in_code_or_declined_by_a_person():
    question = call("ask_question", question="Where to?", options=["Rome", "Lisbon"])
    kinds: list[Any] = []

    def answer(request: ApprovalRequest) -> Any:
        kinds.append((request.kind, dict(request.question or {})))
        return "LISBON" if request.kind == "question" else False

    agent = create_agent(provider=mock_model([question, "Off we go."]), ask_question=True, approve=answer)
    result = await agent.send("go")
    assert kinds == [("question", {"text": "Where to?", "options": ["Rome", "Lisbon"]})]
    assert json.loads(str(result.messages[2].content)) == {"answer": "Lisbon", "option": 1}
    asking = create_agent(provider=mock_model([question, "Then not."]), ask_question=True)
    paused = await asking.send("go")
    declined = await asking.approvals.resolve(id=str(paused.approval_id), approved=False)
    told = json.loads(str(declined.messages[2].content))
    assert (told["kind"], "declined to answer" in told["message"]) == ("rejected", True)


async def expired(agent: Any, approval_id: str) -> None:
    """Wait until a pause is past its deadline."""
    from datetime import UTC, datetime

    one = await agent.approvals.get(approval_id)
    while datetime.now(UTC) <= datetime.fromisoformat(one.expires_at):
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.002)


@pytest.mark.spec("APPR-34", "APPR-35", "APPR-19")
@pytest.mark.parametrize("approved", [True, False])
async def test_a_decision_after_the_deadline_denies_the_call(approved: bool):
    sent: list[Any] = []
    entries: list[Any] = []
    model = mock_model([mails("a"), "Too late."])
    agent = create_agent(
        provider=model,
        tools=[mailer(sent)],
        approval_ttl_ms=5,
        on_permission_decision=lambda entry, _: entries.append(entry),
    )
    [asked] = of_type(await collect(agent.stream("go")), "approval.requested")
    await expired(agent, asked.approval_id)
    [item] = await agent.approvals.list()  # listed until it is decided
    assert asked.expires_at == item.expires_at
    result = await agent.approvals.resolve(id=item.id, approved=approved)
    told = json.loads(str(model.calls[1].messages[-1].content))
    assert (sent, result.text, told["kind"]) == ([], "Too late.", "denied")
    assert told["message"] == "Approval of 'send_email' expired before it was decided"
    assert "reason" not in told
    assert (entries[-1]["decision"], entries[-1]["reason"]) == ("deny", "approval expired")
    assert APPROVAL_EXPIRED_REASON == "approval expired"


@pytest.mark.spec("APPR-36")
async def test_a_streamed_decision_after_the_deadline_denies_the_call_too():
    sent: list[Any] = []
    agent = create_agent(
        provider=mock_model([mails("a"), "Too late."]), tools=[mailer(sent)], permissions=[ask("*", ttl_ms=5)]
    )
    paused = await agent.session("s").send("go")
    await expired(agent, str(paused.approval_id))
    events = await collect(agent.approvals.stream_resolve(id=str(paused.approval_id), approved=True))
    assert (sent, len(of_type(events, "tool.error"))) == ([], 1)
    assert of_type(events, "permission.decision")[0].reason == "approval expired"


@pytest.mark.spec("APPR-36")
@pytest.mark.parametrize("blocking", [False, True], ids=["async", "sync"])
async def test_a_function_that_is_still_thinking_at_the_deadline_is_cut_off(blocking: bool):
    import threading

    sent: list[Any] = []
    forever = threading.Event()

    async def think(request: ApprovalRequest) -> bool:
        await asyncio.Event().wait()
        return True

    agent = create_agent(
        provider=mock_model([mails("a", "b"), "Too late."]),
        tools=[mailer(sent)],
        approve=(lambda request: forever.wait(WAIT)) if blocking else think,
        approval_ttl_ms=20,
    )
    result = await asyncio.wait_for(agent.session("s").send("go"), WAIT)
    forever.set()
    assert (result.text, sent, results(result)) == ("Too late.", [], ["denied", "denied"])


async def deadline(agent: Any, **options: Any) -> float | None:
    """Return how many seconds a pause of a run has, rounded."""
    from datetime import datetime

    await agent.send("go", **options)
    item = (await agent.approvals.list())[-1]
    if item.expires_at is None:
        return None
    made, ends = (datetime.fromisoformat(text) for text in (item.created_at, item.expires_at))
    return round((ends - made).total_seconds())


@pytest.mark.spec("APPR-37")
async def test_a_rules_deadline_wins_over_the_calls_and_that_over_the_agents():
    def agent(**options: Any) -> Any:
        return create_agent(provider=mock_model([mails("a")] * 2), tools=[mailer([])], **options)

    assert await deadline(agent()) is None
    assert await deadline(agent(approval_ttl_ms=60_000)) == 60
    assert await deadline(agent(approval_ttl_ms=60_000), approval_ttl_ms=30_000) == 30
    rule = {"approval_ttl_ms": 60_000, "permissions": [ask("send_email", ttl_ms=10_000)]}
    assert await deadline(agent(**rule), approval_ttl_ms=30_000) == 10
    other = {"permissions": [ask("other_tool", ttl_ms=10_000)]}
    assert await deadline(agent(**other), approval_ttl_ms=30_000) == 30


@pytest.mark.spec("APPR-37")
async def test_the_deadline_of_a_call_holds_for_the_later_pauses_of_its_run():
    agent = create_agent(provider=mock_model([mails("a"), mails("b")]), tools=[mailer([])])
    paused = await agent.send("go", approval_ttl_ms=60_000)
    await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    [item] = await agent.approvals.list()
    assert item.expires_at is not None


@pytest.mark.spec("APPR-37")
@pytest.mark.parametrize("bad", [0, -1, 1e20, float("nan"), float("inf"), True, "60"], ids=str)
async def test_a_deadline_is_a_positive_number_of_milliseconds_up_to_a_hundred_years(bad: Any):
    model = mock_model(["x"])
    for make in (
        lambda: create_agent(provider=model, approval_ttl_ms=bad),
        lambda: ask("send_email", ttl_ms=bad),
    ):
        with pytest.raises(SDKError) as caught:
            make()
        assert caught.value.code == "LOUSHO_CONFIG_INVALID"
    with pytest.raises(SDKError) as caught:
        await create_agent(provider=model).send("go", approval_ttl_ms=bad)
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"
