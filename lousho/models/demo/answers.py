"""What the demo model says at the end of a turn, put together from what its calls brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lousho.core.messages import Message, text_of
from lousho.models.demo import phrases
from lousho.models.demo.conversation import MOST_CALLS, Answer, Ask, Conversation
from lousho.models.demo.convert import MISSING
from lousho.models.demo.examples import example_for
from lousho.models.demo.reading import LONGEST_KEPT
from lousho.models.demo.requests import Task, forced_task
from lousho.models.demo.results import recall
from lousho.models.demo.schema import Field, assemble
from lousho.models.demo.views import view_of


def question_text(conversation: Conversation, ask: Ask) -> str:
    """Return the question, after what the turn has already brought."""
    if ask.task.candidates:
        said = phrases.which([match.tool for match in ask.task.candidates])
    else:
        day = any(leaf.path in ask.task.arguments.partial for leaf in ask.fields)
        said = phrases.question(ask.task.tool, ask.fields, ask.complaints, again=ask.task.asked_twice, day=day)
    return "\n\n".join(part for part in (_reports(conversation), said) if part)


def answer_text(
    conversation: Conversation, messages: Sequence[Message], answer: Answer, *, tools_off: bool = False
) -> str:
    """Return the answer of a turn."""
    parts = [_reports(conversation)]
    if answer.limit_reached:
        parts.append(phrases.limit_reached(MOST_CALLS))
    if not any(parts):
        parts.append(phrases.tools_are_off() if tools_off else _talk(conversation, again=_introduced(messages)))
        if not _introduced(messages) and conversation.talk not in {"thanks", "goodbye"}:
            parts.append(phrases.INTRODUCTION)
    if len(conversation.message) > LONGEST_KEPT:
        parts.append(phrases.cut(LONGEST_KEPT))
    return "\n\n".join(part for part in parts if part)


def _introduced(messages: Sequence[Message]) -> bool:
    return any(message.role == "assistant" and phrases.INTRODUCTION in text_of(message) for message in messages)


def _talk(conversation: Conversation, *, again: bool) -> str:
    tools = conversation.tools
    examples = [example_for(tool) for tool in tools]
    if conversation.talk == "greeting":
        return phrases.greeting(tools, examples)
    if conversation.talk == "thanks":
        return phrases.thanks()
    if conversation.talk == "goodbye":
        return phrases.farewell()
    if conversation.talk == "help":
        return phrases.capabilities(tools, examples)
    if conversation.talk in {"yes-no", "cancel", "again"}:
        return phrases.nothing_open()
    return phrases.no_match(tools, examples, again=again)


def _reports(conversation: Conversation) -> str:
    """Return what each call of the turn that was not reported yet brought."""
    settled = [task for task in conversation.tasks if task.status not in {"open", "called"} and not task.reported]
    done = [task for task in settled if task.status == "done"]
    return "\n\n".join(_report(task, several=len(done) > 1) for task in settled)


def _report(task: Task, *, several: bool) -> str:
    if task.status == "skipped":
        return phrases.skipped(task.tool)
    if task.status == "dropped" or task.outcome is None:
        return phrases.dropped(task.tool)
    return phrases.failure(task.outcome) if task.outcome.failed else phrases.success(task.outcome, several=several)


def structured_answer(schema: Mapping[str, Any], conversation: Conversation, said: str) -> str:
    """Return JSON of the wanted shape: from the results, then from the request's words, then placeholders."""
    view = view_of("answer", "", schema)
    if not view.leaves:
        return phrases.as_json({"answer": said})
    task = forced_task(conversation.message, view, conversation.now)
    values = {
        leaf.path: task.arguments.values[leaf.path]
        for leaf in view.leaves
        if leaf.path in task.arguments.values and leaf.kind != "list"
    }
    for leaf in view.leaves:
        for outcome in reversed(conversation.memory):
            found = recall(leaf, outcome)
            if found is not MISSING:
                values[leaf.path] = found
                break
        if leaf.required and leaf.path not in values:
            values[leaf.path] = _placeholder(leaf, said)
    return phrases.as_json(assemble(values, view.fields))


def _placeholder(leaf: Field, said: str) -> Any:
    if leaf.kind == "choice":
        return leaf.choices[0]
    if leaf.kind in {"number", "integer"}:
        low = leaf.schema.get("minimum", 0)
        return low if isinstance(low, (int, float)) else 0
    if leaf.nullable:
        return None
    blank: dict[str, Any] = {"boolean": False, "list": [], "table": {}, "record": {}}
    return blank.get(leaf.kind, said)
