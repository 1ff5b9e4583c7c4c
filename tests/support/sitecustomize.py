"""Runs at the start of every Python process a test starts, and keeps that process off the network.

The test suite puts this folder on `PYTHONPATH`, so child processes import it by itself. It must stay as cheap as it is:
an audit hook needs no import, so start-up figures and the list of loaded modules are what they are without it.
`spec_bite` measures which lines a child runs, through `COVERAGE_PROCESS_START`.
"""

import os
import sys

NEVER_RESOLVES = (".invalid", ".test", ".example", "example.com", "example.org", "example.net")
LOCAL_NAMES = {"", "localhost", "localhost.localdomain", "ip6-localhost"}


def is_local(host: object) -> bool:
    """Whether an address or name stays on this machine (a Unix socket's path does)."""
    if host is None:
        return True
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if not isinstance(host, str):
        return False
    name = host.strip("[]").split("%")[0].lower()
    return name in LOCAL_NAMES or name.startswith(("127.", "::ffff:127.")) or name in {"::1", "::", "0.0.0.0"}


def looks_numeric(host: object) -> bool:
    """An IP address in text form: looking it up asks no server."""
    return isinstance(host, str) and bool(host) and all(part in "0123456789abcdefABCDEF.:%[]" for part in host)


def blocked_target(event: str, args: tuple) -> "str | None":
    """The foreign host of a network event, or None when the event may go on."""
    if event in {"socket.connect", "socket.sendto"}:
        address = args[1] if len(args) > 1 else None
        if isinstance(address, tuple) and address and not is_local(address[0]):
            return str(address[0])
    elif event in {"socket.getaddrinfo", "socket.gethostbyname"}:
        host = args[0] if args else None
        if not is_local(host) and not looks_numeric(host):
            return host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    return None


def install(on_block) -> None:
    """Refuse network events that leave this machine, as an unreachable network does; reserved test names do not resolve."""

    def hook(event: str, args: tuple) -> None:
        if event[:7] != "socket.":
            return
        target = blocked_target(event, args)
        if target is None:
            return
        if event == "socket.getaddrinfo" or event == "socket.gethostbyname":
            import socket

            if not target.rstrip(".").lower().endswith(NEVER_RESOLVES):
                on_block(target)
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        on_block(target)
        raise OSError(101, "Network is unreachable (tests stay on this machine)")

    sys.addaudithook(hook)


if __name__ == "sitecustomize":
    if os.environ.get("LOUSHO_TEST_NETWORK") != "1":

        def complain(target: str) -> None:
            sys.stderr.write(f"[test guard] a child process tried to reach {target}\n")

        install(complain)
    if os.environ.get("COVERAGE_PROCESS_START"):
        try:
            import coverage
        except ImportError:
            pass
        else:
            coverage.process_startup()
