"""Todo tools: the list a model keeps, its ids, where it is stored, who hears of it, and lists that are refused."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import WAIT, call, calls, collect, of_type, types

from lousho import CancelSignal, ConfigurationError, ToolExecutionError, create_agent, create_todo_tools
from lousho.testing import mock_model
from lousho.tools import Todo, TodoTools


def items(*tasks: str) -> list[dict[str, str]]:
    """Return a list to write: `+done`, `>doing`, `waiting`."""
    marks = {"+": "completed", ">": "in_progress"}
    return [{"content": task.lstrip("+>"), "status": marks.get(task[0], "pending")} for task in tasks]


def shown(todos: Any) -> list[str]:
    """Return a list as `todo_1 content status`."""
    return [f"{todo['id']} {todo['content']} {todo['status']}" for todo in todos]


async def answers(todos: TodoTools, *turns: Any) -> list[Any]:
    """Let a model make these calls, one a turn, and return what it reads of each."""
    agent = create_agent(provider=mock_model([*turns, "Done."]), tools=todos.tools)
    result = await agent.send("go")
    return [json.loads(str(message.content)) for message in result.messages if message.role == "tool"]


def write(*tasks: str) -> dict[str, Any]:
    return call("todo_write", todos=items(*tasks))


@pytest.mark.spec("TOOL-80", "API-36")
async def test_a_model_writes_its_plan_and_reads_it_back():
    todos = create_todo_tools()
    assert [tool.name for tool in todos.tools] == ["todo_write", "todo_read"]
    first, empty_then, second, read = await answers(
        todos,
        write("read the code", ">change it", "test it"),
        call("todo_read"),
        write("+read the code"),
        call("todo_read"),
    )
    assert first == {
        "todos": [
            {"id": "todo_1", "content": "read the code", "status": "pending"},
            {"id": "todo_2", "content": "change it", "status": "in_progress"},
            {"id": "todo_3", "content": "test it", "status": "pending"},
        ],
        "counts": {"pending": 2, "in_progress": 1, "completed": 0, "total": 3},
    }
    assert empty_then == first
    assert second == read
    assert second["todos"] == [{"id": "todo_1", "content": "read the code", "status": "completed"}]
    assert second["counts"] == {"pending": 0, "in_progress": 0, "completed": 1, "total": 1}
    assert await todos.get_todos() == todos.get_todos_sync() == second["todos"]


@pytest.mark.spec("TOOL-80")
async def test_before_the_first_write_the_list_is_empty_and_an_empty_list_clears_it():
    todos = create_todo_tools()
    nothing = {"todos": [], "counts": {"pending": 0, "in_progress": 0, "completed": 0, "total": 0}}
    assert await answers(todos, call("todo_read"), write("a"), write(), call("todo_read")) == [
        nothing,
        {**nothing, "todos": [{"id": "todo_1", "content": "a", "status": "pending"}]}
        | {"counts": {"pending": 1, "in_progress": 0, "completed": 0, "total": 1}},
        nothing,
        nothing,
    ]


@pytest.mark.spec("TOOL-81")
async def test_a_task_keeps_its_id_as_long_as_its_content_or_its_id_is_repeated():
    todos = create_todo_tools()
    await answers(todos, write("read", "change", "test"), write("test", ">change", "ship", " read "))
    assert shown(await todos.get_todos()) == [
        "todo_3 test pending",
        "todo_2 change in_progress",
        "todo_4 ship pending",
        "todo_1 read pending",
    ]
    renamed = [{"id": "todo_2", "content": "change all of it", "status": "pending"}, *items("change", "ship")]
    await answers(todos, call("todo_write", todos=renamed))
    assert shown(await todos.get_todos()) == [
        "todo_2 change all of it pending",
        "todo_5 change pending",
        "todo_4 ship pending",
    ]


@pytest.mark.spec("TOOL-81")
async def test_equal_contents_keep_ids_of_their_own_and_an_id_is_never_given_twice():
    todos = create_todo_tools()
    await answers(todos, write("run", "run"), write("run", "run", "run"), write("rest"), write("run"))
    assert shown(await todos.get_todos()) == ["todo_5 run pending"]
    await answers(
        todos, call("todo_write", todos=[{"id": "todo_9", "content": "own", "status": "pending"}]), write("new")
    )
    assert shown(await todos.get_todos()) == ["todo_10 new pending"]


TWO = [*items(">a", "b"), {"content": "c", "status": "in_progress"}]
INVALID: list[tuple[str, Any, list[str]]] = [
    ("two in progress", {"todos": TWO}, ["todos.2.status"]),
    ("three in progress", {"todos": items(">a", ">b", ">c")}, ["todos.1.status", "todos.2.status"]),
    ("an empty content", {"todos": items("a", "+ ")}, ["todos.1.content"]),
    ("no content", {"todos": [{"content": "", "status": "pending"}]}, ["todos.0.content"]),
    ("an unknown status", {"todos": [{"content": "a", "status": "done"}]}, ["todos.0.status"]),
    ("no status", {"todos": [{"content": "a"}]}, ["todos.0.status"]),
    ("texts", {"todos": ["a", "b"]}, ["todos.0", "todos.1"]),
    ("a text", {"todos": "a, b"}, ["todos"]),
    ("nothing", {}, ["todos"]),
    ("one id twice", {"todos": [{"id": "x", **items("a")[0]}, {"id": " x", **items("b")[0]}]}, ["todos.1.id"]),
    ("an empty id", {"todos": [{"id": " ", **items("a")[0]}]}, ["todos.0.id"]),
    ("a number as id", {"todos": [{"id": 1, **items("a")[0]}]}, ["todos.0.id"]),
    ("a very long id", {"todos": [{"id": "x" * 65, **items("a")[0]}]}, ["todos.0.id"]),
    ("101 tasks", {"todos": items(*(["a"] * 101))}, ["todos"]),
    ("a content of 401 characters", {"todos": items("a" * 401)}, ["todos.0.content"]),
]


@pytest.mark.spec("TOOL-81")
@pytest.mark.parametrize(("sent", "paths"), [one[1:] for one in INVALID], ids=[one[0] for one in INVALID])
async def test_a_list_that_is_not_valid_is_a_tool_error_and_changes_nothing(sent: Any, paths: list[str]):
    heard: list[Any] = []
    todos = create_todo_tools(on_change=heard.append)
    agent = create_agent(provider=mock_model([write("keep"), call("todo_write", **sent), "Done."]), tools=todos.tools)
    run = agent.stream("go")
    events = await collect(run)
    result = await run.result
    told = json.loads(str([message.content for message in result.messages if message.role == "tool"][1]))
    assert (told["error"], told["kind"], told["toolName"]) == (
        "ToolArgumentsValidationError",
        "validation",
        "todo_write",
    )
    assert [issue["path"] for issue in told["issues"]] == paths
    assert result.tool_errors == 1
    assert len(of_type(events, "todo.updated")) == len(heard) == 1
    assert shown(await todos.get_todos()) == ["todo_1 keep pending"]


@pytest.mark.spec("TOOL-81")
async def test_what_is_wrong_is_said_so_that_the_model_can_do_better():
    wrong, right = await answers(create_todo_tools(), write(">a", ">b"), write("+a", ">b"))
    assert "At most one task may be in_progress, and tasks 0, 1 are" in wrong["message"]
    assert right["counts"]["in_progress"] == 1


async def test_a_full_list_is_read_back_whole():
    todos = create_todo_tools()
    await answers(todos, write(*(f"{number:03} {'x' * 396}" for number in range(100))))
    (read,) = await answers(todos, call("todo_read"))
    assert (len(read["todos"]), read["todos"][99]["id"], len(read["todos"][99]["content"])) == (100, "todo_100", 400)


class DictStore:
    """A store with plain methods."""

    def __init__(self) -> None:
        self.saved: Any = None

    def get(self) -> Any:
        return self.saved

    def set(self, todos: list[Todo]) -> None:
        self.saved = todos


class AsyncStore:
    """A store that has to be awaited, and that gives way in between."""

    def __init__(self) -> None:
        self.saved: Any = None

    async def get(self) -> Any:
        found = self.saved
        await asyncio.sleep(0)
        return found

    async def set(self, todos: list[Todo]) -> None:
        await asyncio.sleep(0)
        self.saved = todos


def mapping_store() -> Any:
    inner = DictStore()
    return {"get": inner.get, "set": inner.set}


@pytest.mark.spec("TOOL-82", "API-36")
@pytest.mark.parametrize("make", [DictStore, AsyncStore, mapping_store])
async def test_a_store_keeps_the_list_and_another_set_of_tools_goes_on_with_it(make: Callable[[], Any]):
    store = make()
    await answers(create_todo_tools(store=store), write("read", ">change"))
    again = create_todo_tools(store=store)
    assert shown(await again.get_todos()) == ["todo_1 read pending", "todo_2 change in_progress"]
    await answers(again, write("change", "new"))
    assert shown(await create_todo_tools(store=store).get_todos()) == ["todo_2 change pending", "todo_3 new pending"]


@pytest.mark.spec("TOOL-82")
async def test_each_call_of_create_todo_tools_has_a_list_of_its_own():
    one, other = create_todo_tools(), create_todo_tools()
    await answers(one, write("mine"))
    assert (len(await one.get_todos()), await other.get_todos()) == (1, [])


@pytest.mark.spec("TOOL-82")
@pytest.mark.parametrize("waits", [False, True])
async def test_on_change_hears_every_new_list(waits: bool):
    heard: list[Any] = []

    async def hear(todos: list[Todo]) -> None:
        heard.append(shown(todos))

    todos = create_todo_tools(on_change=hear if waits else lambda todos: heard.append(shown(todos)))
    await answers(todos, write("a"), call("todo_read"), write("+a"))
    assert heard == [["todo_1 a pending"], ["todo_1 a completed"]]


async def test_a_list_that_was_handed_out_is_nobody_elses():
    store = DictStore()

    def spoil(todos: Any) -> None:
        todos[0]["content"] = "spoilt"
        todos.clear()

    todos = create_todo_tools(store=store, on_change=spoil)
    agent = create_agent(provider=mock_model([write("a"), "Done."]), tools=todos.tools)
    events = await collect(agent.stream("go"))
    event = of_type(events, "todo.updated")[0]
    (await todos.get_todos()).clear()
    event.todos.clear()
    assert shown(store.saved) == ["todo_1 a pending"]
    assert shown(of_type(events, "tool.done")[0].result["todos"]) == ["todo_1 a pending"]


async def test_an_on_change_that_raises_fails_nothing_and_is_logged_once(caplog: pytest.LogCaptureFixture):
    def angry(todos: list[Todo]) -> None:
        raise OSError("no screen")

    todos = create_todo_tools(on_change=angry)
    with caplog.at_level(logging.WARNING, logger="lousho.tools"):
        first, second = await answers(todos, write("a"), write("b"))
    assert ("todos" in first, "todos" in second) == (True, True)
    assert [record.message for record in caplog.records] == [
        "on_change of the todo tools raised; the list is kept all the same."
    ]


@pytest.mark.spec("TOOL-83")
async def test_a_write_that_succeeds_is_an_event_right_after_its_call():
    todos = create_todo_tools()
    agent = create_agent(
        provider=mock_model([write("a", ">b"), call("todo_read"), write("+a", "+b"), "Done."]), tools=todos.tools
    )
    events = await collect(agent.stream("go"))
    assert [name for name in types(events) if name.startswith(("tool.", "todo."))] == [
        *("tool.start", "tool.done", "todo.updated"),
        *("tool.start", "tool.done"),
        *("tool.start", "tool.done", "todo.updated"),
    ]
    first, last = of_type(events, "todo.updated")
    starts = [event.tool_call_id for event in of_type(events, "tool.start")]
    assert (first.tool_call_id, last.tool_call_id) == (starts[0], starts[2])
    wire = first.to_dict()
    assert wire["todos"] == [
        {"id": "todo_1", "content": "a", "status": "pending"},
        {"id": "todo_2", "content": "b", "status": "in_progress"},
    ]
    assert wire["counts"] == {"pending": 1, "in_progress": 1, "completed": 0, "total": 2}
    assert wire["toolCallId"] == starts[0]
    assert [todo["status"] for todo in last.todos] == ["completed", "completed"]


@pytest.mark.spec("TOOL-83")
@pytest.mark.parametrize("failing", ["get", "set"])
async def test_a_store_that_fails_is_a_failed_call_without_an_event(failing: str):
    store = DictStore()

    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    setattr(store, failing, fail)
    heard: list[Any] = []
    todos = create_todo_tools(store=store, on_change=heard.append)
    agent = create_agent(provider=mock_model([write("a"), "Done."]), tools=todos.tools)
    run = agent.stream("go")
    events = await collect(run)
    told = json.loads(str((await run.result).messages[2].content))
    assert (told["error"], told["message"], told["kind"]) == ("OSError", "the disk is full", "execution")
    assert (of_type(events, "todo.updated"), heard, store.saved) == ([], [], None)


@pytest.mark.parametrize("make", [create_todo_tools, lambda: create_todo_tools(store=AsyncStore())])
async def test_writes_of_one_step_happen_one_after_the_other(make: Callable[[], TodoTools]):
    todos = make()
    turn = calls(*(("todo_write", {"todos": items("shared", f"own {number}")}) for number in range(8)))
    agent = create_agent(provider=mock_model([turn, "Done."]), tools=todos.tools)
    run = agent.stream("go")
    events = of_type(await collect(run), "todo.updated")
    assert [shown(event.todos)[0] for event in events] == ["todo_1 shared pending"] * 8
    assert [shown(event.todos)[1] for event in events] == [f"todo_{n + 2} own {n} pending" for n in range(8)]
    assert shown(await todos.get_todos()) == ["todo_1 shared pending", "todo_9 own 7 pending"]


async def test_a_store_that_hangs_is_left_behind_with_its_run():
    store, asked = AsyncStore(), asyncio.Event()

    async def hang() -> Any:
        asked.set()
        await asyncio.Event().wait()

    todos = create_todo_tools(store={"get": hang, "set": store.set})
    signal = CancelSignal()
    agent = create_agent(provider=mock_model([write("a"), "Done."]), tools=todos.tools)
    run = agent.stream("go", signal=signal)
    await asyncio.wait_for(asked.wait(), WAIT)
    signal.abort("enough")
    assert of_type(await collect(run), "todo.updated") == []
    assert ((await run.result).finish_reason, store.saved) == ("aborted", None)


def test_the_blocking_calls_work_with_the_same_tools():
    todos = create_todo_tools()
    agent = create_agent(provider=mock_model([write("a"), "Done.", write("+a"), "Done."]), tools=todos.tools)
    agent.send_sync("go")
    assert shown(todos.get_todos_sync()) == ["todo_1 a pending"]
    asyncio.run(agent.send("go"))
    assert shown(todos.get_todos_sync()) == ["todo_1 a completed"]


def test_a_store_that_has_to_be_awaited_has_no_blocking_twin():
    with pytest.raises(ConfigurationError, match=r"await todos\.get_todos\(\)"):
        create_todo_tools(store=AsyncStore()).get_todos_sync()


@pytest.mark.parametrize("junk", ["text", 5, {"a": 1}, [5], [{"id": "a"}], [{**items("a")[0], "id": 5}]], ids=repr)
async def test_a_store_with_something_else_in_it_says_so(junk: Any):
    store = DictStore()
    store.saved = junk
    todos = create_todo_tools(store=store)
    with pytest.raises(ToolExecutionError, match=r"something else than a list of \{id, content, status\}"):
        await todos.get_todos()
    told = await answers(todos, write("a"))
    assert (told[0]["kind"], store.saved) == ("execution", junk)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"onChange": print}, "'onChange' is not a known option (did you mean 'on_change'?)"),
        ({"on_change": "print"}, "on_change must be a function"),
        ({"store": {}}, "the store has no get()"),
        ({"store": {"get": list}}, "the store has no set()"),
        ({"store": "todos.json"}, "the store has no get()"),
    ],
    ids=["a name of elsewhere", "a text", "an empty mapping", "half a store", "a file name"],
)
def test_what_is_no_option_is_refused(options: dict[str, Any], says: str):
    with pytest.raises(ConfigurationError) as caught:
        create_todo_tools(**options)
    assert (caught.value.code, says in caught.value.detail) == ("LOUSHO_CONFIG_INVALID", True)


TASKS = st.lists(
    st.fixed_dictionaries(
        {
            "content": st.sampled_from(["a", "b", "c", " a", "ä\ud800"]),
            "status": st.sampled_from(["pending", "completed"]),
        },
        optional={"id": st.sampled_from(["todo_1", "todo_2", "x"])},
    ),
    max_size=6,
    unique_by=lambda item: item.get("id", object()),
)


@given(st.lists(TASKS, min_size=1, max_size=6))
def test_whatever_is_written_ids_are_different_and_what_is_repeated_keeps_its_own(lists: list[Any]):
    todos = create_todo_tools()
    before: list[Todo] = []
    for written in lists:
        asyncio.run(todos.tools[0].execute({"todos": written}))
        after = todos.get_todos_sync()
        ids = [todo["id"] for todo in after]
        assert len(set(ids)) == len(ids) == len(written)
        for todo, item in zip(after, written, strict=True):
            assert todo["id"] == item.get("id", todo["id"])
        if all("id" not in item for item in written):
            for content in {todo["content"] for todo in before}:
                kept = [todo["id"] for todo in before if todo["content"] == content]
                now = [todo["id"] for todo in after if todo["content"] == content]
                assert now[: len(kept)] == kept[: len(now)]
        before = after
