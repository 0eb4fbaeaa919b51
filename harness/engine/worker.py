"""One isolated process that measures a job and streams records.

Started as `python -m harness.engine.worker CURRENT [compared]`, where CURRENT is an open file that
says what is being measured. An ordinary process imports as little as it can before JAX, because
the import of JAX is one of the numbers. One that takes a side of a comparison verifies its
environment, and is kept to its cores, before NumPy or JAX are imported: both read their variables,
and count cores, when they are. JAX and a baseline's library never share a process.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from harness.engine import channel

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.declare.workload import Workload
    from harness.engine.job import Job, Message
    from harness.engine.visit import CurrentVisit

_clock = time.perf_counter_ns


def main(current_fd: int, compared: bool) -> None:
    """Read a job, measure it, and end."""
    line = channel.read_job()
    stored = threading.Semaphore(0)
    import_ns = 0
    if not compared:
        channel.follow_parent(stored.release)
        begin = _clock()
        import jax  # noqa: F401

        import_ns = _clock() - begin

    from harness.engine.job import decode_job
    from harness.engine.visit import CurrentVisit

    job, current = decode_job(line), CurrentVisit(current_fd)
    if compared:
        _compare(job, current, stored)
    else:
        _stage(job, current, _sender(stored), import_ns)


def _stage(
    job: Job, current: CurrentVisit, send: Callable[[Message], None], import_ns: int
) -> None:
    """Wake the back end, and take the stages of the job's cases."""
    import jax

    from harness.engine.job import Fatal
    from harness.targets import topologies

    topology = None
    try:
        topologies.check_process(job.target, job.platforms, job.environment)
        begin = _clock()
        jax.devices()
        if job.description:
            topology = topologies.describe(job.target, job.description)
        backend_ns = _clock() - begin
        topologies.check_device(job.target, job.description)
    except RuntimeError as error:
        send(Fatal(f"JAX found no {job.target} device: {error}"))
        return
    except topologies.Unusable as error:
        send(Fatal(str(error)))
        return
    from harness.engine.session import StagedSession

    workload = _workload(job, send)
    if workload is None:
        return
    process_ns: dict[str, float] = {"import": import_ns, "backend": backend_ns}
    session = StagedSession(
        job, workload, send, current, process_ns, channel.spawned_ns(), topology
    )
    try:
        session.measure()
    except topologies.Unusable as error:
        send(Fatal(str(error)))


def _compare(job: Job, current: CurrentVisit, stored: threading.Semaphore) -> None:
    """Verify the process, and take one side of a comparison."""
    from harness.sides.side_process import verified

    state = verified(job.environment, job.threads)  # before there is another thread
    channel.follow_parent(stored.release)
    send = _sender(stored)

    from harness.engine.compared_session import ComparedSession
    from harness.engine.job import Fatal
    from harness.sides import registry
    from harness.sides.side import Unavailable

    workload = _workload(job, send)
    if workload is None:
        return
    try:
        side = registry.find(job.backend)(job.target)
    except Unavailable as error:
        ComparedSession(job, workload, send, current, state).skip(str(error))
    except RuntimeError as error:
        send(Fatal(f"JAX found no {job.target} device: {error}"))
    else:
        ComparedSession(job, workload, send, current, state, side).measure()


def _sender(stored: threading.Semaphore) -> Callable[[Message], None]:
    """Return what sends a message; after a record it waits until that is stored."""
    from harness.engine.job import Done, encode

    def send(message: Message) -> None:
        channel.send(encode(message))
        if isinstance(message, Done):
            stored.acquire()  # storing it must not go on beside what is measured next

    return send


def _workload(job: Job, send: Callable[[Message], None]) -> type[Workload] | None:
    """Return the class that a job is about; None where it is not to be had, which is then said."""
    from harness.declare.workload import WorkloadError
    from harness.engine.job import Fatal
    from harness.records.failure import describe

    try:
        return job.workload()
    except WorkloadError as error:
        send(Fatal(str(error)))
    except (Exception, SystemExit) as error:  # a user's module may even exit
        send(Fatal(f"importing {job.source.module} raised {describe(error)}"))
    return None


if __name__ == "__main__":
    main(int(sys.argv[1]), compared=sys.argv[2:] == ["compared"])
    channel.end()
