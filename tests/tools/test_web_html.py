"""HTML as text: what of a page a model reads, and pages that are broken or made to cost time."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from sizes import sized
from web_site import page, web_site

from lousho import create_web_fetch_tool

CASES = [
    pytest.param("<p>One</p><p>Two</p>", "One\n\nTwo", id="paragraphs"),
    pytest.param("<div>One</div><div>Two</div>", "One\nTwo", id="blocks on their own lines"),
    pytest.param("One<span> two</span> <b>three</b>", "One two three", id="inline elements"),
    pytest.param("<span>a</span><span>b</span>", "ab", id="no space where there is none"),
    pytest.param("a\n\t  b&nbsp;&nbsp; c", "a b c", id="white space"),
    pytest.param("a<br>b<br/>c<br><br>d", "a\nb\nc\n\nd", id="line breaks"),
    pytest.param("<h1>T</h1>x<h2>U</h2>y", "T\n\nx\n\nU\n\ny", id="headings"),
    pytest.param("<title>A &amp; B</title><body>x", "A & B\n\nx", id="the title comes first"),
    pytest.param("a<script>if (a < b) { x('</p>') }</script>b", "ab", id="scripts"),
    pytest.param("a<SCRIPT type=x>//</script\n>b", "ab", id="the end of a script in odd letters"),
    pytest.param("<style>p { color: red }</style>a", "a", id="styles"),
    pytest.param("a<noscript>Turn it on</noscript>b", "ab", id="noscript"),
    pytest.param("<script>x()</script><noscript><p>Turn it on</p></noscript>", "Turn it on", id="noscript alone"),
    pytest.param("a<template><p>no</p></template>b", "ab", id="templates"),
    pytest.param("a<svg><title>no</title><text>no</text></svg>b", "ab", id="drawings"),
    pytest.param("a<svg/>b", "ab", id="a drawing that closes itself"),
    pytest.param("a<svg><svg>no</svg>no</svg>b", "ab", id="drawings in drawings"),
    pytest.param("a<iframe src=x>no</iframe>b<object>no</object>c", "abc", id="frames and objects"),
    pytest.param("a<video>no</video><audio>no</audio><canvas>no</canvas>b", "ab", id="media"),
    pytest.param("a<select><option>no</select>b", "ab", id="choices of a form"),
    pytest.param("a<!-- <p>no</p> -->b<!-->c<!--->d<!-- x --!>e", "abcde", id="comments"),
    pytest.param("<!DOCTYPE html><?xml x?>a</>b</ x>c", "abc", id="declarations"),
    pytest.param("<a href='/x?a=1&amp;b=2'>go</a>", "go (http://h.test/x?a=1&b=2)", id="a link"),
    pytest.param("<a href=sub>go</a>", "go (http://h.test/dir/sub)", id="a relative link"),
    pytest.param("<base href='http://o.test/q/'><a href=sub>go</a>", "go (http://o.test/q/sub)", id="a base"),
    pytest.param("<a href='https://e.test/'>https://e.test/</a>", "https://e.test/", id="a link that says itself"),
    pytest.param("<a href='https://e.test/'>e.test</a>", "e.test", id="a link that says its host"),
    pytest.param("<a href='mailto:a@b.test'>write</a>", "write (mailto:a@b.test)", id="a mail address"),
    pytest.param("<a href='#top'>top</a>", "top", id="a link into the page"),
    pytest.param("<a href='JavaScript:void(0)'>menu</a>", "menu", id="a script in a link"),
    pytest.param("<a href='data:text/html,x'>d</a> <a href=''>e</a> <a>f</a>", "d e f", id="links that lead nowhere"),
    pytest.param("<a href=/x><img src=i></a>b", "b", id="a link without words"),
    pytest.param("<a href=/x><img alt='A cat'></a>", "A cat (http://h.test/x)", id="a link around an image"),
    pytest.param("<a href=/x>one<a href=/y>two</a>", "one (http://h.test/x)two (http://h.test/y)", id="an open link"),
    pytest.param("<a href=/x><h3>T</h3></a>n", "T (http://h.test/x)\n\nn", id="a link around a block"),
    pytest.param(f"<a href='/{'x' * 3_000}'>long</a>", "long", id="a link that is too long"),
    pytest.param("<a href='http://[::1'>bad</a>", "bad (http://[::1)", id="a link that is no URL"),
    pytest.param(
        "&lt;p&gt; &amp;amp; &eacute;&#233;&#xE9; &nosuch; &copy 5 & 6 &",
        "<p> &amp; ééé &nosuch; © 5 & 6 &",
        id="entities",
    ),
    pytest.param(f"&#{'9' * 5_000};&#xD800;&#0;", "\ufffd\ufffd\ufffd", id="entities of no character"),
    pytest.param("<ul><li>a</li><li>b</li></ul>c", "- a\n- b\n\nc", id="a list"),
    pytest.param("<ul><li>a<li>b<ul><li>b1</ul><li>c</ul>", "- a\n- b\n  - b1\n- c", id="a list in a list, unclosed"),
    pytest.param("<ol start=3><li>a<li>b</ol>", "3. a\n4. b", id="a numbered list"),
    pytest.param("<li>a<li>b", "- a\n- b", id="items without a list"),
    pytest.param("<dl><dt>t<dd>d</dl>", "t\nd", id="definitions"),
    pytest.param(
        "<table><tr><th>A<th>B<tr><td>1</td><td>2</td></tr><tr><td><td>3</table>", "A | B\n1 | 2\n| 3", id="a table"
    ),
    pytest.param(
        "<table><tr><td>a<table><tr><td>b<td>c</table><td>d</table>e", "a\n\nb | c\n\n| d\n\ne", id="a table in a table"
    ),
    pytest.param("<table><tr><td><p>a</p><td><p>b</p></table>", "a\n\nb", id="a table for layout"),
    pytest.param("<pre>\n a\n   b\n</pre>c", "a\n   b\n\nc", id="preformatted"),
    pytest.param("x<pre>a\r\n<b>b</b>  c&lt;</pre>", "x\n\na\nb  c<", id="preformatted with tags"),
    pytest.param("<textarea> a\n <b>b</textarea>c", "a\n <b>b\n\nc", id="a text field"),
    pytest.param("3 < 4 <5 a<b", "3 < 4 <5 a", id="signs that are no tags, and one that never ends"),
    pytest.param("<p>a<p>b<div>c", "a\n\nb\nc", id="unclosed"),
    pytest.param("</p></div>a</b>", "a", id="closed too often"),
    pytest.param("<p title='>'>a</p><p title=\">\">b</p><p title=>c", "a\n\nb\n\nc", id="signs in attributes"),
    pytest.param("<p class=it's>a</p>", "a", id="a quote in an attribute"),
    pytest.param("<p/><br/ ><p a=b/>a", "a", id="slashes"),
    pytest.param("<P>A</P><DIV>B</DIV>", "A\n\nB", id="capitals"),
    pytest.param("<x-tag>a</x-tag><o:p>b</o:p>", "ab", id="tags of others"),
    pytest.param("a<script>never closed <p>b", "a", id="a script without an end"),
    pytest.param("a<svg><p>b", "a\n\nb", id="a drawing without an end takes nothing along"),
    pytest.param("a<!-- never closed <p>b", "a", id="a comment without an end"),
    pytest.param("a<p title='never closed>b", "a", id="an attribute without an end"),
    pytest.param("a<", "a<", id="a sign at the end"),
    pytest.param("a</", "a", id="an end tag at the end"),
    pytest.param("a\x00b\x0cc", "a\x00b c", id="control characters"),
    pytest.param("", "", id="nothing"),
    pytest.param("İ<svg>no</svg>ß", "İß", id="letters that change their length"),
]


@pytest.mark.spec("TOOL-65")
@pytest.mark.parametrize(("markup", "text"), CASES)
async def test_html_becomes_the_text_a_reader_takes_from_it(markup: str, text: str):
    async with web_site(lambda _: page(markup)) as site:
        tool = create_web_fetch_tool(allow_private=["h.test"], resolver=local)
        result = await tool({"url": site.url("/dir/page", "h.test")})
        assert result["content"].replace(f"http://h.test:{site.port}/", "http://h.test/") == text


async def local(host: str, port: int) -> list[str]:
    """Resolve every name to this machine."""
    return ["127.0.0.1"]


HOSTILE: dict[str, Any] = {
    "less-than signs": "<",
    "open tags": "<a ",
    "open quotes": "<a href='",
    "open comments": "<!--",
    "open declarations": "<!",
    "open end tags": "</",
    "scripts": "<script>",
    "titles": "<title>",
    "drawings": "<svg>",
    "templates in templates": "<template><p>",
    "frames": "<iframe>",
    "links": "<a href=x>y",
    "lists": "<ul><li>x",
    "tables": "<table><tr><td>",
    "attributes": " x=1",
    "equals signs": "=",
    "ampersands": "&",
    "numbers": "9",
    "breaks": "<br>",
    "preformatted": "<pre>\n",
    "processing": "<?",
    "ends of comments": "--!",
    "bare CDATA": "<![CDATA[",
    "ends of scripts": "</script",
}
BEGINNINGS = {"attributes": "<a", "equals signs": "<a", "numbers": "&#", "ends of comments": "<!--"}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_page_made_to_cost_time_costs_no_more_than_its_size(name: str):
    size = sized(500_000, 5_000_000)
    piece = HOSTILE[name]
    markup = BEGINNINGS.get(name, "") + piece * (size // len(piece))
    async with web_site(page(markup)) as site:
        tool = create_web_fetch_tool(allow_private=["127.0.0.1"], max_bytes=2 * size)
        began = time.monotonic()
        assert (await tool({"url": site.url()}))["status"] == 200
        # Anything quadratic takes minutes at this size.
        assert time.monotonic() - began < 20


@pytest.mark.spec("TOOL-65")
async def test_a_page_of_five_megabytes_is_read_while_the_event_loop_goes_on():
    row = "<tr><td class='a b'>Momo &amp; <a href='/books/momo'>more</a></td><td>12</td></tr>\n"
    markup = f"<table>{row * (5_000_000 // len(row))}</table>"
    async with web_site(page(markup)) as site:
        tool = create_web_fetch_tool(allow_private=["127.0.0.1"], max_bytes=6_000_000, max_chars=10_000_000)
        reading = asyncio.ensure_future(tool({"url": site.url()}))
        began, longest = time.monotonic(), 0.0
        while not reading.done():
            before = time.monotonic()
            await asyncio.sleep(0)
            longest = max(longest, time.monotonic() - before)
        result = await reading
        took = time.monotonic() - began
    assert longest < took / 2
    assert result["truncated"] is False
    lines = result["content"].splitlines()
    assert len(lines) == 5_000_000 // len(row)
    assert set(lines) == {f"Momo & more ({site.url('/books/momo')}) | 12"}
