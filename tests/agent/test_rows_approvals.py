"""Which calls wait for a person: what a gate may answer, the ready-made ones, and what beats what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from runs import call, calls, collect, of_type

from lousho import Deny, SDKError, ToolContext, allow, always, ask, create_agent, deny, memory_store, never, once, tool
from lousho.testing import mock_model


def deployer(gate: Any, ran: list[str]) -> Any:
    @tool(needs_approval=gate)
    def deploy(service: str, env: str = "staging") -> str:
        """Deploy a service."""
        ran.append(service)
        return f"deployed {service}"

    return deploy


def told(result: Any) -> dict[str, Any]:
    """Return what the model read of the last tool call."""
    return json.loads([m for m in result.messages if m.role == "tool"][-1].content)


async def approve_first(agent: Any, paused: Any, **decision: Any) -> Any:
    return await agent.approvals.resolve(id=paused.approval_id, approved=True, **decision)


@pytest.mark.spec("APPR-01")
async def test_a_step_pauses_before_its_gated_calls_and_names_all_of_them():
    ran: list[str] = []
    step = calls(("deploy", {"service": "web"}), ("deploy", {"service": "api"}))
    agent = create_agent(provider=mock_model([step]), tools=[deployer(True, ran)])
    paused = await agent.send("go")
    assert (paused.finish_reason, ran) == ("awaiting-approval", [])
    assert [item.args["service"] for item in await agent.approvals.list()] == ["web", "api"]
    assert paused.approval_ids == [item.id for item in await agent.approvals.list()]
    assert paused.approval_id == paused.approval_ids[0]


async def _asks_production(service: str, env: str) -> bool:
    return env == "prod"


@pytest.mark.spec("APPR-02")
@pytest.mark.parametrize(
    "gate",
    [
        pytest.param(lambda service, env: env == "prod", id="sync"),
        pytest.param(_asks_production, id="async"),
    ],
)
async def test_a_gate_is_a_function_of_the_checked_arguments(gate: Any):
    ran: list[str] = []
    model = mock_model([call("deploy", service="web"), call("deploy", service="api", env="prod")])
    agent = create_agent(provider=model, tools=[deployer(gate, ran)])
    paused = await agent.send("go")
    assert (paused.finish_reason, ran) == ("awaiting-approval", ["web"])


@pytest.mark.spec("APPR-12")
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param("ask", "asks", id="ask"),
        pytest.param(True, "asks", id="True"),
        pytest.param("approve", "runs", id="approve"),
        pytest.param(False, "runs", id="False"),
        pytest.param("deny", "denied", id="deny"),
        pytest.param({"deny": "not on a Friday"}, "denied: not on a Friday", id="deny with a reason"),
        pytest.param(Deny("not on a Friday"), "denied: not on a Friday", id="Deny with a reason"),
        pytest.param(Deny(), "denied", id="Deny"),
        pytest.param("perhaps", "fails", id="another text"),
        pytest.param(None, "fails", id="None"),
        pytest.param({"reason": "no"}, "fails", id="another mapping"),
    ],
)
async def test_a_gate_says_ask_approve_or_deny_and_nothing_else(answer: Any, outcome: str):
    ran: list[str] = []
    entries: list[Any] = []
    agent = create_agent(
        provider=mock_model([call("deploy", service="web"), "Done."]),
        tools=[deployer(lambda service: answer, ran)],
        on_permission_decision=lambda entry, _: entries.append(entry),
    )
    result = await agent.send("go")
    if outcome == "asks":
        assert (result.finish_reason, ran) == ("awaiting-approval", [])
        return
    assert (result.finish_reason, ran) == ("stop", ["web"] if outcome == "runs" else [])
    if outcome.startswith("denied"):
        assert [told(result)["kind"], told(result).get("reason")] == ["denied", outcome[8:] or None]
        assert [(e["decision"], e.get("reason"), "rule" in e) for e in entries] == [
            ("deny", outcome[8:] or None, False)
        ]
    elif outcome == "fails":
        assert told(result)["kind"] == "execution"
        assert "return True or 'ask', False or 'approve'" in told(result)["message"]


@pytest.mark.spec("APPR-12")
async def test_a_gate_reads_the_context_of_the_call():
    seen: list[Any] = []

    def gate(service: str, ctx: ToolContext) -> bool:
        seen.append((ctx.tool_name, ctx.tool_call_id, ctx.session_id, ctx.messages[-1].content, ctx.principal))
        return False

    model = mock_model([{"tool_calls": [{"id": "c7", "name": "deploy", "args": {"service": "web"}}]}, "Done."])
    await create_agent(provider=model, tools=[deployer(gate, [])]).session("s").send("deploy it")
    assert seen == [("deploy", "c7", "s", "deploy it", None)]


@pytest.mark.spec("APPR-13")
async def test_always_and_never_are_true_and_false():
    ran: list[str] = []
    assert (always(), never()) == (True, False)
    for gate, reason in ((always(), "awaiting-approval"), (never(), "stop")):
        model = mock_model([call("deploy", service="web"), "Done."])
        assert (await create_agent(provider=model, tools=[deployer(gate, ran)]).send("go")).finish_reason == reason
    assert ran == ["web"]


@pytest.mark.spec("APPR-14", "APPR-15")
async def test_once_asks_until_a_person_said_yes_in_the_session():
    ran: list[str] = []
    web, api = call("deploy", service="web"), call("deploy", service="api")
    agent = create_agent(
        provider=mock_model([web, "No.", web, "Yes.", api, "Ran.", web]), tools=[deployer(once(), ran)]
    )
    chat = agent.session("one")
    paused = await chat.send("go")
    await agent.approvals.resolve(id=str(paused.approval_id), approved=False)
    paused = await chat.send("again")  # a no is not remembered
    result = await approve_first(agent, paused)
    [approved] = [m for m in result.messages if m.metadata is not None]
    assert (approved.role, approved.name, dict(approved.metadata)["approval"]["by"]) == ("tool", "deploy", "human")
    assert ((await chat.send("once more")).text, ran) == ("Ran.", ["web", "api"])
    assert (await agent.session("two").send("go")).finish_reason == "awaiting-approval"


@pytest.mark.spec("APPR-14")
async def test_once_per_args_asks_again_for_other_arguments():
    ran: list[str] = []
    web, api = call("deploy", service="web", env="a"), call("deploy", service="api", env="a")
    swapped = call("deploy", env="a", service="web")
    agent = create_agent(provider=mock_model([web, "1", swapped, "2", api]), tools=[deployer(once(per="args"), ran)])
    chat = agent.session("s")
    await approve_first(agent, await chat.send("go"))
    assert (await chat.send("go")).text == "2"
    assert ((await chat.send("go")).finish_reason, ran) == ("awaiting-approval", ["web", "web"])


@pytest.mark.spec("APPR-14")
async def test_once_asks_an_approve_function_each_time_for_its_yes_is_not_a_persons():
    ran: list[str] = []
    asked: list[Any] = []

    def yes(request: Any) -> bool:
        asked.append(request.args["service"])
        return True

    web = call("deploy", service="web")
    agent = create_agent(provider=mock_model([web, web, "Done."]), tools=[deployer(once(), ran)], approve=yes)
    assert (await agent.session("s").send("go")).text == "Done."
    assert (ran, asked) == (["web", "web"], ["web", "web"])


@pytest.mark.spec("APPR-15")
async def test_what_once_remembers_is_kept_with_the_transcript_and_not_with_the_agent():
    store = memory_store()
    web = call("deploy", service="web")
    first = create_agent(provider=mock_model([web, "Done."]), tools=[deployer(once(), [])], store=store)
    await approve_first(first, await first.session("s").send("go"))
    second = create_agent(provider=mock_model([web, "Ran.", web]), tools=[deployer(once(), [])], store=store)
    assert (await second.session("s").send("go")).text == "Ran."
    assert (await second.send("go")).finish_reason == "awaiting-approval"  # a transcript of its own


@pytest.mark.spec("APPR-14")
async def test_once_can_be_asked_from_within_another_gate():
    ran: list[str] = []
    ask_once = once()

    def gate(env: str, ctx: ToolContext) -> Any:
        return {"deny": "through CI"} if env == "prod" else ask_once(ctx)

    web, prod = call("deploy", service="web"), call("deploy", service="web", env="prod")
    agent = create_agent(provider=mock_model([web, prod, web, "Done."]), tools=[deployer(gate, ran)])
    result = await approve_first(agent, await agent.session("s").send("go"))
    assert (result.text, ran) == ("Done.", ["web", "web"])


@pytest.mark.spec("APPR-05", "APPR-08")
async def test_a_deny_rule_refuses_without_a_pause_and_gives_its_reason():
    ran: list[str] = []
    model = mock_model([call("deploy", service="web"), "Done."])
    agent = create_agent(provider=model, tools=[deployer(True, ran)], permissions=[deny("deploy", "frozen")])
    run = agent.stream("go")
    events = await collect(run)
    [error] = of_type(events, "tool.error")
    assert (error.tool_name, error.error.name) == ("deploy", "ToolDeniedError")
    assert (told(await run.result)["kind"], told(await run.result)["reason"]) == ("denied", "frozen")
    assert (of_type(events, "approval.requested"), ran) == ([], [])


@pytest.mark.spec("APPR-16")
@pytest.mark.parametrize(
    ("gate", "rules", "outcome"),
    [
        pytest.param("ask", [deny("deploy")], "denied", id="a deny rule beats an asking gate"),
        pytest.param("approve", [deny("deploy")], "denied", id="a deny rule beats a willing gate"),
        pytest.param("deny", [allow("deploy")], "denied", id="the gate's no beats an allow rule"),
        pytest.param("deny", [ask("deploy")], "denied", id="the gate's no beats an ask rule"),
        pytest.param("ask", [allow("deploy")], "runs", id="an allow rule replaces the gate's wish to ask"),
        pytest.param(once(), [allow("deploy")], "runs", id="an allow rule replaces once"),
        pytest.param("approve", [ask("deploy")], "asks", id="an ask rule pauses a willing gate"),
        pytest.param("ask", [allow("other")], "asks", id="no rule: the gate asks"),
        pytest.param("approve", [deny("other")], "runs", id="no rule: the gate approves"),
    ],
)
async def test_rules_and_gates_decide_in_order(gate: Any, rules: list[Any], outcome: str):
    ran: list[str] = []
    model = mock_model([call("deploy", service="web"), "Done."])
    own = gate if callable(gate) else lambda service: gate
    agent = create_agent(provider=model, tools=[deployer(own, ran)], permissions=rules)
    result = await agent.send("go")
    if outcome == "asks":
        assert (result.finish_reason, ran) == ("awaiting-approval", [])
    elif outcome == "runs":
        assert (result.finish_reason, ran) == ("stop", ["web"])
    else:
        assert (told(result)["kind"], ran) == ("denied", [])


@pytest.mark.spec("APPR-16")
async def test_a_gate_is_not_called_where_a_deny_rule_decides():
    def gate(service: str) -> bool:
        raise AssertionError("asked")

    model = mock_model([call("deploy", service="web"), "Done."])
    agent = create_agent(provider=model, tools=[deployer(gate, [])], permissions=[deny("deploy", "frozen")])
    assert told(await agent.send("go"))["reason"] == "frozen"


@pytest.mark.parametrize("bad", ["session", "", 1, None])
def test_once_refuses_another_scope(bad: Any):
    with pytest.raises(SDKError, match="per must be 'tool' or 'args'") as caught:
        once(per=bad)
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"
