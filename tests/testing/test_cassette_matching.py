"""What a replayed call has to have in common with the recorded one, and how a difference is told."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lousho.core.errors import ConfigurationError
from lousho.core.messages import FilePart, FunctionCall, ImagePart, Message, TextPart, ToolCall
from lousho.models.provider import ModelRequest
from lousho.testing import CassetteMismatchError, mock_model, record_replay

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ZIP = {"type": "object", "properties": {"zip": {"type": "string"}}, "required": ["zip"]}


def call(name: str, arguments: str, id: str = "call_1") -> ToolCall:
    return ToolCall(id, FunctionCall(name, arguments))


def flow(**changes: Any) -> dict[str, Any]:
    """The fields of a request in the middle of a run, with `changes`."""
    messages = [
        Message("system", "You report the weather."),
        Message("user", changes.pop("question", "Weather in Paris?")),
        Message(
            "assistant",
            "",
            tool_calls=(call(changes.pop("tool", "get_weather"), changes.pop("args", '{"city":"Paris"}')),),
        ),
        Message(changes.pop("role", "tool"), '{"tempC":21}', tool_call_id="call_1"),
    ]
    fields = {"model": "model-1", "temperature": 0.2, "max_tokens": 100, "tools": {"get_weather": CITY, "by_zip": ZIP}}
    return {"messages": messages, **fields, **changes}


async def record(cassette: Path, *requests: ModelRequest, **options: Any) -> None:
    recording = record_replay(
        mock_model([f"reply {n}" for n, _ in enumerate(requests, 1)]), cassette=cassette, mode="record", **options
    )
    for request in requests:
        await recording.generate(request)


async def mismatch(cassette: Path, request: ModelRequest, **options: Any) -> CassetteMismatchError:
    with pytest.raises(CassetteMismatchError) as caught:
        await record_replay(cassette=cassette, **options).generate(request)
    return caught.value


@pytest.mark.spec("TEST-14")
@pytest.mark.parametrize(
    ("change", "path"),
    [
        pytest.param({"model": "model-2"}, "request.model", id="another model"),
        pytest.param({"role": "user"}, "request.messages[3].role", id="another role"),
        pytest.param({"question": "Weather in Rome?"}, "request.messages[1].content", id="other content"),
        pytest.param({"tool": "by_zip"}, "request.messages[2].toolCalls[0].name", id="another tool call"),
        pytest.param(
            {"args": '{"city":"Rome"}'}, "request.messages[2].toolCalls[0].arguments.city", id="other arguments"
        ),
        pytest.param({"tools": {"get_weather": CITY}}, "request.tools.by_zip", id="a tool less"),
        pytest.param(
            {"tools": {"get_weather": CITY, "by_zip": ZIP, "extra": CITY}}, "request.tools.extra", id="a tool more"
        ),
        pytest.param(
            {"tools": {"get_weather": ZIP, "by_zip": ZIP}},
            "request.tools.get_weather.parameters.properties.city",
            id="another schema",
        ),
        pytest.param({"temperature": 0.3}, "request.temperature", id="another temperature"),
        pytest.param({"temperature": None}, "request.temperature", id="no temperature"),
        pytest.param({"max_tokens": 101}, "request.maxTokens", id="another limit of tokens"),
        pytest.param({"messages": flow()["messages"][:3]}, "request.messages[3]", id="a message less"),
    ],
)
async def test_a_call_that_differs_in_one_thing_does_not_match(
    change: dict[str, Any], path: str, ask: Any, cassette: Path
):
    await record(cassette, ask("", **flow()))
    error = await mismatch(cassette, ask("", **flow(**change)))
    assert f"First difference at {path}:\n" in error.detail


@pytest.mark.spec("TEST-14")
async def test_the_same_tools_in_another_order_match(ask: Any, cassette: Path):
    await record(cassette, ask("", **flow()))
    turned = dict(reversed(flow()["tools"].items()))
    assert (await record_replay(cassette=cassette).generate(ask("", **flow(tools=turned)))).text == "reply 1"


async def test_what_is_not_part_of_the_recording_does_not_have_to_match(ask: Any, cassette: Path):
    await record(cassette, ask("", **flow()))
    other = replace(
        ask("", **flow()), top_p=0.5, seed=7, stop=["x"], reasoning={"effort": "low"}, tool_choice="required"
    )
    other.messages[1] = replace(other.messages[1], metadata={"at": 1}, name="ada")
    assert (await record_replay(cassette=cassette).generate(other)).text == "reply 1"


async def test_how_arguments_are_written_does_not_matter(ask: Any, cassette: Path):
    await record(cassette, ask("", **flow(args='{"city":"Paris","days":2}')))
    replay = record_replay(cassette=cassette)
    assert (await replay.generate(ask("", **flow(args='{ "days": 2.0, "city": "Paris" }')))).text == "reply 1"


@pytest.mark.parametrize("args", ['{"city":', "", "[1]", '{"on":1}'])
async def test_arguments_that_are_no_object_are_compared_as_they_are(args: str, ask: Any, cassette: Path):
    await record(cassette, ask("", **flow(args=args)))
    assert (await record_replay(cassette=cassette).generate(ask("", **flow(args=args)))).text == "reply 1"
    error = await mismatch(cassette, ask("", **flow(args='{"on":true}')))
    assert "request.messages[2].toolCalls[0].arguments" in error.detail


@pytest.mark.spec("TEST-15", "ENV-18")
async def test_a_mismatch_shows_the_first_difference_and_how_to_record_again(ask: Any, tmp_path: Path):
    cassette = tmp_path / "refund-flow.json"
    await record(cassette, ask("hi"), ask("Refund order 1234", messages=[Message("user", "Refund order 1234")]))
    replay = record_replay(cassette=cassette)
    await replay.generate(ask("hi"))
    with pytest.raises(CassetteMismatchError) as caught:
        await replay.generate(ask("Refund order 9999"))
    error = caught.value
    assert error.detail == (
        f"Call #2 does not match the recorded request in {cassette}.\n"
        "First difference at request.messages[0].content:\n"
        '  recorded: "Refund order 1234"\n'
        '  actual:   "Refund order 9999"\n'
        "If the change is intentional, re-record the cassette (run with LOUSHO_RECORD=1, or set mode='record')."
    )
    assert (error.code, error.cassette, error.call_number) == ("LOUSHO_CASSETTE_INVALID", str(cassette), 2)


@pytest.mark.spec("TEST-15")
async def test_the_hint_names_the_command_of_the_project(ask: Any, cassette: Path):
    await record(cassette, ask("a"))
    error = await mismatch(cassette, ask("b"), rerecord_hint="lousho eval --record")
    assert error.detail.endswith("If the change is intentional, re-record the cassette (run lousho eval --record).")
    assert "LOUSHO_RECORD" not in error.detail


async def test_the_path_is_shown_as_it_was_given(ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    await record(tmp_path / "flow.json", ask("a"))
    with pytest.raises(CassetteMismatchError, match=re.escape("recorded request in ./flow.json.")):
        await record_replay(cassette="./flow.json").generate(ask("b"))


async def test_of_a_long_text_the_part_that_differs_is_shown(ask: Any, cassette: Path):
    start = "x" * 5000
    await record(cassette, ask(f"{start} order 1234 {start}"))
    error = await mismatch(cassette, ask(f"{start} order 9999 {start}"))
    assert "order 1234" in error.detail
    assert "order 9999" in error.detail
    assert len(error.detail) < 1500


async def test_more_calls_than_recorded_are_told_with_the_last_message(ask: Any, cassette: Path):
    await record(cassette, ask("one"))
    replay = record_replay(cassette=cassette)
    await replay.generate(ask("one"))
    with pytest.raises(CassetteMismatchError) as caught:
        await replay.generate(ask("and then?"))
    assert caught.value.call_number == 2
    assert caught.value.detail.startswith(f"Call #2 has no recorded answer in {cassette}: the cassette holds 1 call.")
    assert '  last message: user "and then?"\n' in caught.value.detail


@pytest.mark.spec("TEST-16")
async def test_calls_in_another_order_match_by_their_request(ask: Any, cassette: Path):
    await record(cassette, ask("a"), ask("b"), ask("a"))
    replay = record_replay(cassette=cassette, match="request")
    replies = await asyncio.gather(*(replay.generate(ask(text)) for text in ("b", "a", "a")))
    assert [reply.text for reply in replies] == ["reply 2", "reply 1", "reply 3"]
    with pytest.raises(CassetteMismatchError) as caught:
        await replay.generate(ask("b"))
    assert (caught.value.call_number, caught.value.code) == (4, "LOUSHO_CASSETTE_INVALID")
    assert "all 3 are used" in caught.value.detail


@pytest.mark.spec("TEST-16")
async def test_a_request_that_fits_no_entry_is_compared_with_the_closest(ask: Any, cassette: Path):
    first = [Message("system", "be brief"), Message("user", "a")]
    second = [Message("system", "be polite"), Message("user", "b")]
    await record(cassette, ask("", messages=first), ask("", messages=second))
    error = await mismatch(
        cassette, ask("", messages=[Message("system", "be polite"), Message("user", "c")]), match="request"
    )
    assert "the closest is entry 2" in error.detail
    assert "First difference at request.messages[1].content:" in error.detail


@pytest.mark.spec("TEST-17")
@pytest.mark.parametrize(
    ("recorded", "actual"),
    [
        pytest.param("at 2026-10-01T09:30:00.000Z", "at 2027-01-02T10:00:00Z", id="an ISO timestamp"),
        pytest.param("at 2026-10-01 09:30", "at 2027-01-02 10:00", id="a timestamp with a space"),
        pytest.param("Today is 2026-10-01.", "Today is 2027-01-02.", id="a date"),
        pytest.param("Today is October 1, 2026.", "Today is January 22, 2027.", id="a written date"),
        pytest.param("It is Thursday, October 1, 2026", "It is Friday, October 2, 2026", id="with its weekday"),
        pytest.param("Thu, 01 Oct 2026 09:30:00 GMT", "Fri, 02 Oct 2026 10:00:00 GMT", id="a date of HTTP"),
        pytest.param("id 3f2504e0-4f89-11d3-9a0c-0305e82c3301", "id 9c858901-8a57-4791-81fe-4c455b099bc9", id="a UUID"),
        pytest.param("see call_a1B2c3", "see call_x9Y8z7", id="an id of a call"),
        pytest.param("see toolu_01Abc", "see toolu_99Xyz", id="another vendor's id"),
        pytest.param("from chatcmpl-1abc", "from chatcmpl_2def", id="an id of a completion"),
        pytest.param("run-9f2c4e7a1b3d5f60 ran", "run-0011223344556677 ran", id="an id of ours"),
    ],
)
async def test_values_that_change_by_themselves_do_not_count(recorded: str, actual: str, ask: Any, cassette: Path):
    await record(cassette, ask("", messages=[Message("user", recorded)]))
    assert (await record_replay(cassette=cassette).generate(ask(actual))).text == "reply 1"
    assert recorded in cassette.read_text(encoding="utf-8")
    await mismatch(cassette, ask(f"{actual} and more"))


@pytest.mark.spec("TEST-17")
async def test_the_ids_of_tool_calls_do_not_count(ask: Any, cassette: Path):
    def turn(id: str, city: str = "Paris") -> list[Message]:
        arguments = json.dumps({"city": city, "trace": f"call_{id}9", "on": f"2026-10-0{len(id)}"})
        calls = (ToolCall(id, FunctionCall("get_weather", arguments)),)
        return [Message("assistant", "", tool_calls=calls), Message("tool", "21", tool_call_id=id)]

    await record(cassette, ask("", messages=turn("one")))
    assert (await record_replay(cassette=cassette).generate(ask("", messages=turn("three")))).text == "reply 1"
    await mismatch(cassette, ask("", messages=turn("one", city="Rome")))


@pytest.mark.spec("TEST-17")
@pytest.mark.parametrize(
    ("recorded", "actual"),
    [("order 12345678", "order 87654321"), ("ask call_customer", "ask call_support"), ("in 2026", "in 2027")],
)
async def test_other_values_do_count(recorded: str, actual: str, ask: Any, cassette: Path):
    await record(cassette, ask(recorded))
    await mismatch(cassette, ask(actual))


@pytest.mark.spec("TEST-19")
async def test_normalize_is_applied_to_both_sides(ask: Any, cassette: Path):
    def without_user(request: ModelRequest) -> ModelRequest:
        messages = [replace(one, content=re.sub(r"user-\d+", "user-N", str(one.content))) for one in request.messages]
        return replace(request, messages=messages, max_tokens=None)

    await record(cassette, ask("hello user-12", max_tokens=5, tools={"get_weather": CITY}))
    changed = ask("hello user-99", max_tokens=6, tools={"get_weather": CITY})
    assert (await record_replay(cassette=cassette, normalize=without_user).generate(changed)).text == "reply 1"
    assert "user-12" in cassette.read_text(encoding="utf-8")
    await mismatch(cassette, changed)
    await mismatch(cassette, ask("bye user-99", tools={"get_weather": CITY}), normalize=without_user)


@pytest.mark.parametrize(
    ("normalize", "says"),
    [
        pytest.param(lambda request: request.messages.clear(), "normalize() returned NoneType", id="changed in place"),
        pytest.param(lambda request: 1 / 0, "normalize() raised ZeroDivisionError", id="raises"),
    ],
)
async def test_a_normalize_that_does_not_work_is_told(normalize: Any, says: str, ask: Any, cassette: Path):
    request = ask("hi")
    await record(cassette, request)
    with pytest.raises(ConfigurationError) as caught:
        await record_replay(cassette=cassette, normalize=normalize).generate(request)
    assert caught.value.detail.startswith(says)
    assert len(request.messages) == 1


async def test_a_model_that_is_the_default_matches_its_name(ask: Any, vendor: Any, cassette: Path):
    recording = record_replay(vendor(["reply"], default_model="model-1"), cassette=cassette, mode="record")
    await recording.generate(ask("hi"))
    assert (await record_replay(cassette=cassette).generate(ask("hi", model="model-1"))).text == "reply"
    assert (await record_replay(cassette=cassette).generate(ask("hi"))).text == "reply"
    error = await mismatch(cassette, ask("hi", model="model-2"))
    assert "request.model" in error.detail
    with pytest.raises(CassetteMismatchError, match=r"request\.model"):
        await record_replay(vendor([], default_model="model-2"), cassette=cassette).generate(ask("hi"))


async def test_an_image_matches_by_its_bytes_or_its_url(ask: Any, cassette: Path):
    def seen(image: str | bytes, data: str | bytes = b"%PDF") -> ModelRequest:
        parts = (TextPart("Look"), ImagePart(image, "image/png"), FilePart(data, "application/pdf", "a.pdf"))
        return ask("", messages=[Message("user", parts)])

    await record(cassette, seen(b"\x89PNG one"), seen("https://example.com/a.png"))
    text = cassette.read_text(encoding="utf-8")
    assert "PNG" not in text
    assert re.search(r'"digest": "sha256:[0-9a-f]{64}"', text)
    assert '"url": "https://example.com/a.png"' in text

    replay = record_replay(cassette=cassette)
    assert (await replay.generate(seen("data:image/png;base64,iVBORyBvbmU="))).text == "reply 1"
    error = await mismatch(cassette, seen(b"\x89PNG two"))
    assert "request.messages[0].content[1].digest" in error.detail
    assert (await replay.generate(seen("https://example.com/a.png"))).text == "reply 2"
    normalized = record_replay(cassette=cassette, normalize=lambda request: request)
    assert (await normalized.generate(seen(b"\x89PNG one"))).text == "reply 1"


async def test_text_in_one_part_matches_the_plain_text(ask: Any, cassette: Path):
    await record(cassette, ask("hello"))
    parts = (TextPart("hel"), TextPart("lo"))
    assert (
        await record_replay(cassette=cassette).generate(ask("", messages=[Message("user", parts)]))
    ).text == "reply 1"
