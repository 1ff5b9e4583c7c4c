"""What waits for a person, as a question on the screen, and what was typed, as a decision. Text in, text out.

Source: CLI page, "lousho chat"; approvals page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from lousho.core.console_text import plain_text, shorten_block
from lousho.core.events import ApprovalRequestedEvent
from lousho.core.json_values import dump_json
from lousho_cli.chat.shown import one_row, size_text
from lousho_cli.console import whole_number

MOST_SHOWN = 6_000
"""Characters of arguments that are shown without being asked for; more would push the question off the screen."""

PREVIEW_LINES = 60

SHOW_ALL = ("s", "show", "show all")


@dataclass(frozen=True, slots=True)
class Decision:
    """Yes, or no with what the model is told about it."""

    approved: bool
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question the agent asks."""

    text: str
    options: tuple[str, ...]
    free_text: bool

    @classmethod
    def of(cls, request: ApprovalRequestedEvent) -> Question:
        """Return the question of a pause of the kind `question`."""
        record: Mapping[str, Any] = request.question or request.args
        options = record.get("options")
        return cls(
            text=str(record.get("text") or record.get("question") or "The agent asks for an answer."),
            options=tuple(map(str, cast("list[object]", options))) if isinstance(options, list) else (),
            free_text=record.get("allowFreeText") is not False,
        )

    def lines(self) -> str:
        """Return the question and its numbered options."""
        rows = [plain_text(self.text)]
        rows += [f"  {number}. {one_row(option)}" for number, option in enumerate(self.options, start=1)]
        return "\n".join(rows)

    def prompt(self) -> str:
        """Return what stands before the answer."""
        if not self.options:
            return "Answer: "
        numbers = "1" if len(self.options) == 1 else f"1-{len(self.options)}"
        return f"Answer ({numbers}, or your own words): " if self.free_text else f"Answer ({numbers}): "

    def answer(self, typed: str) -> str | None:
        """Return the answer to send for what was typed, or None when it cannot be one."""
        text = typed.strip()
        number = whole_number(text)
        if number is not None and 1 <= number <= len(self.options):
            return self.options[number - 1]
        for option in self.options:
            if option.casefold() == text.casefold():
                return option
        return text if text and (self.free_text or not self.options) else None


def approval_question(request: ApprovalRequestedEvent, *, everything: bool = False) -> tuple[str, bool]:
    """Return `Approve <tool>(args)? [y/N] ` and whether it shows all of the arguments."""
    args = dump_json(request.args)
    whole = everything or len(args) <= MOST_SHOWN
    if not whole:
        start, end = args[: MOST_SHOWN * 2 // 3], args[-MOST_SHOWN // 3 :]
        args = f"{start} ... {size_text(len(args) - len(start) - len(end))} more, s shows all ... {end}"
    return f"Approve {one_row(request.tool_name)}({one_row(args)})? [y/N] ", whole


def text_previews(request: ApprovalRequestedEvent, *, everything: bool = False) -> tuple[str, bool]:
    """Return the arguments that have several lines as blocks, because escaped line breaks are hard to judge.

    The second value says whether they are shown whole.
    """
    blocks: list[str] = []
    whole = True
    for name, value in request.args.items():
        if not isinstance(value, str) or "\n" not in value.strip():
            continue
        text = plain_text(value).rstrip("\n")
        shown = text if everything else shorten_block(text, PREVIEW_LINES, MOST_SHOWN)
        whole = whole and shown == text
        blocks.append("\n".join([f"  {one_row(name)}:", *(f"    | {line}" for line in shown.split("\n"))]))
    return "\n".join(blocks), whole


def decision(typed: str) -> Decision:
    """Return the decision for what was typed: only `y` and `yes` approve.

    `n <reason>` passes the reason on, and so does any other text: the model learns what to do instead.
    """
    text = typed.strip()
    if text.casefold() in ("y", "yes"):
        return Decision(approved=True)
    first, _, rest = text.partition(" ")
    if first.casefold().rstrip(",:;.") in ("n", "no"):
        return Decision(approved=False, note=rest.strip() or None)
    return Decision(approved=False, note=text or None)


def sign_in_text(request: ApprovalRequestedEvent) -> str:
    """Return where to sign in."""
    record: Mapping[str, Any] = request.sign_in or {}
    name = record.get("displayName") or record.get("provider") or "the service"
    return f"Sign in to {one_row(str(name))}: {one_row(str(record.get('url', '')))}"
