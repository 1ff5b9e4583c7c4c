"""`agent.describe()`: what a run would send, the rules and limits around it, no model call and no secret."""

from __future__ import annotations

import asyncio
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from fake_vendor import fake_vendor
from runs import WAIT, call

from lousho import (
    CancelSignal,
    ConfigurationError,
    OpenAIProvider,
    RunConfigContext,
    SDKError,
    ask,
    create_agent,
    define_tool,
    deny,
    memory_store,
    tool,
)
from lousho.stores.memory import InMemoryApprovalStore
from lousho.testing import mock_model

SECRET = "sk-very-secret-1234567890"


@tool(
    display_name="Refund an order",
    needs_approval=lambda order_id: order_id != "A",
    timeout_ms=500,
    concurrent=False,
    annotations={"destructiveHint": True},
)
async def refund(order_id: str, euros: float = 0) -> str:
    """Refund an order.

    Args:
        order_id: The number on the receipt.
    """
    return "refunded"


@tool(needs_approval=True)
async def cancel(order_id: str) -> str:
    """Cancel an order."""
    return "cancelled"


class Approvals(InMemoryApprovalStore):
    """A store of the application's own."""


@pytest.mark.spec("BEY-28")
async def test_a_description_has_everything_an_agent_is_made_of_as_plain_json(tmp_path: Path):
    agent = create_agent(
        name="desk",
        description="Answers customers.",
        version="2.1",
        provider=mock_model([]),
        model="m-1",
        instructions="Be kind.",
        tools=[refund, cancel],
        permissions=[
            deny(["cancel", "other"], "not now"),
            ask(re.compile("^re"), ttl_ms=60_000),
            {"tool": "*", "action": "allow", "when": lambda args, ctx: True},
        ],
        max_steps=4,
        tool_concurrency=2,
        tool_timeout_ms=9_000,
        max_tool_result_chars=math.inf,
        approval_ttl_ms=86_400_000,
        model_settings={"max_tokens": 9, "stop": ["END"]},
        loop_guard=False,
        repair_arguments=False,
        match_tool_names=False,
        ask_question=True,
        approval_store=Approvals(),
    )
    described = await agent.describe()
    tools = described.pop("tools")
    assert json.loads(json.dumps(described)) == {
        "name": "desk",
        "description": "Answers customers.",
        "version": "2.1",
        "model": "m-1",
        "provider": "mock",
        "instructions": "Be kind.",
        "permissionMode": "default",
        "permissions": [
            {"action": "deny", "tools": ["cancel", "other"], "reason": "not now", "conditional": False, "ttlMs": None},
            {
                "action": "ask",
                "tools": [],
                "pattern": "^re",
                "reason": None,
                "conditional": False,
                "ttlMs": 60_000,
            },
            {"action": "allow", "tools": ["*"], "reason": None, "conditional": True, "ttlMs": None},
        ],
        "limits": {
            "maxSteps": 4,
            "toolConcurrency": 2,
            "toolTimeoutMs": 9_000,
            "maxToolResultChars": None,
            "approvalTtlMs": 86_400_000,
        },
        "modelSettings": {"maxTokens": 9, "stop": ["END"]},
        "loop": {"guard": False, "repairArguments": False, "matchToolNames": False},
        "toolResults": None,
        "store": "memory",
        "approvalStore": "Approvals",
        "askQuestion": True,
        "perRun": [],
    }
    schema = tools[0].pop("inputSchema")
    assert schema["properties"]["order_id"]["description"] == "The number on the receipt."
    assert tools[0] == {
        "name": "refund",
        "displayName": "Refund an order",
        "description": "Refund an order.",
        "needsApproval": "depends",
        "timeoutMs": 500,
        "concurrent": False,
        "annotations": {"destructiveHint": True},
        "kind": "function",
    }
    facts = [(one["name"], one["needsApproval"], one["timeoutMs"], one["concurrent"], one["kind"]) for one in tools[1:]]
    assert facts == [("cancel", True, 9_000, True, "function"), ("ask_question", True, 9_000, True, "question")]
    spilling = agent.with_options(tool_results={"spill_dir": tmp_path, "above_chars": 2_000})
    assert (await spilling.describe())["toolResults"] == {"spillDir": str(tmp_path), "aboveChars": 2_000}


async def test_an_agent_of_defaults_has_a_short_description():
    described = create_agent(model="mock/mini").describe_sync()
    assert (described["name"], described["description"], described["version"]) == ("agent", None, None)
    assert (described["provider"], described["model"]) == ("mock", "mini")
    assert (described["instructions"], described["tools"]) == ("You are a helpful assistant.", [])
    assert described["limits"] == {
        "maxSteps": 10,
        "toolConcurrency": "unbounded",
        "toolTimeoutMs": None,
        "maxToolResultChars": 50_000,
        "approvalTtlMs": None,
    }
    assert described["loop"] == {"guard": True, "repairArguments": True, "matchToolNames": True}
    assert (described["store"], described["approvalStore"], described["askQuestion"]) == ("memory", "memory", False)


@pytest.mark.spec("BEY-28")
async def test_prompt_and_tools_are_exactly_those_of_a_request(tmp_path: Path):
    async def instructions(ctx: RunConfigContext) -> str:
        return f"{ctx.input} for {(ctx.metadata or {})['tenant']} in {ctx.session_id}"

    model = mock_model(["Hello!"])
    agent = create_agent(
        provider=model,
        model=lambda ctx: "chosen",
        instructions=instructions,
        tools=lambda ctx: {"pay_back": refund},
        ask_question=True,
        tool_results={"spill_dir": tmp_path, "above_chars": 2_000},
    )
    described = await agent.describe(input="Hi", session_id="s-1", metadata={"tenant": "Globex"})
    await agent.session("s-1").send("Hi", metadata={"tenant": "Globex"})
    sent = model.calls[0]
    assert described["instructions"] == sent.messages[0].content == "Hi for Globex in s-1"
    assert described["model"] == sent.model == "chosen"
    offered = [
        {"name": one["name"], "description": one["description"], "parameters": one["inputSchema"]}
        for one in described["tools"]
    ]
    assert offered == [one.to_dict()["function"] for one in sent.tools]
    assert len(offered) == 3
    assert described["perRun"] == ["model", "instructions", "tools"]


@pytest.mark.spec("BEY-28")
@pytest.mark.parametrize("given", [{}, {"provider": mock_model([])}], ids=["no provider", "a provider"])
async def test_functions_of_the_run_are_shown_as_such_and_not_called(given: dict[str, Any]):
    called: list[RunConfigContext] = []

    def function(ctx: RunConfigContext) -> Any:
        called.append(ctx)
        return "mock/x"

    agent = create_agent(**given, model=function, instructions=function, tools=function)
    described = await agent.describe()
    assert (described["model"], described["instructions"], described["tools"]) == (None, None, None)
    assert described["provider"] == ("mock" if given else None)
    assert (described["perRun"], called) == (["model", "instructions", "tools"], [])
    assert agent.with_options(tools=[refund]).describe_sync()["tools"][0]["name"] == "refund"


async def test_a_function_that_fails_or_hangs_is_told_by_a_coded_error():
    def fails(ctx: RunConfigContext) -> str:
        raise LookupError("no tenant")

    begun = asyncio.Event()

    async def hangs(ctx: RunConfigContext) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    with pytest.raises(ConfigurationError) as caught:
        await create_agent(provider=mock_model([]), model=fails).describe(input="x")
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_RESOLVER_FAILED", "model")
    signal = CancelSignal()
    agent = create_agent(provider=mock_model([]), instructions=hangs)
    task = asyncio.ensure_future(agent.describe(metadata={}, signal=signal))
    await asyncio.wait_for(begun.wait(), WAIT)
    signal.abort(TimeoutError("too slow"))
    with pytest.raises(TimeoutError, match="too slow"):
        await asyncio.wait_for(task, WAIT)
    for wrong in ({"session_id": "../etc"}, {"input": []}, {"metadata": 7}):
        with pytest.raises(SDKError, match="LOUSHO_(CONFIG|SESSION)"):
            await agent.describe(**wrong)  # type: ignore[arg-type]


@pytest.mark.spec("BEY-28")
async def test_no_model_is_asked_and_no_key_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "plain-but-secret-value")
    async with fake_vendor() as vendor:
        provider = OpenAIProvider(
            api_key=SECRET,
            base_url=f"{vendor.url.replace('://', '://user:pass-word@')}/v1",
            default_model="gpt-4.1-mini",
            headers={"X-Team": "team-secret"},
        )
        note = define_tool(
            name="note", description=f"Notes with {SECRET}", execute=lambda: "x", metadata={"token": "hidden-token"}
        )
        agent = create_agent(provider=provider, instructions="Use plain-but-secret-value.", tools=[note])
        described = await agent.describe()
        text = json.dumps(described)
        await agent.close()
        assert vendor.received == []
    for secret in (SECRET, "plain-but-secret-value", "pass-word", "team-secret", "hidden-token", vendor.url):
        assert secret not in text
    assert (described["provider"], described["model"]) == ("openai", "gpt-4.1-mini")
    assert described["instructions"] == "Use [REDACTED]."


async def test_a_description_changes_nothing_of_the_agent_and_nothing_of_what_it_returns_is_shared():
    model = mock_model([call("refund", order_id="A"), "Done."])
    agent = create_agent(provider=model, tools=[refund], model_settings={"stop": ["END"]}, store=memory_store())
    described = await agent.describe()
    described["tools"][0]["inputSchema"].clear()
    described["tools"][0]["annotations"].clear()
    described["modelSettings"]["stop"].clear()
    described["limits"]["maxSteps"] = 1
    result = await agent.send("go")
    assert (result.text, list(model.calls[0].stop or ())) == ("Done.", ["END"])
    assert (await agent.describe())["tools"][0]["inputSchema"]["required"] == ["order_id"]
    assert await agent.approvals.list() == []
