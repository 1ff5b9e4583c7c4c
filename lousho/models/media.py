"""Images and files of a message, made ready for a vendor. Source: providers page ("Multimodal input")."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from lousho.core.errors import ConfigurationError, LLMProviderError
from lousho.core.messages import FilePart, ImagePart

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
)
_HEAD_BYTES = 48


@dataclass(frozen=True, slots=True)
class Media:
    """What a vendor is given: a URL to fetch, or base64 text with its media type."""

    mime_type: str
    url: str | None = None
    base64: str | None = None

    @property
    def data_url(self) -> str:
        """The URL itself, or the bytes as a `data:` URL."""
        return self.url or f"data:{self.mime_type};base64,{self.base64}"

    @property
    def data(self) -> bytes:
        """The bytes; empty for a URL."""
        return base64.b64decode(self.base64 or "")


def image_media(part: ImagePart) -> Media:
    """Return an image for a vendor. What the bytes are counts more than the media type given with them.

    Raises `LOUSHO_CONFIG_INVALID` for a text that is no URL, `LOUSHO_UNSUPPORTED_CONTENT` for bytes of no known type.
    """
    media = _media(part.image, part.mime_type or "", "image")
    if media.base64 is None:
        return media
    found = sniff_image(_head(media.base64)) or media.mime_type
    if not found:
        raise LLMProviderError(
            "An image part holds bytes of no known image format; pass PNG, JPEG, GIF or WebP, or set its mime_type.",
            code="LOUSHO_UNSUPPORTED_CONTENT",
        )
    return Media(found, base64=media.base64)


def file_media(part: FilePart) -> Media:
    """Return a file for a vendor. Raises `LOUSHO_CONFIG_INVALID` for a text that is no URL."""
    return _media(part.data, media_type(part.mime_type), "file")


def file_note(part: FilePart) -> str:
    """Return the text that stands for a file that is not sent. Source: providers page."""
    return (
        f"[file {part.filename} ({part.mime_type}) not sent]"
        if part.filename
        else f"[file ({part.mime_type}) not sent]"
    )


def media_type(mime_type: str) -> str:
    """Return a media type without its parameters, in lower case."""
    return mime_type.partition(";")[0].strip().lower()


def sniff_image(head: bytes) -> str | None:
    """Return the media type that the first bytes of an image show, or `None`."""
    for magic, mime_type in _MAGIC:
        if head.startswith(magic):
            return mime_type
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[4:8] == b"ftyp":
        brand = head[8:12]
        if brand in (b"avif", b"avis"):
            return "image/avif"
        if brand in (b"heic", b"heix", b"mif1", b"msf1"):
            return "image/heic"
    return None


def _media(value: str | bytes, mime_type: str, noun: str) -> Media:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Media(mime_type, base64=base64.b64encode(value).decode("ascii"))
    lower = value[:8].lower()
    if lower.startswith(("http://", "https://")):
        return Media(mime_type, url=value)
    if lower.startswith("data:"):
        return _data_url(value, mime_type, noun)
    raise ConfigurationError(
        f"The {noun} of a message must be an http(s) URL, a data: URL or bytes; got a text that starts with"
        f" {value[:20]!r}. Read a file first, for example Path(name).read_bytes().",
        field="content",
    )


def _data_url(value: str, mime_type: str, noun: str) -> Media:
    header, comma, data = value[5:].partition(",")
    if not comma:
        raise ConfigurationError(f"The data: URL of a message's {noun} has no comma before its data.", field="content")
    own, *parameters = [piece.strip() for piece in header.split(";")]
    if "base64" in (parameter.lower() for parameter in parameters):
        text = "".join(unquote_to_bytes(data).decode("ascii", "replace").split())
        try:
            binascii.a2b_base64(text.encode("ascii", "replace"), strict_mode=True)
        except binascii.Error:
            raise ConfigurationError(
                f"The data: URL of a message's {noun} does not hold valid base64.", field="content"
            ) from None
    else:
        text = base64.b64encode(unquote_to_bytes(data)).decode("ascii")
    return Media(mime_type or media_type(own), base64=text)


def _head(text: str) -> bytes:
    return base64.b64decode(text[: _HEAD_BYTES + _HEAD_BYTES // 3])
