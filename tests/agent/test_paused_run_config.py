"""A paused run goes on as it began: the model it chose, the tools it was given, the same context for its functions."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs import WAIT, call, calls, collect, of_type, types

from lousho import (
    CancelSignal,
    ConfigurationError,
    InMemoryApprovalStore,
    RunConfigContext,
    SDKError,
    TextPart,
    create_agent,
    define_tool,
    memory_store,
    tool,
)
from lousho.stores.protocol import PausedStepRecord
from lousho.testing import mock_model

MUSEUM = Path(__file__).parent / "museum"


def gated(name: str, ran: list[str]) -> Any:
    def run(order_id: str) -> str:
        ran.append(order_id)
        return f"{name} of {order_id} done"

    return define_tool(name=name, description=f"{name} an order.", execute=run, needs_approval=True)


def names(request: Any) -> list[str]:
    return [one.function.name for one in request.tools]


@pytest.mark.spec("API-19", "STRM-42", "BEY-31")
@pytest.mark.parametrize("streamed", [False, True], ids=["resolve", "stream_resolve"])
async def test_a_continuation_keeps_the_model_and_tells_the_functions_the_same(streamed: bool):
    told: list[tuple[str, RunConfigContext]] = []
    ran: list[str] = []
    answers = {"model": "first", "instructions": "Before."}

    def noted(field: str) -> Any:
        def choose(ctx: RunConfigContext) -> Any:
            told.append((field, ctx))
            return [gated("refund", ran)] if field == "tools" else answers[field]

        return choose

    model = mock_model([call("refund", order_id="A-7"), "Done."])
    agent = create_agent(provider=model, model=noted("model"), instructions=noted("instructions"), tools=noted("tools"))
    asked = [TextPart("Refund"), TextPart("A-7")]
    paused = await agent.session("s-1").send(asked, metadata={"tenant": {"id": 7}})
    answers.update(model="second", instructions="After.")
    if streamed:
        run = agent.approvals.stream_resolve(id=str(paused.approval_id), approved=True)
        assert types(await collect(run))[-1] == "run.done"
        result = await run.result
    else:
        result = await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert (result.text, ran) == ("Done.", ["A-7"])
    assert [request.model for request in model.calls] == ["first", "first"]
    assert [request.messages[0].content for request in model.calls] == ["Before.", "After."]
    assert [field for field, _ in told] == ["model", "instructions", "tools", "instructions", "tools"]
    contexts = [ctx for _, ctx in told]
    assert all(ctx == contexts[0] for ctx in contexts)
    assert (contexts[0].session_id, contexts[0].metadata) == ("s-1", {"tenant": {"id": 7}})
    assert agent.session("s-1").messages[-1].content == "Done."


@pytest.mark.spec("API-19")
async def test_the_next_turn_of_the_session_chooses_anew():
    answers = ["first", "second"]
    model = mock_model([call("refund", order_id="A"), "Done.", "Hello."])
    agent = create_agent(provider=model, model=lambda ctx: answers.pop(0), tools=[gated("refund", [])])
    paused = await agent.session("s").send("go")
    await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    await agent.session("s").send("next")
    assert [request.model for request in model.calls] == ["first", "first", "second"]


@pytest.mark.spec("API-19")
async def test_a_run_that_pauses_twice_keeps_its_model_twice():
    answers = ["first"]
    model = mock_model([call("refund", order_id="A"), call("refund", order_id="B"), "Done."])
    agent = create_agent(provider=model, model=lambda ctx: answers.pop(0), tools=lambda ctx: [gated("refund", [])])
    paused = await agent.send("go")
    again = await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    result = await agent.approvals.resolve(id=str(again.approval_id), approved=False)
    assert result.text == "Done."
    assert [request.model for request in model.calls] == ["first"] * 3


PROGRAM = '''
import json, sys
from dataclasses import asdict
from pathlib import Path

from lousho import LLMProviderRegistry, create_agent, tool
from lousho.stores.protocol import PausedStepRecord
from lousho.testing import mock_model

verb, folder = sys.argv[1], Path(sys.argv[2])
told = []

class Files:
    async def save(self, step):
        step.revision += 1
        (folder / (step.id + ".json")).write_text(json.dumps(asdict(step)), encoding="utf-8")
        return True
    async def load(self, step_id):
        return PausedStepRecord(**json.loads((folder / (step_id + ".json")).read_text(encoding="utf-8")))
    async def claim(self, step_id, revision):
        (folder / (step_id + ".json")).unlink()
        return True
    async def list(self):
        return [await self.load(path.stem) for path in sorted(folder.glob("*.json"))]

@tool(needs_approval=True)
def refund(order_id: str) -> str:
    """Refund an order."""
    return "refunded " + order_id

def desk(*, default_model):
    def play(request):
        if request.messages[-1].role == "tool":
            return f"{default_model} says {request.messages[-1].content}"
        return {"tool_calls": [{"name": "refund", "args": {"order_id": "A-7"}}]}
    provider = mock_model([play], on_exhausted="repeat-last")
    provider.name, provider.default_model = "desk", default_model
    return provider

def tools(ctx):
    told.append([ctx.input, ctx.session_id, ctx.metadata])
    return [refund]

LLMProviderRegistry.register("desk", desk)
agent = create_agent(model=lambda ctx: "desk/" + verb, tools=tools, approval_store=Files())
if verb == "first":
    result = agent.session("s-1").send_sync("Refund A-7", metadata={"tenant": "globex"})
else:
    (waiting,) = agent.approvals.list_sync()
    result = agent.approvals.resolve_sync(id=waiting.id, approved=True)
print(json.dumps({"reason": result.finish_reason, "text": result.text, "models": list(result.usage.by_model), "told": told}))
'''


@pytest.mark.spec("API-19", "STRM-42", "BEY-31")
def test_another_process_goes_on_with_the_model_and_the_context_of_the_first(tmp_path: Path):
    program, store = tmp_path / "program.py", tmp_path / "store"
    program.write_text(PROGRAM, encoding="utf-8")
    store.mkdir()

    def run(verb: str) -> Any:
        command = [sys.executable, str(program), verb, str(store)]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    told = ["Refund A-7", "s-1", {"tenant": "globex"}]
    assert run("first") == {"reason": "awaiting-approval", "text": "", "models": ["desk/first"], "told": [told]}
    (saved,) = store.iterdir()
    state = json.loads(json.loads(saved.read_text(encoding="utf-8"))["state"])
    assert (state["chosenModel"], state["metadata"]) == ("desk/first", {"tenant": "globex"})
    assert run("second") == {
        "reason": "stop",
        "text": "first says refunded A-7",
        "models": ["desk/first"],
        "told": [told],
    }


@pytest.mark.spec("API-18", "BEY-31")
@pytest.mark.parametrize("streamed", [False, True], ids=["resolve", "stream_resolve"])
async def test_a_function_that_fails_when_the_run_goes_on_consumes_nothing(streamed: bool):
    broken, ran = [False], list[str]()

    def tools(ctx: RunConfigContext) -> Any:
        if broken[0]:
            raise LookupError("the tools are down")
        return [gated("refund", ran)]

    agent = create_agent(provider=mock_model([call("refund", order_id="A"), "Done."]), tools=tools)
    paused = await agent.session("s").send("go")
    broken[0] = True
    decision: dict[str, Any] = {"id": str(paused.approval_id), "approved": True}
    with pytest.raises(ConfigurationError) as caught:
        if streamed:
            run = agent.approvals.stream_resolve(**decision)
            assert types(await collect(run)) == ["run.start", "error", "run.done"]
            await run.result
        else:
            await agent.approvals.resolve(**decision)
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_RESOLVER_FAILED", "tools")
    assert [waiting.id for waiting in await agent.approvals.list()] == paused.approval_ids
    broken[0] = False
    assert (await agent.approvals.resolve(**decision)).text == "Done."
    assert ran == ["A"]


@pytest.mark.spec("API-19")
async def test_a_tool_that_the_function_no_longer_gives_is_named_and_nothing_is_consumed():
    given = [gated("refund", [])]
    agent = create_agent(provider=mock_model([call("refund", order_id="A"), "Done."]), tools=lambda ctx: list(given))
    paused = await agent.send("go")
    refund = given.pop()
    with pytest.raises(SDKError) as caught:
        await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert caught.value.code == "LOUSHO_RESUME_TOOL_MISSING"
    assert "refund" in caught.value.detail
    given.append(refund)
    assert (await agent.approvals.resolve(id=str(paused.approval_id), approved=True)).text == "Done."


async def test_a_decision_that_leaves_others_open_calls_no_function():
    called: list[str] = []

    def tools(ctx: RunConfigContext) -> Any:
        called.append("tools")
        return [gated("refund", [])]

    script = [calls(("refund", {"order_id": "A"}), ("refund", {"order_id": "B"})), "Done."]
    agent = create_agent(provider=mock_model(script), tools=tools, version="7")
    paused = await agent.send("go")
    run = agent.approvals.stream_resolve(id=paused.approval_ids[0], approved=True)
    events = await collect(run)
    assert [event.to_dict().get("version") for event in of_type(events, "run.start")] == ["7"]
    assert ((await run.result).approval_ids, called) == (paused.approval_ids[1:], ["tools"])
    assert (await agent.approvals.resolve(id=paused.approval_ids[1], approved=True)).text == "Done."
    assert called == ["tools", "tools"]


async def test_an_abort_ends_a_continuation_whose_function_hangs():
    called, hang = asyncio.Event(), [False]

    async def tools(ctx: RunConfigContext) -> Any:
        if hang[0]:
            called.set()
            await asyncio.Event().wait()
        return [gated("refund", [])]

    agent = create_agent(provider=mock_model([call("refund", order_id="A"), "never"]), tools=tools)
    paused = await agent.session("s").send("go")
    hang[0], signal = True, CancelSignal()
    decided = agent.approvals.resolve(id=str(paused.approval_id), approved=True, signal=signal)
    task = asyncio.ensure_future(decided)
    await asyncio.wait_for(called.wait(), WAIT)
    signal.abort("enough")
    result = await asyncio.wait_for(task, WAIT)
    assert (result.finish_reason, result.tool_errors) == ("aborted", 1)
    assert await agent.approvals.list() == []
    assert [message.role for message in agent.session("s").messages] == ["user", "assistant", "tool"]


@pytest.mark.spec("BEY-31")
async def test_the_model_of_one_call_is_kept_over_a_pause_and_limits_are_the_agents_own():
    model = mock_model([call("refund", order_id="A"), "Done."])
    agent = create_agent(provider=model, model="usual", tools=[gated("refund", [])], max_steps=5)
    paused = await agent.send("go", model="special", max_steps=1)
    result = await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert (result.finish_reason, result.text) == ("stop", "Done.")
    assert [request.model for request in model.calls] == ["special", "special"]


@pytest.mark.spec("BEY-31")
async def test_tools_that_only_the_call_had_must_be_given_again_and_missing_ones_are_named():
    ran: list[str] = []
    extra, other = gated("refund", ran), define_tool(name="note", description="Note.", execute=lambda: "noted")
    model = mock_model([call("refund", order_id="A"), "Done."])
    agent = create_agent(provider=model, tools=[gated("cancel", ran)])
    paused = await agent.send("go", extra_tools=[extra, other])
    assert names(model.calls[0]) == ["cancel", "refund", "note"]
    decision: dict[str, Any] = {"id": str(paused.approval_id), "approved": True}
    attempts: list[tuple[dict[str, Any], str]] = [
        ({}, "note, refund"),
        ({"extra_tools": [extra]}, "note"),
        ({"extra_tools": [other]}, "refund"),
    ]
    for again, missing in attempts:
        for decide in (agent.approvals.resolve, lambda **given: agent.approvals.stream_resolve(**given).result):
            with pytest.raises(SDKError) as caught:
                await decide(**decision, **again)
            assert caught.value.code == "LOUSHO_RESUME_TOOL_MISSING"
            assert f"brought {missing}:" in caught.value.detail
    assert (ran, len(await agent.approvals.list())) == ([], 1)
    result = await agent.approvals.resolve(**decision, extra_tools=[other, extra])
    assert (result.text, ran, sorted(names(model.calls[1]))) == ("Done.", ["A"], ["cancel", "note", "refund"])


@pytest.mark.spec("BEY-31")
async def test_a_run_that_began_with_some_of_the_tools_never_gets_the_others():
    ran: list[str] = []
    own = [gated("refund", ran), gated("cancel", ran), define_tool(name="note", description="N.", execute=lambda: "n")]
    special = define_tool(name="special", description="S.", execute=lambda: "s")
    script = [call("refund", order_id="A"), call("refund", order_id="B"), "Done."]
    model = mock_model(script)
    agent = create_agent(provider=model, tools=own)
    paused = await agent.send("go", tools=["refund", special])
    again = await agent.approvals.resolve(id=str(paused.approval_id), approved=True, extra_tools=[special])
    result = await agent.approvals.resolve(id=str(again.approval_id), approved=True, tools=[special])
    assert result.text == "Done."
    assert [names(request) for request in model.calls] == [["refund", "special"]] * 3


@pytest.mark.spec("BEY-31")
async def test_what_a_decision_brought_is_remembered_by_the_next_pause():
    own, late = gated("refund", []), define_tool(name="late", description="Late.", execute=lambda: "l")
    model = mock_model([call("refund", order_id="A"), call("refund", order_id="B"), "Done."])
    agent = create_agent(provider=model, tools=[own, gated("cancel", [])])
    paused = await agent.send("go")
    again = await agent.approvals.resolve(id=str(paused.approval_id), approved=True, tools=["refund", late])
    with pytest.raises(SDKError, match="brought late:"):
        await agent.approvals.resolve(id=str(again.approval_id), approved=True)
    await agent.approvals.resolve(id=str(again.approval_id), approved=True, extra_tools=[late])
    assert [names(request) for request in model.calls[1:]] == [["refund", "late"]] * 2


@pytest.mark.spec("BEY-31")
async def test_an_answer_brings_the_tools_of_the_call_too():
    note = define_tool(name="note", description="Note.", execute=lambda: "noted")
    model = mock_model(
        [call("ask_question", question="Which?"), "Thanks.", call("ask_question", question="Who?"), "OK."]
    )
    agent = create_agent(provider=model, ask_question=True)
    for decide in ("answer", "stream_answer"):
        paused = await agent.send("go", tools=[note])
        answer: dict[str, Any] = {"id": str(paused.approval_id), "answer": "This one"}
        with pytest.raises(SDKError, match="note"):
            await agent.approvals.answer(**answer)
        if decide == "answer":
            result = await agent.approvals.answer(**answer, tools=[note])
        else:
            result = await agent.approvals.stream_answer(**answer, tools=[note]).result
        assert result.finish_reason == "stop"
    assert [names(request) for request in model.calls] == [["note", "ask_question"]] * 4


async def test_the_tools_of_a_decision_are_checked_before_anything_else():
    agent = create_agent(provider=mock_model([call("refund", order_id="A"), "Done."]), tools=[gated("refund", [])])
    paused = await agent.send("go")
    decision: dict[str, Any] = {"id": str(paused.approval_id), "approved": True}
    with pytest.raises(ConfigurationError, match="must be a list"):
        agent.approvals.stream_resolve(**decision, tools="refund")
    with pytest.raises(ConfigurationError, match="extra_tools has 'refund'"):
        await agent.approvals.resolve(**decision, extra_tools=[gated("refund", [])])
    assert len(await agent.approvals.list()) == 1
    # Nothing says that a decision may not bring more.
    assert (await agent.approvals.resolve(**decision, extra_tools=[gated("cancel", [])])).text == "Done."


def museum_record() -> PausedStepRecord:
    record: dict[str, Any] = json.loads((MUSEUM / "paused-run-0.1.0.json").read_text(encoding="utf-8"))
    record["revision"] = 0
    return PausedStepRecord(**record)


@pytest.mark.parametrize("functions", [False, True], ids=["plain values", "functions"])
async def test_a_pause_that_version_0_1_0_saved_goes_on(functions: bool):
    told: list[Any] = []

    @tool(needs_approval=True)
    def refund(order_id: str) -> str:
        """Refund an order."""
        return f"refunded {order_id}"

    def instructions(ctx: RunConfigContext) -> str:
        told.append((ctx.input, ctx.session_id, ctx.metadata))
        return "Be kind."

    approvals = InMemoryApprovalStore()
    record = museum_record()
    assert await approvals.save(record)
    options: dict[str, Any] = {"instructions": instructions, "model": lambda ctx: "m-2"} if functions else {}
    model = mock_model(["Done."])
    agent = create_agent(
        provider=model, tools=[refund], name="desk", store=memory_store(), approval_store=approvals, **options
    )
    (waiting,) = await agent.approvals.list()
    result = await agent.approvals.resolve(id=waiting.id, approved=True)
    assert (result.text, result.steps, result.session_id) == ("Done.", 2, "s-1")
    assert [message.content for message in result.messages] == ["Refund A-7", "One moment.", "refunded A-7", "Done."]
    assert (told, model.calls[0].model) == (
        ([("Refund A-7", "s-1", {"tenant": "globex"})], "m-2") if functions else ([], None)
    )
