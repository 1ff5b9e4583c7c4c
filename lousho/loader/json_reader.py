"""JSON files with the place of every value, and with duplicate keys refused.

The standard library's reader knows neither: its hooks see pairs without positions. Strings are still read by its C
scanner; the rest is small enough to write out, with a bound on nesting instead of a recursion error.
"""

from __future__ import annotations

import json
import re
from typing import Final, cast

from lousho.core.console_text import one_line
from lousho.core.json_values import Json
from lousho.loader.document import (
    MAX_DEPTH,
    MAX_VALUES,
    Document,
    Path_,
    decimal_number,
    refuse_lone_surrogate,
    whole_number,
)
from lousho.loader.text_files import FileProblem, Mark

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z_$][\w$]*|[^\s]")
_WORDS: Final[dict[str, Json]] = {"true": True, "false": False, "null": None}


def read_json(text: str) -> Document:
    """Return the value of a JSON text. Raises `FileProblem` with line and column; an empty text is `None`."""
    reader = _Reader(text)
    at = reader.space(0)
    if at == len(text):
        return Document(None)
    value, at = reader.value(at, (), 0)
    at = reader.space(at)
    if at != len(text):
        raise reader.problem("nothing may follow the value", at)
    return Document(value, reader.marks)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.marks: dict[Path_, Mark] = {}
        self._line_starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self._values = 0

    def space(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        assert found is not None
        return found.end()

    def mark(self, at: int) -> Mark:
        from bisect import bisect_right

        line = bisect_right(self._line_starts, at)
        return Mark(line, at - self._line_starts[line - 1] + 1)

    def problem(self, problem: str, at: int) -> FileProblem:
        return FileProblem(problem, self.mark(min(at, len(self.text))))

    def value(self, at: int, path: Path_, depth: int) -> tuple[Json, int]:
        self._values += 1
        if self._values > MAX_VALUES:
            raise self.problem(f"the document holds more than {MAX_VALUES:,} values", at)
        self.marks.setdefault(path, self.mark(at))
        character = self.text[at : at + 1]
        if character in ("{", "["):
            if depth >= MAX_DEPTH:
                raise self.problem(f"lists and objects nest deeper than {MAX_DEPTH} levels", at)
            return self._object(at, path, depth) if character == "{" else self._array(at, path, depth)
        if character == '"':
            return self._string(at)
        return self._number(at) if character and character in "-0123456789" else self._word(at)

    def _object(self, at: int, path: Path_, depth: int) -> tuple[Json, int]:
        out: dict[str, Json] = {}
        first_seen: dict[str, int] = {}
        at = self.space(at + 1)
        if self.text[at : at + 1] == "}":
            return out, at + 1
        while True:
            if self.text[at : at + 1] != '"':
                raise self.problem(self._unexpected(at, "a key in double quotes"), at)
            key_at = at
            key, at = self._string(at)
            if key in first_seen:
                line = self.mark(first_seen[key]).line
                raise self.problem(f"duplicate key '{one_line(key)}' (first on line {line})", key_at)
            first_seen[key] = key_at
            self.marks[(*path, key)] = self.mark(key_at)
            at = self.space(at)
            if self.text[at : at + 1] != ":":
                raise self.problem(self._unexpected(at, "':' after the key"), at)
            out[key], at = self.value(self.space(at + 1), (*path, key), depth + 1)
            at, more = self._comma(at, "}")
            if not more:
                return out, at

    def _array(self, at: int, path: Path_, depth: int) -> tuple[Json, int]:
        out: list[Json] = []
        at = self.space(at + 1)
        if self.text[at : at + 1] == "]":
            return out, at + 1
        while True:
            item, at = self.value(at, (*path, len(out)), depth + 1)
            out.append(item)
            at, more = self._comma(at, "]")
            if not more:
                return out, at

    def _comma(self, at: int, end: str) -> tuple[int, bool]:
        """Return where reading goes on and whether another item follows."""
        at = self.space(at)
        found = self.text[at : at + 1]
        if found == end:
            return at + 1, False
        if found != ",":
            raise self.problem(self._unexpected(at, f"',' or '{end}'"), at)
        after = self.space(at + 1)
        if self.text[after : after + 1] == end:
            raise self.problem(f"a comma before '{end}' is not allowed in JSON", at)
        return after, True

    def _string(self, at: int) -> tuple[str, int]:
        try:
            value, end = cast("tuple[str, int]", json.decoder.scanstring(self.text, at + 1, True))  # type: ignore[attr-defined]
        except json.JSONDecodeError as error:
            problem = error.msg[:1].lower() + error.msg[1:]
            raise self.problem(problem.removesuffix(" starting at").removesuffix(" at"), error.pos) from None
        refuse_lone_surrogate(value, self.mark(at))
        return value, end

    def _number(self, at: int) -> tuple[Json, int]:
        found = _NUMBER.match(self.text, at)
        if (
            found is None
            or (following := self.text[found.end() : found.end() + 1]).isalnum()
            or following in ("_", ".")
        ):
            raise self.problem("this is not a JSON number", at)
        mark = self.mark(at)
        literal = found.group()
        number = decimal_number(literal, mark) if found.group(1) or found.group(2) else whole_number(literal, 10, mark)
        return number, found.end()

    def _word(self, at: int) -> tuple[Json, int]:
        found = _WORD.match(self.text, at)
        if found is not None and found.group() in _WORDS:
            return _WORDS[found.group()], found.end()
        raise self.problem(self._unexpected(at, "a value"), at)

    def _unexpected(self, at: int, wanted: str) -> str:
        found = _WORD.match(self.text, at)
        if found is None:
            return f"expected {wanted}, but the file ends"
        word = found.group()
        if word in ("/", "#"):
            return f"expected {wanted}; JSON has no comments (a .yaml file does)"
        if word == "'":
            return f"expected {wanted}; JSON takes double quotes only"
        return f"expected {wanted}, found '{one_line(word, 40)}'"
