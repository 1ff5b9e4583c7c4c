"""Starting a run that is streamed: its buffer, its signal, and a stream that is whole even if the run never began."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from lousho.agent.preparation import RunChannel
from lousho.core.cancel import CancelSignal
from lousho.core.events import AgentEvent, ErrorEvent, ErrorInfo, RunDoneEvent, RunStartEvent
from lousho.runtime.agent_run import AgentRun, EventBuffer
from lousho.runtime.emitter import Emitter
from lousho.runtime.result import RunResult

StartRun = Callable[[RunChannel], Awaitable[RunResult]]


def start_run(
    run_id: str, agent_name: str, signal: CancelSignal | None, start: StartRun, *, throw_on_error: bool = True
) -> AgentRun:
    """Start `start(channel)` in a task of its own and return the run."""
    run_signal = CancelSignal.any(signal)

    async def body(buffer: EventBuffer) -> RunResult:
        begun = False

        def put(event: AgentEvent) -> None:
            nonlocal begun
            begun = True
            buffer.put(event)

        try:
            return await start(RunChannel(signal=run_signal, listeners=(put,), backlog=buffer.__len__))
        except Exception as error:
            if not begun:
                emitter = Emitter(run_id, (buffer.put,))
                emitter.emit(RunStartEvent(agent_name=agent_name))
                emitter.emit(ErrorEvent(error=ErrorInfo.of(error)))
                emitter.emit(RunDoneEvent(finish_reason="error", text=""))
            raise

    return AgentRun(run_id, body, run_signal, throw_on_error=throw_on_error)
