"""What a type checker sees of a tool: the function's own signature. `make types` checks the assertions of this file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, assert_type

from lousho import Tool, define_tool, tool


@tool
def weather(city: str, days: int = 1) -> dict[str, int]:
    """Return the weather."""
    return {city: days}


@tool(timeout_ms=1_000, needs_approval=lambda city: city == "Atlantis")
async def forecast(city: str) -> list[str]:
    """Return the forecast."""
    return [city]


@tool
async def watch(city: str) -> AsyncIterator[str]:
    """Watch the weather."""
    yield city


def average(arguments: dict[str, list[float]]) -> float:
    return sum(arguments["values"]) / len(arguments["values"])


mean = define_tool(
    name="mean", description="The mean", input={"type": "object", "properties": {}}, execute=average, concurrent=False
)


async def test_a_tool_has_the_signature_and_the_result_of_its_function():
    assert assert_type(weather("Paris"), dict[str, int]) == {"Paris": 1}
    assert assert_type(weather(city="Paris", days=2), dict[str, int]) == {"Paris": 2}
    assert assert_type(await forecast("Rome"), list[str]) == ["Rome"]
    assert [assert_type(one, str) async for one in watch("Oslo")] == ["Oslo"]
    assert assert_type(mean({"values": [1.0, 3.0]}), float) == 2.0
    assert assert_type(weather.execute("Paris"), dict[str, int]) == {"Paris": 1}


def test_a_tool_can_stand_where_its_function_could_and_among_other_tools():
    plain: Callable[[str], dict[str, int]] = weather
    waits: Callable[[str], Coroutine[Any, Any, list[str]]] = forecast
    tools: list[Tool] = [weather, forecast, watch, mean]
    assert (plain("Paris"), callable(waits), [one.name for one in tools]) == (
        {"Paris": 1},
        True,
        ["weather", "forecast", "watch", "mean"],
    )


def test_a_wrong_call_is_a_type_error_for_the_checker_and_for_python():
    try:
        weather(town="Paris")  # pyright: ignore[reportCallIssue]
    except TypeError as error:
        assert "town" in str(error)
    else:
        raise AssertionError("the call went through")
