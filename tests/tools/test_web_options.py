"""Making a web tool: its options are checked at once, and a misspelled one is no silent default."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable

import pytest

from lousho import Tool, create_http_tool, create_web_fetch_tool
from lousho.core.errors import ConfigurationError

Factory = Callable[..., Tool]
FACTORIES = [create_http_tool, create_web_fetch_tool]


@pytest.mark.spec("TOOL-67")
@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("timeoutMs", "timeout_ms"),
        ("timeout", "timeout_ms"),
        ("max_redirect", "max_redirects"),
        ("allowed_host", "allowed_hosts"),
        ("allowlist", "allowed_hosts"),
        ("block_hosts", "blocked_hosts"),
        ("allowPrivate", "allow_private"),
        ("useragent", "user_agent"),
    ],
)
@pytest.mark.parametrize("create", FACTORIES)
def test_an_unknown_option_is_refused_with_what_was_meant(create: Factory, option: str, meant: str):
    with pytest.raises(ConfigurationError) as caught:
        create(**{option: []})
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_INVALID", option)
    assert caught.value.detail == (f"{create.__name__}: '{option}' is not a known option (did you mean '{meant}'?).")


@pytest.mark.parametrize(
    ("create", "option"),
    [(create_http_tool, "max_chars"), (create_web_fetch_tool, "validate_ssl"), (create_web_fetch_tool, "zzz")],
)
def test_an_option_of_the_other_tool_is_unknown(create: Factory, option: str):
    with pytest.raises(ConfigurationError, match=f"'{option}' is not a known option"):
        create(**{option: 5})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *[("timeout_ms", value) for value in (0, -1, math.inf, math.nan, True, "30", None, 86_400_001)],
        *[("max_redirects", value) for value in (-1, 1.5, True, "3", None, 101)],
        *[("max_bytes", value) for value in (0, -1, 1.5, True, None, 2**31)],
        *[("user_agent", value) for value in ("", " ", "a\r\nX: y", "ü", "x" * 501, None, 5)],
        *[("resolver", value) for value in ("8.8.8.8", 5, [])],
    ],
)
@pytest.mark.parametrize("create", FACTORIES)
def test_a_bad_value_is_refused_when_the_tool_is_made(create: Factory, option: str, value: object):
    with pytest.raises(ConfigurationError) as caught:
        create(**{option: value})
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_INVALID", option)
    assert caught.value.detail.startswith(f"{create.__name__}: {option} must be")


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None, 10_000_001])
def test_a_bad_number_of_characters_is_refused(value: object):
    with pytest.raises(ConfigurationError, match="max_chars must be a whole number"):
        create_web_fetch_tool(max_chars=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0, 1, "no", None])
def test_turning_off_certificate_checks_takes_a_plain_false(value: object):
    with pytest.raises(ConfigurationError, match="validate_ssl must be True or False"):
        create_http_tool(validate_ssl=value)  # type: ignore[arg-type]


@pytest.mark.spec("TOOL-67")
def test_the_defaults_are_those_that_are_documented():
    defaults = {name: one.default for name, one in inspect.signature(create_web_fetch_tool).parameters.items()}
    assert defaults | {"unknown": None} == {
        "timeout_ms": 30_000,
        "max_redirects": 10,
        "max_bytes": 2 * 1024 * 1024,
        "max_chars": 50_000,
        "allowed_hosts": None,
        "blocked_hosts": (),
        "allow_private": (),
        "user_agent": "lousho-web-fetch",
        "resolver": None,
        "unknown": None,
    }


@pytest.mark.parametrize("create", FACTORIES)
def test_lists_of_hosts_may_be_any_collection(create: Factory):
    for given in (["a.test"], ("a.test",), {"a.test"}, frozenset(["a.test"])):
        assert create(allowed_hosts=given, blocked_hosts=given, allow_private=given).name
