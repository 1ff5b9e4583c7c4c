"""The parameters of a tool as fields that can be filled: what type each has, what its name and description say.

Only what JSON Schema itself means is known here. A field is recognised by its type, its format, its allowed values and
the words of its own name and description; a schema that cannot be read becomes a field that takes anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from lousho.models.demo.words import content_stems, fold, humanise, split_identifier, stem, words_in

Kind: TypeAlias = Literal[
    "string", "number", "integer", "boolean", "choice", "list", "record", "table", "either", "any"
]
Schema: TypeAlias = Mapping[str, Any]
Path: TypeAlias = tuple[str, ...]

_DEEPEST = 6
_MOST_FIELDS = 120
_EXAMPLE = re.compile(
    r"(?:\be\.\s?g\.?,?|\bfor example,?|\bfor instance,?|\bsuch as|\bex\.|\bexamples?\b:?|\blike)\s*:?\s*"
    r"(?P<shown>(?:[\"'`“][^\"'`”]+[\"'`”]|[^\s,;.()]+(?:[.\-/][^\s,;()]+)*)"
    r"(?:(?:,\s*|\s+or\s+|,?\s*or\s+)(?:[\"'`“][^\"'`”]+[\"'`”]|[^\s,;.()]+))*)",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"'`“]([^\"'`”]{1,60})[\"'`”]")
_DATE_WORDING = re.compile(r"yyyy-mm-dd|\biso[- ]?(?:8601)?[- ]?date\b|\biso 8601\b", re.IGNORECASE)
_TIME_WORDING = re.compile(r"\bhh:mm\b|\b24[- ]?h", re.IGNORECASE)
_MOMENT_WORDING = re.compile(r"date[- ]?time|yyyy-mm-ddt|\bdate and time\b|\btimestamp\b", re.IGNORECASE)
_CALENDAR = re.compile(r"^(?:date|day|when|weekday|until|deadlin|due)$")
_KNOWN_FORMATS = frozenset("date date-time time duration email idn-email uri url uri-reference iri uuid ipv4".split())
_ID_WORDS = frozenset("id ids uid uuid code ref nr no num number key identifi handl referenc slug".split())


@dataclass(frozen=True, slots=True)
class Field:
    """One place in a tool's arguments."""

    path: Path
    kind: Kind
    required: bool
    schema: Schema
    words: tuple[str, ...] = ()
    """Stems of the field's own name."""
    about: tuple[str, ...] = ()
    """Stems of what its description says, without its examples."""
    form: str | None = None
    """A JSON Schema format, stated or plain from the wording."""
    strict_form: bool = False
    choices: tuple[Any, ...] = ()
    item: Field | None = None
    parts: tuple[Field, ...] = ()
    shown: tuple[str, ...] = ()
    """Example values from the schema or its description."""
    nullable: bool = False
    leads: tuple[str, ...] = ()
    """The prepositions under which the tool's description speaks of it; '' where it is the verb's object."""

    @property
    def label(self) -> str:
        """The name as a person reads it, with the records it stands in."""
        return " ".join(humanise(part) for part in self.path)

    @property
    def description(self) -> str:
        """What the schema says about the field, on one line."""
        found = self.schema.get("description")
        return re.sub(r"\s+", " ", found).strip() if isinstance(found, str) else ""

    @property
    def default(self) -> Any:
        """The schema's default, or `None`."""
        return self.schema.get("default")

    @property
    def is_identifier(self) -> bool:
        """Whether the name reads like that of an identifier rather than of a thing."""
        return any(word in _ID_WORDS for word in self.words) or (
            not self.shown and any(word in {"id", "identifi"} for word in self.about[:4])
        )

    @property
    def is_calendar(self) -> bool:
        """Whether the field means a day although it is a plain string."""
        return any(_CALENDAR.match(word) for word in (*self.words, *self.about))


def as_mapping(value: object) -> Schema:
    """Return `value` when it is a JSON object, else an empty one."""
    return cast("Schema", value) if isinstance(value, Mapping) else {}


def as_list(value: object) -> Sequence[Any]:
    """Return `value` when it is a JSON array, else an empty one."""
    return cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else ()


def fields_of(parameters: object) -> tuple[Field, ...]:
    """Return the fields of a tool's parameters, in the schema's order."""
    root = as_mapping(parameters)
    return _Reader(root).properties(root, (), 0)


class _Reader:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._count = 0

    def properties(self, schema: Schema, path: Path, depth: int) -> tuple[Field, ...]:
        schema = self._resolved(schema)
        needed = {str(name) for name in as_list(schema.get("required"))}
        found: list[Field] = []
        for name, part in as_mapping(schema.get("properties")).items():
            self._count += 1
            if self._count > _MOST_FIELDS:
                break
            found.append(self.field(as_mapping(part), (*path, str(name)), str(name) in needed, depth + 1))
        return tuple(found)

    def field(self, schema: Schema, path: Path, required: bool, depth: int) -> Field:
        schema = self._resolved(schema)
        schema, nullable, branches = self._without_null(schema)
        description = f"{schema.get('description') or ''}"
        shown = _examples(schema, description)
        made = Field(
            path=path,
            kind="any",
            required=required and "default" not in schema,
            schema=schema,
            words=tuple(stem(word) for word in split_identifier(path[-1])),
            about=tuple(_about(description)),
            shown=shown,
            nullable=nullable,
        )
        if len(branches) > 1:
            return self._either(made, branches, depth)
        return self._typed(made, depth)

    def _typed(self, made: Field, depth: int) -> Field:
        schema = made.schema
        kinds = [kind for kind in (as_list(schema.get("type")) or (schema.get("type"),)) if kind != "null"]
        choices = tuple(as_list(schema.get("enum"))) or (("const" in schema and (schema["const"],)) or ())
        choices = tuple(choice for choice in choices if choice is not None)
        if choices:
            return replace(made, kind="choice", choices=choices)
        if schema.get("type") == "null":
            return replace(made, kind="choice", choices=(None,))
        kind = kinds[0] if kinds else None
        if kind == "object" or (kind is None and schema.get("properties")):
            return self._object(made, depth)
        if kind == "array" or (kind is None and schema.get("items")):
            item = None
            if depth < _DEEPEST:
                item = self.field(as_mapping(schema.get("items")), made.path, True, depth + 1)
            return replace(made, kind="list", item=item)
        if kind in {"number", "integer", "boolean"} and len(kinds) == 1:
            return replace(made, kind=kind)
        if kind == "string" and len(kinds) == 1:
            form, strict = _form(schema, made)
            return replace(made, kind="string", form=form, strict_form=strict)
        return made

    def _object(self, made: Field, depth: int) -> Field:
        parts = self.properties(made.schema, made.path, depth) if depth < _DEEPEST else ()
        if parts:
            return replace(made, kind="record", parts=parts)
        values = self.field(as_mapping(made.schema.get("additionalProperties")), (*made.path, "*"), True, depth + 1)
        return replace(made, kind="table", item=values)

    def _either(self, made: Field, branches: list[Schema], depth: int) -> Field:
        parts = [self.field({**as_mapping(branch)}, made.path, made.required, depth + 1) for branch in branches]
        if all(part.kind == "choice" for part in parts):
            return replace(made, kind="choice", choices=tuple(choice for part in parts for choice in part.choices))
        parts = [replace(part, about=part.about or made.about, shown=part.shown or made.shown) for part in parts]
        kinds = {part.kind for part in parts}
        if kinds <= {"string", "number", "integer", "boolean"} and not any(part.strict_form for part in parts):
            return made  # whatever was said is taken as it looks: a number as a number
        return replace(made, kind="either", parts=tuple(parts))

    def _resolved(self, schema: Schema) -> Schema:
        for _ in range(_DEEPEST):
            reference = schema.get("$ref")
            if isinstance(reference, str):
                rest = {key: value for key, value in schema.items() if key != "$ref"}
                schema = {**self._target(reference), **rest}
                continue
            whole = as_list(schema.get("allOf"))
            if not whole:
                return schema
            merged: dict[str, Any] = {}
            for part in whole:
                merged.update(self._resolved(as_mapping(part)))
            schema = {**merged, **{key: value for key, value in schema.items() if key != "allOf"}}
        return schema

    def _target(self, reference: str) -> Schema:
        node: object = self._root
        for part in reference.removeprefix("#").strip("/").split("/"):
            node = as_mapping(node).get(part.replace("~1", "/").replace("~0", "~"))
        return as_mapping(node)

    def _without_null(self, schema: Schema) -> tuple[Schema, bool, list[Schema]]:
        """Return the schema without its null branch, whether it had one, and the branches that are left."""
        branches = as_list(schema.get("anyOf")) or as_list(schema.get("oneOf"))
        kinds = as_list(schema.get("type"))
        nullable = "null" in kinds or schema.get("nullable") is True
        if not branches and len([kind for kind in kinds if kind != "null"]) > 1:
            branches = [{**schema, "type": kind} for kind in kinds]
        left = [self._resolved(as_mapping(branch)) for branch in branches]
        left = [branch for branch in left if branch.get("type") != "null"]
        nullable = nullable or len(left) < len(branches)
        if len(left) == 1:
            rest = {key: value for key, value in schema.items() if key not in {"anyOf", "oneOf", "type"}}
            return {**left[0], **rest}, nullable, []
        return schema, nullable, left


def _about(description: str) -> list[str]:
    without = _EXAMPLE.sub(
        " ", re.sub(r"\([^)]*\)", lambda part: "" if "." in part.group() else part.group(), description)
    )
    words = words_in(without)
    # A capital inside a sentence names an example, not the subject.
    plain = [word for index, word in enumerate(words) if index == 0 or word.islower() or word.isupper()]
    return content_stems(" ".join(plain))


def _examples(schema: Schema, description: str) -> tuple[str, ...]:
    found = [str(value) for value in (*as_list(schema.get("examples")), schema.get("example"), schema.get("default"))]
    found = [value for value in found if value not in {"", "None"}]
    shown = _EXAMPLE.search(description)
    if shown:
        quoted = _QUOTED.findall(shown["shown"])
        found += quoted or [part.strip() for part in re.split(r",\s*|\s+or\s+", shown["shown"]) if part.strip()]
    return tuple(found[:5])


def _form(schema: Schema, made: Field) -> tuple[str | None, bool]:
    """Return the format of a string, and whether the schema states it rather than the wording suggests it."""
    stated = schema.get("format")
    if isinstance(stated, str) and stated in _KNOWN_FORMATS:
        return {"idn-email": "email", "url": "uri", "iri": "uri", "uri-reference": "uri"}.get(stated, stated), True
    description, words = made.description, {fold(word) for word in split_identifier(made.path[-1])}
    if words & {"email", "mail"} or re.search(r"e-?mail address", description, re.IGNORECASE):
        return "email", False
    if _MOMENT_WORDING.search(description):
        return "date-time", False
    if "date" in words or _DATE_WORDING.search(description):
        return "date", False
    if _TIME_WORDING.search(description) or "time" in words:
        return "time", False
    if re.search(r"\bur[il]s?\b", f"{' '.join(words)} {description}", re.IGNORECASE):
        return "uri", False
    return None, False


def leaves(fields: Sequence[Field], required: bool = True) -> Iterator[Field]:
    """Return the fields that take a value themselves; `required` only where all the records around them are."""
    for made in fields:
        needed = made.required and required
        if made.kind == "record":
            yield from leaves(made.parts, needed)
        else:
            yield replace(made, required=needed)


def unmet(fields: Sequence[Field], values: Mapping[Path, Any]) -> list[Field]:
    """Return the leaves that must have a value and have none; an optional record counts once it was begun."""
    found: list[Field] = []
    for made in fields:
        if made.kind == "record":
            begun = any(path[: len(made.path)] == made.path for path in values)
            if begun or made.required:
                found.extend(unmet(made.parts, values))
        elif made.required and made.path not in values:
            found.append(made)
    return found


def assemble(values: Mapping[Path, Any], fields: Sequence[Field] = ()) -> dict[str, Any]:
    """Return the values as nested objects; a required record without values is an empty one."""
    out: dict[str, Any] = {}
    for path, value in values.items():
        place = out
        for part in path[:-1]:
            place = place.setdefault(part, {})
        place[path[-1]] = value
    _add_empty_records(fields, out)
    return out


def _add_empty_records(fields: Sequence[Field], out: dict[str, Any]) -> None:
    for made in fields:
        if made.kind == "record" and (made.required or made.path[-1] in out):
            _add_empty_records(made.parts, out.setdefault(made.path[-1], {}))


_PLAIN = frozenset(
    "$defs $schema additionalProperties anyOf const default description enum examples format items nullable properties"
    " required title type".split()
)
_BOUNDS = frozenset("exclusiveMaximum exclusiveMinimum maxItems maxLength maximum minItems minLength minimum".split())


def is_plain(schema: object, *, listed: bool = False) -> bool:
    """Whether a schema says nothing but what `Field` and the conversions hold by themselves."""
    node = as_mapping(schema)
    if not node.keys() <= (_PLAIN if listed else _PLAIN | _BOUNDS) or isinstance(node.get("type"), (list, tuple)):
        return False
    branches = [branch for branch in as_list(node.get("anyOf")) if as_mapping(branch).get("type") != "null"]
    if ("anyOf" in node and len(branches) != 1) or any("anyOf" in as_mapping(branch) for branch in branches):
        return False
    if "enum" in node and not as_list(node["enum"]):
        return False
    parts = as_mapping(node.get("properties"))
    extra = node.get("additionalProperties", True)
    if not parts and extra is False:
        return False
    inner = [as_mapping(extra), as_mapping(node.get("items"))]
    return all(is_plain(part, listed=listed) for part in (*branches, *parts.values())) and all(
        is_plain(part, listed=True) for part in inner if part
    )


def shape(value: str) -> str:
    """Return the outline of a value: `A-1042` is `A-9`, so a request's words can be held against an example."""
    outline = re.sub(r"[^\W\d_]+", lambda run: "A" if run.group()[0].isupper() else "a", value.strip())
    return re.sub(r"\d+", "9", outline)


def looks_like_example(value: str, made: Field) -> bool:
    """Whether `value` has the outline of one of the field's examples and that says more than "a word"."""
    if any(example == value and not value.islower() for example in made.shown):
        return True
    mine = shape(value)
    return len(mine) > 1 and not mine.isalpha() and any(shape(example) == mine for example in made.shown)
