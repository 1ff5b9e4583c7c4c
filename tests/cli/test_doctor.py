"""`lousho doctor`: what it looks at, what it says, and what it never says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lousho.diagnose.examine import examine

if TYPE_CHECKING:
    from conftest import RunLousho

SECRET = "sk-very-secret-1234567890"
LINE = re.compile(r"^\[( ok |warn|FAIL)\] [^:]+: .+$")

SPEC = """\
name: helper
prompt: You help.
provider:
  type: openai
  model: gpt-4.1-mini
tools:
  - current-date
"""


def checks(run_lousho: RunLousho, *args: str, **options: Any) -> dict[str, dict[str, Any]]:
    """The checks of `lousho doctor --json …` by their ids."""
    done = run_lousho(["doctor", "--json", *args], **options)
    document = json.loads(done.stdout)
    assert done.returncode == (0 if document["healthy"] else 1)
    return {check["id"]: check for check in document["checks"]}


@pytest.mark.parametrize(
    ("env", "agent"),
    [
        pytest.param({}, [], id="nothing set"),
        pytest.param({"OPENAI_API_KEY": SECRET, "ANTHROPIC_API_KEY": SECRET}, [], id="all keys"),
        pytest.param({"SSL_CERT_FILE": "/not/there.pem"}, ["missing.yaml"], id="failures"),
    ],
)
def test_every_line_has_a_status_every_problem_a_fix_and_the_end_a_summary(
    run_lousho: RunLousho, env: dict[str, str], agent: list[str]
) -> None:
    done = run_lousho(["doctor", *agent], env=env)

    title, empty, *lines, gap, summary = done.stdout.splitlines()
    assert (title, empty, gap, done.stderr) == ("lousho doctor", "", "", "")
    statuses = [line[1:5] for line in lines if line.startswith("[")]
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("["):
            assert LINE.match(line)
            assert line.startswith("[ ok ]") is not following.startswith("       ")
    assert statuses == sorted(statuses, key=["FAIL", "warn", " ok "].index)
    counts = [statuses.count(" ok "), statuses.count("warn"), statuses.count("FAIL")]
    words = ["ok", "warning" if counts[1] == 1 else "warnings", "failure" if counts[2] == 1 else "failures"]
    assert summary == ", ".join(f"{count} {word}" for count, word in zip(counts, words, strict=True))
    assert done.returncode == (1 if counts[2] else 0)


def test_the_json_form_is_one_versioned_document_that_says_the_same(run_lousho: RunLousho) -> None:
    document = json.loads(run_lousho(["doctor", "--json"]).stdout)
    lines = run_lousho(["doctor"]).stdout.splitlines()

    assert document["schemaVersion"] == 1
    assert document["agent"] is None
    assert [f"{check['name']}: {check['found']}" for check in document["checks"]] == [
        line[7:] for line in lines if line.startswith("[")
    ]
    assert all((check["fix"] is None) is (check["status"] == "ok") for check in document["checks"])


def test_python_and_the_dependencies_are_checked_against_the_distribution(run_lousho: RunLousho) -> None:
    found = checks(run_lousho)

    assert re.fullmatch(r"3\.\d+\.\d+\S* satisfies >=3\.11", found["python"]["found"])
    wanted, total = re.match(r"(\d+) of (\d+) installed", found["dependencies"]["found"]).groups()  # type: ignore[union-attr]
    assert int(total) > 10
    assert wanted == total


def test_an_old_python_and_a_wrong_dependency_fail_with_the_command_to_run(tmp_path: Path) -> None:
    from lousho.diagnose.machine import check_dependencies, check_extras, check_python

    old = check_python("3.10.9", ">=3.11")
    wrong = check_dependencies(["pytest>=999", "not-a-package-of-anybody>=1", "jinja2>=2"], tmp_path)
    extra = check_extras(["jinja2>=999; extra == 'paint'", "no-such-thing; extra == 'other'"], tmp_path)
    (tmp_path / "uv.lock").touch()
    with_uv = check_dependencies(["pytest>=999"], tmp_path)

    assert (old.status, old.found) == ("fail", "3.10.9 does not satisfy >=3.11")
    assert [(check.id, check.status, check.fix) for check in wrong] == [
        ("dependency.pytest", "fail", "pip install 'pytest>=999'"),
        ("dependency.not-a-package-of-anybody", "fail", "pip install 'not-a-package-of-anybody>=1'"),
        ("dependencies", "ok", None),
    ]
    assert [(check.id, check.status, check.fix) for check in extra] == [
        ("extra.paint", "warn", "pip install 'lousho[paint]'"),
        ("extras", "ok", None),
    ]
    assert "not installed: other" in extra[1].found
    assert with_uv[0].fix == "uv add 'pytest>=999'"


@pytest.mark.parametrize("args", [[], ["--json"]])
def test_keys_are_present_or_not_and_never_shown(run_lousho: RunLousho, tmp_path: Path, args: list[str]) -> None:
    (tmp_path / ".env").write_text(f"ANTHROPIC_API_KEY={SECRET}\n", encoding="utf-8")
    env = {
        "OPENAI_API_KEY": SECRET,
        "OPENAI_BASE_URL": f"http://user:{SECRET}@localhost:1234/v1?key={SECRET}#{SECRET}",
        "HTTPS_PROXY": f"http://me:{SECRET}@proxy.test:3128",
    }

    done = run_lousho(["doctor", *args], env=env)

    assert SECRET not in done.stdout + done.stderr
    assert "set, from the environment; OPENAI_BASE_URL http://localhost:1234/v1" in done.stdout
    assert "set, from .env" in done.stdout
    assert "HTTPS_PROXY http://proxy.test:3128" in done.stdout


def test_an_unset_key_is_a_warning_that_says_how_to_set_it(run_lousho: RunLousho) -> None:
    found = checks(run_lousho, env={"ANTHROPIC_API_KEY": "  "})

    for name, variable in (("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")):
        check = found[f"key.{name}"]
        assert (check["status"], check["found"]) == ("warn", "not set")
        assert check["fix"] == f"Set {variable} in your environment, e.g. export {variable}=<your key>"


def test_fix_lines_for_windows_are_for_powershell() -> None:
    from lousho.diagnose.machine import set_variable

    assert set_variable("OPENAI_API_KEY", "<your key>", windows=True) == (
        'Set OPENAI_API_KEY in your environment, e.g. $env:OPENAI_API_KEY="<your key>"'
    )


@pytest.mark.spec("ENV-01")
@pytest.mark.parametrize(
    ("env", "status", "found"),
    [
        ({}, "warn", "none"),
        ({"LOUSHO_MODEL": "mock/x"}, "ok", "mock/x (by LOUSHO_MODEL from the environment)"),
        ({"OPENAI_API_KEY": "k"}, "ok", "openai/gpt-4.1-mini (by OPENAI_API_KEY from the environment)"),
        ({"OPENAI_API_KEY": "k", "LOUSHO_MODEL": "mock/x"}, "ok", "mock/x (by LOUSHO_MODEL from the environment)"),
        ({"OPENAI_API_KEY": "k", "LOUSHO_MODEL": "anthropic/x"}, "fail", "anthropic/x needs ANTHROPIC_API_KEY"),
        ({"LOUSHO_MODEL": "gpt-4o"}, "fail", "is not a model string"),
        ({"LOUSHO_MODEL": "opnai/gpt-4o"}, "fail", "Did you mean 'openai/gpt-4o'?"),
    ],
)
def test_the_default_model_is_the_one_that_create_agent_would_pick(
    run_lousho: RunLousho, env: dict[str, str], status: str, found: str
) -> None:
    check = checks(run_lousho, env=env)["default-model"]

    assert check["status"] == status
    assert found in check["found"]


@pytest.mark.spec("CLI-11", "CLI-12")
def test_doctor_reads_dotenv_and_the_environment_wins(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"\xef\xbb\xbfLOUSHO_MODEL=mock/from-file\nOPENAI_API_KEY=k\n")

    alone = checks(run_lousho)
    with_one = checks(run_lousho, env={"LOUSHO_MODEL": "mock/from-environment"})

    assert alone["default-model"]["found"] == "mock/from-file (by LOUSHO_MODEL from .env)"
    assert with_one["default-model"]["found"] == "mock/from-environment (by LOUSHO_MODEL from the environment)"
    assert with_one["key.openai"]["found"] == "set, from .env"
    assert alone["dotenv"]["found"] == "set LOUSHO_MODEL, OPENAI_API_KEY"


def test_no_dotenv_is_no_matter(run_lousho: RunLousho) -> None:
    assert "dotenv" not in checks(run_lousho)


def test_an_agent_needs_the_key_of_its_model(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text(SPEC, encoding="utf-8")

    without = checks(run_lousho, "agent.yaml")
    with_key = checks(run_lousho, "agent.yaml", env={"OPENAI_API_KEY": SECRET})

    assert without["agent.key"]["status"] == "fail"
    assert "OPENAI_API_KEY" in without["agent.key"]["fix"]
    assert "--model mock/demo" in without["agent.key"]["fix"]
    assert without["agent"]["status"] == "ok"  # the rest of it was looked at all the same
    assert with_key["agent.model"]["found"] == "openai/gpt-4.1-mini (OPENAI_API_KEY from the environment)"
    assert "agent.key" not in with_key
    assert without["agent.key"]["code"] == "LOUSHO_PROVIDER_MISSING_API_KEY"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param("name: [unclosed\n", "agent.yaml:2", id="not YAML"),
        pytest.param("name: a\nprovider: {type: openai, model: m}\n", "'prompt'", id="a missing field"),
        pytest.param(SPEC + "  - currnt-date\n", "current-date", id="an unknown tool"),
    ],
)
def test_a_broken_spec_is_a_failure_with_its_place_and_fix(
    run_lousho: RunLousho, tmp_path: Path, content: str, says: str
) -> None:
    (tmp_path / "agent.yaml").write_text(content, encoding="utf-8")

    check = checks(run_lousho, "agent.yaml", env={"OPENAI_API_KEY": "k"})["agent"]

    assert check["status"] == "fail"
    assert says in check["found"]
    assert check["fix"]


@pytest.mark.spec("CLI-27")
@pytest.mark.parametrize(
    ("target", "code", "names"),
    [
        ("missing.yaml", "LOUSHO_SPEC_NOT_FOUND", "missing.yaml"),
        ("missing", "LOUSHO_CONFIG_INVALID", "lousho doctor: "),
        ("agent.txt", "LOUSHO_SPEC_UNSUPPORTED_FORMAT", "lousho doctor: "),
        ("agent.ts", "LOUSHO_SPEC_UNSUPPORTED_FORMAT", ".py"),
        ("empty.py", "LOUSHO_CONFIG_INVALID", "lousho doctor: "),
    ],
)
def test_a_target_that_is_none_is_a_failure_with_code_and_fix(
    run_lousho: RunLousho, tmp_path: Path, target: str, code: str, names: str
) -> None:
    for name in ("agent.txt", "agent.ts", "empty.py"):
        (tmp_path / name).write_text("", encoding="utf-8")

    check = checks(run_lousho, target)["agent"]

    assert (check["status"], check["code"]) == ("fail", code)
    assert names in check["found"]
    assert check["fix"]


def test_an_agent_directory_shows_its_tools_and_what_was_skipped(run_lousho: RunLousho, tmp_path: Path) -> None:
    run_lousho(["init", "x", "--template", "tools", "--provider", "mock", "--yes", "--no-install", "--no-git"])
    (tmp_path / "x" / "tools" / "_helper.py").write_text("", encoding="utf-8")

    done = run_lousho(["doctor", "x"])
    document = json.loads(run_lousho(["doctor", "x", "--json"]).stdout)

    assert done.returncode == 0
    assert "Tools: 3: add_note, delete_note, list_notes" in done.stdout
    assert document["agent"]["tools"] == ["add_note", "delete_note", "list_notes"]
    assert (document["agent"]["kind"], document["agent"]["model"]) == ("directory", "mock/demo")


def test_a_misspelt_part_and_missing_instructions_are_warnings_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "agent.json").write_text('{"model": "mock/demo"}', encoding="utf-8")
    (tmp_path / "instruction.md").write_text("Help.", encoding="utf-8")

    found = {check.id: check for check in examine(".", env={}, cwd=tmp_path, encoding="utf-8").checks}

    skipped, lacking = found["agent.skipped"], found["agent.instructions"]
    assert (skipped.status, lacking.status) == ("warn", "warn")
    assert skipped.fix is not None
    assert skipped.fix.startswith("Rename it to instructions.md")
    assert lacking.fix
    assert "agent.note" not in found


def test_a_rule_for_a_tool_that_is_not_there_warns(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "from lousho import tool\n"
        "@tool\n"
        "def delete_file(path: str) -> str:\n"
        "    '''Delete it.'''\n"
        "    return path\n"
        "agent = {'model': 'mock/demo', 'tools': [delete_file],\n"
        "         'permissions': [{'tool': 'delte_file', 'action': 'deny'}, {'tool': '*', 'action': 'ask'}]}\n",
        encoding="utf-8",
    )

    done = run_lousho(["doctor", "agent.py"])

    assert done.returncode == 0
    assert "[warn] Permission rule: deny 'delte_file' guards nothing: the agent has no such tool" in done.stdout
    assert "fix: Write 'delete_file', or remove the rule." in done.stdout


def test_a_certificate_file_that_is_not_there_fails(run_lousho: RunLousho) -> None:
    check = checks(run_lousho, env={"SSL_CERT_FILE": "/not/there.pem"})["network.SSL_CERT_FILE"]

    assert (check["status"], check["found"]) == ("fail", "/not/there.pem does not exist")


@pytest.mark.parametrize(("encoding", "status"), [("utf-8", "ok"), ("cp1252", "warn"), ("ascii", "warn")])
def test_a_console_that_cannot_print_everything_warns(run_lousho: RunLousho, encoding: str, status: str) -> None:
    assert checks(run_lousho, env={"PYTHONIOENCODING": encoding})["console"]["status"] == status


def test_it_is_quick_and_loads_no_provider(run_lousho: RunLousho) -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run_lousho(["doctor"])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)

    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0
