"""What the program says about itself: usage lines, a verb's help page, the list of all verbs, the friendly start.

Everything is read off the verbs' Typer parameters, so a flag that exists is a flag that is shown. Examples come first:
most people who ask for help want a line to copy. The list of all verbs comes from a table that is held equal to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lousho_cli.overview import OVERVIEW, Row

if TYPE_CHECKING:
    from typer.core import TyperArgument, TyperCommand, TyperOption

    from lousho_cli.commands import Verb

TAGLINE = "Build, run and test AI agents."


def takes_optional_value(option: TyperOption) -> bool:
    """Whether the flag's value may be left out, and is then only taken after an equals sign."""
    return (option.metavar or "").startswith("[=")


def argument_label(argument: TyperArgument) -> str:
    """Return the argument as usage lines name it: `<dir>` when it must be given, `[dir]` when it may be."""
    name = argument.metavar or argument.name or ""
    more = "..." if argument.nargs == -1 else ""
    return f"<{name}{more}>" if argument.required else f"[{name}{more}]"


def usage_line(verb: Verb) -> str:
    """Return the verb's usage on one line, starting with `lousho`."""
    return " ".join(_usage_pieces(verb))


def verb_help(verb: Verb, width: int) -> str:
    """Return the help page of one verb, wrapped to `width` columns."""
    arguments, options = _params(verb.command)
    parts = [_prose(verb.command.help or "", width), _wrap_usage(_usage_pieces(verb), width, "usage: ")]
    if verb.examples:
        column = max(len(line) for line, _ in verb.examples) + 4
        parts.append(_table("examples:", verb.examples, width, column))
    if arguments:
        rows = [(argument_label(argument), argument.help or "") for argument in arguments]
        parts.append(_table("arguments:", rows, width, _column(rows)))
    rows = [(_flag_names(option), option.help or "") for option in options]
    rows.append(("--help, -h", "Show this page."))
    parts.append(_table("flags:", rows, width, _column(rows)))
    return "\n\n".join(parts)


def overview_row(verb: Verb) -> Row:
    """Return what the list of all verbs says of this one."""
    return Row(verb.name, tuple(_usage_pieces(verb)[2:]), (verb.command.help or "").partition("\n")[0])


def overview(width: int) -> str:
    """Return `lousho --help`: every verb with its flags and what it does."""
    parts = [f"lousho: {TAGLINE}", "usage: lousho <command> [flags]"]
    for row in OVERVIEW:
        usage = _wrap_usage((row.name, *row.usage), width, "  ")
        parts.append(f"{usage}\n{_fill(row.summary, width, '      ')}")
    parts.append(
        _table(
            "flags:",
            [
                ("--help, -h", "This list; after a command, that command's flags and examples."),
                ("--version", "Print the version."),
                ("--install-completion", "Complete commands and flags in this shell."),
                ("--show-completion", "Print the completion script instead of installing it."),
            ],
            width,
            26,
        )
    )
    return "\n\n".join(parts)


def friendly_start(version: str) -> str:
    """Return what `lousho` alone prints: what this is, and three things to do next."""
    return (
        f"lousho {version}: {TAGLINE}\n"
        "\n"
        "  lousho init my-agent      start a project; it runs without an API key\n"
        "  lousho chat ./my-agent    talk to an agent in the terminal\n"
        "  lousho doctor             check this machine, with a fix for every problem\n"
        "\n"
        "Every command and flag: lousho --help"
    )


def terminal_width() -> int:
    """Return the columns to wrap help to: the terminal's, or 80, and never a width nobody can read."""
    import shutil

    return min(max(shutil.get_terminal_size().columns, 40), 110)


def _params(command: TyperCommand) -> tuple[list[TyperArgument], list[TyperOption]]:
    from typer.core import TyperArgument, TyperOption

    arguments = [param for param in command.params if isinstance(param, TyperArgument)]
    options = [param for param in command.params if isinstance(param, TyperOption) and not param.hidden]
    return arguments, options


def _usage_pieces(verb: Verb) -> list[str]:
    arguments, options = _params(verb.command)
    pieces = ["lousho", verb.name, *map(argument_label, arguments)]
    for option in options:
        names = "|".join(option.opts)
        value = "" if option.is_flag else (option.metavar or "VALUE")
        text = f"{names}{value}" if takes_optional_value(option) else f"{names} {value}".rstrip()
        text = text if option.required else f"[{text}]"
        pieces.append(f"{text}..." if option.multiple else text)
    return pieces


def _flag_names(option: TyperOption) -> str:
    names = ", ".join(option.opts)
    if option.is_flag:
        return names
    return f"{names}{option.metavar}" if takes_optional_value(option) else f"{names} {option.metavar or 'VALUE'}"


def _wrap_usage(pieces: Sequence[str], width: int, start: str) -> str:
    """Wrap between pieces, never inside one, so that a flag and its value stay together."""
    lines = [start + pieces[0]]
    indent = " " * (len(start) + len(pieces[0]) + 1)
    for piece in pieces[1:]:
        if len(lines[-1]) + 1 + len(piece) > width and lines[-1].strip() != pieces[0]:
            lines.append(indent + piece)
        else:
            lines[-1] += " " + piece
    return "\n".join(lines)


def _column(rows: Sequence[tuple[str, str]]) -> int:
    return min(max(len(left) for left, _ in rows) + 4, 32)


def _table(title: str, rows: Iterable[tuple[str, str]], width: int, column: int) -> str:
    """Two columns; where the right one would get narrower than 24, it goes below the left one instead."""
    lines = [title]
    below = width - column < 24
    for left, right in rows:
        if below or len(left) + 3 > column:
            lines.append(f"  {left}")
            if right:
                lines.append(_fill(right, width, "      " if below else " " * column))
        else:
            filled = _fill(right, width, " " * column)
            lines.append(f"  {left}".ljust(column) + filled[column:] if right else f"  {left}")
    return "\n".join(lines)


def _prose(text: str, width: int) -> str:
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(_fill(" ".join(paragraph.split()), width) for paragraph in paragraphs)


def _fill(text: str, width: int, indent: str = "") -> str:
    import textwrap

    return textwrap.fill(
        text,
        max(width, len(indent) + 16),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
