"""Messages: their stored form, what a caller may send, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from lousho import (
    ConfigurationError,
    FilePart,
    FunctionCall,
    ImagePart,
    Message,
    ReasoningBlock,
    TextPart,
    ToolCall,
    estimate_tokens,
    text_of,
)
from lousho.core.messages import coerce_input

PARTS = st.one_of(
    st.builds(TextPart, st.text()),
    st.builds(ImagePart, st.text() | st.binary(), st.none() | st.text()),
    st.builds(FilePart, st.text() | st.binary(), st.text(min_size=1), st.none() | st.text()),
)
MESSAGES = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.text() | st.lists(PARTS, max_size=3).map(tuple),
    tool_calls=st.lists(
        st.builds(ToolCall, st.text(), st.builds(FunctionCall, st.text(), st.text(min_size=1))), max_size=2
    ).map(tuple),
    tool_call_id=st.none() | st.text(),
    is_error=st.booleans(),
    interrupted=st.booleans(),
    reasoning=st.lists(st.builds(ReasoningBlock, st.text(), st.none() | st.text()), max_size=2).map(tuple),
)


@hypothesis.given(MESSAGES)
def test_every_message_survives_its_stored_form(message):
    assert Message.from_dict(json.loads(json.dumps(message.to_dict()))) == message


def test_bytes_are_stored_as_base64_under_a_marker():
    stored = Message("user", (ImagePart(b"\x89PNG", "image/png"), TextPart("what is it?"))).to_dict()
    assert stored["content"][0] == {"type": "image", "image": {"$bytes": "iVBORw=="}, "mimeType": "image/png"}


def test_the_text_of_a_message_is_its_text_parts():
    message = Message("user", (TextPart("a"), ImagePart("https://x.example/i.png"), TextPart("b")))
    assert (text_of(message), text_of({"role": "user", "content": "hi"})) == ("ab", "hi")
    assert estimate_tokens([message]) == estimate_tokens([Message("user", (TextPart("a"), TextPart("b")))]) + 1000


def test_a_caller_may_send_text_parts_or_messages():
    assert coerce_input("hi") == [Message("user", "hi")]
    mixed: Any = [{"type": "text", "text": "a"}, ImagePart("https://x.example/i.png")]
    parts = coerce_input(mixed)
    assert parts == [Message("user", (TextPart("a"), ImagePart("https://x.example/i.png")))]
    messages = [Message("user", "a"), {"role": "assistant", "content": "b", "toolCalls": []}]
    assert coerce_input(messages) == [Message("user", "a"), Message("assistant", "b")]


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param([], id="empty list"),
        pytest.param(None, id="nothing"),
        pytest.param(7, id="a number"),
        pytest.param(b"bytes", id="bytes"),
        pytest.param({"role": "user"}, id="a lone mapping"),
        pytest.param([{"role": "robot", "content": "x"}], id="an unknown role"),
        pytest.param([{"type": "video"}], id="an unknown part"),
        pytest.param([{"type": "file", "data": "x"}], id="a file without a type"),
        pytest.param([{"role": "user", "content": 5}], id="content that is a number"),
        pytest.param(
            [{"role": "assistant", "content": "", "toolCalls": [{"id": "1"}]}], id="a call without a function"
        ),
    ],
)
def test_what_is_no_input_is_refused(bad):
    with pytest.raises(ConfigurationError) as caught:
        coerce_input(bad)
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"
