"""Run a command that does not outlive its caller, and of which nothing stays behind.

`python -m harness.engine.keeper COMMAND...` hands SIGINT on. Where standard input closes, because
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

from harness.engine.containment import end_with_parent

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_HEARD = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD}


def main(command: list[str]) -> int:
    """Run the command to its end, or the caller's; return its exit code."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)  # or one that comes just before a wait is lost
    for one in _HEARD:
        signal.signal(one, lambda number, frame: None)  # what is ignored here, the command hears
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    running = subprocess.Popen(  # before there is a thread
        command,
        stdin=subprocess.DEVNULL,
        preexec_fn=functools.partial(_in_command, os.getpid()),
        process_group=0,
    )
    threading.Thread(target=_follow_caller, args=[running], daemon=True).start()
    while running.poll() is None:
        number = signal.sigwait(_HEARD)
        if number == signal.SIGINT:
            running.send_signal(number)
        elif number != signal.SIGCHLD:
            running.kill()
    code = running.returncode
    _kill_children()
    return code if code >= 0 else 128 - code


def _in_command(keeper: int) -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
    if sys.platform == "linux":
        end_with_parent(keeper)


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
