"""Every way a tool call can fail, and what the model, the events and the result say of it (tools page, errors)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hostile import told, within
from runs import call, calls, of_type

import lousho
from lousho import PropagatingToolError, create_agent, deny, tool, tool_error_result
from lousho.testing import mock_model


def result_of(agent_script: list[Any], *tools: Any, **options: Any) -> Any:
    """The coroutine of one run of a script."""
    return within(create_agent(provider=mock_model(agent_script), tools=list(tools), **options).send("go"))


class Unfit(TypeError):
    """Has a stack that must not show."""


@pytest.mark.spec("TOOL-40", "TOOL-41")
async def test_a_failed_call_is_four_fields_without_a_stack_and_seen_as_a_failure_everywhere():
    long = "query must not be empty, " * 200

    @tool
    async def search(query: str) -> str:
        """Search."""
        raise Unfit(long)

    heard: list[Any] = []
    model = mock_model([call("search", query=""), "Done."])
    result = await create_agent(provider=model, tools=[search], on_event=heard.append).send("go")
    sent = model.calls[1].messages[-1]
    answer = json.loads(str(sent.content))
    assert set(answer) == {"error", "toolName", "message", "kind"}
    assert (answer["error"], answer["toolName"], answer["kind"]) == ("Unfit", "search", "execution")
    assert len(answer["message"]) == 2_000
    assert answer["message"].endswith("... (truncated)")
    assert long.startswith(answer["message"].removesuffix("... (truncated)"))
    assert "Traceback" not in str(sent.content)
    assert __file__ not in str(sent.content)
    assert result.messages[2].to_dict()["isError"] is True
    assert sent.is_error
    assert "isError" not in result.messages[3].to_dict()
    failed = of_type(heard, "tool.error")[0].to_dict()
    assert failed["error"] == {"name": "Unfit", "message": answer["message"]}
    assert of_type(heard, "tool.done") == []


@pytest.mark.spec("TOOL-42")
@pytest.mark.parametrize("where", ["execute", "needs_approval"])
async def test_what_the_tool_or_its_gate_raises_is_an_execution_error(where: str):
    ran: list[str] = []

    def gate(_: object) -> bool:
        if where == "needs_approval":
            raise LookupError("no such account")
        return False

    @tool(needs_approval=gate)
    async def act() -> str:
        """Do something."""
        ran.append("act")
        raise LookupError("no such account")

    result = await result_of([call("act"), "Done."], act)
    assert told(result) == [
        {"error": "LookupError", "toolName": "act", "message": "no such account", "kind": "execution"}
    ]
    assert (ran, result.text) == (["act"] if where == "execute" else [], "Done.")


@pytest.mark.spec("TOOL-44")
@pytest.mark.parametrize("with_tools", [True, False])
async def test_a_tool_that_is_not_there_is_not_found(with_tools: bool):
    @tool
    async def real() -> str:
        """Exist."""
        return "x"

    result = await result_of([call("ghost"), "Done."], *([real] if with_tools else []))
    (answer,) = told(result)
    assert (answer["kind"], answer["error"], answer["toolName"]) == ("not-found", "ToolNotFoundError", "ghost")
    assert "ghost" in answer["message"]
    assert (result.text, result.tool_errors) == ("Done.", 1)


@pytest.mark.spec("TOOL-45")
@pytest.mark.parametrize("note", ["not on a Friday", None])
async def test_a_refused_call_says_so_with_the_note_if_there_is_one(note: str | None):
    @tool(needs_approval=True)
    async def deploy() -> str:
        """Deploy."""
        return "never"

    agent = create_agent(provider=mock_model([call("deploy"), "As you wish."]), tools=[deploy])
    paused = await agent.send("go")
    result = await agent.approvals.resolve(id=str(paused.approval_id), approved=False, note=note)
    (answer,) = told(result)
    assert (answer["kind"], answer["error"], answer.get("note")) == ("rejected", "ToolRejectedError", note)
    assert ("note" in answer) is (note is not None)


@pytest.mark.spec("TOOL-47")
async def test_the_error_of_a_server_is_told_in_its_words():
    @tool
    async def remote() -> str:
        """Ask a server."""
        raise lousho.McpToolError("quota exceeded for 'eu-1'")

    result = await result_of([call("remote"), "Done."], remote)
    assert told(result) == [
        {"error": "McpToolError", "toolName": "remote", "message": "quota exceeded for 'eu-1'", "kind": "mcp"}
    ]


@pytest.mark.spec("TOOL-49")
@pytest.mark.parametrize(
    ("gate", "rules", "reason"),
    [
        pytest.param(False, [deny("act", reason="read only")], "read only", id="a rule"),
        pytest.param(False, [{"tool": "act", "action": "deny"}], None, id="a rule without a reason"),
        pytest.param(lambda _: "deny", [], None, id="the gate"),
        pytest.param(lambda _: {"deny": "closed today"}, [], "closed today", id="the gate, with a reason"),
    ],
)
async def test_a_denied_call_does_not_run(gate: Any, rules: list[Any], reason: str | None):
    ran: list[str] = []

    @tool(needs_approval=gate)
    async def act() -> str:
        """Do something."""
        ran.append("act")
        return "x"

    result = await result_of([call("act"), "Done."], act, permissions=rules)
    (answer,) = told(result)
    assert (answer["kind"], answer["error"], answer.get("reason")) == ("denied", "ToolDeniedError", reason)
    assert (ran, result.finish_reason, result.text) == ([], "stop", "Done.")


@pytest.mark.spec("TOOL-50")
async def test_the_text_of_an_error_can_be_replaced_wherever_it_would_show():
    secret = "password=hunter2"
    infos: list[Any] = []

    def shown(error: BaseException, info: Any) -> str:
        infos.append((type(error).__name__, str(error), info.tool_name, info.tool_call_id))
        return f"{info.tool_name} failed."

    @tool
    async def query(table: str) -> str:
        """Query a database."""
        raise ConnectionError(f"refused, {secret}")

    heard: list[Any] = []
    model = mock_model([calls(("query", {"table": "a"}), ("query", {}), ("ghost", {})), "Done."])
    agent = create_agent(provider=model, tools=[query], tool_error_message=shown, on_event=heard.append)
    result = await agent.send("go")
    assert infos == [("ConnectionError", f"refused, {secret}", "query", "call_1")]
    first, second, third = told(result)
    assert first == {"error": "ConnectionError", "toolName": "query", "message": "query failed.", "kind": "execution"}
    assert (second["kind"], third["kind"]) == ("validation", "not-found")
    assert "table" in second["message"]
    assert "ghost" in third["message"]
    everywhere = json.dumps([result.to_dict(), [event.to_dict() for event in heard]])
    assert secret not in everywhere
    assert secret not in json.dumps([message.to_dict() for message in model.calls[1].messages])
    told_of = {event.tool_call_id: event.error.message for event in of_type(heard, "tool.error")}
    assert told_of["call_1"] == "query failed."


def no_text(*_: object) -> Any:
    return 42


def raises(*_: object) -> Any:
    raise RuntimeError("worse")


@pytest.mark.spec("TOOL-51")
@pytest.mark.parametrize("shown", [no_text, raises])
async def test_a_function_that_cannot_replace_the_text_still_hides_it(shown: Any):
    @tool
    async def act() -> str:
        """Do something."""
        raise OSError("secret")

    result = await result_of([call("act"), "Done."], act, tool_error_message=shown)
    assert told(result)[0]["message"] == "The tool failed."
    assert result.text == "Done."


class OutOfStock(Exception):
    tool_error_kind = "stock"


@pytest.mark.spec("TOOL-52")
async def test_a_result_of_ones_own_has_the_same_shape_and_an_error_may_pick_its_kind():
    @tool
    async def order() -> str:
        """Order something."""
        raise OutOfStock("no more shoes")

    result = await result_of([call("order"), "Done."], order)
    expected = {"error": "OutOfStock", "toolName": "order", "message": "no more shoes", "kind": "stock"}
    assert told(result) == [expected]
    assert tool_error_result(tool_name="order", error=OutOfStock("no more shoes")) == expected
    assert tool_error_result(
        tool_name="order", error="not today", kind="denied", tool_call_id="call_1", details={"reason": "holiday"}
    ) == {
        "error": "ToolDeniedError",
        "toolName": "order",
        "message": "not today",
        "kind": "denied",
        "reason": "holiday",
    }
    assert tool_error_result(tool_name="order", error=KeyError("a"), kind="mcp")["kind"] == "mcp"


class Stop(PropagatingToolError):
    pass


@pytest.mark.spec("TOOL-53")
async def test_a_propagating_error_ends_the_run_and_is_no_result():
    error = Stop("enough")

    @tool
    async def act() -> str:
        """End the run."""
        raise error

    model = mock_model([call("act"), "never"])
    with pytest.raises(Stop) as caught:
        await create_agent(provider=model, tools=[act]).send("go")
    assert caught.value is error
    assert len(model.calls) == 1


@pytest.mark.spec("TOOL-54")
async def test_failed_calls_are_counted_over_the_whole_run_and_absent_when_there_are_none():
    @tool(needs_approval=lambda word: word == "gated")
    async def act(word: str) -> str:
        """Do something."""
        if word == "bad":
            raise ValueError("bad word")
        return word

    turns = [calls(("act", {"word": "bad"}), ("act", {"word": "good"}), ("ghost", {})), call("act", word="gated")]
    agent = create_agent(provider=mock_model([*turns, call("act", word="bad"), "Done."]), tools=[act])
    paused = await agent.send("go")
    assert paused.tool_errors == 2
    result = await agent.approvals.resolve(id=str(paused.approval_id), approved=False)
    assert (result.tool_errors, result.to_dict()["toolErrors"]) == (4, 4)

    clean = await result_of([call("act", word="good"), "Done."], act)
    assert clean.tool_errors is None
    assert "toolErrors" not in clean.to_dict()
