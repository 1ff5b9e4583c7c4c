"""The Anthropic provider against streams on a real socket, however they are cut."""

from __future__ import annotations

from typing import Any

import pytest
from fake_vendor import FakeVendor, called, chunked, collect, events, http, request, text_in, tool

from lousho.core.errors import CompactedLLMProviderError
from lousho.core.messages import ReasoningBlock
from lousho.core.usage import ModelUsage
from lousho.models.anthropic import AnthropicProvider
from lousho.models.provider import Finish, ReasoningDelta, ReasoningEnd, TextDelta, ToolCallChunk


def provider(vendor: FakeVendor, **options: Any) -> AnthropicProvider:
    return AnthropicProvider(base_url=vendor.url, api_key="test-key-123456", default_model="claude-x", **options)


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def grow(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ended(reason: str, **usage: int) -> list[dict[str, Any]]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


BEGIN = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "role": "assistant",
        "content": [],
        "usage": {
            "input_tokens": 5,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 100,
            "output_tokens": 1,
        },
    },
}
CONVERSATION = [
    BEGIN,
    {"type": "ping"},
    start(0, type="thinking", thinking=""),
    grow(0, "thinking_delta", thinking="They want "),
    grow(0, "thinking_delta", thinking="weather."),
    grow(0, "signature_delta", signature="c2ln"),
    stop(0),
    start(1, type="redacted_thinking", data="b3BhcXVl"),
    stop(1),
    start(2, type="text", text=""),
    grow(2, "text_delta", text="Grüße, "),
    grow(2, "text_delta", text="世界 🌍"),
    stop(2),
    start(3, type="tool_use", id="toolu_1", name="get_weather", input={}),
    grow(3, "input_json_delta", partial_json=""),
    grow(3, "input_json_delta", partial_json='{"city":'),
    grow(3, "input_json_delta", partial_json='"Zürich"}'),
    stop(3),
    *ended("tool_use", output_tokens=40),
]
EXPECTED = [
    ReasoningDelta("They want "),
    ReasoningDelta("weather."),
    ReasoningEnd(ReasoningBlock("They want weather.", "c2ln")),
    ReasoningEnd(ReasoningBlock("", redacted_data="b3BhcXVl")),
    TextDelta("Grüße, "),
    TextDelta("世界 🌍"),
    ToolCallChunk(called("toolu_1", arguments='{"city":"Zürich"}')),
    Finish("tool_calls", ModelUsage(input_tokens=125, output_tokens=40, cached_input_tokens=100)),
]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
async def test_a_stream_cut_after_every_byte_reads_like_a_whole_one(vendor: FakeVendor, newline: str):
    raw = b": hello" + newline.encode() * 2 + b"".join(events(*CONVERSATION, newline=newline, named=True))
    vendor.answers(chunked([raw[i : i + 1] for i in range(len(raw))]))
    assert await collect(provider(vendor).stream(request(tools=[tool()]))) == EXPECTED


@pytest.mark.spec("BEY-15")
@pytest.mark.parametrize("cut", range(len(CONVERSATION) - 2))
@pytest.mark.parametrize("politely", [True, False], ids=["ended", "dropped"])
async def test_a_stream_that_ends_before_its_stop_reason_is_an_error_and_never_a_tool_call(
    vendor: FakeVendor, cut: int, politely: bool
):
    vendor.answers(chunked(events(*CONVERSATION[:cut], named=True), complete=politely))
    seen: list[str] = []
    with pytest.raises(CompactedLLMProviderError) as failed:
        async for chunk in provider(vendor).stream(request()):
            seen.append(chunk.type)
    assert failed.value.code == "LOUSHO_PROVIDER_REQUEST_FAILED"
    assert failed.value.compacted.retryable
    assert "tool-call" not in seen
    assert "finish" not in seen


async def test_a_connection_lost_after_the_stop_reason_is_no_loss(vendor: FakeVendor):
    vendor.answers(chunked(events(*CONVERSATION[:-1], named=True), complete=False, then="reset"))
    assert await collect(provider(vendor).stream(request())) == EXPECTED


async def test_a_tool_call_cut_off_by_the_token_limit_is_not_given_out(vendor: FakeVendor):
    vendor.answers(
        chunked(
            events(
                BEGIN,
                start(0, type="tool_use", id="t", name="get_weather", input={}),
                grow(0, "input_json_delta", partial_json='{"city":"Par'),
                stop(0),
                *ended("max_tokens", output_tokens=9),
            )
        )
    )
    chunks = await collect(provider(vendor).stream(request()))
    assert [chunk.type for chunk in chunks] == ["finish"]
    assert chunks[0].finish_reason == "length"  # type: ignore[union-attr]


async def test_a_tool_without_arguments_is_called_with_an_empty_object(vendor: FakeVendor):
    vendor.answers(
        chunked(events(BEGIN, start(0, type="tool_use", id="t", name="now", input={}), stop(0), *ended("tool_use")))
    )
    chunks = await collect(provider(vendor).stream(request()))
    assert chunks[0] == ToolCallChunk(called("t", "now", "{}"))


@pytest.mark.parametrize(
    ("reason", "ours"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("refusal", "content_filter"),
        ("pause_turn", "other"),
        ("something new", "other"),
    ],
)
async def test_stop_reasons_become_finish_reasons(vendor: FakeVendor, reason: str, ours: str):
    vendor.answers(chunked(events(BEGIN, *ended(reason, output_tokens=3))))
    chunks = await collect(provider(vendor).stream(request()))
    assert chunks == [Finish(ours, ModelUsage(input_tokens=125, output_tokens=3, cached_input_tokens=100))]  # type: ignore[arg-type]


async def test_counts_of_zero_are_no_counts(vendor: FakeVendor):
    begin = {"type": "message_start", "message": {"usage": {"input_tokens": 0, "output_tokens": 0}}}
    vendor.answers(chunked(events(begin, *ended("end_turn", output_tokens=0))))
    assert await collect(provider(vendor).stream(request())) == [Finish("stop", None)]


@pytest.mark.spec("HAZ-16")
async def test_a_plain_message_answering_a_streaming_request_is_replayed_as_a_stream(vendor: FakeVendor):
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "Hi!"},
        {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Paris"}},
    ]
    vendor.answers(
        http(
            200,
            {
                "type": "message",
                "content": content,
                "stop_reason": "tool_use",
                "usage": {"input_tokens": 3, "output_tokens": 2},
            },
        )
    )
    assert await collect(provider(vendor).stream(request())) == [
        ReasoningDelta("hm"),
        ReasoningEnd(ReasoningBlock("hm", "s")),
        TextDelta("Hi!"),
        ToolCallChunk(called("t1", arguments='{"city": "Paris"}')),
        Finish("tool_calls", ModelUsage(input_tokens=3, output_tokens=2)),
    ]


@pytest.mark.parametrize(
    ("kind", "status", "category", "retryable"),
    [
        ("overloaded_error", 529, "unknown", True),
        ("api_error", 500, "unknown", True),
        ("rate_limit_error", 429, "rate-limit", True),
        ("authentication_error", 401, "auth-failure", False),
        ("something_new", 502, "unknown", True),
    ],
)
async def test_an_error_event_inside_a_stream_fails_the_call(
    vendor: FakeVendor, kind: str, status: int, category: str, retryable: bool
):
    event = {"type": "error", "error": {"type": kind, "message": "it went wrong"}}
    vendor.answers(chunked(events(BEGIN, start(0, type="text", text="Hel"), event, named=True)))
    with pytest.raises(CompactedLLMProviderError, match="it went wrong") as failed:
        await collect(provider(vendor).stream(request()))
    compacted = failed.value.compacted
    assert (compacted.status_code, compacted.category, compacted.retryable) == (status, category, retryable)


@pytest.mark.spec("BEY-15")
@pytest.mark.parametrize(
    "raw",
    [
        pytest.param([b"<html>no</html>"], id="HTML"),
        pytest.param([b'event: message_start\ndata: {"type": \n\n'], id="broken JSON"),
        pytest.param([], id="nothing"),
        pytest.param([b"event: ping\ndata: {}\n\n"], id="only pings"),
        pytest.param([b'{"type": "message"}'], id="a message without content"),
    ],
)
async def test_an_answer_that_makes_no_sense_is_a_retryable_error(vendor: FakeVendor, raw: list[bytes]):
    vendor.answers(chunked(raw))
    with pytest.raises(CompactedLLMProviderError) as failed:
        await collect(provider(vendor).stream(request()))
    assert failed.value.compacted.retryable


async def test_text_at_the_start_of_a_block_is_text(vendor: FakeVendor):
    vendor.answers(
        chunked(events(BEGIN, start(0, type="text", text="A"), grow(0, "text_delta", text="B"), *ended("end_turn")))
    )
    assert text_in(await collect(provider(vendor).stream(request()))) == "AB"
