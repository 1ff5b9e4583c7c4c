"""`SDKError`, the base of every coded exception.

It is a module of its own so that the error families (`tool_errors`, `provider_errors`) and the face that shows them all
(`errors`) can build on it without importing each other. Import from `lousho.core.errors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from lousho.core.error_codes import docs_url, hint_for

if TYPE_CHECKING:
    from lousho.core.usage import RunUsage


class SDKError(Exception):
    """A failure the SDK raises on purpose: a stable code, what happened and how to fix it.

    `str(error)` is the detail and, on a line of its own, `[CODE] hint (docs)`. Branch on `code`, never on the text.
    Raise a subclass where one fits. `help_line=False` keeps the second line off this instance, for failures whose text
    is shown to a model or a client as it is. Source: errors page.
    """

    default_code: ClassVar[str] = "LOUSHO_GENERIC_ERROR"
    bare_message: ClassVar[bool] = False
    """True for the families whose `message` a model reads: only `str(error)` then has the help line."""

    usage: RunUsage | None = None
    """What the failed run had spent, sub-agents included; None when it failed before it started."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        cause: BaseException | None = None,
        help_line: bool = True,
    ) -> None:
        super().__init__(message)
        self.detail: str = message
        """What happened, without the help line."""
        self.code: str = code or self.default_code
        """The stable name of this failure, `LOUSHO_<AREA>_<NAME>`."""
        self._help_line = help_line
        self._cause = cause
        if cause is not None:
            self.__cause__ = cause

    @property
    def cause(self) -> BaseException | None:
        """The failure underneath: the one given, else the one of `raise ... from ...`."""
        return self._cause or self.__cause__

    @property
    def hint(self) -> str:
        """One sentence on how to fix it."""
        return hint_for(self.code)

    @property
    def docs(self) -> str:
        """The link to the section of this code."""
        return docs_url(self.code)

    @property
    def message(self) -> str:
        """The text of the error; with the help line except in the tool and provider families."""
        return self.detail if self.bare_message else str(self)

    def __str__(self) -> str:
        if not self._help_line:
            return self.detail
        return f"{self.detail}\n[{self.code}] {self.hint} ({self.docs})"

    def to_dict(self) -> dict[str, object]:
        """Return `name`, `message` (without the help line) and `code`: never usage, cause or traceback."""
        return {"name": type(self).__name__, "message": self.detail, "code": self.code}

    def __reduce__(self) -> tuple[object, ...]:
        # The default would call the subclass's __init__ with `args`, which have another shape than its parameters.
        state = dict(self.__dict__)
        state["_cause"] = _portable(self.cause)
        return (_rebuild, (type(self), self.args, state))


def _rebuild(cls: type[SDKError], args: tuple[object, ...], state: dict[str, object]) -> SDKError:
    """Make a copied or unpickled error without running its `__init__`."""
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    cause = state["_cause"]
    if isinstance(cause, BaseException):
        error.__cause__ = cause
    return error


def _portable(cause: BaseException | None) -> BaseException | None:
    """Return `cause` if it survives pickling, else a stand-in with its name and text.

    Exceptions of other libraries often cannot be rebuilt, and would take the coded error down with them on the way out
    of a worker process.
    """
    if cause is None:
        return None
    import pickle

    try:
        pickle.loads(pickle.dumps(cause))  # noqa: S301 - made by this very call, no outside data
    except Exception:  # noqa: BLE001 - whatever a foreign __reduce__ raises means the same here
        return Exception(f"{type(cause).__name__}: {cause}")
    return cause


def bare_message(error: BaseException) -> str:
    """Return what a model, an event or a log line shows of `error`: never the help line, never empty.

    Source: errors page.
    """
    try:
        text = str(error.detail if isinstance(error, SDKError) else error)
    except Exception:  # noqa: BLE001 - an exception whose own text fails must not hide that it was raised
        text = ""
    return text or type(error).__name__


def original_error(error: BaseException) -> BaseException:
    """Return the error a person should see: the first real failure inside nested exception groups, else `error`.

    Cancellations and exits count only when a group holds nothing else.
    """
    leaves: list[BaseException] = []
    waiting = [error]
    while waiting:
        current = waiting.pop()
        if isinstance(current, BaseExceptionGroup):
            waiting.extend(reversed(cast("BaseExceptionGroup[BaseException]", current).exceptions))
        else:
            leaves.append(current)
    return next((leaf for leaf in leaves if isinstance(leaf, Exception)), leaves[0])
