"""Type hints as pydantic and error messages need them: the fields of a type, its name, and TypedDicts it can read."""

from __future__ import annotations

import enum
import sys
import types
import typing
from collections.abc import Callable, Collection, Generator, Iterable
from typing import Any

_DEEPEST = 16
"""Nesting of types that is looked into."""


def fields_of(source: object) -> dict[str, object]:
    """Return the fields of a pydantic model, dataclass or TypedDict with their type hints; nothing for other types."""
    import dataclasses

    import pydantic

    if not isinstance(source, type):
        return {}
    cls: type[object] = source
    if issubclass(cls, pydantic.BaseModel):
        return {name: field.annotation for name, field in cls.model_fields.items()}
    if dataclasses.is_dataclass(cls) or is_typed_dict(cls):
        try:
            return dict(typing.get_type_hints(cls, include_extras=True))
        except Exception:  # noqa: BLE001 - an unresolvable hint is what the caller is about to report
            return {}
    return {}


def is_typed_dict(source: object) -> bool:
    """Return whether `source` is a TypedDict class of either kind."""
    return isinstance(source, type) and dict in source.__mro__ and "__required_keys__" in vars(source)


def type_name(hint: object) -> str:
    """Return a hint the way a person writes it."""
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "").replace("collections.abc.", "")


def portable_hint(hint: object) -> Any:
    """Return `hint` with every `typing.TypedDict` in it in the form pydantic reads on Python 3.11."""
    return hint if sys.version_info >= (3, 12) else _replace_typed_dicts(hint, {})


def eager_hint(hint: object) -> Any:
    """Return `hint` with `list` for every `Iterable` and `Collection` in it.

    pydantic would read an `Iterable` only while the function already runs, and a `Collection` not at all.
    """
    if typing.get_origin(hint) is typing.Literal:
        return hint
    if (typing.get_origin(hint) or hint) in (Iterable, Collection):
        parts = tuple(eager_hint(part) for part in typing.get_args(hint))
        return list[parts[0]] if parts else list[Any]
    return _with_parts(hint, eager_hint)


def unreadable_part(hint: object, path: str = "", depth: int = 0) -> tuple[str, object] | None:
    """Return the dotted path and the type of the first part of `hint` that has a schema but takes no JSON value.

    Such are an enum or a `Literal` with values that JSON has no word for, an enum without members and a generator.
    """
    if _takes_nothing(hint):
        return path, hint
    if depth > _DEEPEST or _reads_by_itself(hint):
        return None
    for name, part in fields_of(hint).items():
        found = unreadable_part(part, f"{path}.{name}" if path else name, depth + 1)
        if found is not None:
            return found
    if typing.get_origin(hint) is typing.Literal:
        return None
    parts = (unreadable_part(part, path, depth + 1) for part in typing.get_args(hint))
    return next((found for found in parts if found is not None), None)


def _takes_nothing(hint: object) -> bool:
    if typing.get_origin(hint) is typing.Literal:
        return not all(map(_is_plain, typing.get_args(hint)))
    if (typing.get_origin(hint) or hint) is Generator:
        return True
    if not isinstance(hint, type) or not issubclass(hint, enum.Enum):
        return False
    members = list(hint)
    reads_by_itself = hasattr(hint, "__get_pydantic_core_schema__") or "_missing_" in vars(hint)
    return not reads_by_itself and not (members and all(map(_is_plain, members)))


def _is_plain(value: object) -> bool:
    value = value.value if isinstance(value, enum.Enum) else value
    return value is None or isinstance(value, (str, int, float))


def _reads_by_itself(hint: object) -> bool:
    """Return whether a validator beside the type may take what the type alone would not."""
    metadata: tuple[object, ...] = getattr(hint, "__metadata__", ())
    return any(type(item).__name__.endswith("Validator") for item in metadata)


def _replace_typed_dicts(hint: object, done: dict[object, object]) -> object:
    if is_typed_dict(hint):
        return done[hint] if hint in done else _copy_typed_dict(hint, done)
    return _with_parts(hint, lambda part: _replace_typed_dicts(part, done))


def _with_parts(hint: object, change: Callable[[object], object]) -> object:
    """Return `hint` with `change` applied to the types in it; `hint` itself when that changes none of them."""
    arguments = typing.get_args(hint)
    origin: Any = typing.get_origin(hint)
    if not arguments or origin is typing.Literal:
        return hint
    is_annotated = hasattr(hint, "__metadata__")
    replaced: list[Any] = [change(arguments[0]), *arguments[1:]] if is_annotated else [change(p) for p in arguments]
    if all(new is old for new, old in zip(replaced, arguments, strict=True)):
        return hint
    if origin is types.UnionType or str(origin) == "typing.Union":
        union = replaced[0]
        for part in replaced[1:]:
            union = union | part
        return union
    wrapper: Any = typing.Annotated if is_annotated else origin
    return wrapper[tuple(replaced) if len(replaced) > 1 else replaced[0]]


def _copy_typed_dict(source: Any, done: dict[object, object]) -> object:
    import typing_extensions

    make: Any = typing_extensions.TypedDict
    copy: Any = make(source.__name__, {})
    done[source] = copy  # before its fields: one of them may be this TypedDict again
    hints = typing.get_type_hints(source, include_extras=True)
    copy.__annotations__ = {name: _replace_typed_dicts(part, done) for name, part in hints.items()}
    copy.__required_keys__ = source.__required_keys__
    copy.__optional_keys__ = source.__optional_keys__
    copy.__doc__, copy.__module__ = source.__doc__, source.__module__
    return copy
