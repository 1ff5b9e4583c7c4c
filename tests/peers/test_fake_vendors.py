"""The same agent against model servers that others wrote: through the provider, and through `lousho chat`."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from agent_files import write_files
from peer_servers import Aimock, Llmock

from lousho import create_agent, tool
from lousho.core.errors import CompactedLLMProviderError
from lousho.models.anthropic import AnthropicProvider
from lousho.models.openai import OpenAIProvider

VENDORS = ("openai", "anthropic")
MODELS = {"openai": "openai/gpt-4.1-mini", "anthropic": "anthropic/claude-sonnet-4-5"}
FIXTURES: list[dict[str, Any]] = [
    {
        "match": {"userMessage": "weather", "hasToolResult": False},
        "response": {"content": "Let me look.", "toolCalls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]},
    },
    {
        "match": {"userMessage": "weather", "hasToolResult": True},
        "response": {
            "content": "It is 21 degrees in Paris, 世界 🌍.",
            "usage": {"prompt_tokens": 40, "completion_tokens": 8, "input_tokens": 40, "output_tokens": 8},
        },
        "chunkSize": 5,
    },
    {"match": {"userMessage": "think"}, "response": {"content": "42", "reasoning": "six times seven"}},
    {
        "match": {"userMessage": "cut"},
        "response": {"content": "This answer is cut off in the middle of its stream."},
        "truncateAfterChunks": 2,
        "chunkSize": 6,
    },
    {
        "match": {"userMessage": "gone"},
        "response": {"content": "This connection is dropped in the middle of it all."},
        "disconnectAfterMs": 60,
        "chunkSize": 6,
        "latency": 50,
    },
    {
        "match": {"userMessage": "slow down"},
        "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429, "retryAfter": 2},
    },
    {"match": {}, "response": {"content": "Hello from a fake vendor."}},
]
AGENT = {
    "agent.json": '{"name": "forecaster", "model": "openai/gpt-4.1-mini"}',
    "instructions.md": "You report the weather.",
    "tools/get_weather.py": '''
        from lousho import tool


        @tool
        def get_weather(city: str) -> str:
            """Get the weather for a city."""
            return f"21 degrees in {city}"
        ''',
}


@tool
def get_weather(city: str) -> str:
    """Get the weather for a city."""
    return f"21 degrees in {city}"


def provider_for(vendor: str, server: Aimock | Llmock, **options: Any) -> OpenAIProvider | AnthropicProvider:
    if vendor == "openai":
        return OpenAIProvider(base_url=server.openai_base_url, api_key="test-key", **options)
    return AnthropicProvider(base_url=server.anthropic_base_url, api_key="test-key", **options)


def variables(server: Aimock | Llmock) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": server.openai_base_url,
        "OPENAI_API_KEY": "test-key",
        "ANTHROPIC_BASE_URL": server.anthropic_base_url,
        "ANTHROPIC_API_KEY": "test-key",
    }


Chat = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def chat(clean_env: Path, tmp_path: Path) -> Chat:
    """`chat(server, vendor, "a line", ...)` talks to the agent directory on that vendor, one turn a line."""
    import os

    folder = write_files(tmp_path / "forecaster", AGENT)

    def run(server: Aimock | Llmock, vendor: str, *lines: str) -> subprocess.CompletedProcess[str]:
        environment: Mapping[str, str] = {**os.environ, **variables(server)}
        return subprocess.run(
            [sys.executable, "-m", "lousho_cli", "chat", str(folder), "--model", MODELS[vendor]],
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=environment,
            cwd=tmp_path,
            timeout=60,
            check=False,
        )

    return run


@pytest.mark.spec("BEY-19")
@pytest.mark.parametrize("vendor", VENDORS)
def test_the_same_directory_chats_on_aimock_with_streaming_and_a_tool(
    aimock: Callable[..., Aimock], chat: Chat, vendor: str
):
    server = aimock(FIXTURES)
    done = chat(server, vendor, "hello", "What is the weather?")
    assert done.returncode == 0, done.stderr
    assert "Hello from a fake vendor." in done.stdout
    assert "It is 21 degrees in Paris, 世界 🌍." in done.stdout
    assert '[get_weather] {"city":"Paris"}\n  -> 21 degrees in Paris\n' in done.stderr
    journal = server.journal()
    assert [entry["body"]["stream"] for entry in journal] == [True, True, True]


@pytest.mark.spec("BEY-19")
@pytest.mark.parametrize("vendor", VENDORS)
def test_the_same_directory_chats_on_llmock_with_streaming_and_a_tool(llmock_server: Llmock, chat: Chat, vendor: str):
    llmock_server.scenario(
        {"type": "reply", "text": "Hello from a fake vendor."},
        {"type": "reply", "tool_calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]},
        {"type": "reply", "text": "It is 21 degrees in Paris."},
    )
    done = chat(llmock_server, vendor, "hello", "What is the weather?")
    assert done.returncode == 0, done.stderr
    assert "Hello from a fake vendor." in done.stdout
    assert "It is 21 degrees in Paris." in done.stdout
    assert '[get_weather] {"city":"Paris"}\n  -> 21 degrees in Paris\n' in done.stderr
    requests = llmock_server.requests()
    assert [(entry["provider"], entry["stream"], entry["completed"]) for entry in requests] == [
        (vendor, True, True)
    ] * 3


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_chat_turn_that_was_cut_off_is_a_failed_turn(llmock_server: Llmock, chat: Chat, vendor: str):
    llmock_server.scenario({"type": "stream_fault", "kind": "truncate", "after_chunks": 3, "times": None})
    done = chat(llmock_server, vendor, "Tell me about rivers")
    assert done.returncode == 1
    assert "LOUSHO_PROVIDER_REQUEST_FAILED" in done.stderr


@pytest.mark.parametrize("streamed", [False, True], ids=["generate", "stream"])
@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_tool_run_on_aimock(aimock: Callable[..., Aimock], vendor: str, streamed: bool):
    agent = create_agent(
        provider=provider_for(vendor, aimock(FIXTURES)),
        tools=[get_weather],
        on_event=(lambda _: None) if streamed else None,
    )
    result = await agent.send("What is the weather?")
    assert [call.function.name for call in result.tool_calls] == ["get_weather"]
    assert result.text == "It is 21 degrees in Paris, 世界 🌍."
    assert (result.step_usage[-1].input_tokens, result.step_usage[-1].output_tokens) == (40, 8)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_reasoning_of_aimock_is_reasoning(aimock: Callable[..., Aimock], vendor: str):
    run = create_agent(provider=provider_for(vendor, aimock(FIXTURES))).stream("think")
    seen = [event.to_dict() async for event in run]
    assert (await run.result).text == "42"
    assert [event["text"] for event in seen if event["type"] == "reasoning.done"] == ["six times seven"]


@pytest.mark.parametrize("question", ["cut", "gone"])
@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_broken_stream_of_aimock_is_a_retryable_error(
    aimock: Callable[..., Aimock], vendor: str, question: str
):
    with pytest.raises(CompactedLLMProviderError) as failed:
        await create_agent(provider=provider_for(vendor, aimock(FIXTURES))).stream(question).result
    assert failed.value.compacted.retryable


@pytest.mark.parametrize("vendor", VENDORS)
async def test_the_wait_that_aimock_asks_for_is_reported(aimock: Callable[..., Aimock], vendor: str):
    with pytest.raises(CompactedLLMProviderError, match="slow down") as failed:
        await create_agent(provider=provider_for(vendor, aimock(FIXTURES))).send("slow down")
    assert (failed.value.compacted.category, failed.value.compacted.retry_after_ms) == ("rate-limit", 2000)


REFUSALS = (
    (400, "unknown", False),
    (401, "auth-failure", False),
    (403, "auth-failure", False),
    (429, "rate-limit", True),
    (500, "unknown", True),
    (503, "unknown", True),
    (529, "unknown", True),
)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_each_refusal_of_llmock_has_its_category(llmock_server: Llmock, vendor: str):
    agent = create_agent(provider=provider_for(vendor, llmock_server))
    for status, category, retryable in REFUSALS:
        llmock_server.scenario({"type": "fail", "status": status, "retry_after": 3})
        with pytest.raises(CompactedLLMProviderError) as failed:
            await agent.send(f"Answer with {status}")
        compacted = failed.value.compacted
        assert (compacted.status_code, compacted.category, compacted.retryable) == (status, category, retryable)
        assert compacted.retry_after_ms == (3000 if status in (429, 503, 529) else None)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_stream_fault_of_llmock_is_an_error_and_no_tool_runs(llmock_server: Llmock, vendor: str):
    ran: list[str] = []

    @tool
    def lookup(city: str = "nowhere") -> str:
        """Look a city up."""
        ran.append(city)
        return city

    agent = create_agent(provider=provider_for(vendor, llmock_server), tools=[lookup])
    for kind, after in itertools.product(("disconnect", "truncate", "malformed"), (0, 1, 3, 5)):
        llmock_server.scenario(
            {"type": "reply", "text": "I see.", "tool_calls": [{"name": "lookup", "arguments": {"city": "Paris"}}]},
            {"type": "stream_fault", "kind": kind, "after_chunks": after},
        )
        with pytest.raises(CompactedLLMProviderError) as failed:
            await agent.stream(f"{kind} after {after}").result
        assert failed.value.compacted.retryable, (kind, after)
    assert ran == []


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_stall_of_llmock_ends_with_the_timeout(llmock_server: Llmock, vendor: str):
    llmock_server.scenario({"type": "stream_fault", "kind": "stall", "after_chunks": 1, "stall_seconds": 30})
    with pytest.raises(CompactedLLMProviderError) as failed:
        async with asyncio.timeout(10):
            await create_agent(provider=provider_for(vendor, llmock_server, timeout=300)).stream("hi").result
    assert failed.value.compacted.category == "timeout"


@pytest.mark.parametrize("kind", ["malformed_arguments", "unknown_tool"])
@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_broken_tool_call_of_llmock_is_told_to_the_model(llmock_server: Llmock, vendor: str, kind: str):
    llmock_server.scenario(
        {"type": "tool_fault", "kind": kind}, {"type": "reply", "text": "Sorry.", "match": {"tools": True}}
    )
    agent = create_agent(provider=provider_for(vendor, llmock_server), tools=[get_weather], max_steps=4)
    result = await agent.stream("What is the weather in Paris?").result
    assert result.tool_errors or result.text


@pytest.mark.parametrize("vendor", VENDORS)
async def test_the_models_of_a_peer_are_listed(llmock_server: Llmock, aimock: Callable[..., Aimock], vendor: str):
    for server in (llmock_server, aimock(FIXTURES)):
        assert isinstance(await provider_for(vendor, server).get_models(), list)
