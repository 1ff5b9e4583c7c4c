"""Tools as they are given to an agent or to one call: a list, or a mapping of names, checked into one shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias, cast

from lousho.core.errors import ConfigurationError
from lousho.tools.builtin import ASK_QUESTION, ask_question_tool
from lousho.tools.definition import Tool
from lousho.tools.descriptor import ToolLike, as_tool

ToolsOption: TypeAlias = "Sequence[ToolLike] | Mapping[str, ToolLike]"


def checked_tools(given: Any, *, where: str, field: str = "tools") -> dict[str, Tool]:
    """Return the tools by name; a mapping's key renames its tool. A descriptor becomes a tool.

    Raises `LOUSHO_CONFIG_INVALID` for what is no tool and for two tools of one name; `where` begins the message.
    """
    tools: dict[str, Tool] = {}
    pairs: list[tuple[str | None, Any]]
    if isinstance(given, Mapping):
        pairs = list(cast("Mapping[str, Any]", given).items())
    elif isinstance(given, Tool) or not isinstance(given, Iterable) or isinstance(given, str):
        raise ConfigurationError(f"{where}: {field} must be a list of tools or a mapping of names.", field=field)
    else:
        pairs = [(None, item) for item in cast("Iterable[Any]", given)]
    for key, item in pairs:
        named = as_tool(item, key, where=where)
        if named.name in tools:
            raise ConfigurationError(f"{where}: two tools are named {named.name!r}.", field=field)
        tools[named.name] = named
    return tools


def without_question(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """Leave out what `with_question()` added."""
    return {name: tool for name, tool in tools.items() if tool is not _question()}


def with_question(tools: dict[str, Tool], *, ask_question: bool) -> dict[str, Tool]:
    """Add the tool that asks the user where the agent has it, unless there is one of that name."""
    if ask_question and ASK_QUESTION not in tools:
        tools[ASK_QUESTION] = _question()
    return tools


@cache
def _question() -> Tool:
    return ask_question_tool()
