"""What a run must not do though it is easy to do: hang, leak, lose a text, or go on after it was told to stop."""

from __future__ import annotations

import gc
import signal
import sys
import weakref
from typing import Any

import pytest
from hostile import play
from programs import FORKED, QUIET, run_program
from runs import call
from sizes import sized

from lousho import CancelSignal, create_agent, tool
from lousho.testing import mock_model


@pytest.mark.parametrize("kind", ["async def", "def", "generator"])
def test_an_interrupt_raised_in_a_tool_reaches_a_blocking_caller_and_the_next_call_works(kind):
    ended = run_program(
        f"""
        @tool
        {"async def" if kind == "generator" else kind} leave():
            "Leave."
            {"yield 1" if kind == "generator" else "pass"}
            raise KeyboardInterrupt("now")

        events = []
        agent = create_agent(provider=mock_model([call("leave"), "Still here."]), tools=[leave], on_event=events.append)
        try:
            print(agent.send_sync("go").text)
        except KeyboardInterrupt:
            print("interrupted")
        check_event_order(events)
        print(agent.send_sync("again").text)
        """
    )
    assert (ended.lines, ended.code) == (["interrupted", "Still here."], 0), ended.errors


def test_blocking_tools_may_ask_agents_with_blocking_tools_however_many_there_are():
    ended = run_program(
        """
        from lousho import ModelResponse
        from lousho.core.messages import FunctionCall, ToolCall

        class Inner:
            name = "inner"

            async def generate(self, request):
                if request.messages[-1].role == "tool":
                    return ModelResponse(text="in")
                return ModelResponse(tool_calls=(ToolCall("c", FunctionCall("leaf", "{}")),), finish_reason="tool_calls")

        @tool
        def leaf() -> str:
            "Use a thread."
            return "leaf"

        inner = create_agent(provider=Inner(), tools=[leaf])

        @tool
        def ask(number: int) -> str:
            "Ask another agent from a thread."
            return inner.send_sync("go").text

        turn = {"tool_calls": [{"name": "ask", "args": {"number": number}} for number in range(200)]}
        result = create_agent(provider=mock_model([turn, "Done."]), tools=[ask]).send_sync("go")
        print(result.text, result.tool_errors)
        """
    )
    assert (ended.lines, ended.code) == (["Done. None"], 0), ended.errors


@pytest.mark.parametrize("through", ["signal", "run"])
async def test_an_abort_from_a_listener_is_heard_before_the_next_piece_of_text(through):
    stop = CancelSignal()
    runs: list[Any] = []

    def listen(event: Any) -> None:
        if event.type == "text.delta":
            (stop if through == "signal" else runs[0]).abort("enough")

    agent = create_agent(provider=mock_model(["One two three four."]), on_event=listen)
    runs.append(agent.stream("go", signal=stop))
    played = await play(runs[0])
    assert (played.ended.finish_reason, played.ended.text) == ("aborted", "One ")


def test_children_that_are_forked_in_the_middle_of_other_peoples_calls_do_not_hang():
    ended = run_program(
        FORKED
        + f"""
stop = threading.Event()
failures = []

def busy(number):
    while not stop.is_set():
        try:
            use(f"busy-{{number}}")
        except BaseException as error:
            failures.append(error)
            return

threads = [threading.Thread(target=busy, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
codes = []
for number in range({sized(40, 300)}):
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # a child that hangs is killed by it
        code = 1
        try:
            use(f"child-{{number}}")
            code = 0
        finally:
            os._exit(code)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
for thread in threads:
    thread.join()
print(set(codes), failures)
""",
        options=QUIET,
    )
    assert (ended.lines, ended.code) == (["{0} []"], 0), ended.errors


def test_ctrl_c_gives_a_tool_the_time_to_clean_up_in_more_than_one_step():
    ended = run_program(
        """
        @tool
        async def slow() -> str:
            "Take long, and clean up in more than one step."
            print("began", flush=True)
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.2)  # such as closing a connection
                print("cleaned up", flush=True)

        create_agent(provider=mock_model([call("slow"), "never"]), tools=[slow]).send_sync("go")
        """,
        interrupt_at="began",
    )
    assert ended.code == -signal.SIGINT
    assert ended.lines == ["began", "cleaned up"]


def test_timeouts_that_nobody_waits_for_any_more_hold_no_memory():
    def make(count: int) -> None:
        for _ in range(count):
            CancelSignal.timeout(3_600_000)

    make(1_000)
    gc.collect()
    before = sys.getallocatedblocks()
    make(20_000)
    gc.collect()
    assert sys.getallocatedblocks() - before < 5_000


def test_a_signal_that_outlives_what_was_made_of_it_holds_nothing_of_that():
    source = CancelSignal()
    for _ in range(100):
        CancelSignal.any(source, CancelSignal())
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(10_000):
        CancelSignal.any(source, CancelSignal())
    gc.collect()
    assert sys.getallocatedblocks() - before < 5_000


async def test_an_empty_text_stays_an_empty_text():
    @tool
    async def nothing() -> str:
        """Find nothing."""
        return ""

    played = await play(create_agent(provider=mock_model([call("nothing"), "Done."]), tools=[nothing]).stream("go"))
    assert [one.content for one in played.ended.messages if one.role == "tool"] == [""]


def test_questions_have_a_blocking_stream_too():
    question = call("ask_question", question="Which?")
    agent: Any = create_agent(provider=mock_model([question, "That one."]), ask_question=True)
    paused = agent.send_sync("go")
    assert list(agent.approvals.stream_answer_sync(id=paused.approval_id, answer="that"))[-1].text == "That one."


def test_a_blocking_turn_that_would_wait_for_a_turn_of_the_loop_it_blocks_is_refused():
    ended = run_program(
        """
        from lousho import SDKError

        @tool
        async def slow() -> str:
            "Take a moment."
            await asyncio.sleep(0.1)
            return "ok"

        session = create_agent(provider=mock_model([call("slow"), "First.", "Second."]), tools=[slow]).session("s")

        async def main():
            first = asyncio.create_task(session.send("one"))
            await asyncio.sleep(0.01)
            try:
                session.send_sync("two")
            except SDKError as error:
                print(error.code)
            print((await first).text)

        asyncio.run(main())
        """
    )
    assert (ended.lines, ended.code) == (["LOUSHO_SESSION_BUSY", "First."], 0), ended.errors


def test_a_listener_that_changes_the_usage_it_is_told_changes_nothing_of_the_result():
    def forge(event: Any) -> None:
        if getattr(event, "usage", None) is not None:
            event.usage.input_tokens = 10**9

    result = create_agent(provider=mock_model(["Hi."]), on_event=forge).send_sync("go")
    assert result.usage.input_tokens < 10**9
    assert result.step_usage[0].input_tokens < 10**9


@pytest.mark.parametrize("used", ["never", "for a run"])
async def test_a_signal_made_of_a_timeout_is_forgotten_when_nobody_needs_it_any_more(used):
    far = CancelSignal.timeout(3_600_000)
    either = CancelSignal.any(CancelSignal(), far)
    if used == "for a run":
        await create_agent(provider=mock_model(["Hi."])).send("go", signal=either)
    gone = [weakref.ref(far), weakref.ref(either)]
    del far, either
    gc.collect()
    assert [one() for one in gone] == [None, None]


def test_the_first_blocking_call_of_a_program_that_is_ending_works_or_raises_a_coded_error_and_nothing_else():
    ended = run_program(
        """
        import atexit
        from lousho import SDKError

        agent = create_agent(provider=mock_model(["Bye."]))

        def bye():
            try:
                print(agent.send_sync("bye").text)
            except SDKError:
                print("Bye.")

        atexit.register(bye)
        """
    )
    assert (ended.lines, ended.errors, ended.code) == (["Bye."], "", 0)
