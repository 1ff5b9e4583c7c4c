"""How a run ended, as a script needs to know it: an exit code, the text there is, and sentences for stderr."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lousho.core.console_text import plain_text
from lousho.core.errors import TimeoutError as RunTimeoutError
from lousho.core.json_values import dump_json
from lousho_cli.chat.decisions import Question
from lousho_cli.chat.shown import failure_lines, one_row
from lousho_cli.console import Console, paint
from lousho_cli.errors import FAILED, INTERRUPTED, debugging

if TYPE_CHECKING:
    from lousho.core.events import ApprovalRequestedEvent
    from lousho.runtime.result import RunResult

WAITING = 3
"""Exit code of a run that waits for a person."""

_FINISHED = frozenset({"stop", "other"})
"""Finish reasons of an answer. `other` is what a provider's reason becomes that has no name here."""

_STOPPED: Mapping[str, str] = {
    "length": "the reply reached its token limit (max_tokens) and is cut off",
    "content_filter": "the provider's content filter cut the reply",
    "max-steps": "the run used up its steps (max_steps) before the task was finished",
    "output-invalid": "the reply does not fit the output schema",
    "budget-exceeded": "a budget of the run is used up",
    "guardrail": "a guardrail blocked the run",
}


@dataclass(slots=True, kw_only=True)
class Ended:
    """A run that is over, or was left. Without `result` it failed, or did not stop when it was told to."""

    result: RunResult | None = None
    failure: BaseException | None = None
    """What it failed with, or the time limit that it did not keep."""
    said: str = ""
    """The text of the step that was under way, for a run without a result."""
    waiting: list[ApprovalRequestedEvent] = field(default_factory=list["ApprovalRequestedEvent"])
    """What it waits for, in call order."""
    kept: bool = False
    """Whether what waits is kept when this program ends."""
    signal_code: int | None = None
    """The exit code of the signal that stopped it."""

    @property
    def text(self) -> str:
        """What the agent has said: the answer, or as much of it as there is."""
        return self.result.text if self.result is not None else self.said

    @property
    def finish_reason(self) -> str:
        """The documented reason; `error` for a run that failed."""
        if self.result is not None:
            return self.result.finish_reason
        return "aborted" if self.signal_code is not None or isinstance(self.failure, RunTimeoutError) else "error"

    @property
    def exit_code(self) -> int:
        """0 finished, 1 failed or stopped, 3 waiting for a person, 128 and the number of a signal that ended it."""
        reason = self.finish_reason
        if reason in _FINISHED:
            return 0
        if reason == "awaiting-approval":
            return WAITING
        return self.signal_code if self.signal_code is not None and reason == "aborted" else FAILED


def explain(ended: Ended, path: str, console: Console, *, yes: bool, watched: bool) -> None:
    """Say on stderr why a run that did not finish did not, and what to do about it.

    `watched`: somebody sees the run as it happens, and with it that it was stopped.
    """
    if ended.exit_code == 0:
        return
    if ended.finish_reason == "awaiting-approval":
        _explain_pause(ended, path, console, yes=yes)
    elif ended.signal_code is not None and ended.finish_reason == "aborted":
        if not watched:
            console.tell("interrupted" if ended.signal_code == INTERRUPTED else "terminated", "dim")
    elif ended.failure is not None:
        _explain_failure(ended.failure, console)
    elif not watched or ended.finish_reason == "aborted":
        console.say(paint("stopped:", "yellow"), f" {_stop_of(ended)}")


def _stop_of(ended: Ended) -> str:
    reason = ended.finish_reason
    why = ended.result.abort_reason if ended.result is not None else None
    if reason == "aborted" and why is not None:
        return f"the run was aborted: {one_row(why['message'])}"
    return _STOPPED.get(reason, f"the run ended with {reason!r}")


def _explain_failure(failure: BaseException, console: Console) -> None:
    message, fix = failure_lines(failure)
    console.error(message)
    if fix is not None:
        console.tell(fix)
    if debugging():
        import traceback

        console.say("".join(traceback.format_exception(failure)).rstrip())


def _explain_pause(ended: Ended, path: str, console: Console, *, yes: bool) -> None:
    """Name everything that waits with all of its arguments, and the ways on."""
    approvals = [request for request in ended.waiting if request.kind is None]
    for request in ended.waiting:
        if request.kind == "question":
            console.say(paint("waiting:", "yellow"), f" the agent asks: {Question.of(request).lines()}")
        elif request.kind is not None:
            console.say(paint("waiting:", "yellow"), f" the agent needs a sign-in for {call_text(request)}")
        else:
            console.say(paint("waiting:", "yellow"), f" {call_text(request)} needs approval")
    ways = [f"lousho chat {_shell_word(path)} asks you"]
    if len(approvals) == len(ended.waiting):
        ways.append("--yes approves every such call")
    else:
        ways.append("put the answer into the prompt and run it again" + (" (--yes answers no question)" if yes else ""))
    console.tell(
        f"What is named above has not run; other calls of the same step have. {_keeping(ended)} To go on: {', or '.join(ways)}."
    )


def _keeping(ended: Ended) -> str:
    if not ended.kept:
        return "Without a store the pause ends with this command."
    ids = ", ".join(request.approval_id for request in ended.waiting)
    return f"The agent's store keeps the pause; agent.approvals decides it by its id ({ids})."


def call_text(request: ApprovalRequestedEvent) -> str:
    """Return `name({...})` with all of the arguments, on one line."""
    return f"{one_row(request.tool_name)}({one_row(dump_json(request.args))})"


def _shell_word(path: str) -> str:
    """Return the path as it can be pasted into the shell of this machine."""
    text = plain_text(path)
    if sys.platform == "win32":
        return f'"{text}"' if " " in text else text
    import shlex

    return shlex.quote(text)
