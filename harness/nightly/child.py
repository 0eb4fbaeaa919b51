"""Run a command for as long as its caller lives: `python -m harness.nightly.child COMMAND...`.

A night that is killed cannot end what it started, and what goes on measuring would disturb the
night that follows. So its caller holds the other end of standard input: when that closes, the
command and its process group are ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

GRACE_S = 5.0
"""What was interrupted may take so long to end by itself."""


def main(command: list[str]) -> int:
    """Run the command in a process group of its own; return its exit code, 128 + N of signal N."""
    running = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)

    def send(number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, number)

    def watch() -> None:
        while os.read(0, 4096):
            pass
        send(signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    try:
        code = running.wait()
        return 128 - code if code < 0 else code
    except KeyboardInterrupt:
        send(signal.SIGINT)
        try:
            running.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            send(signal.SIGKILL)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
