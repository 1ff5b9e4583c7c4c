"""A call that waits for a person. The model is scripted, so this is also how such an agent is tested."""

from __future__ import annotations

from lousho import create_agent, tool
from lousho.testing import mock_model

sent: list[str] = []


@tool(needs_approval=True)
def send_email(to: str, text: str) -> str:
    """Send an e-mail."""
    sent.append(to)
    return f"sent to {to}"


model = mock_model(
    [
        {"tool_calls": [{"name": "send_email", "args": {"to": "sam@example.com", "text": "The report is ready."}}]},
        {"text": "Sam has the report."},
    ]
)
agent = create_agent(instructions="You send e-mails.", provider=model, tools=[send_email])

paused = agent.send_sync("Tell Sam that the report is ready")
waiting = agent.approvals.list_sync()[0]
print(f"{paused.finish_reason}: {waiting.tool_name}({dict(waiting.args)})")
assert sent == []

result = agent.approvals.resolve_sync(id=waiting.id, approved=True)
print(result.text)
assert sent == ["sam@example.com"]
model.assert_exhausted()
