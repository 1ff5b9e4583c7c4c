"""The one table of error codes: code, area, HTTP status and hint.

Everything that speaks about codes reads this file: the exceptions, the HTTP routes, the command line and the test that
holds `docs/errors.md` to it. It imports nothing of ours, so every room may use it. The exceptions themselves are in
`lousho.core.errors`.

Source: errors page.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

DOCS_BASE_URL = "https://lousho.com/errors"
"""The page that has one section per code."""


class ErrorCode(NamedTuple):
    """One row of the table. Source: errors page."""

    code: str
    """The stable name, `LOUSHO_<AREA>_<NAME>`: programs branch on it."""
    area: str
    """The heading the code is documented under, e.g. `Tools`."""
    http_status: int | None
    """The status a route answers with; None where the code has none of its own (a route then answers 500)."""
    hint: str
    """One sentence that says how to fix it."""


_Row = tuple[str, int | None, str]

_CONFIGURATION: tuple[_Row, ...] = (
    ("LOUSHO_CONFIG_INVALID", None, "Change the option or argument that the message names."),
    (
        "LOUSHO_CONFIG_MISSING_PROVIDER",
        None,
        (
            "Pass a model string such as create_agent(model='openai/gpt-4.1-mini'), a provider instance, or set"
            " LOUSHO_MODEL or a provider API key."
        ),
    ),
    ("LOUSHO_CONFIG_MISSING_AGENT", None, "Pass an agent (AgentBuilder makes one), or use create_agent() instead."),
    ("LOUSHO_CONFIG_MISSING_INPUT", None, "Pass the user's message as a string or a list of messages."),
    ("LOUSHO_CONFIG_CONFLICTING_OPTIONS", None, "Keep one of the two options (for create_agent(): instructions)."),
    (
        "LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE",
        None,
        "Pass store=memory_store(), a SqliteStore or another store with checkpoints, or drop session_id.",
    ),
    ("LOUSHO_CONFIG_RESOLVER_FAILED", None, "Fix the function that the message names."),
)

_PROVIDERS: tuple[_Row, ...] = (
    ("LOUSHO_PROVIDER_SPEC_INVALID", None, "Write provider and model, for example 'openai/gpt-4.1-mini'."),
    ("LOUSHO_PROVIDER_UNKNOWN", None, "Use one of the supported prefixes, or pass a provider instance of your own."),
    (
        "LOUSHO_PROVIDER_MISSING_API_KEY",
        422,
        "Set the variable that the message names, or pass a configured provider instance.",
    ),
    (
        "LOUSHO_PROVIDER_REQUEST_FAILED",
        None,
        (
            "Top up or switch provider when the quota is spent, correct the API key when access was denied, shorten the"
            " conversation when it is too long, and try again when the failure is temporary."
        ),
    ),
    (
        "LOUSHO_PROVIDER_RATE_LIMITED",
        None,
        "Try again after the wait in compacted.retry_after_ms, or send fewer requests.",
    ),
    ("LOUSHO_PEER_MISSING", 500, "Run the install command that the message shows."),
    (
        "LOUSHO_HOSTED_TOOL_UNSUPPORTED",
        None,
        "Run the hosted tool on a provider that offers it, or leave it out of tools for this provider.",
    ),
    (
        "LOUSHO_UNSUPPORTED_CONTENT",
        None,
        (
            "Use a provider that takes this media type, put the file's text into the message, or set"
            " unsupported_files='text-note'."
        ),
    ),
)

_SPEC_FILES: tuple[_Row, ...] = (
    ("LOUSHO_SPEC_NOT_FOUND", None, "Check the path in the message and the directory you are in."),
    ("LOUSHO_SPEC_INVALID", None, "Correct every field that the message lists."),
    ("LOUSHO_SPEC_UNKNOWN_FIELD", None, "Rename the field to the suggested one, or remove it."),
    ("LOUSHO_SPEC_UNSUPPORTED_FORMAT", None, "Give the file a .yaml, .yml or .json name, converting it if needed."),
    (
        "LOUSHO_SPEC_UNSUPPORTED",
        None,
        "Remove the field that the message names, or build the agent in code with create_agent().",
    ),
    ("LOUSHO_SPEC_SECRET_MISSING", None, "Set the environment variable, or store the secret under the name shown."),
)

_TOOLS: tuple[_Row, ...] = (
    (
        "LOUSHO_TOOL_NOT_FOUND",
        None,
        "Use a tool from the list in the message, or pass your own with create_agent(tools=[...]).",
    ),
    (
        "LOUSHO_TOOL_NEEDS_CREDENTIALS",
        None,
        "Build the agent with create_agent() and pass it a tool of your own that has the credentials.",
    ),
    (
        "LOUSHO_TOOL_EXECUTION_FAILED",
        None,
        "Look at tool_name and cause, then fix the tool or the input it was given.",
    ),
    (
        "LOUSHO_TOOL_ARGS_INVALID",
        None,
        "Correct the arguments that the message names, or describe the fields more clearly for the model.",
    ),
    (
        "LOUSHO_MCP_START_FAILED",
        None,
        "Read the server's stderr lines in the message, or run its command yourself.",
    ),
    (
        "LOUSHO_MCP_CALL_FAILED",
        None,
        "Check that the MCP server is running, and raise its timeoutMs if the request timed out.",
    ),
)

_APPROVALS_AND_SESSIONS: tuple[_Row, ...] = (
    (
        "LOUSHO_APPROVAL_STORE_MISSING",
        None,
        "Pass approval_store=InMemoryApprovalStore() or a persistent store, or use create_agent().",
    ),
    (
        "LOUSHO_APPROVAL_NOT_FOUND",
        404,
        "Resolve an id that agent.approvals.list() shows; each approval is resolved once.",
    ),
    ("LOUSHO_APPROVAL_ORPHANED", None, "Start a new turn or run; the paused one cannot be continued."),
    (
        "LOUSHO_APPROVAL_CONFLICT",
        409,
        "Do not decide again: the run goes on with the decision that came first.",
    ),
    (
        "LOUSHO_APPROVAL_FORBIDDEN",
        403,
        "Decide as a caller that authorize_approval accepts, or change authorize_approval.",
    ),
    (
        "LOUSHO_APPROVAL_DECISION_INVALID",
        400,
        "Pass approved=True or approved=False with an optional note, or answer='...' for a question.",
    ),
    (
        "LOUSHO_APPROVAL_KIND_MISMATCH",
        400,
        "Answer a question with answer(), decide any other call with resolve(); approvals.get(id).kind says which.",
    ),
    ("LOUSHO_SESSION_FORBIDDEN", 403, "Use a session that this caller owns, or change authorize_session."),
    (
        "LOUSHO_REQUEST_FORBIDDEN",
        403,
        (
            "Call from the server's own origin, or add the origin to allowed_origins or the host to allowed_hosts"
            " (--allowed-hosts)."
        ),
    ),
    ("LOUSHO_REQUEST_INVALID", 400, "Send the fields that the message names."),
    (
        "LOUSHO_UNSUPPORTED_MEDIA_TYPE",
        415,
        "Send the header Content-Type: application/json, or set require_json_body=False.",
    ),
    ("LOUSHO_SESSION_AWAITING_APPROVAL", 409, "Resolve the pending approval, then send again."),
    ("LOUSHO_SESSION_ID_INVALID", 400, "Use an id such as 'chat-9f2c4e7a1b', or omit it to get a generated one."),
    (
        "LOUSHO_SESSION_FILE_CORRUPT",
        None,
        "Restore the transcript from a backup, or start the session over with session.clear().",
    ),
    (
        "LOUSHO_SESSION_BUSY",
        409,
        "Await the turn that is running, then send again.",
    ),
    (
        "LOUSHO_SESSION_TURN_PENDING",
        None,
        "Finish the turn with session.resume() or drop it with session.discard_pending(), then call again.",
    ),
    (
        "LOUSHO_SESSION_TURN_FAILED",
        None,
        "Drop the turn with session.discard_pending() and send again, or fix the cause and call session.resume().",
    ),
    ("LOUSHO_SESSION_STREAM_UNSUPPORTED", None, "Get the session from agent.session(), or call send()."),
    ("LOUSHO_SESSION_STEP_NOT_FOUND", None, "Pick a step that session.history() lists, or 0 to keep nothing."),
    ("LOUSHO_SESSION_EXISTS", None, "Pick an unused id, or leave id out to get <id>-fork-<n>."),
    ("LOUSHO_SESSION_FORK_UNSUPPORTED", None, "Get the session from agent.session(), which can fork."),
    (
        "LOUSHO_REMOTE_UNAUTHORIZED",
        None,
        "Pass the deployment's LOUSHO_API_TOKEN with --token or in LOUSHO_EVAL_TOKEN.",
    ),
    (
        "LOUSHO_REMOTE_REQUEST_FAILED",
        None,
        "Check the URL in the message, GET <url>/health and the deployment's logs.",
    ),
    (
        "LOUSHO_SUBAGENT_TASK_NOT_FOUND",
        None,
        "Use a taskId of this lead session with the same agent, or omit taskId to start a new task.",
    ),
    ("LOUSHO_SUBAGENT_TASK_BUSY", None, "Wait with agent_await or stop it with agent_cancel, then continue the task."),
    ("LOUSHO_CHECKPOINT_NOT_FOUND", None, "Fork at one of the listed steps, or raise history_limit on the store."),
    (
        "LOUSHO_CHECKPOINT_CORRUPT",
        None,
        "Remove the record from its store: what it held cannot be continued.",
    ),
    (
        "LOUSHO_AGENT_DRIFT",
        None,
        "Resume with the agent that saved the run, or set on_agent_drift to 'warn' or 'ignore'.",
    ),
    (
        "LOUSHO_RESUME_TOOL_MISSING",
        None,
        "Give the agent the tool back under the same name, or drop the paused run.",
    ),
    ("LOUSHO_RUN_ALREADY_ITERATED", None, "Collect the events in the first loop, or call stream() again."),
)

_SCHEDULES: tuple[_Row, ...] = (
    (
        "LOUSHO_SCHEDULE_INVALID",
        None,
        "Correct the cron expression, or give the schedule exactly one of prompt and run.",
    ),
    (
        "LOUSHO_SCHEDULE_RUN_INCOMPLETE",
        None,
        (
            "Resolve the pending approval, or change the prompt, tools, output schema or limits so that an unattended turn"
            " can finish."
        ),
    ),
)

_CHANNELS: tuple[_Row, ...] = (
    ("LOUSHO_CHANNEL_INVALID", None, "Export a channel made with define_channel() or one of the channel factories."),
    ("LOUSHO_MEMORY_INVALID", None, "Export define_memory(...), or the same options without a name."),
)

_REGISTRY: tuple[_Row, ...] = (
    ("LOUSHO_REGISTRY_UNREACHABLE", None, "Check --registry (or LOUSHO_REGISTRY) and your connection."),
    ("LOUSHO_REGISTRY_ITEM_NOT_FOUND", None, "Run lousho add --list and use one of the names it shows."),
    ("LOUSHO_REGISTRY_INVALID", None, "Fix the registry document that the message names."),
    ("LOUSHO_REGISTRY_UNSAFE_PATH", None, "Do not install the item, and tell whoever hosts the registry."),
    ("LOUSHO_REGISTRY_FILE_EXISTS", None, "Pass --overwrite, or move your file out of the way first."),
    (
        "LOUSHO_REGISTRY_MANIFEST_MISMATCH",
        None,
        "Do not install the item; its author has to fix the code or declare the permission.",
    ),
)

_SANDBOX: tuple[_Row, ...] = (
    (
        "LOUSHO_SANDBOX_EGRESS_UNSUPPORTED",
        None,
        "Run on a Linux host with Docker Engine 25.0.5 or later, or use network='none'.",
    ),
    (
        "LOUSHO_SANDBOX_PATH_DENIED",
        None,
        "Write below the sandbox's root, or construct the sandbox with the root that should hold the file.",
    ),
)

_DIRECTORIES_SKILLS_AND_FLOWS: tuple[_Row, ...] = (
    ("LOUSHO_AGENT_DIR_INVALID", None, "Correct the file that the message names."),
    ("LOUSHO_SKILL_INVALID", None, "Give every skill a unique name, a description and content."),
    ("LOUSHO_FLOW_INVALID", None, "Fix the part of the flow that the message names."),
    ("LOUSHO_FLOW_TOOL_DENIED", None, "Pass approve in the flow context, or change the rule that denied the call."),
    ("LOUSHO_FLOW_CHANGED", None, "Resume with the flow that started the run, or start a new run_id."),
)

_STORAGE_AND_DEPLOYMENT: tuple[_Row, ...] = (
    ("LOUSHO_STORAGE_FAILED", None, "Check the path and its permissions, and create a new store after closing one."),
    ("LOUSHO_STORAGE_BUSY", None, "Retry the call, and find what holds the lock if it keeps happening."),
    ("LOUSHO_TRIGGER_INVALID", None, "Write the options as in the message's example."),
    (
        "LOUSHO_CHANNEL_REQUEST_FAILED",
        None,
        "Check the bot's token and permissions, and whether the platform is up.",
    ),
    ("LOUSHO_DEPLOY_FAILED", None, "Do what the message says, then build or start again."),
    (
        "LOUSHO_SERVER_UNPROTECTED",
        None,
        "Set LOUSHO_API_TOKEN, add an auth.py, bind to 127.0.0.1, or set LOUSHO_ALLOW_PUBLIC=1 to serve it openly.",
    ),
)

_TESTS_AND_EVALS: tuple[_Row, ...] = (
    ("LOUSHO_EVALS_INVALID", None, "Use the eval helper the way the message says."),
    ("LOUSHO_TEST_FAILED", None, "Read the message, then fix the agent or the script of the test."),
    (
        "LOUSHO_CASSETTE_INVALID",
        None,
        "Record the cassette again: run the test once with record_replay(..., mode='record').",
    ),
)

_GENERAL: tuple[_Row, ...] = (
    ("LOUSHO_GENERIC_ERROR", None, "Read the message; it says what failed."),
    ("LOUSHO_AGENT_EXECUTION_FAILED", None, "Look at cause for the failure underneath."),
    ("LOUSHO_FLOW_EXECUTION_FAILED", None, "Look at step and cause to see which step failed and why."),
    ("LOUSHO_VALIDATION_FAILED", None, "Fix the fields that errors lists."),
    ("LOUSHO_OPERATION_TIMEOUT", None, "Raise the timeout, or make the operation faster."),
    ("LOUSHO_OUTPUT_INVALID", None, "See the structured output page; such a run ends with output_error."),
    ("LOUSHO_BUDGET_EXCEEDED", None, "Raise the limit that the message names, or drop on_exceeded='throw'."),
    ("LOUSHO_GUARDRAIL_TRIPPED", None, "Look at guardrail to see what blocked the run, or drop on_tripped='throw'."),
)

_AUTH: tuple[_Row, ...] = (("LOUSHO_AUTH_CONFIG_INVALID", None, "Change the auth option that the message names."),)

_OAUTH: tuple[_Row, ...] = (
    (
        "LOUSHO_TOKEN_KEY_MISSING",
        None,
        "Make a key once with generate_token_key(), then pass it as token_key or set LOUSHO_TOKEN_KEY.",
    ),
    (
        "LOUSHO_TOKEN_DECRYPT_FAILED",
        None,
        (
            "Use the key the tokens were written with (list old keys after the new one), or delete the record and sign in"
            " again."
        ),
    ),
    (
        "LOUSHO_OAUTH_PRINCIPAL_REQUIRED",
        None,
        "Serve the agent behind route auth or a channel, or define the provider with credential_owner='app'.",
    ),
    (
        "LOUSHO_OAUTH_APP_SIGNIN_REQUIRED",
        None,
        "Sign the app in once by opening the URL of agent.oauth.sign_in_url(provider).",
    ),
    ("LOUSHO_OAUTH_STORE_MISSING", None, "Pass create_agent(store=...) a store that keeps tokens."),
    ("LOUSHO_OAUTH_STATE_INVALID", 400, "Start the sign-in again from a fresh link."),
    (
        "LOUSHO_SIGNIN_PENDING",
        409,
        "Finish the sign-in in the browser and approve again, or decide with approved=False to cancel the call.",
    ),
    (
        "LOUSHO_OAUTH_TOKEN_EXCHANGE_FAILED",
        502,
        "Check the provider's token URL, client id, secret, client auth and redirect URI, then sign in again.",
    ),
    (
        "LOUSHO_MCP_AUTH_REQUIRED",
        None,
        "Sign the app in once by opening the URL of agent.oauth.mcp_sign_in_url('<server>').",
    ),
)


def _table() -> dict[str, ErrorCode]:
    areas: tuple[tuple[str, tuple[_Row, ...]], ...] = (
        ("Configuration", _CONFIGURATION),
        ("Providers and extras", _PROVIDERS),
        ("Agent spec files", _SPEC_FILES),
        ("Tools", _TOOLS),
        ("Approvals and sessions", _APPROVALS_AND_SESSIONS),
        ("Schedules", _SCHEDULES),
        ("Channels", _CHANNELS),
        ("Registry", _REGISTRY),
        ("Sandbox", _SANDBOX),
        ("Agent directories, skills and flows", _DIRECTORIES_SKILLS_AND_FLOWS),
        ("Storage, deployment and integrations", _STORAGE_AND_DEPLOYMENT),
        ("Tests and evals", _TESTS_AND_EVALS),
        ("General", _GENERAL),
        ("Auth", _AUTH),
        ("OAuth", _OAUTH),
    )
    return {code: ErrorCode(code, area, status, hint) for area, rows in areas for code, status, hint in rows}


ERROR_TABLE: Mapping[str, ErrorCode] = MappingProxyType(_table())
"""Every code with its area, HTTP status and hint, in the order of the errors page."""

ERROR_CODES: Mapping[str, str] = MappingProxyType({row.code: row.hint for row in ERROR_TABLE.values()})
"""Every code and its hint. Source: errors page."""


def docs_url(code: str) -> str:
    """Return the link to the documentation section of `code`. Source: errors page."""
    return f"{DOCS_BASE_URL}#{code.lower()}"


def hint_for(code: str) -> str:
    """Return the hint of `code`; a code that is not in the table gets the generic one. Source: errors page."""
    return ERROR_CODES.get(code) or ERROR_CODES["LOUSHO_GENERIC_ERROR"]
