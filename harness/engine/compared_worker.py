"""A measuring process that takes one side of a comparison, until its environment is verified.

It is verified, and kept to its cores, before NumPy or JAX are imported: both read their variables,
and count cores, when they are. JAX and a baseline's library never share a process.
"""

from __future__ import annotations

from threading import Semaphore

from harness.engine import channel
from harness.engine.job import CurrentVisit, decode_job, sender
from harness.sides.side_process import verified


def measure(line: bytes, current_fd: int, stored: Semaphore) -> None:
    """Verify the process, and measure the job's cases on its side."""
    job = decode_job(line)
    state = verified(job.environment, job.threads)  # before there is another thread
    channel.follow_parent(stored.release)
    # Only now may NumPy and JAX be imported.
    from harness.engine import compared_session

    compared_session.measure(job, sender(stored), CurrentVisit(current_fd), state)
