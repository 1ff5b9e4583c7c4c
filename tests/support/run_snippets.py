"""Runs the Python blocks of one Markdown page, top to bottom, in one namespace; the traceback names the page's line.

usage: run_snippets.py PAGE

A block may `await` at its top level. An HTML comment right before a block changes how it is treated:

- `<!-- snippet: skip - REASON -->` leaves it out;
- `<!-- snippet: raises NAME -->` expects an exception of that class;
- `<!-- snippet: setup` ... `-->` holds code that readers need not see and that runs first.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import linecache
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

BLOCK = re.compile(
    r"^(?:<!-- snippet: (?P<note>[^\n]*?) -->\n+)?```python[^\n]*\n(?P<code>.*?)^```$"
    r"|^<!-- snippet: setup\n(?P<setup>.*?)^-->$",
    re.MULTILINE | re.DOTALL,
)


class Snippet(NamedTuple):
    """One block: its code, the line it starts on, and what a comment said about it."""

    code: str
    line: int
    note: str


def snippets(text: str) -> Iterator[Snippet]:
    """The blocks of a page in order."""
    for match in BLOCK.finditer(text):
        part = "setup" if match["setup"] is not None else "code"
        yield Snippet(match[part], text.count("\n", 0, match.start(part)) + 1, match["note"] or "")


def run(snippet: Snippet, page: str, namespace: dict[str, Any], loop: asyncio.AbstractEventLoop) -> None:
    """Run one block; blocks without `await` run outside the event loop, as a plain script does."""
    source = "\n" * (snippet.line - 1) + snippet.code
    linecache.cache[page] = (len(source), None, Path(page).read_text(encoding="utf-8").splitlines(True), page)
    code = compile(source, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        loop.run_until_complete(eval(code, namespace))
    else:
        exec(code, namespace)


def main(page: str) -> int:
    """Run a page; returns the number of blocks that ran, as a line on stdout, and 0."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    loop = asyncio.new_event_loop()
    ran = 0
    for snippet in snippets(Path(page).read_text(encoding="utf-8")):
        if snippet.note.startswith("skip - ") and len(snippet.note) > len("skip - "):
            continue
        expected = snippet.note.removeprefix("raises ") if snippet.note.startswith("raises ") else ""
        if snippet.note and not expected:
            print(f"{page}:{snippet.line}: cannot read the comment {snippet.note!r}", file=sys.stderr)
            return 1
        try:
            run(snippet, page, namespace, loop)
        except BaseException as error:
            if type(error).__name__ != expected:
                raise
        else:
            if expected:
                print(f"{page}:{snippet.line}: {expected} was not raised", file=sys.stderr)
                return 1
        ran += 1
    loop.close()
    print(f"{ran} blocks ran")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
