"""The small helpers for tests of tools, and what the testing package shows."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import lousho.testing
from lousho.agent import create_agent
from lousho.core.errors import ConfigurationError
from lousho.core.messages import Message
from lousho.testing import mock_model, tool_context, tool_message_value
from lousho.tools import ToolContext, tool


@tool
def who(word: str, ctx: ToolContext) -> dict[str, Any]:
    """Say who asks."""
    return {"word": word, "call": ctx.tool_call_id, "session": ctx.session_id, "stopped": ctx.abort_signal.aborted}


@pytest.mark.spec("HAZ-46")
def test_a_tool_is_called_with_a_valid_context_outside_of_any_run():
    context = tool_context(session_id="s-1", messages=(Message("user", "hi"),))
    assert isinstance(context, ToolContext)
    assert (
        who("x", ctx=context)
        == who.invoke(who.parse({"word": "x"}), context)
        == {
            "word": "x",
            "call": "call_1",
            "session": "s-1",
            "stopped": False,
        }
    )
    assert (context.messages[0].content, context.approval, tool_context().session_id) == ("hi", None, None)
    assert tool_context().abort_signal is not tool_context().abort_signal


def test_a_field_that_a_context_does_not_have_is_named():
    with pytest.raises(ConfigurationError, match="'sesion_id' is not a known field of a tool context") as caught:
        tool_context(sesion_id="s-1")
    assert "did you mean 'session_id'" in caught.value.detail


@pytest.mark.spec("HAZ-46")
async def test_the_message_of_a_tool_is_unwrapped_to_the_value_it_returned():
    model = mock_model([{"tool_calls": [{"name": "who", "args": {"word": "x"}}]}, "ok"])
    result = await create_agent(provider=model, tools=[who]).send("go")
    (message,) = [one for one in result.messages if one.role == "tool"]
    assert tool_message_value(message)["word"] == "x"
    assert tool_message_value(model.calls[1].messages[-1]) == tool_message_value(message)


@pytest.mark.parametrize(
    ("content", "value"),
    [('{"a": [1]}', {"a": [1]}), ("null", None), ("21", 21), ("plain text", "plain text"), ("", ""), ("[" * 9999, "[" * 9999)],
)  # fmt: skip
def test_a_message_in_any_form_is_unwrapped(content: str, value: Any):
    assert tool_message_value(Message("tool", content, tool_call_id="c")) == value
    assert tool_message_value({"role": "tool", "content": [{"type": "text", "text": content}]}) == value


def test_a_message_of_another_role_is_refused():
    with pytest.raises(ConfigurationError, match="this one has the role 'user'"):
        tool_message_value(Message("user", "{}"))


def test_every_name_the_package_lists_is_there():
    assert [name for name in lousho.testing.__all__ if not hasattr(lousho.testing, name)] == []
    with pytest.raises(AttributeError, match="no attribute 'mock_modle'"):
        _ = lousho.testing.mock_modle  # type: ignore[attr-defined]


def test_importing_the_package_loads_nothing_heavy():
    program = "import sys, lousho.testing; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8", check=True, timeout=30
    )
    assert not {"asyncio", "pydantic", "httpx", "lousho.testing.cassettes"} & set(done.stdout.split())
