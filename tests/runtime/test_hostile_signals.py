"""Signals that are aborted from anywhere, with anything, by many at once or by the clock."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import threading
import time
import weakref

import pytest
from hostile import within, wrong
from runs import WAIT

from lousho import CancelSignal, SDKError


def test_every_listener_hears_an_abort_though_others_raise(caplog):
    heard: list[int] = []
    source = CancelSignal()
    merged = CancelSignal.any(source)

    def sore(_: object) -> None:
        raise ValueError("no")

    for number in range(5):
        source.add_listener(sore)
        source.add_listener(lambda _, number=number: heard.append(number))
    with caplog.at_level(logging.WARNING, logger="lousho"):
        source.abort("enough")
    assert heard == [0, 1, 2, 3, 4]
    assert merged.aborted
    assert len(caplog.records) == 5


def test_timeouts_fire_in_their_order_and_not_before_their_time():
    fired: list[float] = []
    done = threading.Event()
    began = time.monotonic()
    signals = {ms: CancelSignal.timeout(ms) for ms in (800, 200, 600, 400, 0, -5)}

    def note(ms: float) -> None:
        fired.append(ms)
        if len(fired) == len(signals):
            done.set()

    for ms, signal in signals.items():
        signal.add_listener(lambda _, ms=ms: note(ms))
    assert done.wait(WAIT)
    assert time.monotonic() - began >= 0.8
    assert fired[-4:] == [200, 400, 600, 800]
    assert {type(signal.reason).__name__ for signal in signals.values()} == {"AbortTimeout"}


def test_a_timeout_that_only_a_listener_knows_of_still_fires():
    fired = threading.Event()
    CancelSignal.timeout(20).add_listener(lambda _: fired.set())
    gc.collect()
    assert fired.wait(WAIT)


def test_a_timeout_nobody_waits_for_is_forgotten():
    signal = CancelSignal.timeout(3_600_000)
    gone = weakref.ref(signal)
    remove = signal.add_listener(lambda _: None)
    remove()
    del signal, remove
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("ms", [math.nan, None, "5", [5]])
def test_a_timeout_that_is_no_number_is_refused_and_the_clock_goes_on(ms):
    with pytest.raises(SDKError) as caught:
        CancelSignal.timeout(wrong(ms))
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"
    CancelSignal.timeout(math.inf)
    CancelSignal.timeout(1e300)
    fired = threading.Event()
    CancelSignal.timeout(1).add_listener(lambda _: fired.set())
    assert fired.wait(WAIT)


async def test_an_abort_from_many_threads_has_one_reason_and_is_told_once():
    for _ in range(20):
        signal = CancelSignal()
        told: list[object] = []
        signal.add_listener(lambda one, told=told: told.append(one.reason))
        waiting = asyncio.ensure_future(signal.wait())
        await asyncio.sleep(0)
        ready = threading.Barrier(8)

        def abort(number: int, signal: CancelSignal = signal, ready: threading.Barrier = ready) -> None:
            ready.wait(WAIT)
            signal.abort(f"reason {number}")

        threads = [threading.Thread(target=abort, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        reason = await within(waiting)
        for thread in threads:
            thread.join(WAIT)
        assert told == [reason]
