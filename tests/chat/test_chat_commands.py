"""The commands of the chat."""

from __future__ import annotations

import re
from typing import Any

import pytest
from chat_scripts import Talk, call

from lousho import create_agent, tool
from lousho.core.errors import SDKError
from lousho.testing import mock_model
from lousho_cli.chat.slash import COMMANDS


@tool
def lookup(q: str) -> str:
    """Look something up."""
    return f"found {q}"


def users(model: Any, number: int) -> list[str]:
    """What the person had said by the given request."""
    return [message.content for message in model.calls[number].messages if message.role == "user"]


@pytest.mark.spec("CLI-55")
async def test_new_starts_an_empty_session_and_keeps_the_old_one(talk: Talk) -> None:
    model = mock_model(["a", "b"])
    agent = create_agent(provider=model)

    done = await talk([], ["one", "/new", "two"], create=lambda other: agent, session_id="first")

    opened = re.search(r"^session (chat-[A-Za-z0-9_-]+)$", done.text, re.MULTILINE)
    assert opened is not None
    assert users(model, 1) == ["two"]
    assert [message.content for message in agent.session("first").messages] == ["one", "a"]
    assert [message.content for message in agent.session(opened[1]).messages] == ["two", "b"]


@pytest.mark.spec("CLI-55")
async def test_clear_empties_the_session_and_keeps_its_id(talk: Talk) -> None:
    model = mock_model(["a", "b"])
    agent = create_agent(provider=model)

    done = await talk([], ["one", "/clear", "two"], create=lambda other: agent, session_id="mine")

    assert "cleared session mine" in done.lines
    assert users(model, 1) == ["two"]
    assert [message.content for message in agent.session("mine").messages] == ["two", "b"]


@pytest.mark.spec("CLI-55")
async def test_history_prints_the_session_as_it_looked(talk: Talk) -> None:
    done = await talk(
        [call("lookup", q="cats"), "Cats are great."], ["look up cats", "/history"], apart=True, tools=[lookup]
    )

    assert done.text == ('Cats are great.\n> look up cats\n[lookup] {"q":"cats"}\n  -> found cats\nCats are great.\n')


async def test_history_shows_errors_and_rejections_in_words(talk: Talk) -> None:
    @tool(needs_approval=True)
    def wipe() -> str:
        """Wipe."""
        return "wiped"

    done = await talk([call("wipe"), "Fine."], ["go", "n not now", "/history"], apart=True, tools=[wipe])

    assert done.text.splitlines()[1:3] == ["> go", "[wipe] {}"]
    assert done.text.splitlines()[3].startswith("  -> error: ")
    assert done.text.splitlines()[3].endswith("not now")
    assert "{" not in done.text.splitlines()[3]


async def test_history_of_an_empty_session_says_so(talk: Talk) -> None:
    done = await talk([], ["/history"])

    assert done.lines == ["nothing was said yet"]


@pytest.mark.spec("CLI-55")
async def test_model_goes_on_with_another_model_in_the_same_session(talk: Talk) -> None:
    first, second = mock_model(["a"]), mock_model(["b"])
    agent = create_agent(provider=first)
    asked: list[str | None] = []

    def create(model: str | None) -> Any:
        asked.append(model)
        return agent if model is None else agent.with_options(provider=second)

    done = await talk([], ["one", "/model mock/second", "two"], create=create)

    assert asked == [None, "mock/second"]
    assert users(second, 0) == ["one", "two"]
    assert done.code == 0


@pytest.mark.spec("CLI-55")
async def test_a_model_that_cannot_be_used_keeps_the_current_one(talk: Talk) -> None:
    model = mock_model(["a", "b"])
    agent = create_agent(provider=model)

    def create(other: str | None) -> Any:
        if other is not None:
            raise SDKError(f"Unknown provider in {other!r}", code="LOUSHO_PROVIDER_UNKNOWN")
        return agent

    done = await talk([], ["one", "/model nowhere/x", "two"], create=create)

    assert "error: Unknown provider in 'nowhere/x'" in done.lines
    assert any(line.startswith("[LOUSHO_PROVIDER_UNKNOWN] ") for line in done.lines)
    assert "the model stays mock/mock-model" in done.lines
    assert users(model, 1) == ["one", "two"]


@pytest.mark.spec("CLI-55")
async def test_quit_leaves_and_reads_no_further(talk: Talk) -> None:
    done = await talk(["a"], ["one", "/quit", "two"])

    assert len(done.model.calls) == 1
    assert done.code == 0


async def test_help_names_every_command(talk: Talk) -> None:
    done = await talk([], ["/help"], apart=True)

    assert {f"/{name}" for name in COMMANDS} <= set(re.findall(r"^/[a-z]+", done.text, re.MULTILINE))


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("/mdl", "error: there is no command /mdl. Did you mean /model?"),
        ("/hlep", "error: there is no command /hlep. Did you mean /help?"),
        ("/frobnicate", "error: there is no command /frobnicate. /help lists all of them."),
    ],
)
async def test_an_unknown_command_is_not_sent_to_the_agent(talk: Talk, typed: str, answer: str) -> None:
    done = await talk([], [typed])

    assert done.lines == [answer]
    assert done.code == 1


async def test_tools_lists_the_tools_of_the_agent(talk: Talk) -> None:
    done = await talk([], ["/tools"], tools=[lookup])

    assert done.lines == ["lookup: Look something up."]


@pytest.mark.spec("CLI-57")
async def test_a_chat_without_a_session_id_opens_a_new_one_each_time(talk: Talk) -> None:
    agent = create_agent(provider=mock_model(["a", "b"]))

    done = [await talk([], ["hi", "/clear"], create=lambda other: agent) for _ in range(2)]

    names = [re.search(r"cleared session (chat-[A-Za-z0-9_-]+)", one.text) for one in done]
    assert names[0] is not None
    assert names[1] is not None
    assert names[0][1] != names[1][1]


@pytest.mark.spec("CLI-57")
async def test_a_session_id_is_opened_and_continued(talk: Talk) -> None:
    model = mock_model(["a", "b"])
    agent = create_agent(provider=model)

    await talk([], ["one"], create=lambda other: agent, session_id="support_1")
    await talk([], ["two"], create=lambda other: agent, session_id="support_1")

    assert users(model, 1) == ["one", "two"]


async def test_a_session_id_that_cannot_be_one_is_a_coded_error(talk: Talk) -> None:
    with pytest.raises(SDKError) as raised:
        await talk([], ["hi"], session_id="a b")

    assert raised.value.code == "LOUSHO_SESSION_ID_INVALID"


async def test_last_shows_a_shortened_result_whole(talk: Talk) -> None:
    @tool
    def dump() -> str:
        """Return a lot."""
        return "\n".join(f"row {number}" for number in range(500))

    done = await talk([call("dump"), "Done."], ["go", "/last"], tools=[dump])

    turn, _, whole = done.text.partition("Done.\n")
    assert turn.splitlines()[1] == "  -> row 0"
    assert "row 499" in turn
    assert len(turn.splitlines()) < 20
    assert "500 lines; /last shows all)" in turn
    assert whole.splitlines()[1:] == ["[dump] {}", "  -> row 0", *(f"row {number}" for number in range(1, 500))]


async def test_last_counts_back(talk: Talk) -> None:
    script = [call("lookup", q="a"), call("lookup", q="b"), "Done."]

    done = await talk(script, ["go", "/last 2", "/last 3", "/last x"], apart=True, tools=[lookup])

    assert done.text.splitlines()[1:] == ['[lookup] {"q":"a"}', "  -> found a"]
    assert "there is no such tool call" in done.talk
    assert "error: /last takes a number: 1 is the last call, 2 the one before" in done.talk
