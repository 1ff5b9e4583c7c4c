"""A post office: tools that need a person's decision, what they did, and a store in which its runs wait."""

from __future__ import annotations

from typing import Any

from runs import call

from lousho import InMemoryApprovalStore, ToolContext, tool
from lousho.executor import AgentBuilder, AgentExecutor, ToolRegistry


class Desk:
    """Tools of a post office, what they did, and the store in which its runs wait."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.store = InMemoryApprovalStore()

        @tool(needs_approval=True)
        async def send_email(to: str, ctx: ToolContext) -> str:
            """Send an e-mail."""
            self.sent.append(to)
            return (
                f"sent to {to}{'' if ctx.approval is None or ctx.approval.note is None else ': ' + ctx.approval.note}"
            )

        @tool
        async def look_up(name: str) -> str:
            """Look an address up."""
            self.sent.append(f"looked up {name}")
            return f"{name}@example.com"

        self.registry = ToolRegistry([send_email, look_up])
        builder = AgentBuilder.create().set_name("Mailer").set_prompt("You send e-mails.").set_model("small")
        self.agent = builder.add_tool("send_email").add_tool("look_up").build()

    async def pause(self, model: Any, **options: Any) -> Any:
        paused = await AgentExecutor.execute(
            agent=self.agent,
            input="Email the report",
            provider=model,
            tool_registry=self.registry,
            approval_store=self.store,
            **options,
        )
        assert paused.finish_reason == "awaiting-approval"
        return paused


def told(model: Any, number: int) -> Any:
    """Return what the model read last at its n-th call."""
    return model.calls[number].messages[-1].content


SEND = call("send_email", to="sam@example.com")
