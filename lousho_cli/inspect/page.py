"""The facts of an agent as a page for a person: what it is, what it would be told, what it may do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lousho.core.console_text import clip, display_width, plain_text
from lousho.core.json_values import dump_json
from lousho.core.usage import estimate_text_tokens
from lousho_cli.console import Console, columns_of, folded, paint
from lousho_cli.inspect.facts import Facts

PER_RUN = "chosen per run, by a function of the agent"
SHOWN_FILES = 12
LABEL_COLUMNS = 12
"""How wide the names at the left are, the space behind them included."""


def show(facts: Facts, console: Console) -> None:
    """Print the whole page."""
    page = _Page(console)
    agent = facts.agent
    page.title(f"{agent['name']}", f" ({facts.kind} {facts.path})")
    if facts.description:
        page.text(facts.description)
    page.gap()
    if agent["version"] is not None:
        page.row("version", agent["version"])
    page.row("model", f"{facts.model_label} ({facts.model_source})")
    if agent["modelSettings"]:
        page.row("settings", ", ".join(f"{name} {dump_json(value)}" for name, value in agent["modelSettings"].items()))
    if agent["permissionMode"] != "default":
        page.row("mode", _mode(agent["permissionMode"]))
    page.row("prompt", _prompt(agent))
    page.row("limits", _limits(agent))
    page.row("loop", _loop(agent["loop"]))
    if agent["toolResults"] is not None:
        results = agent["toolResults"]
        page.row("results", f"above {results['aboveChars']:,} characters in files below {results['spillDir']}")
    page.row("store", _stores(agent))
    page.row("files", ", ".join(facts.files[:SHOWN_FILES]) + _more(len(facts.files) - SHOWN_FILES))
    _tools(page, facts)
    _rules(page, agent["permissions"])
    _notes(page, facts)


def show_tools(facts: Facts, console: Console) -> None:
    """Print every tool as the model would see it: name, description, JSON Schema."""
    page = _Page(console)
    if facts.agent["tools"] is None:
        page.text(f"The tools are {PER_RUN}.")
        return
    for position, tool in enumerate(facts.agent["tools"]):
        if position:
            page.gap()
        source = facts.tool_sources.get(tool["name"])
        page.title(tool["name"], f" ({', '.join(filter(None, [_approval(tool), source]))})")
        page.text(tool["description"])
        console.out(plain_text(json.dumps(tool["inputSchema"], indent=2, ensure_ascii=False)))


class _Page:
    """Lines of a page, folded to the terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.columns = columns_of(console.stdout)

    def title(self, name: str, rest: str = "") -> None:
        self._console.out(paint(one_line(name), "bold"), one_line(rest))

    def gap(self) -> None:
        self._console.out("")

    def text(self, text: str) -> None:
        self._console.out(folded(plain_text(text), self.columns))

    def row(self, label: str, text: str) -> None:
        """A name and what there is to say about it, further lines below the first."""
        indent = " " * LABEL_COLUMNS
        shown = folded(plain_text(text), self.columns, used=LABEL_COLUMNS, indent=indent).replace("\n", f"\n{indent}")
        self._console.out(paint(label.ljust(LABEL_COLUMNS), "dim"), shown.replace(f"\n{indent}{indent}", f"\n{indent}"))

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Columns that are as wide as they must be; the last one is cut where the terminal ends."""
        widths = [max(map(display_width, column)) for column in list(zip(*rows, strict=True))[:-1]]
        for *cells, last in rows:
            left = "  " + "".join(
                cell + " " * (width - display_width(cell) + 2) for cell, width in zip(cells, widths, strict=True)
            )
            room = None if self.columns is None else self.columns - display_width(left)
            if room is None or room >= display_width(last):
                self._console.out(f"{left}{last}".rstrip())
            elif room >= 24:
                self._console.out(f"{left}{clip(last, room)}".rstrip())
            else:  # no room beside: below
                self._console.out(left.rstrip())
                self._console.out(folded(f"      {last}", self.columns, indent="      "))


def _prompt(agent: Mapping[str, Any]) -> str:
    if "instructions" in agent["perRun"]:
        return PER_RUN
    prompt = agent["instructions"]
    if not prompt:
        return "none"
    lines = prompt.count("\n") + 1
    size = f"{len(prompt):,} characters in {_count(lines, 'line')}, about {estimate_text_tokens(prompt):,} tokens"
    return f"{size}; --prompt prints it"


def _mode(mode: str) -> str:
    return "chosen at each tool call" if mode == "depends" else mode


def _limits(agent: Mapping[str, Any]) -> str:
    limits = agent["limits"]
    parts = [_count(limits["maxSteps"], "step")]
    concurrency = limits["toolConcurrency"]
    parts.append("calls side by side without a limit" if concurrency == "unbounded" else _side_by_side(concurrency))
    timeout = limits["toolTimeoutMs"]
    parts.append("no time limit for tools" if timeout is None else f"{_time(timeout)} a tool call")
    longest = limits["maxToolResultChars"]
    parts.append("tool results of any length" if longest is None else f"{longest:,.0f} characters a tool result")
    if limits["approvalTtlMs"] is not None:
        parts.append(f"{_time(limits['approvalTtlMs'])} to decide on a pause")
    return ", ".join(parts)


def _time(ms: float) -> str:
    return f"{ms / 1000:g} s" if ms >= 1000 else f"{ms:g} ms"


def _side_by_side(count: int) -> str:
    return "one call at a time" if count == 1 else f"{count} calls side by side"


def _loop(loop: Mapping[str, bool]) -> str:
    names = {"guard": "guard", "repairArguments": "repair of arguments", "matchToolNames": "nearest tool names"}
    return ", ".join(f"{words} {'on' if loop[key] else 'off'}" for key, words in names.items())


def _stores(agent: Mapping[str, Any]) -> str:
    if agent["approvalStore"] == agent["store"]:
        return agent["store"]
    return f"{agent['store']}, approvals in {agent['approvalStore']}"


def _tools(page: _Page, facts: Facts) -> None:
    page.gap()
    tools = facts.agent["tools"]
    if tools is None:
        page.title("tools", f": {PER_RUN}")
        return
    page.title("tools", f": {len(tools)} (--tools shows their schemas)" if tools else ": none")
    if tools:
        page.table(
            [
                (one_line(tool["name"]), _approval(tool), facts.tool_sources.get(tool["name"]) or "", _summary(tool))
                for tool in tools
            ]
        )


def _approval(tool: Mapping[str, Any]) -> str:
    if tool["kind"] == "question":
        return "asks a person"
    return {True: "needs approval", False: "runs"}.get(tool["needsApproval"], "may need approval")


def _summary(tool: Mapping[str, Any]) -> str:
    """Return the first sentence of a tool's description."""
    first = one_line(tool["description"].strip().partition("\n\n")[0])
    head, stop, _ = first.partition(". ")
    return f"{head}." if stop else first


def _rules(page: _Page, rules: Sequence[Mapping[str, Any]]) -> None:
    page.gap()
    page.title("permissions", ": the first that matches decides" if rules else ": none, each tool's own rule holds")
    if rules:
        page.table([(rule["action"], _matched(rule), one_line(rule["reason"] or "")) for rule in rules])


def _matched(rule: Mapping[str, Any]) -> str:
    tools = f"/{rule['pattern']}/" if "pattern" in rule else ", ".join(rule["tools"])
    return one_line(f"{tools}{' when its condition holds' if rule['conditional'] else ''}")


def _notes(page: _Page, facts: Facts) -> None:
    lines = [note for note in facts.all_notes if note != facts.fallback]
    if lines:
        page.gap()
        page.title("notes")
    for line in lines:
        page.text(f"  {line}")


def _more(number: int) -> str:
    return f" and {number:,} more" if number > 0 else ""


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def one_line(text: str) -> str:
    """Return `text` without line breaks and without what steers a terminal."""
    return " ".join(plain_text(text).split("\n"))
