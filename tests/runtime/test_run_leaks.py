"""Thousands of runs of all kinds on one agent: afterwards no task, thread, file or memory of them is left, and no complaint."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from leak_kinds import KINDS, RELEASE, Kind, make_agent
from runs import WAIT
from sizes import sized

from lousho import Agent, CancelSignal

TOOL_THREAD = "lousho-tool"
MOST_TOOL_THREADS = 64
"""As documented; how many of them there are already depends on what else this process has run."""
CROWD = 32
"""Runs at once."""
BLOCKS_A_RUN = 0.25
"""Memory blocks a run may leave behind, on average: what keeps one object of each run leaves at least one."""
SLACK = 200
"""Memory blocks that come and go by themselves: caches of Python, of asyncio and of the test's own tools."""


class Complaints(logging.Handler):
    """Collects what nobody would see otherwise: log lines of asyncio, warnings, errors of threads and of finalizers."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record.getMessage())


@pytest.fixture
def complaints(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[Complaints]:
    caplog.set_level(logging.ERROR, logger="lousho")  # that a listener raised is a warning, and expected
    listener = Complaints()
    for name in ("asyncio", "lousho"):
        logging.getLogger(name).addHandler(listener)
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: listener.found.append(repr(raised)))
    monkeypatch.setattr(threading, "excepthook", lambda raised: listener.found.append(repr(raised)))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", lambda *told: listener.found.append(str(told)))
        yield listener
    for name in ("asyncio", "lousho"):
        logging.getLogger(name).removeHandler(listener)


@dataclass
class Held:
    """What the process holds at one moment."""

    tasks: int
    threads: int
    tool_threads: int
    files: int
    blocks: int
    objects: Counter[str]


def pending_tasks() -> int:
    """Return how many tasks are not done, on whatever event loop."""
    return sum(1 for one in gc.get_objects() if isinstance(one, asyncio.Task) and not one.done())


async def settle() -> None:
    """Let go whatever is still on its way, within a bound."""
    RELEASE.set()
    loop = asyncio.get_running_loop()
    until = loop.time() + WAIT
    while len(asyncio.all_tasks()) > 1 and loop.time() < until:
        await asyncio.sleep(0)
    for _ in range(3):
        await asyncio.to_thread(int)
    for _ in range(3):
        gc.collect()
    RELEASE.clear()


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Fill what a process fills once: the threads of blocking tools, and the cache of strings in pydantic's parser."""
    from pydantic import TypeAdapter

    async def run() -> None:
        agent, signal = make_agent(), CancelSignal()
        await crowd([KINDS["with threads that are overdue"]], agent, signal, 4 * CROWD)
        await settle()
        await crowd([*KINDS.values()], agent, signal, 8 * len(KINDS))
        await settle()

    for start in range(0, 100_000, 10_000):
        TypeAdapter(list[str]).validate_json(json.dumps([f"word {number}" for number in range(start, start + 10_000)]))
    asyncio.run(run())


async def held() -> Held:
    await settle()
    files = Path("/proc/self/fd")
    objects = Counter(type(one).__name__ for one in gc.get_objects())
    gc.collect()
    return Held(
        tasks=pending_tasks(),
        threads=sum(thread.name != TOOL_THREAD for thread in threading.enumerate()),
        tool_threads=sum(thread.name == TOOL_THREAD for thread in threading.enumerate()),
        files=len(list(files.iterdir())) if files.is_dir() else 0,
        blocks=sys.getallocatedblocks(),
        objects=objects,
    )


async def crowd(kinds: list[Kind], agent: Agent, signal: CancelSignal, count: int) -> None:
    """Run `count` runs, some at once, kinds in turn."""
    for start in range(0, count, CROWD):
        work = [kinds[n % len(kinds)](agent, signal, n) for n in range(start, min(start + CROWD, count))]
        await asyncio.wait_for(asyncio.gather(*work), WAIT * 4)
        if len(asyncio.all_tasks()) > CROWD * 8:
            await settle()


def check(before: Held, after: Held, runs: int, complaints: Complaints) -> None:
    grown = (after.objects - before.objects).most_common(8)
    assert complaints.found == []
    assert after.tasks <= before.tasks, f"{after.tasks - before.tasks} tasks are left"
    assert after.threads <= before.threads + 2, f"{before.threads} threads became {after.threads}"
    assert after.tool_threads <= MOST_TOOL_THREADS, f"{after.tool_threads} threads of tools"
    assert after.files <= before.files, f"{before.files} open files became {after.files}"
    left = after.blocks - before.blocks
    assert left <= SLACK + BLOCKS_A_RUN * runs, f"{left} memory blocks of {runs} runs are left; objects: {grown}"


@pytest.mark.spec("STRM-04", "STRM-07", "BEY-39")
async def test_thousands_of_runs_of_all_kinds_leave_nothing_behind(complaints: Complaints):
    agent, signal = make_agent(), CancelSignal()
    await crowd([*KINDS.values()], agent, signal, 4 * len(KINDS))
    before = await held()
    runs = sized(3_000, 40_000)
    await crowd([*KINDS.values()], agent, signal, runs)
    check(before, await held(), runs, complaints)


@pytest.mark.parametrize("kind", KINDS.values(), ids=[*KINDS])
async def test_runs_of_one_kind_leave_nothing_behind(kind: Kind, complaints: Complaints):
    agent, signal = make_agent(), CancelSignal()
    await crowd([kind], agent, signal, 3 * CROWD)
    before = await held()
    runs = sized(300, 4_000)
    await crowd([kind], agent, signal, runs)
    check(before, await held(), runs, complaints)
