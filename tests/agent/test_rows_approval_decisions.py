"""Deciding: several at once, with edited arguments, for the rest of a session, and in whose name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from runs import call, calls

from lousho import SDKError, ToolContext, ask, create_agent, memory_store, tool
from lousho.testing import mock_model


def mailer(sent: list[Any], **options: Any) -> Any:
    made: dict[str, Any] = {"needs_approval": True, **options}

    @tool(**made)
    def send_email(to: str, copies: int = 1, ctx: ToolContext | None = None) -> str:
        """Send an e-mail."""
        sent.append((to, copies))
        return f"sent to {to}"

    return send_email


def mails(*names: str) -> Any:
    return calls(*[("send_email", {"to": name}) for name in names])


async def code_of(work: Any) -> str | None:
    try:
        await work
    except SDKError as error:
        return error.code
    return None


@pytest.mark.spec("APPR-20")
async def test_get_reads_a_pending_call_and_decides_nothing():
    agent = create_agent(provider=mock_model([mails("a"), "Sent."]), tools=[mailer([])])
    paused = await agent.send("go")
    one = await agent.approvals.get(str(paused.approval_id))
    assert one is not None
    assert (one.id, one.tool_name, one.args) == (paused.approval_id, "send_email", {"to": "a"})
    for unknown in ("", "x", "../x", "ap-0.1", f"{paused.approval_id}.1", 7, None):
        assert await agent.approvals.get(unknown) is None  # type: ignore[arg-type]
    await agent.approvals.resolve(id=one.id, approved=True)
    assert await agent.approvals.get(one.id) is None


def test_get_has_a_blocking_twin():
    agent = create_agent(provider=mock_model([mails("a")]), tools=[mailer([])])
    paused = agent.send_sync("go")
    one = agent.approvals.get_sync(str(paused.approval_id))
    assert one is not None
    assert one.args == {"to": "a"}


@pytest.mark.spec("APPR-21")
async def test_a_decision_runs_or_rejects_and_goes_on_to_the_next_pause_or_the_end():
    sent: list[Any] = []
    model = mock_model([mails("a"), mails("b"), "Done."])
    agent = create_agent(provider=model, tools=[mailer(sent)])
    first = await agent.send("go")
    second = await agent.approvals.resolve(id=str(first.approval_id), approved=True)
    assert (second.finish_reason, sent) == ("awaiting-approval", [("a", 1)])
    result = await agent.approvals.resolve(id=str(second.approval_id), approved=False, note="no more")
    told = json.loads(str(model.calls[2].messages[-1].content))
    assert (result.text, told["kind"], told["note"], len(sent)) == ("Done.", "rejected", "no more", 1)
    assert (
        await code_of(agent.approvals.resolve(id=str(first.approval_id), approved=True)) == "LOUSHO_APPROVAL_NOT_FOUND"
    )
    assert await code_of(agent.approvals.resolve(id="ap-x.1", approved=True)) == "LOUSHO_APPROVAL_NOT_FOUND"


@pytest.mark.spec("APPR-22")
async def test_a_turn_that_paused_in_a_session_ends_in_it():
    agent = create_agent(provider=mock_model([mails("a"), "Sent."]), tools=[mailer([])])
    chat = agent.session("s")
    paused = await chat.send("go")
    await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert [m.role for m in await chat.load()] == ["user", "assistant", "tool", "assistant"]
    assert [m.content for m in chat.messages[2:]] == ["sent to a", "Sent."]


@pytest.mark.spec("APPR-25", "APPR-26", "APPR-29")
async def test_a_step_with_several_calls_waits_for_the_last_decision():
    sent: list[Any] = []
    order: list[str] = []

    @tool
    def look_up(name: str) -> str:
        """Look a name up."""
        order.append(name)
        return name

    step = calls(
        ("send_email", {"to": "a"}),
        ("look_up", {"name": "free"}),
        ("send_email", {"to": "b"}),
        ("send_email", {"to": "c"}),
    )
    agent = create_agent(provider=mock_model([step, "Done."]), tools=[mailer(sent), look_up], tool_concurrency=1)
    chat = agent.session("s")
    paused = await chat.send("go")
    assert (order, sent, len(paused.approval_ids)) == (["free"], [], 3)
    a, b, c = paused.approval_ids
    partly = await agent.approvals.resolve(id=c, approved=True)
    assert (partly.finish_reason, partly.approval_ids, partly.approval_id, sent) == ("awaiting-approval", [a, b], a, [])
    waiting = await chat.pending()
    assert waiting is not None
    assert waiting.approval_ids == [a, b]
    await agent.approvals.resolve(id=b, approved=False)
    result = await agent.approvals.resolve(id=a, approved=True)
    assert (result.text, sent, await chat.pending()) == ("Done.", [("a", 1), ("c", 1)], None)
    results = [m for m in result.messages if m.role == "tool"]
    assert [m.is_error for m in results] == [False, False, True, False]


@pytest.mark.spec("APPR-27")
async def test_resolve_all_decides_in_the_order_given_and_returns_the_last_result():
    sent: list[Any] = []
    agent = create_agent(provider=mock_model([mails("a", "b"), "Done."]), tools=[mailer(sent)])
    paused = await agent.send("go")
    a, b = paused.approval_ids
    result = await agent.approvals.resolve_all(
        [
            {"id": b, "approved": True, "args": {"to": "team", "copies": 2}},
            {"id": a, "approved": False, "note": "later"},
        ]
    )
    assert (result.text, sent) == ("Done.", [("team", 2)])
    told = [m.content for m in result.messages if m.role == "tool"]
    assert json.loads(str(told[0]))["note"] == "later"
    assert json.loads(result.tool_calls[1].arguments) == {"to": "team", "copies": 2}


@pytest.mark.spec("APPR-27")
def test_resolve_all_has_a_blocking_twin_and_stops_at_a_pause_that_is_left():
    agent = create_agent(provider=mock_model([mails("a", "b", "c")]), tools=[mailer([])])
    a, b, c = agent.send_sync("go").approval_ids
    result = agent.approvals.resolve_all_sync([{"id": a, "approved": True}, {"id": c, "approved": True}])
    assert (result.finish_reason, result.approval_ids) == ("awaiting-approval", [b])


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param(lambda ids: [], "LOUSHO_APPROVAL_DECISION_INVALID", id="none"),
        pytest.param(lambda ids: None, "LOUSHO_APPROVAL_DECISION_INVALID", id="no list"),
        pytest.param(lambda ids: {"id": ids[0], "approved": True}, "LOUSHO_APPROVAL_DECISION_INVALID", id="a mapping"),
        pytest.param(lambda ids: [ids[0], ids[1]], "LOUSHO_APPROVAL_DECISION_INVALID", id="bare ids"),
        pytest.param(
            lambda ids: [{"id": ids[0], "approved": True}] * 2, "LOUSHO_APPROVAL_DECISION_INVALID", id="one call twice"
        ),
        pytest.param(
            lambda ids: [{"id": ids[0], "approved": True}, {"id": ids[1]}],
            "LOUSHO_APPROVAL_DECISION_INVALID",
            id="one without a decision",
        ),
        pytest.param(
            lambda ids: [{"id": ids[0], "approved": True}, {"id": "ap-x.1", "approved": True}],
            "LOUSHO_APPROVAL_NOT_FOUND",
            id="an unknown id",
        ),
        pytest.param(
            lambda ids: [{"id": ids[0], "approved": True}, {"id": ids[1], "approve": True}],
            "LOUSHO_CONFIG_INVALID",
            id="a misspelt key",
        ),
    ],
)
async def test_resolve_all_decides_nothing_when_one_decision_is_bad(change: Any, code: str):
    agent = create_agent(provider=mock_model([mails("a", "b")]), tools=[mailer([])])
    paused = await agent.send("go")
    assert await code_of(agent.approvals.resolve_all(change(paused.approval_ids))) == code
    assert [item.id for item in await agent.approvals.list()] == paused.approval_ids


@pytest.mark.spec("APPR-32", "ERR-44")
@pytest.mark.parametrize(
    "args",
    [
        pytest.param({"to": 42}, id="a wrong type"),
        pytest.param({}, id="a missing one"),
        pytest.param({"to": "b", "copies": "many"}, id="a text for a number"),
    ],
)
async def test_edited_arguments_that_do_not_fit_leave_the_call_pending(args: Any):
    sent: list[Any] = []
    agent = create_agent(provider=mock_model([mails("a", "b"), "Sent."]), tools=[mailer(sent)])
    paused = await agent.send("go")
    for one in paused.approval_ids:
        assert await code_of(agent.approvals.resolve(id=one, approved=True, args=args)) == "LOUSHO_TOOL_ARGS_INVALID"
    assert [item.id for item in await agent.approvals.list()] == paused.approval_ids
    result = await agent.approvals.resolve_all([{"id": one, "approved": True} for one in paused.approval_ids])
    assert (result.text, sent) == ("Sent.", [("a", 1), ("b", 1)])


@pytest.mark.spec("APPR-32")
async def test_an_approval_with_edits_runs_them_and_rewrites_the_models_call():
    sent: list[Any] = []
    model = mock_model([call("send_email", to="sam"), "Sent."])
    agent = create_agent(provider=model, tools=[mailer(sent)])
    chat = agent.session("s")
    paused = await chat.send("go")
    result = await agent.approvals.resolve(id=str(paused.approval_id), approved=True, args={"to": "tëam", "copies": 3})
    assert (result.text, sent) == ("Sent.", [("tëam", 3)])
    for turn in (model.calls[1].messages[-2], (await chat.load())[1], result.messages[1]):
        assert json.loads(turn.tool_calls[0].arguments) == {"to": "tëam", "copies": 3}


@pytest.mark.spec("APPR-32")
async def test_edits_are_ignored_with_a_no_and_refused_for_a_question():
    question = call("ask_question", question="Where?")
    agent = create_agent(provider=mock_model([mails("a"), "No.", question]), tools=[mailer([])], ask_question=True)
    paused = await agent.send("go")
    result = await agent.approvals.resolve(id=str(paused.approval_id), approved=False, args={"to": 42})
    assert (result.text, json.loads(result.tool_calls[0].arguments)) == ("No.", {"to": "a"})
    asked = await agent.send("go")
    decision: dict[str, Any] = {"id": str(asked.approval_id), "approved": True, "note": "here"}
    extras: list[dict[str, Any]] = [{"args": {"question": "Who?"}}, {"remember": "session"}]
    for extra in extras:
        assert await code_of(agent.approvals.resolve(**decision, **extra)) == "LOUSHO_APPROVAL_KIND_MISMATCH"
    assert await agent.approvals.get(decision["id"]) is not None


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param({"args": "to=b"}, id="a text for args"),
        pytest.param({"args": [1]}, id="a list for args"),
        pytest.param({"remember": "ever"}, id="another scope"),
        pytest.param({"remember": True}, id="True for a scope"),
        pytest.param({"principal": "sam"}, id="a text for a principal"),
    ],
)
async def test_an_option_of_a_decision_that_is_no_such_thing_decides_nothing(bad: Any):
    agent = create_agent(provider=mock_model([mails("a")]), tools=[mailer([])])
    paused = await agent.send("go")
    code = await code_of(agent.approvals.resolve(id=str(paused.approval_id), approved=True, **bad))
    assert code in ("LOUSHO_APPROVAL_DECISION_INVALID", "LOUSHO_CONFIG_INVALID")
    assert len(await agent.approvals.list()) == 1


@pytest.mark.spec("APPR-31")
async def test_a_call_approved_for_the_session_is_not_asked_about_again():
    sent: list[Any] = []
    store = memory_store()
    agent = create_agent(provider=mock_model([mails("a"), "1", mails("a"), "2"]), tools=[mailer(sent)], store=store)
    paused = await agent.session("s").send("go")
    await agent.approvals.resolve(id=str(paused.approval_id), approved=True, remember="session")
    assert (await agent.session("s").send("again")).text == "2"
    later = create_agent(
        provider=mock_model([mails("a"), "3", mails("b"), mails("a")]), tools=[mailer(sent)], store=store
    )
    assert ((await later.session("s").send("again")).text, len(sent)) == ("3", 3)
    other = await later.session("s").send("another one")
    assert (other.finish_reason, len(sent)) == ("awaiting-approval", 3)
    assert (await later.session("new").send("go")).finish_reason == "awaiting-approval"


@pytest.mark.spec("APPR-31")
async def test_what_is_remembered_skips_the_tools_gate_but_no_ask_rule():
    asked: list[str] = []

    def gate(to: str) -> bool:
        asked.append(to)
        return True

    tools = [mailer([], needs_approval=gate)]
    store = memory_store()
    agent = create_agent(provider=mock_model([mails("a"), "1", mails("a"), "2"]), tools=tools, store=store)
    paused = await agent.session("s").send("go")
    await agent.approvals.resolve(id=str(paused.approval_id), approved=True, remember="session")
    await agent.session("s").send("again")
    assert asked == ["a"]
    strict = create_agent(provider=mock_model([mails("a")]), tools=tools, store=store, permissions=[ask("send_email")])
    assert (await strict.session("s").send("again")).finish_reason == "awaiting-approval"


@pytest.mark.spec("APPR-31")
async def test_with_edits_it_is_the_edited_call_that_is_remembered():
    sent: list[Any] = []
    model = mock_model([mails("a"), "1", mails("team"), "2", mails("a")])
    agent = create_agent(provider=model, tools=[mailer(sent)])
    chat = agent.session("s")
    paused = await chat.send("go")
    await agent.approvals.resolve(id=str(paused.approval_id), approved=True, args={"to": "team"}, remember="session")
    assert ((await chat.send("go")).text, sent) == ("2", [("team", 1), ("team", 1)])
    assert (await chat.send("go")).finish_reason == "awaiting-approval"


@pytest.mark.spec("APPR-33")
async def test_after_a_rejection_the_run_goes_on_and_the_model_may_call_again():
    sent: list[Any] = []
    model = mock_model([mails("a"), mails("b"), "Done."])
    agent = create_agent(provider=model, tools=[mailer(sent)])
    paused = await agent.send("go")
    again = await agent.approvals.resolve(id=str(paused.approval_id), approved=False, note="wrong one")
    told = json.loads(str(model.calls[1].messages[-1].content))
    assert (told["kind"], told["note"]) == ("rejected", "wrong one")
    assert (again.finish_reason, again.approval_id != paused.approval_id) == ("awaiting-approval", True)
    assert (await agent.approvals.resolve(id=str(again.approval_id), approved=True)).text == "Done."
    assert sent == [("b", 1)]


@pytest.mark.spec("APPR-42")
async def test_the_tool_reads_who_approved_it_and_as_what():
    seen: list[Any] = []

    @tool(needs_approval=True)
    def pay(ctx: ToolContext) -> str:
        """Pay."""
        seen.append(ctx.approval)
        return "paid"

    agent = create_agent(provider=mock_model([call("pay"), "Done."]), tools=[pay])
    paused = await agent.send("go")
    principal = {"id": "u1", "roles": ["boss"]}
    await agent.approvals.resolve(id=str(paused.approval_id), approved=True, note="fine", principal=principal)
    [approval] = seen
    assert (approval.id, approval.note, approval.by) == (paused.approval_id, "fine", principal)
