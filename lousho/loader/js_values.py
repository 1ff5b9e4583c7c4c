"""Values as the `when` of a file's permission rule compares them.

The file form is defined by JavaScript's `String()`, `Number()` and `===`, and a file must decide alike whichever
implementation reads it: `true` is compared as `'true'`, an absent argument as `'undefined'`, and `1` never equals
`true`. Source: agent-directories page.
"""

from __future__ import annotations

import math
import re
from typing import Final

from lousho.core.json_values import Json
from lousho.core.unset import Unset

_DECIMAL = re.compile(r"[+-]?(?:Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
_RADIX: Final = {
    "0x": (16, re.compile(r"[0-9a-fA-F]+")),
    "0o": (8, re.compile(r"[0-7]+")),
    "0b": (2, re.compile("[01]+")),
}
# What JavaScript trims; Python's `strip()` also takes the C0 separators, which would make a number of what is none.
_WHITE = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_LONGEST_PLAIN: Final = 21
_NAN: Final = float("nan")


def js_string(value: Json | Unset) -> str:
    """Return `String(value)`; an absent value is `'undefined'`."""
    if isinstance(value, str):
        return value
    if isinstance(value, Unset):
        return "undefined"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return _number_text(value)
    if isinstance(value, list):
        return ",".join("" if item is None else js_string(item) for item in value)
    return "[object Object]"


def js_number(value: Json | Unset) -> float:
    """Return `Number(value)`; NaN for what is not numeric. An empty text and `null` are 0."""
    if isinstance(value, Unset):
        return _NAN
    if value is None:
        return 0.0
    if isinstance(value, (bool, int, float)):
        return _as_float(value)
    text = (value if isinstance(value, str) else js_string(value)).strip(_WHITE)
    if not text:
        return 0.0
    radix = _RADIX.get(text[:2].lower())
    if radix is not None:
        base, digits = radix
        return _as_float(int(text[2:], base)) if digits.fullmatch(text[2:]) else _NAN
    return float(text.replace("Infinity", "inf")) if _DECIMAL.fullmatch(text) else _NAN


def js_strictly_equal(left: Json | Unset, right: Json) -> bool:
    """Return `left === right`; lists and objects are never equal to another one."""
    if isinstance(left, (Unset, list, dict)) or isinstance(right, (list, dict)):
        return False
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return _as_float(left) == _as_float(right)
    return type(left) is type(right) and left == right


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _number_text(value: float) -> str:
    """Return a number as JavaScript prints it: `1` for 1.0, exponents only from 1e21 up and below 1e-6."""
    number = _as_float(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "0"
    mantissa, _, exponent_text = f"{abs(number)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    point = len(whole) - leading + int(exponent_text or 0)
    digits = digits.rstrip("0") or "0"
    return ("-" if number < 0 else "") + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    """Return significant digits with the decimal point after `point` of them, in JavaScript's choice of form."""
    if len(digits) <= point <= _LONGEST_PLAIN:
        return digits + "0" * (point - len(digits))
    if 0 < point <= _LONGEST_PLAIN:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    exponent = point - 1
    shown = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{shown}e{'+' if exponent >= 0 else '-'}{abs(exponent)}"
