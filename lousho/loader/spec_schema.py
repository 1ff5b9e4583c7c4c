"""The shape of a version 1 agent spec as a pydantic model; imported only when a spec is read.

Parts whose feature may be missing (guardrails, limits, triggers, MCP servers) are kept as they stand: the file is
valid, and `spec_to_agent()` decides what can be honoured. Source: agents page ("Agent spec files").
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

PROVIDER_TYPES: Final = ("openai", "anthropic", "ollama", "openrouter", "mock")
SPEC_FIELDS: Final = ("name", "prompt", "provider", "tools", "policy", "triggers", "mcpServers")
POLICY_FIELDS: Final = ("requiresApproval", "guardrails", "limits", "askQuestion", "compaction")
PROVIDER_FIELDS: Final = ("type", "model")


def _approvals(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(name, str) and name.strip() for name in value):  # pyright: ignore[reportUnknownVariableType]
        return list(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    raise PydanticCustomError("approvals", "must be true, false or a list of tool names")


Text = Annotated[str, Field(min_length=1, pattern=r"\S")]


class _Part(BaseModel):
    model_config = ConfigDict(populate_by_name=True, strict=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        # `tools:` with nothing after it is a null in YAML and means "not given".
        if isinstance(value, dict):
            return {key: item for key, item in value.items() if item is not None}  # pyright: ignore[reportUnknownVariableType]
        return value


class SpecProvider(_Part):
    """Which model the agent runs on."""

    type: Literal["openai", "anthropic", "ollama", "openrouter", "mock"]
    model: Text
    """The model id that every call uses."""


class SpecPolicy(_Part):
    """What is enforced while the agent runs. Keys that are not known are kept (`model_extra`)."""

    model_config = ConfigDict(populate_by_name=True, strict=True, extra="allow")

    requires_approval: Annotated[bool | list[str] | None, BeforeValidator(_approvals)] = Field(
        default=None, alias="requiresApproval"
    )
    """True: every tool call pauses for approval. A list: the calls of these tools do."""
    guardrails: list[Any] | None = None
    limits: dict[str, Any] | None = None
    ask_question: bool | None = Field(default=None, alias="askQuestion")
    """True adds the built-in `ask_question` tool."""
    compaction: bool | dict[str, Any] | None = None


class AgentSpec(_Part):
    """An agent as plain data. `AgentSpec.model_validate(data)` checks it. Source: agents page."""

    name: Text
    prompt: Text
    """The system prompt."""
    provider: SpecProvider
    tools: list[Text] = Field(default_factory=list)
    """Names of built-in tools, such as `current-date`."""
    policy: SpecPolicy | None = None
    triggers: list[Any] = Field(default_factory=list)
    mcp_servers: dict[str, Any] = Field(default_factory=dict, alias="mcpServers")
