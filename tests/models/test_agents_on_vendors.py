"""Whole runs of an agent against a vendor on the wire."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from fake_vendor import FakeVendor, Received, Reply, called, chunked, events, http
from pydantic import Field

from lousho import create_agent, tool
from lousho.core.errors import CompactedLLMProviderError
from lousho.core.messages import Message
from lousho.models.anthropic import AnthropicProvider
from lousho.models.openai import OpenAIProvider

ran: list[str] = []


@tool
def get_weather(city: str = "nowhere") -> str:
    """Get the weather."""
    ran.append(city)
    return f"21 degrees in {city}"


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"delta": fields, "finish_reason": finish}]}


def openai_turns(received: Received) -> Reply:
    """Ask for the weather, then repeat what the tool said."""
    last = received.json["messages"][-1]
    if last["role"] == "tool":
        return chunked(events(delta(content=f"So: {last['content']}"), delta("stop"), "[DONE]"), then="keep")
    call = {**called("c1").to_dict(), "index": 0}
    return chunked(events(delta(tool_calls=[call]), delta("tool_calls"), "[DONE]"), then="keep")


def anthropic_turns(received: Received) -> Reply:
    """The same in the other vendor's form."""
    last = received.json["messages"][-1]["content"][-1]
    end = [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
        {"type": "message_stop"},
    ]
    if last["type"] == "tool_result":
        text = {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": f"So: {last['content']}"},
        }
        return chunked(events(text, *end, named=True), then="keep")
    block = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
    end[0] = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}}
    return chunked(
        events(
            {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "hm"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": block},
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": '{"city": "Paris"}'},
            },
            {"type": "content_block_stop", "index": 1},
            *end,
            named=True,
        ),
        then="keep",
    )


async def test_an_openai_agent_streams_calls_its_tool_and_answers(vendor: FakeVendor):
    vendor.answers(openai_turns)
    agent = create_agent(provider=OpenAIProvider(base_url=vendor.url, api_key="k-12345"), tools=[get_weather])
    run = agent.stream("Weather?")
    seen = [event.type async for event in run]
    assert (await run.result).text == "So: 21 degrees in Paris"
    assert ran == ["Paris"]
    assert [kind for kind in seen if kind.startswith(("tool", "text"))] == [
        "tool.start",
        "tool.done",
        "text.delta",
        "text.done",
    ]


async def test_an_anthropic_agent_sends_its_thinking_back_with_the_tool_result(vendor: FakeVendor):
    vendor.answers(anthropic_turns)
    agent = create_agent(provider=AnthropicProvider(base_url=vendor.url, api_key="k-12345"), tools=[get_weather])
    run = agent.stream("Weather?")
    seen = [event.type async for event in run]
    result = await run.result
    assert (result.text, ran) == ("So: 21 degrees in Paris", ["Paris"])
    assert "reasoning.done" in seen
    assert vendor.received[1].json["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "21 degrees in Paris"}],
        },
    ]


@pytest.mark.spec("BEY-17")
@pytest.mark.parametrize("vendor_class", [OpenAIProvider, AnthropicProvider])
async def test_the_metadata_of_a_message_stays_with_it_and_never_leaves(vendor: FakeVendor, vendor_class: Any):
    vendor.answers(openai_turns if vendor_class is OpenAIProvider else anthropic_turns)
    agent = create_agent(provider=vendor_class(base_url=vendor.url, api_key="k-12345"), tools=[get_weather])
    session = agent.session("s")
    async for _ in (run := session.stream([Message("user", "Weather?", metadata={"ticket": "only-ours"})])):
        pass
    result = await run.result
    again = await session.stream("And tomorrow?").result
    kept = {"ticket": "only-ours"}
    assert (result.messages[0].metadata, again.messages[0].metadata) == (kept, kept)
    assert (await session.load())[0].metadata == kept
    assert len(vendor.received) == 4
    assert all(b"only-ours" not in one.body for one in vendor.received)


@pytest.mark.parametrize("cut", range(1, 4))
async def test_no_tool_runs_when_the_stream_was_cut_off(vendor: FakeVendor, cut: int):
    whole = events(
        delta(content="Let me look."),
        delta(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "get_weather", "arguments": ""}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": "{}"}}]),
        delta("tool_calls"),
    )
    vendor.answers(chunked(whole[:cut]))
    agent = create_agent(provider=OpenAIProvider(base_url=vendor.url, api_key="k-12345"), tools=[get_weather])
    run = agent.stream("Weather?")
    with pytest.raises(CompactedLLMProviderError):
        await run.result
    assert ran == []


@pytest.mark.spec("HAZ-17")
@pytest.mark.parametrize("streamed", [False, True], ids=["generate", "stream"])
async def test_tool_calls_without_any_call_end_the_run_as_stop(vendor: FakeVendor, streamed: bool):
    if streamed:
        vendor.answers(chunked(events(delta(content="Done."), delta("tool_calls"))))
    else:
        vendor.answers(
            http(200, {"choices": [{"message": {"content": "Done.", "tool_calls": []}, "finish_reason": "tool_calls"}]})
        )
    agent = create_agent(
        provider=OpenAIProvider(base_url=vendor.url, api_key="k-12345"),
        tools=[get_weather],
        on_event=(lambda _: None) if streamed else None,
    )
    result = await agent.send("hi")
    assert (result.text, result.finish_reason, len(vendor.received)) == ("Done.", "stop", 1)


async def test_broken_arguments_are_told_to_the_model_which_may_try_again(vendor: FakeVendor):
    broken = {"index": 0, "id": "c1", "function": {"name": "get_weather", "arguments": '{"city": Paris"'}}
    vendor.answers(
        chunked(events(delta(tool_calls=[broken]), delta("tool_calls"))),
        chunked(events(delta(content="Sorry."), delta("stop"))),
    )
    agent = create_agent(provider=OpenAIProvider(base_url=vendor.url, api_key="k-12345"), tools=[get_weather])
    result = await agent.stream("Weather?").result
    assert (result.text, ran) == ("Sorry.", [])
    told = vendor.received[1].json["messages"][-1]
    assert told["role"] == "tool"
    assert "error" in json.loads(told["content"])


@tool
def now() -> str:
    """Tell the time."""
    return "now"


def every_kind_of_argument(
    text: str,
    maybe: str | None,
    either: int | str,
    kind: Literal["a", "b"],
    tags: list[str],
    table: dict[str, float],
    nested: Address,
    count: Annotated[int, Field(ge=1, le=9, description="How many")] = 3,
    flag: bool = False,
    nothing: None = None,
) -> str:
    """Take one of everything."""
    return text


class Address(TypedDict):
    """Where someone lives."""

    street: str
    number: NotRequired[int]


@pytest.mark.parametrize("vendor_class", [OpenAIProvider, AnthropicProvider])
async def test_a_tool_reaches_every_vendor_with_the_schema_it_has(vendor: FakeVendor, vendor_class: Any):
    offered = [tool(every_kind_of_argument), get_weather, now]
    reply = {
        "content": [],
        "stop_reason": "end_turn",
        "choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}],
    }
    vendor.answers(http(200, reply))
    await create_agent(provider=vendor_class(base_url=vendor.url, api_key="k-12345"), tools=offered).send("hi")
    sent = vendor.received[0].json["tools"]
    functions = [entry.get("function", entry) for entry in sent]
    schemas = [function.get("parameters", function.get("input_schema")) for function in functions]
    assert [function["name"] for function in functions] == ["every_kind_of_argument", "get_weather", "now"]
    assert all(schema["type"] == "object" for schema in schemas)
    assert schemas[0]["required"] == ["text", "maybe", "either", "kind", "tags", "table", "nested"]
    assert set(schemas[0]["properties"]) == set(every_kind_of_argument.__annotations__) - {"return"}
    assert schemas[1]["properties"]["city"]["default"] == "nowhere"
    assert schemas[2].get("properties", {}) == {}
