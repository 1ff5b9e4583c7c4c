"""The tools of one call: in place of the agent's, some of the agent's by name, or added; and what a saved run recalls.

The code of a tool cannot be saved. A paused run keeps the names: which tools the call brought, to be given again with the
decision, and which it took over from the agent, which come from the agent again and stay all that it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from lousho.agent.tool_list import ToolsOption, checked_tools
from lousho.core.errors import ConfigurationError
from lousho.core.suggest import did_you_mean
from lousho.runtime.state import CallTools
from lousho.tools.builtin import ASK_QUESTION
from lousho.tools.definition import Tool
from lousho.tools.descriptor import ToolLike

CallToolsOption: TypeAlias = "ToolsOption | Iterable[ToolLike | str]"
"""Tools, as an agent takes them; in a list, a text is the name of one of the agent's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsOfCall:
    """The tools one call was given, checked."""

    listed: Mapping[str, Tool | None] | None = None
    """In place of the agent's, by name; `None` as a value: the agent's of that name. `None` for all: the agent's tools."""
    extra: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    """Added to them."""

    @classmethod
    def check(cls, tools: CallToolsOption | None, extra_tools: ToolsOption | None) -> ToolsOfCall:
        """Return the tools of a call. Raises `LOUSHO_CONFIG_INVALID`."""
        return cls(
            listed=None if tools is None else _listed(tools),
            extra={} if extra_tools is None else checked_tools(extra_tools, where="The call", field="extra_tools"),
        )

    @property
    def given(self) -> bool:
        """Whether the call has anything to say about tools."""
        return self.listed is not None or bool(self.extra)

    def remembered(self, before: CallTools | None = None) -> CallTools | None:
        """Return what the saved run keeps, with what it had kept `before`; `None` when there is nothing."""
        if not self.given:
            return before
        listed = self.listed or {}
        picked = [name for name, tool in listed.items() if tool is None]
        return CallTools(
            names=[*(name for name, tool in listed.items() if tool is not None), *self.extra],
            picked=list(dict.fromkeys([*(before.picked if before is not None else ()), *picked])),
            replace=self.listed is not None or (before is not None and before.replace),
        )

    def needs_own(self, saved: CallTools | None) -> bool:
        """Whether any of the agent's tools are part of the run."""
        if self.listed is None and not (saved is not None and saved.replace):
            return True
        return bool(saved is not None and saved.picked) or None in (self.listed or {}).values()


NO_TOOLS_OF_CALL = ToolsOfCall()


def tools_of_run(own: Mapping[str, Tool], given: ToolsOfCall, saved: CallTools | None) -> Mapping[str, Tool]:
    """Return the tools of a run: `own`, which are the agent's, and what the call or the saved run says of them.

    A run that began with some of the agent's tools never gets the others. Raises `LOUSHO_CONFIG_INVALID` for a name that
    the agent does not have, and for one that is there twice.
    """
    if not given.given and saved is None:
        return own
    tools = own if given.listed is None else _chosen(own, given.listed)
    if saved is not None and saved.replace:
        kept = {name: own[name] for name in saved.picked if name in own}
        tools = {**kept, **(tools if given.listed is not None else {})}
    if tools is not own and ASK_QUESTION in own:
        tools = {**tools, ASK_QUESTION: tools.get(ASK_QUESTION, own[ASK_QUESTION])}
    twice = sorted(set(tools) & set(given.extra))
    if twice:
        raise ConfigurationError(
            f"The call: extra_tools has {', '.join(map(repr, twice))}, and there is a tool of that name already. Give it"
            " another name, or use tools=, which stands in place of the agent's.",
            field="extra_tools",
        )
    return {**tools, **given.extra}


def _listed(given: Any) -> dict[str, Tool | None]:
    if isinstance(given, (Mapping, str, Tool)) or not isinstance(given, Iterable):
        return dict(checked_tools(given, where="The call"))
    listed: dict[str, Tool | None] = {}
    for item in cast("Iterable[Any]", given):
        added = {item: None} if isinstance(item, str) else checked_tools([item], where="The call")
        for name, tool in added.items():
            if name in listed:
                raise ConfigurationError(f"The call: two tools are named {name!r}.", field="tools")
            listed[name] = tool
    return listed


def _chosen(own: Mapping[str, Tool], listed: Mapping[str, Tool | None]) -> dict[str, Tool]:
    chosen: dict[str, Tool] = {}
    for name, tool in listed.items():
        if tool is None and name not in own:
            raise ConfigurationError(
                f"The call: tools names {name!r}, and the agent has no such tool{did_you_mean(name, own)}.",
                field="tools",
            )
        chosen[name] = own[name] if tool is None else tool
    return chosen
