"""What `record_replay()` was asked for, checked once, and the real provider behind it, made only when it is needed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, cast

from lousho.core.errors import ConfigurationError, SDKError
from lousho.models.provider import LLMProvider, ModelRequest
from lousho.testing.cassettes.redaction import Redact, redact_keys
from lousho.testing.cassettes.requests import Normalize

Mode: TypeAlias = Literal["replay", "record", "auto"]
Match: TypeAlias = Literal["sequence", "request"]
ProviderSource: TypeAlias = "LLMProvider | Callable[[], LLMProvider] | None"

DEFAULT_HINT = "run with LOUSHO_RECORD=1, or set mode='record'"


class CassetteOptionError(ConfigurationError):
    """An option of `record_replay()` cannot be used. It reaches the caller of `send()` as it is.

    Source: testing page. Code: `LOUSHO_CONFIG_INVALID`.
    """

    never_wrap: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CassetteOptions:
    """The checked options of one cassette."""

    path: str
    mode: Literal["replay", "record"]
    match: Match
    normalize: Normalize | None
    redact: Redact
    """Takes keys out of a text, then runs the caller's own `redact`."""
    replay_timing: bool
    hint: str
    """How to record again, as a clause: `run with LOUSHO_RECORD=1, or ...`."""

    def normalized(self, request: ModelRequest) -> ModelRequest:
        """Return `request` after the caller's `normalize`. Raises `LOUSHO_CONFIG_INVALID`."""
        if self.normalize is None:
            return request
        result: Any = _called("normalize", self.normalize, request)
        if not isinstance(result, ModelRequest):
            raise CassetteOptionError(
                f"normalize() returned {type(result).__name__}; return the request, for example"
                " dataclasses.replace(request, messages=[...]).",
                field="normalize",
            )
        return result


def checked_options(
    *,
    cassette: str | os.PathLike[str],
    mode: str,
    match: str,
    normalize: Normalize | None,
    redact: Redact | None,
    replay_timing: bool,
    rerecord_hint: str | None,
) -> CassetteOptions:
    """Return the options of `record_replay()`. Raises `LOUSHO_CONFIG_INVALID`."""
    path: Any = os.fspath(cassette) if isinstance(cassette, (str, os.PathLike)) else cassette  # pyright: ignore[reportUnnecessaryIsInstance]
    if not isinstance(path, str) or not path.strip() or "\0" in path:
        raise CassetteOptionError("record_replay() needs cassette='path/to/file.json'.", field="cassette")
    _one_of("mode", mode, ("replay", "record", "auto"))
    _one_of("match", match, ("sequence", "request"))
    for name, function in (("normalize", normalize), ("redact", redact)):
        if function is not None and not callable(function):
            raise CassetteOptionError(f"record_replay(): {name} must be a function.", field=name)
    if rerecord_hint is not None and not isinstance(rerecord_hint, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise CassetteOptionError("record_replay(): rerecord_hint must be a text.", field="rerecord_hint")
    if mode == "auto":
        mode = "replay" if Path(path).exists() else "record"
    return CassetteOptions(
        path=path,
        mode="record" if mode == "record" else "replay",
        match="request" if match == "request" else "sequence",
        normalize=normalize,
        redact=redact_keys if redact is None else _both(redact),
        replay_timing=replay_timing,
        hint=DEFAULT_HINT if rerecord_hint is None else f"run {rerecord_hint}",
    )


class Source:
    """The real provider, or the function that makes it, which is called once and only when it is needed."""

    def __init__(self, source: ProviderSource) -> None:
        given = None if source is None or not _is_provider(source) else cast("LLMProvider", source)
        if source is not None and given is None and not callable(source):
            raise CassetteOptionError(
                "record_replay() takes a provider, a function that returns one, or None to replay only;"
                f" got {type(source).__name__}.",
                field="provider",
            )
        self.given: LLMProvider | None = given
        self._factory = cast("Callable[[], LLMProvider] | None", source) if given is None else None

    @property
    def empty(self) -> bool:
        """Whether there is nothing to record from."""
        return self.given is None and self._factory is None

    def provider(self) -> LLMProvider:
        """Return the real provider. Raises what the function raises, or `LOUSHO_CONFIG_INVALID`."""
        if self.given is None:
            made: object = self._factory() if self._factory is not None else None
            if not _is_provider(made):
                raise CassetteOptionError(
                    f"The function given to record_replay() returned {type(made).__name__}, which is no provider.",
                    field="provider",
                )
            self.given = cast("LLMProvider", made)
        return self.given


def _is_provider(value: object) -> bool:
    return not isinstance(value, type) and callable(getattr(value, "generate", None))


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if value in known:
        return
    from lousho.core.suggest import did_you_mean

    raise CassetteOptionError(
        f"record_replay(): {name} must be one of {', '.join(known)}; got {value!r}{did_you_mean(str(value), known)}.",
        field=name,
    )


def _both(own: Redact) -> Redact:
    def redact(text: str) -> str:
        result: Any = _called("redact", own, redact_keys(text))
        if not isinstance(result, str):
            raise CassetteOptionError(f"redact() returned {type(result).__name__}; return the text.", field="redact")
        return result

    return redact


def _called(name: str, function: Callable[[Any], Any], value: Any) -> Any:
    try:
        return function(value)
    except SDKError:
        raise
    except Exception as error:
        raise CassetteOptionError(
            f"{name}() raised {type(error).__name__}: {error}", field=name, cause=error
        ) from error
