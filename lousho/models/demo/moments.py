"""Which day or time of day goes to which field."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, time, timedelta
from itertools import pairwise

from lousho.models.demo import convert
from lousho.models.demo.convert import MISSING, Found
from lousho.models.demo.dates import DAYS
from lousho.models.demo.filling import Filling, moment_in
from lousho.models.demo.schema import Field

_HOURS = frozenset("at for by around until till to from before after".split())
_STARTS = frozenset("star from begi sinc afte earl depa chec".split())
_ENDS = frozenset("end to unti till due befo by late retu".split())


def fill_dates(filling: Filling) -> None:
    """Fill the fields whose format is a date, a time or both; several of a kind go by preposition, then by order."""
    calendar = [made for made in filling.open("string") if made.form in {"date", "date-time", "time"}]
    for made in sorted(calendar, key=lambda made: made.form == "time"):
        others = [other for other in calendar if other.path not in filling.values and other.form == made.form]
        kinds = {"date": ("date", "moment"), "time": ("time", "moment"), "date-time": ("date", "moment", "time")}[
            str(made.form)
        ]
        free = [index for index, _ in filling.free(*kinds)]
        if len(others) > 1 and len(free) > 1:
            free = _mine(filling, made, free)
        if made.form == "date-time":
            found = moment_in(made, filling, _with_hours(filling, free))
        else:
            found = next(
                (
                    Found(value, index, index + 1)
                    for index in free
                    if (value := convert.formatted(made, filling.reading.units[index])) is not MISSING
                ),
                None,
            ) or (_hour(filling) if made.form == "time" else None)
        if found is not None:
            filling.put(made, found.value, found.lo, found.hi)
    _share_day(filling, calendar)
    _order_week(filling, calendar)


def _with_hours(filling: Filling, free: list[int]) -> list[int]:
    """Return the units with a bare `at 7` among them."""
    units = filling.reading.units
    hours = [
        i
        for index, unit in filling.free("number")
        if index > filling.lo and units[index - 1].low == "at" and isinstance(unit.value, int)
        for i in (index - 1, index)
    ]
    return sorted({*free, *hours})


def _hour(filling: Filling) -> Found | None:
    for index, unit in filling.free("number"):
        hour = unit.value
        if filling.before(index) in _HOURS and isinstance(hour, int) and 0 <= hour < 24 and not unit.measure:
            return Found(convert.clock(time(hour)), index, index + 1)
    return None


def _mine(filling: Filling, made: Field, free: list[int]) -> list[int]:
    """Return the units that are this field's when several fields want one each: by preposition, else in order."""
    is_end = any(word[:4] in _ENDS or word[:3] in _ENDS for word in made.words)
    is_start = any(word[:4] in _STARTS for word in made.words)
    for index in free:
        lead = filling.before(index)
        if (is_end and lead in {"to", "until", "till", "by", "before"}) or (
            is_start and lead in {"from", "since", "after"}
        ):
            days = [i for i in free if filling.reading.units[i].kind == "date"]
            times = [i for i in free if i >= index and filling.reading.units[i].kind != "date"]
            near = [i for i in days if i >= index]
            return sorted({index, *(times[:1]), *(near[:1] if made.form == "date-time" else [])})
    return free


def _share_day(filling: Filling, calendar: Sequence[Field]) -> None:
    """Give a time without a day the day that was said for another field: `tomorrow from 3pm to 4pm`."""
    days = [value for path, value in filling.values.items() if any(made.path == path for made in calendar)]
    first = next((str(value)[:10] for value in days if str(value)[4:5] == "-"), None)
    if first is None:
        return
    for made in calendar:
        value = filling.values.get(made.path)
        said_day = any(
            filling.reading.units[i].kind in {"date", "moment"} for i in range(*filling.spans.get(made.path, (0, 0)))
        )
        if made.form == "date-time" and isinstance(value, str) and not said_day and value[:10] != first:
            filling.values[made.path] = first + value[10:]


def _order_week(filling: Filling, calendar: Sequence[Field]) -> None:
    """Put an end that was named by its weekday behind its start: `from Monday to Friday` is one week."""
    dated = [made for made in calendar if made.form == "date" and made.path in filling.values]
    for start, end in pairwise(dated):
        span = filling.spans.get(end.path)
        if span is None or not any(word[:4] in _ENDS or word[:3] in _ENDS for word in end.words):
            continue
        first, last = (date.fromisoformat(str(filling.values[made.path])) for made in (start, end))
        weekday = filling.reading.slice(*span).lower() in DAYS
        if weekday and last < first:
            filling.values[end.path] = (last + timedelta(days=7)).isoformat()
