"""The agent as plain data, and the fluent way to write it down. Nothing here runs: `lousho.agent.executor` does.

Source: executor-api page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self, TypeAlias, cast

from lousho.agent.model_settings import check_model_settings
from lousho.core.errors import ConfigurationError
from lousho.core.redact import shown
from lousho.core.suggest import unknown_key_message
from lousho.tools.definition import Tool

ToolNames: TypeAlias = "Mapping[str, Tool | None]"
_ALIASES = {
    "instructions": "prompt",
    "system": "prompt",
    "system_prompt": "prompt",
    "settings": "model_settings",
    "functions": "tools",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """What an agent is, as plain data: `AgentBuilder` makes one, `AgentExecutor` runs it.

    Without a `prompt` the agent has the one that `create_agent()` gives. `tools` are the tools it may use, by name: a
    `Tool`, or `None` for one that the registry of the run has. Raises `LOUSHO_CONFIG_INVALID` for an unusable value.
    Source: executor-api page.
    """

    name: str = "agent"
    """The agent's name, for people and in every result."""
    id: str | None = None
    """A stable id, told by `run.start`."""
    description: str | None = None
    """What the agent does, in a sentence."""
    prompt: str | None = None
    """The system prompt."""
    model: str | None = None
    """The model id that the provider is asked for; `None`: the provider's default."""
    tools: ToolNames = field(default_factory=dict[str, "Tool | None"])
    """The tools it may use, by name."""
    model_settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Sampling settings, such as `temperature` and `max_tokens`."""
    version: str | None = None
    """A label on the run's events and spans."""

    def __post_init__(self) -> None:
        for name in _TEXTS:
            value = getattr(self, name)
            if not isinstance(value, str) and (value is not None or name == "name"):
                raise ConfigurationError(f"AgentConfig: {name} must be a text; got {shown(value)}.", field=name)
        if not self.name.strip():
            raise ConfigurationError("AgentConfig: the name is empty.", field="name")
        object.__setattr__(self, "tools", _checked_tools(self.tools))
        object.__setattr__(self, "model_settings", check_model_settings(self.model_settings))

    @classmethod
    def of(cls, given: object) -> AgentConfig:
        """Return `given`, a config or a mapping of its fields, as a config. Raises `LOUSHO_CONFIG_INVALID`."""
        if isinstance(given, AgentConfig):
            return given
        if not isinstance(given, Mapping):
            raise ConfigurationError(
                f"agent must be an AgentConfig, as AgentBuilder makes it; got {shown(given)}. "
                "An agent of create_agent() runs by its own send() and stream().",
                field="agent",
            )
        record = {_SNAKE.get(key, key): value for key, value in cast("Mapping[str, Any]", given).items()}
        known = [one.name for one in fields(cls)]
        for key in record:
            if key not in known:
                raise ConfigurationError(f"agent: {unknown_key_message(str(key), known, aliases=_ALIASES)}.", field=key)
        return cls(**{key: value for key, value in record.items() if value is not None})

    def to_dict(self) -> dict[str, Any]:
        """Return the config as JSON values with camelCase keys, its tools by name; `AgentConfig.of()` reads it back."""
        record: dict[str, Any] = {name: getattr(self, name) for name in _TEXTS}
        record["tools"] = list(self.tools)
        record["modelSettings"] = dict(self.model_settings)
        return {key: value for key, value in record.items() if value}


_SNAKE = {"modelSettings": "model_settings"}
_TEXTS = ("name", "id", "description", "prompt", "model", "version")


def _checked_tools(given: object) -> dict[str, Tool | None]:
    """Return tools by name, given as a mapping or as a list of tools and names; a mapping's key renames its tool."""
    if isinstance(given, Mapping):
        pairs = list(cast("Mapping[Any, Any]", given).items())
    elif isinstance(given, Iterable) and not isinstance(given, (str, bytes, Tool)):
        pairs = [(one.name, one) if isinstance(one, Tool) else (one, None) for one in cast("Iterable[Any]", given)]
    else:
        raise ConfigurationError(
            f"AgentConfig: tools must be tools or names of tools; got {shown(given)}.", field="tools"
        )
    tools: dict[str, Tool | None] = {}
    for name, value in pairs:
        if not isinstance(name, str) or not name or not (value is None or isinstance(value, Tool)):
            raise ConfigurationError(
                f"AgentConfig: {shown(name if value is None else value)} is neither a tool nor the name of one. "
                "Put @tool above the function, or use define_tool().",
                field="tools",
            )
        if name in tools:
            raise ConfigurationError(f"AgentConfig: two tools are named {name!r}.", field="tools")
        tools[name] = value if value is None or value.name == name else value.renamed(name)
    return tools


class AgentBuilder:
    """Writes an `AgentConfig` down step by step: `AgentBuilder.create().set_name('a').set_prompt('...').build()`.

    Every `set_...` and `add_...` returns the builder; `build()` may be called more than once. Source: executor-api page.
    """

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._tools: list[Tool | str] = []

    @classmethod
    def create(cls) -> Self:
        """Return an empty builder."""
        return cls()

    def set_name(self, name: str) -> Self:
        """Name the agent."""
        return self._set("name", name)

    def set_id(self, id: str) -> Self:  # noqa: A002 - the field's name
        """Give the agent a stable id."""
        return self._set("id", id)

    def set_description(self, description: str) -> Self:
        """Say what the agent does, in a sentence."""
        return self._set("description", description)

    def set_prompt(self, prompt: str) -> Self:
        """Set the system prompt."""
        return self._set("prompt", prompt)

    def set_model(self, model: str) -> Self:
        """Choose the model id that the provider is asked for."""
        return self._set("model", model)

    def set_settings(self, settings: Mapping[str, Any]) -> Self:
        """Set sampling settings, such as `{'temperature': 0}`; a `model` among them is the model id."""
        given = dict(settings)
        if "model" in given:
            self._set("model", given.pop("model"))
        return self._set("model_settings", {**self._fields.get("model_settings", {}), **given})

    def set_version(self, version: str) -> Self:
        """Put a label on the run's events and spans."""
        return self._set("version", version)

    def add_tool(self, tool: Tool | str) -> Self:
        """Let the agent use a tool: the tool itself, or the name it has in the registry of the run."""
        self._tools.append(tool)
        return self

    def add_tools(self, tools: Iterable[Tool | str]) -> Self:
        """Let the agent use several tools."""
        self._tools.extend(tools)
        return self

    def build(self) -> AgentConfig:
        """Return the agent as plain data. Raises `LOUSHO_CONFIG_INVALID`."""
        return AgentConfig(**self._fields, tools=cast("ToolNames", list(self._tools)))

    def _set(self, name: str, value: object) -> Self:
        self._fields[name] = value
        return self
