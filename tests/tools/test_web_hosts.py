"""Which hosts a tool may reach: the options `allowed_hosts`, `blocked_hosts`, `allow_private`, and hosts in URLs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from web_site import Names, moved, page, refused, web_site

from lousho import Tool, create_http_tool, create_web_fetch_tool
from lousho.core.errors import ConfigurationError

Factory = Callable[..., Tool]
both = pytest.mark.parametrize("create", [create_http_tool, create_web_fetch_tool], ids=["http_request", "web_fetch"])

MATCHES = [
    pytest.param("example.test", "example.test", True, id="the host"),
    pytest.param("example.test", "a.example.test", False, id="not a subdomain"),
    pytest.param("*.example.test", "a.example.test", True, id="a subdomain"),
    pytest.param("*.example.test", "a.b.example.test", True, id="a subdomain of one"),
    pytest.param("*.example.test", "example.test", False, id="not the bare host"),
    pytest.param("*.example.test", "badexample.test", False, id="not an ending"),
    pytest.param("*.example.test", "example.test.evil.test", False, id="not a beginning"),
    pytest.param("EXAMPLE.test", "example.TEST", True, id="case"),
    pytest.param("example.test.", "example.test", True, id="a dot in the pattern"),
    pytest.param("example.test", "example.test.", True, id="a dot in the URL"),
    pytest.param(" example.test ", "example.test", True, id="spaces"),
    pytest.param("bücher.test", "xn--bcher-kva.test", True, id="IDNA in the pattern"),
    pytest.param("xn--bcher-kva.test", "BÜCHER.test", True, id="IDNA in the URL"),
    pytest.param("*.bücher.test", "www.bücher.test", True, id="IDNA and a subdomain"),
    pytest.param("straße.test", "strasse.test", False, id="sharp s is a letter of its own"),
    pytest.param("example.test", "example。test", True, id="an ideographic dot"),
]
HOSTS = [
    "example.test",
    "a.example.test",
    "a.b.example.test",
    "badexample.test",
    "example.test.evil.test",
    "xn--bcher-kva.test",
    "www.xn--bcher-kva.test",
    "strasse.test",
]


@pytest.mark.spec("TOOL-67", "TOOL-63")
@both
@pytest.mark.parametrize(("pattern", "host", "matches"), MATCHES)
async def test_a_pattern_means_a_host_or_its_subdomains(create: Factory, pattern: str, host: str, matches: bool):
    async with web_site(lambda _: page("in")) as site:
        names = Names()
        for known in HOSTS:
            names.answers[known] = [["127.0.0.1"]]
        call = {"url": site.url(host=host)}
        everything = ["*.test"]
        allows = create(resolver=names, allow_private=everything, allowed_hosts=[pattern])
        blocks = create(resolver=names, allow_private=everything, blocked_hosts=[pattern])
        opens = create(resolver=names, allow_private=[pattern])
        if matches:
            assert (await allows(call))["status"] == (await opens(call))["status"] == 200
            assert len(names.lookups) == 2
            assert "is blocked" in await refused(blocks(call))
        else:
            assert (await blocks(call))["status"] == 200
            assert len(names.lookups) == 1
            assert "is not one of the hosts that may be reached" in await refused(allows(call))
            assert len(names.lookups) == 1
            assert "only public hosts" in await refused(opens(call))


@pytest.mark.spec("TOOL-67")
@both
async def test_a_host_that_is_not_allowed_or_is_blocked_is_refused_before_dns(create: Factory):
    names = Names()
    allows = create(resolver=names, allowed_hosts=["*.example.test", "example.test"])
    assert await refused(allows({"url": "https://other.test/a?key=secret"})) == (
        "'other.test' is not one of the hosts that may be reached."
    )
    nothing = create(resolver=names, allowed_hosts=[])
    assert "is not one of the hosts" in await refused(nothing({"url": "https://example.test"}))
    blocks = create(resolver=names, blocked_hosts=["private.example.test"], allowed_hosts=["*.example.test"])
    assert await refused(blocks({"url": "https://private.example.test/"})) == "'private.example.test' is blocked."
    assert names.lookups == []


@pytest.mark.spec("TOOL-67")
@both
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"allowed_hosts": ["127.0.0.1"]}, "'b.test' is not one of the hosts that may be reached."),
        ({"blocked_hosts": ["b.test"]}, "'b.test' is blocked."),
    ],
)
async def test_the_lists_hold_for_redirects_too(create: Factory, options: dict[str, Any], told: str):
    async with web_site(moved("http://b.test/")) as site:
        names = Names(b_test=[["127.0.0.1"]])
        tool = create(resolver=names, allow_private=["127.0.0.1", "b.test"], **options)
        assert await refused(tool({"url": site.url()})) == told
        assert names.lookups == []


@pytest.mark.spec("TOOL-63")
@both
async def test_allow_private_opens_a_host_given_as_a_name_or_as_an_address(create: Factory):
    async with web_site(lambda _: page("in")) as site, web_site(lambda _: page("six"), host="::1") as six:
        for pattern, url in [
            ("127.0.0.1", site.url()),
            ("2130706433", site.url()),
            ("127.0.0.1", site.url(host="0x7f.1")),
            ("localhost", site.url(host="localhost")),
            ("::1", six.url(host="[::1]")),
            ("[::1]", six.url(host="[0:0::1]")),
        ]:
            assert (await create(allow_private=[pattern])({"url": url}))["status"] == 200
        assert "'127.0.0.1' is not" in await refused(create(allow_private=["localhost"])({"url": site.url()}))
        assert "'localhost' is not" in await refused(
            create(allow_private=["127.0.0.1"])({"url": site.url(host="localhost")})
        )


@both
@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "100.100.100.200", "168.63.129.16", "0.0.0.0", "224.0.0.1", "fe80::1", "fd00:ec2::254"],
)
async def test_a_name_opened_by_allow_private_still_may_not_lead_to_metadata_or_the_like(create: Factory, address: str):
    tool = create(resolver=Names(in_corp_test=[[address]]), allow_private=["*.corp.test"])
    assert "'in.corp.test' is not on the public internet" in await refused(tool({"url": "http://in.corp.test/"}))


@pytest.mark.parametrize("option", ["allowed_hosts", "blocked_hosts", "allow_private"])
@pytest.mark.parametrize("create", [create_http_tool, create_web_fetch_tool])
@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param("example.com", "a list of hosts", id="one text"),
        pytest.param(5, "a list of hosts", id="a number"),
        pytest.param([5], "write a text", id="no text in it"),
        pytest.param([""], "it is empty", id="empty"),
        pytest.param(["*"], "only at the beginning", id="a star"),
        pytest.param(["a.*.com"], "only at the beginning", id="a star in the middle"),
        pytest.param(["*.*.com"], "only at the beginning", id="two stars"),
        pytest.param(["*.127.0.0.1"], "an address has no subdomains", id="subdomains of an address"),
        pytest.param(["https://example.com"], "without scheme, port or path", id="a URL"),
        pytest.param(["example.com:443"], "without scheme, port or path", id="a port"),
        pytest.param(["example.com/a"], "without scheme, port or path", id="a path"),
        pytest.param(["10.0.0.0/8"], "without scheme, port or path", id="a network"),
        pytest.param(["256.1.1.1"], "not an IPv4 address", id="no address"),
        pytest.param(["[::1"], "bracket", id="an open bracket"),
        pytest.param(["ok.com", "not ok.com"], "'not ok.com' is no host pattern", id="a space"),
        pytest.param(["x" * 300], "a name has letters", id="too long"),
        pytest.param(["a.com"] * 10_001, "more than 10,000 hosts", id="too many"),
    ],
)
def test_a_bad_pattern_is_refused_when_the_tool_is_made(create: Factory, option: str, given: object, says: str):
    with pytest.raises(ConfigurationError) as caught:
        create(**{option: given})
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_INVALID", option)
    assert caught.value.detail.startswith(f"{create.__name__}: {option}")
    assert says in caught.value.detail


@pytest.mark.spec("TOOL-66")
@both
@pytest.mark.parametrize(
    ("url", "told"),
    [
        pytest.param(
            "ftp://files.test/x", "Only http and https URLs can be requested, not ftp ('files.test').", id="ftp"
        ),
        pytest.param("file:///etc/passwd", "Only http and https URLs can be requested, not file.", id="file"),
        pytest.param("javascript:alert(1)", "Only http and https URLs can be requested, not javascript.", id="script"),
        pytest.param("data:text/plain,hi", "Only http and https URLs can be requested, not data.", id="data"),
        pytest.param("gopher://g.test:70/1", "not gopher ('g.test:70').", id="gopher"),
        pytest.param("example.test/page", "Did you mean https://example.test?", id="no scheme"),
        pytest.param("example.test:8080/page", "Did you mean https://example.test?", id="a port and no scheme"),
        pytest.param("//example.test/", "The URL is not complete", id="no scheme but slashes"),
        pytest.param("/page", "The URL is not complete", id="a path"),
        pytest.param("", "The URL is not complete", id="empty"),
        pytest.param("http:example.test", "The URL names no host", id="no slashes"),
        pytest.param("http:///etc", "The URL names no host", id="three slashes"),
        pytest.param("http://:80/", "is not a usable host: it is empty", id="a port alone"),
        pytest.param("http://user:hunter2@site.test/", "('site.test'): leave it out.", id="user and password"),
        pytest.param("http://hunter2@site.test/", "('site.test'): leave it out.", id="user"),
        pytest.param("http://a@hunter2@site.test/", "('site.test'): leave it out.", id="two at signs"),
        pytest.param("http://@site.test/", "('site.test'): leave it out.", id="an at sign"),
        pytest.param("http://ok.test\\@inner.test/hunter2", "'ok.test' was not found", id="a backslash is a slash"),
        pytest.param("http://site.test:0/", "The port of 'site.test' is not a number from 1 to 65535.", id="port 0"),
        pytest.param("http://site.test:65536/", "The port of 'site.test'", id="port 65536"),
        pytest.param("http://site.test:+80/", "The port of 'site.test'", id="a signed port"),
        pytest.param("http://site.test:８０/", "The port of 'site.test'", id="full-width digits"),
        pytest.param("http://site.test:8 0/", "The port of 'site.test'", id="a space in the port"),
        pytest.param("http://site.test:x/", "The port of 'site.test'", id="letters"),
        pytest.param("http://si te.test/", "'si te.test' is not a usable host", id="a space"),
        pytest.param("http://site..test/", "'site..test' is not a usable host", id="two dots"),
        pytest.param("http://-site.test/", "'-site.test' is not a usable host", id="a dash in front"),
        pytest.param("http://site%2etest/", "The host is percent-encoded ('site%2etest')", id="percent-encoded"),
        pytest.param(
            "http://[::1/", "'[::1' is not a usable host: its brackets are not in order.", id="an open bracket"
        ),
        pytest.param("http://[::1]x/", "'[::1]x' is not a usable host", id="more than the bracket"),
        pytest.param(f"http://{'a' * 64}.test/", "is not a usable host", id="a label too long"),
        pytest.param(f"http://{'a.' * 150}test/", "is not a usable host", id="a name too long"),
        pytest.param("http://x\u202e.test/", "is not a usable host", id="a direction mark"),
        pytest.param("http://site.test/a\r\nHost: evil.test", "a line break or another control character", id="CRLF"),
        pytest.param("http://site.test/\x00", "a line break or another control character", id="NUL"),
        pytest.param("http://site.test/" + "a" * 16_000, "longer than 16,000 characters", id="too long"),
        pytest.param("http://\ud800.test/", "is not a usable host", id="half a character"),
    ],
)
async def test_a_bad_url_is_an_error_that_names_the_host_and_nothing_secret(create: Factory, url: str, told: str):
    error = await refused(create(resolver=Names())({"url": url}))
    assert told in error
    assert "hunter2" not in error
    assert "passwd" not in error


@both
@pytest.mark.parametrize(
    ("written", "target", "final"),
    [
        pytest.param("", "/", "/", id="no path"),
        pytest.param("?a=1", "/?a=1", "/?a=1", id="a query and no path"),
        pytest.param("/a b/ü?q=ö d#part", "/a%20b/%C3%BC?q=%C3%B6%20d", "/a%20b/%C3%BC?q=%C3%B6%20d", id="encoded"),
        pytest.param("/%41%2f?%20", "/%41%2f?%20", "/%41%2f?%20", id="left as it is"),
        pytest.param('/"<>?"<>', "/%22%3C%3E?%22%3C%3E", "/%22%3C%3E?%22%3C%3E", id="quotes"),
        pytest.param("/a\\b?c\\d", "/a/b?c\\d", "/a/b?c\\d", id="backslashes"),
        pytest.param("/@user:pw@x", "/@user:pw@x", "/@user:pw@x", id="at signs behind the host"),
    ],
)
async def test_path_and_query_are_sent_as_a_browser_sends_them(create: Factory, written: str, target: str, final: str):
    async with web_site(page("x")) as site:
        result = await create(allow_private=["127.0.0.1"])({"url": f"  HTTP://127.1:{site.port}{written} "})
        assert site.asked[0].target == target
        assert result["finalUrl"] == site.url(final)
