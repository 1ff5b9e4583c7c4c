"""The Python files of an agent: which tools they give, how they import each other, and that loads do not meet."""

from __future__ import annotations

import gc
import subprocess
import sys
import traceback
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_files import tool_source, write_files

from lousho import ConfigurationError, load_agent_dir, load_agent_dir_sync, resolve_agent_dir_sync
from lousho.loader.target import load_target
from lousho.testing import mock_model

AgentFolder = Callable[..., Path]

TWO_TOOLS = tool_source("one") + tool_source("two").split("\n\n\n", 1)[1]


def names(folder: Path) -> list[str]:
    return resolve_agent_dir_sync(folder).manifest.tools


def answers(folder: Path, **overrides: Any) -> dict[str, Any]:
    return {one.name: one() for one in resolve_agent_dir_sync(folder, **overrides).config["tools"]}


@pytest.mark.spec("DIR-21")
@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        pytest.param({"tools/a.py": tool_source("one")}, ["one"], id="one"),
        pytest.param({"tools/a.py": TWO_TOOLS}, ["one", "two"], id="several"),
        pytest.param({"tools/a.py": TWO_TOOLS + "\ntools = [two, one]\n"}, ["one", "two"], id="and the same in a list"),
        pytest.param({"tools/a.py": TWO_TOOLS + "\nalias = one\nx = 3\nWORDS = ['a']\n"}, ["one", "two"], id="other names"),
        pytest.param(
            {"tools/a.py": "from lousho import define_tool\n\n\ndef make(n):\n    return define_tool(name=n, description=n, execute=lambda: n)\n\n\ntools = [make('p'), make('q')]\n"},
            ["p", "q"], id="only a list",
        ),
        pytest.param(
            {"tools/a.py": "from ._shared import helper\n" + tool_source("one"), "tools/_shared.py": tool_source("helper")},
            ["one"], id="an imported tool is not the file's",
        ),
        pytest.param(
            {"tools/a.py": "from ._shared import *\n" + tool_source("one"), "tools/_shared.py": tool_source("helper")},
            ["one"], id="nor one of an import *",
        ),
        pytest.param(
            {"tools/a.py": "from ._shared import helper\n__all__ = ['helper']\n", "tools/_shared.py": tool_source("helper")},
            ["helper"], id="unless __all__ lists it",
        ),
        pytest.param(
            {"tools/a.py": "from lib import make\n\nsend = make('send')\n",
             "lib.py": "from lousho import define_tool\n\n\ndef make(n):\n    return define_tool(name=n, description=n, execute=lambda: n)\n"},
            ["send"], id="what a factory elsewhere made is",
        ),
        pytest.param(
            {"tools/a.py": "from .b import b\n" + tool_source("one"), "tools/b.py": tool_source("b")},
            ["one", "b"], id="tools that use each other",
        ),
        pytest.param(
            {"tools/__init__.py": "x = 1\n", "tools/_private.py": "1 / 0\n", "tools/notes.md": "x", "tools/sub/c.py": "1 / 0\n",
             "tools/one.py": tool_source("one")},
            ["one"], id="files that are not looked at",
        ),
        pytest.param({"tools/send-email now.py": tool_source("odd")}, ["odd"], id="a name no import could spell"),
        pytest.param({"tools/_hidden.py": "", "tools/a.py": tool_source("one") + "\n_two = one\n"}, ["one"], id="a private name"),
    ],
)  # fmt: skip
def test_a_file_gives_the_tools_it_defines(agent_folder: AgentFolder, files: dict[str, str], wanted: list[str]):
    assert names(agent_folder(files)) == wanted


@pytest.mark.spec("DIR-21")
@pytest.mark.parametrize(
    ("files", "says"),
    [
        pytest.param({"tools/a.py": tool_source("send"), "tools/b.py": tool_source("send")},
                     "two tools are named 'send': one in '{}/tools/a.py', one in '{}/tools/b.py'", id="in two files"),
        pytest.param({"tools/a.py": tool_source("send") + "first = send\n" + tool_source("send")},
                     "'{}/tools/a.py' defines two tools named 'send'", id="in one file"),
        pytest.param({"tools/a.py": "def send(): ...\n\n\ntools = [send]\n"},
                     "'{}/tools/a.py': send in the list 'tools' is not a tool", id="a plain function in the list"),
        pytest.param({"tools/a.py": "from lousho import current_date_tool\n"}, "'{}/tools/a.py' defines no tool", id="only imports"),
    ],
)  # fmt: skip
def test_tools_that_cannot_be_told_apart_or_are_none_are_errors(agent_folder: AgentFolder, files: Any, says: str):
    folder = agent_folder(files)
    with pytest.raises(ConfigurationError) as caught:
        resolve_agent_dir_sync(folder)
    assert caught.value.code == "LOUSHO_AGENT_DIR_INVALID"
    assert says.replace("{}", str(folder)) in caught.value.detail


def test_relative_and_local_imports_work_at_load_and_in_a_call(agent_folder: AgentFolder):
    source = """
        from lousho import tool

        from ..lib.texts import GREETING
        from .helper import shout
        import lib.numbers
        import lib.texts as texts


        @tool
        def greet() -> str:
            \"\"\"Greet.\"\"\"
            from ..lib.late import late
            import lib.late as again

            return shout(GREETING) + str(lib.numbers.ONE) + texts.GREETING + late + str(again.late is late)
    """
    folder = agent_folder(
        {
            "tools/greet.py": source,
            "tools/helper.py": tool_source("shout") + "\n\ndef _plain(x): return x\n",
            "lib/texts.py": "GREETING = 'hi'\n",
            "lib/numbers.py": "from .texts import GREETING\nONE = 1\n",
            "lib/late.py": "late = 'late'\n",
        }
    )
    (folder / "tools/helper.py").rename(folder / "tools/_helper.py")
    text = (folder / "tools/greet.py").read_text(encoding="utf-8")
    text = text.replace("from .helper import shout", "from ._helper import _plain as shout")
    (folder / "tools/greet.py").write_text(text, encoding="utf-8")
    assert answers(folder) == {"greet": "hi1hilateTrue"}


@pytest.mark.spec("BEY-14")
def test_two_directories_with_equal_files_do_not_meet(agent_folder: AgentFolder):
    def files(word: str) -> dict[str, str]:
        return {
            "tools/say.py": "from lib import WORD\nimport shared\n" + tool_source("say").replace("'done'", "WORD + shared.X"),
            "lib.py": f"WORD = {word!r}\n",
            "shared/__init__.py": f"X = {word.upper()!r}\n",
        }  # fmt: skip

    first, second = agent_folder(files("a"), "first"), agent_folder(files("b"), "second")
    tools = [resolve_agent_dir_sync(folder).config["tools"][0] for folder in (first, second)]
    assert [one() for one in tools] == ["aA", "bB"]
    assert "lib" not in sys.modules
    assert "shared" not in sys.modules


def test_a_standard_library_name_beside_the_file_does_not_hide_the_standard_library(agent_folder: AgentFolder):
    folder = agent_folder(
        {
            "json.py": "1 / 0\n",
            "lousho.py": "1 / 0\n",
            "tools/a.py": "import json, lousho\n" + tool_source("a").replace("'done'", "json.dumps([1])"),
        }
    )
    assert answers(folder) == {"a": "[1]"}


def test_loading_again_runs_edited_files_and_their_helpers(agent_folder: AgentFolder):
    source = "from ..lib import WORD\n" + tool_source("say").replace("'done'", "WORD + '1'")
    folder = agent_folder({"tools/say.py": source, "lib.py": "WORD = 'a'\n"})
    before = resolve_agent_dir_sync(folder).config["tools"][0]
    # Same size, most likely within the same second: a bytecode cache would not notice.
    (folder / "lib.py").write_text("WORD = 'b'\n", encoding="utf-8")
    (folder / "tools/say.py").write_text(source.replace("'1'", "'2'"), encoding="utf-8")
    after = resolve_agent_dir_sync(folder).config["tools"][0]
    assert (before(), after()) == ("a1", "b2")


def test_loading_writes_nothing_into_the_directory(agent_folder: AgentFolder):
    folder = agent_folder({"tools/a.py": "from ..lib import X\n" + tool_source("a"), "lib/__init__.py": "X = 1\n"})
    before = sorted(folder.rglob("*"))
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    assert names(folder) == ["a"]
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o700)
    assert sorted(folder.rglob("*")) == before


def modules() -> set[str]:
    return {name for name in sys.modules if name.startswith("lousho_agents.")}


def test_unloading_forgets_the_modules_and_leaves_the_agent_working(agent_folder: AgentFolder):
    before = modules()
    folder = agent_folder({"tools/a.py": "from ..lib import X\n" + tool_source("a").replace("'done'", "X"), "lib.py": "X = 'x'\n"})  # fmt: skip
    target = load_target(folder, command="chat", provider=mock_model(["hi"]))
    assert len(modules() - before) > 2
    target.unload()
    target.unload()
    assert modules() == before
    assert (target.agent.tools["a"](), target.agent.send_sync("x").text) == ("x", "hi")


def test_an_unloaded_module_can_be_collected(agent_folder: AgentFolder):
    folder = agent_folder({"tools/a.py": "class Big: ...\n\n\nbig = Big()\n" + tool_source("a")})
    resolved = resolve_agent_dir_sync(folder)
    alive = weakref.ref(resolved.config["tools"][0].execute.__globals__["big"])
    resolved.unload()
    del resolved
    gc.collect()
    assert alive() is None


def test_a_load_that_fails_leaves_no_modules_behind(agent_folder: AgentFolder):
    before = modules()
    folder = agent_folder({"tools/a.py": "from ..lib import X\n1 / 0\n", "lib.py": "X = 1\n"})
    with pytest.raises(ConfigurationError):
        resolve_agent_dir_sync(folder)
    assert modules() == before


def test_a_traceback_shows_the_real_file_and_line(agent_folder: AgentFolder):
    folder = agent_folder({"tools/a.py": tool_source("a").replace("return 'done'", "raise KeyError('deep')")})
    (one,) = resolve_agent_dir_sync(folder).config["tools"]
    with pytest.raises(KeyError) as caught:
        one()
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.line) == (str(folder / "tools/a.py"), "raise KeyError('deep')")


def test_types_of_the_directory_resolve(agent_folder: AgentFolder):
    source = """
        from __future__ import annotations

        from dataclasses import dataclass

        from lousho import tool


        @dataclass
        class Place:
            city: str


        @tool
        def weather(place: Place) -> str:
            \"\"\"The weather.\"\"\"
            return place.city
    """
    folder = agent_folder({"tools/weather.py": source})
    (one,) = resolve_agent_dir_sync(folder).config["tools"]
    assert one.parse({"place": {"city": "Oslo"}})["place"].city == "Oslo"


async def test_a_directory_loads_on_the_event_loop_without_blocking_it(agent_folder: AgentFolder):
    import asyncio

    source = "import asyncio\nasyncio.run(asyncio.sleep(0))\n" + tool_source("a")
    agent = await asyncio.wait_for(load_agent_dir(agent_folder({"tools/a.py": source}), provider=mock_model([])), 10)
    assert list(agent.tools) == ["a"]


@pytest.mark.parametrize("folder_name", ["with space", "ünïcödé-目录", "dots.in.name", "quote'd", "-dash"])
def test_any_folder_name_will_do(agent_folder: AgentFolder, folder_name: str):
    folder = agent_folder({"tools/a.py": "from ..lib import X\n" + tool_source("a"), "lib.py": "X = 1\n"}, folder_name)
    assert names(folder) == ["a"]


def test_links_are_followed_and_loops_are_named(agent_folder: AgentFolder, tmp_path: Path):
    write_files(tmp_path / "store", {"a.py": tool_source("a"), "text.md": "Linked."})
    folder = agent_folder({"tools/b.py": tool_source("b")})
    (folder / "tools/a.py").symlink_to(tmp_path / "store/a.py")
    (folder / "instructions.md").symlink_to(tmp_path / "store/text.md")
    (folder / "data").symlink_to(folder)
    resolved = resolve_agent_dir_sync(folder)
    assert (resolved.manifest.tools, resolved.config["instructions"]) == (["a", "b"], "Linked.")
    (folder / "tools/loop.py").symlink_to("loop.py")
    with pytest.raises(ConfigurationError) as caught:
        resolve_agent_dir_sync(folder)
    assert str(folder / "tools/loop.py") in caught.value.detail


def test_a_directory_that_is_a_package_and_a_module_named_like_its_folder_load(agent_folder: AgentFolder):
    folder = agent_folder({"__init__.py": "1 / 0\n", "tools/__init__.py": "", "tools/a.py": tool_source("a"), "a/__init__.py": ""})  # fmt: skip
    assert names(folder) == ["a"]


def test_a_file_shadowed_by_a_package_of_its_name_is_still_the_one_that_runs(agent_folder: AgentFolder):
    folder = agent_folder({"tools/a.py": tool_source("file"), "tools/a/__init__.py": tool_source("package")})
    assert names(folder) == ["file"]


def test_installed_packages_are_used_when_nothing_beside_has_their_name(agent_folder: AgentFolder):
    folder = agent_folder({"tools/a.py": "import yaml\nfrom yaml import nodes\n" + tool_source("a").replace("'done'", "yaml.__name__")})  # fmt: skip
    assert answers(folder) == {"a": "yaml"}
    assert sys.modules["yaml"].__name__ == "yaml"


def test_a_code_config_may_import_and_compute(agent_folder: AgentFolder):
    source = """
        import os
        from .settings import LIMIT

        OTHER = {"a": 1}
        config = {"model": os.environ.get("NOT_SET", "mock/m"), "maxSteps": LIMIT}
    """
    folder = agent_folder({"agent.py": source, "settings.py": "LIMIT = 4\n"})
    assert load_agent_dir_sync(folder).options.max_steps == 4


@pytest.mark.parametrize(
    ("source", "says"),
    [
        pytest.param("from lousho import create_agent\nagent = create_agent(model='mock/m')\n", "'agent' is a built agent", id="a built agent"),
        pytest.param("a = {'model': 'mock/a'}\nb = {'model': 'mock/b'}\n", "more than one mapping of options: a, b", id="two mappings"),
        pytest.param("config = {'maxSteps': 1, 'max_steps': 2}\n", "'max_steps': is set twice", id="both spellings"),
        pytest.param("config = {1: 2}\n", "must be a mapping", id="keys that are no names"),
    ],
)  # fmt: skip
def test_a_code_config_that_is_not_one_mapping_is_refused(agent_folder: AgentFolder, source: str, says: str):
    with pytest.raises(ConfigurationError) as caught:
        resolve_agent_dir_sync(agent_folder({"agent.py": source}))
    assert says in caught.value.detail


def test_the_one_mapping_of_options_is_found_by_its_keys(agent_folder: AgentFolder):
    source = "from .other import config as _c\nLABELS = {'a': 1}\nsettings = {'model': 'mock/m', 'max_steps': 2}\n"
    folder = agent_folder({"agent.py": source, "other.py": "config = {'model': 'mock/x'}\n"})
    assert resolve_agent_dir_sync(folder).config["model"] == "mock/m"


def test_many_threads_load_the_same_directory_at_once(agent_folder: AgentFolder):
    from concurrent.futures import ThreadPoolExecutor

    folder = agent_folder({"tools/a.py": "from ..lib import X\n" + tool_source("a"), "lib.py": "X = 1\n"})
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: names(folder), range(24))) == [["a"]] * 24


def test_loading_a_data_directory_needs_no_yaml_or_pydantic(agent_folder: AgentFolder):
    folder = agent_folder({"agent.json": '{"model": "mock/m"}', "instructions.md": "x"})
    program = (
        "import sys\nfrom lousho import resolve_agent_dir_sync\n"
        "resolve_agent_dir_sync(sys.argv[1])\nprint(sorted({'yaml', 'pydantic', 'httpx', 'rich'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "[]\n"
