"""The file form of permission rules, compiled to the rules that the gate checks.

In JSON and YAML a rule narrows itself with data, `"when": {"replicas": {"gte": 1, "lte": 10}}`; here that becomes a
predicate. A rule that cannot be understood is refused at load: one that silently never matches would guard nothing.
Source: agent-directories page.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from lousho.core.json_values import Json, to_json_value
from lousho.core.suggest import unknown_key_message
from lousho.core.unset import UNSET, Unset
from lousho.loader.config_file import ConfigFile, kind_of, shown_value
from lousho.loader.document import Path_
from lousho.loader.js_values import js_number, js_strictly_equal, js_string
from lousho.loader.text_pattern import PatternProblem, TextPattern
from lousho.policy.permissions import ACTIONS, PermissionRule, When

Check: TypeAlias = "Callable[[Json | Unset], bool | Awaitable[bool]]"

RULE_KEYS: Final = ("tool", "when", "action", "reason", "ttlMs")
ORDER_OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    "lt": lambda left, right: left < right,
    "lte": lambda left, right: left <= right,
    "gt": lambda left, right: left > right,
    "gte": lambda left, right: left >= right,
}
OPERATORS: Final = ("eq", "ne", *ORDER_OPERATORS, "matches")
LONGEST_TTL_MS: Final = 100 * 365.25 * 24 * 3600 * 1000
MAX_RULES: Final = 1_000


def compile_rules(file: ConfigFile, value: Any, path: Path_ = ("permissions",)) -> list[PermissionRule]:
    """Return the rules of a `permissions` list, in its order. Raises the file's code, naming the rule and its place.

    A code config may also hold finished `PermissionRule`s, compiled patterns as `tool` and functions as `when`.
    """
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Sequence):
        file.fail(path, f"must be a list of rules, not {kind_of(cast('object', value))}")
    rules: Sequence[Any] = cast("Sequence[Any]", value)
    if len(rules) > MAX_RULES:
        file.fail(path, f"holds {len(rules):,} rules; {MAX_RULES:,} is the most")
    return [_rule(file, rule, (*path, index)) for index, rule in enumerate(rules)]


def _rule(file: ConfigFile, value: Any, path: Path_) -> PermissionRule:
    if isinstance(value, PermissionRule):
        return value
    rule = dict(file.mapping(path, value))
    if file.is_code and "ttl_ms" in rule:
        rule["ttlMs"] = rule.pop("ttl_ms")
    for key in rule:
        if key not in RULE_KEYS:
            file.fail((*path, key), unknown_key_message(key, RULE_KEYS, noun="key of a rule"))
    for key in ("tool", "action"):
        if rule.get(key) is None:
            file.fail(path, f"the rule has no '{key}'")
    action = rule["action"]
    if action not in ACTIONS:
        file.fail((*path, "action"), f"must be one of {', '.join(ACTIONS)}, not {shown_value(action)}")
    reason = rule.get("reason")
    return PermissionRule(
        tool=_tool(file, rule["tool"], (*path, "tool")),
        action=action,
        when=_when(file, rule.get("when"), (*path, "when")),
        reason=None if reason is None else file.text((*path, "reason"), reason),
        ttl_ms=_ttl(file, rule.get("ttlMs"), action, (*path, "ttlMs")),
    )


def _tool(file: ConfigFile, value: Any, path: Path_) -> str | tuple[str, ...] | re.Pattern[str]:
    if file.is_code and isinstance(value, re.Pattern):
        return cast("re.Pattern[str]", value)
    if isinstance(value, (list, tuple)):
        names: Sequence[Any] = cast("Sequence[Any]", value)
        if not names:
            file.fail(path, "the list is empty, so the rule would never match")
        return tuple(file.text((*path, index), name) for index, name in enumerate(names))
    return file.text(path, value)


def _ttl(file: ConfigFile, value: Any, action: str, path: Path_) -> float | None:
    if value is None:
        return None
    if action != "ask":
        file.fail(path, f"only goes with the action 'ask', not with '{action}'")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= LONGEST_TTL_MS:
        file.fail(path, f"must be a number of milliseconds above 0, not {shown_value(value)}")
    return value


def _when(file: ConfigFile, value: Any, path: Path_) -> When | None:
    if value is None:
        return None
    if callable(value):
        if file.is_code:
            return cast("When", value)
        file.fail(path, "a function can only stand in agent.py")
    checks = [
        (name, check)
        for name, matcher in file.mapping(path, value).items()
        for check in _checks(file, matcher, (*path, name), f"argument '{name}'")
    ]

    def matches(args: Mapping[str, Any], _context: object) -> bool | Awaitable[bool]:
        return _all_hold(_argument_checks(args, checks))

    return matches


def _argument_checks(
    args: Mapping[str, Any], checks: Iterable[tuple[str, Check]]
) -> Iterable[Callable[[], bool | Awaitable[bool]]]:
    for name, check in checks:
        # Arguments are typed by the tool (dates, models, enums); the rule speaks of what went over the wire.
        value = to_json_value(args[name]) if name in args else UNSET
        yield lambda check=check, value=value: check(value)


def _all_hold(checks: Iterable[Callable[[], bool | Awaitable[bool]]]) -> bool | Awaitable[bool]:
    """Return whether all hold; an awaitable as soon as one needs waiting for."""
    waiting: list[Awaitable[bool]] = []
    failed = False
    for check in checks:
        answer = check()
        if inspect.isawaitable(answer):
            waiting.append(answer)
        elif not answer:
            failed = True
            break
    if failed:
        for unneeded in waiting:
            cast("Any", unneeded).close()
        return False
    return _all_of(waiting) if waiting else True


async def _all_of(waiting: Iterable[Awaitable[bool]]) -> bool:
    answers = [await answer for answer in waiting]
    return all(answers)


def _checks(file: ConfigFile, matcher: Any, path: Path_, of: str) -> list[Check]:
    """Return the checks one argument must pass, all of them."""
    if isinstance(matcher, str):
        return [_pattern_check(file, matcher, path, of)]
    if not isinstance(matcher, Mapping):
        example = f"; write {{ eq: {shown_value(matcher)} }}" if isinstance(matcher, (bool, int, float)) else ""
        file.fail(path, f"must be a regular expression or a mapping of operators, not {kind_of(matcher)}{example}")
    operators = file.mapping(path, matcher)
    if not operators:
        file.fail(path, f"names no operator; use some of {', '.join(OPERATORS)}")
    return [_operator_check(file, name, operand, (*path, name), of) for name, operand in operators.items()]


def _operator_check(file: ConfigFile, name: str, operand: Any, path: Path_, of: str) -> Check:
    if name == "matches":
        if not isinstance(operand, str):
            file.fail(path, f"must be a regular expression, not {kind_of(operand)}")
        return _pattern_check(file, operand, path, of)
    if name in ("eq", "ne"):
        if isinstance(operand, (dict, list, tuple)):
            kind = kind_of(cast("object", operand))
            file.fail(path, f"compares with a text, a number, true, false or null, not with {kind}")
        wanted = to_json_value(operand)
        return lambda value: js_strictly_equal(value, wanted) is (name == "eq")
    compare = ORDER_OPERATORS.get(name)
    if compare is not None:
        if isinstance(operand, bool) or not isinstance(operand, (int, float)) or operand != operand:
            file.fail(path, f"must be a number, not {shown_value(operand)}")
        limit = js_number(operand)
        return lambda value: compare(js_number(value), limit)
    return file.fail(path, unknown_key_message(name, OPERATORS, noun="operator"))


def _pattern_check(file: ConfigFile, pattern: str, path: Path_, of: str) -> Check:
    try:
        compiled = TextPattern(pattern)
    except PatternProblem as problem:
        file.fail(path, str(problem))
    return lambda value: compiled.search(js_string(value), of=of)
