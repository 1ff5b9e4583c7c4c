"""One turn at a time in a session, in the order they were asked for, whichever event loop asks.

A turn that is asked for by the work of another one (a tool, a listener) would wait for itself when both are of one
session, or when two sessions ask each other. That is refused instead: who is inside of which turn is kept in a context
variable, which tasks and tool threads inherit.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType

from lousho.core.cancel import CancelSignal
from lousho.core.errors import SDKError


@dataclass(eq=False, slots=True)
class _Turn:
    """A turn that runs or waits to run."""

    lock: TurnLock
    loop: asyncio.AbstractEventLoop
    ready: asyncio.Future[bool] | None = None
    """Set while it waits: `True` when it is its turn, `False` when it was aborted before."""
    waits_for: list[TurnLock] = field(default_factory=list["TurnLock"])
    """What the work inside of it waits for."""


_inside: ContextVar[tuple[_Turn, ...]] = ContextVar("lousho_turns", default=())
_guard = threading.Lock()


class TurnLock:
    """A first-come lock that tasks of several event loops can share (the blocking calls have a loop of their own)."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self.owner: _Turn | None = None
        """The turn that runs, or that was just told that it may."""
        self._waiters: deque[_Turn] = deque()

    @property
    def held(self) -> bool:
        """Whether a turn is running."""
        with _guard:
            return self.owner is not None and not self.owner.loop.is_closed()

    def turn(self, signal: CancelSignal | None = None) -> Place:
        """Return the place of a new turn: `async with lock.turn() as ours` waits for it.

        `ours` is `False` when `signal` was aborted while it waited. Raises `LOUSHO_SESSION_BUSY` when the turn would
        wait for one that waits for it.
        """
        return Place(self, signal)

    def enter(self, turn: _Turn, inside: tuple[_Turn, ...]) -> None:
        """Take the lock for `turn`, or a place in the queue (then `turn.ready` is set)."""
        with _guard:
            if self.owner is not None and self.owner.loop.is_closed():
                self._hand_over()  # its event loop was closed in the middle of the turn: nobody else will
            if self.owner is None:
                self.owner = turn
                return
            if self._waits_for_one_of(inside):
                raise SDKError(
                    f"A turn of session {self._session_id!r} was asked for from inside a turn that would have to wait "
                    "for it, so both would wait for ever. Ask for it after that turn has ended, or use a session of "
                    "its own or agent.send().",
                    code="LOUSHO_SESSION_BUSY",
                )
            turn.ready = turn.loop.create_future()
            self._waiters.append(turn)
            for outer in inside:
                outer.waits_for.append(self)

    def leave_queue(self, turn: _Turn) -> None:
        """Give up a place in the queue, or the lock if it was handed over meanwhile."""
        with _guard:
            if turn in self._waiters:
                self._waiters.remove(turn)
                return
        if turn.ready is not None and turn.ready.done() and not turn.ready.cancelled() and turn.ready.result():
            self.release(turn)

    def release(self, turn: _Turn) -> None:
        """Hand the lock to whoever waits first."""
        with _guard:
            if self.owner is turn:
                self._hand_over()

    def _hand_over(self) -> None:
        self.owner = None
        while self._waiters:
            turn = self._waiters.popleft()
            try:
                turn.loop.call_soon_threadsafe(self._wake, turn)
            except RuntimeError:  # that loop is closed: nobody waits there any more
                continue
            self.owner = turn
            return

    def _wake(self, turn: _Turn) -> None:
        if turn.ready is None or turn.ready.done():  # it gave up meanwhile: the lock is ours to pass on
            self.release(turn)
        else:
            turn.ready.set_result(True)

    def _waits_for_one_of(self, inside: tuple[_Turn, ...]) -> bool:
        """Whether the turn that has this lock is one of `inside`, or waits for one of them."""
        seen: set[TurnLock] = set()
        waiting: list[TurnLock] = [self]
        while waiting:
            lock = waiting.pop()
            owner = lock.owner
            if lock in seen or owner is None:
                continue
            if owner in inside:
                return True
            seen.add(lock)
            waiting.extend(owner.waits_for)
        return False


class Place:
    """A place in the queue of a session's turns."""

    __slots__ = ("_inside", "_lock", "_signal", "_turn")

    def __init__(self, lock: TurnLock, signal: CancelSignal | None) -> None:
        self._lock = lock
        self._signal = signal
        self._inside: tuple[_Turn, ...] = ()
        self._turn: _Turn | None = None

    async def __aenter__(self) -> bool:
        self._inside = _inside.get()
        turn = _Turn(self._lock, asyncio.get_running_loop())
        self._lock.enter(turn, self._inside)
        if turn.ready is not None and not await self._wait(turn, turn.ready):
            return False
        self._turn = turn
        _inside.set((*self._inside, turn))
        return True

    async def _wait(self, turn: _Turn, ready: asyncio.Future[bool]) -> bool:
        def give_up(_: object) -> None:
            try:
                turn.loop.call_soon_threadsafe(lambda: ready.done() or ready.set_result(False))
            except RuntimeError:  # the loop is closed: nobody waits any more
                return

        stop_listening = self._signal.add_listener(give_up) if self._signal is not None else None
        ours = False
        try:
            ours = await ready
        finally:
            if not ours:
                self._lock.leave_queue(turn)
            if stop_listening is not None:
                stop_listening()
            with _guard:
                for outer in self._inside:
                    outer.waits_for.remove(self._lock)
        return ours

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._turn is not None:
            _inside.set(self._inside)
            self._lock.release(self._turn)
