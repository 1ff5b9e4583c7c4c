"""Suggestions for names that are not known."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lousho.core.suggest import did_you_mean, nearest, suggestion, unknown_key_message

OPTIONS = ["model", "provider", "instructions", "max_steps", "tools", "name", "needs_approval", "temperature"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        pytest.param("modle", "model", id="two letters swapped"),
        pytest.param("mdel", "model", id="a letter missing"),
        pytest.param("modell", "model", id="a letter too many"),
        pytest.param("tool", "tools", id="the singular"),
        pytest.param("max_stpes", "max_steps", id="a typo in a long name"),
        pytest.param("maxSteps", "max_steps", id="another case"),
        pytest.param("max-steps", "max_steps", id="another separator"),
        pytest.param("MODEL", "model", id="capitals"),
        pytest.param("temp", "temperature", id="a beginning"),
        pytest.param("instruction", "instructions", id="the last letter missing"),
        pytest.param("zzz", None, id="nothing close"),
        pytest.param("x", None, id="one letter"),
        pytest.param("", None, id="empty"),
        pytest.param("___", None, id="only separators"),
        pytest.param("mode" * 100, None, id="far too long"),
    ],
)
def test_the_nearest_name_is_the_one_that_was_meant(written: str, meant: str | None):
    assert nearest(written, OPTIONS) == meant


def test_a_beginning_that_fits_two_names_suggests_neither():
    assert nearest("foo", ["foobarbaz", "fooquxquux"]) is None


def test_the_closer_of_two_names_wins():
    assert nearest("opnai", ["ollama", "openai", "openrouter"]) == "openai"


def test_an_unknown_key_is_named_with_what_was_meant():
    assert unknown_key_message("modle", OPTIONS) == "'modle' is not a known option (did you mean 'model'?)"
    assert unknown_key_message("zzz", OPTIONS) == "'zzz' is not a known option"
    assert (
        unknown_key_message("modle", ["model"], noun="field") == "'modle' is not a known field (did you mean 'model'?)"
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("maxOutputTokens", "model_settings.max_tokens"),
        ("max_output_tokens", "model_settings.max_tokens"),
        ("system", "instructions"),
        ("require_approval", "needs_approval"),
        ("require_aproval", "needs_approval"),
        ("modle", "model"),
        ("zzz", None),
    ],
)
def test_names_of_other_systems_lead_to_the_name_used_here(written: str, meant: str | None):
    aliases = {
        "max_output_tokens": "model_settings.max_tokens",
        "system": "instructions",
        "require_approval": "needs_approval",
    }
    assert suggestion(written, OPTIONS, aliases) == meant
    assert did_you_mean(written, OPTIONS, aliases) == ("" if meant is None else f" (did you mean '{meant}'?)")


def test_a_huge_key_is_shortened_and_costs_nothing():
    started = time.perf_counter()
    message = unknown_key_message("k" * 1_000_000, OPTIONS * 100)
    assert len(message) < 200
    assert time.perf_counter() - started < 10


@given(st.text(max_size=40), st.lists(st.text(max_size=20), max_size=8))
def test_a_suggestion_is_always_one_of_the_candidates(written: str, candidates: list[str]):
    found = nearest(written, candidates)
    assert found is None or found in candidates


@given(st.lists(st.from_regex(r"[a-z][a-z_]{3,15}[a-z]", fullmatch=True), min_size=1, max_size=8, unique=True))
def test_a_known_name_suggests_itself(names: list[str]):
    for name in names:
        found = nearest(name, names)
        assert found is not None
        assert found.replace("_", "") == name.replace("_", "")
