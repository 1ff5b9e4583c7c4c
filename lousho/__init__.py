"""Lousho: build AI agents that pause for people, survive restarts and can be tested.

Public names are resolved on first use, so `import lousho` costs next to nothing.
"""

TYPE_CHECKING = False  # as type checkers know it; importing `typing` would double the cost of `import lousho`

if TYPE_CHECKING:
    from typing import Any

    from lousho.agent.agent import Agent as Agent
    from lousho.agent.agent import create_agent as create_agent
    from lousho.agent.approvals import PendingApproval as PendingApproval
    from lousho.agent.options import CreateAgentBase as CreateAgentBase
    from lousho.agent.per_run import PerRun as PerRun
    from lousho.agent.per_run import RunConfigContext as RunConfigContext
    from lousho.agent.session import Session as Session
    from lousho.core.cancel import AbortError as AbortError
    from lousho.core.cancel import CancelSignal as CancelSignal
    from lousho.core.errors import ERROR_CODES as ERROR_CODES
    from lousho.core.errors import AgentExecutionError as AgentExecutionError
    from lousho.core.errors import AuthError as AuthError
    from lousho.core.errors import BudgetExceededError as BudgetExceededError
    from lousho.core.errors import CassetteMismatchError as CassetteMismatchError
    from lousho.core.errors import CompactedLLMProviderError as CompactedLLMProviderError
    from lousho.core.errors import ConfigurationError as ConfigurationError
    from lousho.core.errors import CronExpressionError as CronExpressionError
    from lousho.core.errors import DecryptionError as DecryptionError
    from lousho.core.errors import FlowExecutionError as FlowExecutionError
    from lousho.core.errors import GuardrailError as GuardrailError
    from lousho.core.errors import LLMProviderError as LLMProviderError
    from lousho.core.errors import McpStartError as McpStartError
    from lousho.core.errors import McpToolError as McpToolError
    from lousho.core.errors import MissingDependencyError as MissingDependencyError
    from lousho.core.errors import PropagatingToolError as PropagatingToolError
    from lousho.core.errors import RateLimitError as RateLimitError
    from lousho.core.errors import SDKError as SDKError
    from lousho.core.errors import SessionAwaitingApprovalError as SessionAwaitingApprovalError
    from lousho.core.errors import TimeoutError as TimeoutError  # noqa: A004
    from lousho.core.errors import ToolArgumentsValidationError as ToolArgumentsValidationError
    from lousho.core.errors import ToolExecutionError as ToolExecutionError
    from lousho.core.errors import ValidationError as ValidationError
    from lousho.core.errors import WorkspaceError as WorkspaceError
    from lousho.core.event_wire import UnknownEvent as UnknownEvent
    from lousho.core.event_wire import event_from_dict as event_from_dict
    from lousho.core.event_wire import is_agent_event as is_agent_event
    from lousho.core.event_wire import is_step_event as is_step_event
    from lousho.core.event_wire import is_text_event as is_text_event
    from lousho.core.event_wire import is_tool_event as is_tool_event
    from lousho.core.events import AGENT_EVENT_SCHEMA_VERSION as AGENT_EVENT_SCHEMA_VERSION
    from lousho.core.events import AgentDriftEvent as AgentDriftEvent
    from lousho.core.events import AgentEvent as AgentEvent
    from lousho.core.events import ApprovalRequestedEvent as ApprovalRequestedEvent
    from lousho.core.events import BudgetExceededEvent as BudgetExceededEvent
    from lousho.core.events import CompactionDoneEvent as CompactionDoneEvent
    from lousho.core.events import CompactionStartEvent as CompactionStartEvent
    from lousho.core.events import ContextClearedEvent as ContextClearedEvent
    from lousho.core.events import ErrorEvent as ErrorEvent
    from lousho.core.events import ErrorInfo as ErrorInfo
    from lousho.core.events import GuardrailRewroteEvent as GuardrailRewroteEvent
    from lousho.core.events import GuardrailTrippedEvent as GuardrailTrippedEvent
    from lousho.core.events import HandoffEvent as HandoffEvent
    from lousho.core.events import InputAppliedEvent as InputAppliedEvent
    from lousho.core.events import InputQueuedEvent as InputQueuedEvent
    from lousho.core.events import InputSteeredEvent as InputSteeredEvent
    from lousho.core.events import ObjectDeltaEvent as ObjectDeltaEvent
    from lousho.core.events import PermissionDecisionEvent as PermissionDecisionEvent
    from lousho.core.events import ProviderFallbackEvent as ProviderFallbackEvent
    from lousho.core.events import ProviderRetryEvent as ProviderRetryEvent
    from lousho.core.events import ReasoningDeltaEvent as ReasoningDeltaEvent
    from lousho.core.events import ReasoningDoneEvent as ReasoningDoneEvent
    from lousho.core.events import ReasoningStartEvent as ReasoningStartEvent
    from lousho.core.events import RunDoneEvent as RunDoneEvent
    from lousho.core.events import RunStartEvent as RunStartEvent
    from lousho.core.events import StepDoneEvent as StepDoneEvent
    from lousho.core.events import StepStartEvent as StepStartEvent
    from lousho.core.events import TextDeltaEvent as TextDeltaEvent
    from lousho.core.events import TextDoneEvent as TextDoneEvent
    from lousho.core.events import TodoUpdatedEvent as TodoUpdatedEvent
    from lousho.core.events import ToolDoneEvent as ToolDoneEvent
    from lousho.core.events import ToolErrorEvent as ToolErrorEvent
    from lousho.core.events import ToolPartialEvent as ToolPartialEvent
    from lousho.core.events import ToolResumeEvent as ToolResumeEvent
    from lousho.core.events import ToolStartEvent as ToolStartEvent
    from lousho.core.messages import ContentPart as ContentPart
    from lousho.core.messages import FilePart as FilePart
    from lousho.core.messages import FunctionCall as FunctionCall
    from lousho.core.messages import ImagePart as ImagePart
    from lousho.core.messages import Message as Message
    from lousho.core.messages import ReasoningBlock as ReasoningBlock
    from lousho.core.messages import TextPart as TextPart
    from lousho.core.messages import ToolCall as ToolCall
    from lousho.core.messages import text_of as text_of
    from lousho.core.usage import ModelUsage as ModelUsage
    from lousho.core.usage import RunUsage as RunUsage
    from lousho.core.usage import StepUsage as StepUsage
    from lousho.core.usage import estimate_tokens as estimate_tokens
    from lousho.loader.directory import load_agent_dir as load_agent_dir
    from lousho.loader.directory import load_agent_dir_sync as load_agent_dir_sync
    from lousho.loader.directory import resolve_agent_dir as resolve_agent_dir
    from lousho.loader.directory import resolve_agent_dir_sync as resolve_agent_dir_sync
    from lousho.loader.spec_v1 import AgentSpec as AgentSpec
    from lousho.loader.spec_v1 import load_spec as load_spec
    from lousho.loader.spec_v1 import spec_to_agent as spec_to_agent

    agent_spec_schema = AgentSpec
    from lousho.models.anthropic import AnthropicProvider as AnthropicProvider
    from lousho.models.mock import MockLLMProvider as MockLLMProvider
    from lousho.models.mock import create_mock_provider as create_mock_provider
    from lousho.models.openai import OpenAIProvider as OpenAIProvider
    from lousho.models.provider import LLMProvider as LLMProvider
    from lousho.models.provider import ModelChunk as ModelChunk
    from lousho.models.provider import ModelRequest as ModelRequest
    from lousho.models.provider import ModelResponse as ModelResponse
    from lousho.models.resolve import LLMProviderRegistry as LLMProviderRegistry
    from lousho.models.resolve import resolve_provider as resolve_provider
    from lousho.policy.approval_memory import always as always
    from lousho.policy.approval_memory import never as never
    from lousho.policy.approval_memory import once as once
    from lousho.policy.gate import APPROVAL_EXPIRED_REASON as APPROVAL_EXPIRED_REASON
    from lousho.policy.gate import Deny as Deny
    from lousho.policy.modes import PermissionMode as PermissionMode
    from lousho.policy.modes import PermissionModeChange as PermissionModeChange
    from lousho.policy.permissions import PermissionRule as PermissionRule
    from lousho.policy.permissions import allow as allow
    from lousho.policy.permissions import ask as ask
    from lousho.policy.permissions import deny as deny
    from lousho.runtime.agent_run import AgentRun as AgentRun
    from lousho.runtime.approver import ApprovalRequest as ApprovalRequest
    from lousho.runtime.inbox import InputOutcome as InputOutcome
    from lousho.runtime.inbox import InputQueue as InputQueue
    from lousho.runtime.inbox import QueuedInput as QueuedInput
    from lousho.runtime.inbox import SteeredInput as SteeredInput
    from lousho.runtime.result import RunResult as RunResult

    ExecutionResult = RunResult
    from lousho.runtime.state import RunFinishReason as RunFinishReason

    ExecutionFinishReason = RunFinishReason
    from lousho.stores.memory import InMemoryApprovalStore as InMemoryApprovalStore
    from lousho.stores.memory import memory_store as memory_store
    from lousho.stores.protocol import AgentStore as AgentStore
    from lousho.tools.builtin import ask_question_tool as ask_question_tool
    from lousho.tools.builtin import current_date_tool as current_date_tool
    from lousho.tools.builtin import day_name_tool as day_name_tool
    from lousho.tools.context import ToolContext as ToolContext
    from lousho.tools.context import ToolExecutionContext as ToolExecutionContext
    from lousho.tools.definition import Tool as Tool
    from lousho.tools.definition import define_tool as define_tool
    from lousho.tools.definition import tool as tool
    from lousho.tools.descriptor import ToolDescriptor as ToolDescriptor
    from lousho.tools.errors import tool_error_result as tool_error_result
    from lousho.tools.todo import TodoStore as TodoStore
    from lousho.tools.todo import create_todo_tools as create_todo_tools
    from lousho.tools.web.http_request import create_http_tool as create_http_tool
    from lousho.tools.web.http_request import http_tool as http_tool
    from lousho.tools.web.web_fetch import create_web_fetch_tool as create_web_fetch_tool
    from lousho.tools.web.web_fetch import web_fetch_tool as web_fetch_tool

__version__ = "0.1.0"
"""The version of the package."""

_ROOMS: dict[str, str] = {
    "lousho.agent.agent": "Agent create_agent",
    "lousho.agent.approvals": "PendingApproval",
    "lousho.agent.options": "CreateAgentBase",
    "lousho.agent.per_run": "PerRun RunConfigContext",
    "lousho.agent.session": "Session",
    "lousho.core.cancel": "AbortError CancelSignal",
    "lousho.core.errors": (
        "ERROR_CODES AgentExecutionError AuthError BudgetExceededError CassetteMismatchError "
        "CompactedLLMProviderError ConfigurationError CronExpressionError DecryptionError FlowExecutionError "
        "GuardrailError LLMProviderError McpStartError McpToolError MissingDependencyError PropagatingToolError "
        "RateLimitError SDKError SessionAwaitingApprovalError TimeoutError ToolArgumentsValidationError "
        "ToolExecutionError ValidationError WorkspaceError"
    ),
    "lousho.core.event_wire": "UnknownEvent event_from_dict is_agent_event is_step_event is_text_event is_tool_event",
    "lousho.core.events": (
        "AGENT_EVENT_SCHEMA_VERSION AgentDriftEvent AgentEvent ApprovalRequestedEvent BudgetExceededEvent "
        "CompactionDoneEvent CompactionStartEvent ContextClearedEvent ErrorEvent ErrorInfo GuardrailRewroteEvent "
        "GuardrailTrippedEvent HandoffEvent InputAppliedEvent InputQueuedEvent InputSteeredEvent ObjectDeltaEvent "
        "PermissionDecisionEvent ProviderFallbackEvent ProviderRetryEvent ReasoningDeltaEvent ReasoningDoneEvent "
        "ReasoningStartEvent RunDoneEvent RunStartEvent StepDoneEvent StepStartEvent TextDeltaEvent TextDoneEvent "
        "TodoUpdatedEvent ToolDoneEvent ToolErrorEvent ToolPartialEvent ToolResumeEvent ToolStartEvent"
    ),
    "lousho.core.messages": (
        "ContentPart FilePart FunctionCall ImagePart Message ReasoningBlock TextPart ToolCall text_of"
    ),
    "lousho.core.usage": "ModelUsage RunUsage StepUsage estimate_tokens",
    "lousho.loader.directory": "load_agent_dir load_agent_dir_sync resolve_agent_dir resolve_agent_dir_sync",
    "lousho.loader.spec_v1": "AgentSpec load_spec spec_to_agent",
    "lousho.models.anthropic": "AnthropicProvider",
    "lousho.models.openai": "OpenAIProvider",
    "lousho.models.mock": "MockLLMProvider create_mock_provider",
    "lousho.models.provider": "LLMProvider ModelChunk ModelRequest ModelResponse",
    "lousho.models.resolve": "LLMProviderRegistry resolve_provider",
    "lousho.policy.modes": "PermissionMode PermissionModeChange",
    "lousho.policy.approval_memory": "always never once",
    "lousho.policy.gate": "APPROVAL_EXPIRED_REASON Deny",
    "lousho.policy.permissions": "PermissionRule allow ask deny",
    "lousho.runtime.agent_run": "AgentRun",
    "lousho.runtime.approver": "ApprovalRequest",
    "lousho.runtime.inbox": "InputOutcome InputQueue QueuedInput SteeredInput",
    "lousho.runtime.result": "RunResult",
    "lousho.runtime.state": "RunFinishReason",
    "lousho.stores.memory": "InMemoryApprovalStore memory_store",
    "lousho.stores.protocol": "AgentStore",
    "lousho.tools.builtin": "ask_question_tool current_date_tool day_name_tool",
    "lousho.tools.context": "ToolContext ToolExecutionContext",
    "lousho.tools.definition": "Tool define_tool tool",
    "lousho.tools.descriptor": "ToolDescriptor",
    "lousho.tools.errors": "tool_error_result",
    "lousho.tools.todo": "TodoStore create_todo_tools",
    "lousho.tools.web.http_request": "create_http_tool http_tool",
    "lousho.tools.web.web_fetch": "create_web_fetch_tool web_fetch_tool",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}
_RENAMED = {
    "ExecutionResult": "RunResult",
    "ExecutionFinishReason": "RunFinishReason",
    "agent_spec_schema": "AgentSpec",
}

__all__ = [
    "AGENT_EVENT_SCHEMA_VERSION",
    "APPROVAL_EXPIRED_REASON",
    "ERROR_CODES",
    "AbortError",
    "Agent",
    "AgentDriftEvent",
    "AgentEvent",
    "AgentExecutionError",
    "AgentRun",
    "AgentSpec",
    "AgentStore",
    "AnthropicProvider",
    "ApprovalRequest",
    "ApprovalRequestedEvent",
    "AuthError",
    "BudgetExceededError",
    "BudgetExceededEvent",
    "CancelSignal",
    "CassetteMismatchError",
    "CompactedLLMProviderError",
    "CompactionDoneEvent",
    "CompactionStartEvent",
    "ConfigurationError",
    "ContentPart",
    "ContextClearedEvent",
    "CreateAgentBase",
    "CronExpressionError",
    "DecryptionError",
    "Deny",
    "ErrorEvent",
    "ErrorInfo",
    "ExecutionFinishReason",
    "ExecutionResult",
    "FilePart",
    "FlowExecutionError",
    "FunctionCall",
    "GuardrailError",
    "GuardrailRewroteEvent",
    "GuardrailTrippedEvent",
    "HandoffEvent",
    "ImagePart",
    "InMemoryApprovalStore",
    "InputAppliedEvent",
    "InputOutcome",
    "InputQueue",
    "InputQueuedEvent",
    "InputSteeredEvent",
    "LLMProvider",
    "LLMProviderError",
    "LLMProviderRegistry",
    "McpStartError",
    "McpToolError",
    "Message",
    "MissingDependencyError",
    "MockLLMProvider",
    "ModelChunk",
    "ModelRequest",
    "ModelResponse",
    "ModelUsage",
    "ObjectDeltaEvent",
    "OpenAIProvider",
    "PendingApproval",
    "PerRun",
    "PermissionDecisionEvent",
    "PermissionMode",
    "PermissionModeChange",
    "PermissionRule",
    "PropagatingToolError",
    "ProviderFallbackEvent",
    "ProviderRetryEvent",
    "QueuedInput",
    "RateLimitError",
    "ReasoningBlock",
    "ReasoningDeltaEvent",
    "ReasoningDoneEvent",
    "ReasoningStartEvent",
    "RunConfigContext",
    "RunDoneEvent",
    "RunFinishReason",
    "RunResult",
    "RunStartEvent",
    "RunUsage",
    "SDKError",
    "Session",
    "SessionAwaitingApprovalError",
    "SteeredInput",
    "StepDoneEvent",
    "StepStartEvent",
    "StepUsage",
    "TextDeltaEvent",
    "TextDoneEvent",
    "TextPart",
    "TimeoutError",
    "TodoStore",
    "TodoUpdatedEvent",
    "Tool",
    "ToolArgumentsValidationError",
    "ToolCall",
    "ToolContext",
    "ToolDescriptor",
    "ToolDoneEvent",
    "ToolErrorEvent",
    "ToolExecutionContext",
    "ToolExecutionError",
    "ToolPartialEvent",
    "ToolResumeEvent",
    "ToolStartEvent",
    "UnknownEvent",
    "ValidationError",
    "WorkspaceError",
    "__version__",
    "agent_spec_schema",
    "allow",
    "always",
    "ask",
    "ask_question_tool",
    "create_agent",
    "create_http_tool",
    "create_mock_provider",
    "create_todo_tools",
    "create_web_fetch_tool",
    "current_date_tool",
    "day_name_tool",
    "define_tool",
    "deny",
    "estimate_tokens",
    "event_from_dict",
    "http_tool",
    "is_agent_event",
    "is_step_event",
    "is_text_event",
    "is_tool_event",
    "load_agent_dir",
    "load_agent_dir_sync",
    "load_spec",
    "memory_store",
    "never",
    "once",
    "resolve_agent_dir",
    "resolve_agent_dir_sync",
    "resolve_provider",
    "spec_to_agent",
    "text_of",
    "tool",
    "tool_error_result",
    "web_fetch_tool",
]


def __getattr__(name: str) -> "Any":
    known = _RENAMED.get(name, name)
    if known not in _HOME:
        raise AttributeError(f"module 'lousho' has no attribute {name!r}")
    from importlib import import_module

    return globals().setdefault(name, getattr(import_module(_HOME[known]), known))


def __dir__() -> list[str]:
    return __all__
