"""`lousho doctor`: one line per check, worst first, and a fix for everything that is not well."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lousho_cli.console import Console, Style, columns_of, folded, paint
from lousho_cli.errors import FAILED
from lousho_cli.options import OptionalAgentPath

if TYPE_CHECKING:
    from lousho.diagnose.report import Report, Status

EXAMPLES = (
    ("lousho doctor", "this machine and the keys"),
    ("lousho doctor .", "and the agent in this directory, whose key is then required"),
    ("lousho doctor --ping", "and whether each provider answers and accepts its key"),
    ("lousho doctor --json", "one JSON document for programs"),
)

_TAGS: dict[Status, tuple[str, Style]] = {
    "ok": ("[ ok ]", "green"),
    "warn": ("[warn]", "yellow"),
    "fail": ("[FAIL]", "red"),
}
FIX_INDENT = " " * 7


def doctor(
    path: OptionalAgentPath = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of lines.")] = False,
    ping: Annotated[
        bool, typer.Option("--ping", help="Ask each configured provider whether it answers and accepts the key.")
    ] = False,
) -> None:
    """Check Python, dependencies, provider keys and, if named, an agent.

    Every problem comes with its fix. Keys are never printed, so the output can go into a public issue. The exit code is
    1 when a check fails; warnings do not count.
    """
    from lousho.diagnose.examine import examine

    console = Console()
    encoding = getattr(sys.stdout, "encoding", None)
    with console.apart_from_prints() as apart:  # an agent that prints while it loads must not spoil the document
        report = examine(path, env=os.environ, cwd=Path.cwd(), encoding=encoding, ping=ping)
        if as_json:
            apart.out(json.dumps(report.to_dict(), indent=2, ensure_ascii=True))
        else:
            show(report, apart)
    if not report.healthy:
        raise typer.Exit(FAILED)


def show(report: Report, console: Console) -> None:
    """Print the report for a person."""
    columns = columns_of(console.stdout)
    console.out("lousho doctor\n")
    for check in report.checks:
        tag, style = _TAGS[check.status]
        console.out(paint(tag, style), f" {_folded(f'{check.name}: {check.found}', columns)}")
        if check.fix is not None:
            console.out(f"{FIX_INDENT}{_folded(f'fix: {check.fix}', columns)}")
    console.out(f"\n{report.summary}")


def _folded(text: str, columns: int | None) -> str:
    """Return `text` to write behind a tag, its further lines below its first."""
    indented = text.replace("\n", f"\n{FIX_INDENT}")
    return folded(indented, columns, used=len(FIX_INDENT), indent=FIX_INDENT)
