"""`http_request`: what is sent, what comes back, and what a redirect takes along."""

from __future__ import annotations

import json
from typing import Any

import pytest
from web_site import Answer, Asked, Names, moved, page, refused, web_site

from lousho import create_agent, create_http_tool, http_tool
from lousho.testing import mock_model

LOCAL: dict[str, Any] = {"allow_private": ["127.0.0.1", "localhost", "other.test", "secure.test"]}


def echo(asked: Asked) -> Answer:
    """Answer with the request itself."""
    said = {"method": asked.method, "headers": asked.headers, "body": asked.body.decode("utf-8")}
    return Answer(json.dumps(said).encode("utf-8"), [("Content-Type", "application/json")])


@pytest.mark.spec("TOOL-60")
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY", "PROPFIND", "TRACE"])
async def test_any_method_goes_with_headers_and_a_body(method: str):
    async with web_site(echo) as site:
        result = await create_http_tool(**LOCAL)(
            {"url": site.url("/x?y=1"), "method": method.lower(), "headers": {"X-Trace": " abc\t"}, "body": "täxt"}
        )
    sent = result["body"]
    assert (result["status"], sent["method"], sent["body"]) == (200, method, "täxt")
    assert sent["headers"]["x-trace"] == "abc"
    assert sent["headers"]["content-type"] == "text/plain; charset=utf-8"
    assert sent["headers"]["content-length"] == "5"
    assert sent["headers"]["user-agent"] == "lousho-http-request"


@pytest.mark.spec("TOOL-60")
async def test_the_result_has_a_documented_shape():
    async with web_site(Answer(b"made", [("X-Id", "7"), ("X-ID", "8"), ("Set-Cookie", "a=b")], status=201)) as site:
        result = await create_http_tool(**LOCAL)({"url": site.url("/a#b")})
        assert result == {
            "url": site.url("/a#b"),
            "finalUrl": site.url("/a"),
            "status": 201,
            "headers": {"x-id": "7, 8", "set-cookie": "a=b", "content-length": "4"},
            "body": "made",
            "truncated": False,
        }


@pytest.mark.parametrize(
    ("body", "sent", "content_type"),
    [
        pytest.param({"a": [1, "ü", None]}, '{"a": [1, "ü", null]}', "application/json", id="an object"),
        pytest.param([1, 2.5], "[1, 2.5]", "application/json", id="a list"),
        pytest.param(0, "0", "application/json", id="a number"),
        pytest.param(False, "false", "application/json", id="false"),
        pytest.param("", "", "text/plain; charset=utf-8", id="an empty text"),
        pytest.param('{"a":1}', '{"a":1}', "text/plain; charset=utf-8", id="a text stays one"),
        pytest.param(None, "", None, id="null is no body"),
    ],
)
async def test_a_text_is_sent_as_it_is_and_anything_else_as_json(body: Any, sent: str, content_type: str | None):
    async with web_site(echo) as site:
        result = await create_http_tool(**LOCAL)({"url": site.url(), "method": "POST", "body": body})
        assert result["body"]["body"] == sent
        assert result["body"]["headers"].get("content-type") == content_type
        assert result["body"]["headers"]["content-length"] == str(len(sent.encode("utf-8")))
        form = {"url": site.url(), "method": "POST", "body": body, "headers": {"content-type": "text/x"}}
        assert (await create_http_tool(**LOCAL)(form))["body"]["headers"]["content-type"] == "text/x"


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        pytest.param(page('{"a":1.0,"b":[true]}', "application/json"), {"a": 1.0, "b": [True]}, id="JSON"),
        pytest.param(page("[1]", "application/problem+json"), [1], id="a kind of JSON"),
        pytest.param(page("{nope", "application/json"), "{nope", id="broken JSON"),
        pytest.param(page("[NaN]", "application/json"), "[NaN]", id="what Python takes for JSON"),
        pytest.param(page("[" * 100_000, "application/json"), "[" * 100_000, id="nested too deep"),
        pytest.param(page("9" * 5_000, "application/json"), "9" * 5_000, id="a number too long"),
        pytest.param(page("<b>&amp;</b>"), "<b>&amp;</b>", id="HTML as it is"),
        pytest.param(page("plain", "text/plain"), "plain", id="text"),
        pytest.param(Answer(b"no type"), "no type", id="no content type"),
        pytest.param(Answer(b"\x00\x01"), "[unknown type, 2 bytes: not text, so the content is not shown]", id="bytes"),
        pytest.param(
            Answer(b"\x89PNG", [("Content-Type", "image/png")]),
            "[image/png, 4 bytes: not text, so the content is not shown]",
            id="an image",
        ),
        pytest.param(Answer(), None, id="empty"),
        pytest.param(Answer(b"gone", [("Content-Type", "text/plain")], status=410), "gone", id="an error"),
        pytest.param(Answer(status=500), None, id="an error without a body"),
        pytest.param(Answer(raw=b"HTTP/1.1 204 No Content\r\n\r\n"), None, id="no content"),
        pytest.param(Answer(raw=b"HTTP/1.1 304 X\r\nContent-Type: image/png\r\n\r\n"), None, id="not modified"),
        pytest.param(Answer(raw=b"HTTP/1.0 200 OK\r\n\r\nuntil the end"), "until the end", id="HTTP/1.0"),
        pytest.param(Answer(raw=b"HTTP/1.1 103 H\r\n\r\nHTTP/1.1 200 K\r\n\r\nok"), "ok", id="early hints"),
    ],
)
async def test_the_body_is_a_json_value_a_text_or_a_note(answer: Answer, body: Any):
    async with web_site(answer) as site:
        assert (await create_http_tool(**LOCAL)({"url": site.url()}))["body"] == body


async def test_a_redirect_on_the_same_server_keeps_the_connection():
    async with web_site({"/a": Answer(b"moved", [("Location", "/b")], status=301), "/b": page("here")}) as site:
        assert (await create_http_tool(**LOCAL)({"url": site.url("/a")}))["body"] == "here"
        assert (len(site.asked), site.connections) == (2, 1)


async def test_head_has_no_body():
    async with web_site(Answer(b"12345", [("Content-Type", "image/png")])) as site:
        tool = create_http_tool(**LOCAL)
        result = await tool({"url": site.url(), "method": "HEAD"})
        assert (result["status"], result["body"], result["headers"]["content-length"]) == (200, None, "5")
        await tool({"url": site.url(), "method": "HEAD"})
        assert site.connections == 1


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"X-A": "1\r\nHost: evil.test"}, "The value of the header 'X-A' has a line break"),
        ({"X-A": "hunter2\n"}, "The value of the header 'X-A' has a line break"),
        ({"X-A": "hunter2\x00"}, "The value of the header 'X-A' has a line break"),
        ({"X-A": "hunter2 \u20ac"}, "The value of the header 'X-A' has characters"),
        ({"X-A": "hunter2" * 3_000}, "The value of the header 'X-A' has more than 16,000"),
        ({"Authorization: hunter2": ""}, "A header name has characters that no header name has."),
        ({"X-A\r\nhunter2": "1"}, "A header name has characters that no header name has."),
        ({"": "1"}, "A header name has characters that no header name has."),
        ({"HOST": "hunter2.test"}, "The header 'HOST' is set by the tool itself"),
        ({"Content-Length": "3"}, "The header 'Content-Length' is set by the tool itself"),
        ({"transfer-encoding": "chunked"}, "The header 'transfer-encoding' is set by the tool itself"),
        ({"Connection": "upgrade"}, "The header 'Connection' is set by the tool itself"),
        ({f"x-{number}": "hunter2" for number in range(101)}, "more than 100 headers"),
    ],
)
async def test_a_header_that_could_do_harm_is_refused_without_showing_its_value(headers: dict[str, str], told: str):
    async with web_site(page("x")) as site:
        error = await refused(create_http_tool(**LOCAL)({"url": site.url(), "headers": headers}))
        assert told in error
        assert "hunter2" not in error
        assert site.connections == 0


@pytest.mark.parametrize("method", ["CONNECT", "GE T", "GET\r\nX: y", "GÉT", "x" * 101])
async def test_a_method_that_cannot_be_sent_is_refused(method: str):
    told = await refused(http_tool({"url": "http://site.test/", "method": method}))
    assert told.startswith("The method for 'site.test' is not one that can be sent")


async def test_a_body_that_is_too_long_is_refused_before_it_is_sent():
    told = await refused(http_tool({"url": "http://site.test/", "method": "POST", "body": "x" * 11_000_000}))
    assert told == "The body for 'site.test' is longer than 10,485,760 bytes."


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        (301, "POST", ("GET", "")),
        (302, "POST", ("GET", "")),
        (303, "POST", ("GET", "")),
        (307, "POST", ("POST", "data")),
        (308, "POST", ("POST", "data")),
        (301, "PUT", ("PUT", "data")),
        (302, "DELETE", ("DELETE", "data")),
        (303, "PATCH", ("GET", "")),
        (303, "GET", ("GET", "data")),
        (303, "HEAD", ("HEAD", "data")),
        (302, "HEAD", ("HEAD", "data")),
    ],
)
async def test_a_redirect_changes_the_method_as_browsers_do(status: int, method: str, then: tuple[str, str]):
    async with web_site({"/a": moved("/b", status), "/b": echo}) as site:
        headers = {"Content-Language": "en", "X-Kept": "yes"}
        call = {"url": site.url("/a"), "method": method, "body": "data", "headers": headers}
        result = await create_http_tool(**LOCAL)(call)
        last = site.asked[-1]
        assert (last.method, last.body.decode("utf-8"), last.headers["x-kept"]) == (*then, "yes")
        assert {"content-type", "content-language"} <= set(last.headers) or not last.body
        assert result["finalUrl"] == site.url("/b")


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        pytest.param("http://127.0.0.1:{port}/b", True, id="the same origin"),
        pytest.param("/b", True, id="a path"),
        pytest.param("http://other.test:{port}/b", False, id="another host"),
        pytest.param("http://127.0.0.1:{other}/b", False, id="another port"),
        pytest.param("//localhost:{port}/b", False, id="another name of the same server"),
    ],
)
async def test_credentials_stay_with_the_origin_they_were_meant_for(target: str, kept: bool):
    async with web_site({"/b": echo}) as other, web_site({"/b": echo}) as site:
        to = target.format(port=site.port, other=other.port)
        site.routes = {"/a": moved(to, 307), "/b": moved("/c", 307), "/c": echo}
        other.routes = {"/b": moved("/c", 307), "/c": echo}
        secret = dict.fromkeys(("Authorization", "Cookie", "X-Api-Key"), "hunter2")
        call = {"url": site.url("/a"), "method": "POST", "body": "data", "headers": {**secret, "Accept": "text/x"}}
        names = Names(other_test=[["127.0.0.1"]], localhost=[["127.0.0.1"]])
        result = await create_http_tool(resolver=names, **LOCAL)(call)
        seen = result["body"]["headers"]
        assert ("hunter2" in json.dumps(seen), seen["accept"], result["body"]["body"]) == (kept, "text/x", "data")
        assert [name for name in ("authorization", "cookie", "x-api-key") if name in seen] == (
            ["authorization", "cookie", "x-api-key"] if kept else []
        )


async def test_a_body_is_not_sent_on_without_tls_when_it_came_with_tls():
    names = Names(secure_test=[["127.0.0.1"]], other_test=[["127.0.0.1"]])
    async with web_site(echo) as plain, web_site(moved(plain.url("/", "other.test"), 307), tls=True) as site:
        tool = create_http_tool(resolver=names, validate_ssl=False, **LOCAL)
        url = site.url(host="secure.test", scheme="https")
        told = await refused(tool({"url": url, "method": "POST", "body": "hunter2"}))
        assert told.startswith(f"'secure.test:{site.port}' redirects to 'other.test:{plain.port}' without TLS")
        assert plain.connections == 0
        assert (await tool({"url": url}))["finalUrl"] == plain.url("/", "other.test")  # nothing to protect


@pytest.mark.spec("TOOL-66", "TOOL-61")
@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("ftp://files.test/", "Only http and https URLs can be requested, not ftp ('files.test')."),
        ("http://user:hunter2@site.test/", "('site.test'): leave it out."),
        ("http://site.test:99999/", "The port of 'site.test'"),
        ("http://[::1/", "is not a usable host"),
        ("http://a b/", "'a b' is not a usable host"),
        ("x" * 16_001, "redirects to something that is not a usable URL."),
        ("/a\tb", "redirects to something that is not a usable URL."),
    ],
)
async def test_a_redirect_to_a_bad_url_is_refused(location: str, told: str):
    async with web_site(moved(location)) as site:
        error = await refused(create_http_tool(**LOCAL)({"url": site.url()}))
        assert told in error
        assert "hunter2" not in error
        assert len(site.asked) == 1


@pytest.mark.parametrize(
    ("location", "final"),
    [
        ("../up?x=1#frag", "/up?x=1"),
        ("?only=query", "/dir/page?only=query"),
        ("next page", "/dir/next%20page"),
        ("/ä", "/%C3%A4"),
        (" /spaces ", "/spaces"),
        ("HTTP://127.1:{port}/b", "/b"),
    ],
)
async def test_a_relative_redirect_is_resolved_as_a_browser_does(location: str, final: str):
    async with web_site({}) as site:
        to = location.format(port=site.port).encode("utf-8").decode("latin-1")
        site.routes = {"*": lambda asked: moved(to) if len(site.asked) == 1 else page("end")}
        result = await create_http_tool(**LOCAL)({"url": site.url("/dir/page")})
        assert (result["finalUrl"], result["body"]) == (site.url(final), "end")


@pytest.mark.parametrize("status", [300, 304, 305, 302])
async def test_a_status_that_leads_nowhere_is_an_answer(status: int):
    headers = [] if status == 302 else [("Location", "http://10.0.0.1/")]
    async with web_site(Answer(headers=headers, status=status)) as site:
        assert (await create_http_tool(**LOCAL)({"url": site.url()}))["status"] == status


@pytest.mark.spec("TOOL-60", "API-36")
async def test_an_agent_reads_the_refusal_of_a_private_host_as_a_failed_call():
    model = mock_model(
        [
            {
                "tool_calls": [
                    {"name": "http_request", "args": {"url": "http://127.0.0.1:8080/admin", "method": "DELETE"}}
                ]
            },
            "That host is not public.",
        ]
    )
    result = await create_agent(provider=model, tools=[http_tool]).send("Delete it")
    (failed,) = [json.loads(str(message.content)) for message in result.messages if message.role == "tool"]
    assert failed == {
        "error": "ToolExecutionError",
        "toolName": "http_request",
        "message": "'127.0.0.1' is not on the public internet, and only public hosts may be reached.",
        "kind": "execution",
    }
    assert result.text == "That host is not public."


@pytest.mark.spec("TOOL-60", "API-36")
async def test_an_agent_sends_requests_with_the_tool_under_its_own_name_or_another():
    async with web_site(echo) as site:
        tool = create_http_tool(**LOCAL)
        args = {"url": site.url(), "method": "PUT", "headers": {"X-N": 5, "X-B": True}, "body": {"open": True}}
        for tools, name in [([tool], "http_request"), ({"call_api": tool}, "call_api")]:
            model = mock_model([{"tool_calls": [{"name": name, "args": args}]}, "Done."])
            result = await create_agent(provider=model, tools=tools).send("Open it")
            (told,) = [json.loads(str(message.content)) for message in result.messages if message.role == "tool"]
            assert (told["status"], told["body"]["method"], told["body"]["body"]) == (200, "PUT", '{"open": true}')
            assert (told["body"]["headers"]["x-n"], told["body"]["headers"]["x-b"]) == ("5", "true")


def test_the_model_is_told_the_arguments_and_that_answers_are_untrusted():
    schema = http_tool.input_schema
    assert (list(schema["properties"]), schema["required"]) == (["url", "method", "headers", "body"], ["url"])
    assert http_tool.name == "http_request"
    assert "untrusted" in http_tool.description
    assert http_tool.annotations == {"openWorldHint": True}
