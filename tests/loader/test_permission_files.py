"""Permission rules written in files: what they match, decided by real runs and by the rules themselves."""

from __future__ import annotations

import asyncio
import enum
import json
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from runs import call

from lousho import ConfigurationError, load_agent_dir, resolve_agent_dir_sync
from lousho.core.errors import ToolExecutionError
from lousho.policy.permissions import PermissionContext, PermissionRule
from lousho.testing import mock_model

AgentFolder = Callable[..., Path]

SHELL = """
from lousho import tool

RAN = []


@tool
def shell(command: str) -> str:
    \"\"\"Run a command.\"\"\"
    RAN.append(command)
    return "ran " + command


@tool
def deploy(environment: str = "prod", replicas: float | str = 1) -> str:
    \"\"\"Deploy.\"\"\"
    RAN.append(environment)
    return "deployed"
"""
CONTEXT = PermissionContext(tool_name="deploy", tool_call_id="c1")


def rules_of(folder: Path) -> list[PermissionRule]:
    return resolve_agent_dir_sync(folder).config["permissions"]


def rule(agent_folder: AgentFolder, when: Any) -> PermissionRule:
    permissions = [{"tool": "deploy", "when": when, "action": "deny"}]
    (found,) = rules_of(agent_folder({"agent.json": json.dumps({"permissions": permissions})}))
    return found


async def outcome(agent_folder: AgentFolder, permissions: Any, *turns: Any) -> tuple[str, list[str]]:
    """Return how a run of these calls ended, and what the model read of each call."""
    folder = agent_folder({"agent.json": json.dumps({"permissions": permissions}), "tools/shell.py": SHELL})
    agent = await load_agent_dir(folder, provider=mock_model([*turns, "end"]))
    result = await agent.send("go")
    return result.finish_reason, [str(message.content) for message in result.messages if message.role == "tool"]


@pytest.mark.spec("DIR-18")
async def test_the_first_rule_that_matches_decides(agent_folder: AgentFolder):
    permissions = [
        {"tool": "shell", "when": {"command": "\\brm\\b"}, "action": "deny", "reason": "No deletes"},
        {"tool": "shell", "when": {"command": "\\brm\\b"}, "action": "allow"},
        {"tool": ["shell", "other"], "action": "allow"},
        {"tool": "*", "action": "ask"},
    ]
    finish, results = await outcome(agent_folder, permissions, call("shell", command="rm -rf x"))
    assert finish == "stop"
    assert json.loads(results[0])["kind"] == "denied"
    assert "No deletes" in results[0]
    assert await outcome(agent_folder, permissions, call("shell", command="ls")) == ("stop", ["ran ls"])
    assert (await outcome(agent_folder, permissions, call("deploy")))[0] == "awaiting-approval"


@pytest.mark.spec("DIR-18")
async def test_yaml_rules_decide_like_json_rules(agent_folder: AgentFolder):
    text = "permissions:\n  - {tool: '*', action: deny, reason: no}\n  - {tool: shell, action: allow}\n"
    folder = agent_folder({"agent.yaml": text, "tools/shell.py": SHELL})
    agent = await load_agent_dir(folder, provider=mock_model([call("shell", command="ls"), "end"]))
    told = json.loads(str((await agent.send("go")).messages[-2].content))
    assert (told["kind"], told["message"].endswith("no")) == ("denied", True), told


@pytest.mark.spec("DIR-18", "DIR-19")
async def test_a_code_config_takes_patterns_and_functions_too(agent_folder: AgentFolder):
    source = """
        import re

        from lousho import ask

        config = {
            "permissions": [
                {"tool": re.compile("^sh"), "when": lambda args, context: args["command"] == context.tool_name, "action": "deny"},
                {"tool": "shell", "when": {"command": "^ls"}, "action": "allow"},
                ask("*", ttl_ms=1000),
            ]
        }
    """
    folder = agent_folder({"agent.py": source, "tools/shell.py": SHELL})
    found: dict[str, str] = {}
    for command in ("shell", "ls -l", "pwd"):
        agent = await load_agent_dir(folder, provider=mock_model([call("shell", command=command), "end"]))
        result = await agent.send("go")
        found[command] = result.finish_reason if result.approval_id else str(result.messages[-2].content)[:9]
    assert found == {"shell": '{"error":', "ls -l": "ran ls -l", "pwd": "awaiting-approval"}
    assert [one.ttl_ms for one in rules_of(folder)] == [None, None, 1000]


@pytest.mark.spec("DIR-18")
def test_the_time_to_decide_goes_with_ask_only(agent_folder: AgentFolder):
    permissions = [{"tool": "x", "action": "ask", "ttlMs": 5000}]
    (found,) = rules_of(agent_folder({"agent.json": json.dumps({"permissions": permissions})}))
    assert (found.action, found.ttl_ms) == ("ask", 5000)
    permissions = [{"tool": "x", "action": "deny", "ttlMs": 5000}]
    with pytest.raises(ConfigurationError, match="'permissions.0.ttlMs': only goes with the action 'ask'"):
        rules_of(agent_folder({"agent.json": json.dumps({"permissions": permissions})}))


class Size(enum.Enum):
    SMALL = "small"


ABSENT: dict[str, Any] = {}


@pytest.mark.spec("DIR-19")
@pytest.mark.parametrize(
    ("when", "args", "matches"),
    [
        pytest.param({"replicas": {"gte": 1, "lte": 10}}, {"replicas": 0}, False, id="0 is below"),
        pytest.param({"replicas": {"gte": 1, "lte": 10}}, {"replicas": 1}, True, id="1 fits"),
        pytest.param({"replicas": {"gte": 1, "lte": 10}}, {"replicas": 10}, True, id="10 fits"),
        pytest.param({"replicas": {"gte": 1, "lte": 10}}, {"replicas": 11}, False, id="11 is above"),
        pytest.param({"replicas": {"gte": 1, "lte": 10}}, {"replicas": "x"}, False, id="a word never matches"),
        pytest.param({"replicas": {"gte": 1, "lte": 10}}, ABSENT, False, id="absent never matches"),
        pytest.param({"replicas": {"gte": 1, "lte": 10}}, {"replicas": " 7 "}, True, id="digits in a text count"),
        pytest.param({"replicas": {"lt": 1}}, {"replicas": 1}, False, id="1 is not below 1"),
        pytest.param({"replicas": {"lt": 1}}, {"replicas": 0.5}, True, id="a half is below 1"),
        pytest.param({"replicas": {"gt": 1}}, {"replicas": 1}, False, id="1 is not above 1"),
        pytest.param({"replicas": {"gt": 1}}, {"replicas": 1.5}, True, id="one and a half is above 1"),
        pytest.param({"replicas": {"lt": 1}}, {"replicas": "x"}, False, id="a word is not below"),
        pytest.param({"replicas": {"gt": 1}}, {"replicas": "x"}, False, id="nor above"),
        pytest.param({"replicas": {"lt": 1}}, {"replicas": ""}, True, id="an empty text is 0"),
        pytest.param({"replicas": {"lt": 1}}, {"replicas": None}, True, id="null is 0"),
        pytest.param({"replicas": {"lt": 1}}, {"replicas": {"a": 1}}, False, id="an object is no number"),
        pytest.param({"replicas": {"gt": 15}}, {"replicas": "0x10"}, True, id="hexadecimal digits"),
        pytest.param({"replicas": {"gt": 0}}, {"replicas": "1_0"}, False, id="underscores are no digits"),
        pytest.param({"replicas": {"eq": 1}}, {"replicas": 1.0}, True, id="1 equals 1.0"),
        pytest.param({"replicas": {"eq": 1}}, {"replicas": True}, False, id="1 is not true"),
        pytest.param({"replicas": {"eq": 1}}, {"replicas": "1"}, False, id="1 is not '1'"),
        pytest.param({"replicas": {"eq": None}}, {"replicas": None}, True, id="null equals null"),
        pytest.param({"replicas": {"eq": None}}, ABSENT, False, id="absent is not null"),
        pytest.param({"replicas": {"ne": 1}}, {"replicas": True}, True, id="true is not 1"),
        pytest.param({"replicas": {"ne": 1}}, ABSENT, True, id="absent is not 1"),
        pytest.param({"replicas": {"ne": 1}}, {"replicas": 1.0}, False, id="1.0 is 1"),
        pytest.param({"replicas": "^true$"}, {"replicas": True}, True, id="true as text"),
        pytest.param({"replicas": "^null$"}, {"replicas": None}, True, id="null as text"),
        pytest.param({"replicas": "^undefined$"}, ABSENT, True, id="absent as text"),
        pytest.param({"replicas": "^1$"}, {"replicas": 1.0}, True, id="1.0 as text"),
        pytest.param({"replicas": "^1e[+]21$"}, {"replicas": 1e21}, True, id="a large number as text"),
        pytest.param({"replicas": "^0.1,,a,b$"}, {"replicas": [0.1, None, ["a", "b"]]}, True, id="a list as text"),
        pytest.param({"replicas": "object Object"}, {"replicas": {"a": 1}}, True, id="an object as text"),
        pytest.param({"replicas": "b"}, {"replicas": "abc"}, True, id="searched, not matched from the start"),
        pytest.param({"replicas": {"matches": "^a", "ne": "ab"}}, {"replicas": "ab"}, False, id="all operators"),
        pytest.param({"replicas": {"matches": "^a", "ne": "ab"}}, {"replicas": "ac"}, True, id="all operators hold"),
        pytest.param({"a": "x", "b": {"eq": 1}}, {"a": "x", "b": 2}, False, id="all arguments"),
        pytest.param({"a": "x", "b": {"eq": 1}}, {"a": "x", "b": 1}, True, id="all arguments hold"),
        pytest.param({"a": "^small$", "b": "^2026-11-30$"}, {"a": Size.SMALL, "b": date(2026, 11, 30)}, True, id="typed"),
        pytest.param({}, {"a": 1}, True, id="no condition"),
    ],
)  # fmt: skip
async def test_when_compares_arguments_as_the_file_form_says(
    agent_folder: AgentFolder, when: Any, args: Any, matches: bool
):
    assert await rule(agent_folder, when).matches(args, CONTEXT) is matches


@pytest.mark.spec("DIR-18", "DIR-19")
@pytest.mark.parametrize(
    ("permissions", "says"),
    [
        pytest.param({}, "agent.json:1:2: 'permissions': must be a list of rules, not a mapping", id="no list"),
        pytest.param(["x"], "agent.json:1:18: 'permissions.0': must be a mapping, not a text", id="no mapping"),
        pytest.param([{"action": "deny"}], "'permissions.0': the rule has no 'tool'", id="no tool"),
        pytest.param([{"tool": "x"}], "'permissions.0': the rule has no 'action'", id="no action"),
        pytest.param([{"tool": "x", "action": "block"}], "'permissions.0.action': must be one of allow, ask, deny, not 'block'", id="action"),
        pytest.param([{"tool": [], "action": "deny"}], "'permissions.0.tool': the list is empty, so the rule would never match", id="empty list"),
        pytest.param([{"tool": ["a", 3], "action": "deny"}], "'permissions.0.tool.1': must be a text, not a number", id="a number as name"),
        pytest.param([{"tool": "x", "actoin": "deny"}], "'actoin' is not a known key of a rule (did you mean 'action'?)", id="a typo"),
        pytest.param([{"tool": "x", "action": "deny", "when": "rm"}], "'permissions.0.when': must be a mapping, not a text", id="when is a text"),
        pytest.param([{"tool": "x", "action": "deny", "when": {"a": True}}], "not true or false; write { eq: true }", id="a bare value"),
        pytest.param([{"tool": "x", "action": "deny", "when": {"a": {}}}], "'permissions.0.when.a': names no operator", id="no operator"),
        pytest.param([{"tool": "x", "action": "deny", "when": {"a": {"lte ": 3}}}], "'lte ' is not a known operator (did you mean 'lte'?)", id="operator"),
        pytest.param([{"tool": "x", "action": "deny", "when": {"a": {"lt": "3"}}}], "when.a.lt': must be a number, not '3'", id="operand"),
        pytest.param([{"tool": "x", "action": "deny", "when": {"a": {"eq": []}}}], "when.a.eq': compares with a text", id="a list as operand"),
        pytest.param([{"tool": "x", "action": "deny", "when": {"a": "("}}], "when.a': the pattern is not a valid regular expression", id="pattern"),
        pytest.param([{"tool": "x", "action": "deny", "when": {"a": "(?<n>x)"}}], "a named group is written (?P<name>...)", id="named group"),
        pytest.param([{"tool": "x", "action": "deny", "when": {"a": "x" * 1001}}], "the pattern is longer than 1,000 characters", id="long pattern"),
        pytest.param([{"tool": "x", "action": "deny", "reason": 3}], "'permissions.0.reason': must be a text", id="reason"),
    ],
)  # fmt: skip
def test_a_rule_that_could_guard_nothing_is_refused_with_its_place(
    agent_folder: AgentFolder, permissions: Any, says: str
):
    with pytest.raises(ConfigurationError) as caught:
        rules_of(agent_folder({"agent.json": json.dumps({"permissions": permissions})}))
    assert caught.value.code == "LOUSHO_AGENT_DIR_INVALID"
    assert says in caught.value.detail


@pytest.mark.spec("DIR-19")
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        pytest.param("(a+)+$", "a" * 40 + "b", id="nested repeats"),
        pytest.param(".*.*.*=x", "y" * 20_000, id="many stars on a long text"),
    ],
)
async def test_a_pattern_that_explodes_fails_the_call_in_bounded_time(
    agent_folder: AgentFolder, pattern: str, text: str
):
    found = rule(agent_folder, {"a": pattern})
    started = time.perf_counter()
    with pytest.raises(ToolExecutionError, match="took longer than 2 s"):
        await found.matches({"a": text}, CONTEXT)
    assert time.perf_counter() - started < 15


@pytest.mark.spec("DIR-19")
async def test_a_pattern_that_might_explode_but_does_not_is_answered(agent_folder: AgentFolder):
    found = rule(agent_folder, {"a": "(\\w+\\s?)*rm", "b": {"eq": 1}})
    text = "some words and more words and then some " * 20
    assert await found.matches({"a": text + "rm", "b": 1}, CONTEXT) is True
    assert await found.matches({"a": text + "rm", "b": 2}, CONTEXT) is False
    assert await found.matches({"a": "é\ud800 rm", "b": 1}, CONTEXT) is True


@pytest.mark.spec("DIR-19")
async def test_a_text_beyond_the_limit_fails_the_call_instead_of_slipping_through(agent_folder: AgentFolder):
    permissions = [{"tool": "shell", "when": {"command": "rm"}, "action": "deny"}]
    finish, results = await outcome(agent_folder, permissions, call("shell", command="x" * 20_001))
    assert finish == "stop"
    assert "has 20,001 characters; a permission rule matches at most 20,000" in results[0]


async def test_a_call_whose_rule_ran_out_of_time_is_denied(agent_folder: AgentFolder):
    permissions = [{"tool": "shell", "action": "ask", "ttlMs": 1}]
    folder = agent_folder({"agent.json": json.dumps({"permissions": permissions}), "tools/shell.py": SHELL})
    agent = await load_agent_dir(folder, provider=mock_model([call("shell", command="ls"), "end"]))
    paused = await agent.send("go")
    (pending,) = await agent.approvals.list()
    while datetime.now(UTC) <= datetime.fromisoformat(str(pending.expires_at)) + timedelta(milliseconds=1):
        await asyncio.sleep(0)
    result = await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert "expired" in str(result.messages[-2].content)
    assert agent.tools["shell"].execute.__globals__["RAN"] == []
