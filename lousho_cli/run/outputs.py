"""What a run writes: the answer alone, one JSON document, every event as a line, or a view for a person at a terminal."""

from __future__ import annotations

import json
import os
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, cast

from lousho.core.errors import CompactedLLMProviderError, LLMProviderError, SDKError, bare_message, original_error
from lousho.core.events import AgentEvent, RunDoneEvent, RunStartEvent
from lousho.core.json_values import clean_text
from lousho.core.usage import RunUsage
from lousho.runtime.emitter import timestamp_now
from lousho_cli.chat.renderer import Renderer
from lousho_cli.chat.screen import Screen
from lousho_cli.chat.shown import ShownCall
from lousho_cli.console import Console, is_terminal
from lousho_cli.errors import UsageError
from lousho_cli.run.ending import Ended
from lousho_cli.run.wanted import Mode

SCHEMA_VERSION = 1
"""Raised when a field of the JSON document changes its meaning or goes."""


class Output(Protocol):
    """Somebody who hears of a run and writes about it."""

    def event(self, event: AgentEvent) -> None:
        """Take one event, as it happens."""
        ...

    def ended(self, ended: Ended) -> None:
        """Take the end of the run."""
        ...

    def failed(self, error: BaseException) -> None:
        """Take what kept the run from beginning."""
        ...


def outputs_of(mode: Mode, console: Console) -> list[Output]:
    """Return who writes: `mode` to stdout, and where stderr is a terminal, what happens meanwhile to that.

    With text on a terminal on both sides, the person who sits there sees the words as they come.
    """
    watched = is_terminal(console.stderr) and mode != "stream-json"
    if mode == "text" and watched and is_terminal(console.stdout):
        return [View(Screen(console.stdout, console.stderr))]
    writer = {"text": Text, "json": Document, "stream-json": Lines}[mode](console)
    if not watched:
        return [writer]
    return [View(Screen(Path(os.devnull).open("w", encoding="utf-8"), console.stderr)), writer]


class Text:
    """The answer and a line break. Nothing for a run that has said nothing."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def event(self, event: AgentEvent) -> None:
        """Nothing is written before the end."""

    def ended(self, ended: Ended) -> None:
        """Write what the agent said."""
        if ended.text:
            self._console.out(ended.text, end="" if ended.text.endswith("\n") else "\n")
            self._console.flush()

    def failed(self, error: BaseException) -> None:
        """Nothing was said."""


class Document:
    """One JSON document for the whole run, also for one that failed or never began."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def event(self, event: AgentEvent) -> None:
        """Nothing is written before the end."""

    def ended(self, ended: Ended) -> None:
        """Write the result, with what it waits for and the error it ended with where there are such."""
        self._write(document_of(ended))

    def failed(self, error: BaseException) -> None:
        """Write the error."""
        self._write(document_of(Ended(failure=error)))

    def _write(self, document: dict[str, Any]) -> None:
        self._console.out(json.dumps(document, indent=2))
        self._console.flush()


class Lines:
    """Every event as a line of JSON, written out at once; the last one is `run.done`, also of a run that had to be left."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: AgentEvent | None = None

    def event(self, event: AgentEvent) -> None:
        """Write one event."""
        self._last = event
        self._write(event.to_dict())

    def ended(self, ended: Ended) -> None:
        """Write what is missing of the stream: its end, or all of it."""
        last = self._last
        if last is None:
            if ended.failure is not None:
                self.failed(ended.failure)
        elif not isinstance(last, RunDoneEvent) and ended.result is None:
            reason = cast("Any", ended.finish_reason)
            done = RunDoneEvent(
                finish_reason=reason, text=ended.said, run_id=last.run_id, seq=last.seq + 1, timestamp=timestamp_now()
            )
            self._write(done.to_dict())

    def failed(self, error: BaseException) -> None:
        """Write an error that belongs to no run: it has no run id."""
        self._write({"type": "error", "v": SCHEMA_VERSION, "error": error_of(error)})

    def _write(self, line: dict[str, Any]) -> None:
        self._console.out(json.dumps(line))
        self._console.flush()


class View:
    """The calls and their results as they happen, as in the chat, and the words where the screen shows them."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self._calls: deque[ShownCall] = deque(maxlen=1)
        self._renderer: Renderer | None = None

    def event(self, event: AgentEvent) -> None:
        """Show one event."""
        if self._renderer is None or (isinstance(event, RunStartEvent) and event.subagent is None):
            self._close()
            self._renderer = Renderer(self.screen, self._calls)
        self._renderer.show(event)

    def ended(self, ended: Ended) -> None:
        """Show what was held back, and leave the cursor at the start of a line."""
        self._close()

    def failed(self, error: BaseException) -> None:
        """Nothing was shown."""

    def _close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None


def document_of(ended: Ended) -> dict[str, Any]:
    """Return the JSON document of a run: the result's own fields, or as much of them as a failed run has."""
    document: dict[str, Any] = {"schemaVersion": SCHEMA_VERSION}
    if ended.result is not None:
        document |= ended.result.to_dict()
    else:
        document |= {"text": ended.said, "finishReason": ended.finish_reason}
        usage = _usage_of(ended.failure)
        if usage is not None:
            document["usage"] = usage.to_dict()
    if ended.waiting:
        document["waiting"] = [_waiting(request.to_dict()) for request in ended.waiting]
    if ended.failure is not None:
        document["error"] = error_of(ended.failure)
    return document


def error_of(error: BaseException) -> dict[str, Any]:
    """Return `{name, message, code, hint}` of a failure, `category` and `status` of one of a provider.

    `code` and `hint` are null where the failure is none of ours.
    """
    if isinstance(error, UsageError):
        known = SDKError(error.message, code=error.code)
        return {"name": "UsageError", "message": error.message, "code": error.code, "hint": known.hint}
    error = original_error(error)
    shown: dict[str, Any] = {"name": type(error).__name__, "message": clean_text(bare_message(error))}
    coded = isinstance(error, SDKError)
    shown |= {"code": error.code, "hint": error.hint} if coded else {"code": None, "hint": None}
    if isinstance(error, CompactedLLMProviderError):
        shown["category"] = error.compacted.category
    if isinstance(error, LLMProviderError) and error.status_code is not None:
        shown["status"] = error.status_code
    return shown


def _usage_of(error: BaseException | None) -> RunUsage | None:
    usage = None
    with suppress(Exception):  # an attribute of the application's own class may do anything
        usage = getattr(error, "usage", None)
    return usage if isinstance(usage, RunUsage) else None


def _waiting(event: dict[str, Any]) -> dict[str, Any]:
    """Return what a pause asks, without what only places the event in its stream."""
    return {key: value for key, value in event.items() if key not in ("type", "runId", "seq", "timestamp", "v")}
