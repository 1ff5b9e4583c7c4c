"""Half surrogate pairs, values that JSON lacks and other broken text, everywhere text can enter a run."""

from __future__ import annotations

import datetime
import json
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest
from hostile import ANSWER, asks, chunks, play, wrong
from runs import call, of_type

from lousho import (
    CancelSignal,
    FilePart,
    ImagePart,
    Message,
    ReasoningBlock,
    SDKError,
    TextPart,
    create_agent,
    define_tool,
)
from lousho.core.messages import FunctionCall, ToolCall
from lousho.models.provider import Finish, ReasoningDelta, ReasoningEnd, TextDelta
from lousho.testing import mock_model

HALF = "a\ud800b"
CLEAN = "a\ufffdb"
GATED = define_tool(
    name="gated", description="Act", input={"type": "object"}, execute=lambda arguments: HALF, needs_approval=True
)


@pytest.mark.parametrize(
    ("pieces", "deltas"),
    [
        pytest.param(["\ud83d", "\ude00"], ["\U0001f600"], id="a pair in two pieces"),
        pytest.param(["one \ud83d", "\ude00 two"], ["one ", "\U0001f600 two"], id="a pair between words"),
        pytest.param(["\ud83d", "plain"], ["\ufffdplain"], id="a half before plain text"),
        pytest.param(["\ude00"], ["\ufffd"], id="a second half alone"),
        pytest.param(["x\ud83d"], ["x", "\ufffd"], id="a half at the end"),
        pytest.param(["\ud83d", "\ud83d", "\ude00"], ["\ufffd", "\U0001f600"], id="a half before a pair"),
    ],
)
async def test_surrogate_pairs_that_arrive_in_pieces_are_joined(pieces, deltas):
    provider = chunks([*[TextDelta(piece) for piece in pieces], Finish("stop")])
    played = await play(create_agent(provider=provider).stream("go"))
    assert [event.text for event in of_type(played.events, "text.delta")] == deltas
    assert played.ended.text == "".join(deltas)


@hypothesis.given(st.lists(st.text(st.characters(categories=["Cs", "L", "N"]), max_size=4), max_size=6))
async def test_text_in_any_pieces_is_the_text_as_a_whole(pieces):
    provider = chunks([*[TextDelta(piece) for piece in pieces], Finish("stop")])
    played = await play(create_agent(provider=provider).stream("go"))
    whole = "".join(pieces).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert played.ended.text == whole


async def test_broken_text_from_everywhere_survives_a_pause_a_decision_and_a_session():
    turn = [
        ReasoningDelta(HALF),
        ReasoningEnd(ReasoningBlock(HALF)),
        TextDelta(HALF),
        asks("gated", json.dumps({HALF: HALF}), HALF),
        asks("gated", '{"a": "' + HALF + '"}', "two"),
        Finish("tool_calls"),
    ]
    agent = create_agent(provider=chunks(turn, ANSWER), tools=[GATED])
    session = agent.session("s")
    given = Message("user", (TextPart(HALF), ImagePart(b"\x00\xff", "image/png")), metadata={HALF: HALF})
    paused = await play(session.stream([given], metadata={"key": HALF, "day": datetime.date(2026, 1, 2)}))
    assert [item.args for item in await agent.approvals.list()] == [{CLEAN: CLEAN}, {"a": CLEAN}]
    first, second = paused.ended.approval_ids
    await agent.approvals.resolve(id=first, approved=True, note=HALF)
    ended = (await play(agent.approvals.stream_resolve(id=second, approved=False, note=HALF))).ended
    assert ended.messages[0] == Message(
        "user", (TextPart(CLEAN), ImagePart(b"\x00\xff", "image/png")), metadata={CLEAN: CLEAN}
    )
    assert ended.messages[1].reasoning == (ReasoningBlock(CLEAN),)
    assert [call.id for call in ended.tool_calls] == [CLEAN, "two"]
    assert ended.messages[2].content == CLEAN
    assert json.loads(str(ended.messages[3].content))["note"] == CLEAN
    assert await session.load() == ended.messages


async def test_metadata_and_messages_are_kept_as_a_store_would_give_them_back():
    odd = {"when": datetime.date(2026, 1, 2), "set": {1}, 3: "odd key", "object": object, "nan": float("nan")}
    model = mock_model([call("gated"), "Done."])
    agent = create_agent(provider=model, tools=[GATED])
    paused = await agent.send(
        [Message("user", "hi", metadata=wrong(odd)), Message("user", "you", metadata={})], metadata=wrong(odd)
    )
    result = await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert result.messages[: len(paused.messages)] == paused.messages
    kept = result.messages[0].metadata
    assert kept is not None
    assert (kept["when"], kept["set"], kept["3"], kept["nan"]) == ("2026-01-02", [1], "odd key", None)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param([Message(wrong("alien"), "x")], id="a role there is not"),
        pytest.param([Message("user", wrong(5))], id="content that is a number"),
        pytest.param([Message("user", wrong(("x",)))], id="a part that is text"),
        pytest.param([Message("user", (TextPart(wrong(5)),))], id="a part whose text is a number"),
        pytest.param([Message("assistant", "", tool_calls=wrong([{"id": "a"}]))], id="a call in wire form"),
        pytest.param([Message("user", "x", metadata=wrong(5))], id="metadata that is a number"),
        pytest.param([Message("user", "x", reasoning=wrong(("hm",)))], id="reasoning that is text"),
        pytest.param([{"role": "user", "content": [{"type": "image"}]}], id="an image without an image"),
        pytest.param([{"role": "user"}, "text"], id="a text among messages"),
        pytest.param([], id="an empty list"),
        pytest.param(None, id="None"),
        pytest.param(5, id="a number"),
        pytest.param(b"x", id="bytes"),
    ],
)
async def test_input_that_is_no_message_is_refused_before_the_model_is_asked(given):
    model = mock_model(["never"])
    agent = create_agent(provider=model)
    for start in (agent.send, agent.session("s").send):
        with pytest.raises(SDKError) as caught:
            await start(wrong(given))
        assert caught.value.code == "LOUSHO_CONFIG_INVALID"
    assert model.calls == ()
    assert agent.session("s").messages == []


async def test_whole_messages_come_through_unchanged():
    given = [
        Message("user", (FilePart(b"%PDF", "application/pdf", "a.pdf"), TextPart("see"))),
        Message("assistant", "I look.", tool_calls=(ToolCall("c1", FunctionCall("look", '{"a": 1}')),)),
        Message("tool", "seen", tool_call_id="c1", name="look", is_error=True),
        Message("assistant", "Done", reasoning=(ReasoningBlock("hm", "sig", "red"),), interrupted=True),
        Message("user", "Grüße \U0001f600", metadata={"a": [1, {"b": None}]}),
    ]
    result = await create_agent(provider=mock_model(["Hi."])).send(given)
    assert result.messages[:-1] == given


async def test_an_abort_reason_of_any_kind_is_shown():
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no text for you")

    for reason, message in ((HALF, CLEAN), (Mute(), "Mute"), (5, "5"), (None, "The run was aborted.")):
        signal = CancelSignal()
        signal.abort(reason)
        played = await play(create_agent(provider=mock_model(["x"])).stream("go", signal=signal))
        assert played.ended.abort_reason is not None
        assert played.ended.abort_reason["message"] == message


async def test_a_call_option_of_the_wrong_kind_is_refused():
    agent: Any = create_agent(provider=mock_model(["x"]))
    for options in ({"instructions": 5}, {"metadata": [1]}, {"signal": 5}, {"max_steps": 0}, {"model_settings": 5}):
        with pytest.raises(SDKError) as caught:
            await agent.send("go", **options)
        assert caught.value.code == "LOUSHO_CONFIG_INVALID"
