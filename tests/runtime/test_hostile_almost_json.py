"""Arguments that are nearly JSON: what has one meaning is read as that, what may have two is not guessed at."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hostile import ANSWER, asks, chunks, play, told
from runs import of_type

from lousho import create_agent, define_tool
from lousho.models.provider import Finish


async def sent(text: str, *, finish: str = "tool_calls") -> Any:
    """Send arguments; returns what the tool got, or the text of the complaint where it did not run."""
    kept: list[Any] = []
    keep = define_tool(
        name="keep",
        description="Keep the arguments",
        input={"type": "object"},
        execute=lambda arguments: kept.append(arguments) or "kept",
    )
    provider = chunks([asks("keep", text), Finish(finish)], ANSWER)  # type: ignore[arg-type]
    played = await play(create_agent(provider=provider, tools=[keep]).stream("go"))
    start = of_type(played.events, "tool.start")[0]
    result = told(played.ended)[0]
    if result == "kept":
        assert start.args == kept[0]
        return kept[0]
    assert (kept, result["kind"], start.args, start.raw_args) == ([], "validation", {}, text)
    assert len(json.dumps(result)) < 5_000
    return result["issues"][0]["message"]


READ = {
    # Valid, in every way that JSON has.
    '{"a": 1}': {"a": 1},
    ' \n\t{"a" : [ ] , "b" : { } }\r\n': {"a": [], "b": {}},
    "{}": {},
    "": {},
    " \n ": {},
    '{"": 1}': {"": 1},
    '{"a": "\\u0041\\n\\/"}': {"a": "A\n/"},
    '{"a": -0.0, "b": 1E5, "c": 1e-5}': {"a": 0.0, "b": 100000.0, "c": 1e-05},
    '{"a": 1, "a": 2}': {"a": 2},  # as every reader of JSON has it
    '{"__proto__": {"x": 1}, "constructor": 2}': {"__proto__": {"x": 1}, "constructor": 2},
    '{"tool": "x", "arguments": {"a": 1}}': {"tool": "x", "arguments": {"a": 1}},
    '{"a": "// no comment", "b": "/* none */", "c": "# none"}': {
        "a": "// no comment",
        "b": "/* none */",
        "c": "# none",
    },
    '{"a": "```", "b": "{", "c": "}"}': {"a": "```", "b": "{", "c": "}"},
    # Of another language.
    "{'a': True, 'b': None, 'c': False}": {"a": True, "b": None, "c": False},
    "{'a': \"it's\", 'b': 'say \\'hi\\''}": {"a": "it's", "b": "say 'hi'"},
    "{a: 1, $b: 2, c_3: [3]}": {"a": 1, "$b": 2, "c_3": [3]},
    "{true: 1, null: 2, None: 3}": {"true": 1, "null": 2, "None": 3},
    "{constructor: 1,}": {"constructor": 1},
    "b'{\"a\": 1}'": {"a": 1},
    "({'a': 1})": {"a": 1},
    '{"a": 1};': {"a": 1},
    # Marks that are no part of it.
    '\ufeff\ufeff{"a": 1}': {"a": 1},
    '{"a": 1}\x00': {"a": 1},
    '{"a": "x\x00y"}': {"a": "x\x00y"},
    '{"a": "x",\u00a0}': {"a": "x"},
    '{"a": 1}}}}}': {"a": 1},
    '{"a": [1, 2,],}': {"a": [1, 2]},
    "{\u201ca\u201d: \u2018it's\u2019}": {"a": "it's"},
    # Comments that end.
    '{"a": 1, // one\n "b": 2 # two\n}': {"a": 1, "b": 2},
    '{"a": /* one */ 1 /* two */}': {"a": 1},
    '// the call\n{"a": 1}': {"a": 1},
    '{"a": 1} // done': {"a": 1},
    # Fences and markup around it.
    '```json\n{"a": 1}\n```': {"a": 1},
    '```{"a": 1}```': {"a": 1},
    '```JSON5\r\n{"a": 1}\r\n```': {"a": 1},
    '````\n{"a": 1}\n````': {"a": 1},
    '~~~json\n{"a": 1}\n~~~': {"a": 1},
    '```\n```json\n{"a": 1}\n```\n```': {"a": 1},
    '```json\n{"a": 1}': {"a": 1},
    '```json\n{"a": 1}\n```\nI hope that helps.': {"a": 1},
    '`{"a": 1}`': {"a": 1},
    '<arguments>{"a": 1}</arguments>': {"a": 1},
    '<function=find>{"a": 1}</function>': {"a": 1},
    '<|call|>{"a": 1}<|end|>': {"a": 1},
    'Here is what you need: {"a": 1}': {"a": 1},
    'find_book({"a": 1})': {"a": 1},
    '"{\\"a\\": 1}"': {"a": 1},
    '"\\"{\\\\\\"a\\\\\\": 1}\\""': {"a": 1},
    "'{\"a\": 1}'": {"a": 1},
    # Brackets that are missing at the very end of what the model sent as a whole.
    '{"a": "b"': {"a": "b"},
    '{"a": {"b": ["c"': {"a": {"b": ["c"]}},
    '{"a": true': {"a": True},
    '{"a": []': {"a": []},
}

REFUSED = [
    # Cut off in the middle of something.
    '{"a": "b',
    '{"a": "b\\',
    '{"a": 1',
    '{"a": 1.',
    '{"a": 1e',
    '{"a": -',
    '{"a": tru',
    '{"a": "b",',
    '{"a":',
    '{"a"',
    '{"a',
    "{",
    "[",
    '"{\\"a\\": 1}',
    '"{\\"a\\": 1',
    '```json\n{"a": "b',
    "{/* never ends",
    # Two ways to read it.
    '{"a": 1, "a": 2,}',
    "{'a': 1, \"a\": 1}",
    '{"a": {"b": 1, "b": 2,}}',
    '{"a": 1}{"b": 2}',
    '{"a": 1}\n{"a": 1}',
    '{} {"a": 1}',
    '{"a": 1}, {"b": 2}',
    '{"a": 1}, "b": 2}',
    '{"a": 1},',
    '{"a": 1}: 2',
    '{"a": "b"c"}',
    '{"a": "x" "y"}',
    '{"a": "x" + "y"}',
    "{'a': 'it's'}",
    "{\u201ca\u201d: \u201cit\u201ds\u201d}",
    '{"a": "x\u201d}',
    '{"a": 1 "b": 2}',
    '{"a": 1; "b": 2}',
    '{"a": [1,, 2]}',
    '{"a": , "b": 1}',
    "{, 'a': 1}",
    '{"a": 1,, }',
    '{"a": (1, 2)}',
    '{"a": [1, 2}',
    '{"a": 1]',
    '[{"a": 1}]',
    '[{"a": 1}',
    '{"a": 1 // no end of the line, "b": 2}',
    '{"a": "x" # , "b": "y"}',
    # More arguments than those in the one object.
    "delete(path='/x', options={\"recursive\": true})",
    "delete('/x', {recursive: true})",
    "('/x', {\"recursive\": true})",
    '1, {"a": 1}',
    'path: /x\noptions: {"recursive": true}',
    'options: {"recursive": true}',
    'path: /x, options: {"recursive": true}',
    "`options`: {recursive: true}",
    "\u2018options\u2019: {recursive: true}",
    "'options': {'recursive': True}",
    '"options": {"recursive": true}',
    'options={"recursive": true}',
    "path=/x {recursive: true}",
    '{"a": 1} b: 2',
    "{'a': 1} 'b': 2",
    '<path>/x</path><options>{"recursive": true}</options>',
    '<options>{"recursive": true}</options><path>/x</path>',
    "<parameter=path>/x</parameter><parameter=options>{}</parameter>",
    "Use {name} in {}",
    '{{"a": 1}}',
    # Values of another language, which none of them may run.
    '{"a": NaN}',
    '{"a": Infinity}',
    '{"a": -Infinity}',
    '{"a": undefined}',
    '{"a": 012}',
    '{"a": 0x10}',
    '{"a": +1}',
    '{"a": .5}',
    '{"a": 1.}',
    '{"a": 1_000}',
    '{"a": 1n}',
    '{"a": \u0661}',
    '{"a": `x`}',
    '{"a": ${x}}',
    '{"a": <x>}',
    '{"a": b"x"}',
    '{"a": r"x"}',
    '{"a": f"{x}"}',
    "{'a', 'b'}",
    '{"a": {1, 2}}',
    "{1: 2}",
    "{a-b: 1}",
    "dict(a=1)",
    "{'a': __import__('os').system('true')}",
    '{"a": new Date()}',
    '{"a": @x}',
    '{"a" = 1}',
    '{"a" => 1}',
    '{"a": "\\x41"}',
    '{"a": "\\u00zz"}',
    '{"p": "C:\\path"}',
    '{\\"a\\": 1}',
    '{"a": "line\\\nnext"}',
    "{...}",
    "{\u00e9: 1}",
    # No object at all.
    "null",
    "true",
    "7",
    '"text"',
    "[]",
    "--a 1",
    "a=1",
    "\x00",
    # What no run can hold.
    '{"a": 1e999}',
    '{"a": -1e999,}',
    '{"a": ' + "9" * 5_000 + "}",
    '{"a": ' + "[" * 70 + "]" * 70 + ",}",
]


@pytest.mark.spec("BEY-33")
@pytest.mark.parametrize(("text", "meant"), READ.items(), ids=[repr(text)[:60] for text in READ])
async def test_what_has_one_meaning_is_read_as_that(text: str, meant: Any):
    assert await sent(text) == meant


@pytest.mark.spec("BEY-33", "HAZ-17")
@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text)[:60])
async def test_what_has_two_meanings_or_none_runs_nothing(text: str):
    assert isinstance(await sent(text), str)


@pytest.mark.spec("BEY-33", "HAZ-17")
@pytest.mark.parametrize("finish", ["length", "content_filter", "error", "other"])
@pytest.mark.parametrize("text", READ, ids=lambda text: repr(text)[:60])
async def test_of_a_reply_that_may_have_been_cut_off_nothing_is_completed(text: str, finish: str):
    """Every beginning of an object with two members: none but the whole one may run, however the whole was written."""
    whole = text.rstrip()
    for end in range(len(whole)):
        got = await sent(whole[:end], finish=finish) if whole[:end].strip() or finish != "other" else ""
        if isinstance(got, str):
            continue
        assert got == READ[text]  # only what stood around it is missing


@pytest.mark.parametrize("place", ["before", "behind", "inside"])
@pytest.mark.parametrize(
    "piece",
    [
        "a=",
        "<",
        "<a ",
        "</",
        " ",
        "\n",
        " \n",
        "a:\n",
        "`",
        "-",
        "=",
        "a ",
        "> ",
        "//\n",
        "/*",
        "#",
        "\u201c",
        "\\",
        "'",
    ],
)
async def test_a_million_characters_of_anything_around_an_object_take_no_time(piece: str, place: str):
    many = piece * (990_000 // len(piece))
    text = {"before": many + "{'a':1}", "behind": "{'a':1}" + many, "inside": "{'a':1," + many + "}"}[place]
    began = time.perf_counter()
    await sent(text)
    assert time.perf_counter() - began < 3
