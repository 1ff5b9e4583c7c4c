"""The commands of the chat: one function each, and the table that `/help` and the completion read."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from lousho.core.console_text import one_line
from lousho.core.messages import Message, text_of
from lousho.core.suggest import nearest
from lousho_cli.chat.shown import ShownCall, call_line, error_text, full_call, outcome_lines
from lousho_cli.console import whole_number

if TYPE_CHECKING:
    from lousho_cli.chat.repl import ChatRepl

_COMMAND = re.compile(r"/([A-Za-z?][A-Za-z-]*)(?:[ \t]+([^\n]*))?[ \t]*\n?")


@dataclass(frozen=True, slots=True)
class Command:
    """One command: `run` gets the chat and what was typed after the name; False means it failed."""

    usage: str
    summary: str
    run: Callable[[ChatRepl, str], Awaitable[bool]]


def parse(text: str) -> tuple[str, str] | None:
    """Return name and argument when `text` is a command: one line that starts with `/` and a word.

    A path such as `/usr/bin` is none, and `//word` sends `/word` to the agent.
    """
    found = _COMMAND.fullmatch(text)
    return None if found is None else (found[1].lower(), (found[2] or "").strip())


async def run_command(chat: ChatRepl, name: str, argument: str) -> bool:
    """Run a command; False when there is none of that name or it failed."""
    command = COMMANDS.get(name)
    if command is None:
        close = nearest(name, COMMANDS) or next((known for known in COMMANDS if _shortens(name, known)), None)
        hint = f"Did you mean /{close}?" if close else "/help lists all of them."
        chat.screen.line(f"error: there is no command /{one_line(name, 40)}. {hint}", "red")
        return False
    return await command.run(chat, argument)


def _shortens(typed: str, name: str) -> bool:
    """Whether `typed` is `name` with letters left out: `mdl` for `model`."""
    letters = iter(name)
    return len(typed) > 1 and typed[0] == name[0] and all(letter in letters for letter in typed)


async def _new(chat: ChatRepl, argument: str) -> bool:
    chat.open_session(None)
    chat.screen.line(f"session {chat.conversation.session.id}", "dim")
    return True


async def _model(chat: ChatRepl, argument: str) -> bool:
    if not argument:
        chat.screen.line(f"{chat.model_name() or 'an unnamed model'}; change it with /model provider/model", "dim")
        return True
    return await chat.switch_model(argument)


async def _clear(chat: ChatRepl, argument: str) -> bool:
    cleared: Any = getattr(chat.conversation.session, "clear", None)
    if cleared is not None:
        await _settled(cleared())
    chat.conversation.calls.clear()
    chat.screen.line(f"cleared session {chat.conversation.session.id}", "dim")
    return True


async def _history(chat: ChatRepl, argument: str) -> bool:
    messages: Any = getattr(chat.conversation.session, "messages", ())
    transcript: Iterable[Message] = await _settled(messages() if callable(messages) else messages)
    text = "\n".join(_transcript(transcript))
    if text:
        chat.screen.data(text)
    else:
        chat.screen.line("nothing was said yet", "dim")
    return True


async def _last(chat: ChatRepl, argument: str) -> bool:
    calls = chat.conversation.calls
    number = whole_number(argument) if argument else 1
    if number is None or number < 1:
        chat.screen.line("error: /last takes a number: 1 is the last call, 2 the one before", "red")
        return False
    if number > len(calls):
        chat.screen.line("there is no such tool call" if calls else "no tool was called yet", "dim")
        return True
    chat.screen.data(full_call(calls[-number]))
    return True


async def _tools(chat: ChatRepl, argument: str) -> bool:
    tools: Any = getattr(chat.conversation.agent, "tools", {})
    rows = [
        f"{name}: {one_line(getattr(tool, 'description', '') or '', 100)}" for name, tool in sorted(dict(tools).items())
    ]
    chat.screen.data("\n".join(rows) if rows else "this agent has no tools")
    return True


async def _help(chat: ChatRepl, argument: str) -> bool:
    rows = [(command.usage, command.summary) for command in COMMANDS.values()]
    if chat.lines.interactive:
        rows += KEYS
    column = max(len(left) for left, _ in rows) + 2
    if chat.screen.width < column + 30:
        chat.screen.data("\n".join(f"{left}\n{_wrapped(right, chat.screen.width, 4)}" for left, right in rows))
    else:
        chat.screen.data(
            "\n".join(left.ljust(column) + _wrapped(right, chat.screen.width, column)[column:] for left, right in rows)
        )
    return True


def _wrapped(text: str, width: int, indent: int) -> str:
    import textwrap

    blank = " " * indent
    return textwrap.fill(text, max(width - 1, indent + 20), initial_indent=blank, subsequent_indent=blank)


async def _quit(chat: ChatRepl, argument: str) -> bool:
    chat.leave()
    return True


COMMANDS: dict[str, Command] = {
    "new": Command("/new", "start a new session; the old one is kept", _new),
    "model": Command("/model provider/model", "go on with another model", _model),
    "clear": Command("/clear", "empty this session", _clear),
    "history": Command("/history", "print what was said in this session", _history),
    "last": Command("/last [n]", "show the last tool call whole, or the one n calls back", _last),
    "tools": Command("/tools", "list the agent's tools", _tools),
    "help": Command("/help", "this list", _help),
    "quit": Command("/quit", "leave", _quit),
}

KEYS = [
    ("Alt+Enter", "new line; so does a backslash at the end of a line"),
    ("Up, Ctrl-R", "what was typed before; a line that starts with a space is not kept"),
    ("Ctrl-C", "stop the turn; at an empty prompt, twice: leave"),
    ("Ctrl-D", "leave"),
    ("y, n reason", "answers to an approval; the reason is told to the model"),
    ("//word", "send /word to the agent"),
]


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _transcript(messages: Iterable[Message]) -> Iterable[str]:
    """Return a transcript as the screen showed it."""
    for message in messages:
        text = text_of(message)
        if message.role == "user":
            yield f"> {text}{_attachments(message)}"
        elif message.role == "assistant":
            if text:
                yield f"{text} (interrupted)" if message.interrupted else text
            for call in message.tool_calls:
                yield call_line(ShownCall(call.name, _parsed(call.arguments)))
        elif message.role == "tool":
            shown = ShownCall(message.name or "", {}, result=text, error=_error_of(text) if message.is_error else None)
            yield outcome_lines(shown)


def _attachments(message: Message) -> str:
    if isinstance(message.content, str):
        return ""
    return "".join(f" [{part.type}]" for part in message.content if part.type != "text")


def _error_of(text: str) -> str:
    """Return the error of an error result, which is JSON for the model, as the call's line showed it."""
    parsed = _parsed(text)
    record = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    message = record.get("message")
    return error_text(str(record.get("error") or "Error"), message) if isinstance(message, str) else text


def _parsed(arguments: str) -> Any:
    import json

    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
