"""From a model string to a provider, and what a first-time user is told when that fails."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
from fake_vendor import FakeVendor, http, request

from lousho import LLMProviderRegistry, create_agent, create_mock_provider, resolve_provider
from lousho.core.errors import ConfigurationError
from lousho.models.anthropic import AnthropicProvider
from lousho.models.openai import OpenAIProvider
from lousho.models.resolve import default_model_from_environment
from lousho.testing import mock_model

OPENAI_REPLY = {"choices": [{"message": {"content": "Hello from a server"}, "finish_reason": "stop"}]}
ANTHROPIC_REPLY = {"content": [{"type": "text", "text": "Hello from a server"}], "stop_reason": "end_turn"}


@pytest.fixture
def registered() -> Iterator[list[str]]:
    """Names that a test registers; they are forgotten again."""
    names: list[str] = []
    yield names
    for name in names:
        LLMProviderRegistry.unregister(name)


@pytest.mark.spec("QS-04", "QS-15")
@pytest.mark.parametrize(
    ("model", "variables", "reply", "key_header"),
    [
        (
            "openai/gpt-4.1-mini",
            ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
            OPENAI_REPLY,
            ("authorization", "Bearer k-12345"),
        ),
        ("anthropic/claude-x", ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"), ANTHROPIC_REPLY, ("x-api-key", "k-12345")),
    ],
)
async def test_a_model_string_is_all_an_agent_needs(
    vendor: FakeVendor, model: str, variables: tuple[str, str], reply: Any, key_header: tuple[str, str]
):
    os.environ.update({variables[0]: vendor.url, variables[1]: "k-12345"})
    vendor.answers(http(200, reply))
    agent = create_agent(model=model, instructions="You are a helpful assistant.")
    assert (await agent.send("Hello!")).text == "Hello from a server"
    same = create_agent(provider=resolve_provider(model), instructions="You are a helpful assistant.")
    assert (await same.send("Hello!")).text == "Hello from a server"
    for seen in vendor.received:
        assert seen.json["model"] == model.partition("/")[2]
        assert seen.headers[key_header[0]] == key_header[1]
    assert vendor.received[0].json == vendor.received[1].json


@pytest.mark.spec("QS-04")
async def test_the_blocking_twin_works_while_a_server_answers(vendor: FakeVendor):
    import asyncio

    os.environ.update(OPENAI_BASE_URL=vendor.url, OPENAI_API_KEY="k-12345")
    vendor.answers(http(200, OPENAI_REPLY))
    agent = create_agent(model="openai/gpt-4.1-mini", instructions="You are a helpful assistant.")
    for _ in range(2):
        assert (await asyncio.to_thread(agent.send_sync, "Hello!")).text == "Hello from a server"


@pytest.mark.spec("QS-15")
async def test_a_provider_of_ones_own_is_used_as_it_is():
    model = mock_model(["Mine."])
    assert (await create_agent(provider=model).send("hi")).text == "Mine."
    assert (await create_agent(provider=mock_model(["x"]), model="m2").send("hi")).text == "x"


def test_a_resolved_provider_knows_its_name_and_model():
    os.environ.update(OPENAI_API_KEY="k-12345", ANTHROPIC_API_KEY="k-12345")
    openai, anthropic = resolve_provider("openai/vendor/model:free"), resolve_provider("anthropic/claude-x")
    assert isinstance(openai, OpenAIProvider)
    assert isinstance(anthropic, AnthropicProvider)
    assert (openai.name, openai.default_model) == ("openai", "vendor/model:free")
    assert (anthropic.name, anthropic.default_model) == ("anthropic", "claude-x")
    assert openai.supports_tools()
    assert openai.supports_streaming()


async def test_the_mock_prefix_needs_no_key():
    result = await create_agent(model="mock/any-name").send("hi")
    assert "canned reply" in result.text


ORDER = (
    ("LOUSHO_MODEL", "mock/x", "mock/x"),
    ("OPENAI_API_KEY", "k-1", "openai/gpt-4.1-mini"),
    ("ANTHROPIC_API_KEY", "k-2", "anthropic/claude-sonnet-4-5"),
    ("OPENROUTER_API_KEY", "k-3", "openrouter/openai/gpt-4.1-mini"),
    ("OLLAMA_BASE_URL", "http://localhost:11434", "ollama/llama3"),
)


@pytest.mark.parametrize("chosen", [subset for n in range(6) for subset in itertools.combinations(ORDER, n)], ids=len)
def test_the_environment_picks_the_first_of_its_variables(chosen: tuple[tuple[str, str, str], ...]):
    env = {name: value for name, value, _ in reversed(chosen)}
    assert default_model_from_environment(env) == (chosen[0][2] if chosen else None)
    assert default_model_from_environment({**env, chosen[0][0]: "  "} if chosen else {"LOUSHO_MODEL": ""}) == (
        chosen[1][2] if len(chosen) > 1 else None
    )


@pytest.mark.spec("QS-05", "ENV-01")
@pytest.mark.parametrize("first", ["LOUSHO_MODEL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"])
async def test_an_agent_without_a_model_asks_the_environment(vendor: FakeVendor, first: str):
    openai = {"OPENAI_API_KEY": "k-1", "OPENAI_BASE_URL": f"{vendor.url}/o"}
    anthropic = {"ANTHROPIC_API_KEY": "k-2", "ANTHROPIC_BASE_URL": f"{vendor.url}/a"}
    rest = {"OPENROUTER_API_KEY": "k-3", "OLLAMA_BASE_URL": "http://127.0.0.1:1"}
    paths = {"OPENAI_API_KEY": "/o/chat/completions", "ANTHROPIC_API_KEY": "/a/v1/messages"}
    if first == "LOUSHO_MODEL":
        os.environ.update({**openai, **anthropic, **rest, "LOUSHO_MODEL": "anthropic/claude-y"})
        path, model, reply = "/a/v1/messages", "claude-y", ANTHROPIC_REPLY
    elif first == "OPENAI_API_KEY":
        os.environ.update({**openai, **anthropic, **rest})
        path, model, reply = paths[first], "gpt-4.1-mini", OPENAI_REPLY
    else:
        os.environ.update({**anthropic, **rest})
        path, model, reply = paths[first], "claude-sonnet-4-5", ANTHROPIC_REPLY
    vendor.answers(http(200, reply))
    await create_agent().send("hi")
    assert (vendor.received[0].path, vendor.received[0].json["model"]) == (path, model)


@pytest.mark.spec("ERR-27")
@pytest.mark.parametrize(
    "model", ["gpt-4o", "", "/x", "openai/", " / ", "openai gpt/x", "openai/gpt\n4", None, 7, "x" * 500]
)
def test_a_string_that_is_no_model_string_is_refused(model: Any):
    with pytest.raises(ConfigurationError) as refused:
        resolve_provider(model)
    assert refused.value.code == "LOUSHO_PROVIDER_SPEC_INVALID"
    assert "'openai/gpt-4.1-mini'" in refused.value.detail
    assert len(refused.value.detail) < 400


@pytest.mark.spec("ERR-27")
@pytest.mark.parametrize(
    ("model", "meant"), [("gpt-4o", "openai/gpt-4o"), ("claude-sonnet-4-5", "anthropic/claude-sonnet-4-5")]
)
def test_a_bare_model_id_of_a_known_family_gets_a_suggestion(model: str, meant: str):
    with pytest.raises(ConfigurationError, match=f"Did you mean '{meant}'"):
        create_agent(model=model)


@pytest.mark.spec("ERR-28", "QS-06")
@pytest.mark.parametrize(
    ("model", "meant"),
    [("opnai/gpt-4o", "openai/gpt-4o"), ("anthopic/x", "anthropic/x"), ("OpenAI/x", "openai/x"), ("mok/x", "mock/x")],
)
def test_a_misspelt_prefix_gets_a_suggestion_and_the_list(model: str, meant: str):
    with pytest.raises(ConfigurationError) as refused:
        create_agent(model=model)
    assert refused.value.code == "LOUSHO_PROVIDER_UNKNOWN"
    assert f"Did you mean '{meant}'?" in refused.value.detail
    assert "Supported prefixes: openai, anthropic, mock" in refused.value.detail


@pytest.mark.spec("ERR-28")
def test_a_vendor_without_a_prefix_is_told_the_ways_to_reach_it():
    with pytest.raises(ConfigurationError) as refused:
        resolve_provider("mistral/large")
    assert "Did you mean" not in refused.value.detail
    for way in ("OPENAI_BASE_URL", "provider=", "LLMProviderRegistry.register('mistral', factory)"):
        assert way in refused.value.detail


@pytest.mark.parametrize(
    ("model", "instead"),
    [
        ("google/gemini-2.5-flash", "openai/gemini-2.5-flash"),
        ("openrouter/openai/gpt-4o-mini", "openai/openai/gpt-4o-mini"),
        ("ollama/llama3.1", "openai/llama3.1"),
        ("pi/anthropic/x", "anthropic"),
    ],
)
def test_a_provider_to_come_says_so_and_what_works_today(model: str, instead: str):
    os.environ.update(OPENROUTER_API_KEY="k", OLLAMA_BASE_URL="http://localhost:11434")
    with pytest.raises(ConfigurationError, match="does not include the provider") as refused:
        resolve_provider(model)
    assert refused.value.code == "LOUSHO_PROVIDER_UNKNOWN"
    assert instead in refused.value.detail


@pytest.mark.spec("ERR-29", "QS-06")
@pytest.mark.parametrize(
    ("model", "variable"), [("openai/gpt-4.1-mini", "OPENAI_API_KEY"), ("anthropic/claude-x", "ANTHROPIC_API_KEY")]
)
@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_key_names_its_variable_and_the_way_without_one(model: str, variable: str, value: str | None):
    if value is not None:
        os.environ[variable] = value
    with pytest.raises(ConfigurationError) as refused:
        create_agent(model=model)
    assert refused.value.code == "LOUSHO_PROVIDER_MISSING_API_KEY"
    assert refused.value.detail.startswith(f"{variable} is not set, and the model '{model}' needs it")
    assert "--model mock/demo" in refused.value.detail


def test_a_local_server_without_a_key_is_told_that_any_will_do():
    os.environ["OPENAI_BASE_URL"] = "http://localhost:1234/v1"
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY=any"):
        resolve_provider("openai/qwen3-8b")


async def test_a_registered_name_works_in_a_model_string(registered: list[str]):
    registered.append("acme")
    LLMProviderRegistry.register(
        "acme", lambda default_model: create_mock_provider(["Acme."], default_model=default_model)
    )
    assert LLMProviderRegistry.has("acme")
    assert resolve_provider("acme/m1").default_model == "m1"
    assert (await create_agent(model="acme/m1").send("hi")).text == "Acme."
    with pytest.raises(ConfigurationError, match=r"Did you mean 'acme/m1'\?"):
        resolve_provider("acne/m1")


async def test_a_factory_may_take_no_options_and_replace_a_built_in_name(registered: list[str]):
    registered.extend(["mock", "openai"])
    LLMProviderRegistry.register("mock", lambda: create_mock_provider(["Replaced."]))
    LLMProviderRegistry.register("openai", lambda: create_mock_provider(["No key needed."]))
    assert (await create_agent(model="mock/greeter").send("hi")).text == "Replaced."
    assert (await create_agent(model="openai/x").send("hi")).text == "No key needed."


def test_a_factory_gets_its_own_options(registered: list[str]):
    registered.append("bedrock")
    LLMProviderRegistry.register(
        "bedrock", lambda region, default_model="b": create_mock_provider([region], name=default_model)
    )
    assert LLMProviderRegistry.create("bedrock", region="eu-west-1").name == "b"
    with pytest.raises(ConfigurationError, match="did you mean 'region'"):
        LLMProviderRegistry.create("bedrock", regoin="x")


@pytest.mark.parametrize(
    ("config", "meant"),
    [
        ({"baseUrl": "x"}, "base_url"),
        ({"apiKey": "x"}, "api_key"),
        ({"fetch": 1}, "transport"),
        ({"time_out": 1}, "timeout"),
    ],
)
def test_an_option_a_built_in_provider_lacks_gets_a_suggestion(config: dict[str, Any], meant: str):
    with pytest.raises(ConfigurationError, match=f"did you mean '{meant}'") as refused:
        LLMProviderRegistry.create("openai", **config)
    assert refused.value.code == "LOUSHO_CONFIG_INVALID"


def test_create_refuses_a_name_nobody_registered():
    assert not LLMProviderRegistry.has("nosuch")
    with pytest.raises(ConfigurationError) as refused:
        LLMProviderRegistry.create("nosuch")
    assert refused.value.code == "LOUSHO_PROVIDER_UNKNOWN"


@pytest.mark.parametrize(
    ("name", "factory"),
    [("a/b", create_mock_provider), ("", create_mock_provider), ("a b", create_mock_provider), ("a", 3)],
)
def test_a_name_no_model_string_could_hold_is_refused(name: str, factory: Any):
    with pytest.raises(ConfigurationError):
        LLMProviderRegistry.register(name, factory)


async def test_a_configured_provider_comes_from_the_registry(vendor: FakeVendor):
    vendor.answers(http(200, OPENAI_REPLY))
    provider = LLMProviderRegistry.create(
        "openai", api_key="k-12345", base_url=vendor.url, default_model="m9", name="local"
    )
    assert provider.name == "local"
    await provider.generate(request())
    assert vendor.received[0].json["model"] == "m9"


def test_the_demo_model_needs_no_key_and_other_mock_names_are_canned():
    assert type(resolve_provider("mock/demo")).__name__ == "DemoProvider"
    assert type(resolve_provider("mock/demonstration")).__name__ == "MockLLMProvider"


@pytest.mark.parametrize("name", ["dmo", "deom", "Demo", "demos"])
def test_a_misspelt_demo_model_is_not_taken_for_canned_replies(name: str):
    with pytest.raises(ConfigurationError, match="Did you mean 'mock/demo'") as refused:
        resolve_provider(f"mock/{name}")
    assert refused.value.code == "LOUSHO_PROVIDER_SPEC_INVALID"
