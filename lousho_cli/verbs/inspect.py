"""`lousho inspect <path>`: what an agent is made of, without asking a model. What it does is in `lousho_cli.inspect`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from lousho_cli.console import Console
from lousho_cli.errors import UsageError
from lousho_cli.options import AgentPath, Model

EXAMPLES = (
    ("lousho inspect ./my-agent", "model, prompt, tools, rules, limits"),
    ("lousho inspect . --prompt | less", "the system prompt alone"),
    ("lousho inspect agent.py --json", "one JSON document for programs"),
)

MISSING = "`lousho inspect .` looks at the agent in this directory, `lousho init my-agent` starts a project"

VIEWS = ("--prompt", "--tools", "--json")


def inspect(
    path: AgentPath,
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the system prompt alone, as a run sends it.")] = False,
    tools: Annotated[
        bool, typer.Option("--tools", help="Print the tools alone, with the JSON Schemas that the model sees.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document with everything.")] = False,
    model: Model = None,
) -> None:
    """Show what an agent is made of: model, prompt, tools, rules, limits.

    No model is asked and nothing is sent. Keys are never printed.
    """
    from lousho_cli.inspect.start import look_at

    code = look_at(path, model=model, prompt=prompt, tools=tools, as_json=as_json, console=Console())
    if code:
        raise typer.Exit(code)


def check(flags: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Raise `UsageError` where more than one thing is to be printed."""
    asked = [name for name in VIEWS if name in flags]
    if len(asked) > 1:
        raise UsageError(f"{asked[0]} and {asked[1]} exclude each other")
