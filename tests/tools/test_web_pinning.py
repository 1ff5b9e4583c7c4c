"""One lookup a connection, every hop checked, and the socket where the check said: names that change their answers."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from collections.abc import Callable

import pytest
from web_site import DATA, WAIT, Names, moved, page, refused, web_site

from lousho import Tool, create_http_tool, create_web_fetch_tool

Factory = Callable[..., Tool]
both = pytest.mark.parametrize("create", [create_http_tool, create_web_fetch_tool], ids=["http_request", "web_fetch"])
NOT_PUBLIC = "is not on the public internet, and only public hosts may be reached."


@pytest.mark.spec("TOOL-61")
@both
async def test_a_name_that_changes_its_answer_is_looked_up_once_and_the_socket_goes_there(create: Factory):
    async with web_site(page("first")) as first, web_site(page("second"), host="127.0.0.2", port=first.port) as second:
        names = Names(rebind_test=[["127.0.0.1"], ["127.0.0.2"]])
        tool = create(resolver=names, allow_private=["rebind.test"])
        result = await tool({"url": first.url(host="rebind.test")})
        assert (result["status"], names.lookups) == (200, ["rebind.test"])
        assert (len(first.asked), len(second.asked)) == (1, 0)
        assert first.asked[0].headers["host"] == f"rebind.test:{first.port}"


@pytest.mark.spec("TOOL-61")
@pytest.mark.parametrize("factory", ["create_http_tool", "create_web_fetch_tool"])
def test_a_name_that_is_public_to_the_check_has_no_second_lookup_to_turn_private_in(factory: str):
    program = f"""
import asyncio, json
from lousho import {factory}
from lousho.core.errors import ToolExecutionError

answers = [["8.8.4.4"], ["127.0.0.1"]]
lookups = []

async def resolver(host, port):
    lookups.append(host)
    return answers.pop(0)

async def main():
    try:
        await {factory}(resolver=resolver)({{"url": "http://rebind.test/"}})
    except ToolExecutionError as error:
        print(json.dumps([lookups, error.detail]))

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, encoding="utf-8", timeout=30
    )
    # The guard of the test suite is the network here: it refuses the connection, and says where it went.
    assert done.stderr.splitlines() == ["[test guard] a child process tried to reach 8.8.4.4"]
    lookups, told = json.loads(done.stdout)
    assert lookups == ["rebind.test"]
    assert told.startswith("The network cannot be reached (ENETUNREACH) at 'rebind.test'")
    assert "8.8.4.4" not in told


@pytest.mark.spec("TOOL-61")
@both
async def test_a_later_connection_is_looked_up_and_checked_again(create: Factory):
    async with web_site(lambda _: page("hello")) as site:
        names = Names(rebind_test=[["127.0.0.1"], ["127.0.0.1", "169.254.169.254"]])
        tool = create(resolver=names, allow_private=["rebind.test"], max_bytes=3)  # a cut answer costs its connection
        assert (await tool({"url": site.url(host="rebind.test")}))["truncated"] is True
        assert await refused(tool({"url": site.url(host="rebind.test")})) == f"'rebind.test' {NOT_PUBLIC}"
        assert (len(names.lookups), len(site.asked)) == (2, 1)


@pytest.mark.spec("TOOL-61")
@both
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("target", "host"),
    [
        pytest.param("http://169.254.169.254/latest/meta-data/", "169.254.169.254", id="metadata"),
        pytest.param("//10.0.0.1/", "10.0.0.1", id="without a scheme"),
        pytest.param("http://2130706433/", "127.0.0.1", id="a number"),
        pytest.param("http://[::ffff:192.168.0.1]/", "192.168.0.1", id="IPv4-mapped"),
        pytest.param("\\\\127.0.0.2\\x", "127.0.0.2", id="backslashes"),
        pytest.param("https://inner.test/", "inner.test", id="a name that resolves to one"),
    ],
)
async def test_a_redirect_to_a_private_host_is_refused(create: Factory, status: int, target: str, host: str):
    async with web_site(moved(target, status)) as site:
        names = Names(start_test=[["127.0.0.1"]], inner_test=[["192.168.1.10"]])
        tool = create(resolver=names, allow_private=["start.test"])
        assert await refused(tool({"url": site.url(host="start.test")})) == f"'{host}' {NOT_PUBLIC}"
        assert len(site.asked) == 1


@pytest.mark.spec("TOOL-61")
@both
@pytest.mark.parametrize("good_hops", [1, 2, 5])
async def test_every_hop_is_checked_not_just_the_first(create: Factory, good_hops: int):
    async with web_site({}) as site:
        # Each hop has a name of its own, so each is looked up; the last one is private.
        site.routes = {"*": lambda asked: moved(f"http://hop{len(site.asked)}.test:{site.port}/")}
        names = Names(start_test=[["127.0.0.1"]])
        names.answers |= {f"hop{number}.test": [["127.0.0.1"]] for number in range(1, good_hops)}
        names.answers[f"hop{good_hops}.test"] = [["10.0.0.1"]]
        tool = create(resolver=names, allow_private=["start.test", *(f"hop{n}.test" for n in range(1, good_hops))])
        told = await refused(tool({"url": site.url(host="start.test")}))
        assert told == f"'hop{good_hops}.test' {NOT_PUBLIC}"
        assert (len(site.asked), len(names.lookups)) == (good_hops, good_hops + 1)


@pytest.mark.spec("TOOL-61")
@both
async def test_tls_is_verified_against_the_name_and_not_the_address(create: Factory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(DATA / "authority.pem"))
    names = Names(secure_test=[["127.0.0.1"]], other_test=[["127.0.0.1"]])
    names.answers["xn--bcher-kva.test"] = [["127.0.0.1"]]
    async with web_site(lambda _: page("safe"), tls=True) as site:
        tool = create(resolver=names, allow_private=["secure.test", "other.test", "bücher.test", "127.0.0.1"])
        assert (await tool({"url": site.url(host="secure.test", scheme="https")}))["status"] == 200
        assert (await tool({"url": site.url(host="Secure.TEST.", scheme="https")}))["status"] == 200
        assert (await tool({"url": site.url(host="BÜCHER.test", scheme="https")}))["status"] == 200
        assert {one.headers["host"] for one in site.asked} == {
            f"secure.test:{site.port}",
            f"xn--bcher-kva.test:{site.port}",
        }
        assert site.server_names == ["secure.test", "xn--bcher-kva.test"]  # one connection served the first two
        told = await refused(tool({"url": site.url(host="other.test", scheme="https")}))
        assert told.startswith(f"The certificate of 'other.test:{site.port}' was not accepted")
        assert "127.0.0.1" in await refused(tool({"url": site.url(scheme="https")}))
        assert len(site.asked) == 3


async def test_a_certificate_of_an_unknown_authority_is_accepted_only_when_the_tool_was_told_to():
    names = Names(secure_test=[["127.0.0.1"]])
    async with web_site(page("safe"), tls=True) as site:
        call = {"url": site.url(host="secure.test", scheme="https")}
        strict = create_http_tool(resolver=names, allow_private=["secure.test"])
        assert "certificate of 'secure.test" in await refused(strict(call))
        lax = create_http_tool(resolver=names, allow_private=["secure.test"], validate_ssl=False)
        assert (await lax(call))["body"] == "safe"
        assert "certificate of 'secure.test" in await refused(strict(call))


@both
async def test_an_address_that_does_not_answer_gives_way_to_the_next_one(create: Factory):
    async with web_site(page("here"), host="127.0.0.2") as site:
        names = Names(twice_test=[["127.0.0.1", "127.0.0.2"]])  # nobody listens on the first
        tool = create(resolver=names, allow_private=["twice.test"])
        assert (await tool({"url": site.url(host="twice.test")}))["status"] == 200
        assert names.lookups == ["twice.test"]


@both
async def test_a_name_that_nobody_knows_is_an_error_that_names_it(create: Factory):
    tool = create(resolver=Names())
    assert await refused(tool({"url": "http://nowhere.test/x"})) == (
        "The host name 'nowhere.test' was not found: check its spelling."
    )
    assert "'nowhere.invalid' was not found" in await refused(create()({"url": "http://nowhere.invalid/"}))


@both
async def test_the_proxies_of_the_environment_are_not_used(create: Factory, monkeypatch: pytest.MonkeyPatch):
    async with web_site(page("proxy")) as proxy, web_site(page("origin")) as site:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url())
        tool = create(allow_private=["127.0.0.1"])
        assert (await tool({"url": site.url()}))["status"] == 200
        assert (len(proxy.asked), len(site.asked)) == (0, 1)


@pytest.mark.spec("TOOL-67")
@both
async def test_a_tool_keeps_its_connections_to_itself_and_gives_them_back_when_it_is_gone(create: Factory):
    async with web_site(lambda _: page("x")) as site:
        one = create(allow_private=["127.0.0.1"])
        other = create(allow_private=["127.0.0.1"])
        for tool in (one, one, other, one):
            await tool({"url": site.url()})
        assert (len(site.asked), site.connections) == (4, 2)
        assert not any(hasattr(one, name) for name in ("close", "aclose"))
        assert (site.open, site.hung_up.is_set()) == (2, False)
        del one, other, tool
        gc.collect()
        await asyncio.wait_for(site.hung_up.wait(), WAIT)


@both
def test_a_tool_works_in_one_event_loop_after_another_and_leaves_nothing_open(create: Factory):
    program = f"""
import asyncio, threading
from lousho import {create.__name__}
import web_site

tool = {create.__name__}(allow_private=["127.0.0.1"])

async def visit():
    async with web_site.web_site(lambda _: web_site.page("x")) as site:
        for _ in range(3):
            assert (await tool({{"url": site.url()}}))["status"] == 200
        assert site.connections == 1

for _ in range(3):
    asyncio.run(visit())
threads = [threading.Thread(target=asyncio.run, args=(visit(),)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=50,
    )
    assert (done.stdout, done.stderr) == ("done\n", "")


@pytest.mark.spec("TOOL-67")
@both
def test_a_tool_that_goes_with_its_event_loop_leaves_nothing_open(create: Factory):
    program = f"""
import asyncio, gc, threading
from lousho import {create.__name__}
import web_site

port, over = [], threading.Event()

async def serve():
    async with web_site.web_site(lambda _: web_site.page("x")) as site:
        port.append(site.port)
        up.set()
        await asyncio.to_thread(over.wait)

async def visit(turns):
    tool = {create.__name__}(allow_private=["127.0.0.1"])
    await asyncio.gather(*(tool({{"url": f"http://127.0.0.1:{{port[0]}}/"}}) for _ in range(30)))
    del tool
    for _ in range(turns):  # of the loop, before it ends
        await asyncio.sleep(0)

up = threading.Event()
server = threading.Thread(target=asyncio.run, args=(serve(),))
server.start()
up.wait()
for turns in range(6):
    asyncio.run(visit(turns))
    gc.collect()
over.set()
server.join()
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, encoding="utf-8", timeout=50
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
