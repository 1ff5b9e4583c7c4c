"""Every sentence the demo model says. Nothing here is compared with what a user or a tool says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lousho.models.demo.results import Outcome, brief, shorten, write
from lousho.models.demo.schema import Field
from lousho.models.demo.views import ToolView
from lousho.models.demo.words import humanise

INTRODUCTION = (
    "I am the built-in demo model: I follow simple rules and am not a language model. For a real one, set its key"
    " (such as OPENAI_API_KEY) and choose it with `--model openai/gpt-4.1-mini` or in the agent's settings."
)
_MOST_TOOLS = 8
_MOST_CHOICES = 12


def series(words: Sequence[str], last: str = "and") -> str:
    """Return `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def capital(words: str) -> str:
    """Return the words with a capital at the start."""
    return words[:1].upper() + words[1:]


def sentence(words: str) -> str:
    """Return the words as a sentence: a capital at the start and a full stop at the end."""
    words = words.strip()
    return ended(words if words[:1] in {"`", '"', "“"} else capital(words))


def ended(words: str) -> str:
    """Return the words with a full stop, unless they end in a mark or run over several lines."""
    return words if not words or words[-1] in ".!?…:)”" or "\n" in words else words + "."


def describe(leaf: Field) -> str:
    """Return a field for a question: its name, what its schema says of it, its allowed values."""
    told = leaf.description.rstrip(".")
    extra = [told[:160]] if told and told.lower() != leaf.label.lower() else []
    inner = leaf.item or leaf
    if inner.choices:
        options = [str(choice) for choice in inner.choices]
        shown = series(options[:_MOST_CHOICES], "or") + (", …" if len(options) > _MOST_CHOICES else "")
        extra.append(f"{'any of' if leaf.kind == 'list' else 'one of'} {shown}")
    elif leaf.kind == "boolean":
        extra.append("yes or no")
    return f"{leaf.label} ({'; '.join(extra)})" if extra else leaf.label


def question(
    tool: ToolView, asked: Sequence[Field], complaints: Sequence[tuple[Field, str]], *, again: bool, day: bool
) -> str:
    """Return the question for what a call still needs."""
    name = humanise(tool.name)
    lines: list[str] = []
    if again:
        lines.append("Sorry, I could not find that in your reply.")
    lines.extend(sentence(f"the {leaf.label} {wrong}") for leaf, wrong in complaints)
    if day and len(asked) == 1:
        lines.append(f"For “{name}” I still need the time of day. When should it be?")
    elif len(asked) == 1:
        lines.append(f"For “{name}” I still need one thing: {describe(asked[0])}. What should it be?")
    else:
        items = "\n".join(f"- {describe(leaf)}" for leaf in asked)
        lines.append(f"For “{name}” I still need:\n{items}\nWhat should they be?")
    return " ".join(lines)


def which(tools: Sequence[ToolView]) -> str:
    """Return the question which of several tools is meant."""
    lines = [f"{number}. {humanise(tool.name)}: {first_line(tool.description)}" for number, tool in enumerate(tools, 1)]
    return "I can read that in more than one way. Which do you mean?\n" + "\n".join(lines)


def first_line(description: str) -> str:
    """Return the first sentence of a description."""
    line = description.strip().split("\n")[0]
    cut = line.find(". ")
    return shorten(line if cut < 0 else line[: cut + 1], 160)


def called_with(arguments: dict[str, Any]) -> str:
    """Return arguments as `(a: 1, b: 2)` for telling several calls apart."""
    short = {key: brief(value) for key, value in arguments.items() if not isinstance(value, (dict, list))}
    shown = [f"{humanise(key)}: {value}" for key, value in short.items() if len(value) <= 40][:3]
    return f" ({', '.join(shown)})" if shown else ""


def success(outcome: Outcome, *, several: bool) -> str:
    """Return what a call that worked answered."""
    name, value = humanise(outcome.tool), outcome.value
    label = name + (called_with(dict(outcome.arguments)) if several else "")
    if value is None or value == "":
        return sentence(f"{label}: done")
    if isinstance(value, str):
        said = shorten(value, 1500)
        if "\n" in said:
            return f"{capital(label)}:\n{said}"
        plain = said.split(" ")[0].rstrip(",;").isalpha() and " " in said
        return sentence(said) if plain and not several else f"{capital(label)}: {ended(said)}"
    if isinstance(value, (list, dict)) and not value:
        return sentence(f"{label}: nothing was found")
    written = write(value)
    if isinstance(value, (bool, int, float)) or ("\n" not in written and not written.startswith("- ")):
        return sentence(f"{label}: {written}")
    return f"{capital(label)}:\n{written}"


def failure(outcome: Outcome) -> str:
    """Return what went wrong with a call."""
    name, told = f"“{humanise(outcome.tool)}”", shorten(outcome.message, 600).rstrip(".")
    if outcome.kind == "rejected":
        why = f" The reason given: {ended(outcome.note)}" if outcome.note else ""
        return f"{name} was not approved, so I did not run it and will not try it again.{why}"
    if outcome.kind == "denied":
        why = f" {ended(outcome.note or told)}" if outcome.note or told else ""
        return f"I am not allowed to run {name} here.{why}"
    if outcome.kind == "reported":
        return f"{name} answered with a problem: {ended(told)}"
    if outcome.kind == "not-found":
        return f"Sorry, the tool {name} is not available any more. {ended(told)}".strip()
    if outcome.kind == "validation":
        return f"Sorry, {name} did not accept what I gave it: {ended(told)}"
    if outcome.kind in {"cancelled", "not-run", "interrupted"}:
        return f"{name} was not finished: {ended(told)}"
    return f"Sorry, {name} failed: {ended(told)} I did not try it again."


def skipped(tool: ToolView) -> str:
    """Return that a call was left out because the one before it did not work."""
    return f"I left out “{humanise(tool.name)}”, because it needed the step before it."


def dropped(tool: ToolView) -> str:
    """Return that the user called a pending call off."""
    return f"All right, I leave “{humanise(tool.name)}” alone."


def limit_reached(limit: int) -> str:
    """Return that the turn used all its calls."""
    return f"I stop here: I make at most {limit} calls for one request."


def cut(limit: int) -> str:
    """Return that a message was longer than what is read."""
    return f"I read only the first {limit:,} characters of your message."


def greeting(tools: Sequence[ToolView], examples: Sequence[str]) -> str:
    """Return a greeting with what the agent can do."""
    return f"Hello! {capabilities(tools, examples)}"


def capabilities(tools: Sequence[ToolView], examples: Sequence[str]) -> str:
    """Return the list of tools, one example each."""
    if not tools:
        return "This agent has no tools yet, so there is nothing I can do for you but say so."
    lines = [
        f"- {sentence(first_line(tool.description) or humanise(tool.name))} Try: {example}"
        for tool, example in list(zip(tools, examples, strict=True))[:_MOST_TOOLS]
    ]
    if len(tools) > _MOST_TOOLS:
        lines.append(
            f"- … and {len(tools) - _MOST_TOOLS} more: {', '.join(humanise(t.name) for t in tools[_MOST_TOOLS:])}"[:400]
        )
    return "This is what I can do here:\n" + "\n".join(lines)


def no_match(tools: Sequence[ToolView], examples: Sequence[str], *, again: bool) -> str:
    """Return that no tool fits what was said, with the list of tools unless the user has seen it."""
    if again and tools:
        return "I found no tool that fits that. Ask “what can you do?” to see the list again."
    if not tools:
        return capabilities(tools, examples)
    return f"I found no tool that fits that. {capabilities(tools, examples)}"


def thanks() -> str:
    """Return the answer to thanks."""
    return "You are welcome."


def farewell() -> str:
    """Return the answer to a goodbye."""
    return "Goodbye!"


def nothing_open() -> str:
    """Return the answer to a yes or no that nobody asked for."""
    return "I have no open question. Tell me what to do, or ask what I can do."


def tools_are_off() -> str:
    """Return that this call was made without tools."""
    return "I was asked to answer without using a tool, and my rules can do nothing else."


def as_json(value: Any) -> str:
    """Return a structured answer."""
    return json.dumps(value, ensure_ascii=False)
