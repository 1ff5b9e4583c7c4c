"""Ctrl-C must reach the programs that these tests start, also where the suite itself was started in the background."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a child would inherit it, and ignore Ctrl-C for good
    signal.signal(signal.SIGINT, signal.default_int_handler)
