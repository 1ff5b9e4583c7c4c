"""Reading what is almost JSON, as models write it: Python literals, comments, trailing commas, line breaks in texts.

Only what can be read in one way is read. Nothing is made up: no value, no member, no closing quote. One pass over the
text, bounded in nesting and in the number of values, so that whatever a model sends costs no more than its length.
"""

from __future__ import annotations

import json
import re
from typing import Any

MOST_ALMOST_CHARS = 1_000_000
MOST_ALMOST_VALUES = 100_000
"""Values and names one text may hold; the reader takes each of them up one at a time."""
DEEPEST_ALMOST = 64
_SHOWN_CHARS = 20

_BLANK = re.compile(r"(?:\s++|//[^\n]*+\n|\#[^\n]*+\n|/\*.*?\*/)*+", re.DOTALL)
"""What a comment without a line break at its end hides, be it a bracket or a member, nobody can tell."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*+")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_TEXTS = {
    opening: re.compile(rf"{opening}((?:[^{closing}\\]|\\.)*+){closing}", re.DOTALL)
    for opening, closing in (('"', '"'), ("'", "'"), ("\u201c", "\u201d"), ("\u2018", "\u2019"))
}
_LITERALS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_MEANS_ITSELF = "\"'\\/"
_LABEL = re.compile(r"^[ \t>*`'-]*+[\w$.]++[`'\u2019]?[ \t]*+[:=]", re.MULTILINE)
_TAG = re.compile(r"<[^<>]*+>")
_ELEMENT = re.compile(r"<[a-zA-Z]")


class NotReadable(ValueError):
    """The text is not even almost JSON. Says what is in the way; the reader of arguments makes it an issue."""


class CutOff(NotReadable):
    """The text ends before what it began is complete."""


def read_almost_json(text: str, *, close: bool = False) -> Any:
    """Return the one value that `text` holds. Raises `NotReadable`.

    Beside JSON it takes: texts in single or typographic quotes, line breaks and tabs inside texts, names of members
    without quotes, `True`, `False` and `None`, comments, a comma before a closing bracket. With `close` the brackets
    that are open at the end are closed, where what stands before the end is whole.
    """
    reader = _Reader(text, 0, close=close)
    value = reader.value(0)
    reader.skip()
    if reader.position < len(text):
        raise NotReadable(f"there is more after its end ({reader.shown()})")
    return value


def read_object_in(text: str, *, close: bool = False) -> dict[str, Any]:
    """Return the one object that `text` holds, whatever prose stands around it. Raises `NotReadable`.

    Prose has nothing in it that could be missing in the object, or be more arguments than are in the object: brackets,
    quotes, names with a value, list items, other elements of XML.
    """
    start = text.find("{")
    if start < 0:
        raise NotReadable("there is no object in it")
    if _holds_values(text[:start]):
        raise NotReadable("there is more than one value in it")
    reader = _Reader(text, start, close=close)
    value = reader.value(0)
    after = text[reader.position :].lstrip().lstrip("}").lstrip()
    if after[:1] in (",", ":") or _holds_values(after, behind=True):
        raise NotReadable("there is more after the end of its object")
    return value


def _holds_values(prose: str, *, behind: bool = False) -> bool:
    """Whether what stands before an object, or `behind` it, may be more than prose."""
    if any(mark in prose for mark in '"\u201c\u2018[]{}'):
        return True
    if behind:
        quoted = prose[:1] == "'" and len(prose) > 1
        return quoted or _LABEL.match(prose) is not None or _ELEMENT.search(prose) is not None
    bare = _TAG.sub("", prose)
    return "=" in bare or "</" in prose or bare.rstrip().endswith(",") or _LABEL.search(bare) is not None


class _Reader:
    """A place in a text. A number counts as whole only when something follows it."""

    __slots__ = ("_close", "_room", "_text", "position")

    def __init__(self, text: str, position: int, *, close: bool) -> None:
        self._text = text
        self._close = close
        self._room = MOST_ALMOST_VALUES
        self.position = position

    def skip(self) -> None:
        """Go on behind blanks and comments."""
        found = _BLANK.match(self._text, self.position)
        assert found is not None
        self.position = found.end()

    def shown(self) -> str:
        """Return what stands here, for a complaint."""
        return repr(self._text[self.position : self.position + _SHOWN_CHARS])

    def value(self, levels: int) -> Any:
        self._take_room()
        self.skip()
        text, start = self._text, self.position
        if start == len(text):
            raise CutOff("it ends where a value belongs")
        first = text[start]
        if first in "{[":
            if levels == DEEPEST_ALMOST:
                raise NotReadable(f"nested deeper than {DEEPEST_ALMOST} levels")
            self.position += 1
            return self._object(levels + 1) if first == "{" else self._array(levels + 1)
        if first in _TEXTS:
            return self._string(first)
        name = _NAME.match(text, start)
        if name is not None and name[0] in _LITERALS:
            self.position = name.end()
            return _LITERALS[name[0]]
        number = _NUMBER.match(text, start)
        if number is None:
            raise NotReadable(f"no value begins with {self.shown()}")
        if number.end() == len(text):
            raise CutOff("it ends in a number, which may go on")
        self.position = number.end()
        return json.loads(number[0])

    def _object(self, levels: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self._ends("}"):
            key = self._key()
            if key in found:
                raise NotReadable(f"the member {key[:_SHOWN_CHARS]!r} is in it twice")
            self.skip()
            if self.position == len(self._text):
                raise CutOff("it ends after the name of a member")
            if self._text[self.position] != ":":
                raise NotReadable(f"':' belongs before {self.shown()}")
            self.position += 1
            found[key] = self.value(levels)
            if self._last("}"):
                break
        return found

    def _array(self, levels: int) -> list[Any]:
        found: list[Any] = []
        while not self._ends("]"):
            found.append(self.value(levels))
            if self._last("]"):
                break
        return found

    def _ends(self, bracket: str) -> bool:
        """Whether `bracket` stands where a member or an item could begin; it is taken then."""
        self.skip()
        if self.position == len(self._text):
            raise CutOff("it ends where more is to come")
        if self._text[self.position] != bracket:
            return False
        self.position += 1
        return True

    def _last(self, bracket: str) -> bool:
        """Whether the member or item just read was the last one; else there is a comma, which is taken."""
        self.skip()
        if self.position == len(self._text):
            if not self._close:
                raise CutOff(f"its '{bracket}' is missing")
            return True
        mark = self._text[self.position]
        if mark not in (",", bracket):
            raise NotReadable(f"',' or '{bracket}' belongs before {self.shown()}")
        self.position += 1
        return mark == bracket

    def _key(self) -> str:
        self._take_room()
        first = self._text[self.position]
        if first in _TEXTS:
            return self._string(first)
        name = _NAME.match(self._text, self.position)
        if name is None:
            raise NotReadable(f"the name of a member belongs before {self.shown()}")
        self.position = name.end()
        return name[0]

    def _string(self, quote: str) -> str:
        found = _TEXTS[quote].match(self._text, self.position)
        if found is None:
            raise CutOff("a text in it has no end")
        self.position = found.end()
        return found[1] if "\\" not in found[1] else _ESCAPE.sub(_unescaped, found[1])

    def _take_room(self) -> None:
        self._room -= 1
        if self._room < 0:
            raise NotReadable(f"more than {MOST_ALMOST_VALUES:,} values")


def _unescaped(escape: re.Match[str]) -> str:
    mark = escape[1]
    if len(mark) > 1:
        return chr(int(mark[1:], 16))
    if mark in _MEANS_ITSELF:
        return mark
    if mark not in _ESCAPED:
        raise NotReadable(f"'\\{mark}' is no escape of JSON; a backslash is written '\\\\'")
    return _ESCAPED[mark]
