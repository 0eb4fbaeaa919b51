"""A measuring process that takes one side of a comparison.

It verifies its environment, and is kept to its cores, before NumPy or JAX are imported: both read
their variables, and count cores, when they are. JAX and a baseline's library never share a process.
"""

from __future__ import annotations

from threading import Semaphore

from harness.declare.code import LoadedCode
from harness.engine import channel, containment
from harness.engine.job import Fatal, decode_job, sender, workload_of
from harness.engine.visit import CurrentVisit
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
        ComparedSession(job, workload, send, current, code, state).skip(str(error))
    except RuntimeError as error:
        send(Fatal(f"JAX found no {job.target} device: {error}"))
    else:
        ComparedSession(job, workload, send, current, code, state, side).measure()
