"""One turn without a person: follow the run, approve what `--yes` approves, keep to the time limit, obey signals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from lousho.core.cancel import AbortTimeout, CancelSignal
from lousho.core.errors import TimeoutError as RunTimeoutError
from lousho.core.events import AgentEvent, ApprovalRequestedEvent, StepStartEvent, TextDeltaEvent, TextDoneEvent
from lousho.stores.memory import InMemoryApprovalStore
from lousho_cli.chat.signals import signals_to
from lousho_cli.errors import INTERRUPTED
from lousho_cli.run.ending import Ended, call_text

if TYPE_CHECKING:
    from lousho.agent.agent import Agent
    from lousho.runtime.agent_run import AgentRun
    from lousho.runtime.result import RunResult

LEAVE_SECONDS = 3.0
"""How long a run that was told to stop may take for it; then it is left."""

SLOW_STOP_SECONDS = 1.0
CLOSE_SECONDS = 5.0


class Turn:
    """One run of an agent, its continuations included. `hear` gets every event, `tell` sentences for stderr."""

    def __init__(
        self,
        agent: Agent,
        prompt: str,
        *,
        limit_s: float | None,
        yes: bool,
        hear: Callable[[AgentEvent], None],
        tell: Callable[[str], None],
    ) -> None:
        self._agent = agent
        self._prompt = prompt
        self._limit_s = limit_s
        self._yes = yes
        self._hear = hear
        self._tell = tell
        self._signal = CancelSignal()
        self._said: list[str] = []
        self._waiting: list[ApprovalRequestedEvent] = []
        self._signal_code: int | None = None
        self._overdue = False
        self._left = False
        self._task: asyncio.Task[object] | None = None
        self._outcome: Ended | None = None

    async def run(self) -> Ended:
        """Run to the end, a pause or a stop. What the run fails with is in what it returns, not raised."""
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        timer = None if self._limit_s is None else loop.call_later(self._limit_s, self._time_is_up)
        with signals_to(self._interrupt, self._terminate):
            try:
                self._outcome = await self._run()
            except asyncio.CancelledError:
                if not self._left:
                    raise
                self._outcome = self._ended()
            finally:
                if timer is not None:
                    timer.cancel()
                await self._close()
        return self._outcome

    def broken_off(self, signal_code: int | None = None) -> Ended:
        """Return how it stands when code of the agent keeps the run from ending: by a signal, else by the time limit."""
        if self._outcome is not None:
            return self._outcome
        self._overdue = signal_code is None
        self._signal_code = signal_code
        return self._ended()

    def _ended(self, *, result: RunResult | None = None, failure: BaseException | None = None) -> Ended:
        """Return how it stands: with a result, with what it failed with, or as far as it is when it is left."""
        if self._overdue and (result is None or result.finish_reason == "aborted"):
            failure = self.time_limit_error()
        return Ended(
            result=result,
            failure=failure,
            said="".join(self._said),
            waiting=list(self._waiting),
            kept=not isinstance(self._agent.approval_store, InMemoryApprovalStore),
            signal_code=self._signal_code,
        )

    def time_limit_error(self) -> RunTimeoutError:
        """Return the error of a run that took longer than it may."""
        limit_s = self._limit_s or 0.0
        return RunTimeoutError(
            f"The run did not finish within {limit_s:g} second{'' if limit_s == 1 else 's'} (--timeout)",
            operation="run",
            timeout_ms=limit_s * 1000,
        )

    async def _run(self) -> Ended:
        try:
            await self._agent.ready()
            run = self._agent.stream(self._prompt, signal=self._signal, throw_on_error=False)
        except Exception as error:  # noqa: BLE001 - whatever an agent raises is how its run ended
            return self._ended(failure=error)
        ended = await self._follow(run)
        while self._yes and ended.finish_reason == "awaiting-approval" and _only_approvals(ended.waiting):
            try:
                run = await self._approve(ended.waiting)
            except Exception as error:  # noqa: BLE001 - e.g. a tool that the waiting call needs is gone
                return self._ended(failure=error)
            ended = await self._follow(run)
        return ended

    async def _follow(self, run: AgentRun) -> Ended:
        """Hear all events of a run and return how it ended."""
        self._waiting.clear()
        events = aiter(run)
        heard = False
        try:
            while True:
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    break
                self._note(event)
                self._hear(event)
            heard = True
        finally:
            if not heard:  # nobody reads the output any more, or the run is left
                run.abort("Nobody listens to the run any more.")
        try:
            return self._ended(result=await run.result)
        except Exception as error:  # noqa: BLE001 - whatever a provider or a tool raised
            return self._ended(failure=error)

    async def _approve(self, waiting: Sequence[ApprovalRequestedEvent]) -> AgentRun:
        """Approve every call that waits and return the run that goes on from there."""
        *first, last = waiting
        for request in waiting:
            self._tell(f"approved by --yes: {call_text(request)}")
        for request in first:  # only records the decision: the step runs after the last one
            await self._agent.approvals.resolve(id=request.approval_id, approved=True, signal=self._signal)
        return self._agent.approvals.stream_resolve(id=last.approval_id, approved=True, signal=self._signal)

    def _note(self, event: AgentEvent) -> None:
        """Keep what the end of a run that has no result needs."""
        if isinstance(event, ApprovalRequestedEvent):
            self._waiting.append(event)
        elif event.subagent is not None:
            return
        elif isinstance(event, StepStartEvent):
            self._said.clear()
        elif isinstance(event, TextDeltaEvent):
            self._said.append(event.text)
        elif isinstance(event, TextDoneEvent):
            self._said[:] = [event.text]

    def _time_is_up(self) -> None:
        self._overdue = True
        self._stop(AbortTimeout(self.time_limit_error().detail))

    def _interrupt(self) -> None:
        if self._signal_code is not None:
            self._leave()
            return
        self._signal_code = INTERRUPTED
        self._stop("The user stopped the run.")
        asyncio.get_running_loop().call_later(SLOW_STOP_SECONDS, self._say_that_it_stops)

    def _terminate(self, code: int) -> None:
        self._signal_code = code
        self._stop("The program was told to end.")

    def _stop(self, reason: object) -> None:
        """Tell the run to stop, and leave it when it does not."""
        self._signal.abort(reason)
        asyncio.get_running_loop().call_later(LEAVE_SECONDS, self._leave)

    def _leave(self) -> None:
        if self._task is not None and not self._task.done():
            self._left = True
            self._task.cancel()

    def _say_that_it_stops(self) -> None:
        if self._task is not None and not self._task.done():
            self._tell("stopping; press Ctrl-C again to leave at once")

    async def _close(self) -> None:
        """Let the agent release what it holds, for as long as that may take."""
        with suppress(Exception):  # the run is over; what a server says while it is shut down changes nothing
            await asyncio.wait([asyncio.ensure_future(self._agent.close())], timeout=CLOSE_SECONDS)


def _only_approvals(waiting: Sequence[ApprovalRequestedEvent]) -> bool:
    """Whether no question and no sign-in is among what waits: only a person can give those."""
    return bool(waiting) and all(request.kind is None for request in waiting)
