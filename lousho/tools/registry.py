"""A set of tools by name, to fill once and share between agents. Source: tools page ("ToolRegistry")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast, overload

from lousho.core.errors import ConfigurationError
from lousho.core.suggest import did_you_mean
from lousho.tools.descriptor import ToolDescriptor, ToolLike, as_tool
from lousho.tools.tool_type import Tool

_WHERE = "ToolRegistry"


class ToolRegistry(Mapping[str, Tool]):
    """Tools by name. It is a read-only mapping, so `create_agent(tools=registry)` takes it as it is.

    An agent takes the tools that are there when it is made. Source: tools page.
    """

    def __init__(self, tools: Mapping[str, ToolLike] | Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self.register_many(tools)

    @overload
    def register(self, tool: Tool, /) -> Tool: ...
    @overload
    def register(self, name: str, descriptor: ToolLike, /) -> Tool: ...
    def register(self, first: Any, second: Any = None, /) -> Tool:
        """Add a tool, or a descriptor under a name, and return the tool that it is now.

        Raises `LOUSHO_CONFIG_INVALID` for a name that is taken, naming it, and for what is no tool.
        """
        if isinstance(first, str):
            if second is None:
                raise ConfigurationError(
                    f"{_WHERE}: register({first!r}) says no tool; write register({first!r}, descriptor).", field="tool"
                )
            return self._add({}, as_tool(second, first, where=_WHERE))
        if second is not None:
            raise ConfigurationError(
                f"{_WHERE}: the name comes first: register('name', descriptor); got {type(first).__name__}.",
                field="name",
            )
        return self._add({}, as_tool(first, where=_WHERE))

    def register_many(self, tools: Mapping[str, ToolLike] | Iterable[Tool]) -> None:
        """Add tools of a list, or descriptors of a mapping under its keys: all of them, or none when one is refused.

        Raises `LOUSHO_CONFIG_INVALID`.
        """
        added: dict[str, Tool] = {}
        given: Any = tools
        if isinstance(given, Mapping):
            for name, value in cast("Mapping[Any, Any]", given).items():
                self._check(added, as_tool(value, name, where=_WHERE))
        elif isinstance(given, (str, bytes, Tool)) or not isinstance(given, Iterable):
            raise ConfigurationError(
                f"{_WHERE}: register_many() takes a list of tools or a mapping of names; for one tool use register().",
                field="tools",
            )
        else:
            for value in cast("Iterable[Any]", given):
                self._check(added, as_tool(value, where=_WHERE))
        self._tools.update(added)

    def remove(self, name: str) -> Tool:
        """Take a tool out and return it. Raises `LOUSHO_CONFIG_INVALID` when there is none of that name."""
        if name not in self._tools:
            raise ConfigurationError(
                f"{_WHERE}: there is no tool {name!r}{did_you_mean(str(name), self._tools)}.", field="name"
            )
        return self._tools.pop(name)

    def has(self, name: str) -> bool:
        """Return whether there is a tool of this name."""
        return name in self._tools

    def names(self) -> list[str]:
        """The names of the tools, in the order they came."""
        return list(self._tools)

    def _add(self, added: dict[str, Tool], tool: Tool) -> Tool:
        self._check(added, tool)
        self._tools[tool.name] = tool
        return tool

    def _check(self, added: dict[str, Tool], tool: Tool) -> None:
        if tool.name in self._tools or tool.name in added:
            raise ConfigurationError(
                f"{_WHERE}: there is a tool named {tool.name!r} already; register it under another name.",
                field="name",
            )
        added[tool.name] = tool

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __repr__(self) -> str:
        return f"ToolRegistry({self.names()})"


__all__ = ["ToolDescriptor", "ToolLike", "ToolRegistry"]
