"""Starting a run that is streamed: its buffer, its signal, and a stream that is whole even if the run never began."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from lousho.agent.options import AgentOptions
from lousho.agent.preparation import RunChannel
from lousho.core.cancel import CancelSignal
from lousho.core.errors import ConfigurationError
from lousho.core.events import AgentEvent, ErrorEvent, ErrorInfo, RunDoneEvent, RunStartEvent
from lousho.runtime.agent_run import AgentRun, EventBuffer
from lousho.runtime.blocking import BlockingStream, iterate_blocking
from lousho.runtime.emitter import Emitter
from lousho.runtime.inbox import InputQueue
from lousho.runtime.result import RunResult

StartRun = Callable[[RunChannel], Awaitable[RunResult]]


def check_loop() -> None:
    """Raise `LOUSHO_CONFIG_INVALID` where no event loop runs, in which a stream could go on."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise ConfigurationError(
            "A stream needs a running event loop; in blocking code use stream_sync() or stream_resolve_sync()."
        ) from None


def start_run(
    run_id: str,
    options: AgentOptions,
    signal: CancelSignal | None,
    start: StartRun,
    *,
    throw_on_error: bool = True,
    agent_id: str | None = None,
    on_end: Callable[[], None] | None = None,
    inbox: InputQueue | None = None,
) -> AgentRun:
    """Start `start(channel)` in a task of its own and return the run. `on_end()` is called even if it never began.

    Raises `LOUSHO_CONFIG_INVALID` without a running event loop.
    """
    check_loop()
    run_signal = CancelSignal.any(signal)
    inputs = InputQueue() if inbox is None else inbox

    async def body(buffer: EventBuffer) -> RunResult:
        begun = False

        def put(event: AgentEvent) -> None:
            nonlocal begun
            begun = True
            buffer.put(event)

        try:
            return await start(RunChannel(signal=run_signal, listeners=(put,), backlog=buffer.__len__, inbox=inputs))
        except BaseException as error:
            if not begun:
                heard = (buffer.put,) if options.on_event is None else (options.on_event, buffer.put)
                tell_of_no_run(Emitter(run_id, heard), options, error, agent_id)
            raise

    return AgentRun(run_id, body, run_signal, throw_on_error=throw_on_error, on_end=on_end, inbox=inputs)


def stream_blocking(start: Callable[[], AgentRun]) -> BlockingStream[AgentEvent]:
    """Return the events of the run that `start()` gives, for a program without an event loop. Raises what it raises."""
    holder: list[AgentRun] = []

    def open_stream() -> AgentRun:
        holder.append(start())
        return holder[0]

    async def close() -> None:
        await holder[0].aclose()

    return iterate_blocking(open_stream, close)


def tell_of_no_run(emitter: Emitter, options: AgentOptions, error: BaseException, agent_id: str | None = None) -> None:
    """Emit the whole stream of a run that ended before its first event."""
    emitter.emit(RunStartEvent(agent_name=options.name, agent_id=agent_id, version=options.version))
    if isinstance(error, asyncio.CancelledError):
        emitter.emit(RunDoneEvent(finish_reason="aborted", text=""))
        return
    emitter.emit(ErrorEvent(error=ErrorInfo.of(error)))
    emitter.emit(RunDoneEvent(finish_reason="error", text=""))
