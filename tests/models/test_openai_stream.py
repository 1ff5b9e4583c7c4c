"""The OpenAI provider against streams on a real socket, however they are cut."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fake_vendor import STREAM_HEAD, FakeVendor, Reply, called, chunked, collect, events, http, request, text_in, tool

from lousho.core.errors import CompactedLLMProviderError
from lousho.core.messages import FunctionCall, ReasoningBlock, ToolCall
from lousho.core.usage import ModelUsage
from lousho.models.openai import OpenAIProvider
from lousho.models.provider import Finish, ReasoningDelta, ReasoningEnd, TextDelta, ToolCallChunk


def provider(vendor: FakeVendor, **options: Any) -> OpenAIProvider:
    return OpenAIProvider(base_url=f"{vendor.url}/v1", api_key="test-key-123456", default_model="m1", **options)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def piece(
    index: int | None = 0, call_id: str | None = None, name: str | None = None, arguments: str | None = None
) -> dict[str, Any]:
    entry: dict[str, Any] = {"function": {}}
    if index is not None:
        entry["index"] = index
    if call_id is not None:
        entry["id"] = call_id
    if name is not None:
        entry["function"]["name"] = name
    if arguments is not None:
        entry["function"]["arguments"] = arguments
    return entry


USAGE = {
    "choices": [],
    "usage": {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    },
}
CONVERSATION = [
    delta(role="assistant", content=""),
    delta(content="Grüße, "),
    delta(content="世界 🌍"),
    delta(tool_calls=[piece(0, "call_a", "get_weather", "")]),
    delta(tool_calls=[piece(0, arguments='{"ci')]),
    delta(tool_calls=[piece(0, arguments='ty":"Zürich"}')]),
    delta("tool_calls"),
    USAGE,
]
EXPECTED = [
    ToolCallChunk(called("call_a", arguments='{"city":"Zürich"}')),
    Finish(
        "tool_calls",
        ModelUsage(input_tokens=11, output_tokens=7, total_tokens=18, cached_input_tokens=4, reasoning_tokens=2),
    ),
]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
async def test_a_stream_cut_after_every_byte_reads_like_a_whole_one(vendor: FakeVendor, newline: str):
    raw = b": keep-alive" + newline.encode() * 2 + b"".join(events(*CONVERSATION, "[DONE]", newline=newline))
    vendor.answers(chunked([raw[i : i + 1] for i in range(len(raw))]))
    chunks = await collect(provider(vendor).stream(request(tools=[tool()])))
    assert text_in(chunks) == "Grüße, 世界 🌍"
    assert [chunk for chunk in chunks if chunk.type != "text-delta"] == EXPECTED


async def test_text_is_given_out_while_the_stream_is_still_open(vendor: FakeVendor):
    vendor.answers(Reply([STREAM_HEAD, b"".join(chunked(events(delta(content="first "))).pieces[1:2])], "wait"))
    stream = provider(vendor).stream(request())
    async with asyncio.timeout(5):
        assert await anext(aiter(stream)) == TextDelta("first ")
        await stream.aclose()  # type: ignore[attr-defined]
        await vendor.hung_up.wait()


@pytest.mark.spec("BEY-15")
@pytest.mark.parametrize("cut", range(len(CONVERSATION) - 1))
@pytest.mark.parametrize("politely", [True, False], ids=["ended", "dropped"])
async def test_a_stream_that_ends_before_its_finish_is_an_error_and_never_a_tool_call(
    vendor: FakeVendor, cut: int, politely: bool
):
    vendor.answers(chunked(events(*CONVERSATION[:cut]), complete=politely))
    seen: list[str] = []
    with pytest.raises(CompactedLLMProviderError) as failed:
        async for chunk in provider(vendor).stream(request()):
            seen.append(chunk.type)
    assert failed.value.code == "LOUSHO_PROVIDER_REQUEST_FAILED"
    assert failed.value.compacted.retryable
    assert set(seen) <= {"text-delta"}


async def test_a_connection_lost_after_the_finish_reason_costs_only_the_token_counts(vendor: FakeVendor):
    vendor.answers(chunked(events(*CONVERSATION[:-1]), complete=False, then="reset"))
    chunks = await collect(provider(vendor).stream(request()))
    assert chunks[-2:] == [EXPECTED[0], Finish("tool_calls", None)]


async def test_a_last_event_without_its_blank_line_counts(vendor: FakeVendor):
    raw = b"".join(events(delta(content="hi"), delta("stop")))
    vendor.answers(chunked([raw.rstrip(b"\n")]))
    assert await collect(provider(vendor).stream(request())) == [TextDelta("hi"), Finish("stop", None)]


@pytest.mark.spec("HAZ-15")
@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(
            [
                piece(None, "c1", "get_weather"),
                piece(None, "c1", arguments='{"city":'),
                piece(None, "c1", arguments='"Paris"}'),
            ],
            id="the id in every piece, no index",
        ),
        pytest.param(
            [piece(0, "c1", "get_weather", '{"city":'), piece(0, "c1", "get_weather", '"Paris"}')],
            id="everything in every piece",
        ),
        pytest.param(
            [piece(None, "c1", "get_weather", '{"city":'), piece(None, arguments='"Paris"}')],
            id="neither after the first",
        ),
        pytest.param([piece(0, "c1", "get_"), piece(0, None, "weather", '{"city":"Paris"}')], id="the name in pieces"),
    ],
)
async def test_pieces_of_one_tool_call_become_one_call(vendor: FakeVendor, pieces: list[dict[str, Any]]):
    vendor.answers(chunked(events(*[delta(tool_calls=[one]) for one in pieces], delta("tool_calls"))))
    chunks = await collect(provider(vendor).stream(request()))
    calls = [chunk.tool_call for chunk in chunks if chunk.type == "tool-call"]
    assert [(call.id, call.name, json.loads(call.arguments)) for call in calls] == [
        ("c1", "get_weather", {"city": "Paris"})
    ]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(
            [piece(0, "c1", "a", "{"), piece(1, "c2", "b", "{"), piece(0, arguments="}"), piece(1, arguments="}")],
            id="interleaved by index",
        ),
        pytest.param([piece(0, "c1", "a", "{}"), piece(0, "c2", "b", "{}")], id="all with the index 0"),
        pytest.param([piece(None, "c1", "a", "{}"), piece(None, "c2", "b", "{}")], id="without an index"),
    ],
)
async def test_two_tool_calls_stay_two(vendor: FakeVendor, pieces: list[dict[str, Any]]):
    vendor.answers(chunked(events(*[delta(tool_calls=[one]) for one in pieces], delta("tool_calls"))))
    chunks = await collect(provider(vendor).stream(request()))
    assert [chunk for chunk in chunks if chunk.type == "tool-call"] == [
        ToolCallChunk(ToolCall("c1", FunctionCall("a", "{}"))),
        ToolCallChunk(ToolCall("c2", FunctionCall("b", "{}"))),
    ]


async def test_a_call_without_arguments_and_without_an_id_gets_both(vendor: FakeVendor):
    vendor.answers(chunked(events(delta(tool_calls=[piece(0, None, "now")]), delta("stop"))))
    chunks = await collect(provider(vendor).stream(request()))
    call = next(chunk.tool_call for chunk in chunks if chunk.type == "tool-call")
    assert (call.name, call.arguments, bool(call.id)) == ("now", "{}", True)
    assert chunks[-1] == Finish("tool_calls", None)


@pytest.mark.parametrize("arguments", ["", '{"city":"Par'])
async def test_a_tool_call_cut_off_by_the_token_limit_is_not_given_out(vendor: FakeVendor, arguments: str):
    vendor.answers(
        chunked(
            events(
                delta(content="Let me"), delta(tool_calls=[piece(0, "c1", "get_weather", arguments)]), delta("length")
            )
        )
    )
    assert await collect(provider(vendor).stream(request())) == [TextDelta("Let me"), Finish("length", None)]


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
async def test_reasoning_beside_the_content_is_reasoning(vendor: FakeVendor, key: str):
    vendor.answers(
        chunked(events(delta(**{key: "six "}), delta(**{key: "times seven"}), delta(content="42"), delta("stop")))
    )
    assert await collect(provider(vendor).stream(request())) == [
        ReasoningDelta("six "),
        ReasoningDelta("times seven"),
        ReasoningEnd(ReasoningBlock("six times seven")),
        TextDelta("42"),
        Finish("stop", None),
    ]


@pytest.mark.spec("HAZ-16")
async def test_a_plain_completion_answering_a_streaming_request_is_replayed_as_a_stream(vendor: FakeVendor):
    message = {"role": "assistant", "content": "Hi!", "tool_calls": [called("c1").to_dict()]}
    vendor.answers(
        http(
            200,
            {
                "choices": [{"message": message, "finish_reason": "tool_calls"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2},
            },
            content_type="application/json",
        )
    )
    assert await collect(provider(vendor).stream(request())) == [
        TextDelta("Hi!"),
        ToolCallChunk(called("c1")),
        Finish("tool_calls", ModelUsage(input_tokens=3, output_tokens=2)),
    ]


@pytest.mark.spec("ERR-30")
@pytest.mark.parametrize(
    ("event", "status", "category", "retryable"),
    [
        pytest.param({"error": {"message": "upstream died"}}, 502, "unknown", True, id="an error chunk"),
        pytest.param(
            {"error": {"message": "slow down", "code": 429}}, 429, "rate-limit", True, id="an error chunk with a code"
        ),
        pytest.param(
            {"error": {"message": "the request exceeds the available context size"}},
            502,
            "context-length-exceeded",
            False,
            id="a context overflow",
        ),
        pytest.param(
            {"choices": [{"delta": {}, "finish_reason": "error"}]}, 502, "unknown", True, id="finish reason error"
        ),
        pytest.param(
            {"choices": [{"delta": {}, "finish_reason": "error", "error": {"message": "died", "code": 503}}]},
            503,
            "unknown",
            True,
            id="an error in the choice",
        ),
    ],
)
async def test_a_failure_inside_a_stream_with_status_200_is_an_error(
    vendor: FakeVendor, event: dict[str, Any], status: int, category: str, retryable: bool
):
    vendor.answers(chunked(events(delta(content="Hel"), event)))
    with pytest.raises(CompactedLLMProviderError) as failed:
        await collect(provider(vendor).stream(request()))
    compacted = failed.value.compacted
    assert (compacted.status_code, compacted.category, compacted.retryable) == (status, category, retryable)


@pytest.mark.spec("BEY-15")
@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        pytest.param([b"<html><body>Bad gateway</body></html>"], "Bad gateway", id="HTML"),
        pytest.param([b"data: {not json}\n\n"], "{not json}", id="broken JSON"),
        pytest.param([b"data: 42\n\n"], "42", id="JSON that is no object"),
        pytest.param([], "empty", id="nothing"),
        pytest.param([b": only a comment\n\n"], "comment", id="only a comment"),
        pytest.param([b'{"choices": [{"mess'], "not JSON", id="JSON that is cut off"),
        pytest.param([b"{}"], "no choices", id="an empty object"),
        pytest.param([bytes(range(128, 256)) * 3], "not a stream", id="binary"),
    ],
)
async def test_an_answer_that_makes_no_sense_is_a_retryable_error_that_shows_it(
    vendor: FakeVendor, raw: list[bytes], shown: str
):
    vendor.answers(chunked(raw))
    with pytest.raises(CompactedLLMProviderError) as failed:
        await collect(provider(vendor).stream(request()))
    assert shown in failed.value.message
    assert failed.value.compacted.retryable


async def test_an_event_beyond_the_size_limit_ends_the_call(vendor: FakeVendor):
    vendor.answers(chunked([b"data: ", *[b"x" * 1024 * 1024] * 17]))
    with pytest.raises(CompactedLLMProviderError, match="longer than 16,777,216 bytes") as failed:
        await collect(provider(vendor).stream(request()))
    assert not failed.value.compacted.retryable
