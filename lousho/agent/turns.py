"""One turn at a time in a session, in the order they were asked for, whichever event loop asks.

A turn that is asked for by the work of another one (a tool, a listener) would wait for itself when both are of one
session, or when two sessions ask each other. That is refused instead: who is inside of which turn is kept in a context
variable, which tasks and tool threads inherit.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from lousho.core.cancel import CancelSignal
from lousho.core.errors import SDKError
from lousho.runtime.blocking import blocked_loops


@dataclass(eq=False, slots=True)
class SessionTurn:
    """A turn that runs or waits to run."""

    lock: TurnLock
    loop: asyncio.AbstractEventLoop
    ready: asyncio.Future[bool] | None = None
    """Set while it waits: `True` when it is its turn, `False` when it was aborted before."""
    waits_for: set[SessionTurn] = field(default_factory=set["SessionTurn"])
    """The turns that the work inside of it waits for."""


_inside: ContextVar[tuple[SessionTurn, ...]] = ContextVar("lousho_turns", default=())
_guard = threading.Lock()


class TurnLock:
    """A first-come lock that tasks of several event loops can share (the blocking calls have a loop of their own)."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self.owner: SessionTurn | None = None
        """The turn that runs, or that was just told that it may."""
        self._waiters: deque[SessionTurn] = deque()

    @property
    def held(self) -> bool:
        """Whether a turn is running."""
        with _guard:
            return self.owner is not None and not self.owner.loop.is_closed()

    def place(self) -> Place:
        """Take the next place in the queue, now; `async with place.before(signal) as ours` waits for its turn."""
        return Place(self)

    def enter(self, turn: SessionTurn, inside: tuple[SessionTurn, ...]) -> None:
        """Take the lock for `turn`, or a place in the queue (then `turn.ready` is set).

        Raises `LOUSHO_SESSION_BUSY` when the turn would wait for one that waits for it.
        """
        with _guard:
            if self.owner is not None and self.owner.loop.is_closed():
                self._hand_over()  # its event loop was closed in the middle of the turn: nobody else will
            if self.owner is None:
                self.owner = turn
                return
            self._refuse_deadlock(inside)
            turn.ready = turn.loop.create_future()
            self._waiters.append(turn)
            for outer in inside:
                outer.waits_for.add(turn)

    def _refuse_deadlock(self, inside: tuple[SessionTurn, ...]) -> None:
        blocked = blocked_loops.get()
        others = self._waiters if self.owner is None else (self.owner, *self._waiters)
        if blocked and any(other.loop in blocked for other in others):
            raise SDKError(
                f"A blocking call asked for a turn of session {self._session_id!r} while an earlier one runs on the "
                "event loop that the call keeps from going on, so both would wait for ever. Await send() there.",
                code="LOUSHO_SESSION_BUSY",
            )
        if self._waits_for_one_of(inside):
            raise SDKError(
                f"A turn of session {self._session_id!r} was asked for from inside a turn that would have to wait "
                "for it, so both would wait for ever. Ask for it after that turn has ended, or use a session of "
                "its own or agent.send().",
                code="LOUSHO_SESSION_BUSY",
            )

    def join(self, turn: SessionTurn) -> Callable[[], None]:
        """Wait for the end of `turn`, which is not ours; the returned function says that the wait is over.

        Raises `LOUSHO_SESSION_BUSY` when that turn would wait for one that waits for it.
        """
        inside = _inside.get()
        with _guard:
            self._refuse_deadlock(inside)
            added = [outer for outer in inside if turn not in outer.waits_for]
            for outer in added:
                outer.waits_for.add(turn)

        def over() -> None:
            with _guard:
                for outer in added:
                    outer.waits_for.discard(turn)

        return over

    def leave(self, turn: SessionTurn) -> None:
        """Give up a place in the queue, or hand the lock to whoever waits first."""
        with _guard:
            if turn in self._waiters:
                self._waiters.remove(turn)
            elif self.owner is turn:
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

    def _wake(self, turn: SessionTurn) -> None:
        if turn.ready is None or turn.ready.done():  # it gave up meanwhile: the lock is ours to pass on
            self.leave(turn)
        else:
            turn.ready.set_result(True)

    def _waits_for_one_of(self, inside: tuple[SessionTurn, ...]) -> bool:
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
            waiting.extend(turn.lock for turn in owner.waits_for)
        return False


class Place:
    """A place in the queue of a session's turns, from the moment it is made until `leave()`."""

    __slots__ = ("_inside", "_lock", "_refused", "_signal", "_turn")

    def __init__(self, lock: TurnLock) -> None:
        self._lock = lock
        self._signal: CancelSignal | None = None
        self._refused: SDKError | None = None
        self._inside = _inside.get()
        self._turn = SessionTurn(lock, asyncio.get_running_loop())
        try:
            lock.enter(self._turn, self._inside)
        except SDKError as error:
            self._refused = error

    @property
    def turn(self) -> SessionTurn:
        """The turn that has this place."""
        return self._turn

    @property
    def refused(self) -> bool:
        """Whether its turn would wait for itself, so that it never comes."""
        return self._refused is not None

    def before(self, signal: CancelSignal) -> Self:
        """Wait only until `signal` is aborted: entering then gives `False` instead of `True`."""
        self._signal = signal
        return self

    async def __aenter__(self) -> bool:
        """Wait for the turn. Raises `LOUSHO_SESSION_BUSY` when it would wait for one that waits for it."""
        if self._refused is not None:
            raise self._refused
        if self._turn.ready is not None and not await self._wait(self._turn.ready):
            return False
        _inside.set((*self._inside, self._turn))
        return True

    async def _wait(self, ready: asyncio.Future[bool]) -> bool:
        def give_up(_: object) -> None:
            try:
                self._turn.loop.call_soon_threadsafe(lambda: ready.done() or ready.set_result(False))
            except RuntimeError:  # the loop is closed: nobody waits any more
                return

        stop_listening = self._signal.add_listener(give_up) if self._signal is not None else None
        ours = False
        try:
            ours = await ready
        finally:
            if stop_listening is not None:
                stop_listening()
            if ours:
                self._stop_waiting()
            else:
                self.leave()
        return ours

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _inside.set(self._inside)
        self.leave()

    def leave(self) -> None:
        """Give the place or the turn up; more than once does no harm."""
        self._stop_waiting()
        self._lock.leave(self._turn)

    def _stop_waiting(self) -> None:
        with _guard:
            for outer in self._inside:
                outer.waits_for.discard(self._turn)
