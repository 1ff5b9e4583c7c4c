"""A run that waits for a person, and what a decision does; the continuation lives from the saved state alone."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from runs import call, calls, collect, of_type

from lousho import SDKError, SessionAwaitingApprovalError, ToolContext, create_agent, define_tool, tool
from lousho.stores.protocol import PausedStepRecord
from lousho.testing import mock_model


def mailer(sent: list[str]) -> Any:
    @tool(needs_approval=True)
    async def send_email(to: str) -> str:
        """Send an e-mail."""
        sent.append(to)
        return f"sent to {to}"

    return send_email


@pytest.mark.spec("QS-13")
async def test_an_approved_call_runs_and_the_run_goes_on():
    sent: list[str] = []
    model = mock_model([call("send_email", to="sam@example.com"), "Sent."])
    agent = create_agent(provider=model, tools=[mailer(sent)])
    paused = await agent.send("Email the report")
    assert (paused.finish_reason, sent) == ("awaiting-approval", [])
    assert paused.approval_ids == [paused.approval_id]
    result = await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert (result.text, result.finish_reason, sent) == ("Sent.", "stop", ["sam@example.com"])
    assert [c.name for c in result.tool_calls] == ["send_email"]
    model.assert_exhausted()


@pytest.mark.spec("QS-13")
async def test_a_rejected_call_does_not_run_and_the_model_reads_the_note():
    sent: list[str] = []
    model = mock_model([call("send_email", to="sam@example.com"), "Understood."])
    agent = create_agent(provider=model, tools=[mailer(sent)])
    paused = await agent.send("Email the report")
    result = await agent.approvals.resolve(id=str(paused.approval_id), approved=False, note="wrong person")
    told = json.loads(str(model.calls[1].messages[-1].content))
    assert (told["error"], told["kind"], told["note"]) == ("ToolRejectedError", "rejected", "wrong person")
    assert (sent, result.text) == ([], "Understood.")


@pytest.mark.spec("ERR-48")
async def test_an_approval_is_decided_once():
    agent = create_agent(provider=mock_model([call("send_email", to="a"), "Sent."]), tools=[mailer([])])
    paused = await agent.send("go")
    await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    for unknown in (str(paused.approval_id), "nope", "ap-x.1"):
        with pytest.raises(SDKError) as caught:
            await agent.approvals.resolve(id=unknown, approved=True)
        assert caught.value.code == "LOUSHO_APPROVAL_NOT_FOUND"
    assert await agent.approvals.list() == []
    assert await agent.approvals.get("nope") is None


async def test_two_decisions_that_race_run_the_tool_once():
    sent: list[str] = []
    agent = create_agent(provider=mock_model([call("send_email", to="a"), "Sent."]), tools=[mailer(sent)])
    paused = await agent.send("go")
    decisions = [agent.approvals.resolve(id=str(paused.approval_id), approved=True) for _ in range(5)]
    outcomes = await asyncio.gather(*decisions, return_exceptions=True)
    codes = [getattr(outcome, "code", None) for outcome in outcomes]
    assert sent == ["a"]
    assert codes.count(None) == 1
    assert set(codes) - {None} <= {"LOUSHO_APPROVAL_CONFLICT", "LOUSHO_APPROVAL_NOT_FOUND"}


async def test_several_gated_calls_pause_once_and_run_in_call_order_when_the_last_is_decided():
    sent: list[str] = []
    read: list[str] = []
    model = mock_model(
        [
            calls(("send_email", {"to": "a"}), ("read", {}), ("send_email", {"to": "b"}), ("send_email", {"to": "c"})),
            "Done.",
        ]
    )
    note = define_tool(name="read", description="Read the notes", execute=lambda: read.append("x") or "notes")
    agent = create_agent(provider=model, tools=[mailer(sent), note])
    paused = await agent.send("go")
    assert (sent, read, len(paused.approval_ids)) == ([], ["x"], 3)
    first, second, third = paused.approval_ids
    waiting = await agent.approvals.resolve(id=third, approved=True)
    assert (waiting.finish_reason, waiting.approval_ids, sent) == ("awaiting-approval", [first, second], [])
    streamed = await collect(agent.approvals.stream_resolve(id=second, approved=False))
    assert [event.type for event in streamed] == ["run.start", "run.done"]
    assert streamed[-1].finish_reason == "awaiting-approval"
    result = await agent.approvals.resolve(id=first, approved=True)
    assert (result.finish_reason, sent) == ("stop", ["a", "c"])
    results = [message for message in result.messages if message.role == "tool"]
    assert [message.tool_call_id for message in results] == ["call_1", "call_2", "call_3", "call_4"]
    assert [message.is_error for message in results] == [False, False, True, False]


@pytest.mark.spec("ERR-58")
async def test_a_paused_session_takes_no_new_turn_and_continues_after_the_decision():
    agent = create_agent(provider=mock_model([call("send_email", to="a"), "Sent.", "Hello."]), tools=[mailer([])])
    session = agent.session("work")
    paused = await session.send("go")
    for refused in (session.send("next"), session.clear()):
        with pytest.raises(SessionAwaitingApprovalError) as caught:
            await refused
        assert caught.value.approval_id == paused.approval_id
    assert session.messages == []
    await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert [message.role for message in session.messages] == ["user", "assistant", "tool", "assistant"]
    assert (await session.send("hi")).text == "Hello."
    with pytest.raises(SDKError) as bad:
        agent.session("a b")
    assert bad.value.code == "LOUSHO_SESSION_ID_INVALID"


async def test_a_predicate_over_the_arguments_decides_whether_to_ask():
    sent: list[str] = []
    send = define_tool(
        name="send_email",
        description="Send",
        input={"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
        execute=lambda args: sent.append(args["to"]) or "sent",
        needs_approval=lambda args: not args["to"].endswith("@us.example"),
    )
    model = mock_model([call("send_email", to="a@us.example"), call("send_email", to="b@them.example")])
    paused = await create_agent(provider=model, tools=[send]).send("go")
    assert (paused.finish_reason, sent) == ("awaiting-approval", ["a@us.example"])


async def test_the_tool_sees_the_approval_that_let_it_run():
    seen: list[Any] = []

    @tool(needs_approval=True)
    async def deploy(ctx: ToolContext) -> str:
        """Deploy."""
        seen.append(ctx.approval)
        return "ok"

    agent = create_agent(provider=mock_model([call("deploy"), "Done."]), tools=[deploy])
    paused = await agent.send("go")
    await agent.approvals.resolve(id=str(paused.approval_id), approved=True, note="go ahead")
    assert (seen[0].id, seen[0].note) == (paused.approval_id, "go ahead")


async def test_a_question_is_answered_by_text_or_option():
    ask = {"question": "Which city?", "options": ["Paris", "Lisbon"], "allowFreeText": False}
    script = [{"tool_calls": [{"name": "ask_question", "args": ask}]}] * 2 + ["Booked."]
    model = mock_model(script)
    agent = create_agent(provider=model, ask_question=True)
    paused = await agent.send("book")
    listed = (await agent.approvals.list())[0]
    assert (listed.kind, listed.question) == (
        "question",
        {"text": "Which city?", "options": ["Paris", "Lisbon"], "allowFreeText": False},
    )
    again = await agent.approvals.answer(id=str(paused.approval_id), answer="Madrid")
    assert json.loads(str(model.calls[1].messages[-1].content))["kind"] == "execution"
    result = await agent.approvals.answer(id=str(again.approval_id), answer="LISBON")
    assert json.loads(str(model.calls[2].messages[-1].content)) == {"answer": "Lisbon", "option": 1}
    assert result.text == "Booked."


async def test_an_expired_approval_does_not_run_the_tool():
    sent: list[str] = []
    model = mock_model([call("send_email", to="a"), "Too late."])
    rules = [{"tool": "send_email", "action": "ask", "ttl_ms": 0.001}]
    agent = create_agent(provider=model, tools=[mailer(sent)], permissions=rules)
    events = await collect(agent.stream("go"))
    asked = of_type(events, "approval.requested")[0].to_dict()
    assert "expiresAt" in asked
    await asyncio.sleep(0.005)
    result = await agent.approvals.resolve(id=asked["approvalId"], approved=True)
    told = json.loads(str(model.calls[1].messages[-1].content))
    assert (told["kind"], told["message"]) == ("denied", "Approval of 'send_email' expired before it was decided")
    assert (sent, result.text) == ([], "Too late.")


@pytest.mark.spec("ERR-75")
async def test_an_agent_that_lost_the_tool_refuses_and_the_approval_stays():
    agent = create_agent(provider=mock_model([call("send_email", to="a"), "Sent."]), tools=[mailer([])])
    paused = await agent.send("go")
    without = agent.with_options(tools=[])
    with pytest.raises(SDKError) as caught:
        await without.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert caught.value.code == "LOUSHO_RESUME_TOOL_MISSING"
    assert (await agent.approvals.resolve(id=str(paused.approval_id), approved=True)).text == "Sent."


FILE_STORE = '''
import asyncio, json, sys
from dataclasses import asdict
from pathlib import Path
from lousho import create_agent, tool
from lousho.stores.protocol import PausedStepRecord
from lousho.testing import mock_model

class FileApprovals:
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
    (store.folder / "effects.txt").open("a", encoding="utf-8").write(order + "\\n")
    return "refunded " + order

store = FileApprovals(sys.argv[2])
first = [{"tool_calls": [{"name": "refund", "args": {"order": "B-1"}}]}]
script = first if sys.argv[1] == "pause" else ["Order B-1 is refunded."]
agent = create_agent(provider=mock_model(script), tools=[refund], approval_store=store)
if sys.argv[1] == "pause":
    print(agent.send_sync("Refund order B-1").approval_id)
else:
    listed = agent.approvals.list_sync()
    result = agent.approvals.resolve_sync(id=listed[0].id, approved=True)
    print(json.dumps({"id": listed[0].id, "text": result.text, "calls": [c.name for c in result.tool_calls],
                      "steps": result.steps, "roles": [m.role for m in result.messages]}))
'''


@pytest.mark.spec("BEY-06")
def test_a_pause_continues_in_a_fresh_process_from_the_saved_state(tmp_path: Path):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(FILE_STORE), encoding="utf-8")
    store = tmp_path / "store"
    store.mkdir()

    def run(verb: str) -> str:
        done = subprocess.run(
            [sys.executable, str(script), verb, str(store)], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    approval_id = run("pause")
    assert not (store / "effects.txt").exists()
    outcome = json.loads(run("resolve"))
    assert outcome == {
        "id": approval_id,
        "text": "Order B-1 is refunded.",
        "calls": ["refund"],
        "steps": 2,
        "roles": ["user", "assistant", "tool", "assistant"],
    }
    assert (store / "effects.txt").read_text(encoding="utf-8") == "B-1\n"


@pytest.mark.spec("BEY-06")
async def test_in_the_same_process_too_only_what_the_store_gives_back_is_continued():
    """A store that keeps JSON text alone, in which somebody changed a word of the saved run meanwhile."""

    class TextStore:
        def __init__(self) -> None:
            self.texts: dict[str, str] = {}

        async def save(self, step: PausedStepRecord) -> bool:
            step.revision += 1
            self.texts[step.id] = json.dumps(asdict(step))
            return True

        async def load(self, step_id: str) -> PausedStepRecord | None:
            return PausedStepRecord(**json.loads(self.texts[step_id])) if step_id in self.texts else None

        async def claim(self, step_id: str, revision: int) -> bool:
            return self.texts.pop(step_id, None) is not None

        async def list(self) -> list[PausedStepRecord]:
            return [PausedStepRecord(**json.loads(text)) for text in self.texts.values()]

    sent: list[str] = []
    model = mock_model([call("send_email", to="ada"), "Sent."])
    store = TextStore()
    agent = create_agent(provider=model, tools=[mailer(sent)], approval_store=store)
    paused = await agent.send("Write to ada")
    store.texts = {step_id: text.replace("ada", "eve") for step_id, text in store.texts.items()}
    result = await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert (sent, result.text) == (["eve"], "Sent.")
    assert [message.content for message in model.calls[1].messages if message.role == "user"] == ["Write to eve"]
