"""Files a vendor takes, and those it does not."""

from __future__ import annotations

import base64
import logging
from typing import Any

import pytest
from fake_vendor import FakeVendor, http, request

from lousho import create_agent
from lousho.core.errors import CompactedLLMProviderError, ConfigurationError, SDKError
from lousho.core.messages import FilePart, Message, TextPart
from lousho.models.anthropic import AnthropicProvider
from lousho.models.openai import OpenAIProvider

REPLIES = {
    OpenAIProvider: {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]},
    AnthropicProvider: {"content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"},
}
DOCX = FilePart(b"PK..", "application/vnd.openxmlformats", "plan.docx")


@pytest.fixture(params=[OpenAIProvider, AnthropicProvider], ids=["openai", "anthropic"])
def make(request: pytest.FixtureRequest, vendor: FakeVendor) -> Any:
    vendor.answers(http(200, REPLIES[request.param]))

    def build(of: Any = None, **options: Any) -> Any:
        return (of(request.param) if of else request.param)(base_url=vendor.url, api_key="k-12345", **options)

    return build


@pytest.mark.spec("ERR-34")
@pytest.mark.parametrize("streamed", [False, True], ids=["generate", "stream"])
async def test_a_file_the_vendor_does_not_take_is_refused_before_any_request(
    vendor: FakeVendor, make: Any, streamed: bool
):
    agent = create_agent(provider=make(), on_event=(lambda _: None) if streamed else None)
    with pytest.raises(CompactedLLMProviderError, match=r"plan\.docx") as refused:
        await agent.send([TextPart("Read this:"), DOCX])
    assert refused.value.code == "LOUSHO_UNSUPPORTED_CONTENT"
    assert not refused.value.compacted.retryable
    assert vendor.received == []


@pytest.mark.spec("ERR-34")
async def test_a_text_note_stands_for_the_file_with_one_warning_a_type(
    vendor: FakeVendor, make: Any, caplog: pytest.LogCaptureFixture
):
    provider = make(unsupported_files="text-note")
    parts = (TextPart("Read:"), DOCX, FilePart(b"x", "audio/wav"))
    for _ in range(2):
        await provider.generate(request(Message("user", parts)))
    texts = [part["text"] for part in vendor.received[-1].json["messages"][0]["content"]]
    assert texts == [
        "Read:",
        "[file plan.docx (application/vnd.openxmlformats) not sent]",
        "[file (audio/wav) not sent]",
    ]
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


async def test_a_subclass_takes_more_types(vendor: FakeVendor, make: Any):
    def with_tiff(base: Any) -> Any:
        return type("Tiff", (base,), {"file_media_types": lambda self: ("image/tiff",)})

    def with_all(base: Any) -> Any:
        return type("All", (base,), {"accepts_file_parts": True})

    part = FilePart(b"II*\x00", "image/tiff", "scan.tiff")
    for of in (with_tiff, with_all):
        await make(of).generate(request(Message("user", (part,))))
        assert base64.b64encode(b"II*\x00").decode() in vendor.received[-1].body.decode()
    with pytest.raises(SDKError) as refused:
        await make(with_tiff).generate(request(Message("user", (DOCX,))))
    assert refused.value.code == "LOUSHO_UNSUPPORTED_CONTENT"


def test_an_unknown_way_to_treat_files_is_refused(make: Any):
    with pytest.raises(ConfigurationError, match="unsupported_files"):
        make(unsupported_files="drop")
