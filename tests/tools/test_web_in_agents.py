"""The web tools where agents meet them: spec files, permission rules, the blocking calls, the first import."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lousho import (
    create_agent,
    create_http_tool,
    create_web_fetch_tool,
    http_tool,
    load_spec,
    spec_to_agent,
    web_fetch_tool,
)
from lousho.testing import mock_model

SPEC = """
name: reader
prompt: You read the web.
provider: { type: mock, model: demo }
tools: [http, web-fetch, current-date, day-name]
"""


def load(folder: Path, more: str = "") -> Any:
    """Return the spec, from a file."""
    file = folder / "agent.yaml"
    file.write_text(SPEC + more, encoding="utf-8")
    return load_spec(file)


@pytest.mark.spec("TOOL-69")
async def test_a_spec_names_the_built_in_tools_its_own_way(tmp_path: Path):
    names = ["http_request", "web_fetch", "current_date", "day_name"]
    calls = [
        {"name": "http_request", "args": {"url": "http://10.0.0.1/"}},
        {"name": "web_fetch", "args": {"url": "http://10.0.0.2/"}},
        {"name": "current_date"},
        {"name": "day_name", "args": {"date": "2024-02-29"}},
    ]
    model = mock_model([{"tool_calls": calls}, "Done."])
    agent = spec_to_agent(load(tmp_path), provider=model)
    assert list(agent.tools) == names
    assert (agent.tools["http_request"], agent.tools["web_fetch"]) == (http_tool, web_fetch_tool)
    result = await agent.send("Go")
    told = [json.loads(str(message.content)) for message in result.messages if message.role == "tool"]
    assert [one.get("message", "")[:10] for one in told[:2]] == ["'10.0.0.1'", "'10.0.0.2'"]
    assert told[2]["timezone"] == "UTC"
    assert told[3] == {"date": "2024-02-29", "day": "Thursday"}


@pytest.mark.spec("TOOL-69")
@pytest.mark.parametrize("name", ["http", "http_request"])
async def test_a_spec_that_asks_before_a_tool_means_the_tool_behind_its_name(tmp_path: Path, name: str):
    spec = load(tmp_path, f"policy:\n  requiresApproval: [{name}]\n")
    calls = [
        {"name": "http_request", "args": {"url": "http://10.0.0.1/", "method": "DELETE"}},
        {"name": "web_fetch", "args": {"url": "http://10.0.0.1/"}},
    ]
    agent = spec_to_agent(spec, provider=mock_model([{"tool_calls": calls}, "Done."]))
    paused = await agent.send("Go")
    assert paused.finish_reason == "awaiting-approval"
    assert [one.tool_name for one in await agent.approvals.list()] == ["http_request"]


class Shelf(BaseHTTPRequestHandler):
    """A site that answers from a thread."""

    def do_GET(self) -> None:
        body = b"<p>Momo is on <b>B2</b>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.mark.spec("TOOL-60", "TOOL-64", "API-36")
def test_the_tools_work_in_blocking_calls_one_after_another():
    with ThreadingHTTPServer(("127.0.0.1", 0), Shelf) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/"
        tools = [create_http_tool(allow_private=["127.0.0.1"]), create_web_fetch_tool(allow_private=["127.0.0.1"])]
        calls = [{"name": tool.name, "args": {"url": url}} for tool in tools]
        for _ in range(3):
            model = mock_model([{"tool_calls": calls}, "On B2."])
            result = create_agent(provider=model, tools=tools).send_sync("Where is Momo?")
            told = [json.loads(str(message.content)) for message in result.messages if message.role == "tool"]
            assert [one.get("body") or one.get("content") for one in told] == [
                "<p>Momo is on <b>B2</b>",
                "Momo is on B2",
            ]
        server.shutdown()
        thread.join(5)


def test_nothing_of_the_http_library_is_loaded_before_the_first_request():
    program = """
import sys
import lousho.tools.web
print(sorted(name for name in sys.modules if name.startswith("lousho.tools.")))
from lousho import create_agent, create_http_tool, http_tool, web_fetch_tool
create_http_tool(allow_private=["*.corp.test"], allowed_hosts=["127.0.0.1"])
print(sorted({"httpx", "httpcore", "h11", "anyio", "idna"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8", timeout=30, check=True
    )
    assert done.stdout.splitlines() == ["['lousho.tools.web']", "[]"]


@pytest.mark.spec("API-36")
def test_each_tool_is_one_object_wherever_it_is_imported_from():
    import lousho
    import lousho.tools
    import lousho.tools.web

    for name in ("http_tool", "web_fetch_tool", "create_http_tool", "create_web_fetch_tool"):
        assert getattr(lousho, name) is getattr(lousho.tools, name) is getattr(lousho.tools.web, name)
    with pytest.raises(AttributeError, match="has no attribute 'htp_tool'"):
        getattr(lousho.tools.web, "htp_tool")  # noqa: B009
