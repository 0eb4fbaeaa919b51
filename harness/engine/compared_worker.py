"""A measuring process that takes one side of a comparison.

It verifies its environment, and is kept to its cores, before NumPy or JAX are imported: both read
their variables, and count cores, when they are. JAX and a baseline's library never share a process.
"""

from __future__ import annotations

from threading import Semaphore

from harness.declare.code import LoadedCode
from harness.engine import channel, containment
from harness.engine.job import (
    Bye,
    CurrentVisit,
    Done,
    Fatal,
    decode_job,
    sender,
    unmeasured,
    workload_of,
)
from harness.records.schema import to_raw
from harness.sides import registry
from harness.sides.side import Unavailable
from harness.sides.side_process import verified


def measure(line: bytes, current_fd: int, stored: Semaphore) -> None:
    """Verify the process, and measure the job's cases on its side."""
    job, current = decode_job(line), CurrentVisit(current_fd)
    state = verified(job.environment, job.threads)  # before there is another thread
    channel.follow_parent(stored.release)
    send = sender(stored)
    # Only now may NumPy and JAX be imported.
    from harness.engine.compared_session import ComparedSession

    job.base["contained"] = containment.contain(job.memory_limit_bytes if job.on_host else None)
    code = LoadedCode()
    workload = workload_of(job, lambda reason: send(Fatal(reason)))
    if workload is None:
        return
    try:
        side = registry.find(job.backend)(job.target)
    except Unavailable as error:
        known = to_raw(job.surroundings)
        for ref in job.cases:
            send(Done(unmeasured(job, ref, "skipped", str(error), environment=known)))
        send(Bye(0.0, 0.0))
    except RuntimeError as error:
        send(Fatal(f"JAX found no {job.target} device: {error}"))
    else:
        ComparedSession(job, workload, send, current, code, state, side).measure()
