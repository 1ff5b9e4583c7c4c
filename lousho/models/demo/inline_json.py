"""Arguments that a request already spells as JSON: `save it with {"size": 3, "owner": {"name": "Ann"}}`."""

from __future__ import annotations

import json
from typing import Any

from lousho.models.demo.convert import MISSING, fit_json
from lousho.models.demo.filling import Filling
from lousho.models.demo.schema import as_mapping


def fill_json(filling: Filling) -> None:
    """Fill the fields that a JSON object in the range has under their own names, and take its units."""
    units = filling.reading.units
    opened = next((i for i in range(filling.lo, filling.hi) if units[i].raw == "{"), None)
    closed = next((i for i in range(filling.hi - 1, filling.lo, -1) if units[i].raw == "}"), None)
    if opened is None or closed is None or closed < opened:
        return
    try:
        given: Any = json.loads(filling.reading.source[units[opened].start : units[closed].end])
    except (ValueError, RecursionError):
        return
    found = False
    for leaf in filling.fields:
        value = given
        for part in leaf.path:
            value = as_mapping(value).get(part, MISSING)
        fitted = MISSING if value is MISSING else fit_json(leaf, value)
        if fitted is not MISSING:
            filling.values[leaf.path] = fitted
            filling.named.add(leaf.path)
            found = True
    if found:
        filling.taken.update(range(opened, closed + 1))
