"""Run a command that does not outlive its caller, and of which nothing stays behind.

`python -m harness.measure.keeper COMMAND...` hands SIGINT on. Where standard input closes, because
the caller ended it or was killed, it kills the command. What the command has started, in whatever
session, is killed with it or after it: on Linux, orphans are given to the keeper. Only then it
ends, and lets go of the locks that it inherits. Exit code: the command's, 128 + N of signal N.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import subprocess
import sys
import threading
import time

import psutil

from harness.measure.containment import end_with_parent

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h

_HEARING_S = 0.25
"""A signal that comes just before a wait is heard after it; a wait without end would lose it."""


def main(command: list[str]) -> int:
    """Run the command to its end, or the caller's; return its exit code."""
    on_linux = sys.platform == "linux"
    if on_linux:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    early: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: early.append(number))
    running = subprocess.Popen(  # before there is a thread
        command,
        stdin=subprocess.DEVNULL,
        preexec_fn=functools.partial(end_with_parent, os.getpid()) if on_linux else None,
        process_group=0,
    )
    signal.signal(signal.SIGINT, lambda number, frame: running.send_signal(number))
    for number in early:
        running.send_signal(number)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: running.kill())
    threading.Thread(target=_follow_caller, args=[running], daemon=True).start()
    waiting = threading.Thread(target=running.wait, daemon=True)
    waiting.start()
    while waiting.is_alive():
        waiting.join(_HEARING_S)
    code = running.returncode
    _kill_children()
    return code if code >= 0 else 128 - code


def _follow_caller(running: subprocess.Popen[bytes]) -> None:
    while os.read(0, 4096):
        pass
    running.kill()
    _kill_children()


def _kill_children() -> None:
    """Kill what is left, and what that starts while it is killed."""
    left = True
    while left:
        left = False
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it is gone, or somebody else's
                if process.status() != psutil.STATUS_ZOMBIE:
                    process.kill()
                    left = True
        time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
