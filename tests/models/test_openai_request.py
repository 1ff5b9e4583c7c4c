"""What the OpenAI provider sends, and how it reads a whole reply."""

from __future__ import annotations

import base64
import logging
import os
from typing import Any

import pytest
from fake_vendor import FakeVendor, called, http, request, tool

from lousho.core.errors import SDKError
from lousho.core.messages import FilePart, ImagePart, Message, ReasoningBlock, TextPart
from lousho.core.usage import ModelUsage
from lousho.models.openai import OpenAIProvider

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
JPEG = b"\xff\xd8\xff\xe0" + b"\0" * 20
PDF = b"%PDF-1.7 hello"


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def answer(finish: str | None = "stop", usage: Any = None, **message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": finish}], "usage": usage}


async def sent(vendor: FakeVendor, *messages: Message, provider: OpenAIProvider | None = None, **options: Any) -> Any:
    """The body that the provider sends for `messages`."""
    vendor.answers(http(200, answer(content="ok")))
    provider = provider or OpenAIProvider(base_url=vendor.url, api_key="k-12345", default_model="m1")
    await provider.generate(request(*messages, **options))
    return vendor.received[-1].json


@pytest.mark.spec("BEY-17")
async def test_a_conversation_with_tools_is_sent_in_the_vendors_form(vendor: FakeVendor):
    body = await sent(
        vendor,
        Message("system", "Be brief."),
        Message("user", "Weather?", metadata={"secret": "ours"}),
        Message(
            "assistant",
            "Let me look.",
            (called("c1"), called("c2", "now", "")),
            reasoning=(ReasoningBlock("hm", "sig"),),
        ),
        Message("tool", '{"temp": 21}', tool_call_id="c1", name="get_weather", metadata={"approval": {}}),
        Message("tool", "boom", tool_call_id="c2", is_error=True),
        Message("assistant", "", (called("c3"),), interrupted=True),
        Message("tool", '{"error": "ToolDeniedError"}', tool_call_id="c3", is_error=True),
        tools=[tool()],
        tool_choice="required",
        max_tokens=100,
        temperature=0.0,
        top_p=0.9,
        frequency_penalty=0.1,
        presence_penalty=-0.1,
        stop=["END"],
        seed=7,
    )
    assert body == {
        "model": "m1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": "Let me look.",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
                    },
                    {"id": "c2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": '{"temp": 21}'},
            {"role": "tool", "tool_call_id": "c2", "content": "Error: boom"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c3",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c3", "content": '{"error": "ToolDeniedError"}'},
        ],
        "tools": [tool().to_dict()],
        "tool_choice": "required",
        "max_tokens": 100,
        "temperature": 0.0,
        "top_p": 0.9,
        "frequency_penalty": 0.1,
        "presence_penalty": -0.1,
        "stop": ["END"],
        "seed": 7,
    }


async def test_what_is_not_set_is_not_sent(vendor: FakeVendor):
    assert await sent(vendor, tool_choice="auto") == {"model": "m1", "messages": [{"role": "user", "content": "Hello"}]}


async def test_a_stream_asks_for_events_and_for_the_token_counts(vendor: FakeVendor):
    vendor.answers(http(200, answer(content="ok")))
    provider = OpenAIProvider(base_url=f"{vendor.url}/v1/", api_key="k-12345", headers={"X-Title": "t"})
    assert [chunk.type async for chunk in provider.stream(request(model="other"))] == ["text-delta", "finish"]
    seen = vendor.received[-1]
    assert (seen.method, seen.path) == ("POST", "/v1/chat/completions")
    assert seen.headers["authorization"] == "Bearer k-12345"
    assert seen.headers["accept"] == "text/event-stream"
    assert seen.headers["x-title"] == "t"
    assert seen.json["model"] == "other"
    assert (seen.json["stream"], seen.json["stream_options"]) == (True, {"include_usage": True})


@pytest.mark.parametrize("model", ["o1", "o3-mini", "gpt-5", "gpt-5-mini", "gpt-5.2", "gpt-10"])
async def test_a_reasoning_model_gets_no_settings_it_refuses(
    vendor: FakeVendor, model: str, caplog: pytest.LogCaptureFixture
):
    provider = OpenAIProvider(base_url=vendor.url, api_key="k-12345", default_model=model)
    await sent(vendor, provider=provider, max_tokens=50, temperature=0.3, top_p=0.5, stop=["x"])
    body = await sent(vendor, provider=provider, max_tokens=50, temperature=0.3, top_p=0.5, stop=["x"])
    assert body["max_completion_tokens"] == 50
    assert not {"max_tokens", "temperature", "top_p", "stop"} & set(body)
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 3


@pytest.mark.parametrize("model", ["gpt-4.1-mini", "gpt-5-chat-latest", "qwen3-8b", "omni"])
async def test_any_other_model_gets_the_settings(vendor: FakeVendor, model: str):
    provider = OpenAIProvider(base_url=vendor.url, api_key="k-12345", default_model=model)
    body = await sent(vendor, provider=provider, max_tokens=50, temperature=0.3)
    assert (body["max_tokens"], body["temperature"]) == (50, 0.3)


async def test_a_json_reply_is_asked_for_with_and_without_a_schema(vendor: FakeVendor):
    assert (await sent(vendor, response_format={"type": "json"}))["response_format"] == {"type": "json_object"}
    schema = {"type": "object", "properties": {}}
    assert (await sent(vendor, response_format={"type": "json", "schema": schema}))["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "response", "schema": schema, "strict": False},
    }


@pytest.mark.spec("HAZ-43")
@pytest.mark.parametrize(
    ("image", "mime_type", "url"),
    [
        pytest.param("https://example.com/cat.png", None, "https://example.com/cat.png", id="a URL"),
        pytest.param(PNG, None, f"data:image/png;base64,{b64(PNG)}", id="bytes"),
        pytest.param(JPEG, "image/png", f"data:image/jpeg;base64,{b64(JPEG)}", id="bytes with the wrong type"),
        pytest.param(
            f"data:image/png;base64,{b64(JPEG)}",
            None,
            f"data:image/jpeg;base64,{b64(JPEG)}",
            id="a data URL with the wrong type",
        ),
        pytest.param(b"GIF89a....", None, f"data:image/gif;base64,{b64(b'GIF89a....')}", id="GIF"),
        pytest.param(
            b"RIFF\0\0\0\0WEBPVP8 ", None, f"data:image/webp;base64,{b64(b'RIFF' + bytes(4) + b'WEBPVP8 ')}", id="WebP"
        ),
        pytest.param(
            b"odd", "image/x-odd", f"data:image/x-odd;base64,{b64(b'odd')}", id="an unknown type that is named"
        ),
    ],
)
async def test_an_image_is_sent_with_the_type_its_bytes_show(
    vendor: FakeVendor, image: str | bytes, mime_type: str | None, url: str
):
    body = await sent(vendor, Message("user", (TextPart("Look:"), ImagePart(image, mime_type))))
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": url}},
    ]


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (ImagePart(b"who knows"), "LOUSHO_UNSUPPORTED_CONTENT"),
        (ImagePart("cat.png"), "LOUSHO_CONFIG_INVALID"),
        (ImagePart("data:image/png;base64,@@@"), "LOUSHO_CONFIG_INVALID"),
        (ImagePart("data:image/png"), "LOUSHO_CONFIG_INVALID"),
        (FilePart("report.pdf", "application/pdf"), "LOUSHO_CONFIG_INVALID"),
        (FilePart("https://example.com/report.pdf", "application/pdf"), "LOUSHO_UNSUPPORTED_CONTENT"),
    ],
)
async def test_a_part_that_cannot_be_sent_is_refused_before_anything_is(vendor: FakeVendor, part: Any, code: str):
    with pytest.raises(SDKError) as refused:
        await sent(vendor, Message("user", (part,)))
    assert refused.value.code == code
    assert vendor.received == []


async def test_a_pdf_is_sent_as_a_file(vendor: FakeVendor):
    body = await sent(
        vendor,
        Message("user", (FilePart(PDF, "application/pdf", "report.pdf"), FilePart(PDF, "Application/PDF; v=1"))),
    )
    data = f"data:application/pdf;base64,{b64(PDF)}"
    assert body["messages"][0]["content"] == [
        {"type": "file", "file": {"filename": "report.pdf", "file_data": data}},
        {"type": "file", "file": {"filename": "file.pdf", "file_data": data}},
    ]


async def test_only_a_users_message_has_parts_on_the_wire(vendor: FakeVendor):
    parts = (TextPart("a"), ImagePart(PNG), TextPart("b"))
    body = await sent(
        vendor, Message("system", parts), Message("assistant", parts), Message("tool", parts, tool_call_id="c")
    )
    assert [message["content"] for message in body["messages"]] == ["ab", "ab", "ab"]


@pytest.mark.parametrize(
    ("reply", "text", "finish", "calls", "usage"),
    [
        pytest.param(answer(content="Hi"), "Hi", "stop", (), None, id="text"),
        pytest.param(answer("length", content="Hi"), "Hi", "length", (), None, id="length"),
        pytest.param(answer("content_filter", refusal="No."), "No.", "content_filter", (), None, id="a refusal"),
        pytest.param(answer("new_reason", content=""), "", "other", (), None, id="an unknown reason"),
        pytest.param(answer(None, content="Hi"), "Hi", "stop", (), None, id="no reason"),
        pytest.param(
            answer("stop", content=None, tool_calls=[called("c1").to_dict()]),
            "",
            "tool_calls",
            (called("c1"),),
            None,
            id="calls under the reason stop",
        ),
        pytest.param(
            answer(
                "tool_calls", tool_calls=[{"id": "c1", "function": {"name": "get_weather", "arguments": {"city": "x"}}}]
            ),
            "",
            "tool_calls",
            (called("c1", arguments='{"city": "x"}'),),
            None,
            id="arguments as an object",
        ),
        pytest.param(
            answer("length", tool_calls=[called("c1", arguments='{"city').to_dict(), called("c2").to_dict()]),
            "",
            "length",
            (called("c2"),),
            None,
            id="a call cut off by the limit",
        ),
        pytest.param(
            answer(
                content=[
                    {"type": "text", "text": "a"},
                    {"type": "thinking", "text": "no"},
                    {"type": "text", "text": "b"},
                ]
            ),
            "ab",
            "stop",
            (),
            None,
            id="content in parts",
        ),
        pytest.param(
            answer(
                content="x",
                usage={
                    "prompt_tokens": 10,
                    "completion_tokens": 5,
                    "total_tokens": 15,
                    "cost": 0.5,
                    "prompt_tokens_details": {"cached_tokens": 4},
                    "completion_tokens_details": {"reasoning_tokens": 3},
                },
            ),
            "x",
            "stop",
            (),
            ModelUsage(
                input_tokens=10,
                output_tokens=5,
                total_tokens=15,
                cached_input_tokens=4,
                reasoning_tokens=3,
                cost_usd=0.5,
            ),
            id="usage",
        ),
        pytest.param(
            answer(content="x", usage={"prompt_tokens": 0, "completion_tokens": 0}),
            "x",
            "stop",
            (),
            None,
            id="usage of zeros",
        ),
        pytest.param(
            answer(content="x", usage={"prompt_tokens": "many"}), "x", "stop", (), None, id="usage that is none"
        ),
    ],
)
async def test_a_whole_reply_is_read(vendor: FakeVendor, reply: Any, text: str, finish: str, calls: Any, usage: Any):
    vendor.answers(http(200, reply))
    response = await OpenAIProvider(base_url=vendor.url, api_key="k-12345").generate(request())
    assert (response.text, response.finish_reason, response.tool_calls, response.usage) == (text, finish, calls, usage)


async def test_reasoning_of_a_whole_reply_is_kept_apart(vendor: FakeVendor):
    vendor.answers(http(200, answer(content="42", reasoning_content="six times seven")))
    response = await OpenAIProvider(base_url=vendor.url, api_key="k-12345").generate(request())
    assert (response.text, response.reasoning) == ("42", (ReasoningBlock("six times seven"),))


async def test_the_environment_names_the_server_and_the_key(vendor: FakeVendor):
    os.environ.update(OPENAI_BASE_URL=f"{vendor.url}/v1?version=3", OPENAI_API_KEY="from-env")
    vendor.answers(http(200, answer(content="ok")))
    await OpenAIProvider().generate(request())
    assert (vendor.received[0].path, vendor.received[0].headers["authorization"]) == (
        "/v1/chat/completions?version=3",
        "Bearer from-env",
    )
    assert vendor.received[0].json["model"] == "gpt-4.1-mini"


@pytest.mark.parametrize("value", ["responses", "Chat"])
def test_an_api_this_version_does_not_speak_is_refused(value: Any):
    with pytest.raises(SDKError, match="chat") as refused:
        OpenAIProvider(api_key="k", api=value)
    assert refused.value.code == "LOUSHO_CONFIG_INVALID"


async def test_text_that_is_no_valid_unicode_does_not_stop_the_call(vendor: FakeVendor):
    body = await sent(vendor, Message("user", "broken \ud800 name"))
    assert body["messages"][0]["content"] == "broken ? name"


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_a_server_without_a_list_of_models_has_none(vendor: FakeVendor, status: int):
    vendor.answers(http(status, "no"))
    assert await OpenAIProvider(base_url=vendor.url, api_key="k-12345").get_models() == []
