"""`lousho inspect`, put together: load the agent, gather the facts, print what was asked for."""

from __future__ import annotations

import json
from pathlib import Path

from lousho_cli.console import Console
from lousho_cli.errors import FAILED
from lousho_cli.inspect.facts import Facts, facts_of
from lousho_cli.inspect.page import PER_RUN, show, show_tools


def look_at(path: str, *, model: str | None, prompt: bool, tools: bool, as_json: bool, console: Console) -> int:
    """Load the agent at `path` and print what it is made of; return the exit code. No model is asked.

    `prompt` prints the system prompt alone, `tools` the tools as the model would see them, `as_json` everything as one
    document. Raises what loading the agent raises.
    """
    with console.apart_from_prints() as apart:
        facts = _facts(path, model, apart)
        page = not (as_json or prompt or tools)
        for note in facts.all_notes:
            if not page or note == facts.fallback:  # the page has the others
                apart.tell(f"note: {note}", "dim")
        if as_json:
            apart.out(json.dumps(facts.to_dict(), indent=2))
        elif prompt:
            return _print_prompt(facts, apart)
        elif tools:
            show_tools(facts, apart)
        else:
            show(facts, apart)
    return 0


def _facts(path: str, model: str | None, console: Console) -> Facts:
    from lousho.loader.dotenv import load_dotenv_file, unread_dotenv_note
    from lousho.loader.target import load_target

    dotenv = load_dotenv_file(Path.cwd())
    unread = unread_dotenv_note(path)
    for note in (*dotenv.notes, *([unread] if unread is not None else [])):
        console.tell(f"note: {note}", "dim")  # before the load, which may fail for want of what the file sets
    target = load_target(path, command="inspect", model=model)
    return facts_of(target, model=model, from_file=frozenset(dotenv.names))


def _print_prompt(facts: Facts, console: Console) -> int:
    if "instructions" in facts.agent["perRun"]:
        console.error(f"the prompt is {PER_RUN}, so there is none to print")
        return FAILED
    text: str = facts.agent["instructions"] or ""
    if text:
        console.out(text, end="" if text.endswith("\n") else "\n")
    else:
        console.tell("note: the agent has no system prompt", "dim")
    return 0
