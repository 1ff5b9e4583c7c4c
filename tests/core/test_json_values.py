"""Any value becomes JSON; none of them fails a run."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pydantic
import pytest

from lousho.core.json_values import dump_json, to_json_value


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    when: datetime.date


class Order(pydantic.BaseModel):
    number: int
    day: datetime.date


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no text for you")


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(datetime.datetime(2026, 10, 1, tzinfo=datetime.UTC), "2026-10-01T00:00:00+00:00", id="a datetime"),
        pytest.param(
            {2: "a", None: "b", True: "c", (1, 2): "d"},
            {"2": "a", "null": "b", "true": "c", "(1, 2)": "d"},
            id="odd keys",
        ),
        pytest.param({"b", "a"}, ["a", "b"], id="a set"),
        pytest.param(b"\x00\xff", {"$bytes": "AP8="}, id="bytes"),
        pytest.param([float("nan"), float("inf"), 0.5], [None, None, 0.5], id="floats JSON lacks"),
        pytest.param(2**100, str(2**100), id="a huge integer"),
        pytest.param("a\ud800b", "a\ufffdb", id="a lone surrogate"),
        pytest.param(Colour.RED, "red", id="an enum"),
        pytest.param(Point(1, datetime.date(2026, 1, 2)), {"x": 1, "when": "2026-01-02"}, id="a dataclass"),
        pytest.param(Order(number=1, day=datetime.date(2026, 1, 2)), {"number": 1, "day": "2026-01-02"}, id="a model"),
        pytest.param(Hostile(), "[Hostile]", id="an object that fights back"),
        pytest.param(CYCLE, ["[circular]"], id="a cycle"),
        pytest.param((1, [2]), [1, [2]], id="a tuple"),
    ],
)
def test_values_degrade_to_json(value, expected):
    assert to_json_value(value) == expected
    assert json.loads(dump_json(value)) == expected


def test_deep_nesting_ends_in_a_note():
    value: Any = "deep"
    for _ in range(5000):
        value = [value]
    assert "nested too deeply" in dump_json(value)


@hypothesis.given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
        max_leaves=20,
    )
)
def test_the_json_form_is_stable(value):
    once = to_json_value(value)
    assert to_json_value(json.loads(json.dumps(once))) == once
