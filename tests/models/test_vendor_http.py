"""What holds for every vendor on the wire: waiting, aborting, connections, proxies, certificates."""

from __future__ import annotations

import asyncio
import gc
import os
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_vendor import FakeVendor, Reply, chunked, collect, events, fake_vendor, http, request

from lousho import create_agent
from lousho.core.cancel import CancelSignal
from lousho.core.errors import CompactedLLMProviderError, ConfigurationError, MissingDependencyError
from lousho.core.errors import TimeoutError as OperationTimeoutError
from lousho.models.anthropic import AnthropicProvider
from lousho.models.openai import OpenAIProvider

KEY = "test-key-1234567890"
OPENAI_REPLY = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}
OPENAI_EVENTS = events(
    {"choices": [{"delta": {"content": "a"}}]},
    {"choices": [{"delta": {"content": "b"}}]},
    {"choices": [{"delta": {"content": "c"}, "finish_reason": "stop"}]},
)
HEAD = OPENAI_EVENTS[0]
STREAM_START = chunked([HEAD], complete=False).pieces
Provider = OpenAIProvider | AnthropicProvider


@pytest.fixture(params=[OpenAIProvider, AnthropicProvider], ids=["openai", "anthropic"])
def make(request: pytest.FixtureRequest) -> Callable[..., Provider]:
    def build(url: str, **options: Any) -> Provider:
        return request.param(base_url=url, api_key=KEY, default_model="m", **options)

    return build


async def test_a_refused_connection_says_where_and_asks_for_the_server(make: Callable[..., Provider], free_port: int):
    url = f"http://127.0.0.1:{free_port}/v1"
    with pytest.raises(CompactedLLMProviderError) as failed:
        await make(url).generate(request())
    compacted = failed.value.compacted
    assert compacted.error.startswith(f"connection refused (ECONNREFUSED) at {url}/")
    assert compacted.error.endswith("- is the server running?")
    assert (compacted.category, compacted.retryable, compacted.status_code) == ("timeout", True, None)
    assert isinstance(failed.value.cause, ConnectionRefusedError)


async def test_a_host_that_does_not_exist_is_named(make: Callable[..., Provider]):
    with pytest.raises(CompactedLLMProviderError, match=r"host name was not found .*http://nowhere\.invalid"):
        await make("http://nowhere.invalid/v1").generate(request())


@pytest.mark.spec("BEY-15")
@pytest.mark.parametrize("then", ["close", "reset"])
@pytest.mark.parametrize(
    "sent", [[], [b"HTTP/1.1 200 OK\r\ncontent-le"], [b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{"]]
)
async def test_a_connection_lost_before_the_answer_is_whole_is_a_retryable_timeout(
    vendor: FakeVendor, make: Callable[..., Provider], sent: list[bytes], then: str
):
    vendor.answers(Reply(sent, then))
    with pytest.raises(CompactedLLMProviderError) as failed:
        await make(vendor.url).generate(request())
    assert (failed.value.compacted.category, failed.value.compacted.retryable) == ("timeout", True)
    assert vendor.url in failed.value.message


@pytest.mark.spec("BEY-15")
@pytest.mark.parametrize(
    "pieces",
    [pytest.param([], id="no answer"), pytest.param(STREAM_START, id="after a chunk")],
)
async def test_a_stall_longer_than_the_timeout_fails_the_call(
    vendor: FakeVendor, make: Callable[..., Provider], pieces: list[bytes]
):
    vendor.answers(Reply(pieces, "wait"))
    with pytest.raises(CompactedLLMProviderError) as failed:
        await collect(make(vendor.url, timeout=50).stream(request()))
    assert (failed.value.compacted.category, failed.value.compacted.retryable) == ("timeout", True)
    assert isinstance(failed.value.cause, OperationTimeoutError)
    assert failed.value.cause.timeout_ms == 50
    async with asyncio.timeout(5):
        await vendor.hung_up.wait()


async def test_a_whole_answer_that_stalls_fails_too(vendor: FakeVendor, make: Callable[..., Provider]):
    vendor.answers(Reply([b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{"], "wait"))
    with pytest.raises(CompactedLLMProviderError, match="no answer from"):
        await make(vendor.url, timeout=50).generate(request())


class Drip(httpx.AsyncByteStream):
    """A body whose pieces come one after the other, with a wait before each."""

    def __init__(self, pieces: list[bytes], wait: float) -> None:
        self.pieces = pieces
        self.wait = wait

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            await asyncio.sleep(self.wait)
            yield piece


def dripping(pieces: list[bytes], wait: float) -> httpx.MockTransport:
    return httpx.MockTransport(lambda _: httpx.Response(200, stream=Drip(pieces, wait)))


async def test_a_stream_that_keeps_sending_is_never_cut():
    provider = OpenAIProvider(api_key=KEY, timeout=400, transport=dripping(OPENAI_EVENTS, 0.2))
    assert len(await collect(provider.stream(request()))) == 4


async def test_keep_alive_comments_do_not_count_as_progress():
    provider = OpenAIProvider(api_key=KEY, timeout=100, transport=dripping([b": still here\n\n"] * 200, 0.02))
    with pytest.raises(CompactedLLMProviderError) as failed:
        await collect(provider.stream(request()))
    assert failed.value.compacted.category == "timeout"


@pytest.mark.parametrize("timeout", [0, float("inf")])
async def test_a_timeout_of_zero_or_infinity_is_none(timeout: float):
    provider = OpenAIProvider(api_key=KEY, timeout=timeout, transport=dripping(OPENAI_EVENTS, 0.05))
    assert len(await collect(provider.stream(request()))) == 4


@pytest.mark.parametrize("timeout", [-1, float("nan"), True, "10"])
def test_a_timeout_that_is_no_length_of_time_is_refused(timeout: Any):
    with pytest.raises(ConfigurationError) as refused:
        OpenAIProvider(api_key=KEY, timeout=timeout)
    assert (refused.value.code, refused.value.field) == ("LOUSHO_CONFIG_INVALID", "timeout")


@pytest.mark.parametrize("pieces", [[], STREAM_START], ids=["before the answer", "in the stream"])
async def test_an_aborted_call_ends_at_once_with_the_reason_and_hangs_up(
    vendor: FakeVendor, make: Callable[..., Provider], pieces: list[bytes]
):
    signal, reason = CancelSignal(), RuntimeError("enough")
    vendor.answers(Reply(pieces, "wait"))
    call = asyncio.create_task(collect(make(vendor.url).stream(request(signal=signal))))
    async with asyncio.timeout(5):
        while not vendor.received:
            await asyncio.sleep(0.01)
        signal.abort(reason)
        with pytest.raises(RuntimeError) as stopped:
            await call
        await vendor.hung_up.wait()
    assert stopped.value is reason


async def test_a_signal_aborted_before_the_call_sends_nothing(vendor: FakeVendor, make: Callable[..., Provider]):
    signal = CancelSignal()
    signal.abort(RuntimeError("too late"))
    with pytest.raises(RuntimeError, match="too late"):
        await make(vendor.url).generate(request(signal=signal))
    assert vendor.received == []


async def test_a_cancelled_task_is_cancelled_and_hangs_up(vendor: FakeVendor, make: Callable[..., Provider]):
    vendor.answers(Reply([], "wait"))
    call = asyncio.create_task(make(vendor.url).generate(request()))
    async with asyncio.timeout(5):
        while not vendor.received:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await vendor.hung_up.wait()


async def test_calls_share_a_connection(vendor: FakeVendor):
    provider = OpenAIProvider(base_url=vendor.url, api_key=KEY)
    vendor.answers(http(200, OPENAI_REPLY))
    for _ in range(3):
        await provider.generate(request())
    assert (len(vendor.received), vendor.connections) == (3, 1)
    vendor.answers(chunked([*OPENAI_EVENTS, b"data: [DONE]\n\n"], then="keep"))
    for _ in range(3):
        await collect(provider.stream(request()))
    assert (len(vendor.received), vendor.connections) == (6, 1)
    await provider.aclose()
    await collect(provider.stream(request()))
    assert vendor.connections == 2


@pytest.mark.parametrize("ending", [[], [b"data: [DONE]\n\n"]], ids=["without the end mark", "with it"])
async def test_a_complete_answer_does_not_wait_for_a_server_that_keeps_the_stream_open(
    vendor: FakeVendor, ending: list[bytes]
):
    vendor.answers(chunked([*OPENAI_EVENTS, *ending], complete=False, then="wait"))
    chunks = await collect(OpenAIProvider(base_url=vendor.url, api_key=KEY, timeout=300).stream(request()))
    assert [chunk.type for chunk in chunks] == ["text-delta"] * 3 + ["finish"]
    async with asyncio.timeout(5):
        await vendor.hung_up.wait()


def test_one_provider_works_in_one_event_loop_after_the_other_and_leaves_nothing_open(tmp_path: Path):
    code = """
import asyncio, gc, threading
from fake_vendor import fake_vendor, http, request, collect, chunked, events
from lousho.models.openai import OpenAIProvider
provider = OpenAIProvider(base_url="http://127.0.0.1:1", api_key="k-123456")
async def main():
    async with fake_vendor() as vendor:
        provider.base_url = vendor.url
        vendor.answers(http(200, {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}))
        answers = [await provider.generate(request()) for _ in range(2)]
        vendor.answers(chunked(events({"choices": [{"delta": {"content": "never finished"}}]}), then="wait"))
        stream = provider.stream(request())
        await anext(stream)
        return [answer.text for answer in answers]
print(asyncio.run(main()), asyncio.run(main()))
thread = threading.Thread(target=lambda: print(asyncio.run(main())))
thread.start()
thread.join()
gc.collect()
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=30,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == "['hi', 'hi'] ['hi', 'hi']\n['hi', 'hi']\n"


async def test_a_provider_that_is_thrown_away_closes_its_connections(vendor: FakeVendor):
    vendor.answers(http(200, OPENAI_REPLY))
    provider = OpenAIProvider(base_url=vendor.url, api_key=KEY)
    await provider.generate(request())
    assert not vendor.hung_up.is_set()
    del provider
    gc.collect()
    async with asyncio.timeout(5):
        await vendor.hung_up.wait()


def test_a_provider_that_goes_with_its_event_loop_leaves_nothing_open():
    code = """
import asyncio, gc, threading
from fake_vendor import fake_vendor, http, request
from lousho.models.openai import OpenAIProvider
url, up, over = [], threading.Event(), threading.Event()
async def serve():
    async with fake_vendor() as vendor:
        vendor.answers(http(200, {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}))
        url.append(vendor.url)
        up.set()
        await asyncio.to_thread(over.wait)
async def call(turns, cancelled):
    provider = OpenAIProvider(base_url=url[0], api_key="k-123456")
    await asyncio.gather(*(provider.generate(request()) for _ in range(15)))
    if cancelled:
        closing = asyncio.ensure_future(provider.aclose())
        await asyncio.sleep(0)
        closing.cancel()
    del provider
    for _ in range(turns):  # of the loop, before it ends
        await asyncio.sleep(0)
server = threading.Thread(target=asyncio.run, args=(serve(),))
server.start()
up.wait()
for turns in range(8):
    for cancelled in (False, True):
        asyncio.run(call(turns, cancelled))
        gc.collect()
over.set()
server.join()
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("done\n", "")


async def test_a_transport_is_used_for_every_call_and_left_open():
    seen: list[str] = []

    class Transport(httpx.AsyncBaseTransport):
        closed = False

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            seen.append(str(request.url))
            return httpx.Response(200, json={**OPENAI_REPLY, "data": [{"id": "m1"}, {"id": "m2"}, {}]})

        async def aclose(self) -> None:
            self.closed = True

    transport = Transport()
    provider = OpenAIProvider(base_url="http://vendor.test/v1", api_key=KEY, transport=transport)
    assert (await provider.generate(request())).text == "hi"
    assert await provider.get_models() == ["m1", "m2"]
    await provider.aclose()
    assert seen == ["http://vendor.test/v1/chat/completions", "http://vendor.test/v1/models"]
    assert not transport.closed


async def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(vendor: FakeVendor):
    vendor.answers(http(200, OPENAI_REPLY))
    async with fake_vendor() as proxy:
        proxy.answers(http(200, OPENAI_REPLY))
        os.environ["HTTP_PROXY"] = proxy.url
        await OpenAIProvider(base_url="http://vendor.test/v1", api_key=KEY).generate(request())
        await OpenAIProvider(base_url=vendor.url, api_key=KEY).generate(request())
    assert [entry.path for entry in proxy.received] == ["http://vendor.test/v1/chat/completions"]
    assert len(vendor.received) == 1


async def test_a_proxy_address_that_makes_no_sense_is_a_configuration_error():
    os.environ["HTTPS_PROXY"] = "nonsense://proxy"
    with pytest.raises(ConfigurationError, match="HTTPS_PROXY"):
        await OpenAIProvider(api_key=KEY).generate(request())


@pytest.mark.spec("ERR-32")
async def test_a_socks_proxy_without_its_package_names_the_install_command():
    os.environ["ALL_PROXY"] = "socks5://127.0.0.1:1"
    with pytest.raises(CompactedLLMProviderError, match=r"pip install 'httpx\[socks\]'") as failed:
        await create_agent(provider=OpenAIProvider(api_key=KEY)).send("hi")
    assert failed.value.code == "LOUSHO_PEER_MISSING"
    assert isinstance(failed.value.cause, MissingDependencyError)
    assert failed.value.cause.install_command == "pip install 'httpx[socks]'"


async def test_a_missing_certificate_file_is_a_configuration_error(tmp_path: Path):
    os.environ["SSL_CERT_FILE"] = str(tmp_path / "missing.pem")
    with pytest.raises(ConfigurationError, match="SSL_CERT_FILE"):
        await OpenAIProvider(base_url="https://127.0.0.1:1", api_key=KEY).generate(request())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for localhost and its key, in one file."""
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=30)
    except FileNotFoundError:
        pytest.skip("the openssl command is not installed")
    both = folder / "both.pem"
    both.write_bytes(key.read_bytes() + cert.read_bytes())
    return both


async def test_a_private_certificate_is_refused_with_the_fix_and_accepted_through_ssl_cert_file(certificate: Path):
    fake = FakeVendor()
    fake.answers(http(200, OPENAI_REPLY))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    server = await asyncio.start_server(fake.serve, "127.0.0.1", 0, ssl=context)
    url = f"https://localhost:{server.sockets[0].getsockname()[1]}/v1"
    try:
        with pytest.raises(CompactedLLMProviderError, match="SSL_CERT_FILE") as refused:
            await OpenAIProvider(base_url=url, api_key=KEY).generate(request())
        assert not refused.value.compacted.retryable
        os.environ["SSL_CERT_FILE"] = str(certificate)
        trusting = OpenAIProvider(base_url=url, api_key=KEY)
        assert (await trusting.generate(request())).text == "hi"
        await trusting.aclose()
    finally:
        server.close()


async def test_a_body_beyond_the_size_limit_ends_the_call(vendor: FakeVendor, make: Callable[..., Provider]):
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 40000000\r\n\r\n"
    vendor.answers(Reply([head + b'{"a": "', *[b"x" * 1024 * 1024] * 33]))
    with pytest.raises(CompactedLLMProviderError, match="longer than 33,554,432 bytes") as failed:
        await make(vendor.url).generate(request())
    assert not failed.value.compacted.retryable


@pytest.mark.parametrize("url", ["", "localhost:1234", "ftp://x/v1", "http://", "http://x:99999/v1", "http://[::1/v1"])
def test_a_base_url_that_is_none_is_refused_at_once(make: Callable[..., Provider], url: str):
    with pytest.raises(ConfigurationError) as refused:
        make(url)
    assert refused.value.field == "base_url"


def test_without_a_base_url_calls_go_to_the_vendor():
    os.environ.update(OPENAI_BASE_URL="", ANTHROPIC_BASE_URL="")
    assert OpenAIProvider(api_key=KEY).call_url() == "https://api.openai.com/v1/chat/completions"
    assert AnthropicProvider(api_key=KEY).call_url() == "https://api.anthropic.com/v1/messages"
