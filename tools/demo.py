"""`make demo`: scaffold an agent, ask it one question, then talk to it. No API key, nothing left behind.

It runs the commands a newcomer would type, and prints each before its output. With input that is not a terminal the chat
answers the lines it reads and ends.
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
    return subprocess.run([*LOUSHO, *words], cwd=folder, input=sent, check=False).returncode


def leave_it_to_the_chat(number: int, frame: FrameType | None) -> None:
    """Do nothing: the chat got the same signal."""


def main() -> int:
    """Run the three commands; returns 0, or the exit code of the one that failed."""
    # Ctrl-C belongs to the chat: it ends the turn, not the demo. A handler, since an ignored signal would be inherited.
    signal.signal(signal.SIGINT, leave_it_to_the_chat)
    with tempfile.TemporaryDirectory(prefix="lousho-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        init = ["init", AGENT, "--template", "tools", "--provider", "mock", "--yes", "--no-install", "--no-git"]
        chat = ["chat", AGENT, "--model", "mock/demo"]
        code = lousho(init, folder) or lousho(chat, folder, piped=QUESTION)
        if code:
            print(f"The demo stopped: the command above ended with exit code {code}.", file=sys.stderr)
            return code
        if sys.stdin.isatty():
            print("\nNow you: ask for a note, list them, delete one. /quit or Ctrl-D leaves.")
        return lousho(chat, folder)


if __name__ == "__main__":
    sys.exit(main())
