"""A turn as it looks: streamed text, tool calls with their results, usage, errors."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from typing import Any

import pytest
from chat_scripts import Talk, call, calls
from runs import ChunkProvider

from lousho import create_agent, tool
from lousho.core.errors import CompactedError, CompactedLLMProviderError
from lousho.core.messages import FunctionCall, ToolCall
from lousho.core.usage import ModelUsage
from lousho.models.provider import Finish, ModelChunk, ModelRequest, ServedBy, TextDelta, ToolCallChunk
from lousho.testing import mock_model
from lousho_cli.chat.repl import run_chat_repl


@tool
def lookup(q: str) -> str:
    """Look something up."""
    return f"found {q}"


@tool
def table(rows: int) -> list[dict[str, Any]]:
    """Return rows."""
    return [{"row": number, "day": None} for number in range(rows)]


@tool
def broken(q: str) -> str:
    """Fail."""
    raise LookupError(f"no {q} here")


@tool(needs_approval=True)
def send_email(to: str) -> str:
    """Send the report."""
    return "sent"


@pytest.mark.spec("CLI-50", "CLI-51", "CLI-59")
async def test_a_conversation_reads_as_documented(talk: Talk) -> None:
    usage = {"input_tokens": 10, "output_tokens": 3, "cost_usd": 0.0002}
    script = [
        {**call("lookup", q="cats"), "usage": usage},
        {"text": "Cats are great.", "usage": usage},
        {**call("send_email", to="sam@example.com"), "usage": usage},
        {"text": "Done, the report is on its way.", "usage": usage},
    ]

    done = await talk(script, ["look up cats", "email the report to sam", "y"], tools=[lookup, send_email])

    assert done.text == (
        '[lookup] {"q":"cats"}\n'
        "  -> found cats\n"
        "Cats are great.\n"
        "[usage] 20 in / 6 out tokens, $0.0004\n"
        'Approve send_email({"to":"sam@example.com"})? [y/N] y\n'
        "  -> sent\n"
        "Done, the report is on its way.\n"
        "[usage] 20 in / 6 out tokens, $0.0004\n"
    )
    assert done.code == 0


@pytest.mark.spec("CLI-59")
@pytest.mark.parametrize("kind", ["list", "stream", "async"])
async def test_the_chat_runs_on_text_streams_without_a_terminal(kind: str) -> None:
    async def arriving() -> AsyncIterator[str]:
        for line in ("one", "two"):
            await asyncio.sleep(0)
            yield line

    lines: Any = {"list": ["one", "two"], "stream": io.StringIO("one\ntwo\n"), "async": arriving()}[kind]
    model = mock_model(["first", "second"])
    output = io.StringIO()

    code = await run_chat_repl(lines, output, lambda other: create_agent(provider=model))

    assert code == 0
    assert [line for line in output.getvalue().splitlines() if "usage" not in line] == ["first", "second"]
    assert [message.content for message in model.calls[1].messages if message.role == "user"] == ["one", "two"]


@pytest.mark.spec("CLI-50")
async def test_text_is_written_while_the_model_still_speaks() -> None:
    go_on = asyncio.Event()

    class Slow:
        name = "slow"
        default_model = "slow-1"

        async def generate(self, request: ModelRequest) -> Any:
            raise AssertionError("the chat streams")

        async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
            yield TextDelta("The first half, ")
            await asyncio.wait_for(go_on.wait(), 5)
            yield TextDelta("the second.")
            yield Finish("stop")

        def supports_tools(self, model: str | None = None) -> bool:
            return True

        def supports_streaming(self, model: str | None = None) -> bool:
            return True

        async def get_models(self) -> list[str]:
            return []

    class Output(io.StringIO):
        def write(self, text: str) -> int:
            if "first half" in text:
                go_on.set()  # the model says the rest only once the first half was seen
            return super().write(text)

    output = Output()

    code = await run_chat_repl(["hello"], output, lambda other: create_agent(provider=Slow()))

    assert code == 0
    assert output.getvalue().startswith("The first half, the second.\n[usage] ~")


@pytest.mark.spec("CLI-50")
async def test_results_errors_and_text_between_calls_each_have_their_line(talk: Talk) -> None:
    script = [
        {"text": "Let me see.", **call("table", rows=2)},
        call("broken", q="dogs"),
        call("lookup", wrong=1),
        call("missing"),
        "That is all.",
    ]

    done = await talk(script, ["go"], tools=[lookup, table, broken])

    assert done.lines[:7] == [
        "Let me see.",
        '[table] {"rows":2}',
        '  -> [{"row":0,"day":null},{"row":1,"day":null}]',
        '[broken] {"q":"dogs"}',
        "  -> error: LookupError: no dogs here",
        '[lookup] {"wrong":1}',
        done.lines[6],
    ]
    assert done.lines[6].startswith("  -> error: Invalid arguments for tool 'lookup': ")
    assert done.lines[7] == "[missing] {}"
    assert done.lines[8].startswith("  -> error: ")
    assert done.lines[9] == "That is all."


async def test_calls_that_run_side_by_side_each_stand_above_their_own_result(talk: Talk) -> None:
    second_ended = asyncio.Event()

    @tool
    async def slow(q: str) -> str:
        """End after the other one."""
        await asyncio.wait_for(second_ended.wait(), 5)
        await asyncio.sleep(0.4)  # longer than a call that just started is kept back
        return f"slow {q}"

    @tool
    async def fast(q: str) -> str:
        """End first."""
        second_ended.set()
        return f"fast {q}"

    done = await talk([calls(("slow", {"q": "a"}), ("fast", {"q": "b"})), "ok"], ["go"], tools=[slow, fast])

    assert set(zip(done.lines[0:4:2], done.lines[1:4:2], strict=True)) == {
        ('[slow] {"q":"a"}', "  -> slow a"),
        ('[fast] {"q":"b"}', "  -> fast b"),
    }


async def test_a_slow_call_shows_while_it_runs_and_how_long_it_took() -> None:
    shown = asyncio.Event()

    class Output(io.StringIO):
        def write(self, text: str) -> int:
            if text.startswith("[wait]"):
                shown.set()
            return super().write(text)

    @tool
    async def wait() -> str:
        """Wait until the call is on the screen, and a second more."""
        await asyncio.wait_for(shown.wait(), 5)
        await asyncio.sleep(1)
        return "waited"

    output = Output()

    await run_chat_repl(
        ["go"], output, lambda other: create_agent(provider=mock_model([call("wait"), "ok"]), tools=[wait])
    )

    lines = output.getvalue().splitlines()
    assert lines[0] == "[wait] {}"
    assert lines[1].startswith("  -> waited (1.")
    assert lines[1].endswith(" s)")


@pytest.mark.spec("CLI-53")
@pytest.mark.parametrize(
    ("usages", "line"),
    [
        pytest.param([None], "[usage] ~{in} in / ~{out} out tokens", id="estimated"),
        pytest.param([{"input_tokens": 20, "output_tokens": 6}], "[usage] 20 in / 6 out tokens", id="no price"),
        pytest.param(
            [{"input_tokens": 1, "output_tokens": 2, "cost_usd": 1.5}],
            "[usage] 1 in / 2 out tokens, $1.5000",
            id="price",
        ),
        pytest.param(
            [{"input_tokens": 1, "output_tokens": 2, "cost_usd": 0.0}],
            "[usage] 1 in / 2 out tokens, $0.0000",
            id="free",
        ),
        pytest.param(
            [{"input_tokens": 1, "output_tokens": 2, "cost_usd": 0.000001}],
            "[usage] 1 in / 2 out tokens, <$0.0001",
            id="next to nothing",
        ),
    ],
)
async def test_usage_shows_tokens_marks_estimates_and_prices_only_what_has_a_price(
    talk: Talk, usages: list[Any], line: str
) -> None:
    done = await talk([{"text": "Four words in here.", "usage": usage} for usage in usages], ["hi"])

    figures = done.lines[1].replace("~", "").split()
    assert done.lines[0] == "Four words in here."
    assert done.lines[1] == line.replace("{in}", figures[1]).replace("{out}", figures[4])
    assert int(figures[1]) > 0
    assert int(figures[4]) > 0


@pytest.mark.spec("CLI-53")
@pytest.mark.parametrize(
    ("costs", "line"),
    [
        pytest.param((0.5, 0.25), "[usage] 20 in / 6 out tokens, $0.7500", id="both"),
        pytest.param((0.5, None), "[usage] 20 in / 6 out tokens", id="the first"),
        pytest.param((None, 0.25), "[usage] 20 in / 6 out tokens", id="the second"),
    ],
)
async def test_a_turn_on_two_models_has_a_price_only_when_both_have_one(
    talk: Talk, costs: tuple[float | None, float | None], line: str
) -> None:
    def finish(model: str, cost: float | None) -> Finish:
        usage = ModelUsage(input_tokens=10, output_tokens=3, cost_usd=cost)
        return Finish("stop", usage, ServedBy("vendor", model))

    async def first(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield ToolCallChunk(ToolCall("c1", FunctionCall("lookup", '{"q": "a"}')))
        yield finish("small", costs[0])

    async def second(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield TextDelta("ok")
        yield finish("large", costs[1])

    done = await talk(
        [], ["hi"], create=lambda other: create_agent(provider=ChunkProvider(first, second), tools=[lookup])
    )

    assert done.lines[-1] == line


@pytest.mark.spec("CLI-54", "HAZ-51", "ERR-16")
async def test_a_failed_turn_shows_category_status_code_and_fix_and_the_conversation_goes_on(talk: Talk) -> None:
    failure = CompactedLLMProviderError(
        CompactedError(error="User not found.", category="auth-failure", retryable=False, status_code=401)
    )

    done = await talk([{"error": failure}, "Still here."], ["hi", "again"])

    assert done.lines[0] == "error: User not found. (auth-failure, HTTP 401)"
    assert done.lines[1].startswith("[LOUSHO_PROVIDER_REQUEST_FAILED] Check the API key")
    assert done.lines[1].endswith("(https://lousho.com/errors#lousho_provider_request_failed)")
    assert done.lines[2] == "Still here."
    assert done.code == 0


@pytest.mark.spec("CLI-54")
async def test_the_exit_code_says_whether_the_last_turn_failed(talk: Talk) -> None:
    done = await talk(["fine", {"error": "the model is asleep"}], ["hi", "again", "/quit"])

    assert done.lines[2] == "error: the model is asleep"
    assert done.lines[3].startswith("[LOUSHO_PROVIDER_REQUEST_FAILED] ")
    assert done.code == 1


async def test_an_error_without_a_code_is_shown_with_its_type(talk: Talk) -> None:
    from lousho.core.errors import PropagatingToolError

    @tool
    def stop() -> str:
        """Stop the run."""
        raise PropagatingToolError("the plug was pulled")

    done = await talk([call("stop"), "Still here."], ["hi", "again"], tools=[stop])

    assert "error: PropagatingToolError: the plug was pulled" in done.lines
    assert "Still here." in done.lines


async def test_a_run_that_is_out_of_steps_says_so(talk: Talk) -> None:
    done = await talk([call("lookup", q="a"), call("lookup", q="b")], ["go"], tools=[lookup], max_steps=2)

    assert done.lines[4].startswith("Stopped after 2 steps")
    assert done.lines[5] == "[stopped] the run used up its steps (max_steps)"
    assert done.code == 0


async def test_a_reply_cut_at_its_token_limit_says_so(talk: Talk) -> None:
    done = await talk([{"text": "Once upon a", "finish_reason": "length"}], ["tell me"])

    assert done.lines[:2] == ["Once upon a", "[stopped] the reply reached its token limit (max_tokens)"]


async def test_reasoning_stands_on_lines_of_its_own(talk: Talk) -> None:
    done = await talk([{"text": "Forty-two.", "reasoning": "Six times seven."}], ["what?"])

    assert done.lines[:2] == ["Six times seven.", "Forty-two."]


async def test_with_a_stream_for_talk_the_output_has_the_agents_words_alone(talk: Talk) -> None:
    script = [{"text": "Let me see.", **call("lookup", q="cats")}, "Cats are great.", {"error": "asleep"}]

    done = await talk(script, ["look up cats", "again"], apart=True, tools=[lookup])

    assert done.text == "Let me see.\nCats are great.\n"
    assert done.talk.splitlines()[:2] == ['[lookup] {"q":"cats"}', "  -> found cats"]
    assert "error: asleep" in done.talk


async def test_blank_lines_are_no_turns(talk: Talk) -> None:
    done = await talk(["hello"], ["", "   ", "hi", "\t"])

    assert len(done.model.calls) == 1
    assert done.lines[0] == "hello"


async def test_a_message_is_sent_as_it_was_typed(talk: Talk) -> None:
    done = await talk(["a", "b", "c"], ["  two  spaces\t", "/usr/bin/env is a path", "//new is no command"])

    sent = [message.content for message in done.model.last_call.messages if message.role == "user"]
    assert sent == ["  two  spaces\t", "/usr/bin/env is a path", "/new is no command"]


async def test_a_message_beyond_the_limit_is_refused_and_not_cut(talk: Talk) -> None:
    done = await talk(["hello"], ["x" * 1_000_001, "hi"])

    assert done.lines[0] == "error: The message has more than 1,000,000 characters, so it was not sent"
    assert done.lines[1].startswith("[LOUSHO_VALIDATION_FAILED] ")
    assert done.lines[2] == "hello"
    assert len(done.model.calls) == 1
