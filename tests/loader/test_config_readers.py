"""YAML and JSON as configuration: what a text means, where it is wrong, and that nothing makes the readers stumble."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lousho.loader.json_reader import read_json
from lousho.loader.text_files import FileProblem, read_text
from lousho.loader.yaml_reader import read_yaml

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)


def problem(read: Any, text: str) -> str:
    with pytest.raises(FileProblem) as caught:
        read(text)
    return caught.value.located("f")


@pytest.mark.spec("BEY-05")
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("12:30", "12:30"),
        ("012", "012"),
        ("-007", "-007"),
        ("1_000", "1_000"),
        ("2026-11-30", "2026-11-30"),
        ("1.2.3", "1.2.3"),
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("+12", 12),
        ("0o14", 12),
        ("0xFF", 255),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-1.50", -1.5),
        ("'12'", "12"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("!!float 12", 12.0),
        ("! 12", "12"),
    ],
)
def test_plain_yaml_words_mean_what_the_core_schema_says(written: str, value: object):
    found = read_yaml(f"a: {written}\n").value
    assert isinstance(found, dict)
    assert (found["a"], type(found["a"])) == (value, type(value))


def test_keys_are_text_as_written():
    assert read_yaml("404: a\ntrue: b\nno: c\n'404x': d\n").value == {"404": "a", "true": "b", "no": "c", "404x": "d"}


@pytest.mark.spec("BEY-05")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("a: 1\nb:\n  c: 1\n  c: 2\n", "f:4:3: duplicate key 'c' (first on line 3)", id="a key twice"),
        pytest.param("404: a\n'404': b\n", "f:2:1: duplicate key '404'", id="the same key in quotes"),
        pytest.param("x: &x {a: 1}\ny:\n  <<: *x\n", "f:3:3: merge keys", id="a merge key"),
        pytest.param("a: *x\n", "f:1:4: the alias '*x' stands before its anchor", id="an alias of nothing"),
        pytest.param("a: &x [*x]\n", "f:1:8: the alias '*x' stands inside its own anchor", id="an alias of itself"),
        pytest.param("a: !!python/object/apply:os.system [ls]\n", "f:1:4: the tag", id="a Python tag"),
        pytest.param("a: !env HOME\n", "f:1:4: the tag '!env' is not supported", id="a tag of its own"),
        pytest.param("a: !!int x\n", "f:1:4: 'x' is not a value of the type !!int", id="a wrong tag"),
        pytest.param("a: 1\n---\nb: 2\n", "f:2:1: a second document", id="two documents"),
        pytest.param("? [a]\n: b\n", "f:1:3: a list or mapping cannot be a key", id="a list as key"),
        pytest.param("a: 1e999\n", "f:1:4: the number 1e999 is too large", id="beyond a float"),
        pytest.param(f"a: {'9' * 5000}\n", "f:1:4: a number of 5,000 characters", id="a very long number"),
        pytest.param("a: @b\n", "f:1:4: found character", id="a reserved character"),
        pytest.param("a: \x07\n", "f:1:4: the character #x0007 is not allowed", id="a control character"),
        pytest.param("ä: 😀: x\n", "f:1:5: mapping values", id="columns count characters"),
    ],
)
def test_yaml_that_is_refused_says_where(text: str, says: str):
    assert problem(read_yaml, text).startswith(says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param('{"a": {"b": 1, "b": 2}}', "f:1:16: duplicate key 'b' (first on line 1)", id="a key twice"),
        pytest.param('{"a": 01}', "f:1:7: this is not a JSON number", id="a leading zero"),
        pytest.param('{"a": NaN}', "f:1:7: expected a value, found 'NaN'", id="not a number"),
        pytest.param('{"a": undefined}', "f:1:7: expected a value, found 'undefined'", id="undefined"),
        pytest.param('{"a": "x', "f:1:7: unterminated string", id="an open text"),
        pytest.param('{"a": "\\ud800"}', "f:1:7: half a surrogate pair", id="half a character"),
        pytest.param("[1\n2]", "f:2:1: expected ',' or ']', found '2'", id="no comma"),
        pytest.param('{"a" 1}', "f:1:6: expected ':' after the key", id="no colon"),
        pytest.param("{} x", "f:1:4: nothing may follow the value", id="more after the end"),
        pytest.param("[1,", "f:1:4: expected a value, but the file ends", id="cut off"),
        pytest.param("# x\n{}", "JSON has no comments", id="a comment"),
    ],
)
def test_json_that_is_refused_says_where(text: str, says: str):
    assert says in problem(read_json, text)


@given(JSON_VALUES)
def test_json_means_what_the_standard_library_says(value: object):
    text = json.dumps(value, indent=1)
    expected = json.loads(text)
    try:
        found = read_json(text).value
    except FileProblem as refused:
        assert "surrogate" in refused.text or "characters is too long" in refused.text
    else:
        assert found == expected


@given(JSON_VALUES)
def test_yaml_reads_what_was_dumped(value: object):
    import yaml

    text = yaml.safe_dump(value, allow_unicode=True, default_style='"')
    try:
        read_yaml(text)
    except FileProblem as refused:
        # Quoted numbers carry the tag !!int; keys that are lists, huge numbers and control characters are refused.
        assert refused.text


@given(st.binary(max_size=300))
def test_random_bytes_are_a_value_or_a_sentence(tmp_path_factory: pytest.TempPathFactory, data: bytes):
    file = tmp_path_factory.getbasetemp() / f"fuzz-{os.getpid()}"
    file.write_bytes(data)
    for read in (read_yaml, read_json):
        try:
            read(read_text(file))
        except FileProblem as refused:
            assert refused.text
            assert "\n" not in refused.text


@given(st.text(alphabet="[]{}:,-&*!|>'\"#%@ \n\tab0.~?<", max_size=60))
def test_random_yaml_is_a_value_or_a_sentence(text: str):
    try:
        read_yaml(text)
    except FileProblem as refused:
        assert refused.text


@pytest.mark.parametrize(
    ("read", "text"),
    [
        pytest.param(read_yaml, "[" * 200_000, id="yaml lists"),
        pytest.param(read_yaml, "{a: " * 200_000, id="yaml mappings"),
        pytest.param(read_yaml, "\n".join(f"{' ' * n}a:" for n in range(900)), id="yaml blocks"),
        pytest.param(read_yaml, "- " * 200_000, id="yaml dashes"),
        pytest.param(read_yaml, "? " * 200_000, id="yaml question marks"),
        pytest.param(read_json, "[" * 200_000, id="json lists"),
        pytest.param(read_json, '{"a":' * 200_000, id="json objects"),
        pytest.param(read_yaml, "- x\n" * 200_000, id="yaml, many values"),
        pytest.param(read_json, f"[{'0,' * 200_000}0]", id="json, many values"),
        pytest.param(
            read_yaml,
            "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
            + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)),
            id="yaml aliases that multiply",
        ),
    ],
)
def test_a_text_that_would_explode_is_refused_at_once(read: Any, text: str):
    started = time.perf_counter()
    said = problem(read, text)
    assert any(word in said for word in ("levels", "values", "depth", "cannot be a key")), said
    assert time.perf_counter() - started < 10


def test_an_alias_is_a_copy():
    value: Any = read_yaml("a: &x {n: [1]}\nb: *x\n").value
    value["a"]["n"].append(2)
    assert value["b"] == {"n": [1]}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param("ü: 1".encode("latin-1"), "is not UTF-8 text (byte 0xfc on line 1); save it as UTF-8", id="latin"),
        pytest.param("a: 1\n".encode("utf-16"), "is UTF-16 text; save it as UTF-8", id="utf-16"),
        pytest.param(b"#" * 1_000_001, "is larger than 1,000,000 bytes", id="too large"),
    ],
)
def test_a_file_that_is_no_small_utf8_text(tmp_path: Path, data: bytes, says: str):
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(FileProblem) as caught:
        read_text(tmp_path / "f")
    assert says in caught.value.text


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path: Path):
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbfa: 1")
    assert read_text(tmp_path / "f") == "a: 1"


def test_what_is_not_a_file_is_not_waited_for(tmp_path: Path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    said: dict[str, str] = {}
    for name in ("pipe", "loop", "folder", "absent"):
        with pytest.raises(FileProblem) as caught:
            read_text(tmp_path / name)
        said[name] = caught.value.text
    assert said == {
        "pipe": "is not a regular file",
        "loop": "cannot be read: Too many levels of symbolic links",
        "folder": "is a directory, not a file",
        "absent": "cannot be read: No such file or directory",
    }
