"""`lousho help [command]`, also `lousho --help`: all verbs, or one verb's usage, examples and flags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from lousho_cli.commands import VERBS, load_verb
from lousho_cli.console import Console
from lousho_cli.errors import UsageError
from lousho_cli.help import overview, terminal_width, verb_help

EXAMPLES = (
    ("lousho help", "every command with its flags"),
    ("lousho help chat", "one command: usage, examples, flags"),
)


def help(  # noqa: A001 - the verb is called help
    command: Annotated[str | None, typer.Argument(metavar="command", help="The command to explain.")] = None,
) -> None:
    """List every command, or explain one."""
    explain(command, Console())


def explain(command: str | None, console: Console) -> None:
    """Print the list of commands, or the help page of `command`."""
    if command is None:
        console.out(overview(terminal_width()))
    elif command in VERBS:
        console.out(verb_help(load_verb(command), terminal_width()))
    else:
        from lousho_cli.main import unknown_verb

        raise unknown_verb(command)


def answer(words: Sequence[str], console: Console) -> None:
    """Answer `lousho help …` without Typer's parser, whose converters would cost more than the page."""
    from lousho_cli.grammar import canonical, wants_help
    from lousho_cli.help import usage_line

    verb = load_verb("help")
    if wants_help(words):
        explain("help", console)
        return
    try:
        arguments = canonical(verb.command, words)
    except UsageError as error:
        error.usage = usage_line(verb)
        raise
    explain(arguments[1] if len(arguments) > 1 else None, console)
