"""Runs cells in a notebook kernel: reads them as JSON on stdin, and prints what each of them gave as JSON.

A cell is `{"code": ..., "interrupt_at": ...}`: the kernel is interrupted, as the stop button does it, when the cell
prints that line. What a cell gave is `{"out": ..., "result": ..., "error": ..., "seconds": ...}`. Started by `test_notebook.py`
with the kernel's packages on its path.
"""

from __future__ import annotations

import json
import queue
import sys
import time
from importlib import import_module
from typing import Any

CELL_SECONDS = 30.0


def run_cell(manager: Any, client: Any, cell: dict[str, Any]) -> dict[str, Any]:
    """Run one cell to its end."""
    found: dict[str, Any] = {"out": "", "result": None, "error": None}
    asked = client.execute(cell["code"])
    until = time.monotonic() + CELL_SECONDS
    pressed: float | None = None
    while True:
        try:
            message = client.get_iopub_msg(timeout=max(0.1, until - time.monotonic()))
        except queue.Empty:
            found["error"] = "the cell does not end"
            return found
        if message["parent_header"].get("msg_id") != asked:
            continue
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            found["out"] += content["text"]
            if pressed is None and cell.get("interrupt_at") in found["out"].splitlines():
                pressed = time.monotonic()
                manager.interrupt_kernel()
        elif kind == "execute_result":
            found["result"] = content["data"]["text/plain"]
        elif kind == "error":
            found["error"] = content["ename"]
        elif kind == "status" and content["execution_state"] == "idle":
            found["seconds"] = time.monotonic() - (pressed or time.monotonic())
            return found


def main() -> None:
    """Start a kernel of this interpreter, run the cells in it, and shut it down."""
    manager: Any = import_module("jupyter_client.manager").KernelManager(kernel_name="")
    specs: Any = import_module("jupyter_client.kernelspec")
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = specs.KernelSpec(argv=command, display_name="here", language="python")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=CELL_SECONDS)
        found = [run_cell(manager, client, cell) for cell in json.load(sys.stdin)]
        began = time.monotonic()
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
    print(json.dumps({"cells": found, "shutdown": time.monotonic() - began}))


if __name__ == "__main__":
    main()
