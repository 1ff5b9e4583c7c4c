"""Long results on a disk that works against them: crowded, full, read-only, swapped, torn, or full of traps."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile import ANSWER, asks, chunks, play, told, within
from runs import call, calls, of_type

from lousho import Agent, ToolContext, allow, create_agent, define_tool, deny, tool
from lousho.models.provider import Finish
from lousho.testing import mock_model

READ = "read_tool_result"
NOTE = re.compile(r'Read them with (\w+)\(id="([^"]+)", offset=(\d+)\)\.\]')
LONG = "0123456789" * 1_000
UNIX = pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")


def says(text: Any, name: str = "log") -> Any:
    """A tool with a result of one's own choice."""
    return define_tool(name=name, description="Read the log", input={"type": "object"}, execute=lambda _: text)


def desk(folder: Path, *script: Any, tools: Any = None, above: int = 1_000, **options: Any) -> Agent:
    options.setdefault("max_steps", 500)
    return create_agent(
        provider=mock_model(script),
        tools=[says(LONG)] if tools is None else tools,
        tool_results={"spill_dir": folder, "above_chars": above},
        **options,
    )


def noted(content: object) -> tuple[str, str, int]:
    """Return the reader's name, the id and the offset that a transcript's note gives."""
    found = NOTE.search(str(content))
    assert found is not None, content
    return found[1], found[2], int(found[3])


def is_cut(content: object) -> bool:
    return "characters cut] ..." in str(content)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


# -- crowds --------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("BEY-36")
async def test_of_hundreds_of_results_at_once_in_one_folder_each_is_kept(tmp_path: Path):
    @tool
    def log(number: int) -> str:
        """Read a log."""
        return f"{number}:" + "x" * 3_000

    turn = calls(*[("log", {"number": number}) for number in range(100)])
    agents = [desk(tmp_path, turn, "Done.", tools=[log], max_tool_result_chars=1_500) for _ in range(4)]
    results = await asyncio.gather(*[agent.session("shared").send("go") for agent in agents])
    ids = [noted(message.content)[1] for result in results for message in result.messages if message.role == "tool"]
    assert len(ids) == 400
    assert len({path.parent for path in files(tmp_path)}) == 1  # all of them have the name of one session
    assert {path.stem for path in files(tmp_path)} == set(ids)
    assert len(set(ids)) == 100  # equal results of equal calls are one file
    assert {path.read_text(encoding="utf-8")[3:] for path in files(tmp_path)} <= {
        "x" * 3_000,
        "x" * 2_999,
        ":" + "x" * 2_999,
    }


@pytest.mark.spec("BEY-36")
async def test_a_hundred_results_under_one_call_id_are_a_hundred_files(tmp_path: Path):
    counter = iter(range(1_000))

    @tool
    async def log() -> str:
        """Read another log each time."""
        return f"{next(counter):04}" * 500

    turn = {"tool_calls": [{"id": "same/../id", "name": "log"}]}
    agent = desk(tmp_path, *[turn, "Done."] * 100, tools=[log])
    session = agent.session("s")
    for _ in range(100):
        await session.send("go")
    ids = [noted(message.content)[1] for message in session.messages if message.role == "tool"]
    assert len(set(ids)) == len(files(tmp_path)) == 100
    assert {path.stem for path in files(tmp_path)} == set(ids)


# -- every character -----------------------------------------------------------------------------------------------------

NASTY = "a\r\nb\rc\n\r\r\n\x00\ud800\udc00\ud83d\U0001f600\ufeff\u2028\x85\x1a\u00e9e\u0301\x0c\t\udfff"


@pytest.mark.spec("BEY-36", "TOOL-23")
@pytest.mark.parametrize("limit", [2, 7, 800])
@pytest.mark.parametrize("given", [NASTY * 60, [NASTY, {"k": NASTY}] * 30, "\r\n" * 600, "\r" * 1_001], ids=range(4))
async def test_all_pages_together_are_the_result_to_the_last_character(tmp_path: Path, given: Any, limit: int):
    pages: list[str] = []

    def next_page(request: Any) -> Any:
        said = str(request.messages[-1].content)
        if request.messages[-1].name != READ:
            return call(READ, id=noted(said)[1], limit=limit)
        heading, _, page = said.partition("\n")
        pages.append(page)
        follows = re.search(r"go on with offset=(\d+)", heading)
        return call(READ, id="call_1", offset=int(follows[1]), limit=limit) if follows else "Read."

    agent = desk(tmp_path, call("log"), *[next_page] * 3_000, tools=[says(given)], max_steps=3_000)
    events: list[Any] = []
    async for event in agent.stream("go"):
        events.append(event)
    result = of_type(events, "tool.done")[0].result
    whole = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, separators=(",", ":"))
    assert "".join(pages) == whole
    assert files(tmp_path)[0].read_bytes() == whole.encode("utf-8")


@pytest.mark.spec("BEY-36")
@pytest.mark.parametrize("most", [1_000, 500, 300, 200, 100])
async def test_however_little_a_model_may_read_it_is_told_where_the_rest_is(tmp_path: Path, most: int):
    agent = desk(tmp_path, call("log"), call(READ, id="call_1", offset=5_000), "Done.", max_tool_result_chars=most)
    note, page = [str(message.content) for message in (await agent.send("go")).messages if message.role == "tool"]
    name, result_id, offset = noted(note)
    assert (name, result_id) == (READ, "call_1")
    assert len(note) <= max(most, 120)
    assert note.startswith(LONG[:offset])
    assert not is_cut(note)
    heading, _, text = page.partition("\n")
    assert heading.startswith("[Characters 5000 to ")
    assert (text, LONG[5_000:].startswith(text)) != ("", False)
    assert len(page) <= most


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"offset": -1}, "validation"),
        ({"offset": 1.5}, "validation"),
        ({"offset": "ten"}, "validation"),
        ({"offset": True}, "validation"),
        ({"limit": -5}, "validation"),
        ({"limit": 0}, "validation"),
        ({"id": ["call_1"]}, "validation"),
        ({"id": "call_1\x00"}, "execution"),
        ({"id": "call_1.txt"}, "execution"),
        ({"id": "\U0001f600"}, "execution"),
        ({"offset": "10"}, None),
        ({"offset": 10.0}, None),
        ({"offset": 10**300}, None),
        ({"offset": 1e300}, None),
        ({"limit": 10**300}, None),
    ],
    ids=str,
)
async def test_no_offset_no_limit_and_no_id_gets_more_than_a_page(tmp_path: Path, arguments: Any, kind: str | None):
    answer = told(await desk(tmp_path, call("log"), call(READ, **{"id": "call_1", **arguments}), "Done.").send("go"))[1]
    if kind is None:
        assert answer.startswith("[")
        assert len(answer) <= 1_000
    else:
        assert answer["kind"] == kind
        assert str(tmp_path) not in json.dumps(answer)


# -- disks that fail -----------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount a disk")
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("no disk may be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.spec("BEY-36")
async def test_a_disk_that_is_full_costs_the_middles_of_the_results_that_do_not_fit(
    small_disk: Path, caplog: pytest.LogCaptureFixture
):
    @tool
    def log(size: int) -> str:
        """Read a log of a size."""
        return "x" * size

    sizes = [300_000, 3_000_000, 300_000, 2_000_000, 300_000, 300_000]
    turns = [call("log", size=size) for size in sizes]
    agent = desk(small_disk / "results", *turns, "Done.", tools=[log], max_tool_result_chars=2_000)
    with caplog.at_level(logging.WARNING, logger="lousho"):
        result = (await play(agent.stream("go"))).ended
    assert result.text == "Done."
    answers = [message.content for message in result.messages if message.role == "tool"]
    assert [is_cut(answer) for answer in answers] == [False, True, False, True, False, True]
    assert [path.stat().st_size for path in files(small_disk)] == [300_000] * 3
    assert len([record for record in caplog.records if "could not be kept" in record.getMessage()]) == 1


@pytest.mark.spec("BEY-36")
async def test_a_disk_that_becomes_read_only_can_still_be_read(small_disk: Path):
    def freeze(_: Any) -> Any:
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        return call("log")

    agent = desk(
        small_disk, call("log"), freeze, call(READ, id="call_1", limit=5), "Done.", max_tool_result_chars=2_000
    )
    kept, cut, page = told((await play(agent.stream("go"))).ended)
    assert noted(kept)[1] == "call_1"
    assert is_cut(cut)
    assert page.endswith("\n01234")


@UNIX
@pytest.mark.spec("BEY-36")
@pytest.mark.parametrize("place", ["nowhere", "itself", "a file", "a folder"])
async def test_a_place_that_is_a_link_is_used_where_it_leads_to_a_folder(tmp_path: Path, place: str):
    link, folder, file = tmp_path / "link", tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    file.write_text("mine", encoding="utf-8")
    link.symlink_to({"nowhere": tmp_path / "none", "itself": link, "a file": file, "a folder": folder}[place])
    agent = desk(link, call("log"), call(READ, id="call_1", limit=5), "Done.", max_tool_result_chars=2_000)
    result = (await play(agent.stream("go"))).ended
    kept, page = told(result)
    assert result.text == "Done."
    if place == "a folder":
        assert (noted(kept)[1], page[-5:], len(files(folder))) == ("call_1", "01234", 1)
    else:
        assert is_cut(kept)
        assert page["kind"] == "execution"
        assert str(tmp_path) not in page["message"]
    assert file.read_text(encoding="utf-8") == "mine"


@pytest.mark.spec("BEY-36")
async def test_a_folder_that_is_deleted_in_the_middle_of_a_run_is_made_anew(tmp_path: Path):
    folder = tmp_path / "results"

    def delete(_: Any) -> Any:
        shutil.rmtree(folder)
        return call(READ, id="call_1")

    agent = desk(folder, call("log"), delete, call("log"), call(READ, id="call_3", limit=5), "Done.")
    _, gone, _, page = told((await play(agent.stream("go"))).ended)
    assert gone["message"] == "There is no long result 'call_1'. Long results: none."
    assert page.endswith("\n01234")


# -- traps ---------------------------------------------------------------------------------------------------------------


@UNIX
@pytest.mark.parametrize("trap", ["a pipe", "a folder", "a link", "a link to a pipe", "without end", "no text", "gone"])
async def test_what_somebody_else_put_into_the_folder_stops_and_shows_nothing(tmp_path: Path, trap: str):
    """As a tool of the agent itself could, at the wish of the model."""
    secret = tmp_path / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    results = tmp_path / "results"

    def plant(_: Any) -> Any:
        (kept,) = files(results)
        place = kept.with_name("trap.txt")
        if trap == "a pipe":
            os.mkfifo(place)
        elif trap == "a folder":
            place.mkdir()
        elif trap == "a link":
            place.symlink_to(secret)
        elif trap == "a link to a pipe":
            os.mkfifo(tmp_path / "pipe")
            place.symlink_to(tmp_path / "pipe")
        elif trap == "without end":
            place.touch()
            os.truncate(place, 2**40)
        elif trap == "no text":
            place.write_bytes(b"\xff\xfe\x80" * 10)
        return call(READ, id="trap", offset=10**12 if trap == "without end" else 0)

    agent = desk(
        results,
        call("log"),
        plant,
        call("log"),
        call(READ, id="call_1", limit=5),
        "Done.",
        max_tool_result_chars=2_000,
    )
    _, answer, kept, page = told((await within(play(agent.stream("go")))).ended)
    if trap == "no text":
        assert answer.endswith("\n" + "\ufffd" * 30)
    else:
        assert answer["kind"] == "execution"
        assert "secret" not in json.dumps(answer)
        assert str(tmp_path) not in json.dumps(answer)
    assert is_cut(kept) == (trap == "without end")  # which leaves no room in the folder
    assert page.endswith("\n01234")


@pytest.mark.spec("BEY-36")
@pytest.mark.parametrize("folder", ["..", ".", "", "/", "../private", "session-../private", "a\x00b", "private"])
async def test_a_saved_run_that_was_changed_reads_no_other_folder(tmp_path: Path, folder: str):
    private = tmp_path / "private"
    private.mkdir()
    (private / "secret.txt").write_text("secret", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")

    @tool(needs_approval=True)
    async def asked() -> str:
        """Ask first."""
        return "asked"

    agent = desk(
        tmp_path / "results",
        call("log"),
        call("asked"),
        call(READ, id="secret"),
        "Done.",
        tools=[says(LONG), asked],
    )
    (tmp_path / "results").mkdir()
    shutil.copytree(private, tmp_path / "results" / "private")
    await agent.send("go")
    (step,) = await agent.approval_store.list()
    state = json.loads(step.state)
    key = next(name for name in state if name.lower().replace("_", "") == "resultsfolder")
    step.state = json.dumps({**state, key: folder})
    assert await agent.approval_store.save(step)
    result = await agent.approvals.resolve(id=step.approvals[0]["id"], approved=True)
    assert (told(result)[2]["kind"], result.text) == ("execution", "Done.")


@pytest.mark.spec("BEY-36")
async def test_only_ones_own_tool_of_the_readers_name_is_under_rules(tmp_path: Path):
    mine = define_tool(name=READ, description="Be here first", input={"type": "object"}, execute=lambda _: LONG)
    rules = [allow("log"), deny(READ, "not this one"), deny("*")]
    agent = desk(
        tmp_path,
        calls(("log", {}), (READ, {"id": "call_1"})),
        call(f"{READ}_2", id="call_1", limit=5),
        "Done.",
        tools=[says(LONG), mine],
        permissions=rules,
    )
    kept, denied, page = told((await play(agent.stream("go"))).ended)
    assert noted(kept)[0] == f"{READ}_2"
    assert denied["reason"] == "not this one"
    assert page.endswith("\n01234")


async def test_a_tool_of_one_call_may_have_the_readers_name_too(tmp_path: Path):
    extra = says(LONG, READ)
    agent = desk(tmp_path, call(READ), call(f"{READ}_2", id="call_1", limit=5), "Done.")
    kept, page = told(await agent.send("go", extra_tools=[extra]))
    assert noted(kept)[0] == f"{READ}_2"
    assert page.endswith("\n01234")


async def test_names_of_calls_that_are_hardly_names_are_kept_apart_and_inside(tmp_path: Path):
    ids = [
        "../x",
        "..\\x",
        "/x",
        "\u00e9",
        "\u0065\u0301",
        "X",
        "x",
        "x.txt",
        "x\n",
        "",
        ".",
        "NUL",
        "a" * 500,
        "a" * 501,
    ]
    turn = [asks("log", "{}", call_id) for call_id in ids]
    counter = iter(range(100))
    log = define_tool(
        name="log", description="Read", input={"type": "object"}, execute=lambda _: f"{next(counter):03}" * 500
    )
    agent = create_agent(
        provider=chunks([*turn, Finish("tool_calls")], ANSWER),
        tools=[log],
        tool_results={"spill_dir": tmp_path / "results", "above_chars": 1_000},
        tool_concurrency=1,
    )
    result = (await play(agent.stream("go"))).ended
    kept = [noted(message.content)[1] for message in result.messages if message.role == "tool"]
    assert len({one.lower() for one in kept}) >= len(ids) - 1  # `X` and `x` are two where case counts
    assert len(set(kept)) == len(ids)
    assert {path.parent.parent for path in files(tmp_path)} == {tmp_path / "results"}
    for number, result_id in enumerate(kept):
        (file,) = [path for path in files(tmp_path) if path.stem == result_id]
        assert file.read_text(encoding="utf-8").startswith(f"{number:03}")


# -- stops ---------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("BEY-36")
@pytest.mark.parametrize("stop", ["abort", "cancel"])
async def test_a_run_that_is_stopped_while_results_are_kept_has_each_of_them(tmp_path: Path, stop: str):
    done = asyncio.Event()

    @tool
    async def log(ctx: ToolContext) -> str:
        """Read the log."""
        done.set()
        return LONG

    agent = desk(tmp_path, calls(*[("log", {})] * 20), "Never.", tools=[log], max_tool_result_chars=2_000)
    session = agent.session("s")
    run = session.stream("go")
    task = asyncio.ensure_future(play(run))
    await within(done.wait())
    if stop == "abort":
        run.abort("enough")
        assert (await within(task)).ended.finish_reason == "aborted"
    else:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await run.aclose()
    answers = [message.content for message in await session.load() if message.role == "tool"]
    assert len(answers) == 20
    for answer in answers:
        assert NOTE.search(str(answer)) or is_cut(answer) or '"kind":"cancelled"' in str(answer)
    assert not [path for path in files(tmp_path) if path.suffix != ".txt" and ".part" not in path.name]


async def test_clearing_a_session_again_and_again_while_it_writes_fails_no_run(tmp_path: Path):
    agent = desk(tmp_path, *[calls(*[("log", {})] * 5), "Done."] * 20, max_tool_result_chars=2_000)
    other = desk(tmp_path)  # of the same name, so that it is the same folder
    running = agent.session("s")
    ended = asyncio.Event()

    async def clear() -> None:
        while not ended.is_set():
            try:
                await other.session("s").clear()
            except OSError:
                pass  # something of it stayed, as was said
            await asyncio.sleep(0)

    clearing = asyncio.ensure_future(clear())
    texts: list[str] = []
    for _ in range(20):
        texts.append((await running.send("go")).text)
    ended.set()
    await within(clearing)
    assert texts == ["Done."] * 20
