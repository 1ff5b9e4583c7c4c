"""Cassettes under a real agent: whole runs replay, and a cassette's failure reaches the caller as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lousho.agent import create_agent
from lousho.core.errors import LLMProviderError
from lousho.testing import (
    CassetteMismatchError,
    CassetteWriteError,
    check_event_order,
    mock_model,
    read_cassette,
    record_replay,
    tool_message_value,
)
from lousho.tools import tool

SCRIPT: list[Any] = [
    {
        "text": "One moment.",
        "reasoning": [{"text": "Look it up.", "signature": "c2ln"}],
        "tool_calls": [{"name": "get_weather", "args": {"city": "Paris"}}],
        "usage": {"input_tokens": 50, "output_tokens": 9, "cached_input_tokens": 20, "reasoning_tokens": 4, "cost_usd": 0.002},
    },
    {"text": "It is 21 °C in Paris.", "usage": {"input_tokens": 70, "output_tokens": 8, "cost_usd": 0.003}},
]  # fmt: skip


@tool
def get_weather(city: str) -> dict[str, Any]:
    """Get the weather for a city."""
    return {"city": city, "tempC": 21}


def weather_agent(provider: Any, instructions: str = "You report the weather."):
    return create_agent(provider=provider, instructions=instructions, tools=[get_weather])


@pytest.mark.spec("TEST-12", "TEST-22")
async def test_a_run_with_a_tool_replays_without_a_provider(cassette: Path):
    live = await weather_agent(record_replay(mock_model(SCRIPT), cassette=cassette, mode="record")).send("Weather?")
    replayed = await weather_agent(record_replay(cassette=cassette)).send("Weather?")
    assert (replayed.text, replayed.finish_reason) == (live.text, "stop") == ("It is 21 °C in Paris.", "stop")
    assert replayed.usage == live.usage
    assert replayed.usage.cost_usd == pytest.approx(0.005)
    assert replayed.messages == live.messages
    assert replayed.messages[1].reasoning[0].signature == "c2ln"
    assert tool_message_value(replayed.messages[2]) == {"city": "Paris", "tempC": 21}


@pytest.mark.spec("TEST-21")
async def test_a_streamed_run_replays_event_by_event(cassette: Path):
    providers = [record_replay(mock_model(SCRIPT), cassette=cassette, mode="record"), record_replay(cassette=cassette)]
    streams: list[list[Any]] = []
    for provider in providers:
        run = weather_agent(provider).stream("Weather?")
        events = check_event_order([event async for event in run])
        streams.append([(event.type, getattr(event, "text", None)) for event in events])
    assert streams[0] == streams[1]
    assert ("text.delta", "Paris.") in streams[1]


@pytest.mark.spec("ERR-102")
async def test_a_mismatch_inside_of_a_run_reaches_the_caller_as_itself(cassette: Path):
    await weather_agent(record_replay(mock_model(SCRIPT), cassette=cassette, mode="record")).send("Weather?")
    changed = "You report the weather, in verse."
    with pytest.raises(CassetteMismatchError) as sent:
        await weather_agent(record_replay(cassette=cassette), changed).send("Weather?")
    events: list[Any] = []
    with pytest.raises(CassetteMismatchError) as streamed:
        async for event in weather_agent(record_replay(cassette=cassette), changed).stream("Weather?"):
            events.append(event)
    session = weather_agent(record_replay(cassette=cassette), changed).session("s-1")
    with pytest.raises(CassetteMismatchError) as in_session:
        await session.send("Weather?")
    for caught in (sent, streamed, in_session):
        error = caught.value
        assert type(error) is CassetteMismatchError
        assert (error.code, error.cassette, error.call_number) == ("LOUSHO_CASSETTE_INVALID", str(cassette), 1)
        assert "First difference at request.messages[0].content:" in error.detail
    assert [event.type for event in check_event_order(events)][-2:] == ["error", "run.done"]


@pytest.mark.spec("ERR-102")
@pytest.mark.parametrize("content", [None, b"{", b'{"version": 1, "entries": []}'], ids=["missing", "broken", "empty"])
async def test_a_cassette_that_cannot_answer_reaches_the_caller_as_itself(content: bytes | None, tmp_path: Path):
    cassette = tmp_path / "flow.json"
    if content is not None:
        cassette.write_bytes(content)
    with pytest.raises(CassetteMismatchError) as caught:
        await weather_agent(record_replay(cassette=cassette)).send("Weather?")
    assert type(caught.value) is CassetteMismatchError
    assert caught.value.code == "LOUSHO_CASSETTE_INVALID"
    assert str(cassette) in caught.value.detail


async def test_a_cassette_that_cannot_be_written_reaches_the_caller_as_itself(tmp_path: Path):
    model = mock_model(SCRIPT)
    with pytest.raises(CassetteWriteError):
        await weather_agent(record_replay(model, cassette=tmp_path, mode="record")).send("Weather?")
    assert len(model.calls) == 0


@pytest.mark.spec("TEST-20")
async def test_a_rejected_call_fails_the_run_the_same_way_live_and_replayed(cassette: Path):
    error = LLMProviderError("Incorrect API key provided", provider="vendor", status_code=401)
    recording = record_replay(mock_model([{"error": error}]), cassette=cassette, mode="record")
    failures: list[Any] = []
    for provider in (recording, record_replay(cassette=cassette)):
        with pytest.raises(LLMProviderError) as caught:
            await weather_agent(provider).send("Weather?")
        failures.append(caught.value)
    live, replayed = failures
    assert (type(replayed), str(replayed)) == (type(live), str(live))
    assert replayed.compacted == live.compacted
    assert (type(replayed.cause), replayed.cause.status_code) == (LLMProviderError, 401)


@pytest.mark.spec("TEST-23")
async def test_a_run_that_fails_midway_leaves_what_was_recorded(cassette: Path):
    recording = record_replay(mock_model([SCRIPT[0], {"error": "down"}]), cassette=cassette, mode="record")
    with pytest.raises(LLMProviderError):
        await weather_agent(recording).send("Weather?")
    first, second = read_cassette(cassette).entries
    assert (first.whole().text, second.failure() is not None) == ("One moment.", True)


async def test_what_was_recorded_with_send_replays_under_stream(cassette: Path):
    await weather_agent(record_replay(mock_model(SCRIPT), cassette=cassette, mode="record")).send("Weather?")
    run = weather_agent(record_replay(cassette=cassette)).stream("Weather?")
    check_event_order([event async for event in run])
    assert (await run.result).text == "It is 21 °C in Paris."


async def test_a_cassette_holds_nothing_of_the_agent_but_the_requests(cassette: Path):
    agent = weather_agent(record_replay(mock_model(SCRIPT), cassette=cassette, mode="record"))
    await agent.send("Weather?", metadata={"tenant": "t-1"})
    entries = json.loads(cassette.read_text(encoding="utf-8"))["entries"]
    assert {key for entry in entries for key in entry["request"]} == {"model", "messages", "tools"}
    assert {key for entry in entries for message in entry["request"]["messages"] for key in message} == {
        "role",
        "content",
        "toolCalls",
    }
    assert "t-1" not in cassette.read_text(encoding="utf-8")
