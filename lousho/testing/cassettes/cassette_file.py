"""The cassette as a file: version 1 of the format, read with care and written whole or not at all.

    {
      "version": 1,
      "recordedAt": "2026-10-01T09:30:00.000Z",
      "sdkVersion": "0.1.0",
      "provider": { "name": "openai", "defaultModel": "gpt-4.1-mini" },
      "entries": [ { "kind": "generate", "request": {...}, "response": {...} }, ... ]
    }

Unknown keys are passed by, never refused, so that files of another implementation and of a newer minor
version load. Nothing here waits on an event loop: callers run it in a thread. Source: testing page.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, cast

from lousho.core.errors import CassetteMismatchError, SDKError
from lousho.testing.cassettes.exchanges import Exchange, without_noise

CASSETTE_VERSION = 1
MAX_CASSETTE_BYTES = 64 * 1024 * 1024
"""The size of a file that is read or written at most: 64 MiB."""


class CassetteWriteError(SDKError):
    """A cassette could not be written; what was recorded is still in memory and the old file is untouched.

    `await provider.save()` tries again. It reaches the caller of `send()` as it is. Source: testing page. Code:
    `LOUSHO_STORAGE_FAILED`.
    """

    default_code = "LOUSHO_STORAGE_FAILED"
    never_wrap: ClassVar[bool] = True

    def __init__(self, message: str, *, cassette: str, cause: BaseException | None = None) -> None:
        super().__init__(message, cause=cause)
        self.cassette = cassette
        """The path of the cassette file."""


@dataclass(slots=True, kw_only=True)
class Cassette:
    """A recording: who answered, and every exchange in the order of the calls."""

    entries: list[Exchange]
    recorded_at: str = ""
    sdk_version: str = ""
    provider: dict[str, str] = field(default_factory=dict[str, str])
    """`name`, and `defaultModel` where the provider has one."""
    version: int = CASSETTE_VERSION


def read_cassette(path: str | os.PathLike[str], *, fix: str = "record it again") -> Cassette:
    """Return the cassette at `path`; blocking.

    Raises `LOUSHO_CASSETTE_INVALID` when it is missing, larger than 64 MiB, no JSON, of a newer version, or not shaped
    like a cassette; `fix` is what the message proposes. Source: testing page.
    """
    shown = os.fspath(path)
    raw = _read_bytes(shown, fix)
    try:
        # Not `utf-8`: an editor may have put a byte order mark in front.
        document: object = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise _invalid(shown, f"it is not UTF-8 text (byte {error.start})", fix) from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        cut = " - the file ends in the middle" if error.pos >= len(error.doc.rstrip()) else ""
        raise _invalid(shown, f"it is not JSON ({error.msg} at {place}){cut}", fix) from None
    except (RecursionError, ValueError) as error:
        raise _invalid(shown, f"it cannot be read ({type(error).__name__})", fix) from None
    return _cassette_of(document, shown, fix)


def dump_entry(entry: Exchange) -> str:
    """Return one entry as the text it has inside the file."""
    text = json.dumps(entry.to_dict(), ensure_ascii=False, indent=2)
    # Line breaks inside of JSON texts are escaped, so that every one here is layout.
    return "    " + text.replace("\n", "\n    ")


def dump_cassette(cassette: Cassette, entry_texts: Sequence[str]) -> bytes:
    """Return the bytes of the whole file, from entries that `dump_entry()` made."""
    head: dict[str, Any] = {"version": cassette.version}
    head["recordedAt"], head["sdkVersion"] = cassette.recorded_at, cassette.sdk_version
    if cassette.provider:
        head["provider"] = cassette.provider
    top = json.dumps(head, ensure_ascii=False, indent=2).removesuffix("\n}")
    entries = "[\n" + ",\n".join(entry_texts) + "\n  ]" if entry_texts else "[]"
    return f'{top},\n  "entries": {entries}\n}}\n'.encode()


def same_exchanges(one: Cassette, other: Cassette) -> bool:
    """Return whether two recordings say the same, whenever they were made."""
    return one.provider == other.provider and [without_noise(entry.to_dict()) for entry in one.entries] == [
        without_noise(entry.to_dict()) for entry in other.entries
    ]


def prepare_place(path: str) -> None:
    """Make sure that a file can be written at `path`, before anything is spent on what goes into it.

    Creates missing folders. Raises `LOUSHO_STORAGE_FAILED`.
    """
    target = Path(path)
    if target.is_dir():
        raise CassetteWriteError(f"The cassette {path} is a folder. Name a file in it.", cassette=path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        probe = _temporary(target)
        os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        probe.unlink()
    except OSError as error:
        raise _not_written(path, error) from error


def write_whole(path: str, content: bytes) -> None:
    """Replace the file at `path` by `content` in one step: a reader sees the old or the new one, never a part.

    Raises `LOUSHO_STORAGE_FAILED`; the old file is then as it was.
    """
    if len(content) > MAX_CASSETTE_BYTES:
        raise CassetteWriteError(
            f"The cassette {path} would be {len(content):,} bytes, more than the limit of {MAX_CASSETTE_BYTES:,}."
            " Split the test, or give each case a cassette of its own.",
            cassette=path,
        )
    # Where the cassette is a link, the file it points to is replaced, not the link.
    target = Path(os.path.realpath(path))
    temporary = _temporary(target)
    try:
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise _not_written(path, error) from error


def read_bytes_or_none(path: str) -> bytes | None:
    """Return what is at `path`, or None when nothing readable of a sensible size is."""
    try:
        if Path(path).stat().st_size > MAX_CASSETTE_BYTES:
            return None
        return Path(path).read_bytes()
    except OSError:
        return None


def _temporary(target: Path) -> Path:
    return target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")


def _not_written(path: str, error: OSError) -> CassetteWriteError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    more = " (the disk is full)" if error.errno == errno.ENOSPC else ""
    return CassetteWriteError(
        f"The cassette {path} cannot be written: {reason}{more}. Nothing recorded before is lost; make the folder"
        " writable or choose another path.",
        cassette=path,
        cause=error,
    )


def _read_bytes(path: str, fix: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_CASSETTE_BYTES + 1)
    except FileNotFoundError:
        raise CassetteMismatchError(
            f"There is no cassette at {path}. Record it first ({fix}).", cassette=path
        ) from None
    except OSError as error:
        reason = "it is a folder" if Path(path).is_dir() else (error.strerror or str(error))
        raise CassetteMismatchError(
            f"The cassette {path} cannot be read: {reason}.", cassette=path, cause=error
        ) from None
    if len(raw) > MAX_CASSETTE_BYTES:
        raise CassetteMismatchError(
            f"The cassette {path} is larger than the limit of {MAX_CASSETTE_BYTES:,} bytes. Split the test, or give"
            " each case a cassette of its own.",
            cassette=path,
        )
    return raw


def _invalid(path: str, reason: str, fix: str) -> CassetteMismatchError:
    return CassetteMismatchError(
        f"The cassette {path} is broken: {reason}. Restore the file, or re-record it ({fix}).", cassette=path
    )


def _cassette_of(document: object, path: str, fix: str) -> Cassette:
    if not isinstance(document, Mapping):
        raise _invalid(path, "it does not hold a JSON object", fix)
    record = cast("Mapping[str, Any]", document)
    version = record.get("version", CASSETTE_VERSION)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise _invalid(path, f"'version' must be {CASSETTE_VERSION}", fix)
    if version > CASSETTE_VERSION:
        raise CassetteMismatchError(
            f"The cassette {path} has version {version}, and this release reads version {CASSETTE_VERSION}."
            f" Upgrade, or re-record it ({fix}).",
            cassette=path,
        )
    entries = record.get("entries")
    if not isinstance(entries, list):
        raise _invalid(path, "'entries' must be a list", fix)
    provider = record.get("provider")
    known: Mapping[str, Any] = cast("Mapping[str, Any]", provider) if isinstance(provider, Mapping) else {}
    return Cassette(
        version=version,
        recorded_at=str(record.get("recordedAt") or ""),
        sdk_version=str(record.get("sdkVersion") or ""),
        provider={key: str(known[key]) for key in ("name", "defaultModel") if isinstance(known.get(key), str)},
        entries=[_entry_of(one, index, path, fix) for index, one in enumerate(cast("list[Any]", entries))],
    )


def _entry_of(value: object, index: int, path: str, fix: str) -> Exchange:
    where = f"entries[{index}]"
    if not isinstance(value, Mapping):
        raise _invalid(path, f"{where} must be an object", fix)
    entry = cast("Mapping[str, Any]", value)
    for key, kind, wanted in (
        ("request", dict, "an object"),
        ("response", dict, "an object"),
        ("chunks", list, "a list"),
        ("error", dict, "an object"),
    ):
        given = entry.get(key)
        if (given is None and key == "request") or (given is not None and not isinstance(given, kind)):
            raise _invalid(path, f"{where}.{key} must be {wanted}", fix)
    response, chunks, error = entry.get("response"), entry.get("chunks"), entry.get("error")
    if response is None and chunks is None and error is None:
        raise _invalid(path, f"{where} has no response, chunks or error", fix)
    return Exchange(
        kind="stream" if chunks is not None else "generate",
        request=dict(entry["request"]),
        response=response,
        chunks=[one for one in cast("list[Any]", chunks) if isinstance(one, dict)] if chunks is not None else None,
        error=error,
    )
