"""The config file of an agent directory: its keys, and which options of `create_agent()` they become.

Files write camelCase; `agent.py` may write snake_case too. A key this version cannot honour is refused instead of being
dropped, unless its value says the same as leaving it out. Source: agent-directories page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

from lousho.core.errors import ConfigurationError
from lousho.core.suggest import did_you_mean
from lousho.loader.config_file import ConfigFile, read_document, shown_value
from lousho.loader.directory_layout import CODE, refuse
from lousho.loader.directory_tools import run_file
from lousho.loader.import_failure import shown_path
from lousho.loader.module_names import own_names
from lousho.loader.permission_rules import LONGEST_TTL_MS, compile_rules
from lousho.loader.python_code import CodeLoad

if TYPE_CHECKING:
    from lousho.runtime.deps import SpillOptions

SUPPORTED: Final = (
    "name",
    "description",
    "model",
    "provider",
    "instructions",
    "maxSteps",
    "toolConcurrency",
    "permissions",
    "permissionMode",
    "modelSettings",
    "approvalTtlMs",
    "toolTimeoutMs",
    "toolResults",
    "loopGuard",
    "repairArguments",
    "matchToolNames",
    "version",
)
UNSUPPORTED: Final = {
    "projectInstructions": "project instructions",
    "compaction": "compaction",
    "hooks": "hooks",
    "approve": "approvers",
    "limits": "budgets",
    "retry": "retry settings",
    "output": "output schemas",
    "store": "durable stores",
    "guardrails": "guardrails",
}
"""Keys whose feature this version lacks, and what to call it."""

_SAYS_NOTHING: Final[Mapping[str, tuple[Any, ...]]] = {
    "projectInstructions": (False,),
    "compaction": (False,),
    "hooks": ([],),
    "limits": ({},),
    "guardrails": ([], {}),
}
_FOLDERS: Final = ("tools", "skills", "subagents", "schedules", "channels", "memory")
_ALIASES: Final = {
    "prompt": "instructions",
    "system": "instructions",
    "systemPrompt": "instructions",
    "maxTurns": "maxSteps",
    "maxIterations": "maxSteps",
    "maxTokens": "modelSettings.maxTokens",
    "maxOutputTokens": "modelSettings.maxTokens",
    "temperature": "modelSettings.temperature",
    "topP": "modelSettings.topP",
    "settings": "modelSettings",
    "requiresApproval": "permissions",
}
_CODE_NAMES: Final = ("config", "agent")


def read_config(load: CodeLoad, file: Path) -> ConfigFile:
    """Return the options of a config file, whatever its kind, not yet checked. Raises `LOUSHO_AGENT_DIR_INVALID`."""
    shown = shown_path(file)
    if file.suffix == ".py":
        found = ConfigFile(_code_options(run_file(load, file), file, shown), shown, CODE)
        found.mapping((), found.values)
        return found
    document = read_document(file, shown, CODE)
    if document.value is None:
        refuse(f"'{shown}' is empty; write the agent's options in it or remove it")
    found = ConfigFile(cast("Mapping[str, Any]", document.value), shown, CODE, document)
    found.mapping((), document.value)
    return found


def config_options(file: ConfigFile, *, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the options a config file sets, by their names in `create_agent()` (and `description`).

    `without` names keys the caller takes away (`hooks`, `approve`). Raises `LOUSHO_AGENT_DIR_INVALID` naming file,
    line and key.
    """
    values = _known_values(file)
    options: dict[str, Any] = {}
    for key, value in values.items():
        if key in UNSUPPORTED:
            _refuse_unsupported(file, key, value, without)
        elif value is not None:
            options[snake_case(key)] = _checked(file, key, value)
    return options


def snake_case(key: str) -> str:
    """Return `max_steps` for `maxSteps`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: f"_{found.group(1).lower()}", key)


def _known_values(file: ConfigFile) -> dict[str, Any]:
    """Return the values by camelCase key. Raises for unknown keys, all of them at once."""
    known = (*SUPPORTED, *UNSUPPORTED)
    by_snake = {snake_case(key): key for key in known} if file.is_code else {}
    values: dict[str, Any] = {}
    unknown: list[str] = []
    for given, value in file.values.items():
        key = by_snake.get(given, given)
        if key not in known:
            unknown.append(given)
        elif key in values:
            file.fail((given,), "is set twice, once in camelCase and once in snake_case")
        else:
            values[key] = value
    if unknown:
        _refuse_unknown(file, unknown)
    return values


def _refuse_unknown(file: ConfigFile, unknown: list[str]) -> None:
    known = (*SUPPORTED, *UNSUPPORTED)
    parts = [
        f"'{key}' (a file in {key}/)" if key in _FOLDERS else f"'{key}'{did_you_mean(key, known, _ALIASES)}"
        for key in unknown[:10]
    ]
    text = f"unknown key{'' if len(unknown) == 1 else 's'} {', '.join(parts)}"
    if "prompt" in unknown or isinstance(file.values.get("provider"), Mapping):
        text += f". This looks like a spec file: to run it as one, pass '{file.shown}' and not its directory"
    mark = file.document.mark((unknown[0],)) if file.document is not None else None
    place = file.shown if mark is None else f"{file.shown}:{mark.line}:{mark.column}"
    raise ConfigurationError(f"{place}: {text}", field=unknown[0], code=file.code)


def _refuse_unsupported(file: ConfigFile, key: str, value: Any, without: Collection[str]) -> None:
    if (
        value is None
        or key in without
        or any(type(value) is type(no) and value == no for no in _SAYS_NOTHING.get(key, ()))
    ):
        return
    advice = f", or load the directory in code with {key}=None" if key in ("hooks", "approve") else ""
    file.fail(
        (key,), f"this version does not support {UNSUPPORTED[key]}, so the key would do nothing. Remove it{advice}"
    )


def _checked(file: ConfigFile, key: str, value: Any) -> Any:
    path = (key,)
    if key == "provider":
        if not file.is_code:
            file.fail(path, "a provider object can only stand in agent.py; name the model as 'provider/model' instead")
        return value
    if key in ("model", "instructions") and file.is_code and callable(value):
        return value  # a function of the run; create_agent() checks it
    if key == "maxSteps":
        return file.whole_number(path, value)
    if key == "toolConcurrency":
        return value if value == "unbounded" else file.whole_number(path, value)
    if key == "permissions":
        return compile_rules(file, value)
    if key == "permissionMode":
        return _permission_mode(file, value)
    if key == "modelSettings":
        return _model_settings(file, value)
    if key == "approvalTtlMs":
        return _milliseconds(file, key, value, LONGEST_TTL_MS)
    if key == "toolTimeoutMs":
        return _milliseconds(file, key, value, sys.float_info.max)
    if key in ("loopGuard", "repairArguments", "matchToolNames"):
        return _switch(file, key, value)
    if key == "toolResults":
        return _tool_results(file, value)
    return file.text(path, value)


def _permission_mode(file: ConfigFile, value: Any) -> Any:
    from lousho.policy.modes import MODES, checked_mode_option

    if file.is_code and callable(value):
        try:
            return checked_mode_option(value)
        except ConfigurationError as error:
            file.fail(("permissionMode",), error.detail)
    if not isinstance(value, str) or value not in MODES:
        hint = did_you_mean(value, MODES) if isinstance(value, str) else ""
        file.fail(("permissionMode",), f"must be one of {', '.join(MODES)}, not {shown_value(value)}{hint}")
    return value


def _model_settings(file: ConfigFile, value: Any) -> dict[str, Any]:
    from lousho.agent.model_settings import check_model_settings

    settings = file.mapping(("modelSettings",), value)
    if not file.is_code:
        for key in settings:
            if "_" in key:
                file.fail(("modelSettings", key), f"files write camelCase (did you mean '{_camel_case(key)}'?)")
    try:
        return check_model_settings(settings)
    except ConfigurationError as error:
        path = tuple((error.field or "modelSettings").split("."))
        problem = error.detail.removeprefix("model_settings: ")
        if file.document is not None and file.document.mark(path) is None:
            path = ("modelSettings",)
        file.fail(path, problem)


def _milliseconds(file: ConfigFile, key: str, value: Any, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= most:
        file.fail((key,), f"must be a number of milliseconds above 0, not {shown_value(value)}")
    return value


def _switch(file: ConfigFile, key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        file.fail((key,), f"must be true or false, not {shown_value(value)}")
    return value


def _tool_results(file: ConfigFile, value: Any) -> SpillOptions:
    from lousho.agent.options import spill_options

    given = file.mapping(("toolResults",), value)
    known = ("spillDir", "aboveChars")
    by_snake = {snake_case(key): key for key in known} if file.is_code else {}
    for key in given:
        if key not in known and key not in by_snake:
            file.fail(("toolResults", key), f"is not a known key{did_you_mean(key, known)}")
    try:
        return spill_options({snake_case(key): item for key, item in given.items()})
    except ConfigurationError as error:
        file.fail(("toolResults",), error.detail.removeprefix("tool_results: "))


def _camel_case(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _code_options(module: ModuleType, file: Path, shown: str) -> Mapping[str, Any]:
    """Return the mapping of options that `agent.py` defines: `config`, `agent`, or the one that looks like it."""
    from lousho.agent.agent import Agent

    for name in _CODE_NAMES:
        value: Any = getattr(module, name, None)
        if isinstance(value, Mapping):
            return cast("Mapping[str, Any]", value)
        if isinstance(value, Agent):
            refuse(
                f"'{shown}': '{name}' is a built agent, and the config of an agent directory is a mapping of options."
                f" Write config = {{'model': ...}}, or pass the file itself, '{shown}': then its agent is used as it is,"
                " without instructions.md and tools/ beside it"
            )
    known = {*SUPPORTED, *UNSUPPORTED}
    known |= {snake_case(key) for key in known}
    found = [
        name
        for name in own_names(module, file.read_bytes())
        if isinstance(value := getattr(module, name, None), Mapping) and known & set(cast("Mapping[Any, Any]", value))
    ]
    if len(found) == 1:
        return cast("Mapping[str, Any]", getattr(module, found[0]))
    if found:
        refuse(f"'{shown}' defines more than one mapping of options: {', '.join(found)}. Call the right one 'config'")
    return refuse(
        f"'{shown}' defines no options. Write them as a mapping, e.g. config = {{'model': 'openai/gpt-4.1-mini'}}"
    )
