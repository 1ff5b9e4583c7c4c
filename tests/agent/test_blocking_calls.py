"""The blocking twins: in a script, in a thread, inside a running loop, twice in a row."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest
from runs import call

from lousho import SDKError, create_agent, tool
from lousho.testing import mock_model


def test_send_works_twice_in_a_row_and_from_another_thread():
    agent = create_agent(provider=mock_model(["One.", "Two.", "Three."]))
    texts = [agent.send_sync("a").text, agent.send_sync("b").text]
    thread = threading.Thread(target=lambda: texts.append(agent.send_sync("c").text))
    thread.start()
    thread.join(timeout=10)
    assert texts == ["One.", "Two.", "Three."]


async def test_send_works_inside_a_running_loop():
    agent = create_agent(provider=mock_model(["One."]))
    assert agent.send_sync("a").text == "One."  # blocks this loop on purpose; the work is on another one


def test_a_stream_yields_the_events_and_closing_it_early_aborts():
    agent = create_agent(provider=mock_model(["One two.", "Three."]))
    assert [event.type for event in agent.stream_sync("a")][0::5] == ["run.start", "step.done"]
    stream = agent.stream_sync("b")
    next(stream)
    stream.close()


def test_sessions_and_approvals_have_blocking_twins():
    @tool(needs_approval=True)
    def wipe() -> str:
        """Wipe."""
        return "wiped"

    agent = create_agent(provider=mock_model([call("wipe"), "Done.", "Hi."]), tools=[wipe])
    session = agent.session("s")
    paused = session.send_sync("go")
    assert [pending.id for pending in agent.approvals.list_sync()] == paused.approval_ids
    assert [event.type for event in agent.approvals.stream_resolve_sync(id=paused.approval_ids[0], approved=True)][
        -1
    ] == ("run.done")
    assert [event.type for event in session.stream_sync("hi")][-1] == "run.done"
    assert session.clear_sync() == 6


def test_a_blocking_call_from_inside_a_blocking_call_is_refused_and_not_a_deadlock():
    inner = create_agent(provider=mock_model(["x"]))

    @tool
    async def nested() -> str:
        """Call an agent the wrong way."""
        return inner.send_sync("x").text

    model = mock_model([call("nested"), "Told."])
    outer = create_agent(provider=model, tools=[nested])
    assert outer.send_sync("go").text == "Told."
    assert "async method" in model.calls[1].messages[-1].content


def test_a_hanging_sync_tool_does_not_keep_the_process_alive():
    program = """
import threading
from lousho import CancelSignal, create_agent, tool
from lousho.testing import mock_model

@tool
def hang() -> str:
    "Never end."
    threading.Event().wait()

agent = create_agent(provider=mock_model([{"tool_calls": [{"name": "hang"}]}]), tools=[hang])
print(agent.send_sync("go", signal=CancelSignal.timeout(100)).finish_reason)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert (done.stdout.strip(), done.returncode) == ("aborted", 0), done.stderr


def test_an_error_of_the_run_is_raised_to_the_caller():
    with pytest.raises(SDKError, match="down"):
        create_agent(provider=mock_model([{"error": OSError("down")}])).send_sync("a")


def test_two_loops_may_share_a_session():
    agent = create_agent(provider=mock_model(["One.", "Two."]))
    agent.session("s").send_sync("a")
    asyncio.run(agent.session("s").send("b"))
    assert len(agent.session("s").messages) == 4


def test_a_program_without_an_event_loop_can_ask_what_a_session_holds_and_waits_for():
    @tool(needs_approval=True)
    def wave() -> str:
        """Wave."""
        return "waved"

    agent = create_agent(provider=mock_model([call("wave"), "Done."]), tools=[wave])
    session = agent.session("s")
    assert (session.load_sync(), session.pending_sync()) == ([], None)
    paused = session.send_sync("go")
    step = session.pending_sync()
    assert step is not None
    assert step.session_id == "s"
    pending = agent.approvals.get_sync(str(paused.approval_id))
    assert pending is not None
    assert pending.tool_name == "wave"
    agent.approvals.resolve_sync(id=pending.id, approved=True)
    assert session.pending_sync() is None
    assert agent.approvals.get_sync(pending.id) is None
    assert [message.role for message in session.load_sync()] == ["user", "assistant", "tool", "assistant"]
