"""Processes that asv starts end with it: killed, it leaves them to measure on."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time

import psutil

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with(pid: int) -> None:
    """End this process when another is gone."""

    def watch() -> None:
        with contextlib.suppress(psutil.Error):
            asv = psutil.Process(pid)
            while asv.is_running() and asv.status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def end_server() -> None:
    """Have Linux end asv's forkserver, if this is it, with asv; and what it forks with itself.

    A thread that watches, as above, must not be there when it forks.
    """
    if sys.platform == "linux" and sys.argv[1:2] == ["run_server"]:
        _die_with_parent()
        os.register_at_fork(after_in_child=_die_with_parent)


def _die_with_parent() -> None:
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent or parent == 1:  # it was gone before
        os._exit(1)
