"""One turn, from the message to the last event: show it, ask what it waits for, continue it, stop it when told to."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress

from lousho.core.errors import SDKError
from lousho.core.events import ApprovalRequestedEvent
from lousho_cli.chat.decisions import (
    SHOW_ALL,
    Decision,
    Question,
    approval_question,
    decision,
    sign_in_text,
    text_previews,
)
from lousho_cli.chat.face import ChatAgent, ChatRun, ChatSession
from lousho_cli.chat.lines import EndOfInput, Interrupted, Lines
from lousho_cli.chat.renderer import KEPT_CALLS, Outcome, Renderer
from lousho_cli.chat.screen import Screen
from lousho_cli.chat.shown import ShownCall, failure_lines
from lousho_cli.errors import debugging

STOPPED = "The user stopped the turn."


class Conversation:
    """Runs turns of one session of one agent; both can be exchanged between two turns."""

    def __init__(self, agent: ChatAgent, session: ChatSession, lines: Lines, screen: Screen) -> None:
        self.agent = agent
        self.session = session
        self.calls: deque[ShownCall] = deque(maxlen=KEPT_CALLS)
        """The last tool calls, the newest at the end."""
        self.turns = 0
        self._lines = lines
        self._screen = screen
        self._run: ChatRun | None = None
        self._stopping = False

    async def take(self, text: str) -> bool:
        """Run one turn to its end, decisions included; False when it failed. The failure is on the screen."""
        self._stopping = False
        self.turns += 1
        try:
            run = self.session.stream(text)
        except Exception as error:  # noqa: BLE001 - whatever an agent raises ends the turn, not the chat
            self.complain(error)
            return False
        outcome = await self._follow(run)
        try:
            return await self._decide(outcome)
        except Interrupted:
            return True

    def stop(self) -> None:
        """Abort the running turn; it keeps what it has said."""
        self._stopping = True
        if self._run is not None:
            self._run.abort(STOPPED)

    def complain(self, error: BaseException) -> None:
        """Show a failure with its code and fix."""
        message, fix = failure_lines(error)
        self._screen.sentences(f"error: {message}", "red")
        if fix is not None:
            self._screen.sentences(fix)
        if debugging():
            self._screen.line("".join(traceback.format_exception(error)).rstrip(), "dim")

    async def _follow(self, run: ChatRun, decided: int = 0) -> Outcome:
        """Show the events of a run until it ends or pauses."""
        renderer = Renderer(self._screen, self.calls, decided=decided, gated=self._waits_for_a_person)
        outcome = renderer.outcome
        events = aiter(run)
        ended = False
        self._run = run
        if self._stopping:
            run.abort(STOPPED)
        try:
            while True:
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    break
                except Exception as error:  # noqa: BLE001 - the turn failed, with whatever a provider or tool raised
                    outcome.failure = error
                    break
                renderer.show(event)
            ended = True
            renderer.close()
            if outcome.failure is None:
                outcome.failure = await _failure_of(run)
        finally:
            self._run = None
            if not ended:
                run.abort(STOPPED)
        if outcome.failure is not None:
            self.complain(outcome.failure)
        return outcome

    def _waits_for_a_person(self, tool_name: str) -> bool:
        tools: Mapping[str, object] = getattr(self.agent, "tools", {})
        tool = tools.get(tool_name)
        return getattr(tool, "needs_approval", False) is True or getattr(tool, "pause_kind", None) is not None

    async def _decide(self, outcome: Outcome) -> bool:
        """Ask for every decision, one by one, and follow what comes of them; False when the turn failed."""
        queue = list(outcome.waiting)
        known = {request.approval_id for request in queue}
        decided = 0
        while queue and outcome.failure is None:
            request = queue.pop(0)
            try:
                run = await self._ask(request, queue)
            except (Interrupted, OSError):  # the turn is stopped, the reader of the output left
                raise
            except Exception as error:  # noqa: BLE001 - an agent that cannot take the answer fails the turn, not the chat
                self.complain(error)
                return False
            decided += 1
            outcome = await self._follow(run, decided)
            fresh = [request for request in outcome.waiting if request.approval_id not in known]
            if fresh or outcome.finish_reason != "awaiting-approval":
                decided = 0
            known.update(request.approval_id for request in fresh)
            queue += fresh
        return outcome.failure is None

    async def _ask(self, request: ApprovalRequestedEvent, others: Sequence[ApprovalRequestedEvent]) -> ChatRun:
        """Put the question of one pause and return the run that continues from its answer."""
        approvals = self.agent.approvals
        try:
            if request.kind == "question":
                answer = await self._ask_question(Question.of(request))
                if answer is not None:
                    return approvals.stream_answer(id=request.approval_id, answer=answer)
                choice = Decision(approved=False)
            elif request.kind == "sign-in":
                self._screen.line(sign_in_text(request))
                choice = decision(await self._answer("Signed in? [y/N] "))
            else:
                choice = await self._ask_approval(request)
        except EndOfInput:
            self._screen.line(f"no answer: {_subject(request)}", "dim")
            choice = Decision(approved=False)
        except Interrupted:
            await self._reject_and_stop([request, *others])
            raise
        return approvals.stream_resolve(id=request.approval_id, approved=choice.approved, note=choice.note)

    async def _ask_approval(self, request: ApprovalRequestedEvent) -> Decision:
        everything = False
        while True:
            blocks, blocks_whole = text_previews(request, everything=everything)
            question, args_whole = approval_question(request, everything=everything)
            if blocks:
                self._screen.line(blocks, "dim")
            typed = await self._answer(question)
            if (blocks_whole and args_whole) or typed.strip().casefold() not in SHOW_ALL:
                return decision(typed)
            everything = True

    async def _ask_question(self, question: Question) -> str | None:
        """Return the answer, or None when there is none; a person is asked again."""
        self._screen.line(question.lines())
        for _ in range(3 if self._lines.interactive else 1):
            typed = await self._answer(question.prompt())
            answer = question.answer(typed)
            if answer is not None:
                return answer
            if typed.strip() and not self._lines.interactive:
                return typed.strip()  # the model is told that it is none of the options
        return None

    async def _answer(self, question: str) -> str:
        try:
            typed = await self._lines.answer(question)
        except SDKError as error:  # more than a message may have: it answers nothing
            self.complain(error)
            return ""
        if not self._lines.echoes:
            self._screen.answered(typed)
        return typed

    async def _reject_and_stop(self, requests: Sequence[ApprovalRequestedEvent]) -> None:
        """Reject what waits and abort at once: nothing runs, also not what was approved a moment before.

        The pause is decided by that, so the session is free for the next message.
        """
        for request in requests:
            with suppress(Exception):
                run = self.agent.approvals.stream_resolve(id=request.approval_id, approved=False, note=STOPPED)
                run.abort(STOPPED)
                async for _ in run:
                    pass
        self._screen.line("aborted", "dim")


async def _failure_of(run: ChatRun) -> Exception | None:
    try:
        await run.result
    except Exception as error:  # noqa: BLE001 - the turn failed, with whatever a provider or tool raised
        return error
    return None


def _subject(request: ApprovalRequestedEvent) -> str:
    return "the question is declined" if request.kind == "question" else f"{request.tool_name} is rejected"
