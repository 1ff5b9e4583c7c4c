"""Checks of one agent: it is loaded as every command loads it, its key is required, its rules must name its tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lousho.core.errors import SDKError
from lousho.diagnose.keys import is_set, key_fix, keyed_providers, source_of
from lousho.diagnose.report import AgentFacts, Check, listed
from lousho.models.resolve import DEMO_MODEL

if TYPE_CHECKING:
    from lousho.loader.manifest import Skipped
    from lousho.loader.target import Target


class Examined(NamedTuple):
    """The checks of an agent, and what is known about it when it loads."""

    checks: list[Check]
    facts: AgentFacts | None


def examine_agent(path: str, env: Mapping[str, str], from_file: Set[str], cwd: Path) -> Examined:
    """Load the agent at `path` and check it. A failure to load is a failed check, not an exception.

    An agent that only lacks its model or key is loaded on the model that needs none, so that the rest of it is seen as well.
    """
    from lousho.loader.target import load_target

    name = f"Agent {path}"
    checks: list[Check] = []
    model: str | None = None
    try:
        try:
            target = load_target(path, command="doctor", cwd=cwd)
        except SDKError as error:
            if error.code not in ("LOUSHO_PROVIDER_MISSING_API_KEY", "LOUSHO_CONFIG_MISSING_PROVIDER"):
                raise
            checks.append(_missing_key(error))
            target = load_target(path, command="doctor", model=DEMO_MODEL, cwd=cwd)
        else:
            named = target.agent.options.model
            model = named if isinstance(named, str) else None
    except SDKError as error:
        return Examined([*checks, Check("agent", name, "fail", error.detail, error.hint, error.code)], None)
    except Exception as error:  # noqa: BLE001 - whatever an agent's own code does, the other checks are still wanted
        found = f"unexpected {type(error).__name__}: {error}"
        fix = f"See where it happened: run lousho chat {path} with LOUSHO_DEBUG=1"
        return Examined([*checks, Check("agent", name, "fail", found, fix)], None)
    facts = _facts(path, target, model)
    checks.append(Check("agent", name, "ok", f"the {facts.kind} {facts.name!r} loads"))
    if "model" in target.agent.options.per_run:
        checks.append(Check("agent.model", "Model", "ok", f"{target.agent.model_label}, by a function of the agent"))
    checks.extend(_model_check(model, env, from_file))
    checks.extend(_part_checks(facts, target))
    return Examined(checks, facts)


def _missing_key(error: SDKError) -> Check:
    """Return the failed check for what the agent's model needs and does not have."""
    id_, name = "agent.key", "Key of the agent's model"
    provider = next((entry for entry in keyed_providers() if entry.key_variable in error.detail), None)
    if provider is not None:
        fix = f"{key_fix(provider)}\nOr talk to it without a key: --model {DEMO_MODEL}"
        return Check(id_, name, "fail", error.detail, fix, error.code)
    any_key = " or ".join(entry.key_variable for entry in keyed_providers())
    fix = f"Name a model in the agent, or set {any_key}.\nlousho chat works without, on {DEMO_MODEL}"
    return Check(id_, name, "fail", "no model is named and no key is set", fix, error.code)


def _model_check(model: str | None, env: Mapping[str, str], from_file: Set[str]) -> Iterator[Check]:
    """Say which model the agent runs on, and that its key is there (it did not load otherwise)."""
    if model is None:
        return
    provider = next((entry for entry in keyed_providers() if model.startswith(f"{entry.name}/")), None)
    if provider is None or not is_set(env, provider.key_variable):
        yield Check("agent.model", "Model", "ok", model)
    else:
        key = f"{provider.key_variable} {source_of(provider.key_variable, from_file)}"
        yield Check("agent.model", "Model", "ok", f"{model} ({key})")


def _part_checks(facts: AgentFacts, target: Target) -> Iterator[Check]:
    """List the tools, the files that were passed over, and the permission rules that guard nothing."""
    tools = f"{len(facts.tools)}: {listed(facts.tools)}" if facts.tools else "none"
    if "tools" in target.agent.options.per_run:
        tools = "chosen per run, by a function of the agent"
    yield Check("agent.tools", "Tools", "ok", tools)
    for skipped in target.manifest.skipped:
        yield Check("agent.skipped", f"Skipped {skipped.path}", "warn", skipped.reason, _fix_of_skipped(skipped))
    if target.lacking is not None:
        fix = "Write there who the agent is and what it should do."
        yield Check("agent.instructions", "Instructions", "warn", target.lacking.rstrip("."), fix)
    told = {*map(str, target.manifest.skipped), target.lacking}
    for note in facts.notes:
        if note not in told:
            yield Check("agent.note", "Note", "ok", note)
    yield from _idle_rules(target)


def _fix_of_skipped(skipped: Skipped) -> str:
    if skipped.meant is not None:
        return f"Rename it to {skipped.meant}, or move it out of the agent's directory."
    return "Remove it, or leave it: the agent runs without."


def _facts(path: str, target: Target, model: str | None) -> AgentFacts:
    return AgentFacts(
        path=path,
        kind=target.kind,
        name=target.agent.name,
        model=model,
        tools=tuple(target.agent.tools),
        notes=tuple(target.notes),
    )


def _idle_rules(target: Target) -> Iterator[Check]:
    """Warn of permission rules whose tool does not exist: a `deny` with a typo guards nothing."""
    from lousho.core.suggest import nearest

    if "tools" in target.agent.options.per_run:
        return  # which tools there are is known in a run only
    known = list(target.agent.tools)
    for position, rule in enumerate(target.agent.options.permissions):
        named = [rule.tool] if isinstance(rule.tool, str) else rule.tool if isinstance(rule.tool, tuple) else []
        for tool in named:
            if tool == "*" or tool in known:
                continue
            close = nearest(tool, known)
            fix = f"Write {close!r}" if close else f"Name one of: {listed(known)}" if known else "Remove the rule"
            yield Check(
                f"agent.permissions.{position}",
                "Permission rule",
                "warn",
                f"{rule.action} {tool!r} guards nothing: the agent has no such tool",
                f"{fix}, or remove the rule." if close or known else f"{fix}.",
            )
