"""Somebody else chooses the URL and answers for the name: where a connection goes, and what it takes along."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from web_site import Answer, Asked, Names, moved, page, refused, web_site

from lousho import Tool, create_http_tool, create_web_fetch_tool

Factory = Callable[..., Tool]
both = pytest.mark.parametrize("create", [create_http_tool, create_web_fetch_tool], ids=["http_request", "web_fetch"])
LOCAL: dict[str, Any] = {"allow_private": ["127.0.0.1", "a.test", "secure.test"]}
NOT_PUBLIC = "is not on the public internet, and only public hosts may be reached."


SPELLINGS = [
    "http://127.0.0.1:{port}@evil.test/",
    "http://evil.test@127.0.0.1:{port}/",
    "http://evil.test:80@127.0.0.1:{port}/",
    "http://evil.test%40127.0.0.1:{port}/",
    "http:\\\\127.0.0.1:{port}\\x",
    "http:/\\127.0.0.1:{port}/",
    "http:127.0.0.1:{port}",
    "http:/127.0.0.1:{port}",
    "http:///127.0.0.1:{port}",
    "http:////127.0.0.1:{port}",
    "//127.0.0.1:{port}/",
    "127.0.0.1:{port}",
    "http://127.0.0.1 :{port}/",
    "http://127.0.0.1: {port}/",
    "http://127.0.0.1:{port}:{port}/",
    "http://127.0.0.1\t:{port}/",
    "ht\ntp://127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\r\nHost: evil.test/",
    "http://127.0.0.1:0{port}/",
    "http://127.1:{port}/",
    "http://0:{port}/",
    "http://0.0.0.0:{port}/",
    "http://0x7f000001:{port}/",
    "http://0177.0x0.0.1:{port}/",
    "http://127.0.1:{port}/",
    "http://127.16777215:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://127.0.0.1..:{port}/",
    "http://00000000000000000000177.0.0.1:{port}/",
    "http://4294967297.0.0.1:{port}/",
    "http://127.0.0.257:{port}/",
    "http://18446744073709551617:{port}/",
    "http://[::]:{port}/",
    "http://[::1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1%25lo]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[64:ff9b::127.0.0.1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "http://[127.0.0.1]:{port}/",
    "http://[[::1]]:{port}/",
    "http://①②⑦.⓪.⓪.①:{port}/",
    "http://１２７｡０｡０｡１:{port}/",
    "http://127.0.0.\u00ad1:{port}/",
    "http://127.0.0.1\u200b:{port}/",
    "http://127\u2024" + "0.0.1:{port}/",
    "http://%31%32%37.0.0.1:{port}/",
    "http://127.0.0.1%23.evil.test:{port}/",
    "http://localhost:{port}/",
    "http://LOCALHOST.:{port}/",
    "http://ｌｏｃａｌｈｏｓｔ:{port}/",
    "http://ℓocal\u00adhost:{port}/",
    "http://localhost6:{port}/",
    "http://any.localhost:{port}/",
    "http://localhost.localdomain:{port}/",
    "http://127.0.0.1.nip.test:{port}/",
    "http://127.0.0.1_:{port}/",
    "http://127.0.0.1e0:{port}/",
    "file://127.0.0.1:{port}/",
    "gopher://127.0.0.1:{port}/_GET%20/",
    "dict://127.0.0.1:{port}/",
    "ws://127.0.0.1:{port}/",
    "http+unix://127.0.0.1:{port}/",
    "view-source:http://127.0.0.1:{port}/",
]
"""What leads to this machine for one reader of URLs or another."""
NOT_FOR_A_LOCATION = ("ht\n", "http://127.0.0.1:{port}\r\n", "127.0.0.1")
"""No header can carry the first two, and the last one is a path there."""


async def here(host: str, port: int) -> list[str]:
    """Resolve every name to this machine."""
    return ["127.0.0.1"]


@both
@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_no_spelling_of_a_url_reaches_a_server_on_this_machine(create: Factory, spelling: str):
    async with web_site(page("secret")) as site:
        url = spelling.replace("{port}", str(site.port))
        await refused(create(resolver=here)({"url": url}))
        assert site.connections == 0


@both
@pytest.mark.parametrize("spelling", [one for one in SPELLINGS if not one.startswith(NOT_FOR_A_LOCATION)])
async def test_no_spelling_in_a_redirect_does_either(create: Factory, spelling: str):
    async with web_site(page("secret")) as inner:
        location = spelling.replace("{port}", str(inner.port)).encode("utf-8").decode("latin-1")
        async with web_site(moved(location)) as site:
            await refused(create(resolver=here, allow_private=["a.test"])({"url": site.url(host="a.test")}))
            assert (len(site.asked), inner.connections) == (1, 0)


@both
@pytest.mark.parametrize(
    "host",
    [
        "corp.test",
        "corp.test.evil.test",
        "xcorp.test",
        "a.corp.test.evil.test",
        "a-corp.test",
        "a.corp.test.",
        "a.corp.testx",
        "corp.test.a",
        "a.corp。test.evil.test",
        "*.corp.test",
        "a.corp.test%2eevil.test",
        "a.corp.test@evil.test",
        "evil.test\\.corp.test",
        "evil.test#.corp.test",
        "evil.test?.corp.test",
        "evil.test/.corp.test",
        "127.0.0.1.corp.test",
    ],
)
async def test_a_pattern_for_private_hosts_means_the_end_of_a_name_and_nothing_like_it(create: Factory, host: str):
    async with web_site(page("inside")) as site:
        tool = create(resolver=here, allow_private=["*.corp.test"])
        meant = {"a.corp.test.", "127.0.0.1.corp.test"}
        call = tool({"url": f"http://{host}:{site.port}/"})
        if host in meant:
            assert (await call)["status"] == 200
        else:
            await refused(call)
            assert site.connections == 0


@both
async def test_every_address_of_a_name_is_checked_before_one_is_connected_to(create: Factory):
    async with web_site(page("inside")) as site:
        for last in ("169.254.169.254", "fe80::1", "0.0.0.0"):
            for answer in (["127.0.0.1", last], [last, "127.0.0.1"], ["127.0.0.1"] * 499 + [last]):
                tool = create(resolver=Names(a_test=[answer]), allow_private=["a.test"])
                assert await refused(tool({"url": site.url(host="a.test")})) == f"'a.test' {NOT_PUBLIC}"
        assert site.connections == 0


@both
async def test_of_many_addresses_eight_are_tried(create: Factory):
    async with web_site(page("here"), host="127.0.0.99") as site:
        for before, reached in [(7, True), (8, False)]:
            # Nobody listens on those before.
            answer = [*(f"127.0.0.{number}" for number in range(100, 100 + before)), "127.0.0.99"] + [
                "127.0.0.98"
            ] * 500
            tool = create(resolver=Names(a_test=[answer]), allow_private=["a.test"])
            call = tool({"url": site.url(host="a.test")})
            if reached:
                assert (await call)["status"] == 200
            else:
                assert "refused" in await refused(call)


@pytest.mark.parametrize(
    "answer", [[], [""], ["localhost"], ["127.0.0.1:80"], ["::1%lo"], ["0x7f.1"], ["127.1"], ["x" * 9999]]
)
@both
async def test_an_answer_that_is_no_address_is_not_dialled(create: Factory, answer: list[str]):
    async with web_site(page("inside")) as site:
        told = await refused(create(resolver=Names(a_test=[answer]), **LOCAL)({"url": site.url(host="a.test")}))
        assert told in (f"'a.test' {NOT_PUBLIC}", "The host name 'a.test' was not found: check its spelling.")
        assert site.connections == 0


@both
async def test_a_connection_of_one_name_is_not_used_for_another_name_of_the_same_server(create: Factory):
    async with web_site(lambda _: page("inside")) as site:
        names = Names(a_test=[["127.0.0.1"]], b_test=[["127.0.0.1"]], c_test=[["127.0.0.1"]], localhost=[["127.0.0.1"]])
        tool = create(resolver=names, allow_private=["a.test", "b.test"])
        for host, connections in [("a.test", 1), ("b.test", 2), ("a.test", 2)]:
            assert (await tool({"url": site.url(host=host)}))["status"] == 200
            assert site.connections == connections
        for host in ("c.test", "127.0.0.1", "localhost"):
            assert NOT_PUBLIC in await refused(tool({"url": site.url(host=host)}))
        assert (len(site.asked), site.connections) == (3, 2)


async def test_an_address_is_not_told_to_tls_as_a_name():
    async with web_site(lambda _: page("x"), tls=True) as site:
        tool = create_http_tool(validate_ssl=False, resolver=Names(a_test=[["127.0.0.1"]]), **LOCAL)
        for host in ("127.0.0.1", "a.test"):
            assert (await tool({"url": site.url(host=host, scheme="https")}))["status"] == 200
        assert site.server_names == [None, "a.test"]
        assert [one.headers["host"] for one in site.asked] == [f"127.0.0.1:{site.port}", f"a.test:{site.port}"]


def echo(asked: Asked) -> Answer:
    """Answer with the request itself."""
    said = {"method": asked.method, "headers": asked.headers, "body": asked.body.decode("utf-8")}
    return Answer(json.dumps(said).encode("utf-8"), [("Content-Type", "application/json")])


async def test_credentials_that_left_their_origin_do_not_come_back_with_it():
    async with web_site({}) as home, web_site({}) as away:
        home.routes = {"/a": moved(away.url("/b"), 307), "/c": echo}
        away.routes = {"/b": moved(home.url("/c"), 307)}
        call = {"url": home.url("/a"), "headers": {"Authorization": "hunter2", "X-Any": "hunter2", "Accept": "x/y"}}
        seen = (await create_http_tool(**LOCAL)(call))["body"]["headers"]
        assert seen["accept"] == "x/y"
        assert "hunter2" not in json.dumps(seen)
        assert "hunter2" not in json.dumps(away.asked[0].headers)


async def test_a_change_of_the_scheme_takes_credentials_away_as_well():
    async with web_site(echo) as plain:
        async with web_site(moved(plain.url(host="secure.test"), 302), tls=True) as safe:
            tool = create_http_tool(validate_ssl=False, resolver=Names(secure_test=[["127.0.0.1"]]), **LOCAL)
            call = {"url": safe.url(host="secure.test", scheme="https"), "headers": {"Cookie": "hunter2"}}
            assert "cookie" not in (await tool(call))["body"]["headers"]


@both
async def test_cookies_of_a_redirect_are_neither_kept_nor_sent(create: Factory):
    answer = Answer(headers=[("Location", "/b"), ("Set-Cookie", "id=1; Path=/"), ("Set-Cookie2", "x=1")], status=302)
    async with web_site({"/a": answer, "/b": lambda asked: page(json.dumps(asked.headers), "text/plain")}) as site:
        tool = create(**LOCAL)
        for _ in range(2):
            await tool({"url": site.url("/a")})
        assert not any("cookie" in one.headers for one in site.asked)
        assert site.connections == 1


@both
@pytest.mark.parametrize(
    ("headers", "final"),
    [
        pytest.param([("Refresh", "0; url=http://10.0.0.1/")], "/a", id="Refresh"),
        pytest.param(
            [("Content-Location", "http://10.0.0.1/"), ("Link", "<http://10.0.0.1/>; rel=next")], "/a", id="Link"
        ),
        pytest.param([("Location", "/b"), ("Location", "http://10.0.0.1/")], "/b", id="the first of two Locations"),
        pytest.param([("location", "/b?" + "x" * 15_000)], "/b?" + "x" * 15_000, id="a long Location"),
        pytest.param([("Location", "#fragment")], None, id="a fragment, which is the same page again"),
        pytest.param([("Location", "http:/b")], None, id="a scheme and a path"),
        pytest.param([("Location", "data:text/html,x")], None, id="data"),
        pytest.param([("Location", "file:///etc/passwd")], None, id="file"),
        pytest.param([("Location", "gopher://10.0.0.1/")], None, id="gopher"),
        pytest.param([("Location", "javascript:1")], None, id="javascript"),
        pytest.param([("Location", "///10.0.0.1/")], None, id="three slashes"),
        pytest.param([("Location", "/\\10.0.0.1/")], None, id="a slash and a backslash"),
        pytest.param([("Location", "\\/\\10.0.0.1/")], None, id="more of them"),
    ],
)
async def test_only_a_first_location_to_a_good_url_is_followed(
    create: Factory, headers: list[tuple[str, str]], final: str | None
):
    status = 302 if any(name.lower() == "location" for name, _ in headers) else 200
    async with web_site({"/a": Answer(headers=headers, status=status), "/b": page("end")}) as site:
        call = create(**LOCAL)({"url": site.url("/a")})
        if final is None:
            await refused(call)
        else:
            assert (await call)["finalUrl"] == site.url(final)


@pytest.mark.parametrize(
    "name",
    [
        "Transfer_Encoding",
        "content_length",
        "HOST",
        "Host ",
        " Host",
        "Host\t",
        "H\u017fost",
        "Ho\u017ft",
        "TE",
        "Upgrade",
        "Proxy-Connection",
        "Expect",
        "Trailer",
        "Keep-Alive",
        "Content-Length:",
        "Host:",
        "X\r\nHost",
        "\u212aeep-alive",
    ],
)
async def test_the_headers_of_the_connection_cannot_be_set_by_another_spelling(name: str):
    async with web_site(echo) as site:
        await refused(create_http_tool(**LOCAL)({"url": site.url(), "headers": {name: "chunked"}}))
        assert site.connections == 0


@pytest.mark.parametrize(
    "value", ["a\rb", "a\nb", "a\x00b", "a\x0bb", "a\x0cb", "a\x1bb", "a\x7fb", "\u010a", "\ud800", "😀"]
)
async def test_a_header_value_that_could_be_read_as_two_is_refused(value: str):
    async with web_site(echo) as site:
        await refused(create_http_tool(**LOCAL)({"url": site.url(), "headers": {"X-A": value}}))
        assert site.connections == 0


async def test_a_header_of_latin_letters_goes_as_it_is():
    async with web_site(echo) as site:
        result = await create_http_tool(**LOCAL)({"url": site.url(), "headers": {"X-A": "é\t\xa0ü\x85"}})
        assert result["body"]["headers"]["x-a"] == "é\t\xa0ü\x85"


@pytest.mark.parametrize(
    "body",
    [float("nan"), {"a": float("inf")}, [b"bytes"], b"bytes", {1, 2}, object()],
    ids=lambda value: type(value).__name__,
)
async def test_a_body_that_is_no_json_is_refused_before_anything_is_sent(body: object):
    async with web_site(echo) as site:
        told = await refused(create_http_tool(**LOCAL)({"url": site.url(), "method": "POST", "body": body}))
        assert told == f"The body for '127.0.0.1:{site.port}' is neither a text nor a value of JSON."
        assert site.connections == 0


async def test_a_body_that_goes_deeper_than_python_is_refused():
    body: list[Any] = []
    for _ in range(100_000):
        body = [body]
    told = await refused(create_http_tool()({"url": "http://a.test/", "method": "POST", "body": body}))
    assert told == "The body for 'a.test' is neither a text nor a value of JSON."
