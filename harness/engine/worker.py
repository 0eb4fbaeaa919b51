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
        measure_side(line, current_fd, stored)
        return
    channel.follow_parent(stored.release)
    begin = _clock()
    import jax  # noqa: F401  (timed)

    import_ns = _clock() - begin
    from harness.engine import staged_worker  # it imports JAX

    staged_worker.measure(line, current_fd, stored, import_ns)


def measure_side(line: bytes, current_fd: int, stored: threading.Semaphore) -> None:
    """Measure the job's cases on its side of a comparison.

    The environment is verified, and the process kept to its cores, before NumPy or JAX are
    imported: both read their variables, and count cores, when they are. JAX and a baseline's
    library never share a process.
    """
    from harness.declare.code import LoadedCode  # nothing of it in an ordinary process
    from harness.engine import containment
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

    job, current = decode_job(line), CurrentVisit(current_fd)
    state = verified(job.environment, job.threads)  # before there is another thread
    channel.follow_parent(stored.release)
    send = sender(stored)
    from harness.engine.compared_session import ComparedSession  # NumPy and JAX with it

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


if __name__ == "__main__":
    main(int(sys.argv[1]), compared=sys.argv[2:] == ["compared"])
    channel.end()
