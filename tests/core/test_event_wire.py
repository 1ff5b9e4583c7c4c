"""Events on the wire: every class there and back, unknown ones passed by, malformed ones refused."""

from __future__ import annotations

import dataclasses
import json
import typing
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

import lousho
from lousho import (
    ConfigurationError,
    ErrorInfo,
    RunStartEvent,
    TextDeltaEvent,
    UnknownEvent,
    event_from_dict,
    is_agent_event,
    is_step_event,
    is_text_event,
    is_tool_event,
)
from lousho.core.events import EVENT_CLASSES
from lousho.core.unset import UNSET
from lousho.core.usage import ModelSpend, RunUsage, StepUsage

USAGE = StepUsage(input_tokens=1, output_tokens=2, total_tokens=3, cost_usd=0.5)
RUN_USAGE = RunUsage(
    input_tokens=1,
    output_tokens=2,
    total_tokens=3,
    model_calls=1,
    by_model={"p/m": ModelSpend(model_calls=1, input_tokens=1, output_tokens=2, total_tokens=3)},
)


def sample_of(hint: Any) -> Any:
    """Return some value of a field's type."""
    options = typing.get_args(hint)
    if hint is Any:
        return {"free": [1, None]}
    if typing.get_origin(hint) is typing.Literal:
        return options[0]
    for kind, value in ((RunUsage, RUN_USAGE), (StepUsage, USAGE), (ErrorInfo, ErrorInfo(name="E", message="m"))):
        if hint is kind:
            return value
    if options and type(None) in options:
        return sample_of(next(option for option in options if option is not type(None)))
    return {str: "text", int: 3, float: 2.5, bool: True, dict: {"a": 1}, list: ["x"]}[typing.get_origin(hint) or hint]


def full_event(cls: Any) -> Any:
    hints = typing.get_type_hints(cls)
    values = {f.name: sample_of(hints[f.name]) for f in dataclasses.fields(cls)}
    return cls(**{**values, "seq": 4, "v": 1, "timestamp": "2026-10-01T09:30:00.000Z", "run_id": "r"})


@pytest.mark.spec("EVT-50", "EVT-02")
@pytest.mark.parametrize("name", sorted(EVENT_CLASSES))
def test_every_event_class_survives_the_wire_with_all_its_fields(name):
    event = full_event(EVENT_CLASSES[name])
    wire = json.loads(json.dumps(event.to_dict()))
    assert wire["type"] == name
    assert event_from_dict(wire) == event
    assert is_agent_event(wire)
    assert getattr(lousho, EVENT_CLASSES[name].__name__) is EVENT_CLASSES[name]


@pytest.mark.spec("EVT-02")
@pytest.mark.parametrize("name", sorted(EVENT_CLASSES))
def test_optional_fields_without_a_value_are_not_on_the_wire(name):
    cls = EVENT_CLASSES[name]
    hints = typing.get_type_hints(cls)
    required = {
        f.name: sample_of(hints[f.name])
        for f in dataclasses.fields(cls)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    }
    event = cls(**required, run_id="r", seq=0, timestamp="t")
    wire = event.to_dict()
    assert None not in wire.values()
    assert UNSET not in wire.values()
    assert event_from_dict(wire) == event


@pytest.mark.spec("EVT-50")
def test_guards_tell_families_apart_for_events_and_wire_data():
    base = {"runId": "r", "seq": 0, "timestamp": "", "v": 1}
    start: dict[str, Any] = {**base, "type": "tool.start", "toolCallId": "c", "toolName": "t", "args": {}}
    delta = TextDeltaEvent(text="x")
    assert [is_tool_event(start), is_text_event(start), is_step_event(start)] == [True, False, False]
    assert [is_tool_event(delta), is_text_event(delta), is_step_event(delta)] == [False, True, False]
    assert is_step_event({**base, "type": "step.start", "step": 1})
    assert isinstance(event_from_dict({**base, "type": "run.start", "agentName": "a"}), RunStartEvent)


@pytest.mark.spec("EVT-50")
@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"agentName": None}, id="null for a text"),
        pytest.param({"agentName": 3}, id="a number for a text"),
        pytest.param({"seq": "0"}, id="a text for a number"),
        pytest.param({"seq": True}, id="a bool for a number"),
        pytest.param({"v": 2}, id="another schema version"),
        pytest.param({"agentId": []}, id="a wrong optional field"),
        pytest.param({"runId": None}, id="no run"),
    ],
)
def test_malformed_wire_data_is_not_an_event(broken):
    good: Any = {"type": "run.start", "runId": "r", "seq": 0, "timestamp": "", "v": 1, "agentName": "a"}
    assert not is_agent_event({**good, **broken})
    with pytest.raises(ConfigurationError, match="Not an agent event"):
        event_from_dict({**good, **broken})
    assert is_agent_event(good)
    for nothing in (None, 3, "run.start", [], {}):
        assert not is_agent_event(nothing)


@pytest.mark.spec("EVT-51")
def test_unknown_types_and_fields_are_put_up_with():
    wire = {"type": "planet.aligned", "runId": "r", "seq": 9, "timestamp": "t", "v": 1, "planet": "Mars"}
    event = event_from_dict(wire)
    assert isinstance(event, UnknownEvent)
    assert (event.to_dict(), event.run_id, event.seq) == (wire, "r", 9)
    assert not is_agent_event(wire)
    newer = {"type": "text.delta", "runId": "r", "seq": 1, "timestamp": "t", "v": 1, "text": "x", "mood": "good"}
    assert event_from_dict(newer) == TextDeltaEvent(text="x", run_id="r", seq=1, timestamp="t")
    assert is_agent_event(newer)


@hypothesis.given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["type", "v", "runId", "seq", "text", "error"]), inner, max_size=5)
        ),
        max_leaves=10,
    )
)
def test_no_wire_data_makes_the_guard_raise(value):
    assert is_agent_event(value) in (True, False)
