"""OpenAI, and every server that speaks its Chat Completions API. Source: providers page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from lousho.core.errors import ConfigurationError
from lousho.models.errors import VendorError
from lousho.models.http import DEFAULT_TIMEOUT_MS
from lousho.models.openai.map_reply import read_completion
from lousho.models.openai.map_request import chat_body
from lousho.models.openai.map_stream import ChatStreamReader
from lousho.models.provider import ModelRequest, ModelResponse
from lousho.models.vendor import FailureMaker, HttpProvider, StreamReader, UnsupportedFiles, checked_key, given

if TYPE_CHECKING:
    import httpx

DEFAULT_BASE_URL = "https://api.openai.com/v1"
DEFAULT_MODEL = "gpt-4.1-mini"


class OpenAIProvider(HttpProvider):
    """OpenAI's models, or those of any server with an OpenAI-compatible `/chat/completions`. Source: providers page.

    `base_url` (default: `OPENAI_BASE_URL`, else OpenAI) is the address up to and with `/v1`; `api_key` (default:
    `OPENAI_API_KEY`) must not be empty, local servers take any text. `timeout` (milliseconds, default 600,000; 0 or
    infinity: none) bounds the wait for an answer to start and between two of its chunks. `transport` is an
    `httpx.AsyncBaseTransport` to send through, `headers` are sent with every call. `unsupported_files='text-note'` sends
    a note instead of a file the API does not take. `name` is what events and errors call the provider. This version
    speaks Chat Completions (`api='chat'`) only.

    Raises `LOUSHO_PROVIDER_MISSING_API_KEY` and `LOUSHO_CONFIG_INVALID`.
    """

    vendor = "openai"

    def __init__(
        self,
        *,
        name: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        api: Literal["chat"] | None = None,
        default_model: str | None = None,
        timeout: float = DEFAULT_TIMEOUT_MS,
        transport: httpx.AsyncBaseTransport | None = None,
        headers: Mapping[str, str] | None = None,
        unsupported_files: UnsupportedFiles = "error",
    ) -> None:
        chosen = api or os.environ.get("LOUSHO_OPENAI_API") or "chat"
        if chosen != "chat":
            raise ConfigurationError(
                f"The openai provider of this version speaks api='chat' (Chat Completions) only; got {chosen!r}.",
                field="api",
            )
        super().__init__(
            name=name,
            base_url=given(base_url, "OPENAI_BASE_URL", DEFAULT_BASE_URL),
            api_key=checked_key(given(api_key, "OPENAI_API_KEY"), "OPENAI_API_KEY", "openai"),
            default_model=default_model or DEFAULT_MODEL,
            timeout=timeout,
            transport=transport,
            headers=headers,
            unsupported_files=unsupported_files,
        )

    def file_media_types(self) -> tuple[str, ...]:
        """Return the media types that are sent as files: PDF."""
        return ("application/pdf",)

    def call_url(self) -> str:
        """Return the address of Chat Completions."""
        return self.url_of("chat/completions")

    def auth_headers(self, api_key: str) -> dict[str, str]:
        """Return the header that carries the key."""
        return {"authorization": f"Bearer {api_key}"}

    def request_body(self, request: ModelRequest, *, stream: bool) -> dict[str, Any]:
        """Return the body of a call. Raises `LOUSHO_UNSUPPORTED_CONTENT` and `LOUSHO_CONFIG_INVALID`."""
        return chat_body(
            request,
            request.model or self.default_model,
            stream=stream,
            note_for=self.file_note_for,
            warn=self.warn_once,
        )

    def read_reply(self, data: Mapping[str, Any], fail: FailureMaker) -> ModelResponse:
        """Return the turn in a completion."""
        found = read_completion(data)
        if isinstance(found, VendorError):
            raise self.failed_inside(found)
        if found is None:
            raise fail("the answer holds no choices")
        return found

    def stream_reader(self, fail: FailureMaker) -> StreamReader:
        """Return a reader for one stream."""
        return ChatStreamReader(self.failed_inside)
