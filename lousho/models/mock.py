"""Models without a model: a script for tests, canned replies for demos.

`mock_model(script)` says exactly what you wrote down, turn by turn, and remembers every request; it is for tests.
`create_mock_provider(responses=[...])`, which is in `lousho.models.canned`, answers anything with canned text. Neither
touches the network. Source: testing page.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, cast

from lousho.core.errors import ConfigurationError, SDKError
from lousho.core.messages import Message, text_of
from lousho.models.canned import MockLLMProvider, create_mock_provider
from lousho.models.chunks import chunks_of
from lousho.models.provider import ModelChunk, ModelRequest, ModelResponse
from lousho.models.requests import request_of
from lousho.models.script import Turn, parse_turn, turn_response
from lousho.models.snapshots import RecordedRequest, Recorder

__all__ = [
    "MockLLMProvider",
    "MockModel",
    "MockTurn",
    "ScriptExhaustedError",
    "create_mock_provider",
    "mock_model",
]

MockTurn: TypeAlias = "str | Mapping[str, Any] | Callable[[RecordedRequest], str | Mapping[str, Any] | Awaitable[str | Mapping[str, Any]]]"
"""One turn: the text, the keys of a turn, or a function of the request that returns one of the two."""

_SHOWN_CHARS = 300


class ScriptExhaustedError(SDKError):
    """A scripted model was called more often than the script has turns. Code: `LOUSHO_TEST_FAILED`.

    It reaches the caller of `send()` as it is: the test is wrong, not the provider. Source: testing page.
    """

    default_code = "LOUSHO_TEST_FAILED"
    never_wrap: ClassVar[bool] = True


def mock_model(script: Sequence[MockTurn], *, on_exhausted: Literal["error", "repeat-last"] | None = None) -> MockModel:
    """Return a provider that plays `script`, one element a model call, and records every request.

    A turn is a text, or a mapping with any of `text`, `tool_calls` (`[{name, args?, id?}]`), `error` (an exception to
    raise), `usage` (`{input_tokens, output_tokens}`), `finish_reason`, `reasoning` and `delay_ms`; camelCase names are
    taken too. A function turn, sync or async, gets the request. One call more than turns raises `LOUSHO_TEST_FAILED`;
    `on_exhausted='repeat-last'` plays the last turn for ever instead. Raises `LOUSHO_CONFIG_INVALID` for a turn it
    does not understand. Source: testing page.
    """
    return MockModel(script, on_exhausted=on_exhausted)


class MockModel:
    """The scripted provider that `mock_model()` returns. Source: testing page."""

    name = "mock"
    default_model = "mock-model"

    def __init__(
        self, script: Sequence[MockTurn], *, on_exhausted: Literal["error", "repeat-last"] | None = None
    ) -> None:
        if isinstance(script, (str, bytes, Mapping)) or not isinstance(script, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(
                "mock_model() takes a list of turns, for example mock_model(['Hello!']).", field="script"
            )
        if on_exhausted not in (None, "error", "repeat-last"):
            raise ConfigurationError(
                f"on_exhausted must be 'error' or 'repeat-last'; got {on_exhausted!r}.", field="on_exhausted"
            )
        self._turns: list[Turn | Callable[[RecordedRequest], Any]] = [
            turn if callable(turn) else parse_turn(turn, f"script[{index}]") for index, turn in enumerate(script)
        ]
        self._repeats = on_exhausted == "repeat-last"
        self._recorder = Recorder()
        self._calls: list[RecordedRequest] = []
        self._ids = 0

    @property
    def calls(self) -> tuple[RecordedRequest, ...]:
        """Every request so far, in order, as it was when it was sent; failed calls too."""
        return tuple(self._calls)

    @property
    def last_call(self) -> RecordedRequest | None:
        """The most recent request, or `None` before the first."""
        return self._calls[-1] if self._calls else None

    def reset(self) -> None:
        """Start the script over and forget the recorded calls."""
        self._calls.clear()
        self._recorder = Recorder()
        self._ids = 0

    def assert_exhausted(self) -> None:
        """Raise `LOUSHO_TEST_FAILED` when scripted turns were not used."""
        used, total = len(self._calls), len(self._turns)
        if used < total:
            raise SDKError(
                f"mock_model: {used} of {total} scripted turns {'was' if used == 1 else 'were'} used;"
                f" turn {used + 1} and what follows it never ran.",
                code="LOUSHO_TEST_FAILED",
            )

    async def generate(self, request: ModelRequest | Mapping[str, Any]) -> ModelResponse:
        """Play the next turn. A plain mapping such as `{'messages': [{'role': 'user', 'content': 'hi'}]}` will do."""
        call = self._recorder.snapshot(request if isinstance(request, ModelRequest) else request_of(request))
        number = len(self._calls)
        self._calls.append(call)
        turn = self._turn(number, call)
        if not isinstance(turn, Turn):
            turn = await _computed(turn, call, number)
        if turn.delay_ms:
            from lousho.models.waiting import pause

            await pause(turn.delay_ms, call.signal)
        if turn.error is not None:
            raise turn.error
        return turn_response(turn, self._next_id)

    async def stream(self, request: ModelRequest | Mapping[str, Any]) -> AsyncIterator[ModelChunk]:
        """Play the next turn as chunks: the text word by word, then the tool calls, then the finish."""
        for chunk in chunks_of(await self.generate(request), by_words=True):
            yield chunk

    def supports_tools(self, model: str | None = None) -> bool:
        """True: a script can call any tool."""
        return True

    def supports_streaming(self, model: str | None = None) -> bool:
        """True: every turn can be streamed."""
        return True

    async def get_models(self) -> list[str]:
        """Return the one model there is."""
        return [self.default_model]

    def _turn(self, number: int, call: RecordedRequest) -> Turn | Callable[[RecordedRequest], Any]:
        turns = self._turns
        if number < len(turns):
            return turns[number]
        if self._repeats and turns:
            return turns[-1]
        raise ScriptExhaustedError(
            f"mock_model: unexpected model call {number + 1}; the script has {len(turns)}"
            f" turn{'' if len(turns) == 1 else 's'}. The last message of the request is {_shown(call.messages)}."
            " Add a turn to the script, or pass on_exhausted='repeat-last'."
        )

    def _next_id(self) -> str:
        self._ids += 1
        return f"call_{self._ids}"


async def _computed(function: Callable[[RecordedRequest], Any], call: RecordedRequest, number: int) -> Turn:
    value = function(call)
    if isinstance(value, Awaitable):
        value = await cast("Awaitable[Any]", value)
    return parse_turn(value, f"the turn that the function for call {number + 1} returned")


def _shown(messages: Sequence[Message]) -> str:
    if not messages:
        return "missing: it has no messages"
    last = messages[-1]
    text = text_of(last)
    if last.tool_calls:
        text += f" [calls {', '.join(call.name for call in last.tool_calls)}]"
    return f"{last.role}: {text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + '...'!r}"
