"""The scripts of the tests that ask for one run in many ways, the providers that play them, and the tools they call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from runs import WAIT

from lousho import (
    CancelSignal,
    ModelResponse,
    ModelUsage,
    PropagatingToolError,
    ReasoningBlock,
    ToolContext,
    define_tool,
)
from lousho.core.messages import FunctionCall, ToolCall
from lousho.models.provider import (
    Finish,
    ModelChunk,
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCallChunk,
)

STYLES = ("streams", "does not", "has none")


def asked(*calls: tuple[str, Any], text: str = "", **more: Any) -> ModelResponse:
    """Return a turn that asks for calls; arguments that are text are sent as they are."""
    made = [
        ToolCall(f"c{index}", FunctionCall(name, args if isinstance(args, str) else json.dumps(args)))
        for index, (name, args) in enumerate(calls)
    ]
    return ModelResponse(text=text, tool_calls=tuple(made), finish_reason="tool_calls", **more)


def said(text: str, reason: Any = "stop", **more: Any) -> ModelResponse:
    return ModelResponse(text=text, finish_reason=reason, **more)


class Whole:
    """Gives whole turns, and remembers how it was asked."""

    name = "scripted"
    default_model = "scripted-1"

    def __init__(self, turns: list[Any]) -> None:
        self.turns = turns
        self.asked: list[str] = []
        self.sent: list[Any] = []

    def next_turn(self, request: ModelRequest, how: str) -> ModelResponse:
        self.asked.append(how)
        self.sent.append([message.to_dict() for message in request.messages])
        turn = self.turns[len(self.asked) - 1]
        if isinstance(turn, BaseException):
            raise turn
        return turn

    async def generate(self, request: ModelRequest) -> ModelResponse:
        return self.next_turn(request, "generate")


class Streaming(Whole):
    """Gives the same turns in pieces, the smallest there are."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        turn = self.next_turn(request, "stream")
        for block in turn.reasoning:
            for piece in block.text:
                yield ReasoningDelta(piece)
            yield ReasoningEnd(block)
        for piece in turn.text:
            yield TextDelta(piece)
            await asyncio.sleep(0)
        for call in turn.tool_calls:
            yield ToolCallChunk(call)
        yield Finish(turn.finish_reason, turn.usage)


class Unstreamable(Streaming):
    """Has a stream, and says that it must not be used."""

    def supports_streaming(self, model: str | None = None) -> bool:
        return False


PROVIDERS = {"streams": Streaming, "does not": Unstreamable, "has none": Whole}
NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


class Stop(PropagatingToolError):
    """Ends the run."""


def tools(signal: CancelSignal) -> list[Any]:
    """Return a tool of each kind."""

    async def double(args: Any) -> int:
        return args["number"] * 2

    def blocking(args: Any) -> dict[str, int]:
        return {"number": args["number"]}

    async def broken(args: Any) -> None:
        raise LookupError(f"no {args['number']}")

    async def counting(args: Any) -> AsyncIterator[int]:
        for number in range(args["number"]):
            yield number

    async def stopping(args: Any) -> None:
        raise Stop("enough")

    async def aborting(args: Any, context: ToolContext) -> str:
        signal.abort("enough")
        await context.abort_signal.wait()
        await asyncio.sleep(WAIT)
        return "never"

    async def overdue(args: Any) -> str:
        await asyncio.sleep(WAIT)
        return "never"

    async def long(args: Any) -> str:
        return "word " * args["number"]

    made: list[Any] = [double, blocking, broken, counting, stopping, aborting, long]
    return [
        *(define_tool(name=one.__name__, description="Act.", input=NUMBER, execute=one) for one in made),
        define_tool(name="gated", description="Ask.", input=NUMBER, execute=double, needs_approval=True),
        define_tool(name="overdue", description="Wait.", input=NUMBER, execute=overdue, timeout_ms=1),
    ]


N1 = {"number": 1}
USAGE = ModelUsage(input_tokens=20, output_tokens=6, cached_input_tokens=3, reasoning_tokens=2, cost_usd=0.5)
QUESTION = {"question": "Where?", "options": ["Here", "There"], "allowFreeText": False}


@dataclass
class Case:
    """A script, what the agent is made with, and what is decided where it waits."""

    name: str
    turns: list[Any]
    options: dict[str, Any] = field(default_factory=lambda: {})
    decisions: tuple[bool | str, ...] = ()


CASES = [
    Case("a text", [said("One two three. \u00e9\U0001f600")]),
    Case("an empty text", [said("")]),
    Case("reasoning before the text", [said("Yes.", reasoning=(ReasoningBlock("Hm, yes.", signature="s"),))]),
    Case("reasoning alone", [said("", reasoning=(ReasoningBlock("Hm."),))]),
    Case("counts that were reported", [asked(("double", N1), usage=USAGE), said("2", usage=USAGE)]),
    Case("counts of one of two calls", [asked(("double", N1), usage=USAGE), said("2")]),
    Case("a call", [asked(("double", N1), text="I look."), said("It is 2.")]),
    Case("a call in a thread", [asked(("blocking", N1)), said("It is 1.")]),
    Case("snapshots", [asked(("counting", {"number": 3})), asked(("counting", {"number": 0})), said("Done.")]),
    Case(
        "good and bad calls side by side",
        [
            asked(("double", N1), ("broken", N1), ("zzzzzz", N1), ("double", {}), ("double", "no"), ("blocking", N1)),
            said("Done."),
        ],
    ),
    Case("arguments that are repaired", [asked(("double", '```json\n{"number": 4,}\n```')), said("8.")]),
    Case("a vendor's prefix on a name", [asked(("functions.double", N1)), said("2.")]),
    Case(
        "an id twice",
        [
            ModelResponse(
                tool_calls=(ToolCall("x", FunctionCall("double", '{"number": 1}')),) * 2, finish_reason="tool_calls"
            ),
            said("2, 2."),
        ],
    ),
    Case(
        "one at a time",
        [asked(("double", N1), ("blocking", N1), ("broken", N1))] * 2 + [said("Done.")],
        {"tool_concurrency": 1},
    ),
    Case("a limit", [asked(("double", N1), text="First."), asked(("double", N1))], {"max_steps": 2}),
    Case("a limit that is just kept", [asked(("double", N1)), said("2.")], {"max_steps": 2}),
    Case("an answer that was cut off", [said("One two", "length")]),
    Case("an answer that was held back", [said("", "content_filter")]),
    Case("a reason of the provider's own", [said("Hm.", "recitation")]),
    Case("calls that were announced and not made", [said("I would call.", "tool_calls")]),
    Case("calls with another reason", [ModelResponse(tool_calls=asked(("double", N1)).tool_calls), said("2.")]),
    Case("a long result", [asked(("long", {"number": 500})), said("Long.")], {"max_tool_result_chars": 200}),
    Case("a call that takes too long", [asked(("overdue", N1)), said("Late.")]),
    Case("the same failing call again and again", [asked(("broken", N1))] * 8 + [said("I give up.")]),
    Case(
        "a text for the model instead of the error's own",
        [asked(("broken", N1)), said("Hm.")],
        {"tool_error_message": lambda error, info: "Out of order."},
    ),
    Case(
        "rules",
        [asked(("double", N1), ("broken", N1), ("blocking", N1)), said("Done.")],
        {
            "permissions": [
                {"tool": "broken", "action": "deny", "reason": "not here"},
                {"tool": "double", "action": "allow"},
            ]
        },
    ),
    Case("a call that is approved", [asked(("gated", N1), text="May I?"), said("It is 2.")], decisions=(True,)),
    Case("a call that is rejected", [asked(("gated", N1)), said("All right.")], decisions=(False,)),
    Case(
        "three that wait beside three that do not",
        [
            asked(("gated", N1), ("double", N1), ("gated", N1), ("broken", N1), ("gated", N1), ("counting", N1)),
            said("Done."),
        ],
        decisions=(False, True, True),
    ),
    Case("two pauses", [asked(("gated", N1)), asked(("gated", N1)), said("Done.")], decisions=(True, True)),
    Case("a question", [asked(("ask_question", QUESTION)), said("There it is.")], {"ask_question": True}, ("there",)),
    Case("a model call that fails", [OSError("the line went dead")]),
    Case("a model call that fails later", [asked(("double", N1), text="So far."), OSError("the line went dead")]),
    Case("a tool that ends the run", [asked(("double", N1), ("stopping", N1)), said("never")]),
    Case("a tool that aborts the run", [asked(("double", N1), text="I look."), asked(("aborting", N1)), said("never")]),
]
