"""What lies in an agent directory: which files mean something, which are refused, which are only mentioned.

Nothing that carries a rule is passed over in silence. A file that would guard or steer the agent, but that this version
does not act on, stops the load; what would only add to it is skipped and named.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

from lousho.core.errors import ConfigurationError
from lousho.core.suggest import nearest
from lousho.loader.import_failure import shown_path
from lousho.loader.manifest import Skipped
from lousho.loader.text_files import FileProblem, os_reason, read_text

CODE: Final = "LOUSHO_AGENT_DIR_INVALID"
CONFIG_SUFFIXES: Final = (".py", ".json", ".yaml", ".yml")
OTHER_CONFIGS: Final = (".ts", ".mts", ".cts", ".js", ".mjs", ".cjs", ".toml", ".jsonc", ".json5")
CODE_SUFFIXES: Final = (".py", ".ts", ".mts", ".cts", ".js", ".mjs", ".cjs")
INSTRUCTIONS: Final = "instructions.md"
RECEIPT: Final = "lousho-registry.json"
MAX_ENTRIES: Final = 10_000
MAX_NESTED_LOOKS: Final = 200

ONLY_ADDS: Final = {
    "skills": "this version does not load skills",
    "subagents": "this version does not run sub-agents",
    "schedules": "this version does not run schedules",
    "channels": "this version does not serve channels",
    "memory": "this version has no memory slots",
}
GUARDS: Final = {"hooks": "hooks", "approve": "approvers"}
_USUAL: Final = (INSTRUCTIONS, "instructions", "tools", *ONLY_ADDS, "hooks.py", "approve.py", "auth.py")


def refuse(message: str, cause: BaseException | None = None) -> NoReturn:
    """Raise `LOUSHO_AGENT_DIR_INVALID`."""
    raise ConfigurationError(message, code=CODE, cause=cause) from cause


@dataclass(frozen=True, slots=True)
class Layout:
    """The meaningful entries of one agent directory."""

    folder: Path
    config: Path | None = None
    instructions: Path | None = None
    families: tuple[Path, ...] = ()
    """The files of `instructions/`, sorted."""
    tools: tuple[Path, ...] = ()
    """The Python files of `tools/` that may define tools, sorted."""
    skipped: tuple[Skipped, ...] = field(default=())


def look_at(folder: Path, *, without: Collection[str] = ()) -> Layout:
    """Return what lies in `folder`; `without` names guards (`hooks`, `approve`) that the caller takes away.

    Raises `LOUSHO_AGENT_DIR_INVALID` for a missing or unreadable directory, for two config files, for what cannot be
    acted on, and when there is nothing to make an agent of.
    """
    entries = _entries(folder)
    names = {entry.name for entry in entries}
    config = _config(folder, entries)
    _refuse_guards(folder, entries, without)
    tools, skipped_tools = _tool_files(folder, names)
    layout = Layout(
        folder,
        config=config,
        instructions=folder / INSTRUCTIONS if INSTRUCTIONS in names else None,
        families=_families(folder, names),
        tools=tools,
        skipped=(*skipped_tools, *_skipped(entries, config)),
    )
    if config is None and layout.instructions is None and not layout.families and not tools:
        refuse(_nothing_here(folder, entries))
    return layout


def is_agent_directory(folder: Path) -> bool:
    """Whether a directory holds a config file or instructions."""
    wanted = (INSTRUCTIONS, *(f"agent{suffix}" for suffix in CONFIG_SUFFIXES))
    return any(_is_file(folder / name) for name in wanted)


def is_dir(path: Path) -> bool:
    """Whether `path` is a directory; one that may not be looked at counts as none."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def read_instructions(file: Path) -> str:
    """Return the text of a Markdown file without the blank lines around it. Raises `LOUSHO_AGENT_DIR_INVALID`."""
    try:
        text = read_text(file).strip()
    except FileProblem as problem:
        refuse(problem.located(shown_path(file)), problem.__cause__)
    if not text:
        refuse(f"'{shown_path(file)}' is empty; write the agent's instructions in it or remove it")
    return text


def _entries(folder: Path) -> list[Path]:
    shown = shown_path(folder)
    try:
        found = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except FileNotFoundError as error:
        refuse(f"there is no directory '{shown}'", error)
    except NotADirectoryError as error:
        refuse(f"'{shown}' is a file, not an agent directory", error)
    except OSError as error:
        refuse(f"the directory '{shown}' cannot be read: {os_reason(error)}", error)
    except ValueError as error:  # a path with a NUL character
        refuse(f"the directory {shown!r} cannot be read: {error}", error)
    if len(found) > MAX_ENTRIES:
        refuse(f"'{shown}' holds more than {MAX_ENTRIES:,} entries, so it is not an agent directory")
    return found


def _config(folder: Path, entries: list[Path]) -> Path | None:
    candidates = [entry for entry in entries if entry.stem == "agent" and entry.suffix in CONFIG_SUFFIXES]
    foreign = [entry for entry in entries if entry.stem == "agent" and entry.suffix in OTHER_CONFIGS]
    if len(candidates) + len(foreign) > 1:
        listed = ", ".join(entry.name for entry in (*candidates, *foreign))
        refuse(f"'{shown_path(folder)}' has more than one config file: {listed}. Keep one of them")
    if foreign:
        refuse(
            f"'{shown_path(foreign[0])}' cannot be read: a config file is agent.py, agent.json, agent.yaml or agent.yml"
        )
    return candidates[0] if candidates else None


def _refuse_guards(folder: Path, entries: list[Path], without: Collection[str]) -> None:
    for entry in entries:
        if entry.stem in GUARDS and entry.suffix in CODE_SUFFIXES and entry.stem not in without:
            refuse(
                f"'{shown_path(entry)}': this version does not run {GUARDS[entry.stem]}, so the file would guard"
                f" nothing. Remove it, or load the directory in code with {entry.stem}=None to do without"
            )
    receipt = folder / RECEIPT
    if receipt in entries:
        refuse(
            f"'{shown_path(receipt)}': this version does not confine tools to the permissions they were installed with."
            " Remove the file and the items it lists"
        )


def _families(folder: Path, names: Collection[str]) -> tuple[Path, ...]:
    if "instructions" not in names or not is_dir(folder / "instructions"):
        return ()
    return tuple(entry for entry in _entries(folder / "instructions") if entry.suffix == ".md" and entry.stem)


def _tool_files(folder: Path, names: Collection[str]) -> tuple[tuple[Path, ...], tuple[Skipped, ...]]:
    if "tools" not in names:
        return (), ()
    if not is_dir(folder / "tools"):
        refuse(f"'{shown_path(folder / 'tools')}' must be a directory of Python files")
    files: list[Path] = []
    skipped: list[Skipped] = []
    for entry in _entries(folder / "tools"):
        if entry.suffix == ".py" and not entry.name.startswith(("_", ".")) and not is_dir(entry):
            files.append(entry)
        elif entry.suffix in CODE_SUFFIXES and entry.suffix != ".py":
            skipped.append(Skipped(f"tools/{entry.name}", "tools are Python files (.py)"))
    return tuple(files), tuple(skipped)


def _skipped(entries: list[Path], config: Path | None) -> list[Skipped]:
    """Return a note for each entry that is known and not used, or that looks like a misspelt one."""
    notes: list[Skipped] = []
    for entry in entries:
        name = entry.name
        if name in ONLY_ADDS:
            if is_dir(entry) and _holds_something(entry):
                notes.append(Skipped(f"{name}/", ONLY_ADDS[name]))
        elif entry.stem == "auth" and entry.suffix in CODE_SUFFIXES:
            notes.append(Skipped(name, "this version serves no routes that it could guard"))
        elif entry != config and not name.startswith((".", "_")) and (meant := _misspelt(name)) is not None:
            notes.append(Skipped(name, f"it is not part of an agent directory (did you mean '{meant}'?)", meant))
    return notes


def _misspelt(name: str) -> str | None:
    if name in _USUAL or len(name) < 4:
        return None
    stem, dot, suffix = name.rpartition(".")
    same_kind = [usual for usual in _USUAL if usual.rpartition(".")[2] == suffix] if dot else []
    candidates = same_kind if dot else [usual for usual in _USUAL if "." not in usual]
    found = nearest(stem or name, [usual.rpartition(".")[0] or usual for usual in candidates])
    if found is None or abs(len(found) - len(stem or name)) > 1:
        return None
    return f"{found}.{suffix}" if dot else f"{found}/"


def _holds_something(folder: Path) -> bool:
    try:
        return any(not entry.name.startswith((".", "_")) for entry in folder.iterdir())
    except OSError:
        return True


def _nothing_here(folder: Path, entries: list[Path]) -> str:
    shown = shown_path(folder)
    text = (
        f"'{shown}' is not an agent directory: it has no config file (agent.py, agent.json, agent.yaml or agent.yml),"
        " no instructions.md and no tools/*.py"
    )
    folders = [entry for entry in entries[:MAX_NESTED_LOOKS] if not entry.name.startswith((".", "_"))]
    nested = [entry for entry in folders if is_dir(entry) and is_agent_directory(entry)]
    if nested:
        listed = ", ".join(f"'{shown_path(entry)}'" for entry in nested[:3])
        return f"{text}. Did you mean {listed}{' or another one in it' if len(nested) > 3 else ''}?"
    if is_agent_directory(folder.parent):
        return f"{text}. It lies in an agent directory: did you mean '{shown_path(folder.parent)}'?"
    return f"{text}. To start a project: lousho init my-agent"
