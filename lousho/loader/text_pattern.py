"""Regular expressions from files, searched in text that a model wrote, without ever hanging the program.

`re` cannot be interrupted: a pattern like `(a+)+$` on the wrong thirty characters would stop every run of the process.
So the number of ways the engine may have to try is bounded from the pattern before it runs. Where that bound is small,
which it is for ordinary rules, the search runs in place; otherwise a child interpreter searches and is killed when its
time is up. Patterns and subjects are limited in size. Source: agent-directories page.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import warnings
from collections.abc import Awaitable, Iterable
from importlib import import_module
from typing import Any, Final, cast

from lousho.core.errors import ToolExecutionError

MAX_PATTERN_CHARS: Final = 1_000
MAX_SUBJECT_CHARS: Final = 20_000
SEARCH_SECONDS: Final = 2.0
"""How long a search that might explode may take, the start of the child interpreter included."""

_IN_PLACE: Final = 7.0
"""Searches of up to ten to this power steps, well under a second, run in place."""

_CHILD: Final = (
    "import json, re, sys\n"
    "pattern, subject = json.load(sys.stdin)\n"
    "sys.stdout.write('1' if re.search(pattern, subject) else '0')\n"
)


class PatternProblem(Exception):
    """A pattern cannot be used; the text says why. Callers turn it into their own coded error."""


class TextPattern:
    """A checked regular expression in Python's `re` syntax."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MAX_PATTERN_CHARS:
            raise PatternProblem(f"the pattern is longer than {MAX_PATTERN_CHARS:,} characters")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._compiled = re.compile(pattern)
        except (re.error, OverflowError, RecursionError, MemoryError) as error:
            raise PatternProblem(_explain(pattern, error)) from None
        self.pattern = pattern
        self._tree = _parse_tree(pattern)

    def search(self, subject: str, *, of: str) -> bool | Awaitable[bool]:
        """Return whether the pattern occurs in `subject`; an awaitable where a child interpreter has to look.

        `of` names what is searched, e.g. `argument 'command'`. Raises `LOUSHO_TOOL_EXECUTION_FAILED` for a subject
        beyond the limit, and (when awaited) for a search that took too long: a rule that could not be checked must
        never count as "does not match".
        """
        if len(subject) > MAX_SUBJECT_CHARS:
            raise ToolExecutionError(
                f"The {of} has {len(subject):,} characters; a permission rule matches at most {MAX_SUBJECT_CHARS:,}"
            )
        if self.most_steps(len(subject)) <= _IN_PLACE:
            return self._compiled.search(subject) is not None
        return self._search_outside(subject, of)

    def most_steps(self, length: int) -> float:
        """Return a bound on the engine's steps over `length` characters, as a power of ten."""
        if self._tree is None:
            return math.inf
        try:
            return math.log10(length + 1) + _ways(self._tree, length)
        except RecursionError:
            return math.inf

    async def _search_outside(self, subject: str, of: str) -> bool:
        import asyncio

        return await asyncio.to_thread(_search_in_child, self.pattern, subject, of)


def _search_in_child(pattern: str, subject: str, of: str) -> bool:
    command = [sys.executable, "-I", "-S", "-W", "ignore", "-c", _CHILD]
    try:
        sent = json.dumps([pattern, subject]).encode("ascii")
        done = subprocess.run(command, input=sent, capture_output=True, timeout=SEARCH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise ToolExecutionError(
            f"Matching the {of} with the permission pattern {pattern!r} took longer than {SEARCH_SECONDS:g} s"
        ) from None
    except OSError as error:
        raise ToolExecutionError(f"The permission pattern {pattern!r} could not be checked: {error}") from error
    if done.stdout not in (b"0", b"1"):
        raise ToolExecutionError(f"The permission pattern {pattern!r} could not be checked")
    return done.stdout == b"1"


def _explain(pattern: str, error: Exception) -> str:
    if not isinstance(error, re.error):
        return f"the pattern is too complex ({type(error).__name__})"
    text = f"the pattern is not a valid regular expression: {error}"
    if re.search(r"\(\?<[A-Za-z]", pattern):
        text += "; a named group is written (?P<name>...)"
    return text


def _parse_tree(pattern: str) -> Any:
    """Return the pattern as the standard library parses it, or `None` where this Python does not show it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module("re._parser").parse(pattern)
    except (ImportError, AttributeError):
        return None


def _ways(nodes: Iterable[Any], length: int) -> float:
    """Return the ways in which a sequence can match somewhere in `length` characters, as a power of ten, at most."""
    return sum(_ways_of(str(operation), detail, length) for operation, detail in nodes)


def _ways_of(operation: str, detail: Any, length: int) -> float:
    if operation in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        fewest, most, nodes = detail
        most = min(int(most), length)
        choices = max(1, most - int(fewest) + 1)
        return math.log10(choices) + max(most, int(fewest)) * _ways(nodes, length)
    if operation == "BRANCH":
        branches = [_ways(nodes, length) for nodes in detail[1]]
        return max(branches) + math.log10(len(branches))
    if operation in ("SUBPATTERN", "ASSERT", "ASSERT_NOT"):
        return _ways(detail[-1], length)
    if operation == "ATOMIC_GROUP":
        return _ways(detail, length)
    if operation == "GROUPREF_EXISTS":
        _, yes, no = detail
        return max(_ways(yes, length), _ways(cast("Iterable[Any]", no or ()), length)) + math.log10(2)
    return 0.0
