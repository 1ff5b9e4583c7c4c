"""Recording that is disturbed: places that cannot be written, other recordings, calls that are stopped."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lousho.core.cancel import CancelSignal
from lousho.core.errors import SDKError
from lousho.models.provider import TextDelta
from lousho.testing import CassetteWriteError, mock_model, read_cassette, record_replay

AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def entries_of(cassette: Path) -> list[dict[str, Any]]:
    return json.loads(cassette.read_text(encoding="utf-8"))["entries"]


async def test_two_recordings_into_one_file_never_mix_and_the_loser_is_told(ask: Any, cassette: Path):
    one = record_replay(mock_model(["one"] * 3), cassette=cassette, mode="record")
    other = record_replay(mock_model(["other"] * 3), cassette=cassette, mode="record")
    await one.generate(ask("1"))
    await other.generate(ask("1"))
    with pytest.raises(CassetteWriteError, match="Another recording"):
        await one.generate(ask("2"))
    assert [entry["response"]["text"] for entry in entries_of(cassette)] == ["other"]


def test_processes_that_record_at_the_same_time_leave_one_whole_recording(tmp_path: Path):
    program = """
import asyncio, sys
from lousho.testing import mock_model, record_replay
from lousho.core.errors import SDKError

async def main(who):
    provider = record_replay(mock_model([who] * 15), cassette="shared.json", mode="record")
    for number in range(15):
        await provider.generate({"messages": [{"role": "user", "content": who * 2000}]})

try:
    asyncio.run(main(sys.argv[1]))
except SDKError as error:
    print(error.code)
"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, who], cwd=tmp_path, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        for who in ("a", "b")
    ]
    printed = {process.communicate(timeout=50)[0].strip() for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    assert printed <= {"", "LOUSHO_STORAGE_FAILED"}
    texts = [entry.response["text"] for entry in read_cassette(tmp_path / "shared.json").entries if entry.response]
    assert len(set(texts)) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["shared.json"]


async def test_a_place_that_cannot_be_written_is_found_before_the_model_is_called(ask: Any, tmp_path: Path):
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    (tmp_path / "folder.json").mkdir()
    for path in (tmp_path / "file" / "flow.json", tmp_path / "folder.json"):
        model = mock_model(["costly"])
        with pytest.raises(CassetteWriteError) as caught:
            await record_replay(model, cassette=path, mode="record").generate(ask("hi"))
        assert (caught.value.code, caught.value.cassette, len(model.calls)) == ("LOUSHO_STORAGE_FAILED", str(path), 0)


@pytest.mark.skipif(AS_ROOT, reason="root writes into read-only folders")
async def test_a_read_only_folder_is_found_before_the_model_is_called(ask: Any, tmp_path: Path):
    tmp_path.chmod(0o500)
    try:
        model = mock_model(["costly"])
        with pytest.raises(CassetteWriteError, match="cannot be written"):
            await record_replay(model, cassette=tmp_path / "flow.json", mode="record").generate(ask("hi"))
        assert len(model.calls) == 0
    finally:
        tmp_path.chmod(0o700)


async def test_a_write_that_fails_later_loses_nothing(ask: Any, cassette: Path):
    recording = record_replay(mock_model(["one", "two"]), cassette=cassette, mode="record")
    await recording.generate(ask("1"))
    good = cassette.read_bytes()
    moved = cassette.parent.rename(cassette.parent.with_name("moved"))
    cassette.parent.write_text("in the way", encoding="utf-8")
    with pytest.raises(CassetteWriteError) as caught:
        await recording.generate(ask("2"))
    assert caught.value.code == "LOUSHO_STORAGE_FAILED"
    assert (moved / "flow.json").read_bytes() == good
    cassette.parent.unlink()
    moved.rename(cassette.parent)
    await recording.save()
    assert [entry["response"]["text"] for entry in entries_of(cassette)] == ["one", "two"]


@pytest.mark.soak
async def test_a_recording_that_grows_past_the_limit_keeps_the_last_good_file(ask: Any, vendor: Any, cassette: Path):
    recording = record_replay(vendor(["small", "x" * (64 * 1024 * 1024)]), cassette=cassette, mode="record")
    await recording.generate(ask("1"))
    good = cassette.read_bytes()
    with pytest.raises(CassetteWriteError, match="more than the limit"):
        await recording.generate(ask("2"))
    assert cassette.read_bytes() == good


async def test_a_missing_key_is_not_recorded_over_a_good_cassette(ask: Any, vendor: Any, cassette: Path):
    await record_replay(mock_model(["good"]), cassette=cassette, mode="record").generate(ask("hi"))
    good = cassette.read_bytes()
    no_key = SDKError("no key", code="LOUSHO_PROVIDER_MISSING_API_KEY")
    with pytest.raises(SDKError, match="no key"):
        await record_replay(vendor([no_key]), cassette=cassette, mode="record").generate(ask("hi"))
    with pytest.raises(SDKError, match="no key"):
        async for _ in record_replay(vendor([[no_key]]), cassette=cassette, mode="record").stream(ask("hi")):
            pass
    with pytest.raises(SDKError, match="unexpected|script"):
        await record_replay(mock_model([]), cassette=cassette, mode="record").generate(ask("hi"))
    assert cassette.read_bytes() == good


async def test_a_broken_old_file_does_not_stop_a_recording(ask: Any, cassette: Path):
    cassette.parent.mkdir()
    cassette.write_text('{"entries": [', encoding="utf-8")
    await record_replay(mock_model(["new"]), cassette=cassette, mode="record").generate(ask("hi"))
    assert [entry["response"]["text"] for entry in entries_of(cassette)] == ["new"]


async def test_a_call_stopped_by_its_caller_is_stopped_again_in_the_replay(ask: Any, vendor: Any, cassette: Path):
    signal = CancelSignal()

    async def stopped(_: Any) -> Any:
        signal.abort("changed my mind")
        signal.throw_if_aborted()

    recording = record_replay(vendor([stopped, "answer"]), cassette=cassette, mode="record")
    with pytest.raises(Exception, match="changed my mind"):
        await recording.generate(ask("slow", signal=signal))
    await recording.generate(ask("next"))

    replay = record_replay(cassette=cassette)
    again = CancelSignal()
    call = asyncio.create_task(replay.generate(ask("slow", signal=again)))
    await asyncio.sleep(0)
    assert not call.done()
    again.abort("stopped again")
    with pytest.raises(Exception, match="stopped again"):
        await asyncio.wait_for(call, 5)
    assert (await replay.generate(ask("next"))).text == "answer"


async def test_a_cancelled_call_keeps_its_place(ask: Any, vendor: Any, cassette: Path):
    begun = asyncio.Event()

    async def forever(_: Any) -> Any:
        begun.set()
        await asyncio.Event().wait()

    recording = record_replay(vendor([forever, "answer"]), cassette=cassette, mode="record")
    call = asyncio.create_task(recording.generate(ask("slow")))
    await asyncio.wait_for(begun.wait(), 5)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await recording.generate(ask("next"))
    assert [entry.get("error", {}).get("aborted") for entry in entries_of(cassette)] == [True, None]

    replay = record_replay(cassette=cassette)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(replay.generate(ask("slow")), 0.05)
    assert (await replay.generate(ask("next"))).text == "answer"


async def test_a_cancelled_stream_keeps_its_place_and_its_chunks(ask: Any, vendor: Any, cassette: Path):
    begun = asyncio.Event()

    async def forever(_: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def read(provider: Any, seen: list[Any]) -> None:
        async for chunk in provider.stream(ask("slow")):
            seen.append(chunk)

    recording = record_replay(vendor([[TextDelta("so far"), forever]]), cassette=cassette, mode="record")
    task = asyncio.create_task(read(recording, []))
    await asyncio.wait_for(begun.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    seen: list[Any] = []
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(read(record_replay(cassette=cassette), seen), 0.1)
    assert seen == [TextDelta("so far")]


async def test_a_stream_that_nobody_reads_leaves_no_entry(ask: Any, cassette: Path):
    recording = record_replay(mock_model(["one", "two"]), cassette=cassette, mode="record")
    recording.stream(ask("never read"))
    await recording.generate({"messages": [{"role": "user", "content": "read"}]})
    assert [entry["request"]["messages"][0]["content"] for entry in entries_of(cassette)] == ["read"]


async def test_a_link_stays_a_link(ask: Any, tmp_path: Path):
    real = tmp_path / "real.json"
    link = tmp_path / "link.json"
    link.symlink_to(real)
    await record_replay(mock_model(["x"]), cassette=link, mode="record").generate(ask("hi"))
    assert link.is_symlink()
    assert len(entries_of(real)) == 1
