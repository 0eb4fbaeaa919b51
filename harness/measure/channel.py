"""A child's end of what :mod:`harness.measure.child` starts: its job, its lines, and its end.

Imports nothing but the standard library: what a child imports, and when, is often what is measured.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

CHANNEL = "HARNESS_CHANNEL"
"""The variable that holds the number of the open file which the parent reads lines from."""

SPAWNED = "HARNESS_SPAWNED_NS"
"""The variable that holds `time.monotonic_ns()` of the parent just before it started the child. On
Linux and macOS that clock counts from the machine's start, so parent and child read the same."""

ANSWER = struct.Struct("i")
"""What a parent answers an order to fork with: the process's number, and later its status."""


def read_job() -> bytes:
    """Return the one line on standard input; nothing follows it before the first line was sent."""
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(0, 1 << 16)
        if not chunk:
            os._exit(1)
        line += chunk
    return line


def send(line: bytes) -> None:
    """Send all of a line, which has no newline yet."""
    channel = int(os.environ[CHANNEL])
    view = memoryview(line + b"\n")
    while view:
        view = view[os.write(channel, view) :]


def follow_parent(on_byte: Callable[[], None] = lambda: None) -> None:
    """From now on end with the parent, and with this process the session that it leads.

    `on_byte` is called, in a thread, for each byte that the parent sends.
    """

    def listen() -> None:
        while os.read(0, 1):
            on_byte()
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()


def spawned_ns() -> int:
    """Return the monotonic clock when this process was started."""
    return int(os.environ[SPAWNED])


def end(code: int = 0) -> NoReturn:
    """End this process at once: back ends, and threads of the user's, may hang at exit."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def serve(answer: Callable[[Any], Any]) -> NoReturn:
    """Read a job in JSON, send what `answer` makes of it, and end."""
    job = json.loads(read_job())
    follow_parent()
    send(json.dumps(answer(job)).encode())
    end()
