"""What a request leaves out, taken from what was found before: `look it up, then email it to Ann`."""

from __future__ import annotations

from collections.abc import Sequence

from lousho.models.demo.arguments import store
from lousho.models.demo.convert import MISSING, PLACES
from lousho.models.demo.requests import Task
from lousho.models.demo.results import Outcome, recall, recall_argument, write
from lousho.models.demo.schema import Field
from lousho.models.demo.words import humanise


def complete(task: Task, earlier: Sequence[Task], memory: Sequence[Outcome]) -> None:
    """Fill a task's missing arguments from results of this request, or from older ones the user points back to."""
    if not task.arguments.missing or task.candidates:
        return
    now = [other.outcome for other in earlier if other.status == "done" and other.outcome is not None]
    points_back = task.refers_back or task.after
    older = list(memory) if points_back else []
    known = [*reversed(now), *(outcome for outcome in reversed(older) if outcome not in now)]
    has_content = False
    for leaf in task.arguments.missing:
        value = _remembered(task, leaf, known)
        if value is not MISSING:
            store(task.arguments, leaf, value)
            has_content = has_content or (leaf.kind == "string" and _is_free(leaf))
    if points_back and known:
        _pass_on(task, now or known[:1], has_content=has_content)


def _remembered(task: Task, leaf: Field, known: Sequence[Outcome]) -> object:
    said = {word.lower() for word in task.words}
    pick = next((word for word in PLACES if word in said), "")
    for outcome in known:
        value = recall(leaf, outcome, pick)
        if value is MISSING:
            value = recall_argument(leaf, outcome)
        if value is not MISSING:
            return value
    return MISSING


def _pass_on(task: Task, sources: Sequence[Outcome], *, has_content: bool) -> None:
    """Hand a result on as the content of the last free-form string; the ones before it get the result's name."""
    open_strings = [leaf for leaf in task.arguments.missing if leaf.kind in {"string", "any"} and _is_free(leaf)]
    if not open_strings:
        return
    content = "\n".join(write(outcome.value) for outcome in sources)
    heading = humanise(sources[-1].tool).capitalize()
    shown = [str(value) for value in sources[-1].arguments.values() if isinstance(value, (str, int))]
    if shown:
        heading += f": {shown[0]}"
    for leaf in open_strings if has_content else open_strings[:-1]:
        store(task.arguments, leaf, heading)
    if not has_content:
        store(task.arguments, open_strings[-1], content)


def _is_free(leaf: Field) -> bool:
    return leaf.form is None and "pattern" not in leaf.schema and not leaf.is_identifier
