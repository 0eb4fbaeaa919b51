"""One isolated process that measures a job and streams records.

Started as `python -m harness.engine.worker CURRENT [compared]`, where CURRENT is an open file that
says what is being measured. An ordinary process imports as little as it can before JAX, because
the import of JAX is one of the numbers.
"""

from __future__ import annotations

import sys
import threading
import time

from harness.engine import channel

_clock = time.perf_counter_ns


def main(current_fd: int, compared: bool) -> None:
    """Read a job, measure it, and end."""
    line = channel.read_job()
    stored = threading.Semaphore(0)
    if compared:
        from harness.engine import compared_worker  # nothing of it in an ordinary process

        compared_worker.measure(line, current_fd, stored)
        return
    channel.follow_parent(stored.release)
    begin = _clock()
    import jax  # noqa: F401  (timed)

    import_ns = _clock() - begin
    from harness.engine import staged_worker  # it imports JAX

    staged_worker.measure(line, current_fd, stored, import_ns)


if __name__ == "__main__":
    main(int(sys.argv[1]), compared=sys.argv[2:] == ["compared"])
    channel.end()
