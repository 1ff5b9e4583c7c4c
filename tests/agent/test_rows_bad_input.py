"""A collection of input that makes no sense, at every place where it can enter: coded errors, nothing lost, and on it goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostile import within, wrong
from runs import call

from lousho import (
    ERROR_CODES,
    InMemoryApprovalStore,
    LLMProviderRegistry,
    SDKError,
    create_agent,
    define_tool,
    load_agent_dir,
    load_spec,
    resolve_provider,
    spec_to_agent,
    tool,
)
from lousho.executor import AgentBuilder, AgentExecutor, ToolRegistry, resume_after_approval
from lousho.testing import mock_model, record_replay


@tool(needs_approval=True)
async def deploy(to: str) -> str:
    """Deploy somewhere."""
    return f"deployed to {to}"


JUNK: dict[str, Any] = {
    "a number": 7,
    "not a number": float("nan"),
    "true": True,
    "bytes": b"\xff\x00",
    "a list of numbers": [1, 2],
    "a list in a list": [[[]]],
    "an odd mapping": {1: object()},
    "a function": lambda: None,
    "a class": dict,
    "an object": object(),
    "a set": {1, 2},
    "a generator": (x for x in ()),
}


def check(error: BaseException) -> None:
    """A refusal has a code of the table, what was wrong, and what to do."""
    assert isinstance(error, SDKError), repr(error)
    assert error.code in ERROR_CODES
    assert error.code != "LOUSHO_GENERIC_ERROR"
    assert error.detail.strip()
    assert error.hint.strip()
    assert len(error.detail) < 20_000
    assert "Traceback" not in str(error)


async def refused(work: Callable[[], Any]) -> None:
    try:
        answer = work()
        if hasattr(answer, "__await__"):
            await within(answer)
        elif hasattr(answer, "result"):
            await within(answer.result)
    except BaseException as error:  # whatever it is, it is looked at
        check(error)
    else:
        pytest.fail("it was taken")


INPUTS = {
    **JUNK,
    "an empty list": [],
    "an empty mapping": [{}],
    "a role that is none": [{"role": "wizard", "content": "x"}],
    "no role": [{"content": "x"}],
    "content of a wrong type": [{"role": "user", "content": 7}],
    "a part that is none": [{"role": "user", "content": [{"type": "smell", "text": "x"}]}],
    "an image without data": [{"role": "user", "content": [{"type": "image"}]}],
    "a call without a name": [{"role": "assistant", "content": "", "toolCalls": [{"id": "1"}]}],
}


@pytest.mark.spec("BEY-41")
@pytest.mark.parametrize("given", INPUTS.values(), ids=list(INPUTS))
async def test_input_that_is_none_is_refused_and_the_conversation_goes_on(given: Any):
    model = mock_model(["Hello.", "Still here."])
    agent = create_agent(provider=model)
    session = agent.session("s")
    await session.send("hi")
    config = AgentBuilder.create().set_name("a").build()
    for work in (
        lambda: agent.send(wrong(given)),
        lambda: agent.stream(wrong(given)),
        lambda: session.send(wrong(given)),
        lambda: session.stream(wrong(given)),
        lambda: AgentExecutor.execute(agent=config, input=wrong(given), provider=model),
    ):
        await refused(work)
    assert len(model.calls) == 1
    assert (await session.send("there?")).text == "Still here."
    assert [str(message.content) for message in await session.load()] == ["hi", "Hello.", "there?", "Still here."]


CALL_OPTIONS = (
    *(
        "signal",
        "max_steps",
        "instructions",
        "model_settings",
        "metadata",
        "model",
        "tools",
        "extra_tools",
        "session_id",
    ),
)


@pytest.mark.spec("BEY-41")
@pytest.mark.parametrize(
    "value", [JUNK["a number"], JUNK["bytes"], JUNK["a list of numbers"], JUNK["an object"]], ids=type
)
async def test_options_of_a_call_that_are_none_are_refused_and_the_next_call_works(value: Any):
    model = mock_model(["Hello."])
    agent = create_agent(provider=model)
    for option in CALL_OPTIONS:
        if option == "max_steps" and value == 7:
            continue
        for start in (agent.send, agent.stream):
            await refused(lambda start=start, option=option: start("go", **wrong({option: value})))
    assert model.calls == ()
    assert (await agent.send("go")).text == "Hello."


AGENT_OPTIONS = """
model provider instructions prompt name description tools max_steps tool_concurrency model_settings permissions
on_permission_decision approval_ttl_ms on_event max_tool_result_chars tool_error_message tool_timeout_ms tool_results
loop_guard repair_arguments match_tool_names version
""".split()


@pytest.mark.spec("BEY-41")
@pytest.mark.parametrize("option", AGENT_OPTIONS)
async def test_options_of_an_agent_that_are_none_are_refused(option: str):
    sound = {
        "max_steps": (7,),
        "tool_concurrency": (7,),
        "approval_ttl_ms": (7,),
        "max_tool_result_chars": (7,),
        "tool_timeout_ms": (7,),
        "loop_guard": (True,),
        "repair_arguments": (True,),
        "match_tool_names": (True,),
    }
    for name, value in JUNK.items():
        if name in ("a function", "a class", "a generator") or value in sound.get(option, ()):
            continue
        given: dict[str, Any] = {"provider": mock_model([])} if option != "provider" else {}
        await refused(lambda value=value, given=given: create_agent(**wrong({**given, option: value})))


@pytest.mark.spec("BEY-41")
@pytest.mark.parametrize("bad", ["", " ", "a b", "../etc", "x" * 129, "ä", "a\x00b", "a/b", 7, None, b"s"], ids=repr)
async def test_ids_that_are_none_decide_and_open_nothing(bad: Any):
    agent = create_agent(provider=mock_model([call("deploy", to="a"), "Deployed."]), tools=[deploy])
    paused = await agent.send("go")
    if bad is not None:
        await refused(lambda: agent.session(bad))
    store = InMemoryApprovalStore()
    for work in (
        lambda: agent.approvals.resolve(id=wrong(bad), approved=True),
        lambda: agent.approvals.answer(id=wrong(bad), answer="x"),
        lambda: agent.approvals.stream_resolve(id=wrong(bad), approved=True),
        lambda: agent.approvals.resolve(id=str(paused.approval_id), approved=wrong("yes")),
        lambda: resume_after_approval({"id": bad, "approved": True}, store, None, mock_model([])),
    ):
        await refused(work)
    assert [one.id for one in await agent.approvals.list()] == [paused.approval_id]
    assert (await agent.approvals.resolve(id=str(paused.approval_id), approved=True)).text == "Deployed."


@pytest.mark.spec("BEY-41")
@pytest.mark.parametrize("value", JUNK.values(), ids=list(JUNK))
async def test_tools_and_registries_take_nothing_that_is_no_tool(value: Any):
    registry = ToolRegistry([deploy])
    await refused(lambda: registry.register(wrong(value)))
    await refused(lambda: registry.register("other", wrong(value)))
    if not isinstance(value, type(x for x in ())):
        await refused(lambda: registry.register_many(wrong(value)))
    if not callable(value):
        await refused(lambda: define_tool(name="a", description="b", execute=wrong(value)))
    await refused(lambda: define_tool(name=wrong(value), description="b", execute=print))
    await refused(lambda: define_tool(name="a", description=wrong(value), execute=print))
    assert registry.names() == ["deploy"]


FILES = {
    "empty": b"",
    "no text": b"\xff\xfe\x00\x01" * 10,
    "cut off": b'{"name": "a", "prompt": "b", "prov',
    "a list": b"[1, 2]",
    "a number": b"7",
    "deep": b"[" * 5_000,
    "huge numbers": b'{"name": 1e999999}',
    "tabs": b"a:\n\t- b",
    "a number as a key": b"7: x\n{}",
    "an anchor that has no end": b"a: &a [*a, *a]",
    "twice": b"name: a\nname: b\n",
}


@pytest.mark.spec("BEY-41")
@pytest.mark.parametrize("data", FILES.values(), ids=list(FILES))
async def test_files_that_are_none_are_refused_and_stay_as_they_are(data: bytes, tmp_path: Path):
    for name in ("spec.json", "spec.yaml"):
        file = tmp_path / name
        file.write_bytes(data)
        await refused(lambda file=file: load_spec(file))
        assert file.read_bytes() == data
    folder = tmp_path / "agent"
    (folder / "tools").mkdir(parents=True)
    (folder / "instructions.md").write_text("Help.", encoding="utf-8")
    (folder / "agent.yaml").write_bytes(data)
    if data.strip():
        await refused(lambda: load_agent_dir(folder))
    cassette = tmp_path / "talk.json"
    cassette.write_bytes(data)
    replaying = record_replay(cassette=cassette, mode="replay")
    await refused(lambda: create_agent(provider=replaying).send("go"))
    assert cassette.read_bytes() == data


MODELS = {
    **JUNK,
    "empty": "",
    "no provider": "nothing",
    "a slash": "/",
    "a space": "open ai/x",
    "unknown": "nobody/x",
    "long": "x" * 100_000,
}


@pytest.mark.spec("BEY-41")
@pytest.mark.parametrize("value", MODELS.values(), ids=list(MODELS))
async def test_models_and_specs_that_are_none_are_refused(value: Any):
    await refused(lambda: resolve_provider(wrong(value)))
    await refused(lambda: LLMProviderRegistry.create(wrong(str(value)[:50])))
    if not isinstance(value, str):
        await refused(lambda: spec_to_agent(wrong(value)))
    await refused(lambda: spec_to_agent({"name": "a", "prompt": "b", "provider": wrong(value)}))


@pytest.mark.spec("BEY-41")
async def test_a_message_of_many_megabytes_goes_through_or_is_refused_but_nothing_breaks():
    model = mock_model(["Hello.", "Again."])
    agent = create_agent(provider=model)
    text = "word " * 4_000_000
    try:
        assert (await within(agent.send(text))).text == "Hello."
    except SDKError as error:
        check(error)
    model.reset()
    assert (await agent.send("hi")).text == "Hello."
    json.dumps((await agent.send("hi")).to_dict())
