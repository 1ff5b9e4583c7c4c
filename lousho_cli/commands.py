"""Which verbs exist and where each lives, so that running one imports none of the others.

A verb module holds one function named like the verb. Its signature is the only declaration of the verb's arguments
and flags, its docstring is the help text (the first line is the summary), and `EXAMPLES` are command lines for the
help page. `MISSING`, where there is one, is what to say when a required argument is not given, and `check(flags,
arguments)` raises `UsageError` for values that the verb cannot use, before Typer converts them, which is slow. To add a
verb, write `lousho_cli/verbs/<verb>.py`, name it in `VERBS` and describe it in `OVERVIEW`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typer.core import TyperCommand

VERBS: Mapping[str, str] = {
    "init": "lousho_cli.verbs.init",
    "doctor": "lousho_cli.verbs.doctor",
    "chat": "lousho_cli.verbs.chat",
    "run": "lousho_cli.verbs.run",
    "inspect": "lousho_cli.verbs.inspect",
    "help": "lousho_cli.verbs.help",
    "version": "lousho_cli.verbs.version",
}
"""Verb to module, in the order in which `lousho --help` lists them."""

HELP_FLAGS = ("-h", "--help")


Check = Callable[[Mapping[str, str], Sequence[str]], None]
"""Takes the flags, by name, with their values (empty for a switch), and the arguments."""


class Verb(NamedTuple):
    """A verb that was imported and is ready to be checked, explained or run."""

    name: str
    command: TyperCommand
    """The parameters and the function behind them."""
    examples: tuple[tuple[str, str], ...]
    """Command line and what it does, for the help page."""
    missing: str = ""
    """What to do when a required argument is not given."""
    check: Check | None = None
    """Raises `UsageError` for values that cannot be used."""


def load_verb(name: str) -> Verb:
    """Import the verb `name`, which must be one of `VERBS`, and build its command."""
    import typer
    from typer.core import TyperCommand

    module = import_module(VERBS[name])
    function: Callable[..., None] = getattr(module, name)
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    app.command(name, context_settings={"help_option_names": list(HELP_FLAGS)})(function)
    command = typer.main.get_command(app)
    assert isinstance(command, TyperCommand)
    examples = tuple(getattr(module, "EXAMPLES", ()))
    return Verb(name, command, examples, getattr(module, "MISSING", ""), getattr(module, "check", None))
