"""A run that fails hands over what it had spent, and leaves its session as it was."""

from __future__ import annotations

from typing import Any

import pytest
from runs import call

from lousho import PropagatingToolError, SDKError, create_agent, tool
from lousho.testing import mock_model


def agent_raising(error: BaseException):
    @tool
    async def fail() -> str:
        """Fail."""
        raise error

    return create_agent(provider=mock_model([call("fail"), "never"]), tools=[fail])


def spent(error: BaseException) -> Any:
    return getattr(error, "usage", None)


class Stop(PropagatingToolError):
    """Stops the run."""


@pytest.mark.spec("ERR-13")
async def test_whatever_a_run_rejects_with_carries_what_was_spent():
    with pytest.raises(Stop) as caught:
        await agent_raising(Stop("stop")).send("go")
    assert spent(caught.value).model_calls == 1
    run = agent_raising(Stop("stop")).stream("go", throw_on_error=False)
    with pytest.raises(Stop) as streamed:
        await run.result
    assert spent(streamed.value).model_calls == 1
    with pytest.raises(Stop) as in_session:
        await agent_raising(Stop("stop")).session("s").send("go")
    assert spent(in_session.value).total_tokens > 0


@pytest.mark.spec("ERR-13", "ERR-14")
async def test_a_failed_model_call_carries_the_usage_of_the_steps_before_and_never_shows_it():
    @tool
    async def fine() -> str:
        """Work."""
        return "ok"

    agent = create_agent(provider=mock_model([call("fine"), {"error": OSError("down")}]), tools=[fine])
    with pytest.raises(SDKError) as caught:
        await agent.send("go")
    error = caught.value
    assert error.usage is not None
    assert error.usage.model_calls == 1
    shown = f"{error} {error!r} {error.args} {error.to_dict()}"
    assert "usage" not in shown.lower()


@pytest.mark.spec("ERR-14")
async def test_a_usage_of_its_own_is_kept_and_a_run_that_never_started_has_none():
    class Own(PropagatingToolError):
        usage = "mine"

    with pytest.raises(Own) as caught:
        await agent_raising(Own("stop")).send("go")
    assert caught.value.usage == "mine"
    with pytest.raises(SDKError) as early:
        await create_agent(provider=mock_model(["x"])).send([])
    assert early.value.usage is None


async def test_a_failed_turn_leaves_the_session_as_it_was():
    agent = create_agent(provider=mock_model(["One.", {"error": OSError("down")}, "Three."]))
    session = agent.session("s")
    await session.send("first")
    with pytest.raises(SDKError):
        await session.send("second")
    assert [message.content for message in session.messages] == ["first", "One."]
    await session.send("third")
    assert len(session.messages) == 4


@pytest.mark.spec("ERR-43", "BEY-16")
async def test_a_tool_that_raises_is_told_to_the_model_without_stack_or_help_line():
    model = mock_model([call("fail"), "I could not."])

    @tool
    async def fail() -> str:
        """Fail."""
        raise SDKError("the disk is full", code="LOUSHO_STORAGE_FAILED")

    result = await create_agent(provider=model, tools=[fail]).send("go")
    told = model.calls[1].messages[-1].content
    assert "the disk is full" in told
    assert "[LOUSHO_" not in told
    assert "Traceback" not in told
    assert result.text == "I could not."
