"""What becomes of a call: its result or its failure, as the transcript holds it, events show it and observers hear it.

Source: tools page ("Errors", "Size cap").
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import Any, cast

from lousho.core.errors import ToolArgumentsValidationError
from lousho.core.events import ErrorInfo, ToolDoneEvent, ToolErrorEvent
from lousho.core.json_values import Json, clean_text, dump_json, write_json
from lousho.runtime.arguments import copied
from lousho.runtime.deps import RunDeps, ToolErrorInfo
from lousho.runtime.state import CallSlot, RunState
from lousho.tools.errors import cap_message, tool_error_result

_log = logging.getLogger("lousho.runtime")

CANCELLED = "The call was cancelled: the run was aborted before it finished."

NOT_RUN = "The call was cancelled before it ran: the user has sent new input."


async def settle_done(
    slot: CallSlot, state: RunState, deps: RunDeps, started: float, result: Json, *, may_spill: bool = True
) -> None:
    """Record a call's result and emit `tool.done`. One that is too long for the transcript goes to a file first."""
    text = result if isinstance(result, str) else write_json(result)
    spilled = deps.spilled
    if spilled is None or not may_spill or not spilled.is_long(text):
        _record(slot, deps, started, result, cap_result(text, deps.max_tool_result_chars))
        return
    shown: str | None = None
    try:
        shown = await spilled.kept(text, slot.tool_call_id, state, deps.signal)
    finally:  # also when the run is cancelled meanwhile: the tool has done its work
        _record(slot, deps, started, result, shown or cap_result(text, deps.max_tool_result_chars))


def _record(slot: CallSlot, deps: RunDeps, started: float, result: Json, content: str) -> None:
    slot.content = content
    slot.is_error = False
    slot.status = "settled"
    _tell(
        ToolDoneEvent(
            tool_call_id=slot.tool_call_id, tool_name=slot.tool_name, result=result, duration_ms=_elapsed(started)
        ),
        deps,
    )


def settle_failed(
    slot: CallSlot,
    state: RunState,
    deps: RunDeps,
    started: float,
    error: BaseException | str,
    kind: str | None,
    **details: Any,
) -> None:
    """Record a failed call as the error the model reads and emit `tool.error`."""
    if isinstance(error, BaseException):
        _log.debug("tool %s failed", slot.tool_name, exc_info=error)  # the traceback is in no event
    limit = deps.max_tool_result_chars
    details = {key: cap_result(value, limit) if isinstance(value, str) else value for key, value in details.items()}
    if isinstance(error, ToolArgumentsValidationError):
        details["issues"] = [issue.to_dict() for issue in error.issues]
    result = tool_error_result(tool_name=slot.tool_name, error=error, kind=kind, details=details)
    if result["kind"] == "execution" and isinstance(error, BaseException) and deps.tool_error_message is not None:
        result["message"] = cap_message(_shown_message(error, slot, deps))
    slot.content = dump_json(result)
    slot.is_error = True
    slot.status = "settled"
    if result["kind"] != "not-run":
        state.tool_errors += 1
    info = ErrorInfo(name=str(result["error"]), message=clean_text(str(result["message"])))
    _tell(
        ToolErrorEvent(
            tool_call_id=slot.tool_call_id, tool_name=slot.tool_name, error=info, duration_ms=_elapsed(started)
        ),
        deps,
    )


def cap_result(text: str, limit: float) -> str:
    """Return `text`, its middle replaced by a marker when it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    half = max(int(limit) // 2, 1)
    cut = len(text) - 2 * half
    return f"{text[:half]}\n... [{cut} characters cut] ...\n{text[-half:]}"


def _tell(event: ToolDoneEvent | ToolErrorEvent, deps: RunDeps) -> None:
    deps.emitter.emit(event)
    listener = deps.observers.on_tool_result
    if listener is not None:
        if isinstance(event, ToolDoneEvent):
            own = replace(event, result=copied(event.result))
        else:
            own = replace(event, error=replace(event.error))
        deps.emitter.tell(listener, deps.emitter.stamped(own))


def _shown_message(error: BaseException, slot: CallSlot, deps: RunDeps) -> str:
    """Return the owner's text for a thrown error, or a neutral one when that function fails."""
    assert deps.tool_error_message is not None
    info = ToolErrorInfo(tool_name=slot.tool_name, tool_call_id=slot.tool_call_id)
    try:
        text = cast("object", deps.tool_error_message(error, info))
    except (Exception, asyncio.CancelledError):  # noqa: BLE001 - it exists to hide details: its own failure shows none
        return "The tool failed."
    return text if isinstance(text, str) else "The tool failed."


def _elapsed(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
