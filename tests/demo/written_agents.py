"""Writes made-up agents as agent directories: a settings file, and one Python file for each tool."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import indent
from typing import Any

from made_up import BODIES, Call, MadeUpAgent

from lousho.tools import Tool

_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_HEAD = '''"""A tool made up for a test."""

import json
from pathlib import Path
from typing import Literal

from lousho import ToolArgumentsValidationError, define_tool, tool
from lousho.core.errors import Issue

NAME = {name!r}


def act(arguments):
    with Path({log!r}).open("a", encoding="utf-8") as log:
        log.write(json.dumps([NAME, arguments]) + "\\n")
{body}


'''
_DEFINED = """made = define_tool(
    name=NAME,
    description={description!r},
    input=json.loads({schema!r}),
    execute=act,
    needs_approval={gated!r},
)
"""
_TYPED = '''@tool(needs_approval={gated!r})
def {name}({parameters}) -> object:
    """{description}

    Args:
{told}
    """
    return act({{key: value for key, value in locals().items() if value is not None}})
'''


def write_directory(made: MadeUpAgent, folder: Path, log: Path) -> Path:
    """Write an agent directory; its tools note their calls in `log`, one JSON line each."""
    (folder / "tools").mkdir(parents=True)
    settings: dict[str, Any] = {"model": "mock/demo", "toolConcurrency": 1}
    (folder / "agent.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "instructions.md").write_text("Do what you are asked.\n", encoding="utf-8")
    for tool in made.tools:
        (folder / "tools" / f"{tool.name}.py").write_text(_source(tool, log), encoding="utf-8")
    return folder


def calls_in(log: Path) -> list[Call]:
    """Return the calls noted since the last time, and forget them."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    log.write_text("", encoding="utf-8")
    return [(name, arguments) for name, arguments in map(json.loads, lines)]


def _source(tool: Tool, log: Path) -> str:
    body = indent(BODIES[tool.name].strip(), "    ")
    head = _HEAD.format(name=tool.name, log=str(log), body=body)
    schema = tool.input_schema
    gated = bool(tool.needs_approval)
    parameters = {key: _hint(part) for key, part in schema.get("properties", {}).items()}
    if None in parameters.values():
        return head + _DEFINED.format(description=tool.description, schema=json.dumps(schema), gated=gated)
    needed = set(schema.get("required", []))
    ordered = sorted(parameters, key=lambda key: key not in needed)
    written = [
        f"{key}: {parameters[key]}" if key in needed else f"{key}: {parameters[key]} | None = None" for key in ordered
    ]
    told = [f"        {key}: {schema['properties'][key].get('description', '')}" for key in ordered] or ["        none"]
    return head + _TYPED.format(
        name=tool.name, parameters=", ".join(written), description=tool.description, told="\n".join(told), gated=gated
    )


def _hint(part: dict[str, Any]) -> str | None:
    """Return a type hint for a parameter, `None` when only a schema can say what it is."""
    if "enum" in part:
        return f"Literal[{', '.join(map(repr, part['enum']))}]"
    if part.get("format") or "minimum" in part:
        return None
    if part.get("type") == "array":
        inner = _hint(part.get("items", {}))
        return inner and f"list[{inner}]"
    return _PLAIN.get(str(part.get("type")))
