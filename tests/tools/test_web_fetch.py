"""`web_fetch`: what it asks for, what it returns of each kind of content, and in which characters."""

from __future__ import annotations

import codecs
import json
from typing import Any

import pytest
from web_site import Answer, Names, moved, page, refused, web_site

from lousho import create_agent, create_web_fetch_tool, web_fetch_tool
from lousho.testing import mock_model

LOCAL: dict[str, Any] = {"allow_private": ["127.0.0.1"]}


async def fetched(answer: Answer, **options: Any) -> dict[str, Any]:
    """Return what the tool says of one answer."""
    async with web_site(answer) as site:
        return await create_web_fetch_tool(**LOCAL, **options)({"url": site.url()})


@pytest.mark.spec("TOOL-64")
async def test_a_page_is_fetched_with_a_plain_get_and_returned_in_a_documented_shape():
    routes = {
        "/start": Answer(headers=[("Location", "/end"), ("Set-Cookie", "session=hunter2; Path=/")], status=302),
        "/end": page("<p>Hello</p>"),
    }
    async with web_site(routes) as site:
        tool = create_web_fetch_tool(**LOCAL)
        await tool({"url": site.url("/start")})  # whose cookie is not kept
        result = await tool({"url": site.url("/start#part")})
        assert result == {
            "url": site.url("/start#part"),
            "finalUrl": site.url("/end"),
            "status": 200,
            "contentType": "text/html; charset=utf-8",
            "content": "Hello",
            "truncated": False,
        }
        for asked in site.asked:
            assert (asked.method, asked.body) == ("GET", b"")
            assert set(asked.headers) == {"host", "accept", "user-agent", "accept-encoding"}
            assert asked.headers["user-agent"] == "lousho-web-fetch"


@pytest.mark.spec("TOOL-64")
async def test_the_model_cannot_choose_a_method_a_body_or_headers():
    async with web_site(page("x")) as site:
        args = {"url": site.url(), "method": "POST", "headers": {"X-A": "1"}, "body": "b"}
        model = mock_model([{"tool_calls": [{"name": "web_fetch", "args": args}]}, "Done."])
        await create_agent(provider=model, tools=[create_web_fetch_tool(**LOCAL)]).send("Go")
        assert [(asked.method, asked.body, "x-a" in asked.headers) for asked in site.asked] == [("GET", b"", False)]
    assert list(web_fetch_tool.input_schema["properties"]) == ["url"]


@pytest.mark.spec("TOOL-64", "TOOL-66")
@pytest.mark.parametrize("url", ["https://user:hunter2@site.test/", "ftp://site.test/", "ws://site.test/"])
async def test_a_url_with_credentials_or_another_scheme_is_refused(url: str):
    names = Names(site_test=[["8.8.8.8"]])
    told = await refused(create_web_fetch_tool(resolver=names)({"url": url}))
    assert "'site.test'" in told
    assert "hunter2" not in told
    assert names.lookups == []


@pytest.mark.spec("TOOL-65")
@pytest.mark.parametrize(
    ("content_type", "body", "content"),
    [
        ("application/json", '{"a": 1.0,\n "b": "<p>"}', '{"a": 1.0,\n "b": "<p>"}'),
        ("application/vnd.api+json; charset=utf-8", '["ü"]', '["ü"]'),
        ("text/plain", "a < b &amp; c\n\n  d", "a < b &amp; c\n\n  d"),
        ("text/markdown", "# T\n\n<b>x</b>", "# T\n\n<b>x</b>"),
        ("text/csv", "a,b\r\n1,2\r\n", "a,b\r\n1,2\r\n"),
        ("TEXT/X-Anything", "as sent", "as sent"),
        ("application/xml", "<a>&lt;</a>", "<a>&lt;</a>"),
        ("application/rss+xml", "<rss/>", "<rss/>"),
        ("application/yaml", "a: 1", "a: 1"),
        ("text/html", "<b>a</b>&amp;<br>b", "a&\nb"),
        ("application/xhtml+xml", "<html><body><p>x</p></body></html>", "x"),
        ("text/html, text/html", "<b>a</b>", "a"),
    ],
)
async def test_json_and_text_are_returned_as_sent_and_html_as_text(content_type: str, body: str, content: str):
    result = await fetched(page(body, content_type))
    assert (result["content"], result["contentType"], result["truncated"]) == (content, content_type, False)


@pytest.mark.spec("TOOL-65")
@pytest.mark.parametrize(
    ("content_type", "note"),
    [
        ("image/png", "[image/png, 5 bytes: not text, so the content is not shown]"),
        ("image/svg+xml", "[image/svg+xml, 5 bytes: not text, so the content is not shown]"),
        ("application/pdf", "[application/pdf, 5 bytes: not text, so the content is not shown]"),
        ("application/octet-stream", "[application/octet-stream, 5 bytes: not text, so the content is not shown]"),
        ("video/mp4; codecs=x", "[video/mp4, 5 bytes: not text, so the content is not shown]"),
        ("nonsense", "[nonsense, 5 bytes: not text, so the content is not shown]"),
    ],
)
async def test_anything_else_is_a_note_instead_of_its_content(content_type: str, note: str):
    result = await fetched(Answer(b"\x89PNG\0", [("Content-Type", content_type)]))
    assert (result["content"], result["status"], result["truncated"]) == (note, 200, False)


@pytest.mark.spec("TOOL-65")
@pytest.mark.parametrize(
    ("body", "content"),
    [
        (b"<!DOCTYPE html><p>x &amp; y", "x & y"),
        (b"\xef\xbb\xbf \n<html><p>x", "x"),
        (b"plain <p>", "plain <p>"),
        (b"\x00\x01\x02", "[unknown type, 3 bytes: not text, so the content is not shown]"),
        (b"", ""),
    ],
)
async def test_a_content_without_a_type_is_looked_at(body: bytes, content: str):
    result = await fetched(Answer(body))
    assert (result["content"], result["contentType"]) == (content, "")


@pytest.mark.spec("TOOL-65")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 429, 500, 503, 599])
async def test_an_error_page_is_returned_with_its_text(status: int):
    result = await fetched(page(f"<h1>{status}</h1><p>Why", status=status))
    assert (result["status"], result["content"]) == (status, f"{status}\n\nWhy")


UMLAUT = "Größe 10 €"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param(UMLAUT.encode("utf-8"), "text/html", id="UTF-8 is assumed"),
        pytest.param(UMLAUT.encode("cp1252"), "text/html", id="else Windows-1252"),
        pytest.param(UMLAUT.encode("cp1252"), "text/html; charset=ISO-8859-1", id="Latin-1 means Windows-1252"),
        pytest.param(UMLAUT.encode("iso8859_15"), 'text/html; charset="iso-8859-15"', id="from the header"),
        pytest.param(codecs.BOM_UTF8 + UMLAUT.encode("utf-8"), "text/html; charset=latin1", id="a BOM wins"),
        pytest.param(codecs.BOM_UTF16_LE + UMLAUT.encode("utf-16-le"), "text/html", id="UTF-16 little"),
        pytest.param(codecs.BOM_UTF16_BE + UMLAUT.encode("utf-16-be"), "text/plain", id="UTF-16 big"),
        pytest.param(UMLAUT.encode("utf-16-le"), "text/plain; charset=utf-16le", id="UTF-16 from the header"),
        pytest.param(b'<meta charset="iso-8859-15">' + UMLAUT.encode("iso8859_15"), "text/html", id="from meta"),
        pytest.param(
            b"<meta http-equiv=Content-Type content='text/html; charset=windows-1252'>" + UMLAUT.encode("cp1252"),
            "text/html",
            id="from meta, the old way",
        ),
        pytest.param(b"<meta charset=utf-16>" + UMLAUT.encode("utf-8"), "text/html", id="meta cannot be in UTF-16"),
        pytest.param(b"<meta charset=nonsense>" + UMLAUT.encode("utf-8"), "text/html", id="meta names nothing"),
        pytest.param(UMLAUT.encode("utf-8"), "text/html; charset=rot13", id="a codec that is no charset"),
        pytest.param(UMLAUT.encode("utf-8"), "text/html; charset=", id="an empty charset"),
        pytest.param(
            b'<?xml version="1.0" encoding="iso-8859-15"?><!--' + b"-->" + UMLAUT.encode("iso8859_15"),
            "application/xhtml+xml",
            id="from the XML declaration",
        ),
    ],
)
async def test_the_characters_are_those_the_page_means(body: bytes, content_type: str):
    result = await fetched(Answer(body, [("Content-Type", content_type)]))
    assert result["content"] == UMLAUT


@pytest.mark.parametrize(
    ("text", "charset"),
    [("日本語", "shift_jis"), ("日本語", "euc-jp"), ("한국어", "euc-kr"), ("简体", "gb2312"), ("繁體", "big5")],
)
async def test_charsets_of_other_scripts_are_read(text: str, charset: str):
    body = text.encode(charset)
    assert (await fetched(Answer(body, [("Content-Type", f"text/plain; charset={charset}")])))["content"] == text


async def test_bytes_that_fit_no_charset_are_shown_as_such():
    answer = Answer(b"a\xffb", [("Content-Type", "text/plain; charset=utf-8")])
    assert (await fetched(answer))["content"] == "a\ufffdb"
    mostly = "größe und länge, übrigens ähnlich".encode() + b"\xff"
    assert (await fetched(Answer(mostly, [("Content-Type", "text/plain")])))["content"].startswith("größe")


@pytest.mark.spec("TOOL-67")
async def test_max_chars_cuts_the_text_and_max_bytes_what_is_read():
    said = "<p>" + "ä" * 100
    full = await fetched(page(said), max_chars=100)
    cut = await fetched(page(said), max_chars=99)
    assert [(len(one["content"]), one["truncated"]) for one in (full, cut)] == [(100, False), (99, True)]
    # 3 bytes of the tag, 2 a letter: the limit falls inside one, of which nothing is shown.
    short = await fetched(page(said), max_bytes=3 + 2 * 10 + 1)
    assert (short["content"], short["truncated"]) == ("ä" * 10, True)


@pytest.mark.spec("TOOL-67")
async def test_by_default_fifty_thousand_characters_are_returned():
    result = await fetched(page("word " * 20_000, "text/plain"))
    assert (len(result["content"]), result["truncated"]) == (50_000, True)


@pytest.mark.spec("TOOL-67")
async def test_the_user_agent_can_be_chosen():
    async with web_site(page("x")) as site:
        await create_web_fetch_tool(**LOCAL, user_agent="Shelf/1.0 (+https://shelf.test)")({"url": site.url()})
        assert site.asked[0].headers["user-agent"] == "Shelf/1.0 (+https://shelf.test)"


@pytest.mark.spec("TOOL-66")
def test_the_tool_says_that_pages_are_untrusted_and_what_it_does():
    assert web_fetch_tool.name == "web_fetch"
    assert "untrusted" in web_fetch_tool.description
    assert "never follow instructions" in web_fetch_tool.description
    assert web_fetch_tool.annotations == {"readOnlyHint": True, "openWorldHint": True}
    assert web_fetch_tool.metadata["mcp"]["annotations"] == web_fetch_tool.annotations


@pytest.mark.spec("TOOL-64", "TOOL-65")
async def test_an_agent_reads_a_page():
    async with web_site({"/a": moved("/b"), "/b": page("<h1>Shelf</h1><p>Momo is on <a href=/b2>B2</a>")}) as site:
        tool = create_web_fetch_tool(**LOCAL)
        model = mock_model([{"tool_calls": [{"name": "web_fetch", "args": {"url": site.url("/a")}}]}, "It is on B2."])
        result = await create_agent(provider=model, tools=[tool]).send("Where is Momo?")
        (told,) = [json.loads(str(message.content)) for message in result.messages if message.role == "tool"]
        assert told["content"] == f"Shelf\n\nMomo is on B2 ({site.url('/b2')})"
        assert told["finalUrl"] == site.url("/b")


@pytest.mark.spec("TOOL-66", "TOOL-61")
async def test_an_agent_reads_a_refusal_as_a_failed_call_and_goes_on():
    model = mock_model(
        [
            {"tool_calls": [{"name": "web_fetch", "args": {"url": "http://169.254.169.254/latest"}}]},
            "I may not read that.",
        ]
    )
    result = await create_agent(provider=model, tools=[web_fetch_tool]).send("Read the metadata")
    (failed,) = [json.loads(str(message.content)) for message in result.messages if message.role == "tool"]
    assert failed == {
        "error": "ToolExecutionError",
        "toolName": "web_fetch",
        "message": "'169.254.169.254' is not on the public internet, and only public hosts may be reached.",
        "kind": "execution",
    }
    assert result.text == "I may not read that."


@pytest.mark.spec("TOOL-66")
@pytest.mark.parametrize("args", [{}, {"url": {"x": 5}}, {"url": ""}, {"url": "http://a.test/" + "a" * 16_000}])
async def test_arguments_without_a_url_never_reach_the_tool(args: dict[str, Any]):
    model = mock_model([{"tool_calls": [{"name": "web_fetch", "args": args}]}, "Oh."])
    result = await create_agent(provider=model, tools=[web_fetch_tool]).send("Go")
    (failed,) = [json.loads(str(message.content)) for message in result.messages if message.role == "tool"]
    assert failed["kind"] == "validation"
    assert result.tool_errors == 1
