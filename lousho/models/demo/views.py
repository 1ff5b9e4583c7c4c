"""A tool as the demo model sees it: its fields, and the words it is known by with their weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from lousho.core.json_values import dump_json
from lousho.models.demo.linking import with_leads
from lousho.models.demo.schema import Field, as_mapping, fields_of, is_plain, leaves
from lousho.models.demo.words import STOP, content_stems, is_generic, split_identifier, stem

if TYPE_CHECKING:
    from lousho.core.json_schema import Schema

_OPENING_WORDS = 4


@dataclass(slots=True, eq=False)
class ToolView:
    """A tool as the demo model sees it."""

    name: str
    description: str
    parameters: object
    """The JSON Schema as it was given."""
    fields: tuple[Field, ...]
    leaves: tuple[Field, ...]
    name_stems: tuple[str, ...]
    vocabulary: dict[str, float] = field(default_factory=lambda: {})
    """Each stem the tool is known by, with its weight."""
    _schema: Schema | Literal[False] | None = None

    def schema(self) -> Schema | None:
        """Return the schema as the runtime checks it; `None` when it is beyond reading, or so plain that it need not.

        The checker is large, and an agent's first answer should not wait for it to load.
        """
        if self._schema is None and not is_plain(self.parameters):
            from lousho.core.errors import SDKError
            from lousho.core.json_schema import schema_of

            try:
                self._schema = schema_of(self.parameters, lenient=True)
            except SDKError:
                self._schema = False
        return self._schema or None

    @property
    def nouns(self) -> frozenset[str]:
        """The words of the name that are more than a verb any tool may begin with."""
        return frozenset(word for word in self.name_stems if not is_generic(word))

    @property
    def particles(self) -> frozenset[str]:
        """The small words of the name, such as `off`."""
        return frozenset(word for word in self.name_stems if word in STOP)

    @property
    def only_verbs(self) -> bool:
        """Whether the name has nothing but such verbs."""
        return not self.nouns


def view_of(name: str, description: str, parameters: object) -> ToolView:
    """Return the view of a tool; the same tool gives the same view as long as it is remembered."""
    return _view(name, description, dump_json(parameters))


@lru_cache(maxsize=256)
def _view(name: str, description: str, parameters_json: str) -> ToolView:
    parameters = json.loads(parameters_json)
    made = with_leads(fields_of(as_mapping(parameters)), description)
    name_stems = tuple(stem(word) for word in split_identifier(name))
    view = ToolView(name, description, parameters, made, tuple(leaves(made)), name_stems)
    for word, weight in _weights(view):
        view.vocabulary[word] = max(weight, view.vocabulary.get(word, 0.0))
    return view


def _weights(view: ToolView) -> list[tuple[str, float]]:
    found = [(word, 3.0 if view.only_verbs or not is_generic(word) else 1.5) for word in view.name_stems]
    if len(view.name_stems) > 1:
        found.append(("".join(view.name_stems), 3.0))
    for index, word in enumerate(content_stems(view.description)[:60]):
        opening = index < _OPENING_WORDS
        found.append((word, (1.0 if opening else 0.3) if is_generic(word) else (1.6 if opening else 0.8)))
    for made in view.leaves:
        found.extend((word, 0.3 if is_generic(word) else 0.9) for part in made.path for word in content_stems(part))
        found.extend((word, 0.9) for word in made.words if not is_generic(word))
        found.extend((word, 0.4) for word in made.about if not is_generic(word))
        found.extend(
            (word, 1.2) for choice in _choices(made) for word in content_stems(" ".join(split_identifier(choice)))
        )
    return found


def _choices(made: Field) -> list[str]:
    choices = made.choices or (made.item.choices if made.item is not None else ())
    return [choice for choice in choices if isinstance(choice, str)][:40]


def views_of(definitions: Sequence[Any]) -> list[ToolView]:
    """Return the views of a request's tools; of two with one name the first."""
    views: dict[str, ToolView] = {}
    for definition in definitions:
        function = definition.function
        parameters: Mapping[str, Any] = function.parameters
        views.setdefault(function.name, view_of(function.name, function.description or "", parameters))
    return list(views.values())
