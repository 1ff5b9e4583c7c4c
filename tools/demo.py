"""`make demo`: scaffold an agent, ask it one question, then talk to it. No API key, nothing left behind.

It runs the commands a newcomer would type, and prints each before its output. With input that is not a terminal the chat
answers the lines it reads and ends. The agent lives in a temporary folder, and so does what the chat remembers; the last
lines say how to start one that stays.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType

LOUSHO = [sys.executable, "-m", "lousho_cli"]
AGENT = "notes-agent"
QUESTION = "Add a note with the text: water the plants on Friday"


def show(words: list[str], *, piped: str = "") -> None:
    """Print a command as a person would type it."""
    prefix = f"echo {shlex.quote(piped)} | " if piped else ""
    dim, plain = ("\x1b[2m", "\x1b[0m") if sys.stdout.isatty() and "NO_COLOR" not in os.environ else ("", "")
    print(f"\n{dim}$ {prefix}lousho {shlex.join(words)}{plain}", flush=True)


def lousho(words: list[str], folder: Path, *, piped: str | None = None) -> int:
    """Run one command in `folder`; without `piped` it reads what the demo itself was given. Returns the exit code."""
    show(words, piped=piped or "")
    sent = None if piped is None else (piped + "\n").encode("utf-8")
    env = {**os.environ, "XDG_STATE_HOME": str(folder / ".state")}
    return subprocess.run([*LOUSHO, *words], cwd=folder, env=env, input=sent, check=False).returncode


def scaffold(folder: Path) -> int:
    """Run `lousho init`, without what it says to do next: the folder is gone by then. Returns the exit code."""
    words = ["init", AGENT, "--template", "tools", "--provider", "mock", "--yes", "--no-install", "--no-git"]
    show(words)
    done = subprocess.run([*LOUSHO, *words], cwd=folder, stdout=subprocess.PIPE, check=False)
    said = done.stdout.decode("utf-8", "replace")
    print(said.partition("\nNext:")[0].rstrip(), flush=True)
    return done.returncode


def own_agent() -> str:
    """Return the commands that start an agent of one's own, with the `lousho` of this interpreter."""
    beside = Path(sys.executable).parent
    found = next((beside / name for name in ("lousho", "lousho.exe") if (beside / name).is_file()), None)
    if found is None:
        command = f"{shlex.quote(sys.executable)} -m lousho_cli"
    else:
        command = shlex.quote(str(found.relative_to(Path.cwd()) if found.is_relative_to(Path.cwd()) else found))
    return f"  {command} init my-agent\n  {command} chat my-agent"


def leave_it_to_the_chat(number: int, frame: FrameType | None) -> None:
    """Do nothing: the chat got the same signal."""


def main() -> int:
    """Run the three commands; returns 0, or the exit code of the one that failed."""
    # Ctrl-C belongs to the chat: it ends the turn, not the demo. A handler, since an ignored signal would be inherited.
    signal.signal(signal.SIGINT, leave_it_to_the_chat)
    with tempfile.TemporaryDirectory(prefix="lousho-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        chat = ["chat", AGENT, "--model", "mock/demo"]
        code = scaffold(folder) or lousho(chat, folder, piped=QUESTION)
        if code:
            print(f"The demo stopped: the command above ended with exit code {code}.", file=sys.stderr)
            return code
        if sys.stdin.isatty():
            print("\nNow you: ask for a note, list them, delete one. /quit or Ctrl-D leaves.")
        code = lousho(chat, folder)
    print(f"\nThat agent was a temporary one and is gone. Your own:\n{own_agent()}")
    return code


if __name__ == "__main__":
    sys.exit(main())
