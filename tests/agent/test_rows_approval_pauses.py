"""What a pause is: its records, its events, its streamed continuation, and the questions that pause the same way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from runs import call, calls, collect, of_type, types

from lousho import InMemoryApprovalStore, SDKError, allow, ask_question_tool, create_agent, memory_store, tool
from lousho.testing import mock_model


def mailer(sent: list[str]) -> Any:
    @tool(needs_approval=True)
    def send_email(to: str) -> str:
        """Send an e-mail."""
        sent.append(to)
        return f"sent to {to}"

    return send_email


def mails(*names: str) -> Any:
    return calls(*[("send_email", {"to": name}) for name in names])


def asks(**question: Any) -> Any:
    return call("ask_question", **question)


@pytest.mark.spec("APPR-18")
async def test_the_list_has_every_undecided_call_oldest_first():
    store = memory_store()
    agent = create_agent(provider=mock_model([mails("a", "b"), mails("c")]), tools=[mailer([])], store=store)
    first = await agent.send("go")
    second = await agent.session("s").send("go")
    await agent.approvals.resolve(id=first.approval_ids[0], approved=True)
    other = create_agent(provider=mock_model(["x"]), tools=[mailer([])], store=store)
    for one in (agent, other):
        listed = await one.approvals.list()
        assert [item.id for item in listed] == [first.approval_ids[1], second.approval_id]
        assert [(item.tool_name, dict(item.args), item.session_id) for item in listed] == [
            ("send_email", {"to": "b"}, None),
            ("send_email", {"to": "c"}, "s"),
        ]
        assert all(item.tool_call_id and item.created_at.endswith("Z") and item.kind is None for item in listed)
        assert [item.expires_at for item in listed] == [None, None]
    await other.approvals.resolve(id=first.approval_ids[1], approved=False)
    assert [item.id for item in await agent.approvals.list()] == [second.approval_id]


@pytest.mark.spec("APPR-19")
async def test_a_call_of_a_session_that_never_ran_here_is_listed_with_its_session():
    store = memory_store()
    agent = create_agent(provider=mock_model([mails("a")]), tools=[mailer([])], store=store)
    await agent.session("s").send("go")
    [item] = await create_agent(provider=mock_model(["x"]), store=store).approvals.list()
    assert item.session_id == "s"


@pytest.mark.spec("APPR-19")
def test_a_store_that_cannot_list_is_refused():
    class Unlisted:
        async def save(self, step: Any) -> bool:
            raise AssertionError

        async def load(self, step_id: str) -> None:
            raise AssertionError

        async def claim(self, step_id: str, revision: int) -> bool:
            raise AssertionError

    with pytest.raises(SDKError, match=r"list\(\)") as caught:
        create_agent(provider=mock_model(["x"]), approval_store=Unlisted())  # type: ignore[arg-type]
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"


@pytest.mark.spec("APPR-23")
@pytest.mark.parametrize("in_session", [False, True], ids=["agent", "session"])
async def test_a_stream_ends_at_the_pause_with_an_event_for_each_call(in_session: bool):
    agent = create_agent(provider=mock_model([mails("a", "b")]), tools=[mailer([])])
    run = (agent.session("s") if in_session else agent).stream("go")
    events = await collect(run)
    paused = await run.result
    asked = of_type(events, "approval.requested")
    assert [(e.approval_id, e.args) for e in asked] == list(
        zip(paused.approval_ids, [{"to": "a"}, {"to": "b"}], strict=True)
    )
    assert types(events)[-4:] == ["approval.requested", "approval.requested", "step.done", "run.done"]
    assert events[-1].finish_reason == "awaiting-approval"


@pytest.mark.spec("APPR-24")
async def test_each_agent_keeps_its_pauses_in_memory_unless_it_is_given_a_store():
    def agent(**stores: Any) -> Any:
        return create_agent(provider=mock_model([mails("a"), "Sent."]), tools=[mailer([])], **stores)

    alone, other = agent(), agent()
    await alone.send("go")
    assert (len(await alone.approvals.list()), await other.approvals.list()) == (1, [])
    assert type(alone.approval_store) is InMemoryApprovalStore
    shared = InMemoryApprovalStore()
    given: list[dict[str, Any]] = [{"approval_store": shared}, {"store": memory_store()}]
    for stores in given:
        deciding = create_agent(provider=mock_model(["Sent."]), tools=[mailer([])], **stores)
        asking = agent(**stores)
        paused = await asking.send("go")
        result = await deciding.approvals.resolve(id=str(paused.approval_id), approved=True)
        assert (result.text, await asking.approvals.list()) == ("Sent.", [])


@pytest.mark.spec("APPR-43")
async def test_a_streamed_decision_resumes_the_call_and_goes_on_to_the_end():
    sent: list[str] = []
    agent = create_agent(provider=mock_model([mails("a", "b"), "Done."]), tools=[mailer(sent)])
    chat = agent.session("s")
    a, b = (await chat.send("go")).approval_ids
    await agent.approvals.resolve(id=b, approved=False)
    saved: list[int] = []
    run = agent.approvals.stream_resolve(id=a, approved=True)
    events: list[Any] = []
    async for event in run:
        events.append(event)
        if event.type == "run.done":
            saved.append(len(await chat.load()))
    ours = [name for name in types(events) if name != "text.delta"]
    assert ours[0] == "run.start"
    assert sorted(ours[1:5]) == ["tool.done", "tool.error", "tool.resume", "tool.resume"]
    assert ours[5:] == ["step.start", "text.done", "step.done", "run.done"]
    result = await run.result
    assert (result.text, result.messages, saved, sent) == ("Done.", chat.messages, [5], ["a"])


@pytest.mark.spec("APPR-43")
async def test_a_streamed_answer_is_a_run_like_any_other():
    agent = create_agent(provider=mock_model([asks(question="Where?"), "Off."]), ask_question=True)
    paused = await agent.send("go")
    run = agent.approvals.stream_answer(id=str(paused.approval_id), answer="Rome")
    events = await collect(run)
    assert of_type(events, "tool.start") == []
    assert [name for name in types(events) if name.startswith("tool")] == ["tool.resume", "tool.done"]
    assert (await run.result).text == "Off."


@pytest.mark.spec("APPR-44", "APPR-45")
@pytest.mark.parametrize("how", ["option", "tool"])
async def test_a_question_pauses_and_shows_what_it_asks(how: str):
    options: dict[str, Any] = {"ask_question": True} if how == "option" else {"tools": [ask_question_tool()]}
    question = {"question": "Where?", "options": ["Rome", "Lisbon"], "allowFreeText": False}
    agent = create_agent(provider=mock_model([asks(**question), "Off."]), **options)
    run = agent.session("s").stream("go")
    [event] = of_type(await collect(run), "approval.requested")
    [item] = await agent.approvals.list()
    shown = {"text": "Where?", "options": ["Rome", "Lisbon"], "allowFreeText": False}
    assert (item.kind, item.question, event.kind, event.question) == ("question", shown, "question", shown)
    asked: list[Any] = []

    def decide(request: Any) -> str:
        asked.append((request.kind, request.question))
        return "Rome"

    decided = create_agent(provider=mock_model([asks(**question), "Off."]), approve=decide, **options)
    assert ((await decided.send("go")).text, asked) == ("Off.", [("question", shown)])


@pytest.mark.spec("APPR-44")
async def test_no_agent_asks_questions_unless_it_is_told_to():
    model = mock_model([asks(question="Where?"), "Off."])
    result = await create_agent(provider=model).send("go")
    assert (result.finish_reason, json.loads(str(result.messages[2].content))["kind"]) == ("stop", "not-found")


@pytest.mark.spec("APPR-46")
@pytest.mark.parametrize(
    ("question", "answer", "read"),
    [
        pytest.param({"options": ["Rome", "Lisbon"]}, "LISBON", {"answer": "Lisbon", "option": 1}, id="an option"),
        pytest.param({"options": ["Rome"]}, "Oslo", {"answer": "Oslo"}, id="another answer"),
        pytest.param({}, "Oslo", {"answer": "Oslo"}, id="without options"),
        pytest.param({"options": ["Rome"], "allowFreeText": False}, "Oslo", None, id="none of the options"),
    ],
)
async def test_the_model_reads_the_answer_and_which_option_it_is(question: Any, answer: str, read: Any):
    for method in ("answer", "resolve"):
        agent = create_agent(provider=mock_model([asks(question="Where?", **question), "Off."]), ask_question=True)
        paused = await agent.send("go")
        approval_id = str(paused.approval_id)
        if method == "answer":
            result = await agent.approvals.answer(id=approval_id, answer=answer)
        else:
            result = await agent.approvals.resolve(id=approval_id, approved=True, note=answer)
        message = result.messages[2]
        told = json.loads(str(message.content))
        assert told == read if read is not None else message.is_error


@pytest.mark.spec("APPR-48")
async def test_a_question_that_a_rule_allows_has_no_answer():
    model = mock_model([asks(question="Where?"), "Off."])
    agent = create_agent(provider=model, ask_question=True, permissions=[allow("ask_question")])
    result = await agent.send("go")
    assert (result.finish_reason, result.messages[2].is_error) == ("stop", True)
    assert "No answer" in str(result.messages[2].content)
