"""What ends a command with another code than 0, and the one function that decides which code and which words.

Commands just raise. 0 is success, 1 ran and failed, 2 a usage error, 130 interrupted, 141 the reader of a pipe left.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lousho.core.sdk_error import SDKError
    from lousho_cli.console import Console

FAILED = 1
USAGE = 2
INTERRUPTED = 130
PIPE_CLOSED = 141

DEBUG_VARIABLE = "LOUSHO_DEBUG"

POINTING_CODES = frozenset({"LOUSHO_CONFIG_INVALID", "LOUSHO_AGENT_DIR_INVALID"})
"""Codes whose general fix is to correct what the message names; on a screen, below the message, that says nothing."""


class UsageError(Exception):
    """The command line itself is wrong: exit 2, the message, then its code and the usage line.

    A verb raises it for a value that it cannot use; `code` is the error code to print.
    """

    def __init__(self, message: str, *, code: str = "LOUSHO_CONFIG_INVALID") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.usage: str | None = None
        """The verb's usage line; the program fills it in."""


class Terminated(KeyboardInterrupt):
    """A signal ended the program while code of the user blocked it. A tool cannot take it for an error of its own."""

    def __init__(self, exit_code: int) -> None:
        super().__init__()
        self.exit_code = exit_code


def report(error: BaseException, console: Console) -> int:
    """Say on stderr what went wrong and what to do about it; return the exit code."""
    if isinstance(error, KeyboardInterrupt):
        return error.exit_code if isinstance(error, Terminated) else INTERRUPTED
    if isinstance(error, BrokenPipeError):
        console.abandon_stdout()
        return PIPE_CLOSED
    if debugging() and not isinstance(error, UsageError):
        import traceback

        console.say("".join(traceback.format_exception(error)).rstrip())
    if isinstance(error, UsageError):
        return _report_usage(error, console)

    from lousho.scaffold.errors import InitUsageError

    if isinstance(error, InitUsageError):
        console.tell(str(error))
        return USAGE

    from lousho.core.sdk_error import SDKError

    if isinstance(error, SDKError):
        console.error(f"{error.detail}\n{help_line(error)}" if str(error) != error.detail else error.detail)
    elif isinstance(error, OSError):
        console.error(os_error_sentence(error))
    else:
        first_line = str(error).strip().partition("\n")[0]
        name = type(error).__name__
        console.error(f"unexpected {name}: {first_line}" if first_line else f"unexpected {name}")
        if not debugging():
            console.tell(f"To see where it happened, run the command again with {_set_debug()}.")
    return FAILED


def help_line(error: SDKError) -> str:
    """Return code, fix and link of an error; without the fix where that only says to look at the message above it."""
    if error.code in POINTING_CODES:
        return f"[{error.code}] {error.docs}"
    return f"[{error.code}] {error.hint} ({error.docs})"


def debugging() -> bool:
    """Whether `LOUSHO_DEBUG` asks for tracebacks."""
    return os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")


def os_error_sentence(error: OSError) -> str:
    """Return a file system or socket failure as one sentence that names the file and what to do."""
    import errno

    if error.errno == errno.ENOENT and error.filename is None and not _has_working_directory():
        return "the current directory does not exist any more\nChange to one that does."
    reason = error.strerror or str(error) or type(error).__name__
    sentence = f"{reason}: {error.filename}" if error.filename is not None else reason
    advice = {
        errno.ENOSPC: "Free some space and run the command again.",
        errno.EDQUOT: "Free some space and run the command again.",
        errno.EROFS: "Choose a directory that you can write to.",
        errno.EACCES: "Check the permissions, or choose a directory that you can write to.",
        errno.EPERM: "Check the permissions, or choose a directory that you can write to.",
        errno.EMFILE: "Too many files are open; raise the limit with `ulimit -n`.",
    }.get(error.errno or 0)
    return f"{sentence}\n{advice}" if advice else sentence


def _report_usage(error: UsageError, console: Console) -> int:
    from lousho.core.sdk_error import SDKError  # the whole family of errors would cost a usage error its speed

    usage = f"usage: {error.usage}" if error.usage else ""
    console.error(error.message)
    if error.code in POINTING_CODES and usage:
        console.tell(f"[{error.code}] {usage}")
        return USAGE
    console.tell(help_line(SDKError(error.message, code=error.code)))
    if usage:
        console.tell(usage)
    return USAGE


def _has_working_directory() -> bool:
    from pathlib import Path

    try:
        Path.cwd()
    except OSError:
        return False
    return True


def _set_debug() -> str:
    return f'$env:{DEBUG_VARIABLE}="1"' if os.name == "nt" else f"{DEBUG_VARIABLE}=1"
