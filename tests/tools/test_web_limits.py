"""Every request ends: redirects, bytes, time and aborts have limits, whatever the server does."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import time
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from runs import collect
from web_site import WAIT, Answer, Names, Site, moved, page, refused, web_site

from lousho import CancelSignal, Tool, create_agent, create_http_tool, create_web_fetch_tool
from lousho.testing import mock_model, tool_context

Factory = Callable[..., Tool]
both = pytest.mark.parametrize("create", [create_http_tool, create_web_fetch_tool], ids=["http_request", "web_fetch"])
LOCAL: dict[str, Any] = {"allow_private": ["127.0.0.1", "slow.test", "secure.test"]}
HTML = [("Content-Type", "text/html")]
CHUNKED = [*HTML, ("Transfer-Encoding", "chunked")]


def text(result: dict[str, Any]) -> str:
    """Return the text of either tool's result."""
    return result.get("content") or result.get("body") or ""


async def forever(piece: bytes) -> AsyncIterator[bytes]:
    """Say the same again and again, as fast as it is taken."""
    while True:
        yield piece


async def once_then_wait(piece: bytes) -> AsyncIterator[bytes]:
    """Say something and then nothing more."""
    yield piece
    await asyncio.sleep(WAIT * 6)


async def drip(piece: bytes) -> AsyncIterator[bytes]:
    """Say one byte after the other, so that something is always just coming."""
    while True:
        for byte in piece:
            yield bytes([byte])
            await asyncio.sleep(0.01)


@pytest.mark.spec("TOOL-66", "TOOL-67")
@both
@pytest.mark.parametrize("limit", [0, 1, 10])
async def test_redirects_are_followed_up_to_the_limit(create: Factory, limit: int):
    async with web_site({}) as site:
        hops = limit
        site.routes = {"*": lambda _: moved(f"/{len(site.asked)}") if len(site.asked) <= hops else page("end")}
        tool = create(**LOCAL, max_redirects=limit)
        assert text(await tool({"url": site.url()})) == "end"
        site.asked.clear()
        hops = limit + 1
        told = await refused(tool({"url": site.url("/secret?key=hunter2")}))
        assert told == f"'127.0.0.1:{site.port}' redirects more than {limit} times."
        assert len(site.asked) == limit + 1


@pytest.mark.spec("TOOL-66", "TOOL-67")
@both
async def test_a_redirect_loop_ends_at_ten(create: Factory):
    async with web_site({"/a": moved("/b"), "/b": moved("/a")}) as site:
        told = await refused(create(**LOCAL)({"url": site.url("/a")}))
        assert told == f"'127.0.0.1:{site.port}' redirects more than 10 times."
        assert len(site.asked) == 11


@pytest.mark.spec("TOOL-67")
@both
async def test_a_body_without_an_end_is_read_up_to_the_limit(create: Factory):
    for headers, piece in [(HTML, b"a" * 1000), (CHUNKED, b"3e8\r\n" + b"a" * 1000 + b"\r\n")]:
        async with web_site(lambda _, h=headers, p=piece: Answer(headers=h, pieces=forever(p))) as site:
            result = await asyncio.wait_for(create(**LOCAL, max_bytes=10_500)({"url": site.url()}), WAIT)
            assert (text(result), result["truncated"]) == ("a" * 10_500, True)
            await asyncio.wait_for(site.hung_up.wait(), WAIT)
            limit = 2 * 1024 * 1024
            more = create(**LOCAL) if create is create_http_tool else create(**LOCAL, max_chars=limit * 2)
            assert len(text(await asyncio.wait_for(more({"url": site.url()}), WAIT))) == limit


@both
async def test_a_content_that_is_not_shown_is_not_read(create: Factory):
    async with web_site(Answer(headers=[("Content-Type", "video/mp4")], pieces=forever(b"\0" * 1000))) as site:
        result = await asyncio.wait_for(create(**LOCAL)({"url": site.url()}), WAIT)
        assert (text(result), result["truncated"]) == ("[video/mp4: not text, so the content is not shown]", False)
        await asyncio.wait_for(site.hung_up.wait(), WAIT)


@pytest.mark.spec("TOOL-67")
@both
@pytest.mark.parametrize(("size", "truncated"), [(99, False), (100, False), (101, True)])
async def test_the_byte_limit_is_exact(create: Factory, size: int, truncated: bool):
    async with web_site({"/a": page("x" * size), "/b": packed("gzip", b"x" * size)}) as site:
        for path in ("/a", "/b"):
            result = await create(**LOCAL, max_bytes=100)({"url": site.url(path)})
            assert (len(text(result)), result["truncated"]) == (min(size, 100), truncated)


def packed(encoding: str, body: bytes) -> Answer:
    """Return an answer that is compressed as its header says."""
    bare = zlib.compressobj(wbits=-15)
    data = {
        "gzip": gzip.compress,
        "x-gzip": gzip.compress,
        "deflate": zlib.compress,
        "Deflate": lambda given: bare.compress(given) + bare.flush(),
        "gzip, gzip": lambda given: gzip.compress(gzip.compress(given)),
        "identity": bytes,
    }[encoding](body)
    return Answer(data, [*HTML, ("Content-Encoding", encoding)])


@both
@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate", "Deflate", "gzip, gzip", "identity"])
async def test_a_compressed_body_is_unpacked(create: Factory, encoding: str):
    said = "word " * 20_000 + "end"
    async with web_site(packed(encoding, said.encode())) as site:
        result = await create(**LOCAL, **({} if create is create_http_tool else {"max_chars": 500_000}))(
            {"url": site.url()}
        )
        assert (text(result), result["truncated"]) == (said, False)
        assert site.asked[0].headers["accept-encoding"] == "gzip, deflate"


@both
async def test_a_body_of_several_gzip_members_is_unpacked_wherever_it_is_cut(create: Factory):
    members = gzip.compress(b"one ") + gzip.compress(b"two ") + gzip.compress(b"three") + b"\0\0 padding"
    for cut in (1, len(gzip.compress(b"one ")), len(members) - 5):

        async def pieces(cut: int = cut) -> AsyncIterator[bytes]:
            yield members[:cut]
            await asyncio.sleep(0)
            yield members[cut:]

        answer = Answer(headers=[*HTML, ("Content-Encoding", "gzip")], pieces=pieces())
        async with web_site(answer) as site:
            assert text(await create(**LOCAL)({"url": site.url()})) == "one two three"


@both
async def test_what_follows_a_compressed_body_counts_against_the_limit_too(create: Factory):
    async def padded() -> AsyncIterator[bytes]:
        yield gzip.compress(b"all")
        async for padding in forever(b"\0" * 1000):
            yield padding

    async with web_site(Answer(headers=[*HTML, ("Content-Encoding", "gzip")], pieces=padded())) as site:
        result = await asyncio.wait_for(create(**LOCAL, max_bytes=100_000)({"url": site.url()}), WAIT)
        assert (text(result), result["truncated"]) == ("all", True)


@pytest.mark.spec("TOOL-67")
@both
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "gzip, gzip"])
async def test_a_bomb_unpacks_to_the_limit_and_costs_no_more(create: Factory, encoding: str):
    bomb = packed(encoding, b"\n" * 100_000_000)
    assert len(bomb.body) < 200_000
    async with web_site(bomb) as site:
        tool = create(**LOCAL, max_bytes=1_000_000)
        await tool({"url": site.url()})  # what is loaded once is not counted
        gc.collect()
        tracemalloc.start()
        try:
            result = await tool({"url": site.url()})
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert result["truncated"] is True
        assert peak < 20_000_000


@both
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        pytest.param(
            Answer(b"not gzip", [*HTML, ("Content-Encoding", "gzip")]), "is not the gzip that it says it is", id="a lie"
        ),
        pytest.param(Answer(b"x", [*HTML, ("Content-Encoding", "br")]), "compressed in a way", id="unknown"),
        pytest.param(Answer(b"x", [*HTML, ("Content-Encoding", "gzip,gzip,gzip")]), "compressed in a way", id="three"),
        pytest.param(
            Answer(raw=b"HTTP/1.1 200 OK\r\nX-Big: " + b"a" * 200_000 + b"\r\n\r\nx"),
            "is not valid HTTP, or its headers are too long",
            id="huge headers",
        ),
        pytest.param(Answer(raw=b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), "is not valid HTTP", id="another protocol"),
        pytest.param(Answer(raw=b"HTTP/1.1 200 OK\r\nBad Header: 1\r\n\r\n"), "is not valid HTTP", id="a bad header"),
        pytest.param(
            Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
            "is not valid HTTP",
            id="two lengths",
        ),
        pytest.param(Answer(raw=b""), "was closed before the answer was complete", id="nothing"),
        pytest.param(
            Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"),
            "was closed before the answer was complete",
            id="half a body",
        ),
        pytest.param(
            Answer(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
            "is not valid HTTP",
            id="a bad chunk",
        ),
    ],
)
async def test_a_broken_answer_is_an_error_that_names_the_host(create: Factory, answer: Answer, told: str):
    async with web_site(answer) as site:
        error = await refused(create(**LOCAL)({"url": site.url("/?key=hunter2")}))
        assert told in error
        assert f"'127.0.0.1:{site.port}'" in error
        assert "hunter2" not in error


@both
async def test_a_body_in_tiny_chunks_still_ends_at_the_deadline(create: Factory):
    answer = Answer(headers=CHUNKED, pieces=forever(b"1\r\na\r\n" * 10_000))
    async with web_site(answer) as site:
        began = time.monotonic()
        told = await refused(create(**LOCAL, timeout_ms=500, max_bytes=100_000_000)({"url": site.url()}))
        assert "did not answer completely within 500 ms" in told
        assert time.monotonic() - began < 5


@both
async def test_long_headers_that_still_fit_are_cut_for_the_model(create: Factory):
    async with web_site(page("x", headers_too := "text/html; a=" + "b" * 50_000)) as site:
        result = await create(**LOCAL)({"url": site.url()})
        shown = result["contentType"] if "contentType" in result else result["headers"]["content-type"]
        assert headers_too.startswith(shown)
        assert len(shown) == (200 if "contentType" in result else 4_000)
        assert text(result) == "x"


@both
async def test_a_server_that_is_not_there_is_an_error_that_names_it(create: Factory, free_port: int):
    told = await refused(create(**LOCAL)({"url": f"http://127.0.0.1:{free_port}/"}))
    assert told.startswith(f"Connection refused (ECONNREFUSED) at '127.0.0.1:{free_port}'")


@pytest.mark.spec("TOOL-66", "TOOL-67")
@both
@pytest.mark.parametrize(
    "route",
    [
        pytest.param(lambda _: Answer(silent=True), id="no answer"),
        pytest.param(lambda _: Answer(headers=HTML, pieces=once_then_wait(b"<p>hello")), id="half a body"),
        pytest.param(lambda _: Answer(headers=HTML, pieces=drip(b"<p>hello")), id="a slow body"),
        pytest.param(
            lambda _: Answer(headers=[("Location", "/b")], status=302, pieces=drip(b"x")), id="a slow redirect"
        ),
    ],
)
async def test_the_deadline_covers_the_whole_request(create: Factory, route: Any):
    async with web_site({"*": route, "/b": Answer(silent=True)}) as site:
        began = time.monotonic()
        told = await refused(create(**LOCAL, timeout_ms=300)({"url": site.url("/?key=hunter2")}))
        assert time.monotonic() - began < 5
        assert told == f"'127.0.0.1:{site.port}' did not answer completely within 300 ms."
        await asyncio.wait_for(site.hung_up.wait(), WAIT)


@pytest.mark.spec("TOOL-66", "TOOL-67")
@both
async def test_the_deadline_covers_the_lookup_and_all_redirects_together(create: Factory):
    async def never(host: str, port: int) -> list[str]:
        await asyncio.sleep(WAIT * 6)
        return []

    told = await refused(create(resolver=never, timeout_ms=200)({"url": "http://slow.test/"}))
    assert told == "'slow.test' did not answer completely within 200 ms."

    async with web_site(
        Answer(headers=[("Location", "/")], status=302, after_s=0.1)
    ) as site:  # each hop is fast enough
        told = await refused(create(**LOCAL, timeout_ms=1_000, max_redirects=100)({"url": site.url()}))
        assert told == f"'127.0.0.1:{site.port}' did not answer completely within 1000 ms."
        assert len(site.asked) > 1


@both
async def test_the_deadline_covers_a_tls_handshake_that_never_ends(create: Factory):
    async with web_site(Answer(silent=True)) as site:  # it does not speak TLS, and waits
        names = Names(secure_test=[["127.0.0.1"]])
        call = create(**LOCAL, resolver=names, timeout_ms=300)({"url": f"https://secure.test:{site.port}/"})
        assert await refused(call) == f"'secure.test:{site.port}' did not answer completely within 300 ms."
        await asyncio.wait_for(site.hung_up.wait(), WAIT)


async def _aborted(site: Site, tool: Tool, reason: object) -> BaseException:
    """Start a call, abort it once the server has it, and return what it raised."""
    signal = CancelSignal()
    call = asyncio.ensure_future(tool({"url": site.url()}, tool_context(abort_signal=signal)))
    await asyncio.wait_for(site.arrived.wait(), WAIT)
    signal.abort(reason)
    (outcome,) = await asyncio.wait_for(asyncio.gather(call, return_exceptions=True), WAIT)
    assert isinstance(outcome, BaseException)
    return outcome


@pytest.mark.spec("RUN-12")
@both
@pytest.mark.parametrize(
    "route",
    [
        pytest.param(lambda _: Answer(silent=True), id="before the answer"),
        pytest.param(lambda _: Answer(headers=HTML, pieces=once_then_wait(b"<p>hello")), id="in the body"),
    ],
)
async def test_the_abort_signal_of_a_call_cancels_its_request_and_closes_the_socket(create: Factory, route: Any):
    async with web_site(route) as site:
        outcome = await _aborted(site, create(**LOCAL), "enough")
        assert (type(outcome).__name__, "enough" in str(outcome)) == ("AbortError", True)
        await asyncio.wait_for(site.hung_up.wait(), WAIT)
        assert site.open == 0


@both
async def test_a_call_that_is_aborted_already_sends_nothing(create: Factory):
    signal = CancelSignal()
    signal.abort("before")
    async with web_site(page("x")) as site:
        with pytest.raises(Exception, match="before"):
            await create(**LOCAL)({"url": site.url()}, tool_context(abort_signal=signal))
        assert site.connections == 0


@pytest.mark.spec("RUN-12")
@both
async def test_aborting_a_run_hangs_up_on_the_server(create: Factory):
    tool = create(**LOCAL)
    async with web_site(Answer(silent=True)) as site:
        signal = CancelSignal()
        model = mock_model([{"tool_calls": [{"name": tool.name, "args": {"url": site.url()}}]}, "never said"])
        run = create_agent(provider=model, tools=[tool]).stream("Go", signal=signal)
        reading = asyncio.ensure_future(collect(run))
        await asyncio.wait_for(site.arrived.wait(), WAIT)
        signal.abort("enough")
        events = await asyncio.wait_for(reading, WAIT)
        assert events[-1].finish_reason == "aborted"
        await asyncio.wait_for(site.hung_up.wait(), WAIT)


@both
async def test_cancelling_the_task_hangs_up_on_the_server(create: Factory):
    async with web_site(Answer(silent=True)) as site:
        call = asyncio.ensure_future(create(**LOCAL)({"url": site.url()}))
        await asyncio.wait_for(site.arrived.wait(), WAIT)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(site.hung_up.wait(), WAIT)


@both
async def test_many_requests_at_once_get_their_own_answers(create: Factory):
    async with web_site(lambda asked: page(asked.target)) as site:
        tool = create(**LOCAL)
        results = await asyncio.gather(*(tool({"url": site.url(f"/{n}")}) for n in range(100)))
        assert [text(result) for result in results] == [f"/{n}" for n in range(100)]
        again = await asyncio.gather(*(tool({"url": site.url(f"/{n}")}) for n in range(10)))
        assert [text(result) for result in again] == [f"/{n}" for n in range(10)]


@pytest.mark.spec("TOOL-66")
async def test_a_model_reads_a_timeout_as_a_failed_call():
    async with web_site(Answer(silent=True)) as site:
        tool = create_web_fetch_tool(**LOCAL, timeout_ms=100)
        model = mock_model([{"tool_calls": [{"name": "web_fetch", "args": {"url": site.url()}}]}, "It is slow."])
        result = await create_agent(provider=model, tools=[tool]).send("Read it")
        (failed,) = [json.loads(str(message.content)) for message in result.messages if message.role == "tool"]
        assert (failed["kind"], failed["message"]) == (
            "execution",
            f"'127.0.0.1:{site.port}' did not answer completely within 100 ms.",
        )
        assert result.text == "It is slow."
