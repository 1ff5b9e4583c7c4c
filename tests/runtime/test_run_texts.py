"""The text a run ends with where a limit ended it, what it ends with where none did, and the label of the agent."""

from __future__ import annotations

from typing import Any

import pytest
from hostile import play, told
from runs import call, calls, of_type

from lousho import create_agent, define_tool, tool
from lousho.agent.preparation import CallOptions, RunChannel, new_state
from lousho.core.checked_input import checked_input
from lousho.runtime.loop import drive
from lousho.testing import mock_model


@tool(needs_approval=True)
async def deploy() -> str:
    """Deploy."""
    return "deployed"


@tool
async def look() -> str:
    """Look."""
    return "seen"


NO_ROOM = "Stopped: the model's reply reached its token limit (max_tokens) before it had any text."


@pytest.mark.spec("HAZ-22")
@pytest.mark.parametrize(
    ("turn", "reason", "text"),
    [
        pytest.param({"text": "", "finish_reason": "length"}, "length", NO_ROOM, id="no room for a word"),
        pytest.param({"text": "Half a", "finish_reason": "length"}, "length", "Half a", id="no room for the rest"),
        pytest.param({"text": "", "finish_reason": "stop"}, "stop", "", id="a model with nothing to say"),
        pytest.param({"text": "", "finish_reason": "content_filter"}, "content_filter", "", id="a filter"),
        pytest.param({"text": "", "finish_reason": "tool_calls"}, "stop", "", id="calls without calls"),
    ],
)
async def test_a_run_that_a_limit_ended_says_so_and_others_have_the_models_words(turn: Any, reason: str, text: str):
    played = await play(create_agent(provider=mock_model([turn])).stream("go"))
    result, done = played.ended, of_type(played.events, "run.done")[0]
    assert (result.finish_reason, result.text) == (done.finish_reason, done.text) == (reason, text)
    assert str(result.messages[-1].content) == turn["text"]  # what we say is in no transcript


@pytest.mark.spec("HAZ-22")
@pytest.mark.parametrize("said", ["", "I will look."])
async def test_the_step_limit_explains_itself_below_what_the_model_said_last(said: str):
    note = "Stopped after 1 step: the step limit was reached before the task was finished."
    turn = {"text": said, **call("look")}
    result = await create_agent(provider=mock_model([turn]), tools=[look], max_steps=1).send("go")
    assert (result.finish_reason, result.text) == ("max-steps", f"{said}\n\n{note}".strip())


@pytest.mark.spec("HAZ-22")
async def test_the_step_limit_explains_itself_behind_a_pause_too():
    model = mock_model([{"text": "Deploying.", **call("deploy")}])
    agent = create_agent(provider=model, tools=[deploy], max_steps=1)
    paused = await agent.send("go")
    result = await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert result.text == "Deploying.\n\nStopped after 1 step: the step limit was reached before the task was finished."


@pytest.mark.spec("BEY-29")
async def test_the_version_of_an_agent_is_on_the_start_of_its_runs_continued_ones_too():
    model = mock_model([call("deploy"), "Done.", "Hi."])
    agent = create_agent(provider=model, tools=[deploy], version="2.1")
    first = await play(agent.stream("go"))
    second = await play(agent.approvals.stream_resolve(id=str(first.ended.approval_id), approved=True))
    third = await play(agent.session("s").stream("go"))
    starts = [played.events[0] for played in (first, second, third)]
    assert [start.version for start in starts] == ["2.1"] * 3  # type: ignore[union-attr]
    assert starts[0].to_dict()["version"] == "2.1"
    unlabelled = await play(create_agent(provider=mock_model(["Hi."])).stream("go"))
    assert "version" not in unlabelled.events[0].to_dict()


class Notes:
    """A tracer that writes down its spans and what they are labelled with."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, str, dict[str, Any]]] = []

    def start(self, kind: str, name: str, parent: Any = None) -> Any:
        labels: dict[str, Any] = {}
        self.spans.append((kind, name, labels))
        return Label(labels)


class Label:
    def __init__(self, labels: dict[str, Any]) -> None:
        self.labels = labels

    def set(self, key: str, value: Any) -> None:
        self.labels[key] = value

    def end(self, error: BaseException | None = None) -> None:
        self.labels["ended"] = error is None


@pytest.mark.parametrize("version", ["2.1", None])
async def test_every_span_of_a_run_has_the_version_of_its_agent(version: str | None):
    agent = create_agent(provider=mock_model([call("look"), "Done."]), tools=[look], version=version)
    options = CallOptions.check()
    state = new_state(agent.options, checked_input("go"), options)
    deps = agent.run_dependencies(state, options, RunChannel.silent(options))
    tracer = Notes()
    deps.tracer = tracer
    await drive(state, deps)
    labels = {"ended": True} if version is None else {"agent_version": version, "ended": True}
    assert [span[:2] for span in tracer.spans] == [
        ("run", "agent"),
        ("chat", "mock-model"),
        ("tool", "look"),
        ("chat", "mock-model"),
    ]
    assert [span[2] for span in tracer.spans] == [labels] * 4


@pytest.mark.spec("TOOL-48")
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("inside", [None, lambda args, sandbox, ctx: "ran"], ids=["no way to", "no sandbox"])
async def test_a_tool_that_must_be_confined_never_runs_outside_of_a_sandbox(inside: Any, gated: bool):
    ran: list[Any] = []
    shell = define_tool(
        name="shell",
        description="Run a command",
        input={"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
        execute=lambda arguments: ran.append(arguments) or "ran",
        requires_sandbox=True,
        sandbox_execute=inside,
        needs_approval=gated,
    )
    model = mock_model([calls(("shell", {"command": "ls"}), ("shell", {})), "Then not."])
    result = await create_agent(provider=model, tools=[shell]).send("go")
    assert ran == []
    assert (result.finish_reason, result.text, result.tool_errors) == ("stop", "Then not.", 2)
    refused, invalid = told(result)
    assert (refused["kind"], refused["error"]) == ("sandbox", "SandboxRequiredError")
    assert ("sandbox_execute" if inside is None else "no sandbox") in refused["message"]
    assert invalid["kind"] == "validation"
