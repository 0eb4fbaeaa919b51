"""`harness` and `python -m harness`: the command line."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType


def main() -> None:
    """Run the command line; Ctrl-C while it is still being imported ends it as it does later."""
    owned = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    owned = owned and threading.current_thread() is threading.main_thread()
    if owned:
        signal.signal(signal.SIGINT, _end)
    from harness.cli import main as run  # after the handler: it takes a tenth of a second

    if owned:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(130)  # as ExitCode.INTERRUPTED; an exception would be shown with its traceback


if __name__ == "__main__":
    main()
