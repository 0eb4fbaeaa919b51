"""One isolated process that measures a job and streams records.

Started as `python -m harness.measure.worker CURRENT [compared]`, where CURRENT is an open file that
says what is being measured. An ordinary process imports as little as it can before JAX, because
the import of JAX is one of the numbers.
"""

from __future__ import annotations

import sys
import threading
import time

from harness.measure import channel

_clock = time.perf_counter_ns


def main(current_fd: int, compared: bool) -> None:
    """Read a job, measure it, and end."""
    line = channel.read_job()
    stored = threading.Semaphore(0)
    if compared:
        _compared(line, current_fd, stored)
        return
    channel.follow_parent(stored.release)
    begin = _clock()
    import jax  # noqa: F401  (timed)

    import_ns = _clock() - begin
    from harness.measure import staged_worker  # it imports JAX

    staged_worker.measure(line, current_fd, stored, import_ns)


def _compared(line: bytes, current_fd: int, stored: threading.Semaphore) -> None:
    """Verify the process of a side of a comparison, and measure the job's cases on that side.

    It is verified, and kept to its cores, before NumPy or JAX are imported: both read their
    variables, and count cores, when they are. JAX and a baseline's library never share a process.
    """
    from harness.baselines.side_process import verified  # none of these in an ordinary process
    from harness.measure.job import CurrentVisit, decode_job, sender

    job = decode_job(line)
    state = verified(job.environment, job.threads)  # before there is another thread
    channel.follow_parent(stored.release)
    from harness.measure import compared  # only now may NumPy and JAX be imported

    compared.measure_job(job, sender(stored), CurrentVisit(current_fd), state)


if __name__ == "__main__":
    main(int(sys.argv[1]), compared=sys.argv[2:] == ["compared"])
    channel.end()
