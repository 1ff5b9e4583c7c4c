"""A request for each tool that the demo model itself understands, built from the tool's own schema."""

from __future__ import annotations

from typing import Any

from lousho.models.demo.convert import fit_number
from lousho.models.demo.schema import Field
from lousho.models.demo.views import ToolView
from lousho.models.demo.words import humanise

_MOST_SHOWN = 4


def example_for(tool: ToolView) -> str:
    """Return one line such as `get weather, city: Paris`, in quotation marks."""
    needed = [leaf for leaf in tool.leaves if leaf.required]
    shown: list[str] = []
    for leaf in needed[:_MOST_SHOWN]:
        same = sum(other.choices == leaf.choices for other in needed[: needed.index(leaf)])
        value = str(leaf.choices[same % len(leaf.choices)]) if leaf.choices else sample(leaf)
        shown.append(f"{leaf.label}: {value}")
    more = ", …" if len(needed) > _MOST_SHOWN else ""
    return f"“{', '.join([humanise(tool.name), *shown])}{more}”"


def sample(leaf: Field) -> str:
    """Return a value that fits a field, as a user would type it."""
    if leaf.kind == "list" and leaf.item is not None:
        fewest = leaf.schema.get("minItems")
        one = sample_record(leaf.item) if leaf.item.kind == "record" else sample(leaf.item)
        return " and ".join([one] * (min(fewest, 3) if isinstance(fewest, int) and fewest > 1 else 1))
    if leaf.kind == "choice":
        return str(leaf.choices[0])
    if leaf.kind == "boolean":
        return "yes"
    if leaf.kind in {"number", "integer"}:
        return f"{_number(leaf):g}"
    if leaf.kind == "table":
        return "a=1"
    if leaf.shown:
        return leaf.shown[0] if leaf.shown[0].replace("-", "").isalnum() else f"'{leaf.shown[0]}'"
    by_form = {
        "email": "sam@example.com",
        "uri": "https://example.com",
        "uuid": "123e4567-e89b-12d3-a456-426614174000",
        "date": "tomorrow",
        "time": "15:00",
        "date-time": "tomorrow at 15:00",
        "duration": "30 minutes",
        "ipv4": "192.0.2.1",
    }
    return by_form.get(leaf.form or "", "'something'")


def sample_record(record: Field) -> str:
    """Return the values of an object's required parts after one another."""
    parts = [part for part in record.parts if part.required] or list(record.parts[:1])
    return " ".join(sample(part) for part in parts)


def _number(leaf: Field) -> Any:
    schema = leaf.schema
    low, high = schema.get("minimum"), schema.get("maximum")
    floor = schema.get("exclusiveMinimum")
    wanted: Any = leaf.shown[0] if leaf.shown and leaf.shown[0].replace(".", "", 1).isdigit() else 3
    wanted = float(wanted)
    if isinstance(low, (int, float)):
        wanted = max(wanted, low)
    if isinstance(floor, (int, float)):
        wanted = max(wanted, floor + 1)
    if isinstance(high, (int, float)):
        wanted = min(wanted, high)
    step = schema.get("multipleOf")
    if isinstance(step, (int, float)) and step > 0:
        wanted = step * max(1, round(wanted / step))
    return fit_number(leaf, wanted) or wanted
