"""Options of an agent and of its calls that are anything at all: refused at once by a coded error, or working.

No error shows a key, and a store is what it is even while it is empty.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hostile import play
from hostile_values import KEY, VALUES, Client, check_refusal
from runs import call, types

from lousho import AgentRun, ConfigurationError, InMemoryApprovalStore, SDKError, create_agent, define_tool, tool
from lousho.agent.call_options import AnswerOptions, ResolveOptions, StreamOptions, TurnOptions
from lousho.agent.options import KNOWN_OPTIONS
from lousho.stores.memory import InMemorySessionStore
from lousho.testing import mock_model


@tool
async def look_up(name: str) -> str:
    """Look an address up."""
    return f"{name}@example.com"


def desk(*script: Any, **options: Any) -> Any:
    """An agent that answers `Hello!` for ever, or its script."""
    model = mock_model([*script] or ["Hello!"], on_exhausted="repeat-last")
    given: dict[str, Any] = {"provider": model, "tools": [look_up], **options}
    return create_agent(**given)


async def run_to_the_end(agent: Any, **options: Any) -> None:
    json.dumps((await play(agent.stream("Hi", **options))).ended.to_dict())


@pytest.mark.parametrize("option", KNOWN_OPTIONS)
async def test_an_option_of_an_agent_works_or_is_refused_when_the_agent_is_made(option: str):
    for value in VALUES:
        try:
            agent = desk(**{option: value})
        except SDKError as error:
            check_refusal(error, value)
            continue
        json.dumps(await agent.describe(), ensure_ascii=False).encode("utf-8")
        if option in ("model", "instructions", "prompt", "tools", "permission_mode") and callable(value):
            with pytest.raises(
                SDKError
            ) as caught:  # taken for a function of the run; it returns 1, or wants no context
                await agent.send("Hi")
            check_refusal(caught.value, value)
            assert caught.value.code == "LOUSHO_CONFIG_RESOLVER_FAILED"
        else:
            await run_to_the_end(agent)


@pytest.mark.parametrize("option", StreamOptions.__annotations__)
async def test_an_option_of_a_call_works_or_is_refused_by_the_call_itself(option: str):
    agent = desk()
    for value in VALUES:
        if option == "session_id" and value == f"sk-{KEY}":
            continue  # as an id it is a fine one
        given = {option: value}
        try:
            run = agent.stream("Hi", **given)
        except SDKError as error:
            check_refusal(error, value)
        else:
            played = await play(run)
            if option == "permission_mode" and callable(value):  # a function that gives no mode
                assert getattr(played.error, "code", None) == "LOUSHO_CONFIG_RESOLVER_FAILED"
            else:
                assert played.ended.text == "Hello!"
        if option in TurnOptions.__annotations__:
            try:
                await agent.session("s").send("Hi", **given)
            except SDKError as error:
                check_refusal(error, value)
    assert agent.send_sync("Hi").text == "Hello!"


@pytest.mark.parametrize("option", ["input", "session_id", "metadata", "signal"])
async def test_what_a_description_is_asked_with_works_or_is_refused(option: str):
    for value in VALUES:
        try:
            json.dumps(await desk().describe(**{option: value}))
        except SDKError as error:
            check_refusal(error, value)


@pytest.mark.parametrize("switch", ["ask_question", "redact_content", "loop_guard"])
def test_a_switch_takes_no_text_that_reads_like_its_opposite(switch: str):
    with pytest.raises(ConfigurationError, match=f"{switch} must be True or False; got 'false'"):
        desk(**{switch: "false"})


async def test_a_stream_takes_no_text_for_whether_it_throws():
    with pytest.raises(ConfigurationError, match="throw_on_error must be True or False"):
        desk().stream("Hi", throw_on_error="false")


async def test_decisions_tell_names_that_do_not_exist_and_what_is_missing():
    approvals = desk().approvals
    ways = {
        "resolve": ({"id": "x", "approved": True}, ResolveOptions),
        "answer": ({"id": "x", "answer": "y"}, AnswerOptions),
    }
    for way, (given, known) in ways.items():
        for decide in (way, f"stream_{way}", f"{way}_sync", f"stream_{way}_sync"):
            for name in known.__annotations__:
                misspelt = f"{name[:-1]}q" if len(name) > 2 else "idd"
                with pytest.raises(ConfigurationError, match=f"'{misspelt}' is not a known option .did you mean '"):
                    await _awaited(getattr(approvals, decide), **given, **{misspelt: 1})
            for name in given:
                rest = {key: value for key, value in given.items() if key != name}
                with pytest.raises(SDKError, match=f"{name}= is missing") as caught:
                    await _awaited(getattr(approvals, decide), **rest)
                assert caught.value.code == "LOUSHO_APPROVAL_DECISION_INVALID"
            for value in VALUES:
                for name in given:
                    with pytest.raises(SDKError) as refused:
                        await _awaited(getattr(approvals, decide), **{**given, name: value})
                    check_refusal(refused.value, value)


async def _awaited(decide: Callable[..., Any], **given: Any) -> None:
    outcome = decide(**given)
    if isinstance(outcome, AgentRun):
        await outcome.result
    elif isinstance(outcome, Awaitable):
        await outcome
    else:
        outcome.result()


class Sized(InMemoryApprovalStore):
    """A store that counts as false while it is empty."""

    def __len__(self) -> int:
        return len(self._steps)


async def test_a_store_that_counts_as_false_while_it_is_empty_is_used_all_the_same():
    class Whole(SimpleNamespace):
        def __bool__(self) -> bool:
            return False

    @tool(needs_approval=True)
    async def refund() -> str:
        """Refund."""
        return "refunded"

    for store in (Sized(), Sized()):
        whole = Whole(sessions=InMemorySessionStore(), approvals=store)
        for given in ({"approval_store": store}, {"store": whole}):
            paused = await desk(call("refund"), "Done.", tools=[refund], **given).send("go")
            assert [one.id for one in await store.list()] == [paused.approval_id.rpartition(".")[0]]
            done = await desk("Done.", tools=[refund], **given).approvals.resolve(id=paused.approval_id, approved=True)
            assert (done.text, await store.list()) == ("Done.", [])


async def test_a_pause_that_a_store_did_not_keep_fails_the_run():
    class Full(InMemoryApprovalStore):
        async def save(self, step: Any) -> bool:
            return False

    agent = desk(call("ask_question", question="Which?"), ask_question=True, approval_store=Full())
    played = await play(agent.stream("go"))
    assert isinstance(played.error, SDKError)
    assert played.error.code == "LOUSHO_STORAGE_FAILED"
    assert types(played.events)[-3:] == ["step.done", "error", "run.done"]


def test_the_question_to_the_user_can_be_switched_off_and_on_again():
    mine = define_tool(name="ask_question", description="Ask", input={"type": "object"}, execute=lambda args: "me")
    agent = desk(ask_question=True)
    assert list(agent.tools) == ["look_up", "ask_question"]
    assert list(agent.with_options(ask_question=False).tools) == ["look_up"]
    assert list(agent.with_options(ask_question=False).with_options(ask_question=True).tools) == list(agent.tools)
    assert list(agent.with_options(tools=[]).tools) == ["ask_question"]
    assert desk(tools=[mine], ask_question=True).with_options(ask_question=False).tools == {"ask_question": mine}
    assert agent.with_options(max_steps=2).tools["ask_question"].pause_kind == "question"


def test_questions_are_answered_in_a_stream_without_an_event_loop():
    agent = desk(call("ask_question", question="Which?"), "That one.", ask_question=True)
    paused = agent.send_sync("go")
    events = list(agent.approvals.stream_answer_sync(id=paused.approval_id, answer="that"))
    assert (events[0].type, events[-1].type, events[-1].text) == ("run.start", "run.done", "That one.")


async def test_texts_that_cannot_be_stored_are_cleaned_wherever_they_come_from():
    heard: list[Any] = []
    texts = dict.fromkeys(["name", "description", "version", "model", "instructions"], "a\ud800")
    agent = desk(**texts, on_event=heard.append)
    results = [
        await agent.send("Hi \ud800", model="b\udfff", instructions="c\ud800", metadata={"\ud800": "\ud800"}),
        await agent.with_options(
            model=lambda ctx: "b\ud800", provider=agent.provider, instructions=lambda ctx: "c\ud800"
        ).send("Hi"),
    ]
    written = json.dumps([*(one.to_dict() for one in heard), *(one.to_dict() for one in results)], ensure_ascii=False)
    assert "a\ufffd" in written
    written.encode("utf-8")
    assert [one.model for one in agent.provider.calls] == ["b\ufffd", "b\ufffd"]
    for one in agent.provider.calls:
        str(one.messages[0].content).encode("utf-8")


async def test_a_description_and_the_text_of_an_agent_show_no_key_wherever_one_was_given(clean_env: Any):
    os.environ["OPENAI_API_KEY"] = "plain-words-as-a-key"
    address = f"https://desk:{KEY}@books.example/v1"

    class Books(Client):
        """A provider that carries its key, under a name that nothing can store."""

        name = "books \ud800"
        default_model = None
        generate = stream = supports_tools = supports_streaming = get_models = mock_model(["Hi"]).generate

    secret = f"Ask {address} with sk-{KEY} or plain-words-as-a-key."
    lend = define_tool(
        name="lend",
        description=secret,
        input={"type": "object", "properties": {"to": {"type": "string", "default": secret}}},
        execute=print,
        annotations={"key": secret, f"sk-{KEY}": Client(KEY).api_key[:4]},
    )
    agent = desk(
        provider=Books(KEY),
        model=secret,
        name=secret,
        description=secret,
        version=secret,
        instructions=secret,
        tools=[lend],
        permissions=[{"tool": "lend", "action": "ask", "reason": secret}],
        model_settings={"stop": [secret]},
        tool_results={"spill_dir": f"/tmp/sk-{KEY}"},
    )
    for described in (await agent.describe(), await agent.describe(input="Hi", metadata={"key": secret})):
        text = json.dumps(described, ensure_ascii=False)
        text.encode("utf-8")
        assert text.count("[REDACTED]") > 20
        assert KEY not in text
        assert "plain-words" not in text
    assert KEY not in repr(create_agent(model="mock/demo", tools=[lend]).with_options(provider=Books(KEY)).options)
