"""Permission rules through an agent: which calls a rule is about, what its condition sees, and the audit of decisions."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import pytest
from runs import call, calls, collect, of_type

from lousho import InMemoryApprovalStore, SDKError, allow, ask, create_agent, define_tool, deny, tool
from lousho.executor import AgentBuilder, AgentExecutor, resume_after_approval, stream_resume_after_approval
from lousho.testing import mock_model


def tools_named(*names: str, needs_approval: bool = False) -> list[Any]:
    def named(name: str) -> Any:
        return define_tool(
            name=name, description=f"Do {name}.", execute=lambda: f"did {name}", needs_approval=needs_approval
        )

    return [named(name) for name in names]


async def denied_by(rule: Any) -> list[str]:
    """Return which of four tools a deny rule refuses."""
    names = ["read_a", "read_b", "write_a", "shell"]
    model = mock_model([calls(*[(name, {}) for name in names]), "Done."])
    agent = create_agent(provider=model, tools=tools_named(*names), permissions=[rule])
    result = await agent.send("go")
    return [str(m.name) for m in result.messages if m.role == "tool" and m.is_error]


@pytest.mark.spec("APPR-06")
@pytest.mark.parametrize(
    ("matcher", "denied"),
    [
        pytest.param("read_a", ["read_a"], id="a name"),
        pytest.param(["read_b", "shell"], ["read_b", "shell"], id="a list"),
        pytest.param(re.compile("^read_"), ["read_a", "read_b"], id="a pattern"),
        pytest.param(re.compile("_a"), ["read_a", "write_a"], id="a pattern found inside"),
        pytest.param("*", ["read_a", "read_b", "write_a", "shell"], id="all"),
    ],
)
async def test_a_rule_is_about_a_name_a_list_a_pattern_or_all(matcher: Any, denied: list[str]):
    assert await denied_by(deny(matcher)) == denied
    assert await denied_by({"tool": matcher, "action": "deny"}) == denied


@pytest.mark.spec("APPR-04", "APPR-08")
async def test_the_first_rule_that_matches_decides_and_without_one_the_tool_does():
    rules = [
        {"tool": "shell", "when": lambda args, ctx: "rm" in args["command"], "action": "deny", "reason": "no deleting"},
        allow(re.compile("^read_")),
        ask(["shell", "write"], ttl_ms=60_000),
    ]
    ran: list[str] = []

    @tool
    def shell(command: str) -> str:
        """Run a command."""
        ran.append(command)
        return "ran"

    @tool(needs_approval=True)
    def read_file() -> str:
        """Read."""
        ran.append("read")
        return "text"

    @tool(needs_approval=True)
    def other() -> str:
        """Do something else."""
        ran.append("other")
        return "done"

    step = calls(("shell", {"command": "rm -rf x"}), ("read_file", {}), ("shell", {"command": "ls"}), ("other", {}))
    made: dict[str, Any] = {"tools": [shell, read_file, other], "permissions": rules}
    agent = create_agent(provider=mock_model([step, "Done."]), **made)
    paused = await agent.send("go")
    waiting = await agent.approvals.list()
    assert (ran, [item.tool_name for item in waiting]) == (["read"], ["shell", "other"])
    assert [item.expires_at is None for item in waiting] == [False, True]
    result = await agent.approvals.resolve_all([{"id": one, "approved": True} for one in paused.approval_ids])
    told = json.loads(str(result.messages[2].content))
    assert (told["kind"], told["reason"], sorted(ran)) == ("denied", "no deleting", ["ls", "other", "read"])
    asked: list[str] = []

    def approve(request: Any) -> bool:
        asked.append(request.tool_name)
        return False

    in_code = create_agent(provider=mock_model([step, "Done."]), approve=approve, **made)
    assert ((await in_code.send("go")).text, asked) == ("Done.", ["shell", "other"])


async def _small(args: Any, context: Any) -> bool:
    return args["amount"] < 10


@pytest.mark.spec("APPR-07")
async def test_a_condition_sees_the_checked_arguments_and_the_call():
    seen: list[Any] = []

    def when(args: Any, context: Any) -> bool:
        seen.append((dict(args), context.tool_name, context.tool_call_id, context.session_id, context.principal))
        with pytest.raises(AttributeError):
            context.tool_name = "other"
        return False

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    rules = [{"tool": "pay", "when": when, "action": "deny"}, {"tool": "pay", "when": _small, "action": "deny"}]
    model = mock_model(
        [{"tool_calls": [{"id": "c1", "name": "pay", "args": {"amount": 5}}]}, call("pay", amount=50), "Done."]
    )
    agent = create_agent(provider=model, tools=[pay], permissions=rules)
    result = await agent.session("s").send("go")
    assert seen[0] == ({"amount": 5}, "pay", "c1", "s", None)
    assert [m.is_error for m in result.messages if m.role == "tool"] == [True, False]


@pytest.mark.spec("APPR-07")
async def test_a_condition_that_raises_fails_the_call_with_that_error():
    def when(args: Any, context: Any) -> bool:
        raise LookupError("no such policy")

    agent = create_agent(
        provider=mock_model([call("read_a"), "Done."]),
        tools=tools_named("read_a"),
        permissions=[allow("read_a", when=when)],
    )
    told = json.loads(str((await agent.send("go")).messages[2].content))
    assert (told["kind"], "no such policy" in told["message"]) == ("execution", True)


@pytest.mark.spec("APPR-09", "APPR-10")
async def test_each_decision_is_told_once_to_the_listener_and_to_the_stream():
    entries: list[Any] = []
    names = ["allowed", "refused", "asked", "free"]

    @tool
    def typed(number: int) -> str:
        """Take a number."""
        return "ok"

    agent = create_agent(
        provider=mock_model([calls(*[(name, {}) for name in names], ("typed", {"number": "many"}))]),
        tools=[*tools_named(*names), typed],
        permissions=[allow("allowed"), deny("refused", "frozen"), ask("asked")],
        on_permission_decision=lambda entry, principal: entries.append((entry, principal)),
    )
    events = await collect(agent.stream("go"))
    assert [(e["toolName"], e["decision"], e.get("rule")) for e, _ in entries] == [
        ("allowed", "allow", {"index": 0}),
        ("refused", "deny", {"index": 1, "reason": "frozen"}),
        ("asked", "ask", {"index": 2}),
        ("free", "default", None),
    ]
    assert all(set(e) - {"rule"} == {"toolCallId", "toolName", "decision", "args", "at"} for e, _ in entries)
    assert all(datetime.fromisoformat(e["at"]).tzinfo is not None and p is None for e, p in entries)
    streamed = [event.to_dict() for event in of_type(events, "permission.decision")]
    assert [{key: one[key] for key in entry} for one, (entry, _) in zip(streamed, entries, strict=True)] == [
        entry for entry, _ in entries
    ]


@pytest.mark.spec("APPR-09", "APPR-10")
async def test_entries_leave_out_arguments_where_content_is_redacted_and_a_plain_agent_has_none():
    entries: list[Any] = []
    made = {"tools": tools_named("free")}
    agent = create_agent(
        provider=mock_model([call("free"), "Done."]),
        on_permission_decision=lambda entry, _: entries.append(entry),
        redact_content=True,
        **made,  # type: ignore[arg-type]
    )
    await agent.send("go")
    assert ["args" in entry for entry in entries] == [False]
    plain = create_agent(provider=mock_model([call("free"), "Done."]), **made)  # type: ignore[arg-type]
    assert of_type(await collect(plain.stream("go")), "permission.decision") == []


def clerk(*tools: Any) -> Any:
    builder = AgentBuilder.create().set_id("clerk-1").set_name("clerk").set_prompt("Help.")
    for one in tools:
        builder.add_tool(one)
    return builder.build()


@pytest.mark.spec("APPR-11")
async def test_the_executor_takes_rules_and_their_listener_before_and_after_a_decision():
    entries: list[Any] = []
    store = InMemoryApprovalStore()
    agent = clerk(*tools_named("read_a", "write_a"))
    options: dict[str, Any] = {
        "permissions": [ask("write_a"), deny("read_a", "frozen")],
        "on_permission_decision": lambda entry, _: entries.append((entry["toolName"], entry["decision"])),
    }
    model = mock_model([calls(("read_a", {}), ("write_a", {})), call("read_a"), "Done.", call("write_a")])
    paused = await AgentExecutor.execute(agent=agent, input="go", provider=model, approval_store=store, **options)
    assert paused.finish_reason == "awaiting-approval"
    assert entries == [("read_a", "deny"), ("write_a", "ask")]
    decision = {"id": paused.approval_id, "approved": True}
    result = await resume_after_approval(decision, store, None, model, agent=agent, **options)
    assert (result.text, entries[2:]) == ("Done.", [("read_a", "deny")])
    streamed = AgentExecutor.stream(agent=agent, input="go", provider=model, approval_store=store, **options)
    assert len(of_type(await collect(streamed), "permission.decision")) == 1


@pytest.mark.spec("APPR-50")
async def test_the_executor_saves_a_pause_and_goes_on_from_it_plain_or_as_a_stream():
    ran: list[str] = []

    @tool(needs_approval=True)
    def write_a() -> str:
        """Write."""
        ran.append("write_a")
        return "wrote"

    agent = clerk(write_a)
    with pytest.raises(SDKError) as caught:
        await AgentExecutor.execute(agent=agent, input="go", provider=mock_model([call("write_a")]))
    assert (caught.value.code, ran) == ("LOUSHO_APPROVAL_STORE_MISSING", [])
    for streams in (False, True):
        store = InMemoryApprovalStore()
        model = mock_model([call("write_a"), "Done."])
        heard: list[str] = []
        paused = await AgentExecutor.execute(agent=agent, input="go", provider=model, approval_store=store)
        assert (paused.finish_reason, len(await store.list())) == ("awaiting-approval", 1)
        decision = {"id": paused.approval_id, "approved": True}
        options: dict[str, Any] = {
            "agent": agent,
            "on_agent_event": lambda event, heard=heard: heard.append(event.type),
        }
        if streams:
            run = stream_resume_after_approval(decision, store, None, model, **options)
            assert [event.type for event in await collect(run)] == heard
            result = await run.result
        else:
            result = await resume_after_approval(decision, store, None, model, **options)
        assert (result.text, heard[:2], await store.list()) == ("Done.", ["run.start", "tool.resume"], [])
    assert ran == ["write_a", "write_a"]
