"""Recording: when the file is written, what is in it, and what a failure leaves behind."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lousho.core.errors import ConfigurationError
from lousho.models.provider import Finish, LLMProvider, ModelResponse, TextDelta
from lousho.testing import CassetteMismatchError, mock_model, record_replay


def entries_of(cassette: Path) -> list[dict[str, Any]]:
    return json.loads(cassette.read_text(encoding="utf-8"))["entries"]


@pytest.mark.spec("TEST-12")
async def test_a_replay_never_calls_the_factory(ask: Any, cassette: Path):
    made: list[str] = []

    def factory():
        made.append("made")
        return mock_model(["recorded"])

    recording = record_replay(factory, cassette=cassette, mode="record")
    await recording.generate(ask("hi"))
    assert made == ["made"]

    def no_key():
        raise AssertionError("a replay needs no provider")

    for source in (no_key, None):
        replay = record_replay(source, cassette=cassette)
        assert (await replay.generate(ask("hi"))).text == "recorded"
        assert (replay.name, replay.default_model, replay.mode) == ("mock", "mock-model", "replay")


@pytest.mark.spec("TEST-12")
async def test_auto_records_when_there_is_no_file_and_replays_when_there_is(ask: Any, cassette: Path):
    first = record_replay(mock_model(["one"]), cassette=cassette, mode="auto")
    assert (first.mode, (await first.generate(ask("hi"))).text) == ("record", "one")
    second = record_replay(mock_model(["two"]), cassette=cassette, mode="auto")
    assert (second.mode, (await second.generate(ask("hi"))).text) == ("replay", "one")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        pytest.param({"mode": "replays"}, "mode", id="an unknown mode"),
        pytest.param({"match": "any"}, "match", id="an unknown way to match"),
        pytest.param({"cassette": " "}, "cassette", id="no path"),
        pytest.param({"cassette": "a\0b"}, "cassette", id="a path no system takes"),
        pytest.param({"redact": "x"}, "redact", id="redact is no function"),
        pytest.param({"normalize": 1}, "normalize", id="normalize is no function"),
        pytest.param({"provider": "openai/gpt-4.1-mini"}, "provider", id="a text instead of a provider"),
        pytest.param({"provider": None, "mode": "record"}, "provider", id="recording from nothing"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(options: dict[str, Any], field: str, cassette: Path):
    given: dict[str, Any] = {"provider": mock_model(["x"]), "cassette": cassette, **options}
    with pytest.raises(ConfigurationError) as caught:
        record_replay(given.pop("provider"), **given)
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_INVALID", field)


@pytest.mark.spec("TEST-13")
async def test_a_cassette_is_readable_json_with_camel_case_keys(ask: Any, cassette: Path):
    model = mock_model([{"tool_calls": [{"name": "get_weather", "args": {"city": "Zürich"}}]}])
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    recording = record_replay(model, cassette=cassette, mode="record")
    await recording.generate(ask("Wetter in Zürich?", tools={"get_weather": schema}, max_tokens=50, temperature=0.2))

    text = cassette.read_text(encoding="utf-8")
    document = json.loads(text)
    assert text == json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    assert list(document) == ["version", "recordedAt", "sdkVersion", "provider", "entries"]
    assert document["entries"] == [
        {
            "kind": "generate",
            "request": {
                "model": "mock-model",
                "messages": [{"role": "user", "content": "Wetter in Zürich?"}],
                "tools": [{"name": "get_weather", "parameters": schema}],
                "temperature": 0.2,
                "maxTokens": 50,
            },
            "response": {
                "text": "",
                "toolCalls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"city": "Zürich"}'},
                    }
                ],
                "finishReason": "tool_calls",
            },
        }
    ]


@pytest.mark.spec("TEST-13")
async def test_recording_the_same_twice_gives_the_same_file(ask: Any, tmp_path: Path):
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    for file in files:
        recording = record_replay(mock_model(["a", "b"]), cassette=file, mode="record")
        await recording.generate(ask("first"))
        await recording.generate(ask("second"))
    one, two = (json.loads(file.read_text(encoding="utf-8")) for file in files)
    assert {**one, "recordedAt": ""} == {**two, "recordedAt": ""}


@pytest.mark.spec("TEST-23")
async def test_a_test_that_fails_midway_leaves_a_valid_file_with_every_call_so_far(ask: Any, cassette: Path):
    recording = record_replay(mock_model(["one", "two", "three"]), cassette=cassette, mode="record")

    async def the_test():
        await recording.generate(ask("1"))
        assert [entry["response"]["text"] for entry in entries_of(cassette)] == ["one"]
        await recording.generate(ask("2"))
        raise AssertionError("the test fails here")

    with pytest.raises(AssertionError, match="fails here"):
        await the_test()
    assert [entry["response"]["text"] for entry in entries_of(cassette)] == ["one", "two"]
    assert [file.name for file in cassette.parent.iterdir()] == ["flow.json"]


@pytest.mark.spec("TEST-23")
async def test_each_write_puts_a_new_file_in_the_place_of_the_old_one(ask: Any, cassette: Path):
    recording = record_replay(mock_model(["one", "two"]), cassette=cassette, mode="record")
    await recording.generate(ask("1"))
    before = cassette.read_bytes()
    reader = cassette.with_name("held.json")
    reader.hardlink_to(cassette)  # whoever reads the old file goes on reading it whole
    await recording.generate(ask("2"))
    assert reader.read_bytes() == before
    assert [entry["response"]["text"] for entry in entries_of(cassette)] == ["one", "two"]


@pytest.mark.spec("TEST-23")
async def test_save_writes_the_file_again(ask: Any, cassette: Path):
    recording = record_replay(mock_model(["one"]), cassette=cassette, mode="record")
    await recording.generate(ask("1"))
    before = cassette.read_bytes()
    cassette.unlink()
    await recording.save()
    assert cassette.read_bytes() == before


@pytest.mark.spec("TEST-23")
def test_nothing_is_written_when_the_process_ends(tmp_path: Path):
    program = (
        "from lousho.testing import mock_model, record_replay\n"
        "record_replay(mock_model(['x']), cassette='never.json', mode='record')\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=30)
    assert list(tmp_path.iterdir()) == []


async def test_a_session_without_calls_writes_an_empty_cassette_only_when_asked(cassette: Path):
    recording = record_replay(mock_model([]), cassette=cassette, mode="record")
    assert not cassette.exists()
    await recording.save()
    assert entries_of(cassette) == []


@pytest.mark.spec("TEST-24")
async def test_recording_the_same_again_leaves_the_file_byte_for_byte(ask: Any, vendor: Any, cassette: Path):
    before = b""
    for pause in (0, 30):
        script = ["one", [TextDelta("t"), pause, TextDelta("wo"), Finish("stop")]]
        recording = record_replay(vendor(script), cassette=cassette, mode="record")
        await recording.generate(ask("1"))
        async for _ in recording.stream(ask("2")):
            pass
        if pause == 0:
            text = cassette.read_text(encoding="utf-8").replace('"sdkVersion": "', '"sdkVersion": "0.0.1-')
            cassette.write_text(text, encoding="utf-8")
            before = cassette.read_bytes()
    assert cassette.read_bytes() == before


@pytest.mark.spec("TEST-24")
async def test_a_changed_recording_replaces_the_file_and_its_date(ask: Any, cassette: Path):
    for replies in (["one", "two"], ["one"], ["another"]):
        recording = record_replay(mock_model(replies), cassette=cassette, mode="record")
        for number, _ in enumerate(replies):
            await recording.generate(ask(str(number)))
        assert [entry["response"]["text"] for entry in entries_of(cassette)] == replies
        document = json.loads(cassette.read_text(encoding="utf-8"))
        assert document["recordedAt"] != "2001-01-01T00:00:00.000Z"
        cassette.write_text(json.dumps({**document, "recordedAt": "2001-01-01T00:00:00.000Z"}), encoding="utf-8")


async def test_parallel_calls_are_recorded_in_the_order_they_began(ask: Any, vendor: Any, cassette: Path):
    gates = {f"question {n}": asyncio.Event() for n in range(20)}

    async def held(request: Any) -> ModelResponse:
        question = request.messages[0].content
        await gates[question].wait()
        return ModelResponse(text=f"reply to {question}")

    recording = record_replay(vendor([held] * 20), cassette=cassette, mode="record")
    calls = [asyncio.create_task(recording.generate(ask(question))) for question in gates]
    for gate in reversed(gates.values()):
        gate.set()
        await asyncio.sleep(0)
    await asyncio.wait_for(asyncio.gather(*calls), 20)

    recorded = [(e["request"]["messages"][0]["content"], e["response"]["text"]) for e in entries_of(cassette)]
    assert recorded == [(question, f"reply to {question}") for question in gates]
    replay = record_replay(cassette=cassette, match="request")
    replies = await asyncio.gather(*(replay.generate(ask(question)) for question in reversed(gates)))
    assert [reply.text for reply in replies] == [f"reply to {question}" for question in reversed(gates)]


def test_it_is_a_provider_in_both_modes(cassette: Path):
    assert isinstance(record_replay(mock_model([]), cassette=cassette, mode="record"), LLMProvider)
    assert isinstance(record_replay(cassette=cassette), LLMProvider)


@pytest.mark.parametrize("mode", ["record", "auto"])
def test_a_factory_that_returns_no_provider_is_named(mode: Any, cassette: Path):
    recording = record_replay(lambda: None, cassette=cassette, mode=mode)  # type: ignore[arg-type,return-value]
    with pytest.raises(ConfigurationError, match="NoneType, which is no provider"):
        _ = recording.name


async def test_a_missing_cassette_names_the_file_and_how_to_record(ask: Any, tmp_path: Path):
    replay = record_replay(cassette=tmp_path / "none.json", rerecord_hint="make cassettes")
    with pytest.raises(CassetteMismatchError) as caught:
        await replay.generate(ask("hi"))
    assert caught.value.code == "LOUSHO_CASSETTE_INVALID"
    assert caught.value.detail == (
        f"There is no cassette at {tmp_path / 'none.json'}. Record it first (run make cassettes)."
    )
    assert caught.value.cassette == str(tmp_path / "none.json")
