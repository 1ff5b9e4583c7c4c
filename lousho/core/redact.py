"""What may be shown of a text or a value from outside: never a key.

Error messages, descriptions and events quote what the application or a vendor handed over. A text loses whatever looks
like a key; an object is named by its type alone, for its own text may hold a key, be endless or fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from types import FunctionType
from typing import Any, cast

MOST_SHOWN_CHARS = 80
"""What `shown()` keeps of a text."""
_MOST_SHOWN_ITEMS = 4
_LOOKED_AT_CHARS = 400
"""What is looked at of a text: a key that begins in the part that is shown must be seen whole."""
_LARGEST_SHOWN_INTEGER = 10**30

_SECRETS = (
    r"(?P<scheme>\bBearer\s+)[\w.~+/=-]{8,}|\b(?:sk|pk|rk)-[\w*-]{6,}|\bAIza[\w-]{20,}|\bgh[pousr]_\w{20,}"
    r"|\bxox[abprs]-[\w-]{10,}|\bgsk_\w{10,}|(?<=://)[^\s/:@]{0,256}:[^\s/@]{1,256}(?=@)"
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` with the given secrets, and whatever looks like an API key, replaced by `[REDACTED]`."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "[REDACTED]")
    return _pattern().sub(lambda match: f"{match['scheme'] or ''}[REDACTED]", text)


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(_SECRETS, re.IGNORECASE)


def shown(value: Any) -> str:
    """Return `value` for a message: plain values as Python writes them, shortened and without keys, others by their type.

    A mapping is shown by its keys: what is under them may be a secret.
    """
    return _shown(value, inside=False)


def _shown(value: object, *, inside: bool) -> str:
    kind = type(value)
    if isinstance(value, str):
        return _shown_text(str.__str__(value))
    if kind is bytes:
        return _shown_text(cast("bytes", value)[:_LOOKED_AT_CHARS].decode("latin-1"), "b")
    if value is None or kind in (bool, float) or (kind is int and abs(cast("int", value)) < _LARGEST_SHOWN_INTEGER):
        return repr(value)
    if isinstance(value, type):
        return f"<class {value.__name__}>"
    if isinstance(value, FunctionType):
        return f"<function {value.__name__}>"
    if kind in (list, tuple, set, frozenset, dict) and not inside:
        return _shown_items(cast("Sequence[object]", value), kind)
    return f"<{kind.__name__}>"


def _shown_text(text: str, prefix: str = "") -> str:
    clean = redact(text[:_LOOKED_AT_CHARS])
    return f"{prefix}{clean[:MOST_SHOWN_CHARS]!r}" + ("..." if len(clean) > MOST_SHOWN_CHARS else "")


def _shown_items(items: Sequence[object], kind: type) -> str:
    some = [_shown(item, inside=True) for item in islice(items, _MOST_SHOWN_ITEMS)]
    if kind is dict:
        some = [f"{key}: ..." for key in some]
    if len(items) > _MOST_SHOWN_ITEMS:
        some.append("...")
    opening, closing = "[]" if kind is list else "()" if kind is tuple else "{}"
    return f"{opening}{', '.join(some)}{closing}"
