"""Measures Lousho beside what users would pick instead, and writes `docs/performance.md` as ratios from one run.

usage: python benchmarks/run.py [--only startup,loop,deltas] [--no-write]

Everything runs in virtual environments of its own under `.bench/`; ours holds the built, byte-compiled wheel.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
BENCH = ROOT / ".bench"
SCRIPTS = HERE / "scripts"
PAGE = ROOT / "docs" / "performance.md"


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    def command(self, name: str) -> str:
        return str(self.folder / "bin" / name)


def environment(name: str, *packages: str) -> Environment:
    """Return the environment `name`, made and filled when it is not there yet."""
    made = Environment(BENCH / name)
    marker = made.folder / ".filled"
    wanted = "\n".join(packages)
    if not marker.is_file() or marker.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(made.folder)], check=True)
        subprocess.run([made.python, "-m", "pip", "install", "--quiet", "--compile", *packages], check=True)
        marker.write_text(wanted, encoding="utf-8")
    return made


def our_environment() -> Environment:
    """Return the environment with the wheel of this checkout, built anew."""
    wheels = BENCH / "wheels"
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(wheels), str(ROOT)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    wheel = max(wheels.glob("lousho-*.whl"), key=lambda path: path.stat().st_mtime)
    ours = environment("lousho", str(wheel))
    subprocess.run(
        [ours.python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", "--compile", str(wheel)],
        check=True,
    )
    return ours


def cpu_ms(command: list[str], *, exit_code: int = 0, repeats: int = 25) -> float:
    """Return the least CPU time of a whole process in milliseconds, children included."""
    best = float("inf")
    settings = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, env=settings, cwd=BENCH, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == exit_code, (command, done.returncode, done.stderr[-500:])
        spent = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
        best = min(best, spent * 1000)
    return best


def measure_startup(ours: Environment) -> list[tuple[str, float]]:
    """Return what whole commands cost in CPU milliseconds."""
    others = environment("commands", "-r", str(HERE / "requirements-cli.txt"))
    lousho = ours.command("lousho")
    rows = [
        ("python -c pass", cpu_ms([ours.python, "-c", "pass"])),
        ('python -c "import lousho"', cpu_ms([ours.python, "-c", "import lousho"])),
        ('python -c "import typer"', cpu_ms([ours.python, "-c", "import typer"])),
        ("lousho --version", cpu_ms([lousho, "--version"])),
        ("lousho --help", cpu_ms([lousho, "--help"])),
        ("lousho frob (usage error)", cpu_ms([lousho, "frob"], exit_code=2)),
        ("lousho chat --help", cpu_ms([lousho, "chat", "--help"])),
    ]
    for name in ("hatch", "clai2", "adk"):
        rows.append((f"{name} --help", cpu_ms([others.command(name), "--help"], repeats=9)))  # noqa: PERF401
    return rows


def run_script(python: str, script: str) -> dict[str, Any]:
    """Run one script of `scripts/` and return the JSON line it prints last."""
    done = subprocess.run([python, str(SCRIPTS / script)], capture_output=True, text=True, cwd=SCRIPTS, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{script} failed:\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure_loop(ours: Environment) -> list[dict[str, Any]]:
    """Return the runs per second of each framework."""
    others = environment("frameworks", "-r", str(HERE / "requirements.txt"))
    rows = [run_script(ours.python, "loop_lousho.py")]
    rows += [run_script(others.python, f"loop_{name}.py") for name in ("openai_agents", "langgraph", "pydantic_ai")]
    return rows


def page(
    startup: list[tuple[str, float]], loop: list[dict[str, Any]], variants: dict[str, float], deltas: dict[str, Any]
) -> str:
    """Return the documentation page."""
    cost = dict(startup)
    bare, typer = cost["python -c pass"], cost['python -c "import typer"']
    ours = loop[0]
    lines = [
        "# Performance",
        "",
        (
            f"Ratios from one run of `make bench` on {datetime.now(UTC):%d %B %Y}: Python {platform.python_version()}, "
            f"{os.cpu_count()} cores, {platform.machine()}, the byte-compiled wheel. Read them as ratios; the absolute "
            "figures belong to that machine."
        ),
        "",
        "## Start-up",
        "",
        "CPU time of the whole process, the best of several.",
        "",
        "| Command | CPU | of a bare interpreter | of `import typer` |",
        "| - | -: | -: | -: |",
    ]
    lines += [f"| `{name}` | {ms:.0f} ms | {ms / bare:.2f} × | {ms / typer:.2f} × |" for name, ms in startup]
    lines += [
        "",
        "## Runs",
        "",
        (
            "A run of two steps (one tool call, then text) on a model inside the process. Ours with the permission gate, "
            "argument validation and an event listener on; the others with their tracing off."
        ),
        "",
        "| Framework | one after another | Lousho is | 300 at once | Lousho is | 200 calls in one step | Lousho is |",
        "| - | -: | -: | -: | -: | -: | -: |",
    ]
    for row in loop:
        lines.append(
            f"| {row['name']} {row['version']} | {row['sequential']:.0f}/s | {ours['sequential'] / row['sequential']:.1f} × "
            f"| {row['concurrent']:.0f}/s | {ours['concurrent'] / row['concurrent']:.1f} × "
            f"| {row['calls']:.0f} calls/s | {ours['calls'] / row['calls']:.1f} × |"
        )
    growth = (deltas["peak_bytes_100k"] - deltas["peak_bytes_10k"]) / 90_000
    lines += [
        "",
        f"A step of ours takes {1e6 / ours['sequential'] / 2:.0f} µs.",
        "",
        "What the parts of such a step cost, beside the same run without a listener and without the loop guard:",
        "",
        "| Variant | a step | of the bare one |",
        "| - | -: | -: |",
        *(
            f"| {label} | {variants[key]:.0f} µs | {variants[key] / variants['bare']:.2f} × |"
            for key, label in (
                ("bare", "neither listener nor loop guard"),
                ("guarded", "the loop guard on, as it is by default"),
                ("listener", "an event listener, which also makes model calls stream"),
                ("timed", "a time limit on every call"),
                ("blocking", "the tool is a plain function, which runs in a thread"),
            )
        ),
        "",
        "## Streaming",
        "",
        (
            f"{deltas['deltas']:,} text deltas of five characters, read with `async for`: "
            f"{deltas['microseconds_per_event']:.1f} µs an event. Peak memory grows by {growth:.0f} bytes a delta, which is "
            "the text of the answer; read events are not kept."
        ),
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-write", action="store_true", help="print the page, do not write it")
    options = parser.parse_args()
    BENCH.mkdir(exist_ok=True)
    ours = our_environment()
    text = page(
        measure_startup(ours),
        measure_loop(ours),
        run_script(ours.python, "variants.py"),
        run_script(ours.python, "deltas.py"),
    )
    print(text)
    if not options.no_write:
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
