"""`lousho run <path> [prompt]`: one turn of an agent without a terminal. What it does is in `lousho_cli.run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from lousho_cli.console import Console
from lousho_cli.options import AgentPath, Model

EXAMPLES = (
    ("lousho run ./my-agent 'Roll two dice'", "one turn; the answer alone goes to stdout"),
    ("git diff | lousho run . 'Review this'", "the prompt, then what the pipe holds"),
    ("lousho run agent.yaml - < question.txt", "the prompt from a file"),
    ("lousho run agent.py 'hello' --output json | jq .usage", "one JSON document for programs"),
)

MISSING = "`lousho run . 'hello'` runs the agent in this directory, `lousho init my-agent` starts a project"


def run(
    path: AgentPath,
    prompt: Annotated[
        str | None,
        typer.Argument(
            metavar="prompt",
            help="What to ask, - for stdin. What is piped in is added to it. One that begins with a dash goes after --.",
        ),
    ] = None,
    model: Model = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="text|json|stream-json",
            help="The answer, one JSON document at the end, or every event as a line of JSON. Default: text.",
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="seconds", help="Stop the run after this time, with exit code 1."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Approve every call that asks for it. A question is never answered.")
    ] = False,
) -> None:
    """Run an agent for one turn and print its answer.

    Nobody is asked anything. The exit code is 0 for an answer, 1 for a failure or an early stop, 3 when the run waits
    for an approval or a question, and 130 after Ctrl-C.
    """
    from lousho_cli.run.start import run_once
    from lousho_cli.run.wanted import wanted

    console = Console()
    code = run_once(wanted(path, prompt, console, model=model, output=output, timeout=timeout, yes=yes), console)
    if code:
        raise typer.Exit(code)


def check(flags: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Raise `UsageError` for a value that cannot be used, and where there can be no prompt."""
    from lousho_cli.run.wanted import wanted

    path, prompt = [*arguments, None][:2]
    wanted(path or "", prompt, Console(), output=flags.get("--output"), timeout=flags.get("--timeout"))
