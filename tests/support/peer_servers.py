"""Starts fake model servers that we did not write, each on a free loopback port, and ends them.

They are installed into `.peers` by `tests/peers/install.sh`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".peers"
AIMOCK = PEERS / "node/node_modules/@copilotkit/aimock/dist/aimock-cli.js"
LLMOCK = PEERS / "llmock/bin/llmock"
ADDRESS = re.compile(r"http://127\.0\.0\.1:([1-9]\d*)")
START_SECONDS = 30.0


class PeerServer:
    """A running server: `url` is its base, without a slash at the end."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.lines: list[str] = []
        self._up = threading.Event()
        self._port = 0
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._up.wait(START_SECONDS) or not self._port:
            self.close()
            raise RuntimeError(f"{command[0]} did not start:\n" + "\n".join(self.lines[-20:]))

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip())
            found = ADDRESS.search(line)
            if found and not self._port:
                self._port = int(found.group(1))
                self._up.set()
        self._up.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def log(self) -> str:
        """What the server printed so far."""
        return "\n".join(self.lines)

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Call a control route of the server; returns the answer as data (or text when it is no JSON)."""
        data = None if body is None else json.dumps(body).encode("utf-8")
        request = urllib.request.Request(
            self.url + path, data=data, method=method, headers={"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read().decode("utf-8")
        try:
            return json.loads(text)
        except ValueError:
            return text

    def close(self) -> None:
        """End the server; at once when it does not end by itself."""
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(5)
        self._reader.join(5)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Aimock(PeerServer):
    """aimock: says what its fixtures say, in the words of each vendor; the first fixture that matches wins."""

    def __init__(self, fixtures: list[dict[str, Any]] | Path, folder: Path) -> None:
        if not isinstance(fixtures, Path):
            path = folder / "aimock-fixtures.json"
            path.write_text(json.dumps({"fixtures": fixtures}), encoding="utf-8")
            fixtures = path
        config = folder / "aimock.json"
        config.write_text(json.dumps({"port": 0, "llm": {"fixtures": str(fixtures)}}), encoding="utf-8")
        node = str(ROOT / "tests/peers/node.py")
        super().__init__([sys.executable, "-u", node, "exec", str(AIMOCK), "--config", str(config)], dict(os.environ))

    @property
    def openai_base_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_base_url(self) -> str:
        return self.url

    def journal(self) -> list[dict[str, Any]]:
        """The requests the server got, oldest first."""
        return self.request("GET", "/__aimock/journal")


class Llmock(PeerServer):
    """llmock: plays what goes wrong, and has a verdict on how the client took it."""

    def __init__(self, *options: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(PEERS / "llmock"), "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
        super().__init__([sys.executable, str(LLMOCK), "serve", "--port", "0", *options], environment)

    @property
    def openai_base_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_base_url(self) -> str:
        return f"{self.url}/anthropic"

    def scenario(self, *behaviors: dict[str, Any]) -> None:
        """Queue behaviours: the next requests get them in order."""
        self.request("POST", "/_llmock/scenario", {"behaviors": list(behaviors)})

    def requests(self) -> list[dict[str, Any]]:
        """The requests the server got, oldest first."""
        return self.request("GET", "/_llmock/requests")["requests"]

    def verdict(self) -> dict[str, Any]:
        """What the server thinks of its client, e.g. a truncated stream that was taken for an answer."""
        return self.request("GET", "/_llmock/verdict")
