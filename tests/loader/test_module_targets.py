"""Python modules as targets: which object of a module is the agent, and how its imports resolve."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from agent_files import write_files

from lousho import ConfigurationError, SDKError
from lousho.loader.target import Target, load_target

BUILT = "from lousho import create_agent\n\nagent = create_agent(model='mock/m', name='{}')\n"


@pytest.fixture
def module(tmp_path: Path) -> Callable[..., Target]:
    """Write `bot.py` (and other files) into a folder and load it for `chat`."""

    def load(source: str, files: dict[str, str] | None = None, command: str = "chat") -> Target:
        write_files(tmp_path / "app", {"bot.py": source, **(files or {})})
        return load_target(tmp_path / "app" / "bot.py", command=command)

    return load


@pytest.mark.spec("CLI-26")
@pytest.mark.parametrize(
    ("source", "name"),
    [
        pytest.param(BUILT.format("a"), "a", id="a built agent called agent"),
        pytest.param("agent = {'model': 'mock/m', 'name': 'b'}\n", "b", id="options called agent"),
        pytest.param("config = {'model': 'mock/m', 'name': 'c'}\n", "c", id="options called config"),
        pytest.param(BUILT.format("d") + "config = {'model': 'mock/m', 'name': 'x'}\n", "d", id="agent before config"),
        pytest.param(BUILT.format("e").replace("agent =", "support ="), "e", id="the one agent"),
        pytest.param("WORDS = {'a': 1}\noptions = {'model': 'mock/m', 'name': 'f'}\n", "f", id="the one mapping of options"),
        pytest.param("from shared import agent as _imported\n" + BUILT.format("g").replace("agent =", "mine ="), "g", id="imported ones do not count"),
        pytest.param("from shared import agent\n", "shared", id="an imported agent by its name"),
        pytest.param(BUILT.format("h") + "other = agent\n", "h", id="one agent with two names"),
    ],
)  # fmt: skip
def test_the_agent_of_a_module_is_found(module: Callable[..., Target], source: str, name: str):
    target = module(source, {"shared.py": BUILT.format("shared")})
    assert (target.kind, target.agent.name, target.notes) == ("module", name, [])


@pytest.mark.parametrize(
    ("source", "says"),
    [
        pytest.param("x = 1\n", "bot.py' defines no agent. Write agent = create_agent(...)", id="nothing"),
        pytest.param("", "bot.py' defines no agent", id="empty"),
        pytest.param("def agent(): ...\n", "('agent' is a function; assign what it returns)", id="a function"),
        pytest.param("agent = 3\n", "('agent' is of the type int)", id="a number"),
        pytest.param("agent = {1: 2}\n", "the keys of 'agent' must be names of options", id="keys that are no names"),
        pytest.param(BUILT.format("a").replace("agent =", "one =") + BUILT.format("b").replace("agent =", "two ="), "more than one agent: one, two", id="two"),
        pytest.param("import gone_away\n", "bot.py:1: there is no module 'gone_away'. Install it with: pip install gone_away", id="a package"),
        pytest.param("x = [\n", "bot.py:1:5: SyntaxError: '[' was never closed in `x = [`", id="syntax"),
        pytest.param("def f()\n  pass\n", "SyntaxError: expected ':' in `def f()`", id="the line itself"),
        pytest.param("def f():\n    raise ValueError('bad\\nworse')\n\n\nf()\n", "bot.py:2: ValueError: bad", id="a failure"),
        pytest.param("raise SystemExit('stop')\n", "bot.py:1: the file calls sys.exit('stop')", id="exit"),
        pytest.param("from lousho import create_agent\nagent = create_agent(model='mock/m', max_step=1)\n", "bot.py:2: create_agent: 'max_step' is not a known option", id="an option"),
    ],
)  # fmt: skip
def test_a_module_without_a_usable_agent_says_why(module: Callable[..., Target], source: str, says: str):
    with pytest.raises(ConfigurationError) as caught:
        module(source, command="dev")
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"
    assert caught.value.detail.startswith("lousho dev: ")
    assert says in caught.value.detail


def test_options_that_no_agent_takes_are_refused(module: Callable[..., Target]):
    with pytest.raises(ConfigurationError, match="did you mean 'max_steps'"):
        module("agent = {'model': 'mock/m', 'max_step': 3}\n")


def test_a_model_without_its_key_keeps_its_code_whoever_asked_for_it(module: Callable[..., Target]):
    for source in ("agent = {'model': 'openai/gpt-4.1-mini'}\n", BUILT.format("a").replace("mock/m", "openai/x")):
        with pytest.raises(ConfigurationError) as caught:
            module(source)
        assert caught.value.code == "LOUSHO_PROVIDER_MISSING_API_KEY"
        assert "--model mock/demo" in caught.value.detail


def test_files_beside_the_module_can_be_imported_at_load_and_later(module: Callable[..., Target]):
    source = """
        import helper
        from pkg import deep
        from .helper import NAME
        from lousho import create_agent, tool


        @tool
        def late() -> str:
            \"\"\"Import late.\"\"\"
            import other

            return other.X


        agent = create_agent(model="mock/m", name=helper.NAME + deep.NAME + NAME, tools=[late])
    """
    files = {
        "helper.py": "NAME = 'h'\n",
        "pkg/__init__.py": "",
        "pkg/deep.py": "from pkg.more import NAME\n",
        "pkg/more.py": "NAME = 'd'\n",
        "other.py": "X = 'x'\n",
    }
    target = module(source, files)
    assert (target.agent.name, target.agent.tools["late"]()) == ("hdh", "x")
    assert {"helper", "pkg", "other"} & set(sys.modules) == set()
    assert [file.name for file in target.manifest.files] == ["bot.py", "helper.py", "__init__.py", "deep.py", "more.py"]


def test_a_module_inside_a_package_imports_like_one(tmp_path: Path):
    write_files(
        tmp_path,
        {
            "app/__init__.py": "",
            "app/bots/__init__.py": "",
            "app/names.py": "NAME = 'n'\n",
            "app/bots/near.py": "NEAR = 'r'\n",
            "app/bots/bot.py": "from ..names import NAME\nfrom app.names import NAME as SAME\nimport near\n"
            "from .near import NEAR\nagent = {'model': 'mock/m', 'name': NAME + SAME + near.NEAR + NEAR}\n",
        },
    )
    assert load_target(tmp_path / "app/bots/bot.py", command="chat").agent.name == "nnrr"


def test_loading_again_runs_the_edited_module_and_its_helpers(tmp_path: Path):
    folder = write_files(
        tmp_path, {"bot.py": "import h\nagent = {'model': 'mock/m', 'name': h.N}\n", "h.py": "N = 'a'\n"}
    )
    first = load_target(folder / "bot.py", command="chat")
    (folder / "h.py").write_text("N = 'b'\n", encoding="utf-8")
    second = load_target(folder / "bot.py", command="chat")
    assert (first.agent.name, second.agent.name) == ("a", "b")


@pytest.mark.parametrize("name", ["my-agent.py", "agent one.py", "123.py", "größe.py", "import.py", "json.py"])
def test_any_file_name_will_do(tmp_path: Path, name: str):
    write_files(
        tmp_path, {name: "from helper import N\nagent = {'model': 'mock/m', 'name': N}\n", "helper.py": "N = 'n'\n"}
    )
    assert load_target(tmp_path / name, command="chat").agent.name == "n"


def test_the_agent_py_of_a_directory_says_what_it_leaves_out(tmp_path: Path):
    folder = write_files(tmp_path / "desk", {"agent.py": "config = {'model': 'mock/m'}\n", "instructions.md": "x"})
    (note,) = load_target(folder / "agent.py", command="chat").notes
    assert f"pass the directory '{folder}'" in note


def test_the_advice_for_a_built_agent_in_a_directory_leads_somewhere(tmp_path: Path):
    built = "from lousho import create_agent\nagent = create_agent(model='mock/m')\n"
    folder = write_files(tmp_path / "desk", {"agent.py": built, "instructions.md": "x"})

    with pytest.raises(SDKError) as refused:
        load_target(folder, command="chat")
    (note,) = load_target(folder / "agent.py", command="chat").notes

    assert "without instructions.md and tools/" in refused.value.detail
    assert "write its options as config = {...} instead of a built agent" in note
