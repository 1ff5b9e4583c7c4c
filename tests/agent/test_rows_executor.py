"""What other pages say of the executor: missing parts, waiting sessions, what was spent, and what callbacks see."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hostile import within
from runs import call, calls, collect, of_type

from lousho import (
    InMemoryApprovalStore,
    PropagatingToolError,
    SDKError,
    SessionAwaitingApprovalError,
    create_agent,
    tool,
)
from lousho.executor import AgentBuilder, AgentExecutor, resume_after_approval, stream_resume_after_approval
from lousho.testing import mock_model


@tool
async def lookup(word: str) -> str:
    """Look a word up."""
    return word.upper()


@tool(needs_approval=True)
async def deploy(to: str) -> str:
    """Deploy somewhere."""
    return f"deployed to {to}"


def clerk(*tools: Any) -> Any:
    builder = AgentBuilder.create().set_id("clerk-1").set_name("clerk").set_prompt("Help.")
    for one in tools or (lookup, deploy):
        builder.add_tool(one)
    return builder.build()


# -- missing parts ---------------------------------------------------------------------------------------------------------

MISSING = [
    pytest.param("agent", "LOUSHO_CONFIG_MISSING_AGENT", ("AgentBuilder", "create_agent"), id="agent"),
    pytest.param("input", "LOUSHO_CONFIG_MISSING_INPUT", ("string", "list of messages"), id="input"),
    pytest.param("provider", "LOUSHO_CONFIG_MISSING_PROVIDER", ("provider",), id="provider"),
]


async def check_missing(left_out: str, code: str, hints: tuple[str, ...]) -> None:
    model = mock_model(["never"])
    given: dict[str, Any] = {"agent": clerk(), "input": "go", "provider": model}
    given[left_out] = None
    errors: list[SDKError] = []
    with pytest.raises(SDKError) as executed:
        await AgentExecutor.execute(**given)
    errors.append(executed.value)
    with pytest.raises(SDKError) as streamed:
        AgentExecutor.stream(**given)  # the call itself, before anything is awaited
    errors.append(streamed.value)
    del given[left_out]
    with pytest.raises(SDKError) as left:
        await AgentExecutor.execute(**given)
    errors.append(left.value)
    assert [error.code for error in errors] == [code] * 3
    assert all(hint in error.hint for error in errors for hint in hints)
    await asyncio.sleep(0)
    assert model.calls == ()


@pytest.mark.spec("STRM-10", "ERR-21")
@pytest.mark.parametrize(("left_out", "code", "hints"), MISSING[2:])
async def test_without_a_provider_nothing_starts(left_out: str, code: str, hints: tuple[str, ...]):
    await check_missing(left_out, code, hints)


@pytest.mark.spec("STRM-10", "ERR-22")
@pytest.mark.parametrize(("left_out", "code", "hints"), MISSING[:1])
async def test_without_an_agent_nothing_starts(left_out: str, code: str, hints: tuple[str, ...]):
    await check_missing(left_out, code, hints)


@pytest.mark.spec("STRM-10", "ERR-23")
@pytest.mark.parametrize(("left_out", "code", "hints"), MISSING[1:2])
async def test_without_input_nothing_starts(left_out: str, code: str, hints: tuple[str, ...]):
    await check_missing(left_out, code, hints)


@pytest.mark.spec("STRM-10")
@pytest.mark.parametrize(
    "options", [{"tool_concurrency": 0}, {"max_steps": 0}, {"signal": 1}, {"max_stepz": 1}], ids=str
)
async def test_options_that_make_no_sense_raise_from_stream_itself(options: dict[str, Any]):
    model = mock_model(["never"])
    given: dict[str, Any] = {"agent": clerk(), "input": "go", "provider": model, **options}
    with pytest.raises(SDKError) as caught:
        AgentExecutor.stream(**given)
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"
    await asyncio.sleep(0)
    assert model.calls == ()


# -- approvals -------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("ERR-47")
async def test_a_call_that_needs_a_decision_without_a_store_for_it_is_a_coded_error():
    ran: list[str] = []

    @tool(needs_approval=True)
    async def wipe() -> str:
        """Wipe a disk."""
        ran.append("wipe")
        return "wiped"

    with pytest.raises(SDKError) as caught:
        await AgentExecutor.execute(agent=clerk(wipe), input="go", provider=mock_model([call("wipe")]))
    error = caught.value
    assert (error.code, ran) == ("LOUSHO_APPROVAL_STORE_MISSING", [])
    assert "InMemoryApprovalStore()" in error.hint
    assert "create_agent()" in error.hint
    store = InMemoryApprovalStore()
    paused = await AgentExecutor.execute(
        agent=clerk(wipe), input="go", provider=mock_model([call("wipe")]), approval_store=store
    )
    assert (paused.finish_reason, ran) == ("awaiting-approval", [])


@pytest.mark.spec("API-10")
async def test_a_session_that_waits_for_a_decision_takes_no_further_input():
    store = InMemoryApprovalStore()
    model = mock_model([call("deploy", to="prod"), "Deployed.", "Hello again."])
    options: dict[str, Any] = {"provider": model, "approval_store": store, "session_id": "s-1"}
    paused = await AgentExecutor.execute(agent=clerk(), input="ship", **options)
    for start in (AgentExecutor.execute, lambda **given: AgentExecutor.stream(**given).result):
        with pytest.raises(SessionAwaitingApprovalError) as caught:
            await within(start(agent=clerk(), input="hello?", **options))
        assert caught.value.code == "LOUSHO_SESSION_AWAITING_APPROVAL"
        assert caught.value.approval_id == paused.approval_id
    assert len(model.calls) == 1
    other = await AgentExecutor.execute(agent=clerk(), input="hi", provider=mock_model(["Hi."]), session_id="s-2")
    assert other.text == "Hi."
    decided = await resume_after_approval(
        {"id": paused.approval_id, "approved": True}, store, None, model, agent=clerk()
    )
    assert decided.text == "Deployed."
    assert (await AgentExecutor.execute(agent=clerk(), input="hello?", **options)).text == "Hello again."


# -- what was spent, and what callbacks see --------------------------------------------------------------------------------


@pytest.mark.spec("ERR-13")
async def test_a_run_that_fails_says_what_it_spent_in_every_way_to_start_it():
    @tool
    async def stop() -> str:
        """Stop the run."""
        raise PropagatingToolError("stop")

    agent = clerk(stop, deploy)
    script = [{"text": "First.", **call("stop")}]
    with pytest.raises(PropagatingToolError) as executed:
        await AgentExecutor.execute(agent=agent, input="go", provider=mock_model(script))
    with pytest.raises(PropagatingToolError) as streamed:
        await AgentExecutor.stream(agent=agent, input="go", provider=mock_model(script)).result
    store = InMemoryApprovalStore()
    model = mock_model([call("deploy", to="a"), *script])
    paused = await AgentExecutor.execute(agent=agent, input="go", provider=model, approval_store=store)
    run = stream_resume_after_approval({"id": paused.approval_id, "approved": True}, store, None, model, agent=agent)
    with pytest.raises(PropagatingToolError) as resumed:
        await run.result
    spent = [getattr(one.value, "usage", None) for one in (executed, streamed, resumed)]
    assert [one.model_calls if one else None for one in spent] == [1, 1, 2]


@pytest.mark.spec("EVT-03")
async def test_run_start_names_the_agent_and_its_id():
    events = await collect(AgentExecutor.stream(agent=clerk(), input="go", provider=mock_model(["Hi."])))
    first = events[0].to_dict()
    assert (first["type"], first["agentName"], first["agentId"]) == ("run.start", "clerk", "clerk-1")
    plain = {"name": "plain", "prompt": "Help."}
    events = await collect(AgentExecutor.stream(agent=plain, input="go", provider=mock_model(["Hi."])))
    assert "agentId" not in events[0].to_dict()
    events = await collect(create_agent(provider=mock_model(["Hi."]), name="made").stream("go"))
    assert events[0].to_dict()["agentName"] == "made"


@pytest.mark.spec("TOOL-23", "TOOL-41")
async def test_the_callback_of_results_gets_long_ones_whole_and_failures_as_failures():
    @tool
    async def dump() -> str:
        """Say a lot."""
        return "x" * 60_000

    @tool
    async def fail() -> str:
        """Fail."""
        raise ValueError("no paper")

    heard: list[Any] = []
    result = await AgentExecutor.execute(
        agent=clerk(dump, fail),
        input="go",
        provider=mock_model([calls(("dump", {}), ("fail", {})), "Done."]),
        on_tool_result=heard.append,
    )
    by_type = {event.type: event for event in heard}
    assert len(by_type["tool.done"].result) == 60_000
    assert (by_type["tool.error"].error.name, by_type["tool.error"].error.message) == ("ValueError", "no paper")
    assert len(str(result.messages[2].content)) < 51_000
    assert result.messages[3].is_error


@pytest.mark.spec("TOOL-50")
async def test_the_callback_of_results_gets_the_replaced_text_of_an_error():
    @tool
    async def query() -> str:
        """Query a database."""
        raise ConnectionError("password=hunter2")

    heard: list[Any] = []
    await AgentExecutor.execute(
        agent=clerk(query),
        input="go",
        provider=mock_model([call("query"), "Done."]),
        on_tool_result=heard.append,
        on_agent_event=heard.append,
        tool_error_message=lambda error, info: f"{info.tool_name} failed.",
    )
    assert {event.error.message for event in of_type(heard, "tool.error")} == {"query failed."}
    assert "hunter2" not in str([event.to_dict() for event in heard])


@pytest.mark.spec("RUN-32")
async def test_the_callback_of_calls_runs_just_before_each_call_starts():
    log: list[str] = []

    @tool(needs_approval=lambda word: log.append(f"gate {word}") or False)
    async def act(word: str) -> str:
        """Do something."""
        log.append(f"run {word}")
        return word

    await AgentExecutor.execute(
        agent=clerk(act),
        input="go",
        provider=mock_model([calls(*[("act", {"word": word}) for word in "abc"]), "Done."]),
        on_tool_call=lambda event: log.append(f"call {event.to_dict()['args']['word']}"),
        tool_concurrency=1,
    )
    assert log == [f"{what} {word}" for word in "abc" for what in ("call", "gate", "run")]


# -- what needs a store ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("ERR-25")
async def test_a_durable_run_without_a_store_of_checkpoints_is_a_coded_error():
    model = mock_model(["never"])
    agent = create_agent(provider=model)
    with pytest.raises(SDKError) as sent:
        await agent.send("hi", session_id="job-1")
    with pytest.raises(SDKError) as streamed:
        agent.stream("hi", session_id="job-1")
    for error in (sent.value, streamed.value):
        assert error.code == "LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE"
        assert "store=" in error.hint
        assert "session_id" in error.hint
    assert model.calls == ()
