"""Builds the wheel and uses it as a stranger would: a fresh environment, outside the checkout.

usage: wheel_smoke.py [--keep]

The wheel must carry the templates and the type marker, `lousho` must start, `init` must make a project that chats
without a key, and that project's own tests must pass against the wheel.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MUST_HOLD = ("lousho/py.typed", "lousho_cli/py.typed", "lousho/scaffold/templates/")
MUST_NOT_HOLD = ("tests/", "tools/", "docs/", ".env")


def run(words: list[str | Path], folder: Path, *, sent: str = "", quiet: bool = True) -> str:
    """Run one command in `folder` and return its output; a failing one ends the smoke test with what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LOUSHO_", "PYTHONPATH"))}
    environment.pop("VIRTUAL_ENV", None)
    command = [str(word) for word in words]
    done = subprocess.run(
        command, cwd=folder, input=sent, capture_output=True, text=True, encoding="utf-8", env=environment, check=False
    )
    if done.returncode != 0:
        print(f"wheel smoke test: {' '.join(command)} ended with exit code {done.returncode}")
        print(done.stdout + done.stderr)
        sys.exit(1)
    if not quiet:
        print(done.stdout, end="")
    return done.stdout


def expect(condition: bool, what: str) -> None:
    """End the smoke test unless `condition` holds."""
    if not condition:
        print(f"wheel smoke test: {what}")
        sys.exit(1)


def build(folder: Path) -> Path:
    """Build the wheel into `folder` and look into it."""
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT], ROOT)
    wheel = next(folder.glob("lousho-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for part in MUST_HOLD:
        expect(any(name.startswith(part) for name in names), f"the wheel lacks {part}")
    for part in MUST_NOT_HOLD:
        expect(not any(name.startswith(part) for name in names), f"the wheel holds {part}")
    return wheel


def main() -> int:
    """Build, install, use; returns 0 or ends with 1."""
    with tempfile.TemporaryDirectory(prefix="lousho-wheel-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        wheel = build(folder / "dist")
        print(f"built {wheel.name}")
        run([sys.executable, "-m", "venv", folder / "venv"], folder)
        python, lousho = folder / "venv/bin/python", folder / "venv/bin/lousho"
        run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel], folder)
        version = run([lousho, "--version"], folder).strip()
        expect(version.split()[-1] == wheel.name.split("-")[1], f"lousho --version says {version!r}")
        run([lousho, "init", "my-agent", "--provider", "mock", "--yes", "--no-install", "--no-git"], folder)
        said = run([lousho, "chat", "my-agent", "--model", "mock/demo"], folder, sent="What can you do?\n")
        expect(bool(said.strip()), "lousho chat printed nothing")
        extras = ["pytest-asyncio"] if "asyncio_mode" in (folder / "my-agent/pyproject.toml").read_text("utf-8") else []
        if extras:
            run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *extras], folder)
        tests = run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider"], folder / "my-agent")
        print(f"{version}: the scaffold chats, and its tests say: {tests.strip().splitlines()[-1]}")
    print("wheel smoke test passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
