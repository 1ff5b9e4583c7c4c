"""The `lousho` program: find the verb, check its arguments, run it, turn what it raised into an exit code.

Nothing heavy is imported here: `--help`, `--version` and a usage error must cost little more than Typer itself.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from lousho_cli.commands import HELP_FLAGS, VERBS, Verb, load_verb
from lousho_cli.console import Console, fill_closed_descriptors
from lousho_cli.errors import UsageError, report

COMPLETION_VARIABLE = "_LOUSHO_COMPLETE"
COMPLETION_FLAGS = ("--install-completion", "--show-completion")
OVERVIEW_USAGE = f"lousho <command> [flags], where <command> is one of {', '.join(VERBS)}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (the process's own unless `argv` is given) and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    fill_closed_descriptors()
    console = Console()
    degrade_unprintable_characters()
    code = 0
    gc.disable()  # starting up makes many objects and hardly any garbage; `run_verb` switches it on again
    try:
        code = dispatch(words, console)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - this is the one boundary
        code = report(error, console)
    finally:
        gc.enable()
    try:
        console.flush()
    except OSError as error:
        lost = report(error, console)
        console.abandon_stdout()  # or the interpreter would try to write the same again, and complain
        return code or lost
    return code


def create_agent_main() -> int:
    """`create-lousho-agent …`: the same as `lousho init …`, for a one-shot `uvx create-lousho-agent my-agent`."""
    return main(["init", *sys.argv[1:]])


def dispatch(words: Sequence[str], console: Console) -> int:
    """Run the verb that `words` begin with; return 0, or the code of a raised `typer.Exit`."""
    if COMPLETION_VARIABLE in os.environ or (words and words[0] in COMPLETION_FLAGS):
        from lousho_cli.completion import complete

        return complete(words)
    if not words:
        from lousho_cli.help import friendly_start
        from lousho_cli.verbs.version import installed_version

        console.out(friendly_start(installed_version()))
        return 0
    first, rest = words[0], words[1:]
    if first in HELP_FLAGS:
        first = "help"
    elif first == "--version":
        first = "version"
    if first == "version" and not rest:  # answered without Typer: scripts ask this often
        from lousho_cli.verbs.version import installed_version

        console.out(installed_version())
        return 0
    if first == "help" and not rest:  # the list of all verbs needs none of them
        from lousho_cli.help import overview, terminal_width

        console.out(overview(terminal_width()))
        return 0
    if first == "help":
        from lousho_cli.verbs.help import answer

        answer(rest, console)
        return 0
    if first not in VERBS:
        raise unknown_verb(first)
    try:
        return run_verb(load_verb(first), rest, console)
    except UsageError as error:
        if words[0] == "--version":
            error.usage = "lousho --version"
        raise


def run_verb(verb: Verb, words: Sequence[str], console: Console) -> int:
    """Check `words` against the verb's own signature, then run it."""
    import typer

    from lousho_cli.grammar import canonical, taken_apart, wants_help
    from lousho_cli.help import terminal_width, usage_line, verb_help

    if wants_help(words):
        console.out(verb_help(verb, terminal_width()))
        return 0
    try:
        arguments = canonical(verb.command, words)
        if verb.check is not None:
            verb.check(*taken_apart(arguments))
        with verb.command.make_context(f"lousho {verb.name}", arguments) as context:
            gc.enable()
            verb.command.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except (UsageError, typer.BadParameter) as error:
        raise explain_usage(verb, error, usage_line(verb)) from error
    return 0


def explain_usage(verb: Verb, error: Exception, usage: str) -> Exception:
    """Return the error to show: with the verb's usage line, or in the form that `init` has for itself."""
    from typer import BadParameter

    message = error.format_message() if isinstance(error, BadParameter) else str(error)
    if verb.name == "init":
        from lousho.scaffold.errors import InitUsageError

        return InitUsageError(f"{message}\nusage: {usage}")
    if verb.missing and message.startswith("missing "):
        message = f"{message}. {verb.missing}"
    shown = error if isinstance(error, UsageError) else UsageError(message)
    shown.message = message
    shown.usage = shown.usage or usage
    return shown


def unknown_verb(word: str) -> UsageError:
    """Return the error for a first word that is no verb, with the nearest one."""
    from lousho.core.suggest import nearest
    from lousho_cli.grammar import SHOWN, shown

    what = "flag" if word.startswith("-") else "command"
    known = [*HELP_FLAGS, "--version", *COMPLETION_FLAGS] if what == "flag" else VERBS
    close = nearest(word[:SHOWN], list(known))
    meant = f"lousho {close}" if what == "command" else close
    hint = f". Did you mean {meant}?" if close else ". lousho --help lists all of them"
    error = UsageError(f"unknown {what} {shown(word)}{hint}")
    error.usage = OVERVIEW_USAGE
    return error


def degrade_unprintable_characters() -> None:
    """Let the standard streams replace what they cannot encode or decode: a tool's emoji must not end a chat."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
