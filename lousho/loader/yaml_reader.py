"""YAML files under the 1.2 core schema, read from PyYAML's events.

PyYAML resolves the 1.1 types (`no` is False, `12:30` is 750), keeps the last of two equal keys, and expands aliases
without a bound. Reading its events instead of using its constructors settles all three, gives every value its place,
and needs no recursion. Numbers with a leading zero (`012`) stay text: an id or a postcode must not lose it.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from lousho.core.console_text import one_line
from lousho.core.json_values import Json
from lousho.loader.document import MAX_DEPTH, MAX_VALUES, Document, Path_, decimal_number, whole_number
from lousho.loader.text_files import FileProblem, Mark

if TYPE_CHECKING:
    from collections.abc import Iterator

    import yaml

_CORE: Final = "tag:yaml.org,2002:"
_NULL = re.compile(r"null|Null|NULL|~|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"[-+]?\.(?:inf|Inf|INF)")
_NAN = re.compile(r"\.(?:nan|NaN|NAN)")


def read_yaml(text: str) -> Document:
    """Return the one document of a YAML text. Raises `FileProblem` with line and column.

    Keys are text, as written (`404: x` has the key `404`); duplicate keys, merge keys, tags beyond the core schema and
    more than one document are refused.
    """
    import yaml

    builder = _Builder()
    try:
        for event in _events(text):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise _syntax_problem(text, error) from None
    except yaml.reader.ReaderError as error:
        mark = _mark_at(text, error.position)
        raise FileProblem(f"the character #x{_code_point(error):04x} is not allowed in YAML", mark) from None
    return Document(builder.root, builder.marks)


def _events(text: str) -> Iterator[yaml.events.Event]:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.parse(text, Loader=loader)


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end was not reached yet."""

    value: list[Any] | dict[str, Any]
    path: Path_
    anchor: str | None
    keys: dict[str, Mark] = field(default_factory=dict[str, Mark])
    key: str | None = None
    """The key whose value comes next; `None` where a key comes next (or in a list)."""
    size: int = 1


class _Builder:
    """Turns events into values."""

    def __init__(self) -> None:
        self.root: Json = None
        self.marks: dict[Path_, Mark] = {}
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int, int] | None] = {}
        self._documents = 0
        self._values = 0

    def take(self, event: yaml.events.Event) -> None:
        import yaml

        mark = _mark(event.start_mark)
        if isinstance(event, yaml.events.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise FileProblem("a second document starts here ('---'); one file holds one document", mark)
        elif isinstance(event, yaml.events.AliasEvent):
            self._alias(cast("str", event.anchor), mark)
        elif isinstance(event, yaml.events.ScalarEvent):
            self._scalar(event, mark)
        elif isinstance(event, (yaml.events.MappingStartEvent, yaml.events.SequenceStartEvent)):
            self._start(event, mark)
        elif isinstance(event, (yaml.events.MappingEndEvent, yaml.events.SequenceEndEvent)):
            self._end()

    def _scalar(self, event: yaml.events.ScalarEvent, mark: Mark) -> None:
        parent = self._open[-1] if self._open else None
        if parent is not None and isinstance(parent.value, dict) and parent.key is None:
            self._key(parent, event, mark)
            return
        value = _resolve(event, mark)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1, 0)
        self._put(value, 1, mark)

    def _key(self, parent: _Open, event: yaml.events.ScalarEvent, mark: Mark) -> None:
        key = event.value
        if _is_plain(event) and key == "<<":
            raise FileProblem("merge keys ('<<') are not part of YAML 1.2; write the keys out", mark)
        first = parent.keys.get(key)
        if first is not None:
            raise FileProblem(f"duplicate key '{one_line(key)}' (first on line {first.line})", mark)
        if event.anchor is not None:
            self._anchors[event.anchor] = (key, 1, 0)
        parent.keys[key] = mark
        parent.key = key

    def _start(self, event: yaml.events.MappingStartEvent | yaml.events.SequenceStartEvent, mark: Mark) -> None:
        import yaml

        is_mapping = isinstance(event, yaml.events.MappingStartEvent)
        wanted = _CORE + ("map" if is_mapping else "seq")
        if event.tag not in (None, "!", wanted):
            raise _unknown_tag(event.tag, mark)
        path = self._next_path(mark)
        if len(self._open) >= MAX_DEPTH:
            raise FileProblem(f"lists and mappings nest deeper than {MAX_DEPTH} levels", mark)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._open.append(_Open({} if is_mapping else [], path, event.anchor))
        self._note(path, mark)

    def _end(self) -> None:
        done = self._open.pop()
        if done.anchor is not None:
            self._anchors[done.anchor] = (done.value, done.size, _depth(done.value))
        self._attach(done.value, done.size)

    def _alias(self, name: str, mark: Mark) -> None:
        if name not in self._anchors:
            raise FileProblem(f"the alias '*{one_line(name)}' stands before its anchor", mark)
        target = self._anchors[name]
        if target is None:
            raise FileProblem(f"the alias '*{one_line(name)}' stands inside its own anchor", mark)
        value, size, depth = target
        if len(self._open) + depth > MAX_DEPTH:
            raise FileProblem(f"lists and mappings nest deeper than {MAX_DEPTH} levels", mark)
        parent = self._open[-1] if self._open else None
        if parent is not None and isinstance(parent.value, dict) and parent.key is None:
            raise FileProblem("an alias cannot be a key; write the key out", mark)
        self._put(value, size, mark)

    def _put(self, value: Any, size: int, mark: Mark) -> None:
        self._values += size
        if self._values > MAX_VALUES:
            raise FileProblem(f"the document holds more than {MAX_VALUES:,} values", mark)
        self._note(self._next_path(mark), mark)
        # A copy: two places that share a value must not change together later. The count above bounds the work.
        self._attach(copy.deepcopy(cast("object", value)), size)

    def _next_path(self, mark: Mark) -> Path_:
        if not self._open:
            return ()
        parent = self._open[-1]
        if isinstance(parent.value, list):
            return (*parent.path, len(parent.value))
        if parent.key is None:
            raise FileProblem("a list or mapping cannot be a key", mark)
        return (*parent.path, parent.key)

    def _note(self, path: Path_, mark: Mark) -> None:
        parent = self._open[-1] if self._open else None
        if path and parent is not None and isinstance(parent.value, dict) and path[:-1] == parent.path:
            mark = parent.keys[cast("str", path[-1])]
        self.marks.setdefault(path, mark)

    def _attach(self, value: Any, size: int) -> None:
        if not self._open:
            self.root = value
            return
        parent = self._open[-1]
        parent.size += size
        if isinstance(parent.value, list):
            parent.value.append(value)
        else:
            assert parent.key is not None
            parent.value[parent.key] = value
            parent.key = None


def _is_plain(event: yaml.events.ScalarEvent) -> bool:
    return event.style not in ("'", '"', "|", ">")  # the C parser says '' where the Python one says None


def _resolve(event: yaml.events.ScalarEvent, mark: Mark) -> Json:
    """Return the value of a scalar: plain ones by the core schema, quoted and block ones as text."""
    text = event.value
    tag = event.tag
    if tag is None or tag == "!":
        return _plain_value(text, mark) if _is_plain(event) and tag is None else text
    if tag == f"{_CORE}str":
        return text
    if not tag.startswith(_CORE) or tag.removeprefix(_CORE) not in ("null", "bool", "int", "float"):
        raise _unknown_tag(tag, mark)
    kind = tag.removeprefix(_CORE)
    value = _plain_value(text, mark)
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    fits = {"null": value is None, "bool": isinstance(value, bool), "float": isinstance(value, float)}
    if not fits.get(kind, isinstance(value, int) and not isinstance(value, bool)):
        raise FileProblem(f"'{one_line(text)}' is not a value of the type !!{kind}", mark)
    return value


def _plain_value(text: str, mark: Mark) -> Json:
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text[0] in "tT"
    if _INT.fullmatch(text):
        return whole_number(text, 10, mark)
    if _OCTAL.fullmatch(text):
        return whole_number(text[2:], 8, mark)
    if _HEX.fullmatch(text):
        return whole_number(text[2:], 16, mark)
    if _FLOAT.fullmatch(text):
        return decimal_number(text, mark)
    if _INFINITY.fullmatch(text):
        return float("-inf") if text.startswith("-") else float("inf")
    if _NAN.fullmatch(text):
        return float("nan")
    return text


def _depth(value: Any) -> int:
    """Return how many levels a finished value nests; bounded, because nothing deeper was built."""
    if isinstance(value, dict):
        return 1 + max((_depth(item) for item in cast("dict[str, Any]", value).values()), default=0)
    if isinstance(value, list):
        return 1 + max((_depth(item) for item in cast("list[Any]", value)), default=0)
    return 0


def _unknown_tag(tag: str | None, mark: Mark) -> FileProblem:
    shown = (tag or "").replace(_CORE, "!!")
    return FileProblem(f"the tag '{one_line(shown)}' is not supported; quote the text or leave the tag out", mark)


def _mark(mark: Any) -> Mark:
    return Mark(int(mark.line) + 1, int(mark.column) + 1)


def _mark_at(text: str, position: int) -> Mark:
    before = text[: max(0, position)]
    return Mark(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def _code_point(error: yaml.reader.ReaderError) -> int:
    character: Any = error.character
    return ord(character) if isinstance(character, str) else int(character)


def _syntax_problem(text: str, error: yaml.MarkedYAMLError) -> FileProblem:
    """Return what PyYAML says in one sentence, with advice for the mistakes people really make."""
    place: Any = error.problem_mark or error.context_mark
    mark = _mark(place) if place is not None else Mark(1, 1)
    problem = error.problem or error.context or "not valid YAML"
    lines = text.splitlines()
    line = lines[mark.line - 1] if mark.line <= len(lines) else ""
    indent = line[: len(line) - len(line.lstrip())]
    if "\t" in indent or line[mark.column - 1 : mark.column] == "\t":
        problem = "a tab indents this line; YAML takes spaces only"
    elif problem == "mapping values are not allowed in this context":
        problem += "; put quotes around a text that holds ': '"
    elif "found character" in problem and "cannot start any token" in problem:
        problem += "; put quotes around the text"
    return FileProblem(problem, mark)
