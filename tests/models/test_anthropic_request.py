"""What the Anthropic provider sends, and how it reads a whole reply."""

from __future__ import annotations

import base64
import logging
import os
from typing import Any

import pytest
from fake_vendor import FakeVendor, called, http, request, tool

from lousho.core.messages import FilePart, ImagePart, Message, ReasoningBlock, TextPart
from lousho.core.usage import ModelUsage
from lousho.models.anthropic import AnthropicProvider

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
PDF = b"%PDF-1.7 hello"


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def answer(*content: dict[str, Any], stop: str = "end_turn", usage: Any = None) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(content), "stop_reason": stop, "usage": usage}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


async def sent(
    vendor: FakeVendor, *messages: Message, provider: AnthropicProvider | None = None, **options: Any
) -> Any:
    """The body that the provider sends for `messages`."""
    vendor.answers(http(200, answer(text("ok"))))
    provider = provider or AnthropicProvider(base_url=vendor.url, api_key="k-12345", default_model="claude-x")
    await provider.generate(request(*messages, **options))
    return vendor.received[-1].json


@pytest.mark.spec("BEY-17")
async def test_a_conversation_with_tools_is_sent_in_the_vendors_form(vendor: FakeVendor):
    body = await sent(
        vendor,
        Message("system", "Be brief."),
        Message("system", "Be kind."),
        Message("user", "Weather?", metadata={"secret": "ours"}),
        Message(
            "assistant",
            "Let me look.",
            (called("functions.get:0"), called("c2", "now", "")),
            reasoning=(
                ReasoningBlock("hm", "c2ln"),
                ReasoningBlock("", redacted_data="b3A="),
                ReasoningBlock("unsigned"),
            ),
        ),
        Message("tool", '{"temp": 21}', tool_call_id="functions.get:0", metadata={"approval": {}}),
        Message("tool", "boom", tool_call_id="c2", is_error=True),
        Message("user", "And now?"),
        tools=[tool()],
        tool_choice={"type": "function", "function": {"name": "get_weather"}},
        max_tokens=100,
        temperature=0.0,
        top_p=0.9,
        stop=["END"],
    )
    assert body == {
        "model": "claude-x",
        "max_tokens": 100,
        "system": "Be brief.\n\nBe kind.",
        "messages": [
            {"role": "user", "content": [text("Weather?")]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                    {"type": "redacted_thinking", "data": "b3A="},
                    text("Let me look."),
                    {"type": "tool_use", "id": "functions_get_0", "name": "get_weather", "input": {"city": "Paris"}},
                    {"type": "tool_use", "id": "c2", "name": "now", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "functions_get_0", "content": '{"temp": 21}'},
                    {"type": "tool_result", "tool_use_id": "c2", "content": "boom", "is_error": True},
                    text("And now?"),
                ],
            },
        ],
        "tools": [
            {
                "name": "get_weather",
                "description": "Get the weather",
                "input_schema": tool().function.parameters,
            }
        ],
        "tool_choice": {"type": "tool", "name": "get_weather"},
        "temperature": 0.0,
        "top_p": 0.9,
        "stop_sequences": ["END"],
    }


async def test_what_is_not_set_is_not_sent_except_the_limit_the_api_requires(vendor: FakeVendor):
    assert await sent(vendor, tool_choice="auto") == {
        "model": "claude-x",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": [text("Hello")]}],
    }


@pytest.mark.parametrize(("choice", "wire"), [("auto", "auto"), ("required", "any"), ("none", "none")])
async def test_tool_choice_is_translated(vendor: FakeVendor, choice: Any, wire: str):
    assert (await sent(vendor, tools=[tool()], tool_choice=choice))["tool_choice"] == {"type": wire}


async def test_a_message_between_a_call_and_its_result_does_not_part_them(vendor: FakeVendor):
    body = await sent(
        vendor,
        Message("user", "go"),
        Message("assistant", "", (called("c1"),)),
        Message("user", "by the way"),
        Message("tool", "done", tool_call_id="c1"),
    )
    assert body["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "done"},
        text("by the way"),
    ]


async def test_turns_alternate_and_no_text_is_empty(vendor: FakeVendor):
    body = await sent(
        vendor,
        Message("user", "a"),
        Message("user", "  "),
        Message("user", "b"),
        Message("assistant", ""),
        Message("user", "c"),
        Message("system", "From now on in French."),
        Message("assistant", "Oui,  "),
    )
    assert body["messages"] == [
        {
            "role": "user",
            "content": [text("a"), text("b"), text("c"), text("<system>\nFrom now on in French.\n</system>")],
        },
        {"role": "assistant", "content": [text("Oui,")]},
    ]


async def test_thinking_goes_back_only_in_a_turn_with_tool_calls(vendor: FakeVendor):
    body = await sent(
        vendor,
        Message("user", "a"),
        Message("assistant", "b", reasoning=(ReasoningBlock("hm", "s"),)),
        Message("user", "c"),
    )
    assert body["messages"][1]["content"] == [text("b")]


async def test_arguments_a_model_broke_are_shown_to_it_as_they_were(vendor: FakeVendor):
    body = await sent(
        vendor,
        Message("user", "a"),
        Message("assistant", "", (called("c1", arguments='{"city": '), called("c2", arguments="[1]"))),
        Message("tool", "bad", tool_call_id="c1"),
        Message("tool", "bad", tool_call_id="c2"),
    )
    assert [block["input"] for block in body["messages"][1]["content"]] == [
        {"invalid_arguments": '{"city": '},
        {"invalid_arguments": "[1]"},
    ]


async def test_settings_the_api_lacks_are_left_out_with_one_warning(
    vendor: FakeVendor, caplog: pytest.LogCaptureFixture
):
    provider = AnthropicProvider(base_url=vendor.url, api_key="k-12345")
    await sent(vendor, provider=provider, seed=1, frequency_penalty=0.5, presence_penalty=0.5)
    body = await sent(vendor, provider=provider, seed=1, frequency_penalty=0.5, presence_penalty=0.5)
    assert set(body) == {"model", "max_tokens", "messages"}
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 3


@pytest.mark.spec("HAZ-43")
@pytest.mark.parametrize(
    ("image", "mime_type", "source"),
    [
        pytest.param(
            "https://example.com/cat.png", None, {"type": "url", "url": "https://example.com/cat.png"}, id="a URL"
        ),
        pytest.param(
            PNG, "image/jpeg", {"type": "base64", "media_type": "image/png", "data": b64(PNG)}, id="the wrong type"
        ),
        pytest.param(
            f"data:image/webp;base64,{b64(PNG)}",
            None,
            {"type": "base64", "media_type": "image/png", "data": b64(PNG)},
            id="a data URL with the wrong type",
        ),
    ],
)
async def test_an_image_is_sent_with_the_type_its_bytes_show(
    vendor: FakeVendor, image: str | bytes, mime_type: str | None, source: dict[str, Any]
):
    body = await sent(vendor, Message("user", (ImagePart(image, mime_type), TextPart("What is it?"))))
    assert body["messages"][0]["content"] == [{"type": "image", "source": source}, text("What is it?")]


async def test_pdf_and_plain_text_are_sent_as_documents(vendor: FakeVendor):
    body = await sent(
        vendor,
        Message(
            "user",
            (
                FilePart(PDF, "application/pdf", "report.pdf"),
                FilePart("https://example.com/x.pdf", "application/pdf"),
                FilePart("grüß".encode(), "text/plain; charset=utf-8", "a.txt"),
                FilePart("data:text/plain,hi%20there", "text/plain"),
            ),
        ),
    )
    assert body["messages"][0]["content"] == [
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": b64(PDF)},
            "title": "report.pdf",
        },
        {"type": "document", "source": {"type": "url", "url": "https://example.com/x.pdf"}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "grüß"}, "title": "a.txt"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi there"}},
    ]


@pytest.mark.spec("HAZ-42")
@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_the_environment_names_the_server_and_the_key(vendor: FakeVendor, suffix: str):
    os.environ.update(ANTHROPIC_BASE_URL=f"{vendor.url}/proxy{suffix}", ANTHROPIC_API_KEY="from-env")
    vendor.answers(http(200, answer(text("ok"))))
    assert [chunk.type async for chunk in AnthropicProvider().stream(request())] == ["text-delta", "finish"]
    await AnthropicProvider().generate(request())
    for seen in vendor.received:
        assert (seen.method, seen.path, seen.headers["x-api-key"]) == ("POST", "/proxy/v1/messages", "from-env")
        assert seen.headers["anthropic-version"] == "2023-06-01"
        assert "authorization" not in seen.headers
    assert [seen.json.get("stream") for seen in vendor.received] == [True, None]


async def test_a_whole_reply_is_read(vendor: FakeVendor):
    vendor.answers(
        http(
            200,
            answer(
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "b3A="},
                text("Let me "),
                text("look."),
                {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Zürich"}},
                {"type": "something_new"},
                stop="tool_use",
                usage={
                    "input_tokens": 10,
                    "output_tokens": 7,
                    "cache_creation_input_tokens": 20,
                    "cache_read_input_tokens": 30,
                },
            ),
        )
    )
    response = await AnthropicProvider(base_url=vendor.url, api_key="k-12345").generate(request())
    assert response.text == "Let me look."
    assert response.tool_calls == (called("t1", arguments='{"city": "Zürich"}'),)
    assert response.finish_reason == "tool_calls"
    assert response.reasoning == (ReasoningBlock("hm", "s"), ReasoningBlock("", redacted_data="b3A="))
    assert response.usage == ModelUsage(input_tokens=60, output_tokens=7, cached_input_tokens=30)


async def test_a_call_the_limit_cut_off_is_not_given_out(vendor: FakeVendor):
    use = {"type": "tool_use", "name": "get_weather", "input": {"city": "x"}}
    vendor.answers(http(200, answer({**use, "id": "t1"}, {**use, "id": "t2", "input": {}}, stop="max_tokens")))
    response = await AnthropicProvider(base_url=vendor.url, api_key="k-12345").generate(request())
    assert [call.id for call in response.tool_calls] == ["t1"]
    assert response.finish_reason == "length"


async def test_the_list_of_models_is_read(vendor: FakeVendor):
    vendor.answers(http(200, {"data": [{"type": "model", "id": "claude-a"}, {"type": "model", "id": "claude-b"}]}))
    assert await AnthropicProvider(base_url=vendor.url, api_key="k-12345").get_models() == ["claude-a", "claude-b"]
    assert (vendor.received[0].method, vendor.received[0].path) == ("GET", "/v1/models")
