"""`lousho chat <path>`: talk to an agent in the terminal. The conversation itself is in `lousho_cli.chat`."""

from __future__ import annotations

from typing import Annotated

import typer

from lousho_cli.console import Console
from lousho_cli.options import AgentPath, Model

EXAMPLES = (
    ("lousho chat ./my-agent", "talk to an agent directory"),
    ("lousho chat agent.yaml --model openai/gpt-4o", "a spec file, on another model"),
    ("echo 'hello' | lousho chat agent.py", "one turn a line; the answer alone goes to stdout"),
)

MISSING = "`lousho chat .` talks to the agent in this directory, `lousho init my-agent` starts a project"


def chat(
    path: AgentPath,
    model: Model = None,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="id", help="Name the session; 1 to 128 letters, digits, '_' or '-'."),
    ] = None,
) -> None:
    """Talk to an agent in the terminal.

    Replies stream, tool calls show with their results, approvals and questions are asked. In the chat, /help lists the
    commands and keys.
    """
    from lousho_cli.chat.start import talk

    code = talk(path, model=model, session_id=session, console=Console())
    if code:
        raise typer.Exit(code)
