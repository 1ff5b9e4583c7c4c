"""Decisions on a run of the executor that cannot be made: they say why, and nothing has happened."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from post_office import SEND, Desk
from runs import calls, collect, of_type, types

from lousho import SDKError, SessionAwaitingApprovalError, create_agent, memory_store
from lousho.executor import AgentConfig, AgentExecutor, ToolRegistry, resume_after_approval
from lousho.testing import check_event_order, mock_model


async def test_a_gated_call_without_a_store_fails_the_run_and_does_not_run():
    desk = Desk()
    model = mock_model([calls(("look_up", {"name": "a"}), ("send_email", {"to": "b"})), "never"])
    parts: dict[str, Any] = {"agent": desk.agent, "input": "go", "provider": model, "tool_registry": desk.registry}
    events: list[Any] = []
    with pytest.raises(SDKError) as caught:
        await AgentExecutor.execute(**parts, on_agent_event=events.append)
    assert caught.value.code == "LOUSHO_APPROVAL_STORE_MISSING"
    assert "send_email" in caught.value.detail
    assert caught.value.usage is not None
    assert (desk.sent, len(model.calls)) == (["looked up a"], 1)
    check_event_order(events)
    assert of_type(events, "approval.requested") == []
    assert [event.finish_reason for event in of_type(events, "run.done")] == ["error"]


async def test_a_waiting_session_takes_no_further_run_until_it_is_decided():
    desk, model = Desk(), mock_model([SEND, "Sent.", "Later."])
    paused = await desk.pause(model, session_id="chat-42")
    parts: dict[str, Any] = {"agent": desk.agent, "input": "Are you done?", "provider": model}
    parts |= {"tool_registry": desk.registry, "approval_store": desk.store}
    with pytest.raises(SessionAwaitingApprovalError) as caught:
        await AgentExecutor.execute(**parts, session_id="chat-42")
    assert (caught.value.session_id, caught.value.approval_ids) == ("chat-42", paused.approval_ids)
    assert types(await collect(AgentExecutor.stream(**parts, session_id="chat-42", throw_on_error=False)))[1] == "error"
    assert len(model.calls) == 1
    await resume_after_approval({"id": paused.approval_id, "approved": True}, desk.store, desk.registry, model)
    assert (await AgentExecutor.execute(**parts, session_id="chat-42")).text == "Later."


ONE_TOOL = ToolRegistry([Desk().registry["send_email"]])


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        pytest.param({"approval_store": None}, "LOUSHO_APPROVAL_STORE_MISSING", "no approval_store", id="no store"),
        pytest.param(
            {"approval_store": memory_store()}, "LOUSHO_CONFIG_INVALID", "its `approvals`", id="a whole store"
        ),
        pytest.param({"provider": None}, "LOUSHO_CONFIG_MISSING_PROVIDER", "provider is missing", id="no provider"),
        pytest.param({"tool_registry": []}, "LOUSHO_CONFIG_INVALID", "must be a ToolRegistry", id="a list of tools"),
        pytest.param({"tool_registry": None}, "LOUSHO_RESUME_TOOL_MISSING", "send_email", id="no registry"),
        pytest.param(
            {"tool_registry": ToolRegistry()}, "LOUSHO_RESUME_TOOL_MISSING", "send_email", id="without the tool"
        ),
        pytest.param({"tool_registry": ONE_TOOL}, "LOUSHO_RESUME_TOOL_MISSING", "look_up", id="without another tool"),
        pytest.param({"decision": None}, "LOUSHO_APPROVAL_DECISION_INVALID", "needs the id", id="no decision"),
        pytest.param({"decision": "ap-1.1"}, "LOUSHO_APPROVAL_DECISION_INVALID", "got 'ap-1.1'", id="an id alone"),
        pytest.param({"decision": {"id": "a.1"}}, "LOUSHO_APPROVAL_DECISION_INVALID", "approved=", id="undecided"),
        pytest.param({"approved": "yes"}, "LOUSHO_APPROVAL_DECISION_INVALID", "approved=True or", id="a word"),
        pytest.param({"note": 7}, "LOUSHO_APPROVAL_DECISION_INVALID", "note as text", id="a number as note"),
        pytest.param({"args": "to=b"}, "LOUSHO_APPROVAL_DECISION_INVALID", "args must be a mapping", id="text as args"),
        pytest.param({"args": {"to": 42}}, "LOUSHO_TOOL_ARGS_INVALID", "send_email", id="edits that do not fit"),
        pytest.param({"aproved": True}, "LOUSHO_APPROVAL_DECISION_INVALID", "did you mean 'approved'?", id="a typo"),
        pytest.param({"id": "ap-none.1"}, "LOUSHO_APPROVAL_NOT_FOUND", "ap-none.1", id="an unknown id"),
        pytest.param({"id": ""}, "LOUSHO_APPROVAL_NOT_FOUND", "''", id="an empty id"),
        pytest.param(
            {"options": {"on_event": print}}, "LOUSHO_CONFIG_INVALID", "did you mean 'on_agent_event'?", id="old"
        ),
        pytest.param({"options": {"session_id": "a"}}, "LOUSHO_CONFIG_INVALID", "not of this call", id="of execute()"),
        pytest.param({"options": {"checkpoint_store": 1}}, "LOUSHO_CONFIG_INVALID", "not available", id="later"),
        pytest.param({"agent": AgentConfig()}, "LOUSHO_RESUME_TOOL_MISSING", "send_email", id="another agent"),
    ],
)
async def test_a_decision_that_cannot_be_made_changes_nothing(change: dict[str, Any], code: str, says: str):
    desk, model = Desk(), mock_model([SEND, "Sent."])
    paused = await desk.pause(model)
    parts: dict[str, Any] = {"approval_store": desk.store, "tool_registry": desk.registry, "provider": model}
    decision: Any = {"id": paused.approval_id, "approved": True}
    keywords = {key: value for key, value in change.items() if key in (*parts, "agent")}
    decision |= {key: value for key, value in change.items() if key in ("id", "approved", "note", "args", "aproved")}
    with pytest.raises(SDKError) as caught:
        await resume_after_approval(
            change.get("decision", decision), **{**parts, **keywords}, **change.get("options", {})
        )
    assert caught.value.code == code
    assert says in caught.value.detail
    assert (desk.sent, len(model.calls)) == ([], 1)
    result = await resume_after_approval({"id": paused.approval_id, "approved": True}, **parts)
    assert (result.text, desk.sent) == ("Sent.", ["sam@example.com"])


async def test_decisions_that_race_run_the_call_once():
    desk, model = Desk(), mock_model([SEND, "Sent."])
    paused = await desk.pause(model)
    decision = {"id": paused.approval_id, "approved": True}
    outcomes = await asyncio.gather(
        *(resume_after_approval(decision, desk.store, desk.registry, model) for _ in range(5)), return_exceptions=True
    )
    codes = [getattr(outcome, "code", None) for outcome in outcomes]
    assert (desk.sent, codes.count(None)) == (["sam@example.com"], 1)
    assert set(codes) - {None} <= {"LOUSHO_APPROVAL_CONFLICT", "LOUSHO_APPROVAL_NOT_FOUND"}


async def test_a_run_that_an_agent_started_needs_the_agent_and_its_session_the_agent_itself():
    desk, model = Desk(), mock_model([SEND, "Sent.", SEND, "Sent."])
    agent = create_agent(provider=model, name="Mailer", tools=[desk.registry["send_email"]], approval_store=desk.store)
    paused = await agent.send("go")
    decision = {"id": paused.approval_id, "approved": True}
    with pytest.raises(SDKError, match="or pass agent=") as caught:
        await resume_after_approval(decision, desk.store, desk.registry, model)
    assert caught.value.code == "LOUSHO_CONFIG_MISSING_AGENT"
    result = await resume_after_approval(decision, desk.store, desk.registry, model, agent=desk.agent)
    assert result.text == "Sent."

    turn = await agent.session("s").send("go")
    decision = {"id": turn.approval_id, "approved": True}
    with pytest.raises(SDKError, match="whose session it belongs to"):
        await resume_after_approval(decision, desk.store, desk.registry, model, agent=desk.agent)
    assert (await agent.approvals.resolve(id=str(turn.approval_id), approved=True)).text == "Sent."
    assert desk.sent == ["sam@example.com"] * 2


async def test_an_agent_can_decide_what_the_executor_started():
    desk, model = Desk(), mock_model([SEND, "Sent."])
    paused = await desk.pause(model)
    agent = create_agent(provider=model, tools=list(desk.registry.values()), approval_store=desk.store)
    assert [one.id for one in await agent.approvals.list()] == [paused.approval_id]
    assert (await agent.approvals.resolve(id=paused.approval_id, approved=True)).text == "Sent."


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda record: record.update(agent=7), id="no agent"),
        pytest.param(lambda record: record["agent"].update(tools=7), id="no tools"),
        pytest.param(lambda record: record.update(maxSteps="many"), id="an option"),
        pytest.param(lambda record: record.update(modelSettings=[1]), id="settings"),
    ],
)
async def test_a_damaged_record_is_a_coded_error_and_stays(damage: Callable[[dict[str, Any]], None]):
    desk, model = Desk(), mock_model([SEND, "Sent."])
    paused = await desk.pause(model)
    step = (await desk.store.list())[0]
    state = json.loads(step.state)
    damage(state["executor"])
    step.state = json.dumps(state)
    assert await desk.store.save(step)
    with pytest.raises(SDKError) as caught:
        await resume_after_approval({"id": paused.approval_id, "approved": True}, desk.store, desk.registry, model)
    assert caught.value.code == "LOUSHO_CHECKPOINT_CORRUPT"
    assert (desk.sent, len(await desk.store.list())) == ([], 1)
