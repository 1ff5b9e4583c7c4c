"""Two-step runs on Lousho: gate, validation and an event listener on."""

from __future__ import annotations

from collections.abc import AsyncIterator

from measure import ANSWER, calls_for, report

from lousho import FunctionCall, ModelChunk, ModelRequest, ModelResponse, ToolCall, create_agent, tool
from lousho.models.provider import Finish, TextDelta, ToolCallChunk


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class InProcess:
    """Asks for the tool, then answers."""

    name = "in-process"
    default_model = "in-process-1"

    async def generate(self, request: ModelRequest) -> ModelResponse:
        if request.messages[-1].role == "tool":
            return ModelResponse(text=ANSWER)
        many = range(calls_for(str(request.messages[-1].content)))
        calls = tuple(ToolCall(f"call_{number}", FunctionCall("add", '{"a": 1, "b": 2}')) for number in many)
        return ModelResponse(tool_calls=calls, finish_reason="tool_calls")

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        response = await self.generate(request)
        if response.text:
            yield TextDelta(response.text)
        for call in response.tool_calls:
            yield ToolCallChunk(call)
        yield Finish(response.finish_reason)

    def supports_tools(self, model: str | None = None) -> bool:
        return True

    def supports_streaming(self, model: str | None = None) -> bool:
        return True

    async def get_models(self) -> list[str]:
        return []


heard = 0


def listen(_: object) -> None:
    global heard
    heard += 1


agent = create_agent(
    provider=InProcess(), tools=[add], permissions=[{"tool": "add", "action": "allow"}], on_event=listen
)


async def send(question: str) -> str:
    return (await agent.send(question)).text


if __name__ == "__main__":
    report("lousho", send)
    assert heard > 0
