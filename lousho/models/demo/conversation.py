"""A transcript replayed: what was asked, called, answered and is still open, and what to do next.

A provider keeps nothing between calls, so the state is rebuilt from the messages each time. Every step of the rules is
deterministic, which makes the replay arrive where the last call left off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from lousho.core.messages import Message, text_of
from lousho.models.demo.arguments import answer_into, arguments_for
from lousho.models.demo.choose import Evidence
from lousho.models.demo.completion import complete
from lousho.models.demo.reading import LONGEST_READ, read
from lousho.models.demo.repair import check, repair
from lousho.models.demo.requests import Task, arguments_of, follow_ups, known_words, repeated, tasks_for
from lousho.models.demo.results import Outcome, as_text_answer, outcome_of
from lousho.models.demo.schema import Field
from lousho.models.demo.talk import Talk, talk_of
from lousho.models.demo.views import ToolView

MOST_CALLS = 8
"""Calls made for one message of the user."""
_MOST_USER_MESSAGES = 8
_MOST_MEMORIES = 12


@dataclass(frozen=True, slots=True)
class Call:
    """Call these tasks' tools, in one turn."""

    tasks: Sequence[Task]


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the user for what a task still needs."""

    task: Task
    fields: Sequence[Field] = ()
    complaints: Sequence[tuple[Field, str]] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """Say what came of it."""

    limit_reached: bool = False


Decision: TypeAlias = "Call | Ask | Answer"


@dataclass(slots=True)
class Conversation:
    """The state of a conversation with an agent's tools."""

    tools: Sequence[ToolView]
    now: datetime
    ask_tool: str | None = None
    """The name of the tool that asks the user, when the agent has it."""
    tasks: list[Task] = field(default_factory=lambda: [])
    previous: list[Task] = field(default_factory=lambda: [])
    memory: list[Outcome] = field(default_factory=lambda: [])
    awaiting: Ask | None = None
    question_id: str = ""
    declined: bool = False
    message: str = ""
    talk: Talk | None = None
    evidence: Evidence | None = None
    calls_made: int = 0

    def replay(self, messages: Sequence[Message]) -> None:
        """Go through a transcript; only the last few requests can matter."""
        starts = [index for index, message in enumerate(messages) if message.role == "user"]
        first = starts[-_MOST_USER_MESSAGES] if len(starts) > _MOST_USER_MESSAGES else 0
        for message in messages[first:]:
            if message.role == "user":
                self._on_user(text_of(message))
            elif message.role == "assistant":
                self._on_assistant(message)
            elif message.role == "tool":
                self._on_tool(message)

    def decide(self) -> Decision:
        """Return what to do next: call what is ready, else ask, else answer."""
        if self.calls_made >= MOST_CALLS and any(task.status == "open" for task in self.tasks):
            return Answer(limit_reached=True)
        ready: list[Task] = []
        for index, task in enumerate(self.tasks):
            if task.status != "open":
                continue
            earlier = self.tasks[:index]
            if not self._may_start(task, earlier, ready):
                break
            if self._is_cut_off(task, earlier):
                task.status = "skipped"
                continue
            complete(task, earlier, self.memory)
            if not task.arguments.missing:
                check(task.arguments)
            if task.candidates or task.arguments.missing or task.arguments.complaints:
                if ready:
                    break
                continue
            if any(task.key() in other.tried for other in earlier if other.failed_with(task.tool)):
                task.status, task.reported = "failed", True
                continue
            if any(other.tool is task.tool and other.key() == task.key() for other in ready):
                break  # the same call once more waits until the first one is known to work
            ready.append(task)
        if ready:
            return Call(ready[: MOST_CALLS - self.calls_made])
        return self._question() or Answer()

    def _may_start(self, task: Task, earlier: Sequence[Task], ready: Sequence[Task]) -> bool:
        """Whether a task may be called along with `ready`: what comes after or changes something waits its turn."""
        waiting = [other for other in earlier if other.group != task.group and other.status == "open"]
        if not waiting:
            return True
        if task.after or (task.refers_back and (task.arguments.missing or not task.only_reads)):
            return False
        return all(other in ready or other.arguments.missing for other in waiting) and all(
            other.only_reads for other in (*waiting, task)
        )

    def _is_cut_off(self, task: Task, earlier: Sequence[Task]) -> bool:
        """Whether a task needed one before it that did not work."""
        if not (task.after or (task.refers_back and task.arguments.missing)):
            return False
        before = [other for other in earlier if other.group < task.group]
        last_group = max((other.group for other in before), default=-1)
        return any(other.status in {"failed", "skipped", "dropped"} for other in before if other.group == last_group)

    def _question(self) -> Ask | None:
        for task in self.tasks:
            if task.status == "open":
                complaints = [
                    (leaf, task.arguments.complaints[leaf.path])
                    for leaf in task.tool.leaves
                    if leaf.path in task.arguments.complaints
                ]
                asked = task.arguments.missing or [leaf for leaf, _ in complaints]
                wrong = [leaf for leaf, _ in complaints if all(leaf.path != other.path for other in asked)]
                return Ask(task, [*asked, *wrong], complaints)
        return None

    def _on_user(self, message: str) -> None:
        self.calls_made = 0
        self.message = message
        self.talk = None
        waiting, self.awaiting = self.awaiting, None
        if waiting is not None and self._is_reply(message, waiting):
            self._take_reply(message, waiting)
            return
        if self.tasks:
            self.previous = self.tasks
        self.tasks, self.evidence = tasks_for(message, self.tools, self.now)
        if self.tasks:
            return
        self.talk = talk_of(message)
        if self.talk == "again":
            self.tasks = repeated(self.previous)
        elif self.talk is None:
            self.tasks = follow_ups(message, self.previous, self.now)

    def _is_reply(self, message: str, waiting: Ask) -> bool:
        """Whether a message answers the open question rather than asking for something else."""
        talk = talk_of(message)
        if talk in {"cancel", "yes-no"}:
            return True
        if talk in {"help", "greeting", "thanks", "goodbye"}:
            return False
        tasks, evidence = tasks_for(message, self.tools, self.now)
        if not tasks or len(message) > LONGEST_READ:
            return True
        other = tasks[0]
        leading = evidence.leading(other.lo, other.hi)
        asks = leading is not None and evidence.of_unit(leading, other.tool) >= 1.4
        if other.tool is waiting.task.tool:
            return not (asks and not other.arguments.missing and not other.candidates)
        best = evidence.rank(other.lo, other.hi)[0]
        if any(best.tool is match.tool for match in waiting.task.candidates):
            return True
        return not (best.strong and (asks or other.reading.source.rstrip().endswith("?")))

    def _take_reply(self, message: str, waiting: Ask) -> None:
        task = waiting.task
        if talk_of(message) == "cancel":
            self._drop(task)
            return
        reading = read(message, now=self.now, known=known_words([task.tool]))
        if task.candidates:
            self._choose(task, message)
            return
        before = dict(task.arguments.complaints)
        for leaf in waiting.fields:
            task.arguments.complaints.pop(leaf.path, None)
        got = answer_into(task.arguments, waiting.fields, reading, self.now)
        if not got:
            task.arguments.complaints.update(before)
        task.asked_twice = not got

    def _choose(self, task: Task, message: str) -> None:
        """Take the user's choice between several tools: by number, by place or by their words."""
        tools = [match.tool for match in task.candidates]
        reading = read(message, now=self.now)
        number = next((unit.value for unit in reading.units if unit.kind == "number"), None)
        words = {unit.low for unit in reading.units}
        places = ("first", "second", "third", "fourth")
        index = (
            number - 1 if isinstance(number, int) else next((i for i, word in enumerate(places) if word in words), -1)
        )
        if not 0 <= index < len(tools):
            evidence = Evidence(reading, tools)
            scores = [sum(evidence.of_unit(i, tool) for i in range(len(reading.units))) for tool in tools]
            best = max(scores)
            index = scores.index(best) if best > 0 and scores.count(best) == 1 else -1
        if index < 0 or index >= len(tools):
            task.asked_twice = True
            return
        task.tool = tools[index]
        task.arguments = arguments_for(task.tool, task.reading, task.lo, task.hi, self.now)[0]
        task.candidates = []

    def _drop(self, task: Task) -> None:
        for other in self.tasks[self.tasks.index(task) :]:
            if other.status == "open":
                other.status = "dropped"

    def _on_assistant(self, message: Message) -> None:
        decision = self.decide()
        if not message.tool_calls:
            self.awaiting = decision if isinstance(decision, Ask) else None
            for task in self.tasks:
                task.reported = task.reported or task.status not in {"open", "called"}
            return
        for call in message.tool_calls:
            self.calls_made += 1
            if call.name == self.ask_tool:
                self.awaiting = decision if isinstance(decision, Ask) else None
                self.question_id = call.id
                continue
            arguments = arguments_of(call.arguments)
            waiting = [task for task in self.tasks if task.status == "open" and task.tool.name == call.name]
            exact = [task for task in waiting if task.arguments.call() == arguments]
            for task in (exact or waiting)[:1]:
                task.status, task.call_id = "called", call.id
                task.tried.add(task.key())
                task.outcome = Outcome(call.name, arguments)

    def _on_tool(self, message: Message) -> None:
        if message.tool_call_id == self.question_id and self.question_id:
            self._on_question_result(message)
            return
        task = next(
            (task for task in self.tasks if task.call_id == message.tool_call_id and task.status == "called"), None
        )
        called = task.outcome if task is not None else None
        outcome = outcome_of(
            message.name or (called.tool if called else ""), called.arguments if called else {}, message
        )
        if not outcome.failed:
            self.memory = [*self.memory[-_MOST_MEMORIES:], outcome]
        if task is None:
            return
        outcome.tool = task.tool.name
        task.outcome = outcome
        task.status = "failed" if outcome.failed else "done"
        if outcome.kind == "validation" and task.repairs < 2:
            self._mend(task, outcome)

    def _mend(self, task: Task, outcome: Outcome) -> None:
        """Open a refused call again: with better arguments, or to ask the user for them."""
        task.repairs += 1
        fixed = task.arguments.copy()
        solved = repair(fixed, outcome.issues, task.words, self.now)
        if solved or fixed.missing or fixed.complaints:
            task.arguments = fixed
            task.status = "open"
            if solved and task.key() in task.tried:
                task.status = "failed"

    def _on_question_result(self, message: Message) -> None:
        waiting, self.awaiting, self.question_id = self.awaiting, None, ""
        if waiting is None:
            return
        said = as_text_answer(outcome_of("", {}, message))
        if said is None:
            self.declined = True
            self._drop(waiting.task)
            return
        self._take_reply(said, waiting)
