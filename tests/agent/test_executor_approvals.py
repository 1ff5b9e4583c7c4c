"""A run of the executor that waits for a person: where it is kept, and going on with nothing but store, tools, provider."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from post_office import SEND, Desk, told
from runs import WAIT, call, calls, collect, of_type, types

from lousho import (
    CancelSignal,
    InMemoryApprovalStore,
    SDKError,
    ask_question_tool,
    deny,
    tool,
)
from lousho.executor import (
    AgentConfig,
    AgentExecutor,
    ToolRegistry,
    resume_after_approval,
    resume_after_approval_sync,
    stream_resume_after_approval,
    stream_resume_after_approval_sync,
)
from lousho.testing import check_event_order, mock_model


@pytest.mark.spec("EXEC-09")
@pytest.mark.parametrize("given", ["mapping", "keywords"])
async def test_a_decision_continues_the_run_with_store_registry_and_provider(given: str):
    desk, model = Desk(), mock_model([SEND, "Sent the report to Sam."])
    paused = await desk.pause(model, temperature=0.25, session_id="chat-42", metadata={"tenant": "acme"})
    assert (paused.approval_ids, desk.sent, paused.session_id) == ([paused.approval_id], [], "chat-42")
    decision: dict[str, Any] = {"id": paused.approval_id, "approved": True, "note": "go"}
    if given == "mapping":
        result = await resume_after_approval(decision, desk.store, desk.registry, model)
    else:
        result = await resume_after_approval(
            **decision, approval_store=desk.store, tool_registry=desk.registry, provider=model
        )
    assert (result.text, result.finish_reason, desk.sent) == ("Sent the report to Sam.", "stop", ["sam@example.com"])
    assert (result.agent_name, result.session_id, result.steps) == ("Mailer", "chat-42", 2)
    assert told(model, 1) == "sent to sam@example.com: go"
    # The agent, its model and the sampling are those of the run that began.
    first, second = model.calls
    assert second.messages[0] == first.messages[0]
    assert (second.model, second.temperature, second.tools) == ("small", 0.25, first.tools)
    assert await desk.store.list() == []


@pytest.mark.spec("EXEC-09")
async def test_a_rejected_call_does_not_run_and_the_model_reads_the_note():
    desk, model = Desk(), mock_model([SEND, "Understood."])
    paused = await desk.pause(model)
    result = await resume_after_approval(
        {"id": paused.approval_id, "approved": False, "note": "wrong person"}, desk.store, desk.registry, model
    )
    rejection = json.loads(told(model, 1))
    assert (rejection["kind"], rejection["note"]) == ("rejected", "wrong person")
    assert (result.text, desk.sent) == ("Understood.", [])


FILES = '''
    import asyncio, dataclasses, json, sys
    from pathlib import Path
    from lousho import tool
    from lousho.executor import *
    from lousho.stores.protocol import PausedStepRecord
    from lousho.testing import check_event_order, mock_model

    class Files:
        """A store of another make: one JSON file a pause."""

        def __init__(self, folder):
            self.folder = Path(folder)

        def file(self, step_id):
            return self.folder / f"{step_id}.json"

        async def save(self, step):
            record = dataclasses.asdict(step) | {"revision": step.revision + 1}
            self.file(step.id).write_text(json.dumps(record), encoding="utf-8")
            return True

        async def load(self, step_id):
            file = self.file(step_id)
            return PausedStepRecord(**json.loads(file.read_text(encoding="utf-8"))) if file.exists() else None

        async def claim(self, step_id, revision):
            self.file(step_id).unlink()
            return True

    @tool(needs_approval=lambda to: not to.endswith("@mycompany.com"))
    async def send_email(to: str) -> str:
        """Send an e-mail."""
        return f"sent to {to}"

    registry = ToolRegistry([send_email])
    store = Files(sys.argv[1])
'''
PAUSE = """
    agent = AgentBuilder.create().set_name("Mailer").set_prompt("You send e-mails.").add_tool(send_email).build()
    calls = [{"name": "send_email", "args": {"to": to}} for to in ("a@mycompany.com", "b@other.com")]
    paused = AgentExecutor.execute_sync(
        agent=agent, input="Go", provider=mock_model([{"tool_calls": calls}]), approval_store=store, max_steps=7,
        max_tokens=99, session_id="chat-42", metadata={"tenant": "acme"},
    )
    print(json.dumps({"id": paused.approval_id, "reason": paused.finish_reason}))
"""
RESUME = """
    model = mock_model(["Both sent."])
    events = []
    decision = {"id": sys.argv[2], "approved": True}
    result = resume_after_approval_sync(decision, store, registry, model, on_agent_event=events.append)
    check_event_order(events)
    asked = model.calls[0]
    print(json.dumps({
        "text": result.text, "agent": result.agent_name, "session": result.session_id, "steps": result.steps,
        "system": asked.messages[0].content, "limit": asked.max_tokens,
        "told": [message.content for message in asked.messages if message.role == "tool"],
    }))
"""


@pytest.mark.spec("EXEC-09", "RUN-34")
def test_another_process_continues_a_run_from_a_store_that_writes_json(tmp_path: Path):
    def process(code: str, *arguments: str) -> Any:
        program = textwrap.dedent(FILES) + textwrap.dedent(code)
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program, str(tmp_path), *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    paused = process(PAUSE)
    assert paused["reason"] == "awaiting-approval"
    [record] = [json.loads(file.read_text(encoding="utf-8")) for file in tmp_path.iterdir()]
    assert (record["session_id"], json.loads(record["state"])["metadata"]) == ("chat-42", {"tenant": "acme"})
    assert process(RESUME, paused["id"]) == {
        "text": "Both sent.",
        "agent": "Mailer",
        "session": "chat-42",
        "steps": 2,
        "system": "You send e-mails.",
        "limit": 99,
        "told": ["sent to a@mycompany.com", "sent to b@other.com"],
    }
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("RUN-34")
async def test_every_call_of_the_step_gets_exactly_one_result_however_it_was_decided():
    step = calls(
        ("send_email", {"to": "a"}),
        ("look_up", {"name": "b"}),
        ("send_email", {"to": "c"}),
        ("send_email", {"to": "d"}),
    )
    desk, model = Desk(), mock_model([step, "Done."])
    paused = await desk.pause(model)
    assert desk.sent == ["looked up b"]  # what needs nobody ran with the step
    first, second, third = paused.approval_ids
    waiting = await resume_after_approval({"id": second, "approved": False}, desk.store, desk.registry, model)
    assert (waiting.finish_reason, waiting.approval_ids, desk.sent) == (
        "awaiting-approval",
        [first, third],
        ["looked up b"],
    )
    waiting = await resume_after_approval({"id": third, "approved": True}, desk.store, desk.registry, model)
    assert waiting.approval_ids == [first]
    result = await resume_after_approval({"id": first, "approved": True}, desk.store, desk.registry, model)
    assert (result.text, desk.sent) == ("Done.", ["looked up b", "a", "d"])
    answers = [message for message in model.calls[1].messages if message.role == "tool"]
    assert [one.tool_call_id for one in answers] == [one.id for one in result.tool_calls]
    assert [one.is_error for one in answers] == [False, False, True, False]


@pytest.mark.spec("STRM-43", "STRM-20")
async def test_a_streamed_continuation_is_a_run_with_the_events_of_the_decision_and_what_follows():
    def script() -> Any:
        return mock_model([SEND, {"text": "One more.", **call("look_up", name="sam")}, "Done."])

    desk, model = Desk(), script()
    paused = await desk.pause(model)
    heard: list[Any] = []
    run = stream_resume_after_approval(
        {"id": paused.approval_id, "approved": True}, desk.store, desk.registry, model, on_agent_event=heard.append
    )
    assert isinstance(run.run_id, str)
    events = await collect(run)
    assert heard == events  # the very events, in their order
    assert types(events)[:3] == ["run.start", "tool.resume", "tool.done"]
    assert types(events)[3:] == [
        *("step.start", "text.delta", "text.done", "tool.start", "tool.done", "step.done"),
        *("step.start", "text.delta", "text.done", "step.done", "run.done"),
    ]
    result = await run.result

    again, model = Desk(), script()
    paused = await again.pause(model)
    awaited = await resume_after_approval(
        {"id": paused.approval_id, "approved": True}, again.store, again.registry, model
    )
    assert awaited.to_dict() | {"runId": ""} == result.to_dict() | {"runId": ""}


@pytest.mark.spec("STRM-43")
async def test_the_streaming_twin_checks_its_arguments_at_once_and_ends_normally_when_the_run_fails():
    desk = Desk()
    with pytest.raises(SDKError) as caught:
        stream_resume_after_approval({"id": "ap-1.1", "approved": True}, desk.store, desk.registry)
    assert caught.value.code == "LOUSHO_CONFIG_MISSING_PROVIDER"
    run = stream_resume_after_approval({"id": "ap-1.1", "approved": True}, desk.store, desk.registry, mock_model([]))
    assert types(await collect(run)) == ["run.start", "error", "run.done"]
    with pytest.raises(SDKError) as unknown:
        await run.result
    assert unknown.value.code == "LOUSHO_APPROVAL_NOT_FOUND"


async def test_the_blocking_twins_do_the_same():
    desk, model = Desk(), mock_model([SEND, SEND, "Done."])
    paused = await desk.pause(model)

    def decide() -> Any:
        again = resume_after_approval_sync(
            {"id": paused.approval_id, "approved": True}, desk.store, desk.registry, model
        )
        assert again.finish_reason == "awaiting-approval"
        return list(
            stream_resume_after_approval_sync(
                {"id": again.approval_id, "approved": True}, desk.store, desk.registry, model
            )
        )

    events = check_event_order(await asyncio.to_thread(decide))
    assert (events[-1].type, events[-1].text, desk.sent) == ("run.done", "Done.", ["sam@example.com"] * 2)


# -- what a run takes along ------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-05")
@pytest.mark.parametrize(
    ("options", "again", "reason", "steps"),
    [
        pytest.param({"max_steps": 3}, {}, "max-steps", 3, id="the limit of the run"),
        pytest.param({"max_steps": 10, "initial_steps": 8}, {}, "max-steps", 10, id="steps from before the run"),
        pytest.param({"max_steps": 3}, {"max_steps": 4}, "stop", 4, id="another limit"),
        pytest.param({}, {}, "stop", 4, id="the default limit"),
    ],
)
async def test_the_steps_before_the_pause_count(options: Any, again: Any, reason: str, steps: int):
    desk, model = Desk(), mock_model([call("look_up", name="a"), SEND, call("look_up", name="b"), "Done."])
    paused = await desk.pause(model, **options)
    assert paused.steps == options.get("initial_steps", 0) + 2
    result = await resume_after_approval(
        {"id": paused.approval_id, "approved": True}, desk.store, desk.registry, model, **again
    )
    assert (result.finish_reason, result.steps) == (reason, steps)


async def test_options_hold_over_a_second_pause_and_those_given_again_win():
    desk, model = Desk(), mock_model([SEND, SEND, "Done."])
    paused = await desk.pause(model, max_tokens=50, model_settings={"seed": 1}, max_tool_result_chars=float("inf"))
    second = await resume_after_approval(
        {"id": paused.approval_id, "approved": True}, desk.store, desk.registry, model, temperature=0.5
    )
    await resume_after_approval(
        {"id": second.approval_id, "approved": True}, desk.store, desk.registry, model, max_tokens=9
    )
    assert [(one.max_tokens, one.seed, one.temperature) for one in model.calls] == [
        (50, 1, None),
        (50, 1, 0.5),
        (9, 1, 0.5),
    ]


async def test_a_limit_of_the_run_holds_after_every_pause():
    desk, model = Desk(), mock_model([SEND, SEND, "never"])
    paused = await desk.pause(model, max_steps=2)
    for reason in ("awaiting-approval", "max-steps"):
        paused = await resume_after_approval(
            {"id": paused.approval_id, "approved": True}, desk.store, desk.registry, model
        )
        assert paused.finish_reason == reason


async def test_a_long_result_stays_whole_after_a_pause_when_the_run_began_without_a_limit():
    @tool(needs_approval=True)
    def write() -> str:
        """Write a long letter."""
        return "x" * 60_000

    desk, model = Desk(), mock_model([call("write"), "Done."])
    desk.registry.register(write)
    desk.agent = AgentConfig(tools={"write": None})
    paused = await desk.pause(model, max_tool_result_chars=float("inf"))
    await resume_after_approval({"id": paused.approval_id, "approved": True}, desk.store, desk.registry, model)
    assert told(model, 1) == "x" * 60_000


async def test_long_results_go_to_the_folder_of_the_run_after_a_pause_too(tmp_path: Path):
    @tool(needs_approval=True)
    def write() -> str:
        """Write a long letter."""
        return "x" * 5_000

    desk, model = Desk(), mock_model([call("write"), "Done."])
    desk.registry.register(write)
    desk.agent = AgentConfig(tools={"write": None})
    paused = await desk.pause(model, tool_results={"spill_dir": tmp_path, "above_chars": 2_000})
    await resume_after_approval({"id": paused.approval_id, "approved": True}, desk.store, desk.registry, model)
    assert len(told(model, 1)) < 2_500
    assert [file.read_text(encoding="utf-8") for file in tmp_path.rglob("*") if file.is_file()] == ["x" * 5_000]


async def test_a_continuation_with_a_listener_can_ask_for_whole_steps():
    counts: list[int] = []
    cases: list[dict[str, Any]] = [{}, {"stream_model_calls": False}]
    for options in cases:
        desk, model = Desk(), mock_model([SEND, "One two three four five six seven eight."])
        paused = await desk.pause(model)
        heard: list[Any] = []
        await resume_after_approval(
            {"id": paused.approval_id, "approved": True},
            desk.store,
            desk.registry,
            model,
            on_agent_event=heard.append,
            **options,
        )
        counts.append(len(of_type(heard, "text.delta")))
    assert counts[0] > counts[1] == 1


async def test_an_agent_that_is_given_again_wins_over_the_saved_one():
    desk, model = Desk(), mock_model([SEND, "Done."])
    paused = await desk.pause(model)
    tools = {"send_email": desk.registry["send_email"]}
    stricter = AgentConfig(name="Mailer 2", prompt="Be brief.", model="large", tools=tools)
    await resume_after_approval(
        {"id": paused.approval_id, "approved": True}, desk.store, provider=model, agent=stricter
    )
    assert (model.calls[1].messages[0].content, model.calls[1].model) == ("Be brief.", "large")
    assert [one.function.name for one in model.calls[1].tools] == ["send_email"]


@pytest.mark.spec("RUN-10")
async def test_a_signal_stops_a_continued_run():
    desk, begun = Desk(), asyncio.Event()

    async def slow(request: Any) -> str:
        begun.set()
        await request.signal.wait()
        return "too late"

    model = mock_model([SEND, slow])
    paused = await desk.pause(model)
    signal = CancelSignal()
    running = asyncio.create_task(
        resume_after_approval(
            {"id": paused.approval_id, "approved": True}, desk.store, desk.registry, model, signal=signal
        )
    )
    await asyncio.wait_for(begun.wait(), WAIT)
    signal.abort("user left")
    result = await asyncio.wait_for(running, WAIT)
    assert (result.finish_reason, result.abort_reason) == ("aborted", {"name": "AbortError", "message": "user left"})
    assert desk.sent == ["sam@example.com"]


async def test_rules_are_code_and_must_be_given_again():
    desk, model = Desk(), mock_model([SEND, call("look_up", name="a"), "Done."])
    rules = [deny("look_up", "not today")]
    paused = await desk.pause(model, permissions=rules)
    decision = {"id": paused.approval_id, "approved": True}
    with pytest.raises(SDKError, match="Pass the same permissions= again") as caught:
        await resume_after_approval(decision, desk.store, desk.registry, model)
    assert (caught.value.code, desk.sent) == ("LOUSHO_CONFIG_INVALID", [])
    result = await resume_after_approval(decision, desk.store, desk.registry, model, permissions=rules)
    assert (result.text, desk.sent) == ("Done.", ["sam@example.com"])
    assert json.loads(told(model, 2))["kind"] == "denied"


async def test_a_question_is_answered_with_the_note():
    store, model = InMemoryApprovalStore(), mock_model([call("ask_question", question="Which city?"), "Paris it is."])
    registry = ToolRegistry([ask_question_tool()])
    paused = await AgentExecutor.execute(
        agent=AgentConfig(tools={"ask_question": None}),
        input="go",
        provider=model,
        tool_registry=registry,
        approval_store=store,
    )
    result = await resume_after_approval(
        {"id": paused.approval_id, "approved": True, "note": "Paris"}, store, registry, model
    )
    assert "Paris" in str(told(model, 1))
    assert result.text == "Paris it is."
