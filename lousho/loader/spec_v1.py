"""Version 1 agent spec files: `load_spec()` reads and checks one, `spec_to_agent()` makes the agent.

Source: agents page ("Agent spec files"), quickstart page ("Declarative agents").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from lousho.core.errors import ConfigurationError
from lousho.core.suggest import did_you_mean, nearest
from lousho.loader.config_file import DATA_SUFFIXES, kind_of, read_document, shown_value
from lousho.loader.document import Document, Path_, dotted
from lousho.loader.import_failure import shown_path

if TYPE_CHECKING:
    from pydantic import ValidationError

    from lousho.agent.agent import Agent
    from lousho.loader.spec_schema import AgentSpec
    from lousho.tools.definition import Tool

MAX_LISTED_PROBLEMS: Final = 20

BUILTIN_TOOLS: Final = {
    "current-date": "current_date_tool",
    "day-name": "day_name_tool",
    "http": "http_tool",
    "web-fetch": "web_fetch_tool",
}
"""Names a spec may use, and the tools behind them."""
_TOOLS_WITH_CREDENTIALS: Final = {"github": "create_github_tools(...)", "jira": "create_jira_tools(...)"}

_NOT_ENFORCED: Final = {
    "policy.guardrails": "guardrails, so nothing would be checked",
    "policy.limits": "limits, so nothing would be limited",
    "policy.compaction": "compaction, so nothing would be compacted",
    "triggers": "triggers, so nothing would start the agent",
    "mcpServers": "MCP servers, so the agent would lack their tools",
}
_TOP_LEVEL_ALIASES: Final = {
    "instructions": "prompt",
    "system": "prompt",
    "systemPrompt": "prompt",
    "model": "provider.model",
}
# Rules written one level too high would be ignored, and the agent would run without them.
_MISPLACED: Final = {
    "requiresApproval": "policy.requiresApproval",
    "askQuestion": "policy.askQuestion",
    "guardrails": "policy.guardrails",
    "limits": "policy.limits",
    "compaction": "policy.compaction",
    "permissions": "policy.requiresApproval",
}


def load_spec(path: str | PathLike[str]) -> AgentSpec:
    """Return the spec in a `.yaml`, `.yml` or `.json` file, checked.

    Raises `LOUSHO_SPEC_UNSUPPORTED_FORMAT`, `LOUSHO_SPEC_NOT_FOUND`, `LOUSHO_SPEC_INVALID` (every problem as
    `'<path>': <problem>`; line and column of text that does not parse), `LOUSHO_SPEC_UNKNOWN_FIELD` (a likely typo in an
    otherwise valid spec) and `LOUSHO_SPEC_UNSUPPORTED` (`version: 2`). Source: agents page.
    """
    file = Path(path)
    shown = shown_path(file)
    if file.suffix.lower() not in DATA_SUFFIXES:
        raise ConfigurationError(
            f"load_spec: '{shown}' is not a spec file: its name must end in .yaml, .yml or .json.",
            code="LOUSHO_SPEC_UNSUPPORTED_FORMAT",
        )
    if not _is_there(file):
        raise ConfigurationError(f"load_spec: there is no file '{shown}'.", code="LOUSHO_SPEC_NOT_FOUND")
    document = read_document(file, shown, "LOUSHO_SPEC_INVALID")
    if document.value is None:
        raise ConfigurationError(f"load_spec: '{shown}' is empty.", code="LOUSHO_SPEC_INVALID")
    return _checked(document.value, _Source("load_spec", f"'{shown}'", document))


def spec_to_agent(spec: AgentSpec | Mapping[str, Any], **overrides: Any) -> Agent:
    """Return the agent that a spec describes; a mapping is checked first.

    `overrides` are options of `create_agent()` and win over the spec. `policy.requiresApproval` becomes permission
    rules, `policy.askQuestion` the `ask_question` tool. Raises `LOUSHO_SPEC_UNSUPPORTED` for parts that this version
    could only ignore, `LOUSHO_TOOL_NOT_FOUND`, `LOUSHO_TOOL_NEEDS_CREDENTIALS`, and what `create_agent()` raises.
    Source: agents page, quickstart page.
    """
    from lousho.agent import create_agent
    from lousho.loader.spec_schema import AgentSpec

    checked = spec if isinstance(spec, AgentSpec) else _checked(spec, _Source("spec_to_agent", "the spec"))
    return create_agent(**spec_options(checked, overrides))


def spec_options(spec: AgentSpec, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `create_agent()` for a spec, with `overrides` winning."""
    given = {key: value for key, value in overrides.items() if value is not None}
    _refuse_unenforced(spec)
    options: dict[str, Any] = {
        "name": spec.name,
        "instructions": spec.prompt,
        "model": f"{spec.provider.type}/{spec.provider.model}",
        "tools": _tools(spec.tools),
    }
    policy = spec.policy
    if policy is not None and policy.ask_question:
        options["ask_question"] = True
    if policy is not None and policy.requires_approval:
        options["permissions"] = [_ask_rule(policy.requires_approval)]
    if "model" in given or "provider" in given:
        options.pop("model")
    if "prompt" in given:
        options.pop("instructions")
    return {**options, **given}


def __getattr__(name: str) -> Any:
    # pydantic is loaded when a spec is, not when this module is imported.
    if name == "AgentSpec":
        from lousho.loader.spec_schema import AgentSpec

        return globals().setdefault(name, AgentSpec)
    raise AttributeError(f"module '{__name__}' has no attribute {name!r}")


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a spec came from, for messages."""

    caller: str
    named: str
    document: Document | None = None

    def place(self, path: Path_) -> str:
        """Return ` (line 4, column 9)` where that is known."""
        mark = self.document.mark(path) if self.document is not None else None
        return "" if mark is None else f" (line {mark.line}, column {mark.column})"


def _is_there(file: Path) -> bool:
    try:
        return file.exists() or file.is_symlink()
    except (OSError, ValueError):
        return True  # reading it says what is wrong


def _checked(value: Any, source: _Source) -> AgentSpec:
    from pydantic import ValidationError

    from lousho.loader.spec_schema import AgentSpec

    if not isinstance(value, Mapping):
        _invalid(source, [f"it must be a mapping of fields, not {kind_of(value)}"])
    fields = {str(key): part for key, part in cast("Mapping[Any, Any]", value).items()}
    if fields.get("version") in (2, "2") and not isinstance(fields["version"], bool):
        raise ConfigurationError(
            f"{source.caller}: 'version': {source.named} is a version 2 spec{source.place(('version',))},"
            " and this version reads version 1 only.",
            field="version",
            code="LOUSHO_SPEC_UNSUPPORTED",
        )
    try:
        spec = AgentSpec.model_validate(fields)
    except ValidationError as error:
        _invalid(source, [*_problems(error, source), *_typos(fields, source, lenient=True)])
    typos = _typos(fields, source, lenient=False)
    if typos:
        raise ConfigurationError(
            f"{source.caller}: {source.named}: {'; '.join(typos)}.", code="LOUSHO_SPEC_UNKNOWN_FIELD"
        )
    return spec


def _invalid(source: _Source, problems: list[str]) -> NoReturn:
    listed = problems[:MAX_LISTED_PROBLEMS]
    if len(problems) > len(listed):
        listed.append(f"and {len(problems) - len(listed)} more")
    raise ConfigurationError(
        f"{source.caller}: {source.named} failed validation - {'; '.join(listed)}", code="LOUSHO_SPEC_INVALID"
    )


def _problems(error: ValidationError, source: _Source) -> Iterable[str]:
    """Return pydantic's findings as `'<path>': <problem>`, in the words of a person who writes YAML."""
    seen: set[str] = set()
    for found in error.errors(include_url=False, include_context=True):
        # A part of a union adds its type to the path, e.g. `compaction.bool`.
        path = tuple(part for part in found["loc"] if part not in ("bool", "dict[str,any]"))
        name = dotted(path)
        if name in seen:
            continue
        seen.add(name)
        if found["type"] == "missing":
            yield f"'{name}': missing required field '{name}'"
        else:
            yield f"'{name}': {_words(found)}{source.place(path)}"


def _words(found: Any) -> str:
    from lousho.loader.spec_schema import PROVIDER_TYPES

    kind: str = found["type"]
    value: object = found["input"]
    if kind == "literal_error":
        hint = did_you_mean(value, PROVIDER_TYPES) if isinstance(value, str) else ""
        return f"must be one of {', '.join(PROVIDER_TYPES)}, not {shown_value(value)}{hint}"
    if kind in ("string_too_short", "string_pattern_mismatch"):
        return "must not be empty"
    expected = {
        "string_type": "a text",
        "bool_type": "true or false",
        "list_type": "a list",
        "dict_type": "a mapping",
        "model_type": "a mapping",
        "model_attributes_type": "a mapping",
    }.get(kind)
    if expected is None:
        message = str(found["msg"])
        return message[:1].lower() + message[1:]
    quotes = "; put it in quotes" if expected == "a text" and isinstance(value, (bool, int, float)) else ""
    return f"must be {expected}, not {kind_of(value)}{quotes}"


def _typos(fields: Mapping[str, Any], source: _Source, *, lenient: bool) -> list[str]:
    """Return the unknown fields that are likely typos of known ones; others are ignored on purpose.

    An invalid spec is searched more widely (`lenient`): there an odd field is probably the missing one.
    """
    from lousho.loader.spec_schema import POLICY_FIELDS, PROVIDER_FIELDS, SPEC_FIELDS

    found: list[str] = []
    for key in fields:
        if key in SPEC_FIELDS or key == "mcp_servers":
            continue
        meant = _MISPLACED.get(key) or (_TOP_LEVEL_ALIASES.get(key) if lenient else None) or nearest(key, SPEC_FIELDS)
        if meant is not None:
            found.append(_typo(key, meant, (key,), source))
    for name, known in (("policy", POLICY_FIELDS), ("provider", PROVIDER_FIELDS)):
        part: object = fields.get(name)
        if isinstance(part, Mapping) and (name == "policy" or lenient):
            for key in cast("Mapping[Any, Any]", part):
                meant = nearest(key, known) if isinstance(key, str) and key not in known else None
                if meant is not None and not (name == "policy" and key in ("requires_approval", "ask_question")):
                    found.append(_typo(f"{name}.{key}", f"{name}.{meant}", (name, key), source))
    return found


def _typo(key: str, meant: str, path: Path_, source: _Source) -> str:
    return f"unknown field '{key}' (did you mean '{meant}'?){source.place(path)}"


def _refuse_unenforced(spec: AgentSpec) -> None:
    policy = spec.policy
    declared: dict[str, object] = {
        "policy.guardrails": policy.guardrails if policy is not None else None,
        "policy.limits": policy.limits if policy is not None else None,
        # `{}` asks for compaction with its defaults, as `true` does.
        "policy.compaction": policy is not None and policy.compaction not in (None, False),
        "triggers": spec.triggers,
        "mcpServers": spec.mcp_servers,
    }
    for field, value in declared.items():
        if value:
            raise ConfigurationError(
                f"spec_to_agent: '{field}': this version does not support {_NOT_ENFORCED[field]}.",
                field=field,
                code="LOUSHO_SPEC_UNSUPPORTED",
            )


def _tools(names: Iterable[str]) -> list[Tool]:
    tools: dict[str, Tool] = {}
    for index, name in enumerate(names):
        if name in _TOOLS_WITH_CREDENTIALS:
            raise ConfigurationError(
                f"spec_to_agent: 'tools.{index}': the tool '{name}' needs credentials, for which a spec has no field."
                f" Build the agent with create_agent() and pass {_TOOLS_WITH_CREDENTIALS[name]}.",
                field=f"tools.{index}",
                code="LOUSHO_TOOL_NEEDS_CREDENTIALS",
            )
        if name not in BUILTIN_TOOLS:
            raise ConfigurationError(
                f"spec_to_agent: 'tools.{index}': '{name}' is not a built-in tool{did_you_mean(name, BUILTIN_TOOLS)}."
                f" The built-in tools are {', '.join(BUILTIN_TOOLS)}.",
                field=f"tools.{index}",
                code="LOUSHO_TOOL_NOT_FOUND",
            )
        tools[name] = _builtin(name)
    return list(tools.values())


def _builtin(name: str) -> Tool:
    import lousho.tools as tools

    return getattr(tools, BUILTIN_TOOLS[name])


def _ask_rule(required: bool | list[str]) -> Any:
    from lousho.policy.permissions import ask

    if isinstance(required, bool):
        return ask("*")
    # A spec has names of its own for built-in tools; the model knows them by others.
    return ask([_builtin(name).name if name in BUILTIN_TOOLS else name for name in required])
