"""What the command line of `lousho run` asks for, checked before anything heavy is imported or anything is read."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Final, Literal, NamedTuple, get_args

from lousho_cli.console import Console, is_terminal
from lousho_cli.errors import UsageError
from lousho_cli.grammar import shown

Mode = Literal["text", "json", "stream-json"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)

LONGEST_LIMIT_S = 10_000_000.0
NO_PROMPT = "there is no prompt. Give it as an argument, or pipe it in: echo 'hello' | lousho run agent.yaml"


class Wanted(NamedTuple):
    """A run as the command line describes it."""

    path: str
    prompt: str | None
    """The argument; None without one, `-` for stdin."""
    model: str | None
    mode: Mode
    """What goes to stdout."""
    limit_s: float | None
    """How long the run may take, in seconds."""
    yes: bool
    """Whether calls that wait for approval are approved."""


def wanted(
    path: str,
    prompt: str | None,
    console: Console,
    *,
    output: str | None,
    timeout: str | None,
    model: str | None = None,
    yes: bool = False,
) -> Wanted:
    """Return what is asked for. Raises `UsageError` for a value that cannot be used, and where there can be no prompt.

    An empty prompt of a run that is to answer in JSON is left to it: the answer is a document then, too.
    """
    mode, limit_s = _mode(output), _seconds(timeout)
    if mode == "text" and prompt is not None and not prompt.strip():
        raise UsageError("the prompt is empty")
    if prompt is None and is_terminal(console.stdin):
        raise UsageError(NO_PROMPT)
    return Wanted(path, prompt, model, mode, limit_s, yes)


def _mode(text: str | None) -> Mode:
    if text is None:
        return MODES[0]
    if text in MODES:
        return text
    from lousho.core.suggest import nearest

    close = nearest(text, MODES)
    hint = f". Did you mean {close}?" if close else ""
    raise UsageError(f"--output {shown(text)} is not one of {', '.join(MODES)}{hint}")


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    seconds = math.nan
    with suppress(ValueError):
        seconds = float(text)
    if not 0 < seconds <= LONGEST_LIMIT_S:
        most = f"{LONGEST_LIMIT_S:,.0f}"
        raise UsageError(
            f"--timeout {shown(text)} is not a number of seconds above 0 and up to {most}, such as --timeout 30"
        )
    return seconds
