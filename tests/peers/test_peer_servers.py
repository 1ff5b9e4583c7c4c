"""The outside servers start, answer and end: a peer that is not what we think it is would prove nothing."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from typing import Any

from peer_servers import Aimock, Llmock


def complete(base_url: str, text: str) -> str:
    """One plain OpenAI chat completion, without any of our code."""
    body = json.dumps({"model": "gpt-4.1-mini", "messages": [{"role": "user", "content": text}]}).encode("utf-8")
    headers = {"content-type": "application/json", "authorization": "Bearer test"}
    request = urllib.request.Request(f"{base_url}/chat/completions", data=body, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())["choices"][0]["message"]["content"]


def test_aimock_answers_by_its_fixtures(aimock: Callable[..., Aimock]):
    server = aimock([{"match": {"userMessage": "weather"}, "response": {"content": "It is 21C."}}])
    assert complete(server.openai_base_url, "the weather?") == "It is 21C."
    assert len(server.journal()) == 1


def test_llmock_answers_and_judges(llmock_server: Llmock):
    assert complete(llmock_server.openai_base_url, "hello")
    assert len(llmock_server.requests()) == 1
    verdict: dict[str, Any] = llmock_server.verdict()
    assert verdict
