"""Results of every kind and size: JSON in the end, bounded, and the run goes on."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hostile import act_in_both, acting, play, told
from runs import call, calls

from lousho import create_agent, define_tool
from lousho.testing import mock_model


class Fighter:
    """Whatever is asked of it, it raises."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError("str")

    __repr__ = __str__


class BadMapping(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        raise RuntimeError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


@dataclasses.dataclass
class Person:
    name: str
    friends: list[Person] = dataclasses.field(default_factory=lambda: [])


def circle() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


def deep() -> Any:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    return value


def friends() -> Person:
    people = [Person(f"p{number}") for number in range(30)]
    for person in people:
        person.friends = people
    return people[0]


def bomb() -> Any:
    value: Any = ["x"] * 10
    for _ in range(60):
        value = [value] * 10
    return value


@pytest.mark.spec("HAZ-20")
@pytest.mark.parametrize(
    ("make", "text"),
    [
        pytest.param(circle, '["[circular]"]', id="a cycle"),
        pytest.param(lambda: {1, 2}, "[1,2]", id="a set"),
        pytest.param(lambda: {(1, 2): "a", None: "b", 3: "c"}, '{"(1, 2)":"a","null":"b","3":"c"}', id="odd keys"),
        pytest.param(lambda: b"\x00\xff", '{"$bytes":"AP8="}', id="bytes"),
        pytest.param(
            lambda: [2**70, 10**10_000], '["1180591620717411303424","[integer of 33220 bits]"]', id="huge numbers"
        ),
        pytest.param(lambda: [math.nan, -math.inf], "[null,null]", id="numbers that JSON lacks"),
        pytest.param(Fighter, "[Fighter]", id="an object that fights back"),
        pytest.param(lambda: {Fighter(): 1}, '{"[Fighter]":1}', id="a key that fights back"),
        pytest.param(BadMapping, "[BadMapping]", id="a mapping that raises"),
        pytest.param(lambda: "a\ud800", "a\ufffd", id="half a surrogate pair"),
        pytest.param(lambda: "\ud83d\ude00", "\U0001f600", id="a surrogate pair"),
        pytest.param(lambda: None, "null", id="nothing"),
        pytest.param(lambda: float, "<class 'float'>", id="a class"),
    ],
)
async def test_results_that_json_cannot_hold_are_serialized_and_do_not_fail_the_run(make, text):
    played = await act_in_both(make)
    assert [message.content for message in played.ended.messages if message.role == "tool"] == [text, text]
    assert played.ended.tool_errors is None


@pytest.mark.parametrize("make", [deep, friends, bomb, lambda: list(range(1_200_000)), lambda: "x" * 50_000_000])
async def test_results_of_any_size_come_back_bounded(make):
    model = mock_model([call("awaited"), "Done."])
    played = await play(create_agent(provider=model, tools=acting(make)).stream("go"))
    assert played.ended.text == "Done."
    for message in played.ended.messages:
        assert len(str(message.content)) <= 50_100


async def test_a_generator_is_no_result_and_the_model_is_told_so():
    def numbers(arguments: dict[str, Any]) -> Iterator[int]:
        yield 1

    schema = {"type": "object", "properties": {}}
    plain = define_tool(name="numbers", description="Count", input=schema, execute=numbers)
    played = await play(create_agent(provider=mock_model([call("numbers"), "Done."]), tools=[plain]).stream("go"))
    assert "async generator" in told(played.ended)[0]["message"]


async def test_a_coroutine_that_a_plain_function_returns_is_awaited():
    async def later() -> str:
        return "late"

    model = mock_model([calls(("awaited", {}), ("blocking", {})), "Done."])
    played = await play(create_agent(provider=model, tools=acting(later)).stream("go"))
    assert told(played.ended) == ["late", "late"]
