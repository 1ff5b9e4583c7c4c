"""Somebody else wrote the page: bodies that unpack, nest, lie or never end, and what of them reaches the model."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import time
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hostile import play, told
from hypothesis import given
from hypothesis import strategies as st
from sizes import sized
from web_site import WAIT, Answer, page, web_site

from lousho import Tool, create_agent, create_http_tool, create_web_fetch_tool
from lousho.testing import mock_model

Factory = Callable[..., Tool]
both = pytest.mark.parametrize("create", [create_http_tool, create_web_fetch_tool], ids=["http_request", "web_fetch"])
LOCAL: dict[str, Any] = {"allow_private": ["127.0.0.1"]}
PLAIN = ("Content-Type", "text/plain; charset=utf-8")


def text(result: dict[str, Any]) -> str:
    """Return the text of either tool's result."""
    return result.get("content") or result.get("body") or ""


def packed(body: bytes, encoding: str) -> Answer:
    """Return an answer with a body that is packed already."""
    return Answer(body, [PLAIN, ("Content-Encoding", encoding)])


async def longest_hold_up(work: asyncio.Future[Any]) -> float:
    """Return the longest time in seconds for which the event loop could do nothing else until `work` was done."""
    longest = 0.0
    while not work.done():
        before = time.monotonic()
        await asyncio.sleep(0)
        longest = max(longest, time.monotonic() - before)
    return longest


# Packed bodies


@both
@pytest.mark.parametrize("content", [b"", b"x"], ids=["of nothing", "of one letter"])
async def test_a_hundred_thousand_packed_bodies_in_one_hold_up_nothing(create: Factory, content: bytes):
    members = gzip.compress(content) * 100_000
    async with web_site(packed(gzip.compress(members), "gzip, gzip")) as site:
        work = asyncio.ensure_future(create(**LOCAL, max_bytes=5_000_000)({"url": site.url()}))
        assert await longest_hold_up(work) < 2
        assert set(text(await work)) <= {"x"}


@both
@pytest.mark.parametrize("content", [b"", b"x"], ids=["of nothing", "of one letter"])
async def test_what_a_body_unpacks_to_on_the_way_counts_against_the_limit(create: Factory, content: bytes):
    members = gzip.compress(content) * 100_000
    async with web_site(packed(gzip.compress(members), "gzip, gzip")) as site:
        result = await create(**LOCAL, max_bytes=1_000_000)({"url": site.url()})
        assert result["truncated"] is True
        assert len(text(result)) < 60_000


@both
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "gzip, gzip"])
async def test_a_packed_body_that_ends_too_early_is_one_that_was_cut(create: Factory, encoding: str):
    said = "".join(f"line {number}\n" for number in range(2000))
    whole = {
        "gzip": gzip.compress,
        "deflate": zlib.compress,
        "gzip, gzip": lambda body: gzip.compress(gzip.compress(body)),
    }[encoding](said.encode())
    routes = {f"/{cut}": packed(whole[:cut], encoding) for cut in (1, 2, 10, 18, len(whole) // 2, len(whole) - 1)}
    async with web_site({**routes, "/whole": packed(whole, encoding)}) as site:
        tool = create(**LOCAL)
        for path in routes:
            result = await tool({"url": site.url(path)})
            assert (said.startswith(text(result)), result["truncated"]) == (True, True)
        result = await tool({"url": site.url("/whole")})
        assert (text(result), result["truncated"]) == (said, False)


@both
@pytest.mark.parametrize(
    ("encoding", "read"),
    [
        (" GZip ", True),
        (", gzip ,", True),
        ("gzip,identity", True),
        ("x-gzip", True),
        ("gzip;q=1", False),
        ("gzip gzip", False),
        ("br", False),
        ("zstd", False),
        ("compress", False),
        ("gzip," * 1000, False),
        ("identity," * 1000 + "gzip", True),
    ],
)
async def test_a_coding_is_undone_only_when_it_is_known(create: Factory, encoding: str, read: bool):
    async with web_site(packed(gzip.compress(b"said"), encoding)) as site:
        call = create(**LOCAL)({"url": site.url()})
        if read:
            assert text(await call) == "said"
        else:
            with pytest.raises(Exception, match="compressed in a way that is not known here"):
                await call


@both
async def test_codings_in_two_headers_are_undone_in_their_order(create: Factory):
    body = gzip.compress(zlib.compress(b"said"))
    headers = [PLAIN, ("Content-Encoding", "deflate"), ("Content-Encoding", "gzip")]
    async with web_site(Answer(body, headers)) as site:
        assert text(await create(**LOCAL)({"url": site.url()})) == "said"


# Pages


LINKS = "<a href=x>y</a> " * 5_000
FOLDERS = "a/" * 7_000


@pytest.mark.parametrize(
    ("path", "markup"),
    [
        pytest.param("/" + FOLDERS, LINKS, id="a URL with thousands of folders"),
        pytest.param("/" + "a" * 15_000 + "/", LINKS, id="a long URL"),
        pytest.param("/", f"<base href='/{'a' * 1_000_000}/'>{LINKS}", id="a base of a megabyte"),
        pytest.param("/", f"<base href='/{FOLDERS * 50}'>{LINKS}", id="a base of folders"),
        pytest.param("/", f"<base href='/{'a' * 1_900}/'>{LINKS}", id="a base that is just short enough"),
        pytest.param("/" + "a/" * 90, "<a href='" + "../" * 600 + "'>y</a>" * 1_000, id="links that go up"),
        pytest.param("/", f"<a href='/{'a' * 1_900}'>y</a>" * 1_000, id="long links"),
        pytest.param("/", "<ul>" * 20_000 + "<li>x" * 1_000, id="lists in lists"),
        pytest.param("/", "<td>" * 50_000 + "x", id="cells"),
        pytest.param("/", "<td>x" * 100_000, id="cells with text"),
        pytest.param("/", "<ol start=999999999>" + "<li>x" * 200_000, id="numbers"),
        pytest.param("/", "<pre>" + "\n" * 1_500_000, id="empty lines"),
    ],
)
async def test_a_page_does_not_become_longer_than_what_is_returned_of_it(path: str, markup: str):
    async with web_site(page(markup)) as site:
        tool = create_web_fetch_tool(**LOCAL, max_chars=20_000)
        await tool({"url": site.url("/")})  # what is loaded once is not counted
        gc.collect()
        tracemalloc.start()
        try:
            result = await tool({"url": site.url(path)})
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert len(result["content"]) <= 20_000
        assert peak < 10 * len(markup) + 20_000_000


async def test_links_of_a_page_whose_own_url_is_too_long_stay_as_they_are():
    async with web_site(page("<p><a href='x'>near</a> <a href='https://far.test/x'>far</a></p>")) as site:
        result = await create_web_fetch_tool(**LOCAL)({"url": site.url("/" + "a" * 3_000 + "/")})
        assert result["content"] == "near (x) far (https://far.test/x)"


@pytest.mark.parametrize("behind", ["", "<p></p></body></html>", " \n ", "<!-- -->", "<script>x</script>"])
@pytest.mark.parametrize(("size", "truncated"), [(99, False), (100, False), (101, True)])
async def test_the_limit_of_characters_is_exact_and_only_text_counts(size: int, truncated: bool, behind: str):
    async with web_site(page(f"<body><p>{'x' * (size - 3)}</p>\n<p>y</p>{behind}")) as site:
        result = await create_web_fetch_tool(**LOCAL, max_chars=100)({"url": site.url()})
        assert (len(result["content"]), result["truncated"]) == (min(size, 100), truncated)


@pytest.mark.parametrize(
    ("markup", "content"),
    [
        pytest.param("&#xD800;&#55296;&#xDFFF;", "\ufffd\ufffd\ufffd", id="half characters"),
        pytest.param(
            "&#x110000;&#99999999999;&#x" + "f" * 5_000 + ";", "\ufffd\ufffd\ufffd", id="beyond all characters"
        ),
        pytest.param("&#0;&#x80;&#x9f;", "\ufffd€Ÿ", id="controls"),
        pytest.param("&#" + "0" * 5_000 + "65;", "A", id="zeros in front"),
        pytest.param("&lt;script&gt;&amp;lt;", "<script>&lt;", id="decoded once"),
        pytest.param("&" * 10_000, "&" * 10_000, id="nothing but ampersands"),
        pytest.param("a<![CDATA[b<c>d]]>e", "ad]]>e", id="CDATA"),
        pytest.param("a<!-- <b> --><p>c<!-- d", "a\n\nc", id="an open comment"),
        pytest.param("a<script>b", "a", id="an open script"),
        pytest.param("<!ENTITY a 'aaaa'>&a;&a;", "&a;&a;", id="a declared entity"),
        pytest.param("<a href='j\na\tvascript:x'>y</a>", "y", id="a hidden script in a link"),
    ],
)
async def test_odd_markup_says_what_a_browser_would_show(markup: str, content: str):
    async with web_site(page(markup)) as site:
        assert (await create_web_fetch_tool(**LOCAL)({"url": site.url()}))["content"] == content


PIECES = """
    < > </ /> <!-- --> <a_href= </a> <base_href= <img_alt= <pre> </pre> <li> <ul> </ul> <ol_start= <td> <tr> <br> <title>
    </title> <script> </script> <svg> </svg> <noscript> </noscript> <![CDATA[ ' " = & &# &#x ; _ x 9 ü http://[ // .. ? #
    javascript:
"""
SOUP = st.lists(st.sampled_from(PIECES.strip().split()), max_size=40).map("".join)


@given(SOUP, st.integers(1, 50))
async def test_any_soup_of_tags_has_a_text_within_the_limit(soup: str, limit: int):
    async with web_site(page(soup.replace("_", " "))) as site:
        result = await create_web_fetch_tool(**LOCAL, max_chars=limit)({"url": site.url()})
        assert len(result["content"]) <= limit
        result["content"].encode("utf-8")
        whole = await create_web_fetch_tool(**LOCAL)({"url": site.url()})
        assert whole["content"].startswith(result["content"].rstrip())
        if not result["truncated"]:
            assert result["content"] == whole["content"]


async def test_a_page_of_a_million_elements_is_read_while_the_event_loop_goes_on():
    count = sized(200_000, 2_000_000)
    markup = "<div a=1>" * count + "the end" + "</div>" * count
    async with web_site(page(markup)) as site:
        tool = create_web_fetch_tool(**LOCAL, max_bytes=2 * len(markup))
        work = asyncio.ensure_future(tool({"url": site.url()}))
        assert await longest_hold_up(work) < 2
        assert (await work)["content"] == "the end"


# Characters


@both
@pytest.mark.parametrize(
    ("body", "content_type", "said"),
    [
        pytest.param(b"+ADw-script+AD4-", "text/plain; charset=utf-7", "+ADw-script+AD4-", id="UTF-7 is not read"),
        pytest.param("hello".encode("utf-16-le"), "text/plain; charset=utf-16", "hello", id="UTF-16 without a mark"),
        pytest.param(b"hell\xff\xfe", "text/plain; charset=utf-8", "hell\ufffd\ufffd", id="no UTF-8"),
        pytest.param(b"\xed\xa0\x80", "text/plain; charset=utf-8", "\ufffd" * 3, id="half a character in UTF-8"),
        pytest.param(b"\x00\xd8a\x00", "text/plain; charset=utf-16le", "\ufffda", id="half a character in UTF-16"),
        pytest.param(b"caf\xe9", "text/plain; charset=nonsense", "café", id="an unknown charset"),
        pytest.param(b"x", "text/plain; charset=", "x", id="no charset"),
        pytest.param(b"x", "text/plain; charset=" + "a" * 50_000, "x", id="an endless charset"),
        pytest.param(b"x", "text/plain; " + "charset " * 5_000, "x", id="charsets without a value"),
        pytest.param(b"x", 'text/plain;;;;=;";charset="utf-8', "x", id="parameters out of order"),
        pytest.param(b"a\x00b\x1b[2Jc", "text/plain", "a\x00b\x1b[2Jc", id="control characters"),
    ],
)
async def test_no_charset_breaks_a_text(create: Factory, body: bytes, content_type: str, said: str):
    async with web_site(Answer(body, [("Content-Type", content_type)])) as site:
        result = await create(**LOCAL)({"url": site.url()})
        assert text(result) == said
        json.dumps(result, ensure_ascii=False).encode("utf-8")


# JSON


def nested(depth: int) -> str:
    """Return lists in lists."""
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    ("said", "value"),
    [
        pytest.param("[1e999, -1e999]", "[1e999, -1e999]", id="a number beyond all numbers"),
        pytest.param("[NaN]", "[NaN]", id="no number"),
        pytest.param("-Infinity", "-Infinity", id="infinity"),
        pytest.param("1" * 5_000, "1" * 5_000, id="a number of five thousand digits"),
        pytest.param("1e-999", 0.0, id="a number below all numbers"),
        pytest.param('{"a": 1, "a": 2}', {"a": 2}, id="a key twice"),
        pytest.param(nested(100_000), nested(100_000), id="lists without an end"),
        pytest.param('{"__proto__": {"x": 1}}', {"__proto__": {"x": 1}}, id="a prototype"),
        pytest.param('["\\u0000"]', ["\x00"], id="NUL"),
        pytest.param("\ufeff[1]", [1], id="a byte order mark"),
        pytest.param("[1] x", "[1] x", id="something behind it"),
        pytest.param("", None, id="nothing"),
    ],
)
async def test_json_that_is_none_is_a_text(said: str, value: Any):
    async with web_site(page(said, "application/json")) as site:
        result = await create_http_tool(**LOCAL)({"url": site.url()})
        assert result["body"] == value
        json.dumps(result, allow_nan=False)


@pytest.mark.parametrize(
    "said",
    [
        *(pytest.param(nested(depth), id=f"{depth} lists in each other") for depth in (500, 900, 960, 985, 995, 5_000)),
        pytest.param('{"a": "\\ud800"}', id="half a character"),
        pytest.param('{"\\udfff": 1}', id="half a character as a key"),
        pytest.param("1" * 4_000, id="a long number"),
        pytest.param('["\\u202e\\u0000\\uffff"]', id="odd characters"),
        pytest.param("[" + "{}," * 100_000 + "{}]", id="a long list"),
        pytest.param("[" + '{"a":' * 400 + "1" + "}" * 400 + "]", id="objects in objects"),
    ],
)
async def test_no_json_ends_a_run(said: str):
    async with web_site(page(said, "application/json")) as site:
        model = mock_model([{"tool_calls": [{"name": "http_request", "args": {"url": site.url()}}]}, "Read."])
        played = await play(create_agent(provider=model, tools=[create_http_tool(**LOCAL)]).stream("Read it"))
        assert played.ended.text == "Read."
        assert len(told(played.ended)) == 1


# Headers


async def test_ten_thousand_headers_hold_up_nothing_and_are_cut_for_the_model():
    headers = [PLAIN, *((f"h{number}", "") for number in range(10_000))]
    async with web_site(Answer(b"x", headers)) as site:
        work = asyncio.ensure_future(create_http_tool(**LOCAL)({"url": site.url()}))
        assert await longest_hold_up(work) < 2
        result = await asyncio.wait_for(work, WAIT)
        assert (len(result["headers"]), result["body"]) == (100, "x")


async def test_a_header_given_a_thousand_times_is_one_text_that_is_cut():
    async with web_site(Answer(b"x", [PLAIN, *[("X-A", "abcdefgh")] * 1_000])) as site:
        result = await create_http_tool(**LOCAL)({"url": site.url()})
        assert len(result["headers"]["x-a"]) == 4_000
        assert result["headers"]["x-a"].startswith("abcdefgh, abcdefgh, ")
