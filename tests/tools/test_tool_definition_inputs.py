"""What a tool's arguments may be: an object at the root, of fields that JSON values satisfy."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import io
import json
import threading
from collections.abc import Callable, Generator
from typing import Annotated, Any, Literal, TypedDict

import pydantic
import pytest
from runs import call

from lousho import ConfigurationError, ToolContext, create_agent, define_tool, tool
from lousho.testing import mock_model

EMPTY: dict[str, Any] = {"type": "object", "properties": {}}


class Letter(pydantic.BaseModel):
    to: str


class Parcel(pydantic.BaseModel):
    grams: int


def refused(make: Callable[[], object]) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"
    return caught.value


@pytest.mark.spec("TOOL-14")
@pytest.mark.parametrize(
    "source",
    [
        str,
        list[int],
        int | None,
        Literal["a"],
        pydantic.RootModel[list[int]],
        Letter | Parcel,
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}},
        {"type": ["object", "null"]},
    ],
    ids=str,
)
def test_an_input_whose_root_is_no_object_is_refused_with_the_wrapping_that_helps(source: Any):
    error = refused(lambda: define_tool(name="act", description="Act", input=source, execute=print))
    assert "the root must be an object" in error.detail
    assert "{value: ...}" in error.detail
    assert error.field == "input"


class Plain:
    """Some class."""


class Kind(enum.Enum):
    BIG = (1, 2)


class Empty(enum.Enum):
    pass


class HasPlain(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    inner: Plain


class HoldsPlain(TypedDict):
    inner: Plain


@dataclasses.dataclass
class KeepsPlain:
    inner: Plain


@pytest.mark.spec("TOOL-15")
@pytest.mark.parametrize(
    ("hint", "field"),
    [
        (Plain, "x"),
        (Plain | None, "x"),
        (list[Plain], "x"),
        (dict[str, list[Plain]], "x"),
        (tuple[int, Plain], "x"),
        (int | Plain | str, "x"),
        (Annotated[Plain, "a plain one"], "x"),
        (HasPlain, "x.inner"),
        (list[HasPlain], "x.inner"),
        (HoldsPlain, "x.inner"),
        (KeepsPlain | None, "x.inner"),
        (Callable[[int], str], "x"),
        (Callable[[], None] | None, "x"),
        (io.StringIO, "x"),
        (threading.Thread, "x"),
        (type[int], "x"),
        (memoryview, "x"),
        (Generator[int, None, None], "x"),
        (list[Kind], "x"),
        (Empty, "x"),
        (Literal[b"a"], "x"),
        (ToolContext | int, None),
    ],
    ids=str,
)
def test_a_field_that_no_json_value_satisfies_is_refused_with_its_name_and_the_fix(hint: Any, field: str | None):
    def act(x: int) -> None:
        """Act."""

    act.__annotations__ = {"x": hint}
    if field is None:  # the context, whatever stands beside it
        assert tool(act).input_schema == EMPTY
        return
    error = refused(lambda: tool(act))
    assert f"'{field}'" in error.detail
    assert "no JSON value can satisfy; use str, int, float, bool, a list" in error.detail
    assert error.field == field


@pytest.mark.spec("TOOL-15")
async def test_dates_go_there_and_back_as_text():
    seen: list[Any] = []

    @tool
    def plan(at: datetime.datetime, day: datetime.date | None = None) -> dict[str, Any]:
        """Plan it."""
        seen.append((at, day))
        return {"at": at + datetime.timedelta(hours=1), "day": day}

    turns = [call("plan", at="2026-03-01T12:00:00Z", day="2026-03-02"), "Planned."]
    result = await create_agent(provider=mock_model(turns), tools=[plan]).send("go")
    noon = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
    assert seen == [(noon, datetime.date(2026, 3, 2))]
    assert json.loads(str(result.messages[2].content)) == {"at": "2026-03-01T13:00:00+00:00", "day": "2026-03-02"}
