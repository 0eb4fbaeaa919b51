"""`harness` and `python -m harness`: the command line."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

ENDING = [signal.Signals[n] for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]
"""Ctrl-C, a scheduler's signal, and a terminal that is closed: one path, stop, keep, clean."""


class Interrupt(KeyboardInterrupt):
    """One of them came.

    Where KeyboardInterrupt itself leaves a text that is executed, as dataclasses do on import,
    CPython 3.11 ends the process by SIGINT in the end, whatever has handled it.
    """


def main() -> None:
    """Run the command line; what ends it while it is still being imported ends it at once."""
    owned = list[signal.Signals]()
    if threading.current_thread() is threading.main_thread():
        usual = (signal.SIG_DFL, signal.default_int_handler)  # under nohup one is ignored
        owned = [number for number in ENDING if signal.getsignal(number) in usual]
    for number in owned:
        signal.signal(number, _end)
    from harness.cli import main as run  # after the handlers: it takes a tenth of a second

    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        raise Interrupt

    try:
        for number in owned:
            signal.signal(number, interrupt)
        run()
    except SystemExit as ended:
        if came and ended.code == 128 + signal.SIGINT:  # ExitCode.INTERRUPTED
            sys.exit(128 + came[0])
        raise
    except KeyboardInterrupt:  # after the command was done
        sys.exit(128 + came[0] if came else 128 + signal.SIGINT)


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(128 + number)  # an exception would be shown with its traceback


if __name__ == "__main__":
    main()
