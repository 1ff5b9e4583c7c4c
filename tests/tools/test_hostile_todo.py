"""A plan under attack: stores that break or never answer, crowds that write it, ids that collide, text of any kind."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hostile import ANSWER, asks, chunks, play, told, within
from runs import call, calls, of_type

from lousho import Agent, create_agent, create_todo_tools
from lousho.models.provider import Finish
from lousho.testing import mock_model
from lousho.tools import TodoTools


def task(content: str, todo_id: str | None = None, status: str = "pending") -> dict[str, str]:
    return {"content": content, "status": status, **({} if todo_id is None else {"id": todo_id})}


def write(*tasks: dict[str, str]) -> dict[str, Any]:
    return call("todo_write", todos=list(tasks))


def planner(todos: TodoTools, *script: Any, **options: Any) -> Agent:
    return create_agent(provider=mock_model(script), tools=todos.tools, max_steps=500, **options)


async def answers(todos: TodoTools, *turns: Any) -> list[Any]:
    return told((await play(planner(todos, *turns, "Done.").stream("go"))).ended)


class Shelf:
    """A store of which everything can be seen and changed."""

    def __init__(self, kept: Any = None) -> None:
        self.kept = kept

    def get(self) -> Any:
        return self.kept

    def set(self, todos: Any) -> None:
        self.kept = todos


# -- stores --------------------------------------------------------------------------------------------------------------


class Torn(Mapping[str, Any]):
    """A record that breaks when it is read."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("torn")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("torn")

    def __len__(self) -> int:
        return 3


def breaking_off() -> Iterator[Any]:
    yield {"id": "a", "content": "a", "status": "pending"}
    raise OSError("the cable was pulled")


@pytest.mark.spec("TOOL-83")
@pytest.mark.parametrize(
    "make",
    [
        lambda: itertools.repeat({"id": "a", "content": "a", "status": "pending"}),
        lambda: [{"id": "a", "content": "a", "status": "pending"}] * 10_001,
        lambda: itertools.count(),
        breaking_off,
        lambda: [Torn()],
        lambda: [{"id": "a", "content": "a", "status": ["pending"]}],
        lambda: [{"id": 1, "content": "a", "status": "pending"}],
        lambda: [{"content": "a", "status": "pending"}],
        lambda: [None],
        lambda: "todo_1",
        lambda: b"[]",
        lambda: {"todos": []},
        lambda: 7,
        lambda: object(),
        lambda: NotImplemented,
    ],
    ids=range(15),
)
async def test_whatever_a_store_gives_that_is_no_list_of_tasks_fails_the_call_and_nothing_else(make: Any):
    saved: list[Any] = []
    todos = create_todo_tools(store={"get": make, "set": saved.append})
    read, written = await within(answers(todos, call("todo_read"), write(task("a"))))
    assert (read["kind"], written["kind"], saved) == ("execution", "execution", [])


@pytest.mark.spec("TOOL-83")
@pytest.mark.parametrize(
    "error", [OSError("full"), SystemExit(3), asyncio.CancelledError(), StopIteration(7)], ids=repr
)
@pytest.mark.parametrize("where", ["get", "set"])
@pytest.mark.parametrize("waits", [False, True])
async def test_whatever_a_store_raises_fails_the_call_and_the_next_one_works(error: Any, where: str, waits: bool):
    shelf, failed = Shelf(), asyncio.Event()

    def act(name: str, *given: Any) -> Any:
        if name == where and not failed.is_set():
            failed.set()
            raise error
        return getattr(shelf, name)(*given)

    async def act_later(name: str, *given: Any) -> Any:
        await asyncio.sleep(0)
        return act(name, *given)

    use = act_later if waits else act
    todos = create_todo_tools(store={"get": lambda: use("get"), "set": lambda given: use("set", given)})
    agent = planner(todos, write(task("a")), write(task("b")), "Done.")
    played = await play(agent.stream("go"))
    first, second = told(played.ended)
    assert first["kind"] == "execution"
    assert [todo["content"] for todo in second["todos"]] == ["b"]
    assert len(of_type(played.events, "todo.updated")) == 1
    assert [todo["content"] for todo in await todos.get_todos()] == ["b"]


@pytest.mark.parametrize("obeys", [True, False], ids=["until it is cancelled", "whatever happens"])
async def test_a_store_that_hangs_costs_its_call_the_time_limit_and_no_later_one_more(obeys: bool):
    shelf, release, hung = Shelf(), asyncio.Event(), [True]

    async def get() -> Any:
        if hung.pop():
            hung.append(False)
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    if obeys:
                        raise
        else:
            hung.append(False)
        return shelf.get()

    todos = create_todo_tools(store={"get": get, "set": shelf.set})
    hurried = [tool.replace(timeout_ms=30) for tool in todos.tools]

    def let_go(_: Any) -> Any:
        release.set()
        return write(task("c"))

    model = mock_model([write(task("a")), write(task("b")), let_go, "Done."])
    result = (await play(create_agent(provider=model, tools=hurried).stream("go"))).ended
    first, second, third = told(result)
    assert first["error"] == "TimeoutError"
    if obeys:
        assert second["todos"][0]["content"] == "b"
    else:  # it still holds its turn; nothing is written past it
        assert second["error"] == "TimeoutError"
    assert third["todos"][0]["content"] == "c"
    assert [todo["content"] for todo in shelf.kept] == ["c"]


async def test_a_store_that_changes_what_it_gets_and_gives_changes_nothing_of_what_the_model_reads():
    shelf = Shelf()

    def keep(todos: list[Any]) -> None:
        shelf.kept = [dict(todo) for todo in todos]
        for todo in todos:
            todo.clear()
        todos.append("rubbish")

    todos = create_todo_tools(store={"get": shelf.get, "set": keep})
    written, read = await answers(todos, write(task("a"), task("b")), call("todo_read"))
    assert written == read
    assert [todo["id"] for todo in read["todos"]] == ["todo_1", "todo_2"]


async def test_a_store_with_more_tasks_than_a_model_may_write_is_read_and_written_anew():
    shelf = Shelf([{"id": f"todo_{n}", "content": f"task {n}", "status": "pending", "extra": n} for n in range(1, 501)])
    read, written = await answers(
        create_todo_tools(store=shelf), call("todo_read"), write(task("task 77"), task("new"))
    )
    assert read["counts"]["total"] == 500
    assert [todo["id"] for todo in written["todos"]] == ["todo_77", "todo_501"]


# -- crowds --------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("TOOL-80")
@pytest.mark.parametrize("most", [1, 3, "unbounded"])
async def test_of_two_hundred_writes_of_one_step_each_is_whole_and_the_last_one_stays(most: Any):
    todos = create_todo_tools()
    turn = calls(*[("todo_write", {"todos": [task("shared"), task(f"own {number}")]}) for number in range(200)])
    played = await play(planner(todos, turn, "Done.", tool_concurrency=most).stream("go"))
    updates = of_type(played.events, "todo.updated")
    assert [update.todos for update in updates] == [one["todos"] for one in told(played.ended)]
    assert [update.todos[1]["content"] for update in updates] == [f"own {number}" for number in range(200)]
    assert len({update.todos[1]["id"] for update in updates}) == 200
    assert {update.todos[0]["id"] for update in updates} == {"todo_1"}
    assert await todos.get_todos() == updates[-1].todos


async def test_two_agents_that_write_one_list_at_once_never_give_one_id_to_two_tasks():
    shelf = Shelf()

    async def get() -> Any:
        await asyncio.sleep(0)
        return shelf.get()

    async def keep(todos: Any) -> None:
        await asyncio.sleep(0)
        shelf.set(todos)

    todos = create_todo_tools(store={"get": get, "set": keep})
    turns = [[write(task("shared"), task(f"{name} {number}")) for number in range(50)] for name in ("left", "right")]
    runs = [planner(todos, *script, "Done.").stream("go") for script in turns]
    played = await asyncio.gather(*[play(run) for run in runs])
    updates = [update for one in played for update in of_type(one.events, "todo.updated")]
    owners: dict[str, set[str]] = {}
    for update in updates:
        for todo in update.todos:
            owners.setdefault(todo["id"], set()).add(todo["content"])
    assert len(updates) == 100
    assert all(len(contents) == 1 for contents in owners.values())
    assert len(owners) == 101


def test_threads_with_event_loops_of_their_own_leave_a_whole_list():
    todos = create_todo_tools()
    results: list[Any] = []

    def work(name: str) -> None:
        turns = [write(task("shared"), task(f"{name} {number}")) for number in range(20)]
        results.append(asyncio.run(planner(todos, *turns, "Done.").send("go")))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [(result.text, result.tool_errors) for result in results] == [("Done.", None)] * 4
    last = todos.get_todos_sync()
    assert last[0]["content"] == "shared"
    assert len({todo["id"] for todo in last}) == len(last) == 2


# -- ids and texts -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("TOOL-80")
@pytest.mark.parametrize(
    "highest", ["todo_1", "todo_999999998", "todo_999999999", "todo_9999999999", "todo_" + "9" * 40]
)
async def test_ids_stay_different_whatever_numbers_a_model_gives_and_whoever_goes_on(highest: str):
    shelf = Shelf()
    plan = [task("a", highest), task("b"), task("c")]
    for _ in range(3):  # as processes that know nothing of one another
        await answers(create_todo_tools(store=shelf), write(*plan))
        plan = [*[task(todo["content"]) for todo in shelf.kept], task(f"new {len(plan)}"), task(f"newer {len(plan)}")]
    await answers(create_todo_tools(store=shelf), write(*plan))
    ids = [todo["id"] for todo in shelf.kept]
    assert len(ids) == len(set(ids)) == 9
    assert ids[0] == highest


@pytest.mark.parametrize(
    "ids",
    [
        ["x", "x"],
        ["x", " x "],
        ["todo_1", "todo_1\n"],
        ["\\ud800", "\\udfff"],
        ["a\\ud800b", "a\ufffdb"],
    ],
    ids=str,
)
async def test_ids_that_would_be_one_are_refused_and_change_nothing(ids: list[str]):
    todos = create_todo_tools()
    await answers(todos, write(task("before")))
    given = ", ".join(f'{{"id": "{one}", "content": "x", "status": "pending"}}'.replace("\n", "\\n") for one in ids)
    provider = chunks([asks("todo_write", f'{{"todos": [{given}]}}'), Finish("tool_calls")], ANSWER)
    played = await play(create_agent(provider=provider, tools=todos.tools).stream("go"))
    (refused,) = told(played.ended)
    assert (refused["kind"], refused["issues"][0]["path"]) == ("validation", "todos.1.id")
    assert [todo["content"] for todo in await todos.get_todos()] == ["before"]


async def test_half_characters_are_replaced_everywhere_and_whole_ones_stay():
    heard: list[Any] = []
    shelf = Shelf()
    todos = create_todo_tools(store=shelf, on_change=heard.append)
    text = '{"todos": [{"content": "a\\ud800 \\ud83d\\ude00 \\u0000", "status": "pending"}]}'
    provider = chunks([asks("todo_write", text), Finish("tool_calls")], ANSWER)
    played = await play(create_agent(provider=provider, tools=todos.tools).stream("go"))
    content = "a\ufffd \U0001f600 \x00"
    (update,) = of_type(played.events, "todo.updated")
    read = told(played.ended)[0]["todos"]
    assert [one[0]["content"] for one in (heard[0], shelf.kept, update.todos, read)] == [content] * 4


@pytest.mark.spec("TOOL-80")
@pytest.mark.parametrize(
    "plan",
    [
        [task(f"task {number}") for number in range(101)],
        [task("x")] * 20_000,
        [task("x" * 401)],
        [task("\U0001f600" * 401)],
        [task("\u200b \u3000"), task(" ")],
        [task("x", "i" * 49)],
        [task("x", "")],
        [task("x", status="done")],
        [task("x", status="in_progress"), task("y", status="in_progress")],
        [["x"]],
        "x",
        None,
        [[]] * 3,
    ],
    ids=lambda plan: repr(plan)[:40],
)
async def test_a_list_that_is_too_long_too_wide_or_none_is_refused_and_changes_nothing(plan: Any):
    todos = create_todo_tools()
    _, refused = await answers(todos, write(task("before")), call("todo_write", todos=plan))
    assert refused["kind"] == "validation"
    assert len(json.dumps(refused)) < 100_000
    assert [todo["content"] for todo in await todos.get_todos()] == ["before"]


async def test_the_largest_list_of_the_widest_characters_is_written_read_and_told():
    todos = create_todo_tools()
    plan = [task(f"{number:03}" + "\U0001f600" * 397, f"{number:03}" + "i" * 45, "completed") for number in range(100)]
    played = await play(planner(todos, write(*plan), call("todo_read"), "Done.").stream("go"))
    written, read = told(played.ended)
    assert written == read
    assert read["counts"]["total"] == len(of_type(played.events, "todo.updated")[0].todos) == 100


# -- listeners and changed tools -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    "error", [ValueError("no"), SystemExit(3), asyncio.CancelledError(), StopIteration()], ids=repr
)
async def test_whatever_on_change_raises_fails_nothing_and_is_logged_once(
    error: BaseException, waits: bool, caplog: pytest.LogCaptureFixture
):
    def fail(_: Any) -> None:
        raise error

    async def fail_later(_: Any) -> None:
        await asyncio.sleep(0)
        raise error

    todos = create_todo_tools(on_change=fail_later if waits else fail)
    with caplog.at_level(logging.WARNING, logger="lousho"):
        played = await play(planner(todos, write(task("a")), write(task("b")), "Done.").stream("go"))
    assert played.ended.tool_errors is None
    assert len(of_type(played.events, "todo.updated")) == 2
    assert [todo["content"] for todo in await todos.get_todos()] == ["b"]
    assert len([record for record in caplog.records if "on_change" in record.getMessage()]) == 1


async def test_a_run_that_is_stopped_while_on_change_waits_ends_at_once_with_the_list_kept():
    waiting = asyncio.Event()

    async def wait(_: Any) -> None:
        waiting.set()
        await asyncio.Event().wait()

    todos = create_todo_tools(on_change=wait)
    run = planner(todos, write(task("a")), "Never.").stream("go")
    playing = asyncio.ensure_future(play(run))
    await within(waiting.wait())
    run.abort("enough")
    played = await within(playing)
    assert played.ended.finish_reason == "aborted"
    assert told(played.ended)[0]["kind"] == "cancelled"
    assert [todo["content"] for todo in await todos.get_todos()] == ["a"]


async def test_on_change_may_read_the_list_and_spoil_what_it_was_given():
    seen: list[Any] = []

    async def spoil(given: list[Any]) -> None:
        seen.append(await todos.get_todos())
        given.clear()

    todos = create_todo_tools(on_change=spoil)
    written, read = await within(answers(todos, write(task("a")), call("todo_read")))
    assert written == read
    assert seen == [read["todos"]]


async def test_the_tools_can_have_other_names_a_gate_and_two_of_them_one_list():
    todos = create_todo_tools()
    plan, look = todos.tools[0].replace(name="plan", needs_approval=True), todos.tools[1].replace(name="look")
    both = calls(("plan", {"todos": [task("a")]}), ("look", {}), ("plan", {"todos": [task("b"), task("", "x")]}))
    agent = create_agent(provider=mock_model([both, "Done."]), tools=[plan, look])
    result = await agent.send("go")
    for approval_id in result.approval_ids:
        result = await agent.approvals.resolve(id=approval_id, approved=True)
    written, looked, refused = told(result)
    assert looked["counts"]["total"] == 0  # it need not wait
    assert written["todos"] == await todos.get_todos()
    assert refused["toolName"] == "plan"
    assert refused["kind"] == "validation"
    assert "todo_write" not in refused["message"]
