"""Two-step runs on pydantic-ai."""

from __future__ import annotations

from measure import ANSWER, calls_for, report
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
        return ModelResponse(parts=[TextPart(ANSWER)])
    many = range(calls_for(str(messages[-1].parts[-1].content)))
    return ModelResponse(parts=[ToolCallPart("add", {"a": 1, "b": 2}, tool_call_id=f"call_{n}") for n in many])


agent = Agent(FunctionModel(model))


@agent.tool_plain
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def send(question: str) -> str:
    return (await agent.run(question)).output


report("pydantic-ai-slim", send)
