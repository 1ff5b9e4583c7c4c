"""What helps a model that gets something slightly wrong: the name of a tool, or the JSON of its arguments."""

from __future__ import annotations

import json
import time
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest
from hostile import ANSWER, asks, chunks, play, told
from runs import call, of_type

from lousho import Agent, create_agent, define_tool
from lousho.models.provider import Finish
from lousho.testing import mock_model

# -- names ---------------------------------------------------------------------------------------------------------------


def named(*names: str) -> list[Any]:
    """Tools that only say their names."""

    def make(name: str) -> Any:
        return define_tool(name=name, description="Say it", input={"type": "object"}, execute=lambda _: f"I am {name}")

    return [make(name) for name in names]


async def asked_for(name: str, *tools: str, **options: Any) -> Any:
    """Call a tool by `name`; returns what the model was told."""
    model = mock_model([call(name), "Done."])
    return told(await create_agent(provider=model, tools=named(*tools), **options).send("go"))[0]


@pytest.mark.spec("BEY-32", "HAZ-19")
@pytest.mark.parametrize(
    ("asked", "means"),
    [
        ("functions.read_file", "read_file"),
        ("default_api.read_file", "read_file"),
        ("tools:read_file", "read_file"),
        ("mcp__read_file", "read_file"),
        ("mcp.slack.post", "slack__post"),
        ("mcp__slack__post", "slack__post"),
        ("slack/post", "slack__post"),
        (" read_file ", "read_file"),
        ("read_file<|channel|>json", "read_file"),
    ],
)
async def test_what_a_vendor_puts_around_a_name_is_dropped(asked: str, means: str):
    assert await asked_for(asked, "read_file", "slack__post", "post") == f"I am {means}"


@pytest.mark.spec("BEY-32")
@pytest.mark.parametrize("asked", ["functions.read_file", "mcp__read_file", "readFile"])
async def test_names_are_taken_to_the_letter_when_that_is_wanted(asked: str):
    result = await asked_for(asked, "read_file", match_tool_names=False)
    assert result["kind"] == "not-found"
    assert result["message"].endswith("Tools: read_file.")
    assert "did you mean" not in result["message"]


@pytest.mark.spec("BEY-32", "TOOL-44")
@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        pytest.param("readFile", "(did you mean 'read_file'?)", id="camel case"),
        pytest.param("READ-FILE", "(did you mean 'read_file'?)", id="another case"),
        pytest.param("readfile", "(did you mean 'read_file'?)", id="no underscore"),
        pytest.param("raed_file", "(did you mean 'read_file'?)", id="a typo"),
        pytest.param("file_read", "(did you mean 'read_file'?)", id="words in another order"),
        pytest.param("functions.readFile", "(did you mean 'read_file'?)", id="a prefix and another case"),
        pytest.param("read", "(did you mean 'read_file' or 'read_dir'?)", id="one word of two tools"),
        pytest.param("get_the_weather", "(did you mean 'get_weather'?)", id="a word too many"),
        pytest.param("rm", "", id="nothing like it"),
    ],
)
async def test_an_unknown_tool_is_answered_with_the_nearest_ones_and_runs_none(asked: str, hint: str):
    result = await asked_for(asked, "read_file", "read_dir", "get_weather")
    assert (result["kind"], result["error"]) == ("not-found", "ToolNotFoundError")
    assert result["message"].endswith(f"{f' {hint}' if hint else ''}. Tools: get_weather, read_dir, read_file.")


async def test_thousands_of_tools_are_compared_in_no_time_and_not_all_listed():
    names = [f"tool_number_{number}_of_a_long_name_{'abcdefgh' * 3}" for number in range(3000)]
    began = time.perf_counter()
    result = await asked_for("tool_numbr_77_of_a_long_name", *names)
    assert time.perf_counter() - began < 3
    assert "and 2950 more" in result["message"] or result["message"].endswith("... (truncated)")


# -- arguments that are almost JSON --------------------------------------------------------------------------------------


def keeper(kept: list[Any], **options: Any) -> Agent:
    """An agent whose one tool keeps what it gets."""
    keep = define_tool(
        name="keep",
        description="Keep the arguments",
        input={"type": "object"},
        execute=lambda arguments: kept.append(arguments) or "kept",
    )
    return create_agent(tools=[keep], **options)


async def sent(text: str, *, finish: str = "tool_calls", more: bool = False, **options: Any) -> tuple[Any, Any, Any]:
    """Send arguments; returns what the tool got (`None`: it did not run), its complaint and the start's `raw_args`."""
    kept: list[Any] = []
    after = [asks("keep", '{"last": true}', "c2")] if more else []
    provider = chunks([asks("keep", text), *after, Finish(finish)], ANSWER)  # type: ignore[arg-type]
    played = await play(keeper(kept, provider=provider, **options).stream("go"))
    result = told(played.ended)[0]
    start = of_type(played.events, "tool.start")[0]
    assert start.args == (kept[0] if result == "kept" else {})
    if result == "kept":
        return kept[0], None, start.raw_args
    assert result["kind"] == "validation"
    assert len(kept) == len(after)
    return None, result["issues"][0]["message"], start.raw_args


REPAIRED = [
    pytest.param('```json\n{"a": 1}\n```', {"a": 1}, id="a code fence"),
    pytest.param('{"a": [1, 2,], "b": {"c": 3,},}', {"a": [1, 2], "b": {"c": 3}}, id="commas before brackets"),
    pytest.param("{'a': 'it\\'s', 'b': True, 'c': None, 'd': False}", {"a": "it's", "b": True, "c": None, "d": False}),
    pytest.param('{"text": "one\ntwo\tthree"}', {"text": "one\ntwo\tthree"}, id="line breaks in a text"),
    pytest.param('{"a": 1, // why\n # what\n "b": /* how */ 2}', {"a": 1, "b": 2}, id="comments"),
    pytest.param('{"url": "http://x/#y", "b": "/* no */",}', {"url": "http://x/#y", "b": "/* no */"}, id="no comments"),
    pytest.param("{\u201ca\u201d: \u2018b\u2019}", {"a": "b"}, id="typographic quotes"),
    pytest.param("{path: 'x', $n: 2}", {"path": "x", "$n": 2}, id="names without quotes"),
    pytest.param('"{\\"a\\": \\"b\\"}"', {"a": "b"}, id="JSON in a text"),
    pytest.param("\"{'a': 1,}\"", {"a": 1}, id="almost JSON in a text"),
    pytest.param('Here\'s what you need: {"a": 1} I hope that helps.', {"a": 1}, id="prose around it"),
    pytest.param('{"a": 1}}', {"a": 1}, id="a bracket too many"),
    pytest.param('\ufeff{"a": 1}', {"a": 1}, id="a byte order mark"),
    pytest.param('{"a": "\\ud83d\\ude00",}', {"a": "\U0001f600"}, id="an escaped pair"),
    pytest.param('{"a": {"b": ["c"', {"a": {"b": ["c"]}}, id="brackets missing at the end"),
]


@pytest.mark.spec("BEY-33")
@pytest.mark.parametrize(("text", "meant"), REPAIRED)
async def test_what_is_almost_json_is_read_and_reported_as_it_was_sent(text: str, meant: Any):
    assert await sent(text) == (meant, None, text)


@pytest.mark.spec("BEY-33")
@pytest.mark.parametrize(("text", "meant"), REPAIRED)
async def test_nothing_is_repaired_when_that_is_not_wanted(text: str, meant: Any):
    got, complaint, raw = await sent(text, repair_arguments=False)
    assert (got, raw) == (None, text)
    assert complaint.startswith("arguments are not ")
    assert "received: " in complaint


@pytest.mark.spec("BEY-33")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"a": 12', id="ends in a number"),
        pytest.param('{"a": 12 \n', id="ends behind a number"),
        pytest.param('{"a": tru', id="ends in a word"),
        pytest.param('{"a": "b', id="ends in a text"),
        pytest.param('{"a": "b",', id="ends after a comma"),
        pytest.param('{"a":', id="ends after a name"),
        pytest.param("{", id="ends at once"),
        pytest.param('{"a": 1}, "b": 2}', id="members behind the end"),
        pytest.param('{"a": 1}{"b": 2}', id="two objects"),
        pytest.param('[{"a": 1}]', id="a list"),
        pytest.param('"a": {"b": 1}', id="a member alone"),
        pytest.param('{"p": "C:\\new\\path"}', id="backslashes that escape nothing"),
        pytest.param('{"t": "She said "no" twice"}', id="quotes inside a text"),
        pytest.param("{'t': 'it's'}", id="an apostrophe inside a text"),
        pytest.param('{"a": 1 "b": 2}', id="no comma"),
        pytest.param('{"a": [1,,2]}', id="no value"),
        pytest.param('{"a": NaN}', id="no number"),
        pytest.param('{"a": 1e999,}', id="a number beyond a float"),
        pytest.param('{"a": ' + "[" * 70 + "]" * 70 + ",}", id="too deep"),
        pytest.param("{'a': __import__('os').getcwd()}", id="code"),
        pytest.param("read the file", id="prose"),
    ],
)
async def test_what_can_be_read_in_two_ways_or_none_runs_nothing_and_is_told(text: str):
    got, complaint, raw = await sent(text)
    assert (got, raw) == (None, text)
    assert complaint.startswith("arguments are not ")


@pytest.mark.parametrize("finish", ["length", "content_filter", "error"])
@pytest.mark.parametrize(
    "text",
    [pytest.param("", id="nothing"), pytest.param('{"a": "b"', id="no bracket"), pytest.param('{"a": "b', id="half")],
)
async def test_a_call_that_was_cut_off_never_runs_with_what_is_there(text: str, finish: str):
    got, complaint, raw = await sent(text, finish=finish)
    assert (got, raw) == (None, text)
    assert complaint.startswith("the reply was cut off")


@pytest.mark.parametrize("text", ["", '{"a": "b"', '{"a": "b",}'])
async def test_only_the_last_call_of_a_reply_that_was_cut_off_can_be_half(text: str):
    got, _, _ = await sent(text, finish="length", more=True)
    assert got == ({"a": "b"} if text else {})


async def test_an_ending_that_nobody_can_name_closes_no_bracket_and_forgives_no_arguments():
    assert (await sent("", finish="eos"))[0] == {}
    assert (await sent('{"a": "b",}', finish="eos"))[0] == {"a": "b"}
    assert (await sent('{"a": "b"', finish="eos"))[0] is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{" + "'a':1," * 160_000, id="a million members"),
        pytest.param("{a:" * 300_000, id="openings"),
        pytest.param("{/*" * 300_000, id="comments that never end"),
        pytest.param("{" + "//\n" * 300_000, id="comments"),
        pytest.param("{'" + "\\'" * 450_000, id="a text that never ends"),
        pytest.param("prose " * 160_000 + "{", id="prose"),
        pytest.param("{" + " " * 900_000, id="blanks"),
        pytest.param("\u201c" * 900_000, id="quotes"),
    ],
)
async def test_a_million_odd_characters_are_refused_in_no_time(text: str):
    began = time.perf_counter()
    assert (await sent(text))[0] is None
    assert time.perf_counter() - began < 2


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@hypothesis.given(st.dictionaries(st.text(), VALUES, max_size=3), st.data())
async def test_of_an_end_that_is_missing_only_brackets_are_ever_made_up(value: dict[str, Any], data: Any):
    whole = json.dumps(value)
    text = whole[: data.draw(st.integers(1, len(whole)))]
    got, _, _ = await sent(text)
    if got is not None:
        assert got == json.loads(text + open_brackets(text))
    else:
        assert text != whole


def open_brackets(text: str) -> str:
    """What closes the brackets that are open at the end of a JSON text."""
    closing: list[str] = []
    in_text = escaped = False
    for mark in text:
        if in_text:
            in_text = escaped or mark != '"'
            escaped = not escaped and mark == "\\"
        elif mark == '"':
            in_text = True
        elif mark in "{[":
            closing.append("}" if mark == "{" else "]")
        elif mark in "}]":
            closing.pop()
    return "".join(reversed(closing))
