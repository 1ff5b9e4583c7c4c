"""Model, instructions and tools as functions of the run: what they are told, when they are called, how they fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any, get_args

import pytest
from runs import WAIT, call, collect, of_type

from lousho import (
    ConfigurationError,
    LLMProviderRegistry,
    Message,
    PerRun,
    RunConfigContext,
    TextPart,
    create_agent,
    deny,
    tool,
)
from lousho.testing import mock_model


@tool
async def refund(order_id: str) -> str:
    """Refund an order."""
    return f"refunded {order_id}"


@tool
async def look_up(order_id: str) -> str:
    """Look an order up."""
    return f"{order_id} was shipped"


def echo(**options: Any) -> Any:
    """An agent that answers `Hello!` for ever."""
    return create_agent(provider=mock_model(["Hello!"], on_exhausted="repeat-last"), **options)


def names(request: Any) -> list[str]:
    return [one.function.name for one in request.tools]


class ChooseModel:
    """An object that can be called is a function, too."""

    async def __call__(self, ctx: RunConfigContext) -> str:
        return "small-model" if isinstance(ctx.input, str) and len(ctx.input) < 10 else "large-model"


async def tenant(ctx: RunConfigContext) -> str:
    return f"You are the support agent of {(ctx.metadata or {}).get('tenant', 'Acme')}."


def by_role(ctx: RunConfigContext) -> list[Any] | dict[str, Any]:
    return {"pay_back": refund} if (ctx.metadata or {}).get("role") == "admin" else []


@pytest.mark.spec("API-14")
async def test_model_instructions_and_tools_are_chosen_by_the_input_the_tenant_and_the_role():
    model = mock_model(["Hello!"], on_exhausted="repeat-last")
    agent = create_agent(provider=model, model=ChooseModel(), instructions=tenant, tools=by_role)
    await agent.send("Hi", metadata={"tenant": "Globex", "role": "admin"})
    await agent.send("A longer question")
    first, second = model.calls
    assert (first.model, names(first)) == ("small-model", ["pay_back"])
    assert first.messages[0].content == "You are the support agent of Globex."
    assert (second.model, names(second)) == ("large-model", [])
    assert second.messages[0].content == "You are the support agent of Acme."


@pytest.mark.spec("API-14")
async def test_plain_values_and_functions_mix_and_a_plain_function_may_hand_back_something_to_await():
    model = mock_model(["Hello!"])
    agent = create_agent(provider=model, model="fixed", prompt=lambda ctx: tenant(ctx), tools=[refund])
    await agent.send("Hi", instructions="Be brief.")
    sent = model.calls[0]
    assert (sent.model, names(sent)) == ("fixed", ["refund"])
    assert sent.messages[0].content == "You are the support agent of Acme.\n\nBe brief."


def test_the_type_of_such_an_option_can_be_written_down():
    def build(model: PerRun[str]) -> Any:
        return echo(model=model)

    assert (build("a").model, build(lambda ctx: "b").model) == ("a", None)
    assert str in get_args(PerRun[str])


class Desk:
    """A provider that model strings can name, with how often each was built and closed."""

    def __init__(self) -> None:
        self.built: list[str] = []
        self.closed: list[str] = []
        self.asked: list[str] = []

    def make(self, *, default_model: str) -> Any:
        desk = self
        desk.built.append(default_model)

        class Provider:
            name = "desk"

            def __init__(self) -> None:
                self.default_model = default_model
                self._model = mock_model(["Hello!"], on_exhausted="repeat-last")

            async def generate(self, request: Any) -> Any:
                desk.asked.append(default_model)
                return await self._model.generate(request)

            async def aclose(self) -> None:
                desk.closed.append(default_model)

        return Provider()


@pytest.fixture
def desk() -> Any:
    made = Desk()
    LLMProviderRegistry.register("desk", made.make)
    yield made
    LLMProviderRegistry.unregister("desk")


@pytest.mark.spec("API-14", "API-20")
async def test_a_model_string_is_built_once_however_often_it_is_chosen_and_closed_with_the_agent(desk: Desk):
    agent = create_agent(model=lambda ctx: f"desk/{ctx.input}")
    for size in ("small", "large", "small", "small"):
        assert (await agent.send(size)).text == "Hello!"
    assert (desk.built, desk.asked) == (["small", "large"], ["small", "large", "small", "small"])
    await agent.close()
    assert sorted(desk.closed) == ["large", "small"]


@pytest.mark.spec("API-20")
async def test_an_agent_of_plain_values_is_built_once_when_it_is_made(desk: Desk):
    agent = create_agent(model="desk/fixed")
    assert desk.built == ["fixed"]
    for _ in range(3):
        await agent.send("Hi")
    await agent.session("s").send("Hi")
    assert desk.built == ["fixed"]


async def test_models_without_number_do_not_pile_up_and_a_forgotten_one_is_built_anew(desk: Desk):
    agent = create_agent(model=lambda ctx: f"desk/{ctx.input}")
    for number in range(70):
        await agent.send(str(number))
    await agent.send("69")
    await agent.send("0")
    assert len(desk.built) == 71
    await agent.close()
    assert len(desk.closed) == 64


def test_an_agent_that_chooses_its_model_needs_neither_key_nor_provider_to_be_made():
    agent = create_agent(name="desk", model=lambda ctx: "openai/gpt-4.1-mini")
    assert (agent.model, agent.model_label, repr(agent)) == (
        None,
        "chosen per run",
        "Agent('desk', model='chosen per run')",
    )
    assert agent.provider.name == "chosen per run"
    assert echo(model=lambda ctx: "x").model_label == "mock (chosen per run)"
    assert (echo().model_label, echo(model="m-1").model_label) == ("mock/mock-model", "mock/m-1")


async def test_the_stand_in_for_a_provider_that_is_not_chosen_says_so_when_it_is_asked():
    provider = create_agent(model=lambda ctx: "mock/x").provider
    with pytest.raises(ConfigurationError, match="chosen per run"):
        await provider.generate(Any)  # type: ignore[arg-type]


class Told:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.contexts: list[RunConfigContext] = []

    def __call__(self, ctx: RunConfigContext) -> str:
        self.contexts.append(ctx)
        return "Be kind."

    @property
    def last(self) -> tuple[Any, Any, Any, Any]:
        ctx = self.contexts[-1]
        return ctx.session_id, ctx.input, ctx.metadata, ctx.principal


@pytest.mark.spec("API-15")
async def test_the_context_has_the_session_the_input_and_the_metadata_of_the_call():
    told = Told()
    agent = echo(instructions=told)
    await agent.send("Hi")
    assert told.last == (None, "Hi", None, None)
    await agent.send("Hi", metadata={"tenant": "Globex"})
    assert told.last == (None, "Hi", {"tenant": "Globex"}, None)
    await collect(agent.stream("Hi", metadata={"n": [1]}))
    assert told.last == (None, "Hi", {"n": [1]}, None)
    session = agent.session("s-1")
    await session.send("One", metadata={"turn": 1})
    assert told.last == ("s-1", "One", {"turn": 1}, None)
    await collect(session.stream("Two", metadata={"turn": 2}))
    assert told.last == ("s-1", "Two", {"turn": 2}, None)


@pytest.mark.spec("API-15")
def test_the_blocking_calls_tell_it_too():
    told = Told()
    agent = echo(instructions=told)
    agent.send_sync("Hi", metadata={"a": 1})
    assert told.last == (None, "Hi", {"a": 1}, None)
    list(agent.session("s-2").stream_sync("Ho", metadata={"b": 2}))
    assert told.last == ("s-2", "Ho", {"b": 2}, None)


@pytest.mark.spec("API-15")
async def test_an_input_that_is_not_one_text_is_told_as_messages():
    told = Told()
    agent = echo(instructions=told)
    await agent.send([{"role": "user", "content": "Hi"}])
    assert told.contexts[-1].input == "Hi"
    await agent.send([TextPart("Look at this")])
    assert told.contexts[-1].input == [Message("user", (TextPart("Look at this"),))]
    talk = [Message("user", "a"), Message("assistant", "b"), Message("user", "c", metadata={"k": {"n": 1}})]
    await agent.send(talk)
    assert told.contexts[-1].input == talk


@pytest.mark.spec("API-15")
async def test_each_function_gets_a_copy_that_it_may_spoil():
    def spoil(ctx: RunConfigContext) -> Any:
        assert ctx.metadata == {"list": [1], "deep": {"a": 1}}
        ctx.metadata["list"].append(2)  # type: ignore[index]
        ctx.metadata["deep"]["a"] = 2  # type: ignore[index]
        for message in ctx.input:
            message.metadata["k"].append("spoilt")  # type: ignore[union-attr]
        with pytest.raises(FrozenInstanceError):
            ctx.session_id = "other"  # type: ignore[misc]
        return "x"

    given = {"list": [1], "deep": {"a": 1}}
    asked = [Message("user", "a", metadata={"k": []}), Message("user", "b", metadata={"k": []})]
    agent = echo(model=spoil, instructions=spoil, tools=lambda ctx: [spoil(ctx)][:0])
    result = await agent.send(asked, metadata=given)
    assert result.text == "Hello!"
    assert given == {"list": [1], "deep": {"a": 1}}
    assert [message.metadata for message in result.messages[:2]] == [{"k": []}, {"k": []}]


@pytest.mark.spec("API-16")
async def test_the_functions_are_called_once_a_run_before_the_model_and_again_for_each_turn():
    order: list[str] = []

    def noted(name: str, value: Any) -> Callable[[RunConfigContext], Any]:
        def choose(ctx: RunConfigContext) -> Any:
            order.append(name)
            return value

        return choose

    def answers(*turns: Any) -> list[Any]:
        def turn(value: Any) -> Callable[[Any], Any]:
            def play(_: Any) -> Any:
                order.append("asked")
                return value

            return play

        return [turn(value) for value in turns]

    script = answers(call("refund", order_id="A"), call("refund", order_id="B"), "Done.", "Again.", "Once more.")
    agent = create_agent(
        provider=mock_model(script),
        model=noted("model", "m"),
        instructions=noted("instructions", "i"),
        tools=noted("tools", [refund]),
    )
    chosen = ["model", "instructions", "tools"]
    assert order == []
    await agent.session("s").send("go")
    assert order == [*chosen, "asked", "asked", "asked"]
    order.clear()
    await agent.session("s").send("and again")
    await agent.send("once more")
    assert order == [*chosen, "asked", *chosen, "asked"]


@pytest.mark.spec("API-16")
async def test_rules_and_questions_apply_to_the_tools_that_a_function_chooses():
    script = [call("refund", order_id="A"), call("ask_question", question="Which one?")]
    agent = create_agent(
        provider=mock_model(script),
        tools=lambda ctx: [refund],
        permissions=[deny("refund", "not today")],
        ask_question=True,
    )
    result = await agent.send("go")
    assert "not today" in str(result.messages[2].content)
    assert result.finish_reason == "awaiting-approval"
    (waiting,) = await agent.approvals.list()
    assert (waiting.kind, waiting.question) == ("question", {"text": "Which one?"})


async def test_no_warning_about_rules_when_only_a_run_knows_the_tools(caplog: pytest.LogCaptureFixture):
    await echo(tools=lambda ctx: [refund], permissions=[deny("refund")]).send("go")
    assert caplog.records == []


async def test_runs_at_the_same_time_do_not_mix():
    started = asyncio.Barrier(20)

    async def waits(ctx: RunConfigContext) -> str:
        await started.wait()
        return f"tenant {(ctx.metadata or {})['n']}"

    model = mock_model([lambda request: str(request.messages[0].content)], on_exhausted="repeat-last")
    agent = create_agent(provider=model, instructions=waits)
    runs = [agent.send("Hi", metadata={"n": number}) for number in range(20)]
    results = await asyncio.wait_for(asyncio.gather(*runs), WAIT)
    assert [result.text for result in results] == [f"tenant {number}" for number in range(20)]


async def test_a_changed_copy_keeps_functions_and_replaces_them():
    model = mock_model(["Hello!"], on_exhausted="repeat-last")
    first = create_agent(provider=model, model=ChooseModel(), instructions=tenant, tools=by_role)
    second = first.with_options(instructions="Fixed.", version="2")
    third = first.with_options(tools=[look_up], model=lambda ctx: "third", provider=model)
    fourth = first.with_options(model="mock/four")
    await second.send("Hi", metadata={"role": "admin"})
    await third.send("Hi")
    sent = model.calls
    assert (sent[0].model, sent[0].messages[0].content, names(sent[0])) == ("small-model", "Fixed.", ["pay_back"])
    assert (sent[1].model, names(sent[1])) == ("third", ["look_up"])
    assert sent[1].messages[0].content == "You are the support agent of Acme."
    assert (fourth.model, fourth.options.per_run) == ("four", ("instructions", "tools"))


async def test_a_function_may_ask_other_agents_and_sessions_but_not_wait_for_its_own_turn():
    other = echo()

    async def asks(ctx: RunConfigContext) -> str:
        return (await other.session("notes").send("What is new?")).text

    assert (await echo(instructions=asks).send("Hi")).text == "Hello!"

    async def asks_itself(ctx: RunConfigContext) -> str:
        return (await agent.session("s").send("again")).text

    agent = echo(instructions=asks_itself)
    with pytest.raises(ConfigurationError) as caught:
        await asyncio.wait_for(agent.session("s").send("Hi"), WAIT)
    assert getattr(caught.value.__cause__, "code", None) == "LOUSHO_SESSION_BUSY"


def test_functions_run_in_every_blocking_host():
    agent = echo(instructions=tenant, model=ChooseModel())
    assert agent.send_sync("Hi").text == "Hello!"
    events = list(agent.stream_sync("Hi"))
    assert [event.type for event in of_type(events, "run.start", "run.done")] == ["run.start", "run.done"]
    assert json.dumps(agent.describe_sync(input="Hi"))
