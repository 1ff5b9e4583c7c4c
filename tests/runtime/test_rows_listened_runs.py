"""Who hears a run and when: listeners, streamed turns of a session, streams after a decision (streaming page)."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hostile import within
from runs import ChunkProvider, call, calls, collect, of_type, types

from lousho import AgentStore, CancelSignal, InMemoryApprovalStore, create_agent, memory_store, tool
from lousho.models.provider import ModelChunk, ModelRequest, TextDelta
from lousho.testing import check_event_order, mock_model


@tool
async def lookup(word: str) -> str:
    """Look a word up."""
    return word.upper()


@tool(needs_approval=True)
async def deploy(to: str) -> str:
    """Deploy somewhere."""
    return f"deployed to {to}"


def wire(events: list[Any]) -> list[dict[str, Any]]:
    """The events as data, without what differs from run to run."""
    moving = ("runId", "timestamp", "durationMs", "approvalId")
    return [{key: value for key, value in event.to_dict().items() if key not in moving} for event in events]


# -- listeners -------------------------------------------------------------------------------------------------------------

TALK = [
    {"text": "Let me see.", **call("lookup", word="a")},
    calls(("lookup", {}), ("deploy", {"to": "b"})),
    "Done now.",
]


@pytest.mark.spec("STRM-20")
async def test_a_listener_hears_what_an_iteration_would_on_every_way_to_run():
    heard: list[Any] = []

    def agent(listener: Any = None) -> Any:
        return create_agent(provider=mock_model(TALK), tools=[lookup, deploy], on_event=listener)

    streaming = agent(heard.append)
    first = await collect(streaming.stream("go"))
    waiting = (await streaming.approvals.list())[0]
    second = await collect(streaming.approvals.stream_resolve(id=waiting.id, approved=True))
    assert heard == [*first, *second]  # the very events, in their order
    iterated = wire(heard)

    for start in ("send", "session"):
        heard.clear()
        listening = agent(heard.append)
        runner = listening if start == "send" else listening.session("s")
        paused = await runner.send("go")
        pause = len(heard)
        await listening.approvals.resolve(id=str(paused.approval_id), approved=True)
        check_event_order(heard[:pause])
        check_event_order(heard[pause:])
        assert wire(heard) == iterated


@pytest.mark.spec("STRM-20")
async def test_a_listener_is_called_while_it_happens_and_not_afterwards():
    log: list[str] = []

    @tool
    async def act() -> str:
        """Do something."""
        log.append("the tool runs")
        return "x"

    async def turn(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        for piece in ("a", "b"):
            log.append(f"says {piece}")
            yield TextDelta(piece)
        raise ConnectionError("cut")

    def hear(event: Any) -> None:
        log.append(event.type)

    agent = create_agent(provider=mock_model([call("act"), "Done."]), tools=[act], on_event=hear)
    await agent.send("go")
    assert log[log.index("tool.start") :][:3] == ["tool.start", "the tool runs", "tool.done"]
    log.clear()
    with pytest.raises(Exception, match="cut"):
        await create_agent(provider=ChunkProvider(turn), on_event=hear).send("go")
    assert log[2:6] == ["says a", "text.delta", "says b", "text.delta"]


@pytest.mark.spec("STRM-21")
async def test_a_listener_that_raises_is_one_warning_a_run_and_costs_nothing_else(caplog: pytest.LogCaptureFixture):
    def broken(event: Any) -> None:
        raise OSError("the disk is full")

    agent = create_agent(provider=mock_model(TALK * 2), tools=[lookup, deploy], on_event=broken)
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.DEBUG, logger="lousho"):
            run = agent.stream("go")
            events = await collect(run)
        warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert len(warnings) == 1
        assert (await run.result).finish_reason == "awaiting-approval"
        assert types(events)[-1] == "run.done"
        caplog.clear()
        with caplog.at_level(logging.DEBUG, logger="lousho"):
            result = await agent.approvals.resolve(id=str((await run.result).approval_id), approved=True)
        assert (result.text, len([one for one in caplog.records if one.levelno >= logging.WARNING])) == ("Done now.", 1)


# -- sessions --------------------------------------------------------------------------------------------------------------


class SlowSessions:
    """A session store that keeps JSON and whose writes take several turns of the loop."""

    def __init__(self) -> None:
        self.inner = memory_store().sessions
        self.saved: list[str] = []

    async def load(self, session_id: str) -> Any:
        return await self.inner.load(session_id)

    async def save(self, record: Any) -> bool:
        for _ in range(5):
            await asyncio.sleep(0)
        written = await self.inner.save(record)
        self.saved.append(record.id)
        return written

    async def delete(self, session_id: str) -> None:
        await self.inner.delete(session_id)


@pytest.mark.spec("STRM-30")
async def test_a_streamed_turn_sees_the_history_and_is_saved_before_run_done():
    sessions = SlowSessions()
    store = AgentStore(sessions=sessions, approvals=InMemoryApprovalStore())
    model = mock_model(["Hello Ali.", call("lookup", word="ali"), "You are Ali.", "Hello Ali."])
    agent = create_agent(provider=model, tools=[lookup], store=store)
    await agent.session("s").send("My name is Ali.")
    stored: list[tuple[str, int]] = []
    async for event in agent.session("s").stream("What is my name?", signal=CancelSignal()):
        if event.type in ("step.start", "run.done"):
            stored.append((event.type, len((await sessions.load("s")).messages)))
    assert stored[0] == ("step.start", 2)
    assert stored[-1] == ("run.done", 6)
    roles = [message.role for message in await agent.session("s").load()]
    assert roles == ["user", "assistant", "user", "assistant", "tool", "assistant"]
    assert [str(message.content) for message in model.calls[1].messages][1:] == [
        *("My name is Ali.", "Hello Ali.", "What is my name?")
    ]

    again = create_agent(
        provider=mock_model(["Hello Ali.", call("lookup", word="ali"), "You are Ali."]), tools=[lookup]
    )
    for line in ("My name is Ali.", "What is my name?"):
        await again.session("s").send(line)
    sent = [message.to_dict() for message in await again.session("s").load()]
    assert sent == [message.to_dict() for message in await agent.session("s").load()]


@pytest.mark.spec("STRM-31")
@pytest.mark.parametrize("how", ["abort", "leave"])
async def test_a_turn_that_was_cut_off_is_kept_as_far_as_it_came(how: str):
    async def asks(request: ModelRequest) -> AsyncIterator[ModelChunk]:
        async for chunk in mock_model([call("lookup", word="a")]).stream(request):
            yield chunk

    async def half(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield TextDelta("Half an ")
        await asyncio.Event().wait()

    signal = CancelSignal()
    agent = create_agent(provider=ChunkProvider(asks, half), tools=[lookup])
    async with agent.session("s").stream("go", signal=signal) as run:
        async for event in run:
            if event.type == "text.delta":
                if how == "leave":
                    break
                signal.abort()
    assert (await within(run.result)).finish_reason == "aborted"
    kept = await agent.session("s").load()
    assert [(one.role, one.interrupted) for one in kept] == [
        *(("user", False), ("assistant", False), ("tool", False), ("assistant", True))
    ]
    assert [str(one.content) for one in kept][2:] == ["A", "Half an "]


@pytest.mark.spec("STRM-31")
async def test_a_turn_that_failed_is_not_kept():
    model = mock_model(["Hi.", call("lookup", word="a"), {"error": ConnectionError("down")}, "Still here."])
    agent = create_agent(provider=model, tools=[lookup])
    session = agent.session("s")
    await session.send("one")
    assert types(await collect(session.stream("two")))[-2:] == ["error", "run.done"]
    assert [str(message.content) for message in await session.load()] == ["one", "Hi."]
    assert (await session.send("three")).text == "Still here."
    assert [str(message.content) for message in model.calls[-1].messages][1:] == ["one", "Hi.", "three"]


# -- after a decision ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("STRM-40")
@pytest.mark.parametrize("approved", [True, False])
async def test_a_decided_run_is_streamed_from_the_decided_call_to_its_end(approved: bool):
    script = [calls(("lookup", {"word": "a"}), ("deploy", {"to": "prod"})), call("lookup", word="b"), "All done."]

    def paused_agent() -> Any:
        return create_agent(provider=mock_model(script), tools=[lookup, deploy])

    agent = paused_agent()
    paused = await agent.send("go")
    run = agent.approvals.stream_resolve(id=str(paused.approval_id), approved=approved, note="as agreed")
    events = await collect(run)
    settled = "tool.done" if approved else "tool.error"
    assert types(events) == [
        *("run.start", "tool.resume", settled),
        *("step.start", "tool.start", "tool.done", "step.done"),
        *("step.start", "text.delta", "text.done", "step.done", "run.done"),
    ]
    assert [(one.tool_call_id, one.tool_name) for one in events[1:3]] == [("call_2", "deploy")] * 2
    assert events[1].to_dict()["args"] == {"to": "prod"}
    result = await run.result

    twin = paused_agent()
    same = await twin.approvals.resolve(
        id=str((await twin.send("go")).approval_id), approved=approved, note="as agreed"
    )
    assert [message.to_dict() for message in result.messages] == [message.to_dict() for message in same.messages]
    assert (result.text, result.steps, result.tool_errors) == (same.text, same.steps, same.tool_errors)
    assert events[-1].run_id == run.run_id == result.run_id


@pytest.mark.spec("STRM-40")
async def test_an_answered_question_is_streamed_the_same_way():
    script = [call("ask_question", question="Which city?", options=["Paris", "Rome"]), "To Rome."]
    agent = create_agent(provider=mock_model(script), ask_question=True)
    paused = await agent.send("book")
    run = agent.approvals.stream_answer(id=str(paused.approval_id), answer="Rome")
    events = await collect(run)
    assert types(events)[:4] == ["run.start", "tool.resume", "tool.done", "step.start"]
    assert "Rome" in json.dumps(of_type(events, "tool.done")[0].to_dict()["result"])
    assert (await run.result).text == "To Rome."


@pytest.mark.spec("STRM-41")
async def test_a_run_that_pauses_again_ends_its_stream_after_the_request():
    script = [call("deploy", to="a"), call("deploy", to="b"), "Both."]
    agent = create_agent(provider=mock_model(script), tools=[deploy])
    paused = await agent.send("go")
    again = agent.approvals.stream_resolve(id=str(paused.approval_id), approved=True)
    events = await collect(again)
    assert types(events)[-3:] == ["approval.requested", "step.done", "run.done"]
    asked = of_type(events, "approval.requested")[0].to_dict()
    assert (asked["args"], asked["toolName"]) == ({"to": "b"}, "deploy")
    assert not {"kind", "signIn", "question"} & set(asked)
    assert (await again.result).approval_id == asked["approvalId"] != paused.approval_id
    last = agent.approvals.stream_resolve(id=asked["approvalId"], approved=True)
    assert types(await collect(last))[-1] == "run.done"
    assert (await last.result).text == "Both."


@pytest.mark.spec("STRM-42")
async def test_a_decided_run_can_be_cancelled_like_any_other():
    begun = asyncio.Event()

    @tool(needs_approval=True)
    async def endless() -> str:
        """Never end."""
        begun.set()
        await asyncio.Event().wait()
        return "x"

    for how in ("signal", "aclose"):
        begun.clear()
        agent = create_agent(provider=mock_model([call("endless"), "never"]), tools=[endless])
        paused = await agent.send("go")
        signal = CancelSignal()
        run = agent.approvals.stream_resolve(id=str(paused.approval_id), approved=True, signal=signal)
        await within(begun.wait())
        if how == "signal":
            signal.abort("enough")
        else:
            await within(run.aclose())
        result = await within(run.result)
        assert result.finish_reason == "aborted"
        assert json.loads(str(result.messages[-1].content))["kind"] == "cancelled"
        events = await collect(run)
        assert (events[-1].type, events[-1].finish_reason) == ("run.done", "aborted")


PROGRAM = '''
import asyncio, json, sys
from dataclasses import asdict
from pathlib import Path
from lousho import create_agent, tool
from lousho.stores.protocol import PausedStepRecord
from lousho.testing import check_event_order, mock_model

class Files:
    """A store of one's own: one JSON file a step."""
    def __init__(self, folder): self.folder = Path(folder)
    def _path(self, step_id): return self.folder / (step_id + ".json")
    async def save(self, step):
        step.revision += 1
        self._path(step.id).write_text(json.dumps(asdict(step)), encoding="utf-8")
        return True
    async def load(self, step_id):
        path = self._path(step_id)
        return PausedStepRecord(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None
    async def claim(self, step_id, revision):
        self._path(step_id).unlink()
        return True
    async def list(self):
        return [await self.load(path.stem) for path in sorted(self.folder.glob("*.json"))]

@tool(needs_approval=True)
async def refund(order: str) -> str:
    """Refund an order."""
    return "refunded " + order

async def main(verb, folder):
    first = [{"tool_calls": [{"name": "refund", "args": {"order": "B-1"}}]}]
    model = mock_model(first if verb == "pause" else ["Refunded."])
    agent = create_agent(provider=model, tools=[refund], approval_store=Files(folder))
    if verb == "pause":
        return (await agent.send("Refund order B-1")).approval_id
    run = agent.approvals.stream_resolve(id=verb, approved=True)
    events = [event async for event in run]
    check_event_order(events)
    return {"types": [event.type for event in events], "text": (await run.result).text}

print(json.dumps(asyncio.run(main(sys.argv[1], sys.argv[2]))))
'''


@pytest.mark.spec("STRM-42")
def test_a_decision_made_in_another_process_streams_the_run_there(tmp_path: Path):
    program, store = tmp_path / "program.py", tmp_path / "store"
    program.write_text(PROGRAM, encoding="utf-8")
    store.mkdir()

    def run(word: str) -> Any:
        done = subprocess.run(
            [sys.executable, str(program), word, str(store)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    outcome = run(run("pause"))
    assert outcome["types"][:4] == ["run.start", "tool.resume", "tool.done", "step.start"]
    assert (outcome["types"][-1], outcome["text"]) == ("run.done", "Refunded.")
    assert list(store.iterdir()) == []
