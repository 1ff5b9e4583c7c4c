"""Arguments and flags that more than one verb takes, declared once.

A flag whose value is optional has a metavar in the form `[=dir]`: the grammar then takes its value only after an equals
sign, and the verb receives an empty string for the bare flag.
"""

from __future__ import annotations

from typing import Annotated

import typer

AGENT_PATH = "spec.yaml|spec.json|agent-dir|agent.py"

AgentPath = Annotated[
    str,
    typer.Argument(metavar=AGENT_PATH, help="The agent: a spec file, an agent directory or a Python module."),
]
OptionalAgentPath = Annotated[
    str | None,
    typer.Argument(metavar=AGENT_PATH, help="The agent: a spec file, an agent directory or a Python module."),
]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="provider/model", help="Use this model instead of the one the agent names."),
]
