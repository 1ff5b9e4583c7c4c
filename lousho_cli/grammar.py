"""The one grammar of all command lines, checked before Typer sees an argument.

Typer lets a flag take the next flag as its value and words its errors in its own way, slowly. Here `--flag value` and
`--flag=value` are equal, the last of a repeated flag wins (a list flag collects), `--` ends the flags, a value that
starts with `-` needs the equals sign, and everything else is a usage error. What comes out is one canonical form
(flags with `=`, then `--`, then arguments), so Typer can only read it in one way. Source: CLI page, "Usage".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lousho_cli.commands import HELP_FLAGS
from lousho_cli.errors import UsageError
from lousho_cli.help import argument_label, takes_optional_value

if TYPE_CHECKING:
    from typer.core import TyperArgument, TyperCommand, TyperOption

SHOWN = 60
"""How many characters of what was typed an error repeats."""

FREE_TEXT = frozenset({"prompt"})
"""Arguments that may be any text: their verb says what an empty one means."""


def wants_help(argv: Sequence[str]) -> bool:
    """Whether `-h` or `--help` stands before a `--`; help wins over every mistake on the same line."""
    flags = argv[: argv.index("--")] if "--" in argv else argv
    return any(word in HELP_FLAGS for word in flags)


def canonical(command: TyperCommand, argv: Sequence[str]) -> list[str]:
    """Return `argv` in canonical form, or raise `UsageError` for the first thing that is wrong with it."""
    arguments = _arguments(command)
    reading = _Reading(_options(command), prompted=any(argument.name in FREE_TEXT for argument in arguments))
    words = iter(argv)
    for word in words:
        if word == "--":
            reading.arguments.extend(words)
        elif word.startswith("-") and word != "-":
            reading.take_flag(word, words)
        else:
            reading.arguments.append(word)
    _check_arguments(arguments, reading.arguments)
    return [*reading.flags, "--", *reading.arguments]


def taken_apart(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the flags of a canonical command line by name, the last of a repeated one, and its arguments."""
    end = words.index("--")
    flags = (word.partition("=") for word in words[:end])
    return {name: value for name, _, value in flags}, list(words[end + 1 :])


class _Reading:
    """What was read so far."""

    def __init__(self, options: dict[str, TyperOption], *, prompted: bool) -> None:
        self.options = options
        self.prompted = prompted
        self.flags: list[str] = []
        self.arguments: list[str] = []

    def take_flag(self, word: str, rest: Iterator[str]) -> None:
        name, equals, value = word.partition("=")
        option = self.options.get(name)
        if option is None:
            raise UsageError(_unknown_flag(name, self.options, prompted=self.prompted))
        if option.is_flag:
            if equals:
                raise UsageError(f"{name} takes no value")
            self.flags.append(name)
            return
        if takes_optional_value(option) and not equals:
            self.flags.append(f"{name}=")
            return
        if not equals:
            value = next(rest, "")
            if value.startswith("-") and value != "-":
                is_flag = value == "--" or value.partition("=")[0] in (*self.options, *HELP_FLAGS)
                raise UsageError(_missing_value(name, option, "" if is_flag else value))
        if not value:
            raise UsageError(_missing_value(name, option))
        self.flags.append(f"{name}={value}")


def _options(command: TyperCommand) -> dict[str, TyperOption]:
    from typer.core import TyperOption

    return {
        name: param
        for param in command.params
        if isinstance(param, TyperOption)
        for name in (*param.opts, *param.secondary_opts)
    }


def _arguments(command: TyperCommand) -> list[TyperArgument]:
    from typer.core import TyperArgument

    return [param for param in command.params if isinstance(param, TyperArgument)]


def _check_arguments(expected: Sequence[TyperArgument], given: Sequence[str]) -> None:
    if all(argument.nargs != -1 for argument in expected) and len(given) > len(expected):
        raise UsageError(f"unexpected argument {shown(given[len(expected)])}")
    for position, argument in enumerate(expected):
        if position < len(given) and not given[position] and argument.name not in FREE_TEXT:
            raise UsageError(f"{argument_label(argument)} is empty")
        if argument.required and position >= len(given):
            raise UsageError(f"missing {argument_label(argument)}")


def _missing_value(name: str, option: TyperOption, instead: str = "") -> str:
    message = f"{name} needs a value: {name} {option.metavar or 'VALUE'}"
    return (
        f"{message} (a value that starts with '-' is written {name}={shown(instead, quote=False)})"
        if instead
        else message
    )


def _unknown_flag(name: str, options: dict[str, TyperOption], *, prompted: bool) -> str:
    from lousho.core.suggest import nearest

    known = [*options, "--help"]
    close = nearest(name[:SHOWN], known) if name.startswith("--") else None
    if close is None and f"-{name}" in known:  # `-model` for `--model`
        close = f"-{name}"
    otherwise = ". Put -- before a prompt that begins with a dash" if prompted else ""
    hint = f". Did you mean {close}?" if close else otherwise
    return f"unknown flag {shown(name, quote=False)}{hint}"


def shown(word: str, *, quote: bool = True) -> str:
    """Return `word` as an error may repeat it: on one line, without control characters, not too long."""
    from lousho.core.console_text import one_line

    text = one_line(word, SHOWN)
    return f"'{text}'" if quote else text
