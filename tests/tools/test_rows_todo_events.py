"""What a run says of its task list (stream-events page)."""

from __future__ import annotations

from typing import Any

import pytest
from runs import call, collect, of_type, types

from lousho import create_agent, create_todo_tools
from lousho.testing import mock_model

PLAN = [{"content": "Read", "status": "completed"}, {"content": "Write", "status": "in_progress"}]


@pytest.mark.spec("EVT-13")
async def test_a_changed_task_list_is_an_event_right_after_the_end_of_its_call():
    script = [
        call("todo_write", todos=PLAN),
        call("todo_write", todos=[{"content": "Write", "status": "done"}]),
        call("todo_read"),
        call("todo_write", todos=[*PLAN, {"content": "Print", "status": "pending"}]),
        "Done.",
    ]
    run = create_agent(provider=mock_model(script), tools=create_todo_tools().tools).stream("go")
    events = await collect(run)
    heard = [event.to_dict() for event in of_type(events, "todo.updated")]
    assert [one["toolCallId"] for one in heard] == ["call_1", "call_4"]  # not for a failure, not for reading
    first, second = heard
    ids = [task["id"] for task in first["todos"]]
    assert first["todos"] == [{"id": id_, **task} for id_, task in zip(ids, PLAN, strict=True)]
    assert len(set(ids)) == 2
    assert first["counts"] == {"pending": 0, "in_progress": 1, "completed": 1, "total": 2}
    assert second["counts"] == {"pending": 1, "in_progress": 1, "completed": 1, "total": 3}
    names = types(events)
    for place in [n for n, name in enumerate(names) if name == "todo.updated"]:
        assert names[place - 1] == "tool.done"
    assert set(first) == {"type", "runId", "seq", "timestamp", "v", "todos", "counts", "toolCallId"}


@pytest.mark.spec("EVT-13")
@pytest.mark.parametrize("todos", [[], [{"content": "One", "status": "pending"}]], ids=["empty", "one task"])
async def test_the_event_has_the_list_that_the_call_returned(todos: list[dict[str, Any]]):
    model = mock_model([call("todo_write", todos=todos), "Done."])
    events = await collect(create_agent(provider=model, tools=create_todo_tools().tools).stream("go"))
    (done,) = of_type(events, "tool.done")
    (updated,) = of_type(events, "todo.updated")
    wire = updated.to_dict()
    assert {"todos": wire["todos"], "counts": wire["counts"]} == done.to_dict()["result"]
    assert wire["counts"]["total"] == len(todos)
