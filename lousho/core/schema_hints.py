"""Type hints as pydantic and error messages need them: the fields of a type, its name, and TypedDicts it can read."""

from __future__ import annotations

import sys
import types
import typing
from typing import Any


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


def _replace_typed_dicts(hint: object, done: dict[object, object]) -> object:
    if is_typed_dict(hint):
        return done[hint] if hint in done else _copy_typed_dict(hint, done)
    arguments = typing.get_args(hint)
    origin: Any = typing.get_origin(hint)
    if not arguments or origin is typing.Literal:
        return hint
    replaced: list[Any] = [_replace_typed_dicts(part, done) for part in arguments]
    if all(new is old for new, old in zip(replaced, arguments, strict=True)):
        return hint
    if origin is types.UnionType or str(origin) == "typing.Union":
        union = replaced[0]
        for part in replaced[1:]:
            union = union | part
        return union
    wrapper: Any = typing.Annotated if hasattr(hint, "__metadata__") else origin
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
