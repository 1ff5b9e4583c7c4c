"""A session: turns that share one transcript, one at a time. Source: agents page."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, Unpack

from lousho.agent.call_options import TurnOptions, given_options
from lousho.agent.joining import Host, Joined, TurnPolicy, join
from lousho.agent.preparation import CallOptions, RunChannel, new_state
from lousho.agent.running import check_loop, start_run, stream_blocking
from lousho.agent.turns import Place, TurnLock
from lousho.core.cancel import AbortError
from lousho.core.checked_input import checked_input
from lousho.core.errors import SDKError, SessionAwaitingApprovalError
from lousho.core.events import AgentEvent, RunDoneEvent
from lousho.core.ids import new_id
from lousho.core.messages import AgentInput, Message
from lousho.core.redact import shown
from lousho.policy.modes import PermissionMode, PermissionModeChange, checked_mode
from lousho.runtime.agent_run import AgentRun
from lousho.runtime.blocking import BlockingStream, run_blocking
from lousho.runtime.deps import RunDeps
from lousho.runtime.emitter import Emitter, timestamp_now
from lousho.runtime.inbox import InputQueue
from lousho.runtime.loop import drive
from lousho.runtime.result import RunResult
from lousho.runtime.spilled_results import forget_results
from lousho.runtime.state import Finished, RunState
from lousho.stores.protocol import PausedStepRecord

if TYPE_CHECKING:
    from lousho.agent.agent import Agent

_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


def check_session_id(session_id: str) -> str:
    """Return `session_id` if it can be one. Raises `LOUSHO_SESSION_ID_INVALID`."""
    if not isinstance(session_id, str) or not _SESSION_ID.fullmatch(session_id):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SDKError(
            f"{shown(session_id)} cannot be a session id: use 1 to 128 letters, digits, '_' or '-'.",
            code="LOUSHO_SESSION_ID_INVALID",
        )
    return session_id


class _Begun(NamedTuple):
    """A turn that has its place."""

    run_id: str
    place: Place
    host: Host | None

    def leave(self) -> None:
        """Give the place up, and tell those who joined, if it never ran; else it does no harm."""
        self.place.leave()
        if self.host is not None:
            self.host.end(None, None)


class Session:
    """One conversation with an agent. Get it from `agent.session(id)`.

    Turns run in the order they were asked for. A failed turn is not kept; an aborted one is.
    """

    def __init__(self, agent: Agent, session_id: str) -> None:
        self._agent = agent
        self.id = session_id
        """The session's id."""
        self._messages: list[Message] | None = None
        self._turns = TurnLock(session_id)
        self._host: Host | None = None
        """The turn that others can join."""
        self.turn_policy: TurnPolicy = "wait"
        """What a turn does that is asked for while another one runs or waits to run: `wait`, `queue` or `steer`."""

    @property
    def permission_mode(self) -> PermissionMode:
        """The session's permission mode now: the one it was given, else the agent's."""
        return self._agent.mode_of_session(self.id)

    def set_permission_mode(self, mode: PermissionMode) -> None:
        """Switch the session's mode, from the next tool call on, also of a turn that is running.

        A switch to another mode is reported to the agent's `on_permission_mode_change`. Raises `LOUSHO_CONFIG_INVALID`
        for an unknown mode. Source: permission modes page.
        """
        to = checked_mode(mode)
        before = self.permission_mode
        self._agent.session_modes[self.id] = to
        listener = self._agent.options.on_permission_mode_change
        if before != to and listener is not None:
            change = PermissionModeChange(session_id=self.id, from_=before, to=to, at=timestamp_now())
            Emitter(self.id).tell(listener, change)

    @property
    def messages(self) -> list[Message]:
        """The transcript as last read or written here, without the system prompt."""
        if self._messages is None:
            load_now = getattr(self._agent.store.sessions, "load_now", None)
            if load_now is not None:
                return [Message.from_dict(message) for message in load_now(self.id).messages]
        return list(self._messages or [])

    async def send(self, input: AgentInput, **options: Unpack[TurnOptions]) -> RunResult:  # noqa: A002
        """Run one turn and return its result; options as for `agent.send()`, without `session_id`.

        Raises `LOUSHO_SESSION_AWAITING_APPROVAL` while an earlier turn waits for a decision, and `LOUSHO_SESSION_BUSY`
        when it is called from inside a turn of the same session, which would wait for itself.

        With the turn policy `queue` or `steer` the input joins the turn that runs or waits to run, and the result is
        that turn's; the options of this call do not count then. If that turn ends without it, it is a turn of its own.
        """
        call = self._agent.checked_call(given_options(options, TurnOptions, "session.send"))
        given = checked_input(input)
        result = await self._join(given)
        if result is not None:
            return result
        inbox = None if self.turn_policy == "wait" else InputQueue()
        return await self._turn(self._begin(new_id("run"), inbox), given, call, RunChannel.silent(call, inbox))

    def stream(self, input: AgentInput, **options: Unpack[TurnOptions]) -> AgentRun:  # noqa: A002
        """Start one turn and return it as a run. The iteration ends normally even when the turn fails.

        `run.done` comes after the turn was saved; of a turn that was joined (see `send()`) it is the only event. Must be
        called inside a running event loop.
        """
        call = self._agent.checked_call(given_options(options, TurnOptions, "session.stream"))
        given = checked_input(input)
        check_loop()
        joined = join(self._host, self._turns, self.turn_policy, given)
        if joined is not None:
            return self._stream_joined(joined, given, call)
        inbox = InputQueue()
        begun = self._begin(new_id("run"), inbox)  # now, not when its task begins: turns run in the order asked for

        async def start(channel: RunChannel) -> RunResult:
            return await self._turn(begun, given, call, channel)

        return start_run(
            begun.run_id,
            self._agent.options,
            call.signal,
            start,
            throw_on_error=False,
            on_end=begun.leave,
            inbox=inbox,
        )

    def _stream_joined(self, joined: Joined, given: list[Message], call: CallOptions) -> AgentRun:
        """Return a run that has the end of the turn it joined, or all of a turn of its own if that one left it out."""
        own: list[_Begun] = []

        async def start(channel: RunChannel) -> RunResult:
            emitter = Emitter(joined.run_id, channel.listeners)
            try:
                result = await joined.result()
            except AbortError:
                emitter.emit(RunDoneEvent(finish_reason="aborted", text=""))
                raise
            except Exception:
                emitter.emit(RunDoneEvent(finish_reason="error", text=""))
                raise
            if result is None:
                result = await self._join(given)
            if result is not None:
                emitter.emit(RunDoneEvent(finish_reason=result.finish_reason, text=result.text, usage=result.usage))
                return result
            own.append(self._begin(new_id("run"), channel.inbox))
            run.run_id = own[0].run_id
            return await self._turn(own[0], given, call, channel)

        def leave() -> None:
            for begun in own:
                begun.leave()

        run = start_run(joined.run_id, self._agent.options, call.signal, start, throw_on_error=False, on_end=leave)
        return run

    async def _join(self, given: list[Message]) -> RunResult | None:
        """Have a running turn take the input and return its result; `None`: it has to be a turn of its own."""
        while (joined := join(self._host, self._turns, self.turn_policy, given)) is not None:
            result = await joined.result()
            if result is not None:
                return result
        return None

    def _begin(self, run_id: str, inbox: InputQueue | None) -> _Begun:
        """Take a place for a turn of its own, which others can join from now on."""
        place = self._turns.place()
        host = None
        if inbox is not None and self.turn_policy != "wait" and not place.refused:
            host = self._host = Host(run_id, place, inbox)
        return _Begun(run_id, place, host)

    async def _turn(self, begun: _Begun, given: list[Message], call: CallOptions, channel: RunChannel) -> RunResult:
        host = begun.host
        if host is None:
            return await self._own_turn(begun.place, begun.run_id, given, call, channel)
        try:
            result = await self._own_turn(begun.place, begun.run_id, given, call, channel)
        except BaseException as error:
            host.end(None, error)
            raise
        finally:
            if self._host is host:
                self._host = None
        host.end(result, None)
        return result

    async def _own_turn(
        self, place: Place, run_id: str, given: list[Message], call: CallOptions, channel: RunChannel
    ) -> RunResult:
        try:
            async with place.before(channel.signal) as ours:
                if ours:
                    await self._refuse_while_paused()
                # Not ours: it was aborted while it waited, and a run that is aborted at once writes nothing.
                record = await self._agent.store.sessions.load(self.id)
                state = new_state(
                    self._agent.options,
                    given,
                    call,
                    run_id=run_id,
                    history=[Message.from_dict(message) for message in record.messages],
                    session_id=self.id,
                    session_revision=record.revision,
                )
                return await self._kept(state, self._agent.run_state(state, call, channel))
        finally:
            channel.signal.detach()

    async def continues(self, state: RunState) -> bool:
        """Whether the transcript is still the one that `state` began with, so that its turn can be saved."""
        record = await self._agent.store.sessions.load(self.id)
        return record.revision == state.session_revision

    async def continue_turn(self, prepare: Callable[[], Awaitable[tuple[RunState, RunDeps]]]) -> RunResult:
        """Run a decided turn of this session to its end, after the turns that are queued before it."""
        async with self._turns.place():
            state, deps = await prepare()
            return await self._kept(state, drive(state, deps))

    async def _kept(self, state: RunState, run: Awaitable[RunResult]) -> RunResult:
        try:
            return await run
        finally:
            # A turn whose task was cancelled is saved, too, though it returns nothing.
            if isinstance(state.next, Finished) and state.finish_reason != "error" and state.step:
                self._messages = list(state.messages)

    def send_sync(self, input: AgentInput, **options: Unpack[TurnOptions]) -> RunResult:  # noqa: A002
        """Blocking twin of `send()`."""
        return run_blocking(self.send(input, **options))

    def stream_sync(self, input: AgentInput, **options: Unpack[TurnOptions]) -> BlockingStream[AgentEvent]:  # noqa: A002
        """Blocking twin of `stream()`: yields the turn's events."""
        return stream_blocking(lambda: self.stream(input, **options))

    async def load(self) -> list[Message]:
        """Read the transcript from the store and return it."""
        record = await self._agent.store.sessions.load(self.id)
        self._messages = [Message.from_dict(message) for message in record.messages]
        return list(self._messages)

    async def pending(self) -> PausedStepRecord | None:
        """Return the paused step this session waits on, or `None`."""
        for step in await self._agent.approval_store.list():
            if step.session_id == self.id:
                return step
        return None

    async def clear(self) -> int:
        """Empty the transcript and remove its long results; the id stays. Returns how many messages were dropped.

        Raises `LOUSHO_SESSION_BUSY` while a turn runs, `LOUSHO_SESSION_AWAITING_APPROVAL` while one waits.
        """
        if self._turns.held:
            raise SDKError(
                f"Session {self.id!r} cannot be cleared while a turn of it is running.", code="LOUSHO_SESSION_BUSY"
            )
        async with self._turns.place():
            await self._refuse_while_paused()
            record = await self._agent.store.sessions.load(self.id)
            kept = self._agent.options.tool_results
            if kept is not None:
                await forget_results(kept.directory, self._agent.name, self.id)
            await self._agent.store.sessions.delete(self.id)
            self._messages = []
        return len(record.messages)

    def load_sync(self) -> list[Message]:
        """Blocking twin of `load()`."""
        return run_blocking(self.load())

    def pending_sync(self) -> PausedStepRecord | None:
        """Blocking twin of `pending()`."""
        return run_blocking(self.pending())

    def clear_sync(self) -> int:
        """Blocking twin of `clear()`."""
        return run_blocking(self.clear())

    async def _refuse_while_paused(self) -> None:
        step = await self.pending()
        if step is not None:
            open_ids = [str(approval["id"]) for approval in step.approvals if approval.get("decision") is None]
            raise SessionAwaitingApprovalError(self.id, open_ids[0] if open_ids else step.id, open_ids)

    def __repr__(self) -> str:
        return f"Session({self.id!r})"
