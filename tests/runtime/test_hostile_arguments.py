"""Arguments as an attacker writes them: read in linear time, bounded, and never more than the run can store."""

from __future__ import annotations

import json
import time
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest
from hostile import ANSWER, asks, chunks, play, told
from runs import of_type

from lousho import create_agent, define_tool
from lousho.models.provider import Finish

PARSE_SECONDS = 3.0
"""Far above what the reader needs, far below what a quadratic one takes on the same text."""


def keeper(kept: list[Any], *, gated: bool = False) -> Any:
    return define_tool(
        name="keep",
        description="Keep the arguments",
        input={"type": "object"},
        execute=lambda arguments: kept.append(arguments) or "kept",
        needs_approval=gated,
    )


async def sent(text: str, *, gated: bool = False) -> tuple[list[Any], Any, Any]:
    """Send arguments to a tool; returns what it got, what the model was told and the `tool.start` event."""
    kept: list[Any] = []
    provider = chunks([asks("keep", text), Finish("tool_calls")], ANSWER)
    agent = create_agent(provider=provider, tools=[keeper(kept, gated=gated)])
    played = await play(agent.stream("go"))
    start = of_type(played.events, "tool.start")[0]
    for approval_id in played.ended.approval_ids:
        played = await play(agent.approvals.stream_resolve(id=approval_id, approved=True))
    return kept, told(played.ended)[0], start


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("```" + " " * 1_000_000, id="a fence and blanks"),
        pytest.param("```" + " \n" * 490_000 + "```", id="a fence around blanks"),
        pytest.param('"' + '\\"' * 499_000, id="a text that never ends"),
        pytest.param('{"a": "' * 140_000, id="texts that never end"),
        pytest.param("{" + ", " * 499_000, id="commas"),
        pytest.param("[" * 4_000_000, id="brackets"),
        pytest.param("x" * 5_000_001, id="too long"),
        pytest.param("9" * 4_900_000, id="digits"),
        pytest.param('{"a":' + "-" * 4_000_000, id="signs"),
    ],
)
async def test_broken_arguments_of_any_size_are_told_to_the_model_in_no_time(text):
    began = time.perf_counter()
    kept, result, _ = await sent(text)
    assert time.perf_counter() - began < PARSE_SECONDS
    assert kept == []
    assert result["kind"] == "validation"
    assert len(json.dumps(result)) < 5_000


async def test_five_megabytes_of_arguments_reach_the_tool():
    text = json.dumps({"data": "x" * 4_999_000})
    kept, result, _ = await sent(text)
    assert len(kept[0]["data"]) == 4_999_000
    assert result == "kept"


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize(("levels", "runs"), [(64, True), (65, False), (200, False), (900, False), (50_000, False)])
async def test_nesting_is_bounded_so_that_a_pause_can_always_be_read_again(levels, runs, gated):
    kept, result, _ = await sent(nested(levels), gated=gated)
    assert kept == ([json.loads(nested(levels))] if runs else [])
    assert (result == "kept") == runs


@pytest.mark.parametrize("gated", [False, True])
async def test_half_surrogate_pairs_are_replaced_and_whole_ones_joined(gated):
    kept, _, start = await sent('{"a\\ud800": ["\\ud83d\\ude00", "x\\udfff"]}', gated=gated)
    assert kept == [{"a\ufffd": ["\U0001f600", "x\ufffd"]}]
    assert start.args == kept[0]


@pytest.mark.parametrize("gated", [False, True])
async def test_numbers_of_any_size_stay_what_they_are(gated):
    text = '{"big": 123456789012345678901234567890, "small": -0.0, "exact": 1e300, "none": null}'
    kept, _, _ = await sent(text, gated=gated)
    assert kept == [json.loads(text)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@hypothesis.given(st.dictionaries(st.text(), JSON, max_size=4), st.booleans())
async def test_any_valid_object_reaches_the_tool_as_it_was_sent(value, gated):
    kept, result, start = await sent(json.dumps(value, ensure_ascii=False), gated=gated)
    assert kept == [value]
    assert result == "kept"
    assert (start.args, start.raw_args) == (value, None)


def with_trailing_commas(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + "".join(f"{json.dumps(k)}: {with_trailing_commas(v)} ,\n" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + "".join(f"{with_trailing_commas(item)}, " for item in value) + "]"
    return json.dumps(value)


@hypothesis.given(st.dictionaries(st.text(), JSON, max_size=3), st.booleans(), st.booleans(), st.booleans())
async def test_what_can_be_repaired_is_what_was_meant(value, commas, fence, quoted):
    text = with_trailing_commas(value) if commas else json.dumps(value)
    text = f"```json\n{text}\n```" if fence else text
    kept, _, start = await sent(json.dumps(text) if quoted else text)
    assert kept == [value]
    assert start.args == value


@hypothesis.given(st.text() | st.text(alphabet='{}[]",:`\\ \n0aeE.-'))
async def test_any_text_is_read_or_refused_and_the_run_goes_on(text):
    kept, result, _ = await sent(text)
    assert (result == "kept") == (len(kept) == 1)
    if not kept:
        assert result["kind"] == "validation"
