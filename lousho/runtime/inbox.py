"""Input for a run that is going on: what waits, when it joins the transcript, and whether it may cut a model call short.

Nothing here is saved with the run. Input comes in on any thread; the run takes it, and tells of it, on its own event
loop, at points where the transcript stays legal. Source: queue-and-steer page.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Sequence
from concurrent import futures
from dataclasses import dataclass, field
from typing import Literal, Protocol

from lousho.core.cancel import CancelSignal
from lousho.core.checked_input import checked_input
from lousho.core.errors import ConfigurationError
from lousho.core.events import InputAppliedEvent, InputQueuedEvent, InputSteeredEvent
from lousho.core.ids import new_id
from lousho.core.messages import AgentInput, Message, text_of
from lousho.runtime.emitter import Emitter

MOST_WAITING = 1_000
"""How many inputs may wait for one model call; far more than anybody types."""


class Steered(Exception):
    """A model call was cut short for new input. Internal: the loop calls the model again."""


class Closable(Protocol):
    """A model turn that is coming in."""

    closed: bool


class InputOutcome:
    """Whether an input joined the transcript: `await` it, or `wait()` for it where no event loop runs."""

    __slots__ = ("_future",)

    def __init__(self) -> None:
        self._future: futures.Future[bool] = futures.Future()

    @property
    def done(self) -> bool:
        """Whether it is known yet."""
        return self._future.done()

    def wait(self, timeout_ms: float | None = None) -> bool:
        """Block until it is known, at most `timeout_ms` milliseconds, and return it. Raises `TimeoutError`."""
        return self._future.result(None if timeout_ms is None else timeout_ms / 1000)

    def settle(self, joined: bool) -> None:
        """Say what became of the input; only the first answer counts."""
        if not self._future.done():
            self._future.set_result(joined)

    def __await__(self) -> Generator[object, None, bool]:
        # Shielded: a waiter that is cancelled must not take the answer away from the others.
        return asyncio.shield(asyncio.wrap_future(self._future)).__await__()

    def __repr__(self) -> str:
        return f"InputOutcome({self._future.result() if self._future.done() else 'open'})"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedInput:
    """What `enqueue()` gives back. Source: queue-and-steer page."""

    id: str
    """The id of its `input.queued` and `input.applied` events."""
    applied: Literal[False] | InputOutcome
    """`False`: the run was over, and the input is still yours. Else await it: `True` once it is in the transcript,
    `False` when the run stopped before its next model call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeredInput:
    """What `steer()` gives back. Source: queue-and-steer page."""

    id: str
    """The id of its `input.steered` and `input.applied` events."""
    applied: Literal["immediate", "queued", False]
    """`'immediate'`: a model call was cut short for it; `'queued'`: it waits; `False`: the run was over."""
    joined: InputOutcome
    """Await it: whether the input is in the transcript."""


@dataclass(slots=True, kw_only=True)
class _Waiting:
    """An input that was taken and is in no transcript yet."""

    id: str
    messages: list[Message]
    outcome: InputOutcome
    steer: Literal["immediate", "queued"] | None = None
    told: bool = False
    """Whether its event was emitted."""

    def event(self) -> InputQueuedEvent | InputSteeredEvent:
        text = "\n".join(text_of(message) for message in self.messages)
        if self.steer is None:
            return InputQueuedEvent(id=self.id, text=text)
        return InputSteeredEvent(id=self.id, text=text, mode=self.steer)


@dataclass(slots=True)
class _Call:
    """The model call that is going on."""

    turn: Closable
    signal: CancelSignal
    spoken: bool = False
    """Whether it has emitted text or a tool call; from then on it is not cut short."""
    steered: bool = False


@dataclass(eq=False, slots=True)
class InputQueue:
    """Takes input for one run: `push()` and `steer()`, from any thread.

    `run.enqueue()` and `run.steer()` are these two; without a stream, pass one as
    `AgentExecutor.execute(input_queue=...)`. Source: queue-and-steer page.
    """

    _lock: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)
    _waiting: list[_Waiting] = field(init=False, repr=False, default_factory=list["_Waiting"])
    _steers: int = field(init=False, repr=False, default=0)
    """How many of those that wait steer the run."""
    _used: bool = field(init=False, repr=False, default=False)
    _closed: bool = field(init=False, repr=False, default=False)
    _call: _Call | None = field(init=False, repr=False, default=None)
    _emitter: Emitter | None = field(init=False, repr=False, default=None)
    _loop: asyncio.AbstractEventLoop | None = field(init=False, repr=False, default=None)

    def push(self, input: AgentInput) -> QueuedInput:  # noqa: A002 - the word of the whole field
        """Add a text, content parts or user messages; they join the transcript before the run's next model call.

        Raises `LOUSHO_CONFIG_INVALID` for an input that is none, or when 1,000 wait already.
        """
        messages = _user_messages(input)
        one = _Waiting(id=new_id("input"), messages=messages, outcome=InputOutcome())
        with self._lock:
            taken = self._take(one)
        if not taken:
            return QueuedInput(id=one.id, applied=False)
        self._tell_soon()
        return QueuedInput(id=one.id, applied=one.outcome)

    def steer(self, input: AgentInput) -> SteeredInput:  # noqa: A002
        """Redirect the run: a model call that has said nothing yet is cut short, tool calls not begun are not run.

        Raises `LOUSHO_CONFIG_INVALID` for an input that is none, or when 1,000 wait already.
        """
        messages = _user_messages(input)
        one = _Waiting(id=new_id("input"), messages=messages, outcome=InputOutcome(), steer="queued")
        cut: _Call | None = None
        with self._lock:
            taken = self._take(one)
            if taken:
                self._steers += 1
                if self._call is not None and not self._call.spoken:
                    cut = self._call
                    cut.steered = cut.turn.closed = True
                    one.steer = "immediate"
        if not taken:
            one.outcome.settle(False)
            return SteeredInput(id=one.id, applied=False, joined=one.outcome)
        self._tell_soon()
        if cut is not None:
            cut.signal.abort("The run was steered to new input.")
        return SteeredInput(id=one.id, applied=one.steer or "queued", joined=one.outcome)

    def _take(self, one: _Waiting) -> bool:
        if self._closed:
            return False
        if len(self._waiting) >= MOST_WAITING:
            raise ConfigurationError(
                f"{MOST_WAITING:,} inputs wait for the run's next model call already.", field="input"
            )
        self._waiting.append(one)
        return True

    def _tell_soon(self) -> None:
        """Have the events emitted on the run's loop; not here: this may be a listener, in the middle of an event."""
        loop = self._loop
        if loop is None:
            return
        try:
            loop.call_soon_threadsafe(self.tell)
        except RuntimeError:  # the loop is closed, and the run with it
            return

    # What follows is for the run alone, on its event loop.

    def claim(self) -> InputQueue:
        """Take the queue for a run. Raises `LOUSHO_CONFIG_INVALID` the second time."""
        with self._lock:
            if self._used:
                raise ConfigurationError(
                    "An InputQueue serves one run, and this one was given to a run before: make a new one.",
                    field="input_queue",
                )
            self._used = True
        return self

    def open(self, emitter: Emitter) -> None:
        """The run has begun: from now on input is told of in its stream."""
        self._emitter = emitter
        self._loop = asyncio.get_running_loop()
        if self._waiting:
            self.tell()

    def tell(self) -> None:
        """Emit the events of the inputs that came since the last time."""
        self._tell(tuple(self._waiting))

    def _tell(self, inputs: Sequence[_Waiting]) -> None:
        emitter = self._emitter
        if emitter is None:
            return
        for one in inputs:
            if not one.told:
                one.told = True
                emitter.emit(one.event())

    @property
    def steering(self) -> bool:
        """Whether calls that have not begun are not to be run any more."""
        return self._steers > 0

    def begin_call(self, turn: Closable, run_signal: CancelSignal) -> CancelSignal:
        """A model call begins; returns its own signal, which also follows the run's."""
        call = _Call(turn, CancelSignal.any(run_signal))
        with self._lock:
            self._call = call
        return call.signal

    def speak(self) -> None:
        """The call is about to emit text or a tool call. Raises `Steered` when it was cut short before."""
        call = self._call
        if call is None:
            return
        with self._lock:
            if call.steered:
                raise Steered
            call.spoken = True

    def end_call(self) -> bool:
        """The call has ended; returns whether it was cut short."""
        with self._lock:
            call, self._call = self._call, None
        if call is None:
            return False
        call.signal.detach()
        if call.steered:
            self.tell()  # in the step that it ends
        return call.steered

    def apply(self, messages: list[Message], step: int) -> bool:
        """Move what waits into the transcript, before the model call of `step`; returns whether there was anything."""
        if not self._waiting:
            return False
        with self._lock:
            joining, self._waiting, self._steers = self._waiting, [], 0
        for one in joining:
            messages.extend(one.messages)
        self._tell(joining)
        for one in joining:
            if self._emitter is not None:
                self._emitter.emit(InputAppliedEvent(id=one.id, step=step))
            one.outcome.settle(True)
        return True

    def goes_on(self, *, may: bool) -> bool:
        """The model gave its final reply: returns whether input waits that it `may` still answer, else takes no more."""
        with self._lock:
            if self._waiting and may:
                return True
            self._closed = True
        return False

    def close(self) -> None:
        """The run is over: what still waits is left to whoever sent it."""
        with self._lock:
            self._closed = True
        self.tell()
        with self._lock:
            left, self._waiting, self._steers = self._waiting, [], 0
        for one in left:
            one.outcome.settle(False)


def _user_messages(value: AgentInput) -> list[Message]:
    """Return the input as user messages: any other role could tear a call from its result."""
    messages = checked_input(value)
    for message in messages:
        if message.role != "user":
            raise ConfigurationError(
                f"Input for a running run consists of user messages; got one with the role {message.role!r}.",
                field="input",
            )
    return messages
