"""Anthropic's models, over the Messages API. Source: providers page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lousho.models.anthropic.map_reply import read_message
from lousho.models.anthropic.map_request import messages_body
from lousho.models.anthropic.map_stream import MessageStreamReader
from lousho.models.http import DEFAULT_TIMEOUT_MS
from lousho.models.provider import ModelRequest, ModelResponse
from lousho.models.vendor import FailureMaker, HttpProvider, StreamReader, UnsupportedFiles, checked_key, given

if TYPE_CHECKING:
    import httpx

DEFAULT_BASE_URL = "https://api.anthropic.com/v1"
DEFAULT_MODEL = "claude-sonnet-4-5"
API_VERSION = "2023-06-01"


class AnthropicProvider(HttpProvider):
    """Anthropic's models, or those of a server with the same Messages API. Source: providers page.

    `base_url` (default: `ANTHROPIC_BASE_URL`, else Anthropic) may end in `/v1` or not; `api_key` (default:
    `ANTHROPIC_API_KEY`) must not be empty. `timeout` (milliseconds, default 600,000; 0 or infinity: none) bounds the
    wait for an answer to start and between two of its chunks. `transport` is an `httpx.AsyncBaseTransport` to send
    through, `headers` are sent with every call. `unsupported_files='text-note'` sends a note instead of a file the API
    does not take. `name` is what events and errors call the provider.

    Raises `LOUSHO_PROVIDER_MISSING_API_KEY` and `LOUSHO_CONFIG_INVALID`.
    """

    vendor = "anthropic"

    def __init__(
        self,
        *,
        name: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        default_model: str | None = None,
        timeout: float = DEFAULT_TIMEOUT_MS,
        transport: httpx.AsyncBaseTransport | None = None,
        headers: Mapping[str, str] | None = None,
        unsupported_files: UnsupportedFiles = "error",
    ) -> None:
        super().__init__(
            name=name,
            base_url=given(base_url, "ANTHROPIC_BASE_URL", DEFAULT_BASE_URL),
            api_key=checked_key(given(api_key, "ANTHROPIC_API_KEY"), "ANTHROPIC_API_KEY", "anthropic"),
            default_model=default_model or DEFAULT_MODEL,
            timeout=timeout,
            transport=transport,
            headers=headers,
            unsupported_files=unsupported_files,
        )
        base, mark, query = self.base_url.partition("?")
        if not base.rstrip("/").endswith("/v1"):
            self.base_url = f"{base.rstrip('/')}/v1{mark}{query}"

    def file_media_types(self) -> tuple[str, ...]:
        """Return the media types that are sent as files: PDF and plain text."""
        return ("application/pdf", "text/plain")

    def call_url(self) -> str:
        """Return the address of the Messages API."""
        return self.url_of("messages")

    def auth_headers(self, api_key: str) -> dict[str, str]:
        """Return the headers that carry the key and the API's version."""
        return {"x-api-key": api_key, "anthropic-version": API_VERSION}

    def request_body(self, request: ModelRequest, *, stream: bool) -> dict[str, Any]:
        """Return the body of a call. Raises `LOUSHO_UNSUPPORTED_CONTENT` and `LOUSHO_CONFIG_INVALID`."""
        return messages_body(
            request,
            request.model or self.default_model,
            stream=stream,
            note_for=self.file_note_for,
            warn=self.warn_once,
        )

    def read_reply(self, data: Mapping[str, Any], fail: FailureMaker) -> ModelResponse:
        """Return the turn in a message."""
        found = read_message(data)
        if found is None:
            raise fail("the answer holds no content")
        return found

    def stream_reader(self, fail: FailureMaker) -> StreamReader:
        """Return a reader for one stream."""
        return MessageStreamReader()
