"""Processes that asv starts end with it: killed, it leaves them to measure on."""

from __future__ import annotations

import contextlib
import functools
import os
import select
import sys
import threading

import psutil

from harness.asv.call import AsvCall
from harness.engine.containment import end_with_parent


def end_with(pid: int) -> None:
    """End this process when another is gone."""

    def watch() -> None:
        try:
            select.select([os.pidfd_open(pid)], [], [])
        except (AttributeError, OSError):  # it is gone, or this is no Linux
            with contextlib.suppress(psutil.Error):
                psutil.Process(pid).wait()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def end_server() -> None:
    """Have Linux end asv's forkserver, if this is it, with asv; and what it forks with itself.

    A thread that watches, as above, must not be there when it forks.
    """
    if sys.platform == "linux" and sys.argv[1:2] == ["run_server"]:
        if os.getppid() == 1 != AsvCall.current().pid:  # asv was gone before
            os._exit(1)
        end_with_parent(os.getppid())
        os.register_at_fork(after_in_child=functools.partial(end_with_parent, os.getpid()))
