"""Cassettes are meant to be committed: what never gets into one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lousho.core.errors import ConfigurationError
from lousho.core.messages import FilePart, FunctionCall, ImagePart, Message, ReasoningBlock, TextPart, ToolCall
from lousho.models.provider import (
    Finish,
    ModelResponse,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCallChunk,
)
from lousho.testing import mock_model, record_replay

# Put together here so that no scanner takes this file for a leak.
KEYS = {
    "openai": "sk-" + "proj-abcDEF123456",
    "anthropic": "sk-" + "ant-api03-abcDEF123456",
    "github": "ghp_" + "0123456789abcdefABCDEF0123456789abcd",
    "github fine-grained": "github_pat_" + "11ABCDEFG0123456789_abcdef",
    "gitlab": "glpat-" + "abcdef0123456789",
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "google": "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "slack": "xoxb-" + "123456789012-abcdefABCDEF",
    "stripe": "sk_" + "live_abcdef0123456789",
    "hugging face": "hf_" + "abcdefghijklmnopqrstuv",
    "a JSON web token": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdef123456",
    "telegram": "1234567890:" + "AAbbCCddEEffGGhhIIjjKKllMMnnOOppQQr",
    "a private key": "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIabc123\n-----END RSA " + "PRIVATE KEY-----",
}


def everywhere(text: str) -> tuple[list[Message], ModelResponse, list[Any]]:
    """A transcript, a reply and a stream that have `text` in every place a person or a model can put one."""
    call = ToolCall("call_1", FunctionCall("http", json.dumps({"headers": [text]})))
    messages = [
        Message("system", f"Use {text}."),
        Message(
            "user", (TextPart(text), ImagePart(f"https://example.com/?k={text}"), FilePart(b"x", "text/plain", text))
        ),
        Message("assistant", text, tool_calls=(call,)),
        Message("tool", f'{{"echo": "{text}"}}'),
    ]
    block = ReasoningBlock(text, f"signed {text}", text)
    reply = ModelResponse(text=f"I used {text}", tool_calls=(call,), reasoning=(block,))
    half = len(text) // 2
    stream = [
        ReasoningDelta(text[:half]),
        ReasoningDelta(text[half:]),
        ReasoningEnd(block),
        TextDelta("key "),
        TextDelta(text[:half]),
        TextDelta(text[half:]),
        ToolCallChunk(call),
        Finish("stop"),
    ]
    return messages, reply, stream


async def recorded(vendor: Any, ask: Any, cassette: Path, text: str, **options: Any) -> tuple[Any, str]:
    messages, reply, stream = everywhere(text)
    schema = {"type": "object", "properties": {"key": {"type": "string", "description": f"such as {text}"}}}
    request = ask("", messages=messages, tools={"http": schema})
    script = [reply, stream, RuntimeError(f"refused {text}")]
    recording = record_replay(vendor(script), cassette=cassette, mode="record", **options)
    await recording.generate(request)
    async for _ in recording.stream(request):
        pass
    with pytest.raises(RuntimeError):
        await recording.generate(request)
    return request, cassette.read_text(encoding="utf-8")


@pytest.mark.spec("TEST-25")
@pytest.mark.parametrize("key", KEYS.values(), ids=list(KEYS))
async def test_a_key_is_taken_out_wherever_it_stands(key: str, ask: Any, vendor: Any, cassette: Path):
    request, written = await recorded(vendor, ask, cassette, key)
    document = json.loads(written)
    texts = re.findall(r"[A-Za-z0-9_:.-]{12,}", key)
    assert all(text not in json.dumps(document) for text in texts if "PRIVATE" not in text)
    assert written.count("[REDACTED]") >= 12
    replay = record_replay(cassette=cassette)
    assert (await replay.generate(request)).text == "I used [REDACTED]"


@pytest.mark.spec("TEST-25")
async def test_a_bearer_token_is_taken_out(ask: Any, vendor: Any, cassette: Path):
    request, written = await recorded(vendor, ask, cassette, "Authorization: Bearer abc123.def456-ghi")
    assert "abc123" not in written
    assert "Bearer [REDACTED]" in written
    assert (await record_replay(cassette=cassette).generate(request)).text == "I used Authorization: Bearer [REDACTED]"


@pytest.mark.spec("TEST-25")
async def test_only_the_fixed_fields_of_a_request_are_written(ask: Any, vendor: Any, cassette: Path):
    request = replace(
        ask("hi", temperature=1, max_tokens=9),
        top_p=0.1,
        seed=4,
        stop=["STOP"],
        tool_choice={"type": "function"},
        response_format={"type": "json"},
        reasoning={"effort": "high"},
    )
    request.messages[0] = replace(request.messages[0], metadata={"headers": {"authorization": "x"}}, name="ada")
    reply = ModelResponse(text="hello", raw_response={"headers": {"set-cookie": "x"}})
    await record_replay(vendor([reply]), cassette=cassette, mode="record").generate(request)
    (entry,) = json.loads(cassette.read_text(encoding="utf-8"))["entries"]
    assert entry == {
        "kind": "generate",
        "request": {
            "model": "model-1",
            "messages": [{"role": "user", "content": "hi"}],
            "temperature": 1,
            "maxTokens": 9,
        },
        "response": {"text": "hello", "finishReason": "stop"},
    }


@pytest.mark.parametrize(
    "prose",
    [
        "the bearer of this",
        "a basic introduction",
        "sk-learn",
        "risk-averse planning",
        "Bearer authentication",
        "10:30",
    ],
)
async def test_prose_is_left_alone(prose: str, ask: Any, cassette: Path):
    await record_replay(mock_model([prose]), cassette=cassette, mode="record").generate(ask("hi"))
    assert (await record_replay(cassette=cassette).generate(ask("hi"))).text == prose


def mask(text: str) -> str:
    return re.sub(r"[\w.+-]+@[\w-]+\.[\w.]+", "<email>", text)


@pytest.mark.spec("TEST-26")
async def test_redact_runs_on_every_text_and_when_matching(ask: Any, vendor: Any, cassette: Path):
    request, written = await recorded(vendor, ask, cassette, "ada@example.com", redact=mask)
    assert "ada@" not in written
    assert written.count("<email>") >= 12
    replay = record_replay(cassette=cassette, redact=mask)
    assert (await replay.generate(request)).text == "I used <email>"
    other, _, _ = everywhere("grace@example.org")
    chunks = [chunk async for chunk in replay.stream(replace(request, messages=other))]
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta)) == "key <email>"
    with pytest.raises(RuntimeError, match="refused <email>"):
        await replay.generate(request)


@pytest.mark.parametrize(
    ("redact", "says"),
    [
        pytest.param(lambda text: None, "redact() returned NoneType", id="returns nothing"),
        pytest.param(lambda text: text.nope, "redact() raised AttributeError", id="raises"),
    ],
)
async def test_a_redact_that_does_not_work_stops_before_the_model_is_called(
    redact: Any, says: str, ask: Any, cassette: Path
):
    model = mock_model(["costly"])
    with pytest.raises(ConfigurationError) as caught:
        await record_replay(model, cassette=cassette, mode="record", redact=redact).generate(ask("hi"))
    assert caught.value.detail.startswith(says)
    assert len(model.calls) == 0


async def test_a_mismatch_shows_no_key(ask: Any, cassette: Path):
    await record_replay(mock_model(["x"]), cassette=cassette, mode="record").generate(ask("hi"))
    with pytest.raises(Exception) as caught:
        await record_replay(cassette=cassette).generate(ask(f"hi {KEYS['openai']}"))
    assert "[REDACTED]" in str(caught.value)
    assert KEYS["openai"] not in str(caught.value)
