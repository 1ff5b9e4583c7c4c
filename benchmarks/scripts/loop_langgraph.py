"""Two-step runs on langgraph's prebuilt agent."""

from __future__ import annotations

import os
import warnings
from typing import Any

os.environ["LANGSMITH_TRACING"] = "false"
warnings.simplefilter("ignore")

from langchain_core.language_models import BaseChatModel  # noqa: E402
from langchain_core.messages import AIMessage, ToolMessage  # noqa: E402
from langchain_core.outputs import ChatGeneration, ChatResult  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langgraph.prebuilt import create_react_agent  # noqa: E402
from measure import ANSWER, calls_for, report  # noqa: E402


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class InProcess(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "in-process"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        if isinstance(messages[-1], ToolMessage):
            message = AIMessage(ANSWER)
        else:
            many = range(calls_for(messages[-1].content))
            calls = [{"name": "add", "args": {"a": 1, "b": 2}, "id": f"call_{number}"} for number in many]
            message = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


graph = create_react_agent(InProcess(), [add])


async def send(question: str) -> str:
    state = await graph.ainvoke({"messages": [("user", question)]})
    return state["messages"][-1].content


report("langgraph", send)
