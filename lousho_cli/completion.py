"""Shell completion, as Typer offers it: built only when a shell asks, or to install it.

The verbs are listed from the same table and completed from the same signatures as everywhere else.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer
from typer.core import TyperGroup

from lousho_cli.commands import VERBS, load_verb

if TYPE_CHECKING:
    from typer.core import TyperCommand


class LazyVerbs(TyperGroup):
    """All verbs; one is imported when its own flags are completed."""

    def list_commands(self, ctx: object) -> list[str]:
        """Return every verb."""
        return list(VERBS)

    def get_command(self, ctx: object, cmd_name: str) -> TyperCommand | None:
        """Import one verb."""
        return load_verb(cmd_name).command if cmd_name in VERBS else None


def complete(words: Sequence[str]) -> int:
    """Answer the shell that asks for completions, or install or print its script; return the exit code."""
    app = typer.Typer(cls=LazyVerbs, rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=True)

    @app.callback()
    def lousho() -> None:
        """Build, run and test AI agents."""

    _complete_environment()
    try:
        app(list(words), prog_name="lousho")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    return 0


def _complete_environment() -> None:
    """Set what a shell says along with its question, where it did not: an empty command line."""
    for name, value in {"COMP_WORDS": "lousho ", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "lousho "}.items():
        os.environ.setdefault(name, value)
    if not os.environ["COMP_CWORD"].isdecimal():
        os.environ["COMP_CWORD"] = "1"
