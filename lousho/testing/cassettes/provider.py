"""`record_replay()`: a provider that records a real one once and answers from the recording ever after.

Which of the two it does is decided when it is made; the work is in `recorder` and `replayer`.
Source: testing page ("Record and replay").
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal

from lousho.core.errors import CassetteMismatchError
from lousho.models.provider import ModelChunk, ModelRequest, ModelResponse
from lousho.models.requests import request_of
from lousho.testing.cassettes.options import (
    CassetteOptionError,
    CassetteOptions,
    Match,
    Mode,
    ProviderSource,
    Source,
    checked_options,
)
from lousho.testing.cassettes.recorder import Recorder
from lousho.testing.cassettes.redaction import Redact
from lousho.testing.cassettes.replayer import Replayer
from lousho.testing.cassettes.requests import Normalize


def record_replay(
    provider: ProviderSource = None,
    *,
    cassette: str | os.PathLike[str],
    mode: Mode = "replay",
    match: Match = "sequence",
    normalize: Normalize | None = None,
    redact: Redact | None = None,
    replay_timing: bool = False,
    rerecord_hint: str | None = None,
) -> RecordReplayProvider:
    """Return a provider that records the model calls of `provider` to a file, or answers them from it.

    - `provider`: the real one, or a function that returns it and is called only for recording; `None` replays only.
    - `mode`: `replay`, `record`, or `auto`, which replays when the file is there and else records.
    - `match`: `sequence` answers call N with entry N if the request is the recorded one; `request` takes the first
      unused entry with an equal request, for calls whose order is not fixed.
    - `normalize(request)` is applied to both sides before they are compared and returns the request to compare.
    - `redact(text)` runs on every text that is written, and on requests when they are compared. Keys in well-known
      formats are always taken out.
    - `replay_timing`: a stream keeps the gaps between its chunks.
    - `rerecord_hint`: the command that records again, for error messages.

    Raises `LOUSHO_CONFIG_INVALID` for options. Its calls raise `LOUSHO_CASSETTE_INVALID` (`CassetteMismatchError`)
    when the file is missing, broken or does not match, and `LOUSHO_STORAGE_FAILED` when it cannot be written.
    Source: testing page ("Record and replay").
    """
    options = checked_options(
        cassette=cassette,
        mode=mode,
        match=match,
        normalize=normalize,
        redact=redact,
        replay_timing=replay_timing,
        rerecord_hint=rerecord_hint,
    )
    return RecordReplayProvider(Source(provider), options)


class RecordReplayProvider:
    """The provider that `record_replay()` returns. Source: testing page ("Record and replay")."""

    def __init__(self, source: Source, options: CassetteOptions) -> None:
        if options.mode == "record" and source.empty:
            raise CassetteOptionError(
                "record_replay() cannot record without a provider. Pass one, or a function that returns one.",
                field="provider",
            )
        self._source = source
        self._options = options
        self._recorder = Recorder(source, options) if options.mode == "record" else None
        self._replayer = Replayer(source, options)

    @property
    def mode(self) -> Literal["record", "replay"]:
        """What this provider does; `auto` has been decided."""
        return self._options.mode

    @property
    def cassette(self) -> str:
        """The path of the file, as it was given."""
        return self._options.path

    @property
    def name(self) -> str:
        """The real provider's name, in a replay too, so that prices are found in both."""
        if self._recorder is not None:
            return self._source.provider().name
        if self._source.given is not None:
            return self._source.given.name
        return self._recorded("name") or "record-replay"

    @property
    def default_model(self) -> str | None:
        """The real provider's default model; in a replay the recorded one."""
        if self._recorder is not None:
            return self._source.provider().default_model
        if self._source.given is not None:
            return self._source.given.default_model
        return self._recorded("defaultModel")

    async def generate(self, request: ModelRequest | Mapping[str, Any]) -> ModelResponse:
        """Record or replay one call."""
        return await (self._recorder or self._replayer).generate(request_of(request))

    def stream(self, request: ModelRequest | Mapping[str, Any]) -> AsyncIterator[ModelChunk]:
        """Record or replay one streamed call. While recording, the real stream is read to its end first."""
        return (self._recorder or self._replayer).stream(request_of(request))

    def supports_tools(self, model: str | None = None) -> bool:
        """What the real provider says; in a replay always true."""
        return self._source.provider().supports_tools(model) if self._recorder is not None else True

    def supports_streaming(self, model: str | None = None) -> bool:
        """What the real provider says; in a replay always true."""
        return self._source.provider().supports_streaming(model) if self._recorder is not None else True

    async def get_models(self) -> list[str]:
        """Return the real provider's models; none in a replay."""
        return await self._source.provider().get_models() if self._recorder is not None else []

    async def save(self) -> None:
        """Write the cassette now; every call has already done so. In a replay there is nothing to write.

        Raises `LOUSHO_STORAGE_FAILED`.
        """
        if self._recorder is not None:
            await self._recorder.save()

    def _recorded(self, key: str) -> str | None:
        try:
            return self._replayer.cassette().provider.get(key)
        except CassetteMismatchError:
            # A missing or broken file is reported by the call that needs it.
            return None
