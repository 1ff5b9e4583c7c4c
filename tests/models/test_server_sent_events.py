"""Server-sent events, cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lousho.models.sse import EventDecoder, EventTooLarge, ServerSentEvent

TEXT = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12)
EVENT = st.builds(
    ServerSentEvent, st.sampled_from(["", "message", "ping"]), st.lists(TEXT, min_size=1, max_size=3).map("\n".join)
)


def encoded(sent: list[ServerSentEvent], newline: str, comment: str) -> bytes:
    out = ""
    for event in sent:
        out += f": {comment}{newline}"
        out += f"event: {event.event}{newline}" if event.event else ""
        out += "".join(f"data: {line}{newline}" for line in event.data.split("\n"))
        out += f"id: 7{newline}retry: 100{newline}unknown{newline}{newline}"
    return out.encode("utf-8")


def decoded(pieces: list[bytes]) -> list[ServerSentEvent]:
    decoder = EventDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)] + decoder.close()


@given(st.lists(EVENT, max_size=4), st.sampled_from(["\n", "\r\n", "\r"]), TEXT, st.booleans(), st.data())
def test_events_are_the_same_however_the_bytes_are_cut(
    sent: list[ServerSentEvent], newline: str, comment: str, bom: bool, data: st.DataObject
):
    raw = (b"\xef\xbb\xbf" if bom else b"") + encoded(sent, newline, comment)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=20)))
    pieces = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert decoded(pieces) == sent
    assert decoded([raw[i : i + 1] for i in range(len(raw))]) == sent


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_failing(raw: bytes):
    assert decoded([raw]) == decoded([raw[i : i + 1] for i in range(len(raw))])


def test_a_line_ending_cut_in_two_is_one_line_ending():
    assert decoded([b"data: a\r", b"\ndata: b\r\n\r", b"\ndata: c\n\n"]) == [
        ServerSentEvent("", "a\nb"),
        ServerSentEvent("", "c"),
    ]


def test_only_one_space_after_the_colon_is_dropped():
    assert decoded([b"data:  a\ndata:b\n\n"]) == [ServerSentEvent("", " a\nb")]


@pytest.mark.parametrize("raw", [b"data: " + b"x" * 200, b"data: xxxxxxxxxxxxxxxxxxxx\n" * 10, b"event" * 40])
def test_an_event_longer_than_the_limit_is_refused(raw: bytes):
    with pytest.raises(EventTooLarge):
        EventDecoder(max_event_bytes=100).feed(raw)
