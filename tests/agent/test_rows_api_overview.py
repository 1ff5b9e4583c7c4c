"""The public surface, row by row of the overview: what can be imported, and each feature's contract in a line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pydantic
import pytest
from fake_vendor import FakeVendor, fake_vendor, http
from hostile import told, within
from runs import call, collect, of_type

import lousho
from lousho import (
    ERROR_CODES,
    AnthropicProvider,
    ConfigurationError,
    FilePart,
    ImagePart,
    LLMProviderRegistry,
    Message,
    OpenAIProvider,
    SDKError,
    SessionAwaitingApprovalError,
    TextPart,
    create_agent,
    define_tool,
    text_of,
    tool,
)
from lousho.testing import mock_model, record_replay

ROOT = Path(__file__).resolve().parents[2]

ROOT_NAMES = """
create_agent InMemoryApprovalStore AgentStore memory_store SessionAwaitingApprovalError SDKError ERROR_CODES
load_spec agent_spec_schema spec_to_agent
resolve_provider LLMProviderRegistry OpenAIProvider AnthropicProvider create_mock_provider MockLLMProvider text_of
define_tool tool http_tool create_http_tool web_fetch_tool create_web_fetch_tool current_date_tool day_name_tool
create_todo_tools ask_question_tool
PerRun RunConfigContext ToolExecutionContext ToolArgumentsValidationError PropagatingToolError tool_error_result
AgentRun AgentEvent RunResult ExecutionResult ExecutionFinishReason LLMProvider Message CancelSignal
""".split()
"""What the overview and the pages behind it name without a submodule, as far as it can exist now."""


@pytest.mark.spec("API-02", "API-03")
def test_the_root_has_every_name_of_the_page_and_lists_what_it_has():
    missing = [name for name in ROOT_NAMES if name not in lousho.__all__]
    assert missing == []
    assert len(set(lousho.__all__)) == len(lousho.__all__)
    for name in lousho.__all__:
        assert getattr(lousho, name) is not None
    assert not any(name.startswith("_") for name in lousho.__all__ if name != "__version__")
    program = "from lousho import *; print(create_agent.__name__, SDKError.__name__, len(ERROR_CODES) > 50)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout.split() == ["create_agent", "SDKError", "True"]


TYPED = '''
from lousho import create_agent, tool
from lousho.testing import mock_model

@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b

async def main() -> None:
    result = await create_agent(provider=mock_model(["Hi."]), tools=[add]).send("go")
    reveal_type(result.text)
    result.txet
'''


@pytest.mark.spec("API-02")
def test_the_package_is_typed_for_whoever_installs_it(tmp_path: Path):
    for package in ("lousho", "lousho_cli"):
        assert (ROOT / package / "py.typed").is_file()
    (tmp_path / "use.py").write_text(TYPED, encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "use.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    messages = [one["message"] for one in found if one["severity"] in ("error", "information")]
    assert any('Type of "result.text" is "str"' in message for message in messages)
    assert any("txet" in message for message in messages)
    assert not any("could not be resolved" in one["message"] or "stub" in one["message"].lower() for one in found)


@pytest.mark.spec("API-09")
def test_every_error_has_a_code_of_the_table_a_hint_and_a_link():
    with pytest.raises(SDKError) as caught:
        create_agent(provider=mock_model([]), max_stepz=1)
    error = caught.value
    assert isinstance(error, ConfigurationError)
    assert error.code == "LOUSHO_CONFIG_INVALID"
    assert error.code in ERROR_CODES
    assert error.hint.strip()
    assert error.docs.startswith("https://")
    assert error.docs.endswith(error.code.lower())
    for code in ERROR_CODES:
        assert code.startswith("LOUSHO_")
        one = SDKError("x", code=code)
        assert (one.code, bool(one.hint.strip()), one.docs.endswith(code.lower())) == (code, True, True)
    classes = [value for name in lousho.__all__ if isinstance(value := getattr(lousho, name), type)]
    families = [one for one in classes if issubclass(one, SDKError)]
    assert len(families) > 10
    assert [one for one in families if one.default_code not in ERROR_CODES] == []


@pytest.mark.spec("API-11")
async def test_specs_and_providers_are_at_the_root(tmp_path: Path):
    spec = {"name": "helper", "prompt": "Help.", "provider": {"type": "mock", "model": "small"}}
    file = tmp_path / "agent.json"
    file.write_text(json.dumps(spec), encoding="utf-8")
    loaded = lousho.load_spec(file)
    assert issubclass(lousho.agent_spec_schema, pydantic.BaseModel)
    assert isinstance(loaded, lousho.agent_spec_schema)
    assert lousho.agent_spec_schema.model_validate(spec) == loaded
    with pytest.raises(pydantic.ValidationError):
        lousho.agent_spec_schema.model_validate({"name": "helper"})
    assert {"name", "prompt", "provider"} <= set(lousho.agent_spec_schema.model_json_schema()["properties"])
    agent = lousho.spec_to_agent(loaded)
    assert (agent.name, (await agent.send("hi")).finish_reason) == ("helper", "stop")

    assert LLMProviderRegistry.has("mock")
    assert not LLMProviderRegistry.has("moc")
    assert isinstance(lousho.resolve_provider("mock/small"), lousho.MockLLMProvider)
    assert isinstance(lousho.create_mock_provider(), lousho.MockLLMProvider)
    made = LLMProviderRegistry.create("openai", api_key="k", base_url="http://localhost:1")
    assert isinstance(made, OpenAIProvider)
    seen: list[Any] = []

    def factory(default_model: str) -> Any:
        seen.append(default_model)
        return mock_model(["from the factory"])

    LLMProviderRegistry.register("rows-own", factory)
    try:
        assert LLMProviderRegistry.has("rows-own")
        assert (await create_agent(model="rows-own/a").send("hi")).text == "from the factory"
    finally:
        LLMProviderRegistry.unregister("rows-own")
    assert seen == ["a"]


@pytest.mark.spec("API-12")
def test_the_text_of_a_message_is_its_content_or_its_text_parts():
    assert text_of(Message("user", "Hello.")) == "Hello."
    parts = (
        TextPart("Look: "),
        ImagePart("https://example.com/a.png"),
        TextPart("a cat"),
        FilePart(b"x", "text/plain"),
    )
    assert text_of(Message("user", parts)) == "Look: a cat"
    assert text_of(Message("user", (ImagePart("https://example.com/a.png"),))) == ""
    assert text_of(Message("user", "")) == ""


ANSWERS = {
    OpenAIProvider: {"choices": [{"message": {"content": "A cat."}, "finish_reason": "stop"}]},
    AnthropicProvider: {"content": [{"type": "text", "text": "A cat."}], "stop_reason": "end_turn"},
}


@pytest.fixture
async def vendor() -> AsyncIterator[FakeVendor]:
    async with fake_vendor() as fake:
        yield fake


@pytest.mark.spec("API-12")
@pytest.mark.parametrize("kind", list(ANSWERS), ids=["openai", "anthropic"])
async def test_image_parts_of_the_user_are_sent(vendor: FakeVendor, kind: Any):
    vendor.answers(http(200, ANSWERS[kind]))
    agent = create_agent(provider=kind(base_url=vendor.url, api_key="k-12345"))
    parts = [TextPart("What is this?"), ImagePart("https://example.com/a.png"), ImagePart(b"\x89PNG..", "image/png")]
    assert (await within(agent.send(parts))).text == "A cat."
    content = vendor.received[-1].json["messages"][-1]["content"]
    images = json.dumps([part for part in content if part["type"] != "text"])
    assert [part["text"] for part in content if part["type"] == "text"] == ["What is this?"]
    assert "https://example.com/a.png" in images
    assert "iVBORy4u" in images  # the bytes, in base64


@pytest.mark.spec("API-13")
async def test_a_scripted_model_answers_the_same_every_time_and_remembers_what_it_was_asked():
    model = mock_model([call("add", a=1, b=2), "3", "never asked"])
    agent = create_agent(provider=model, tools=[add])
    first = (await agent.send("1 + 2?")).to_dict()
    assert [len(one.messages) for one in model.calls] == [2, 4]
    assert model.last_call is model.calls[-1]
    with pytest.raises(SDKError, match="2 of 3"):
        model.assert_exhausted()
    model.reset()
    assert (model.calls, model.last_call) == ((), None)
    again = (await agent.send("1 + 2?")).to_dict()
    assert {**again, "runId": ""} == {**first, "runId": ""}
    await agent.send("more")
    model.assert_exhausted()


@pytest.mark.spec("API-13")
async def test_a_cassette_replays_what_was_recorded(tmp_path: Path):
    cassette = tmp_path / "talk.json"
    recording = record_replay(cassette=cassette, mode="record", provider=mock_model(["Hello Ada."]))
    assert (await create_agent(provider=recording).send("I am Ada.")).text == "Hello Ada."
    replaying = record_replay(cassette=cassette, mode="replay")
    assert (await create_agent(provider=replaying).send("I am Ada.")).text == "Hello Ada."


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.spec("API-24")
@pytest.mark.parametrize("approved", [True, False])
async def test_a_gated_tool_pauses_a_session_until_somebody_decides(approved: bool):
    ran: list[str] = []

    @tool(needs_approval=True)
    async def wipe(disk: str) -> str:
        """Wipe a disk."""
        ran.append(disk)
        return "wiped"

    model = mock_model([call("wipe", disk="sda"), "As you said.", "Yes, before."])
    agent = create_agent(provider=model, tools=[wipe])
    session = agent.session("s")
    paused = await session.send("Wipe sda.")
    assert (paused.finish_reason, ran) == ("awaiting-approval", [])
    (waiting,) = await agent.approvals.list()
    assert (waiting.id, waiting.tool_name, waiting.args, waiting.session_id) == (
        *(paused.approval_id, "wipe", {"disk": "sda"}, "s"),
    )
    with pytest.raises(SessionAwaitingApprovalError):
        await session.send("Hello?")
    result = await agent.approvals.resolve(id=waiting.id, approved=approved, note="Friday")
    assert (result.text, ran) == ("As you said.", ["sda"] if approved else [])
    assert "Friday" in str(told(result)[0]) or approved
    assert await agent.approvals.list() == []
    await session.send("Did I ask before?")
    assert [message.role for message in await session.load()] == [
        *("user", "assistant", "tool", "assistant", "user", "assistant")
    ]


@pytest.mark.spec("API-26")
async def test_a_question_pauses_the_run_until_it_is_answered():
    model = mock_model([call("ask_question", question="How many?"), "Seven then."])
    agent = create_agent(provider=model, ask_question=True)
    run = agent.stream("Book seats.")
    events = await collect(run)
    asked = of_type(events, "approval.requested")[0].to_dict()
    assert (asked["kind"], asked["question"]["text"]) == ("question", "How many?")
    (waiting,) = await agent.approvals.list()
    assert (waiting.kind, waiting.id) == ("question", asked["approvalId"])
    result = await agent.approvals.answer(id=waiting.id, answer="seven")
    assert (result.text, told(result)) == ("Seven then.", [{"answer": "seven"}])


class Mail(pydantic.BaseModel):
    """A mail."""

    to: str
    subject: str = "(none)"


@pytest.mark.spec("API-35")
async def test_a_tool_carries_its_options_its_schema_and_its_function():
    async def send(mail: Mail) -> dict[str, str]:
        return {"messageId": f"{mail.to}:{mail.subject}"}

    async def send_boxed(mail: Mail, sandbox: Any) -> str:
        return "boxed"

    mailer = define_tool(
        name="send_email",
        description="Send an email",
        input=Mail,
        execute=send,
        display_name="Send mail",
        needs_approval=lambda mail: not mail.to.endswith("@home.example"),
    )
    assert (mailer.name, mailer.display_name) == ("send_email", "Send mail")
    assert mailer.input_schema["properties"].keys() == {"to", "subject"}
    assert mailer.input_schema["required"] == ["to"]
    assert await mailer.execute(Mail(to="a", subject="b")) == {"messageId": "a:b"}
    boxed = define_tool(
        name="boxed", description="Run", input=Mail, execute=send, requires_sandbox=True, sandbox_execute=send_boxed
    )
    assert (boxed.requires_sandbox, boxed.sandbox_execute, mailer.requires_sandbox) == (True, send_boxed, False)

    inside = create_agent(provider=mock_model([call("send_email", to="ada@home.example"), "Sent."]), tools=[mailer])
    assert told(await inside.send("go")) == [{"messageId": "ada@home.example:(none)"}]
    outside = create_agent(provider=mock_model([call("send_email", to="eve@else.example")]), tools=[mailer])
    assert (await outside.send("go")).finish_reason == "awaiting-approval"
