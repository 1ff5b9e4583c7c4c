"""Files that are not what they should be, and files that somebody else wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lousho.core.messages import FunctionCall, Message, ReasoningBlock, ToolCall
from lousho.core.usage import ModelUsage
from lousho.models.provider import TextDelta
from lousho.testing import CassetteMismatchError, mock_model, read_cassette, record_replay

MUSEUM = Path(__file__).parent / "museum"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(b"", "not JSON", id="empty"),
        pytest.param(b'{"version": 1, "entries": [{"kind"', "ends in the middle", id="truncated"),
        pytest.param(b"<<<<<<< HEAD\n{}", "not JSON", id="a merge conflict"),
        pytest.param(b"\xff\xfe\x00garbage", "not UTF-8", id="bytes"),
        pytest.param(b"[" * 100_000, "cannot be read", id="nested without end"),
        pytest.param(b"[]", "does not hold a JSON object", id="a list"),
        pytest.param(b"{}", "'entries' must be a list", id="no entries"),
        pytest.param(b'{"version": "1", "entries": []}', "'version' must be 1", id="a version that is no number"),
        pytest.param(b'{"version": 2, "entries": []}', "has version 2", id="a newer version"),
        pytest.param(b'{"entries": [5]}', "entries[0] must be an object", id="an entry that is a number"),
        pytest.param(b'{"entries": [{}]}', "entries[0].request must be an object", id="an entry without request"),
        pytest.param(b'{"entries": [{"request": {}}]}', "entries[0] has no response", id="an entry without answer"),
        pytest.param(
            b'{"entries": [{"request": {}, "response": "hi"}]}', "entries[0].response must be", id="an odd response"
        ),
        pytest.param(b'{"entries": [{"request": {}, "chunks": {}}]}', "entries[0].chunks must be", id="odd chunks"),
        pytest.param(b'{"entries": [{"request": {}, "error": "x"}]}', "entries[0].error must be", id="an odd error"),
    ],
)
async def test_a_broken_file_is_a_coded_error_that_says_what_to_do(content: bytes, says: str, ask: Any, tmp_path: Path):
    cassette = tmp_path / "flow.json"
    cassette.write_bytes(content)
    with pytest.raises(CassetteMismatchError) as caught:
        await record_replay(cassette=cassette).generate(ask("hi"))
    error = caught.value
    assert says in error.detail
    assert "re-record it (run with LOUSHO_RECORD=1" in error.detail
    assert (error.code, error.cassette, error.call_number) == ("LOUSHO_CASSETTE_INVALID", str(cassette), None)
    assert cassette.read_bytes() == content


async def test_a_file_that_is_too_large_is_not_read(ask: Any, tmp_path: Path):
    cassette = tmp_path / "huge.json"
    with cassette.open("wb") as file:
        file.truncate(64 * 1024 * 1024 + 1)
    with pytest.raises(CassetteMismatchError, match="larger than the limit of 67,108,864 bytes"):
        await record_replay(cassette=cassette).generate(ask("hi"))


async def test_a_folder_in_place_of_the_file_is_named(ask: Any, tmp_path: Path):
    with pytest.raises(CassetteMismatchError, match="cannot be read: it is a folder"):
        await record_replay(cassette=tmp_path).generate(ask("hi"))


@pytest.mark.parametrize(
    "garbage",
    [
        {"messages": "x", "tools": 5, "temperature": "hot", "maxTokens": [], "model": {}},
        {"messages": [None, 5, {"role": 7, "content": {"a": 1}}], "tools": [None, {"function": 1}]},
        {"messages": [{"role": "user", "toolCalls": [{"function": {"arguments": 5}}, 3]}]},
    ],
)
async def test_garbage_inside_a_request_is_a_mismatch_and_nothing_worse(garbage: Any, ask: Any, tmp_path: Path):
    cassette = tmp_path / "flow.json"
    entry = {"request": garbage, "response": {"text": 5, "toolCalls": [1, {"id": None}], "usage": "many"}}
    cassette.write_text(json.dumps({"entries": [entry]}), encoding="utf-8")
    ways: list[dict[str, Any]] = [{}, {"match": "request"}, {"normalize": lambda request: request}]
    for options in ways:
        with pytest.raises(CassetteMismatchError, match="does not match"):
            await record_replay(cassette=cassette, **options).generate(ask("hi"))


async def test_garbage_inside_an_answer_becomes_an_answer(ask: Any, tmp_path: Path):
    cassette = tmp_path / "flow.json"
    request = {"messages": [{"role": "user", "content": "hi"}]}
    answers: list[dict[str, Any]] = [
        {"response": {"text": 5, "toolCalls": [1, {"id": None}], "usage": "many", "finishReason": 3}},
        {"chunks": [{"type": "future-chunk"}, {"type": "text-delta", "text": "a", "atMs": "soon"}, {"type": "finish"}]},
        {"error": {}},
        {"error": {"name": "Weird\0Name" * 100, "message": None, "base": "Nope", "category": 5, "retryAfterMs": "x"}},
    ]
    cassette.write_text(json.dumps({"entries": [{"request": request, **one} for one in answers]}), encoding="utf-8")
    replay = record_replay(cassette=cassette, replay_timing=True)
    reply = await replay.generate(ask("hi"))
    assert (reply.text, reply.usage, reply.finish_reason) == ("5", None, "other")
    chunks = [chunk async for chunk in replay.stream(ask("hi"))]
    assert chunks[0] == TextDelta("a")
    for _ in range(2):
        with pytest.raises(Exception) as caught:
            await replay.generate(ask("hi"))
        assert not isinstance(caught.value, CassetteMismatchError)


@pytest.mark.spec("TEST-13")
async def test_a_file_of_another_writer_replays(ask: Any, tmp_path: Path):
    """Another order of keys, no layout, a byte order mark, calls written as on the wire, keys nobody here knows."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    document = {
        "generator": {"name": "elsewhere"},
        "entries": [
            {
                "durationMs": 812,
                "request": {
                    "tools": [
                        {"type": "function", "function": {"name": "b", "parameters": {}, "description": "x"}},
                        {"type": "function", "function": {"name": "a", "parameters": schema}},
                    ],
                    "maxTokens": 64,
                    "messages": [
                        {"content": "Weather in Paris?", "role": "user"},
                        {
                            "role": "assistant",
                            "content": None,
                            "toolCalls": [
                                {
                                    "id": "x",
                                    "type": "function",
                                    "function": {"name": "a", "arguments": '{"city":"Paris"}'},
                                }
                            ],
                        },
                        {"role": "tool", "toolCallId": "x", "content": "21"},
                    ],
                    "model": "model-1",
                    "topP": 1,
                },
                "response": {
                    "usage": {"inputTokens": 3, "outputTokens": 4},
                    "finishReason": "tool_calls",
                    "toolCalls": [{"id": "y", "type": "function", "function": {"name": "a", "arguments": "{}"}}],
                    "text": "One moment.",
                    "reasoning": [{"text": "hm", "signature": "s"}],
                    "latency": 1,
                },
            }
        ],
        "version": 1,
    }
    cassette = tmp_path / "theirs.json"
    cassette.write_text("\ufeff" + json.dumps(document, separators=(",", ":")), encoding="utf-8")
    messages = [
        Message("user", "Weather in Paris?"),
        Message("assistant", "", tool_calls=(ToolCall("call_9", FunctionCall("a", '{"city": "Paris"}')),)),
        Message("tool", "21", tool_call_id="call_9"),
    ]
    request = ask("", messages=messages, model="model-1", max_tokens=64, tools={"a": schema, "b": {}})
    reply = await record_replay(cassette=cassette).generate(request)
    assert (reply.text, reply.tool_calls[0].name, reply.usage) == (
        "One moment.",
        "a",
        ModelUsage(input_tokens=3, output_tokens=4),
    )
    assert reply.reasoning == (ReasoningBlock("hm", "s"),)


async def test_cassettes_of_the_first_version_replay(ask: Any):
    """The file is kept as the first release wrote it; later releases have to go on reading it."""
    replay = record_replay(cassette=MUSEUM / "version-1.json")
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    request = ask("Weather in Paris?", tools={"get_weather": schema}, temperature=0, max_tokens=100)
    reply = await replay.generate(request)
    assert (reply.tool_calls[0].arguments, reply.reasoning[0].signature) == ('{"city": "Paris"}', "c2lnbmF0dXJl")
    assert reply.usage == ModelUsage(
        input_tokens=12, output_tokens=7, total_tokens=19, cached_input_tokens=4, reasoning_tokens=3, cost_usd=0.0001
    )
    chunks = [chunk async for chunk in replay.stream(ask("And in Rome?"))]
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta)) == "It is sunny."
    with pytest.raises(Exception, match="Too many requests") as caught:
        await replay.generate(ask("Again"))
    assert type(caught.value).__name__ == "CompactedLLMProviderError"
    assert (replay.name, replay.default_model) == ("openai", "gpt-4.1-mini")


async def test_a_cassette_can_be_read_as_data(ask: Any, cassette: Path):
    await record_replay(mock_model(["hello"]), cassette=cassette, mode="record").generate(ask("hi"))
    read = read_cassette(cassette)
    assert [(entry.kind, entry.whole().text) for entry in read.entries] == [("generate", "hello")]
    assert (read.version, read.provider) == (1, {"name": "mock", "defaultModel": "mock-model"})
