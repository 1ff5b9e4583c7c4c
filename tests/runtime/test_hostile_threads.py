"""Plain functions that never return: the threads they take are bounded, and a run is never frozen by those of another.

Programs of their own, because the threads belong to the whole process.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import run_program

HANGING = """
import logging, time

release = threading.Event()
began = threading.Semaphore(0)
started = []

@tool
def hang() -> str:
    "Hang."
    started.append(1)
    began.release()
    release.wait()
    return "late"

@tool
def quick() -> str:
    "Be quick."
    return "quick"

@tool
async def awaited() -> str:
    "Need no thread."
    return "awaited"

def agent(*script, **options):
    return create_agent(provider=mock_model(script), tools=[hang, quick, awaited], **options)

async def ask(*names, **options):
    began_at = time.monotonic()
    result = await asyncio.wait_for(agent(call(*names), "Done.", **options).send("go"), 20)
    answers = [message.content for message in result.messages if message.role == "tool"]
    return answers, time.monotonic() - began_at

async def take_all():
    for _ in range(40):
        answers, _ = await ask(*["hang"] * 64, tool_timeout_ms=250)
        if all("all 256 threads" in one for one in answers):
            return
"""


def test_tools_that_hang_beyond_their_limit_take_no_thread_from_later_runs():
    ended = run_program(
        HANGING
        + """
async def main():
    answers, _ = await ask(*["hang"] * 70, tool_timeout_ms=300)
    texts = "did not finish within 300 ms.", "did not begin within 300 ms, because all threads for plain functions are busy."
    print(sum(any(text in one for text in texts) for one in answers), 64 <= len(started) <= 70)
    print((await ask("quick"))[0], (await ask("quick", tool_timeout_ms=5000))[0])
    release.set()

asyncio.run(main())
"""
    )
    assert (ended.lines, ended.errors) == (["70 True", "['quick'] ['quick']"], "")


def test_when_hundreds_hang_for_good_each_further_call_fails_at_once_and_says_why():
    ended = run_program(
        HANGING
        + """
async def main():
    await take_all()
    print(threading.active_count() <= 257, len(started))
    for options in ({}, {"tool_timeout_ms": 5000}):
        answers, seconds = await ask("quick", "awaited", **options)
        print(*answers, seconds < 3)
    release.set()
    while threading.active_count() > 66:
        await asyncio.sleep(0.01)
    print((await ask(*["quick"] * 200))[0] == ["quick"] * 200)

asyncio.run(main())
"""
    )
    refused = (
        '{"error":"ToolExecutionError","toolName":"quick","message":"The call did not begin: all 256 threads for plain '
        'functions are taken by earlier calls that were given up and never ended.","kind":"execution"} awaited True'
    )
    assert (ended.lines, ended.errors) == (["True 256", refused, refused, "True"], "")


@pytest.mark.parametrize("stop", ["signal.abort()", "task.cancel()"])
def test_the_threads_of_a_run_that_was_stopped_are_replaced_and_what_waited_never_begins(stop: str):
    ended = run_program(
        HANGING
        + f"""
async def main():
    signal = CancelSignal()
    task = asyncio.ensure_future(agent(call(*["hang"] * 100)).send("go", signal=signal))
    for _ in range(64):
        await asyncio.to_thread(began.acquire, timeout=10)
    {stop}
    await asyncio.wait([task], timeout=10)
    print(task.done(), (await ask(*["quick"] * 100))[0] == ["quick"] * 100, len(started))
    release.set()

asyncio.run(main())
"""
    )
    assert (ended.lines, ended.errors) == (["True True 64"], "")


def test_a_call_that_waits_for_threads_at_work_says_so_in_the_log_and_runs_when_one_is_free():
    ended = run_program(
        HANGING
        + """
warned = []

class Hear(logging.Handler):
    def emit(self, record):
        warned.append(record.getMessage())
        release.set()

logging.getLogger("lousho").addHandler(Hear(logging.WARNING))

async def main():
    going = asyncio.ensure_future(ask(*["hang"] * 64))
    for _ in range(64):
        await asyncio.to_thread(began.acquire, timeout=10)
    limited, _ = await ask("quick", tool_timeout_ms=50)
    print(limited[0])
    print(await asyncio.gather(*[ask("quick") for _ in range(3)]) != [], (await going)[0] == ["late"] * 64)
    print(len(warned), warned[0])

asyncio.run(main())
"""
    )
    limited, ran, warned = ended.lines
    assert "did not begin within 50 ms, because all threads for plain functions are busy." in limited
    assert ran == "True True"
    assert warned.startswith("1 A tool call has waited 5 s for a thread, because all 64 are busy.")


def test_a_long_result_is_cut_at_once_where_no_thread_is_left_to_keep_it(tmp_path: Path):
    ended = run_program(
        HANGING
        + f"""
@tool
async def log() -> str:
    "Read the log."
    return "x" * 100_000

async def main():
    await take_all()
    began_at = time.monotonic()
    reader = create_agent(
        provider=mock_model([call("log"), "Done."]),
        tools=[log],
        tool_results={{"spill_dir": {str(tmp_path)!r}, "above_chars": 1000}},
    )
    result = await reader.send("go")
    print(result.text, "characters cut]" in result.messages[2].content, time.monotonic() - began_at < 5)

asyncio.run(main())
"""
    )
    assert ended.lines == ["Done. True True"]
    assert "could not be kept" in ended.errors
    assert "all 256 threads" in ended.errors
