"""Results that are too long for the transcript: in a file, shown by their ends, read page by page."""

from __future__ import annotations

import json
import logging
import re
import stat
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hostile import play, told
from runs import call, calls, of_type

from lousho import Agent, ConfigurationError, allow, create_agent, deny, tool
from lousho.testing import mock_model

LINES = "".join(f"line {number} of the log, with an \u00e4 and a \U0001f600\n" for number in range(2000))
READ = "read_tool_result"
NOTE = re.compile(
    r'\n\.\.\. \[([\d,]+) of ([\d,]+) characters are left out here\. Read them with (\w+)\(id="([^"]+)", offset=(\d+)\)\.\]'
    r" \.\.\.\n"
)


@tool
async def log(text: str = "") -> str:
    """Read the log."""
    return LINES + text


@tool
async def rows() -> list[dict[str, int]]:
    """Read a table."""
    return [{"row": number} for number in range(1000)]


def desk(folder: Path, *script: Any, above: int = 1000, **options: Any) -> Agent:
    options.setdefault("tools", [log, rows])
    return create_agent(
        provider=mock_model(script), tool_results={"spill_dir": folder, "above_chars": above}, max_steps=200, **options
    )


def noted(content: object) -> tuple[str, str, str, str]:
    """Return head, tail, id and offset of a transcript's note."""
    found = NOTE.search(str(content))
    assert found is not None, content
    text = str(content)
    return text[: found.start()], text[found.end() :], found[4], found[5]


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.spec("BEY-36", "TOOL-23")
async def test_a_long_result_is_whole_in_its_file_and_in_the_event_and_has_its_ends_in_the_transcript(tmp_path: Path):
    folder = tmp_path / "new" / "results"
    agent = desk(folder, call("log"), "Done.")
    played = await play(agent.stream("go"))
    content = played.ended.messages[2].content
    head, tail, result_id, offset = noted(content)
    assert len(str(content)) <= 1000
    assert (LINES.startswith(head), LINES.endswith(tail), int(offset)) == (True, True, len(head))
    assert f"{len(LINES):,} characters" in str(content)
    (file,) = files(folder)
    assert file.read_text(encoding="utf-8") == LINES
    assert file.stem == result_id == "call_1"
    assert of_type(played.events, "tool.done")[0].result == LINES
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert [stat.S_IMODE(part.stat().st_mode) for part in (file.parent, folder)] == [0o700, 0o700]


@pytest.mark.spec("BEY-36")
@pytest.mark.parametrize(("name", "whole"), [("log", LINES), ("rows", json.dumps([{"row": n} for n in range(1000)]))])
async def test_a_model_can_page_through_all_of_a_result(tmp_path: Path, name: str, whole: str):
    pages: list[str] = []

    def next_page(request: Any) -> Any:
        said = str(request.messages[-1].content)
        if request.messages[-1].name == READ:
            heading, _, page = said.partition("\n")
            pages.append(page)
            follows = re.search(r"go on with offset=(\d+)", heading)
            return call(READ, id="call_1", offset=int(follows[1])) if follows else "Read."
        head, _, result_id, offset = noted(said)
        pages.append(head)
        return call(READ, id=result_id, offset=int(offset))

    agent = create_agent(
        provider=mock_model([call(name), *[next_page] * 150]),
        tools=[log, rows],
        tool_results={"spill_dir": tmp_path, "above_chars": 2000},
        max_steps=200,
    )
    result = await agent.send("go")
    assert result.text == "Read."
    assert "".join(pages) == (whole if name == "log" else whole.replace(" ", ""))
    assert len(files(tmp_path)) == 1  # pages are never kept themselves


@pytest.mark.spec("BEY-36")
async def test_the_reader_is_offered_only_where_results_are_kept(tmp_path: Path):
    with_files = desk(tmp_path, "Hi.")
    without = create_agent(provider=mock_model(["Hi."]), tools=[log])
    no_tools = desk(tmp_path, "Hi.", tools=[])
    offered: list[list[str]] = []
    for agent in (with_files, without, no_tools):
        await agent.send("go")
        offered.append([one.function.name for one in agent.provider.calls[0].tools])  # type: ignore[attr-defined]
    assert offered == [["log", "rows", READ], ["log"], []]


async def test_a_tool_that_has_the_name_of_the_reader_keeps_it(tmp_path: Path):
    @tool(name=READ)
    async def mine() -> str:
        """Be here first."""
        return LINES

    agent = desk(tmp_path, call(READ), call(f"{READ}_2", id="call_1", limit=6), "Done.", tools=[mine])
    result = await agent.send("go")
    assert NOTE.search(str(result.messages[2].content))[3] == f"{READ}_2"  # type: ignore[index]
    assert told(result)[1].endswith("\nline 0")


@pytest.mark.parametrize(("length", "kept"), [(1000, False), (1001, True)])
async def test_a_result_of_just_the_limit_stays_where_it_is(tmp_path: Path, length: int, kept: bool):
    @tool
    async def text() -> str:
        """Be of a length."""
        return "x" * length

    result = await desk(tmp_path, call("text"), "Done.", tools=[text]).send("go")
    assert (NOTE.search(str(result.messages[2].content)) is not None) == kept
    assert len(files(tmp_path)) == kept


@pytest.mark.spec("BEY-36")
async def test_only_results_of_ones_own_can_be_read(tmp_path: Path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    folder = tmp_path / "results"
    names = [
        "../secret",
        "../../secret",
        str(secret),
        str(secret.with_suffix("")),
        "",
        ".",
        "..",
        "nothing",
        "a" * 5000,
    ]
    names += ["call_1.txt", "call_1/../call_1", "\x00", "CALL_1\n", "link"]
    other = desk(folder, call("log", text="of another"), "Done.")
    await other.session("other").send("go")
    (theirs,) = files(folder)
    names.append(f"../{theirs.parent.name}/call_1")

    def plant(_: Any) -> Any:
        mine = next(path for path in folder.iterdir() if path != theirs.parent)
        (mine / "link.txt").symlink_to(secret)
        return calls(*[(READ, {"id": name}) for name in names])

    result = await desk(folder, call("log"), plant, "Done.").session("mine").send("go")
    answers = told(result)[1:]
    assert [one["kind"] for one in answers] == ["execution"] * len(names)
    assert all("secret" not in one["message"].replace(repr(name), "") for one, name in zip(answers, names, strict=True))
    assert "Long results: call_1" in answers[7]["message"]


@pytest.mark.parametrize(
    ("arguments", "starts"),
    [
        pytest.param({"offset": 10, "limit": 5}, "[Characters 10 to 15; go on with offset=15.]\n", id="a part"),
        pytest.param({"limit": 10**9}, "[Characters 0 to 800; go on with offset=800.]\nline 0", id="more than a page"),
        pytest.param(
            {"offset": len(LINES) - 5}, f"[Characters {len(LINES) - 5} to {len(LINES)}; the end.]\n", id="end"
        ),
        pytest.param({"offset": len(LINES)}, f"[The result ends before character {len(LINES)}.]", id="behind"),
        pytest.param({"offset": 10**30}, f"[The result ends before character {10**30}.]", id="far behind"),
    ],
)
async def test_a_page_says_where_it_is_and_what_follows(tmp_path: Path, arguments: Any, starts: str):
    result = await desk(tmp_path, call("log"), call(READ, id="call_1", **arguments), "Done.").send("go")
    page = str(result.messages[4].content)
    assert page.startswith(starts)
    assert len(page) <= 1000


@pytest.mark.parametrize("arguments", [{"offset": -1}, {"limit": 0}, {"id": 7}, {"offset": "a"}])
async def test_a_page_that_cannot_be_is_refused(tmp_path: Path, arguments: Any):
    result = await desk(tmp_path, call("log"), call(READ, **{"id": "call_1", **arguments}), "Done.").send("go")
    assert told(result)[1]["kind"] == "validation"


@pytest.mark.spec("BEY-36")
async def test_the_turns_of_a_session_share_its_results_and_no_other_session_has_them(tmp_path: Path):
    read = call(READ, id="call_1", limit=6)
    agent = desk(tmp_path, call("log"), "Kept.", read, "Read.", read, "Not mine.", read, "Nor mine.")
    await agent.session("Ada").send("go")
    again = await agent.session("Ada").send("go on")
    assert told(again)[-1].endswith("\nline 0")
    for name in ("Bob", "ada"):  # the last is the same folder on a disk that ignores case
        other = await agent.session(name).send("go")
        assert told(other)[-1]["kind"] == "execution"


@pytest.mark.spec("BEY-36")
async def test_clearing_a_session_removes_its_results_and_no_others(tmp_path: Path):
    agent = desk(tmp_path, *[call("log"), "Done."] * 3)
    for name in ("mine", "other"):
        await agent.session(name).send("go")
    await agent.send("go")
    assert len(files(tmp_path)) == 3
    await agent.session("mine").clear()
    left = [path.name for path in tmp_path.iterdir()]
    assert len(left) == 2
    assert not any(name.startswith("session-mine") for name in left)
    assert await agent.session("never").clear() == 0


async def test_results_under_one_call_id_are_kept_apart_and_equal_ones_are_one(tmp_path: Path):
    def log_again(text: str) -> Any:
        return {"tool_calls": [{"id": "same", "name": "log", "args": {"text": text}}]}

    agent = desk(tmp_path, log_again("a"), "1", log_again("b"), "2", log_again("a"), "3")
    session = agent.session("s")
    for _ in range(3):
        await session.send("go")
    ids = [noted(message.content)[2] for message in session.messages if message.role == "tool"]
    assert ids == ["same", "same-2", "same"]
    assert [path.read_text(encoding="utf-8")[-1] for path in files(tmp_path)] == ["b", "a"]


@pytest.mark.parametrize(
    "odd", ["../../up", "/etc/x", "a b\n", "\u00e9\u00e9", "x" * 5000, "CON", ".", "a\x00b", "-rf"]
)
async def test_a_call_id_of_any_kind_makes_a_file_inside_of_the_folder(tmp_path: Path, odd: str):
    turn = {"tool_calls": [{"id": odd, "name": "log"}]}

    def read(request: Any) -> Any:
        return call(READ, id=noted(request.messages[-1].content)[2], limit=6)

    folder = tmp_path / "results"
    result = await desk(folder, turn, read, "Done.").send("go")
    assert str(result.messages[4].content).endswith("\nline 0")
    (file,) = files(tmp_path)
    assert file.parent.parent == folder


@pytest.mark.spec("BEY-36")
async def test_rules_that_deny_everything_else_let_a_model_read_what_it_was_given(tmp_path: Path):
    rules = [allow("log"), deny("*")]
    agent = desk(tmp_path, call("log"), call(READ, id="call_1", limit=6), "Done.", permissions=rules)
    assert told(await agent.send("go"))[1].endswith("\nline 0")


async def test_results_of_generators_and_of_approved_calls_are_kept_as_well(tmp_path: Path):
    @tool
    async def growing() -> AsyncIterator[str]:
        """Grow."""
        yield LINES[:5000]
        yield LINES

    @tool(needs_approval=True)
    def asked() -> str:
        """Ask first."""
        return LINES

    agent = desk(tmp_path, calls(("growing", {}), ("asked", {})), "Done.", tools=[growing, asked])
    paused = await agent.send("go")
    result = await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert [noted(message.content)[2] for message in result.messages if message.role == "tool"] == ["call_1", "call_2"]
    assert [path.read_text(encoding="utf-8") for path in files(tmp_path)] == [LINES, LINES]
    assert len({path.parent for path in files(tmp_path)}) == 1


async def test_failures_are_not_kept(tmp_path: Path):
    @tool
    async def fail() -> str:
        """Fail at length."""
        raise LookupError(LINES)

    result = await desk(tmp_path, call("fail"), "Done.", tools=[fail]).send("go")
    assert told(result)[0]["message"].endswith("... (truncated)")
    assert files(tmp_path) == []


async def test_the_cap_on_results_holds_for_those_that_are_kept_and_for_those_that_are_too_short_for_it(tmp_path: Path):
    agent = desk(tmp_path, call("log"), "Done.", above=10**6, max_tool_result_chars=3000)
    content = str((await agent.send("go")).messages[2].content)
    assert "characters cut] ..." in content
    assert files(tmp_path) == []
    agent = desk(tmp_path, call("log"), "Done.", above=5000, max_tool_result_chars=300)
    content = str((await agent.send("go")).messages[2].content)
    assert len(content) < 400
    assert len(files(tmp_path)) == 1


# -- disks that fail -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("BEY-36")
@pytest.mark.parametrize("place", ["a file", "below a file", *(["no disk"] if sys.platform == "linux" else [])])
async def test_a_place_that_cannot_be_written_costs_one_warning_and_the_middle_of_the_result(
    tmp_path: Path, place: str, caplog: pytest.LogCaptureFixture
):
    file = tmp_path / "file"
    file.write_text("mine", encoding="utf-8")
    folder = {"a file": file, "below a file": file / "below", "no disk": Path("/proc/lousho/results")}[place]
    with caplog.at_level(logging.WARNING, logger="lousho"):
        result = await desk(folder, call("log"), call("log", text="x"), "Done.", max_tool_result_chars=2000).send("go")
    assert result.text == "Done."
    for message in (result.messages[2], result.messages[4]):
        assert "characters cut] ..." in str(message.content)
        assert not message.is_error
    assert len([record for record in caplog.records if str(folder) in record.getMessage()]) == 1
    assert file.read_text(encoding="utf-8") == "mine"


async def test_a_folder_that_somebody_else_put_there_as_a_link_is_not_followed(tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = tmp_path / "results"
    agent = desk(
        folder, call("log"), "Done.", call("log"), call(READ, id="call_1"), "Done.", max_tool_result_chars=2000
    )
    await agent.session("s").send("go")
    (file,) = files(folder)
    file.unlink()
    file.parent.rmdir()
    file.parent.symlink_to(elsewhere, target_is_directory=True)
    (elsewhere / "call_1.txt").write_text("planted", encoding="utf-8")
    result = await agent.session("s").send("go")
    assert "characters cut] ..." in str(result.messages[6].content)
    assert told(result)[-1]["kind"] == "execution"
    assert [path.name for path in files(elsewhere)] == ["call_1.txt"]


async def test_a_result_that_is_larger_than_a_file_may_be_is_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    @tool
    async def huge() -> str:
        """Return too much."""
        return "x" * (64 * 2**20 + 1)

    result = await desk(tmp_path, call("huge"), "Done.", tools=[huge]).send("go")
    assert "characters cut] ..." in str(result.messages[2].content)
    assert files(tmp_path) == []
    assert "67,108,865 bytes" in caplog.text


FULL_DISK = """
    import asyncio, resource, sys
    from pathlib import Path
    from lousho import create_agent, tool
    from lousho.testing import mock_model

    @tool
    def log() -> str:
        '''Read the log.'''
        return "x" * 100_000

    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    turn = {"tool_calls": [{"name": "log"}]}
    agent = create_agent(
        provider=mock_model([turn, "Done."]), tools=[log], tool_results={"spill_dir": sys.argv[1], "above_chars": 1000}
    )
    result = agent.send_sync("go")
    print(result.text, "characters cut" in result.messages[2].content)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_disk_that_is_full_in_the_middle_of_a_file_leaves_none_behind(tmp_path: Path):
    assert run_program(tmp_path, FULL_DISK, str(tmp_path / "results")).splitlines()[-1] == "Done. True"
    assert files(tmp_path / "results") == []


PAUSING = """
    import sys
    from dataclasses import asdict
    import json
    from pathlib import Path
    from lousho import create_agent, tool
    from lousho.stores.protocol import PausedStepRecord
    from lousho.testing import mock_model

    verb, folder, place = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])

    @tool
    def log() -> str:
        '''Read the log.'''
        return "0123456789" * 1000

    @tool(needs_approval=True)
    def deploy() -> str:
        '''Deploy.'''
        return "deployed"

    script = {
        "pause": [{"tool_calls": [{"name": "log"}]}, {"tool_calls": [{"name": "deploy"}]}],
        "resume": [{"tool_calls": [{"name": "read_tool_result", "args": {"id": "call_1", "offset": 995, "limit": 10}}]}, "Ok."],
    }[verb]
    agent = create_agent(
        provider=mock_model(script), tools=[log, deploy], tool_results={"spill_dir": place, "above_chars": 1000}
    )
    kept = folder / "paused.json"
    import asyncio

    async def main() -> None:
        if verb == "pause":
            await agent.send("go")
            (step,) = await agent.approval_store.list()
            kept.write_text(json.dumps(asdict(step)), encoding="utf-8")
            return
        step = PausedStepRecord(**{**json.loads(kept.read_text(encoding="utf-8")), "revision": 0})
        await agent.approval_store.save(step)
        result = await agent.approvals.resolve(id=step.approvals[0]["id"], approved=True)
        print([m.content for m in result.messages if m.name == "read_tool_result"][0])

    asyncio.run(main())
"""


@pytest.mark.spec("BEY-36")
def test_a_run_that_goes_on_in_another_process_reads_what_it_kept_before(tmp_path: Path):
    run_program(tmp_path, PAUSING, "pause", str(tmp_path), str(tmp_path / "results"))
    page = run_program(tmp_path, PAUSING, "resume", str(tmp_path), str(tmp_path / "results"))
    assert page.strip() == "[Characters 995 to 1005; go on with offset=1005.]\n5678901234"


def run_program(folder: Path, program: str, *arguments: str) -> str:
    script = folder / "program.py"
    script.write_text(textwrap.dedent(program), encoding="utf-8")
    command = [sys.executable, str(script), *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"above_chars": 5000},
        {"spill_dir": "x", "above_chars": 10},
        {"spill_dir": 7},
        {"spill_dir": "x", "more": 1},
        7,
    ],
    ids=str,
)
def test_a_place_that_makes_no_sense_is_refused_where_it_is_given(given: Any):
    with pytest.raises(ConfigurationError, match="tool_results"):
        create_agent(provider=mock_model([]), tool_results=given)
