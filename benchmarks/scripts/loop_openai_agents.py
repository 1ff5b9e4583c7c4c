"""Two-step runs on openai-agents, its tracing off."""

from __future__ import annotations

from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool, set_tracing_disabled
from measure import ANSWER, calls_for, report
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

set_tracing_disabled(True)


@function_tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class InProcess(Model):
    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:  # noqa: A002
        answered = isinstance(input, list) and input[-1].get("type") == "function_call_output"
        if answered:
            text = ResponseOutputText(annotations=[], text=ANSWER, type="output_text")
            output: list[Any] = [
                ResponseOutputMessage(id="m1", content=[text], role="assistant", status="completed", type="message")
            ]
        else:
            question = input if isinstance(input, str) else input[-1]["content"]
            output = [
                ResponseFunctionToolCall(
                    arguments='{"a": 1, "b": 2}', call_id=f"call_{number}", name="add", type="function_call"
                )
                for number in range(calls_for(question))
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


agent = Agent(name="adder", model=InProcess(), tools=[add])
config = RunConfig(tracing_disabled=True)


async def send(question: str) -> str:
    return (await Runner.run(agent, question, run_config=config)).final_output


report("openai-agents", send)
