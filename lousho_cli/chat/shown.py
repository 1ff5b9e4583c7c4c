"""How values look in the chat: a call, a result, tokens and money, a failure. Text only, no screen.

The forms are those of the CLI page: `[lookup] {"q":"cats"}`, `  -> found cats`, `[usage] 20 in / 6 out tokens, $0.0004`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lousho.core import errors
from lousho.core.console_text import plain_text, shorten_block
from lousho.core.errors import CompactedLLMProviderError, LLMProviderError, SDKError, original_error
from lousho.core.json_values import dump_json
from lousho.core.usage import RunUsage
from lousho_cli.errors import help_line

RESULT_LINES = 12
RESULT_CHARS = 2_000
ARGUMENT_CHARS = 400
SLOW_MS = 1_000
"""A call that took at least this long shows its duration."""

_INDENT = "     "

_TOLD_BY_THEIR_MESSAGE = frozenset({*errors.TOOL_ERROR_NAMES.values(), *errors.__all__})
"""Names of failures that are worded here; the message of any other exception may be no more than `'tea pot'`."""


@dataclass(slots=True)
class ShownCall:
    """A tool call of the conversation, kept so that `/last` can show all of it."""

    name: str
    args: Any
    result: Any = None
    error: str | None = None
    duration_ms: int = 0

    @property
    def outcome(self) -> str:
        """The whole result or error as text."""
        return f"error: {self.error}" if self.error is not None else value_text(self.result)


def error_text(name: str, message: str) -> str:
    """Return a failed call's error as a person reads it: with the exception's type, unless it is one of ours."""
    if name == "SystemExit":
        return "SystemExit: the tool called sys.exit()" + (f" with {message}" if message != name else "")
    return message if name in _TOLD_BY_THEIR_MESSAGE or message == name else f"{name}: {message}"


def value_text(value: Any) -> str:
    """Return a result as text: a text as it is, anything else as compact JSON."""
    return value if isinstance(value, str) else dump_json(value)


def call_line(call: ShownCall) -> str:
    """Return `[name] {args}` on one line; long arguments lose their middle."""
    text = dump_json(call.args)
    if len(text) > ARGUMENT_CHARS:
        start, end = text[: ARGUMENT_CHARS * 2 // 3], text[-ARGUMENT_CHARS // 3 :]
        text = f"{start} ... {len(text) - len(start) - len(end):,} more characters, /last shows them ... {end}"
    return f"[{plain_text(call.name)}] {one_row(text)}"


def outcome_lines(call: ShownCall) -> str:
    """Return `  -> result` or `  -> error: ...`; a large result is cut to its first and last lines and says so."""
    whole = plain_text(call.outcome)
    text = shorten_block(whole, RESULT_LINES, RESULT_CHARS)
    if text != whole:
        lines = whole.count("\n") + 1
        text += f"\n({size_text(len(whole))}, {lines:,} line{'' if lines == 1 else 's'}; /last shows all)"
    if call.duration_ms >= SLOW_MS and call.error is None:
        text += f" ({duration_text(call.duration_ms)})"
    return f"  -> {text}".replace("\n", f"\n{_INDENT}")


def full_call(call: ShownCall) -> str:
    """Return a call with all of its arguments and all of its result."""
    return f"[{call.name}] {dump_json(call.args)}\n  -> {call.outcome}"


def usage_line(usage: RunUsage) -> str:
    """Return the tokens of a turn, `~` before estimates, and the cost where every model of the turn has a price."""
    mark = "~" if usage.estimated else ""
    line = f"[usage] {mark}{usage.input_tokens} in / {mark}{usage.output_tokens} out tokens"
    if usage.cost_usd is None or usage.cost_partial:
        return line
    return f"{line}, {cost_text(usage.cost_usd)}"


def cost_text(usd: float) -> str:
    """Return an amount as `$0.0004`; what is smaller than that can show says so."""
    return "<$0.0001" if 0 < usd < 0.00005 else f"${usd:.4f}"


def duration_text(ms: float) -> str:
    """Return `1.2 s`, or `2 min 5 s` from a minute on."""
    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def size_text(characters: int) -> str:
    """Return a number of characters as a person reads it."""
    return (
        f"{characters:,} characters" if characters < 1_000_000 else f"{characters / 1_000_000:.1f} million characters"
    )


def failure_lines(error: BaseException) -> tuple[str, str | None]:
    """Return what went wrong (`message (category, HTTP status)`), and the code with its fix where there is one."""
    error = original_error(error)
    if not isinstance(error, SDKError):
        text = str(error).strip()
        return (f"{type(error).__name__}: {text}" if text else type(error).__name__), None
    facts: list[str] = []
    if isinstance(error, CompactedLLMProviderError) and (
        error.compacted.category != "unknown" or error.status_code is not None
    ):
        facts.append(error.compacted.category)
    if isinstance(error, LLMProviderError) and error.status_code is not None:
        facts.append(f"HTTP {error.status_code}")
    detail = error.detail.strip() or type(error).__name__
    return f"{detail} ({', '.join(facts)})" if facts else detail, help_line(error)


def one_row(text: str) -> str:
    """Return `text` without line breaks, so that one line stays one line."""
    return " ".join(plain_text(text).splitlines()) if "\n" in text or "\r" in text else plain_text(text)
