"""The mock provider with canned replies."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_vendor import collect, request, text_in
from fake_vendor import tool as definition

from lousho import MockLLMProvider, create_agent, create_mock_provider, tool
from lousho.core.errors import ConfigurationError
from lousho.core.messages import Message


@tool
def current_date() -> dict[str, str]:
    """Get the current date."""
    return {"date": "2026-11-30"}


@pytest.mark.spec("QS-09")
@pytest.mark.parametrize("streamed", [False, True], ids=["send", "stream"])
async def test_naming_a_tool_calls_it_once_and_the_next_reply_answers(streamed: bool):
    agent = create_agent(
        instructions="You are a scheduling assistant. Use tools when helpful.",
        provider=create_mock_provider(responses=["Let me check.", "Here is the date you asked for."]),
        tools=[current_date],
    )
    if streamed:
        result = await agent.stream("Please call current_date for me").result
    else:
        result = await agent.send("Please call current_date for me")
    assert [call.function.name for call in result.tool_calls] == ["current_date"]
    assert result.text == "Here is the date you asked for."
    assert "2026-11-30" in next(str(message.content) for message in result.messages if message.role == "tool")


@pytest.mark.spec("QS-09")
@pytest.mark.parametrize("text", ["What day is it?", "my_current_date", "current_date_time", "current-date"])
async def test_a_message_that_does_not_name_a_tool_as_a_word_calls_none(text: str):
    agent = create_agent(provider=create_mock_provider(responses=["Hm."]), tools=[current_date])
    result = await agent.send(text)
    assert (result.tool_calls, result.text, result.finish_reason) == ([], "Hm.", "stop")


async def test_required_arguments_are_made_up_so_that_the_call_is_valid():
    schema = {
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "count": {"type": "integer", "minimum": 3},
            "urgent": {"type": "boolean"},
            "kind": {"enum": ["a", "b"]},
            "tags": {"type": "array"},
            "either": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "inner": {"type": "object", "properties": {"x": {"default": 9}}, "required": ["x"]},
            "optional": {"type": "string"},
        },
        "required": ["to", "count", "urgent", "kind", "tags", "either", "inner"],
    }
    offered = definition("send_email")
    object.__setattr__(offered.function, "parameters", schema)
    response = await MockLLMProvider().generate(request(Message("user", "send_email now"), tools=[offered]))
    assert json.loads(response.tool_calls[0].arguments) == {
        "to": "example",
        "count": 3,
        "urgent": True,
        "kind": "a",
        "tags": [],
        "either": 1,
        "inner": {"x": 9},
    }


async def test_replies_are_used_in_turn_and_then_again_and_stream_word_by_word():
    provider = create_mock_provider(responses=["one two", "three"])
    chunks = await collect(provider.stream(request()))
    assert (text_in(chunks), len(chunks)) == ("one two", 3)
    assert [(await provider.generate(request())).text for _ in range(3)] == ["three", "one two", "three"]


async def test_a_call_that_must_not_use_tools_gets_none():
    asked = request(Message("user", "get_weather"), tools=[definition()], tool_choice="none")
    assert (await create_mock_provider().generate(asked)).tool_calls == ()


@pytest.mark.parametrize("responses", ["Hello", [], [3]])
def test_responses_are_a_list_of_texts(responses: Any):
    with pytest.raises(ConfigurationError):
        create_mock_provider(responses=responses)
