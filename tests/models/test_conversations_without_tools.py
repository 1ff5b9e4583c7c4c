"""A conversation that has tool calls in it and goes on without tools, as each vendor takes it."""

from __future__ import annotations

from typing import Any

import pytest
from fake_vendor import FakeVendor, http

from lousho import CompactedLLMProviderError, create_agent, tool
from lousho.core.messages import FunctionCall, Message, ToolCall
from lousho.models.anthropic import AnthropicProvider
from lousho.models.openai import OpenAIProvider

HISTORY = [
    Message("user", "Weather?"),
    Message(
        "assistant", "", tool_calls=(ToolCall("c1", FunctionCall("look", "{}")), ToolCall("c2", FunctionCall("ask")))
    ),
    Message("tool", "sunny", tool_call_id="c1", name="look"),
    Message("tool", "warm", tool_call_id="c2", name="ask"),
    Message("user", "And tomorrow?"),
]
ANTHROPIC = {"content": [{"type": "text", "text": "Rain."}], "stop_reason": "end_turn"}
OPENAI = {"choices": [{"message": {"content": "Rain."}, "finish_reason": "stop"}]}


@tool
async def look() -> str:
    """Look out of the window."""
    return "sunny"


async def asked(vendor: FakeVendor, provider: Any, **options: Any) -> dict[str, Any]:
    """Return the body of the one request."""
    agent = create_agent(provider=provider, **options)
    assert (await agent.send(HISTORY)).text == "Rain."
    return vendor.received[-1].json


async def test_anthropic_is_told_of_tools_that_must_not_be_used(vendor: FakeVendor):
    vendor.answers(http(200, ANTHROPIC))
    body = await asked(vendor, AnthropicProvider(base_url=vendor.url, api_key="k-12345"))
    assert [one["name"] for one in body["tools"]] == ["look", "ask"]
    assert body["tool_choice"] == {"type": "none"}


async def test_anthropic_is_told_only_of_the_tools_there_are(vendor: FakeVendor):
    vendor.answers(http(200, ANTHROPIC))
    body = await asked(vendor, AnthropicProvider(base_url=vendor.url, api_key="k-12345"), tools=[look])
    assert [one["name"] for one in body["tools"]] == ["look"]
    assert "tool_choice" not in body


async def test_openai_takes_such_a_conversation_as_it_is(vendor: FakeVendor):
    vendor.answers(http(200, OPENAI))
    body = await asked(vendor, OpenAIProvider(base_url=vendor.url, api_key="k-12345"))
    assert "tools" not in body
    assert "tool_choice" not in body


@pytest.mark.spec("BEY-34")
async def test_the_last_answer_of_a_model_that_repeats_itself_is_legal_on_anthropic(vendor: FakeVendor):
    def answer(received: Any) -> Any:
        if received.json.get("tool_choice") == {"type": "none"}:
            return http(200, {"content": [{"type": "text", "text": "I cannot."}], "stop_reason": "end_turn"})
        if not received.json.get("tools"):
            return http(400, {"error": {"type": "invalid_request_error", "message": "tools are missing"}})
        number = len(vendor.received)
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": "ghost", "input": {}}
        return http(200, {"content": [block], "stop_reason": "tool_use"})

    vendor.answers(*[answer] * 6)
    agent = create_agent(provider=AnthropicProvider(base_url=vendor.url, api_key="k-12345"), tools=[look])
    try:
        result = await agent.send("Weather?")
    except CompactedLLMProviderError as error:
        pytest.fail(str(error))
    assert (result.text, result.steps) == ("I cannot.", 6)
    last = vendor.received[-1].json["messages"][-1]["content"]
    assert [block["type"] for block in last] == ["tool_result", "text"]
