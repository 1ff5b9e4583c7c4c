"""From the name a model calls a tool by to the tool it means, or to a text that helps it find one."""

from __future__ import annotations

import re
from collections.abc import Collection, Container

from lousho.core.suggest import did_you_mean_one_of, nearest_names

_LONGEST_NAME = 64
_LONGEST_PREFIXED = 256
"""A longer name is none with a prefix; taking names apart is quadratic in their parts."""
_MOST_LISTED = 50
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ODD = re.compile(r"[^a-zA-Z0-9_-]")
_SEPARATOR = re.compile(r"[.:/]+")


def tool_name_of(name: str, tools: Container[str], *, match: bool = True) -> str:
    """Return the tool a model means with `name`: itself, or what follows a vendor's prefix as in `functions.x`.

    `mcp.slack.post` means `slack__post`, or `post` when only that exists. A name that no provider would take back in a
    transcript is made one that it takes. Without `match` only the name itself counts.
    """
    if name in tools:
        return name
    if match and len(name) <= _LONGEST_PREFIXED:
        bare = _without_prefix(name, tools)
        if bare is not None:
            return bare
    return name if _NAME.fullmatch(name) else _ODD.sub("_", name)[:_LONGEST_NAME] or "unnamed_tool"


def unknown_tool_text(name: str, tools: Collection[str], *, match: bool = True) -> str:
    """Return what the model reads when it called a tool that does not exist: the nearest names, and the others."""
    hint = did_you_mean_one_of(nearest_names(name, tools)) if match else ""
    listed = sorted(tools)
    known = ", ".join(listed[:_MOST_LISTED]) or "none"
    if len(listed) > _MOST_LISTED:
        known = f"{known} and {len(listed) - _MOST_LISTED} more"
    return f"There is no tool {name!r}{hint}. Tools: {known}."


def _without_prefix(name: str, tools: Container[str]) -> str | None:
    """Return the tool that the last parts of `name` say, as many of them as one tool's name has.

    What follows `<|` is the beginning of a model's own markup, which some servers leave in.
    """
    parts = _SEPARATOR.split(name.partition("<|")[0].strip().removeprefix("mcp__"))
    for first in range(len(parts)):
        joined = "__".join(parts[first:])
        if joined in tools:
            return joined
    return None
