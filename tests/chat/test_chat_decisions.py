"""Approvals and questions: what is asked, what counts as yes, and what the model learns."""

from __future__ import annotations

import json

import pytest
from chat_scripts import Talk, call, calls

from lousho import tool


@pytest.mark.spec("CLI-51")
@pytest.mark.parametrize("typed", ["y", "yes", "Y", "YES", " y "])
async def test_yes_runs_the_call(talk: Talk, typed: str) -> None:
    ran: list[str] = []

    @tool(needs_approval=True)
    def deploy(to: str) -> str:
        """Deploy."""
        ran.append(to)
        return "deployed"

    done = await talk([call("deploy", to="prod"), "Done."], ["ship it", typed], tools=[deploy])

    assert ran == ["prod"]
    assert done.lines[:3] == [f'Approve deploy({{"to":"prod"}})? [y/N] {typed}', "  -> deployed", "Done."]


@pytest.mark.spec("CLI-51")
@pytest.mark.parametrize(
    ("typed", "note"),
    [
        pytest.param("", None, id="just Enter"),
        pytest.param("n", None, id="n"),
        pytest.param("No", None, id="No"),
        pytest.param("n not on a Friday", "not on a Friday", id="n with a reason"),
        pytest.param("no, wait for Sam", "wait for Sam", id="no with a reason"),
        pytest.param("y please", "y please", id="more than yes is no yes"),
        pytest.param("ship staging instead", "ship staging instead", id="anything else"),
    ],
)
async def test_anything_but_yes_rejects_and_the_model_carries_on(talk: Talk, typed: str, note: str | None) -> None:
    ran: list[str] = []

    @tool(needs_approval=True)
    def deploy(to: str) -> str:
        """Deploy."""
        ran.append(to)
        return "deployed"

    done = await talk([call("deploy", to="prod"), "Fine, not now."], ["ship it", typed], tools=[deploy])

    told = json.loads(done.last_result)
    assert ran == []
    assert (told["kind"], told.get("note")) == ("rejected", note)
    assert done.lines[1].startswith("  -> error: ")
    assert done.lines[2] == "Fine, not now."
    assert done.code == 0


async def test_without_an_answer_a_call_is_rejected_and_the_chat_says_so(talk: Talk) -> None:
    ran: list[str] = []

    @tool(needs_approval=True)
    def deploy(to: str) -> str:
        """Deploy."""
        ran.append(to)
        return "deployed"

    done = await talk([call("deploy", to="prod"), "Fine."], ["ship it"], tools=[deploy])

    assert ran == []
    assert done.lines[:2] == ['Approve deploy({"to":"prod"})? [y/N] ', "no answer: deploy is rejected"]
    assert "Fine." in done.lines
    assert done.code == 0


async def test_several_calls_of_one_step_are_asked_one_by_one_and_run_in_order(talk: Talk) -> None:
    ran: list[str] = []

    @tool(needs_approval=True)
    def deploy(to: str) -> str:
        """Deploy."""
        ran.append(to)
        return f"{to} is up"

    script = [calls(("deploy", {"to": "a"}), ("deploy", {"to": "b"}), ("deploy", {"to": "c"})), "Done."]

    done = await talk(script, ["ship all", "y", "n", "yes"], tools=[deploy])

    assert ran == ["a", "c"]
    assert done.lines[:3] == [
        'Approve deploy({"to":"a"})? [y/N] y',
        'Approve deploy({"to":"b"})? [y/N] n',
        'Approve deploy({"to":"c"})? [y/N] yes',
    ]
    assert done.lines[3:5] == ['[deploy] {"to":"a"}', "  -> a is up"]
    assert done.lines[5] == '[deploy] {"to":"b"}'
    assert done.lines[6].startswith("  -> error: ")
    assert done.lines[7:10] == ['[deploy] {"to":"c"}', "  -> c is up", "Done."]


async def test_a_call_that_needs_no_approval_runs_first(talk: Talk) -> None:
    @tool
    def read(name: str) -> str:
        """Read."""
        return f"{name} says hi"

    @tool(needs_approval=True)
    def write(name: str) -> str:
        """Write."""
        return "written"

    done = await talk(
        [calls(("write", {"name": "a"}), ("read", {"name": "b"})), "Done."], ["go", "y"], tools=[read, write]
    )

    assert done.lines[:5] == [
        '[read] {"name":"b"}',
        "  -> b says hi",
        'Approve write({"name":"a"})? [y/N] y',
        "  -> written",
        "Done.",
    ]


async def test_a_continued_turn_may_ask_again(talk: Talk) -> None:
    @tool(needs_approval=True)
    def step(number: int) -> str:
        """Do a step."""
        return f"step {number} done"

    done = await talk([call("step", number=1), call("step", number=2), "Both."], ["go", "y", "y"], tools=[step])

    assert done.lines[:5] == [
        'Approve step({"number":1})? [y/N] y',
        "  -> step 1 done",
        'Approve step({"number":2})? [y/N] y',
        "  -> step 2 done",
        "Both.",
    ]


async def test_huge_arguments_are_shortened_with_a_way_to_see_all(talk: Talk) -> None:
    written: list[str] = []

    @tool(needs_approval=True)
    def write(text: str) -> str:
        """Write."""
        written.append(text)
        return "written"

    text = "".join(f"<{number}>" for number in range(5_000))

    done = await talk([call("write", text=text), "Done."], ["go", "s", "y"], tools=[write])

    shortened, whole = (line for line in done.lines if line.startswith("Approve "))
    assert len(shortened) < 7_000
    assert "<0><1>" in shortened
    assert "<4999>" in shortened
    assert "more, s shows all" in shortened
    assert whole == f'Approve write({{"text":"{text}"}})? [y/N] y'
    assert written == [text]


async def test_arguments_with_several_lines_are_shown_as_lines_too(talk: Talk) -> None:
    @tool(needs_approval=True)
    def run(command: str) -> str:
        """Run."""
        return "ok"

    done = await talk([call("run", command="cd /srv\nrm -r cache"), "Done."], ["clean up", "y"], tools=[run])

    assert done.lines[:4] == [
        "  command:",
        "    | cd /srv",
        "    | rm -r cache",
        'Approve run({"command":"cd /srv\\nrm -r cache"})? [y/N] y',
    ]


async def test_arguments_cannot_hide_behind_control_sequences(talk: Talk) -> None:
    @tool(needs_approval=True)
    def run(command: str) -> str:
        """Run."""
        return "ok"

    hidden = "rm -rf /\x1b[2K\r\u202eecho hello"

    done = await talk([call("run", command=hidden), "Done."], ["clean up", "n"], tools=[run])

    assert "rm -rf /" in done.lines[0]
    assert "\x1b" not in done.text
    assert "\u202e" not in done.text


@pytest.mark.spec("CLI-52")
@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        pytest.param("2", {"answer": "Porto", "option": 1}, id="a number"),
        pytest.param("porto", {"answer": "Porto", "option": 1}, id="an option spelled out"),
        pytest.param("Somewhere warm", {"answer": "Somewhere warm"}, id="free text"),
        pytest.param("3", {"answer": "3"}, id="a number that is no option"),
    ],
)
async def test_a_question_takes_a_number_or_free_text(talk: Talk, typed: str, sent: dict[str, object]) -> None:
    script = [call("ask_question", question="Where to?", options=["Lisbon", "Porto"]), "Booked."]

    done = await talk(script, ["book a weekend", typed], ask_question=True)

    assert done.lines[:5] == [
        "Where to?",
        "  1. Lisbon",
        "  2. Porto",
        f"Answer (1-2, or your own words): {typed}",
        "Booked.",
    ]
    assert json.loads(done.last_result) == sent


@pytest.mark.spec("CLI-52")
async def test_a_question_without_options_takes_free_text(talk: Talk) -> None:
    done = await talk([call("ask_question", question="What is your name?"), "Hello!"], ["hi", "Sam"], ask_question=True)

    assert done.lines[:3] == ["What is your name?", "Answer: Sam", "Hello!"]
    assert json.loads(done.last_result) == {"answer": "Sam"}


async def test_a_question_that_gets_no_answer_is_declined(talk: Talk) -> None:
    done = await talk([call("ask_question", question="Sure?"), "Never mind."], ["hi"], ask_question=True)

    assert done.lines[1:3] == ["Answer: ", "no answer: the question is declined"]
    assert json.loads(done.last_result)["kind"] == "rejected"
    assert "Never mind." in done.lines
