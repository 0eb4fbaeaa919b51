"""One isolated process that measures a job and streams records.

Started as `python -m harness.measure.worker CURRENT [compared]`, where CURRENT is an open file that
says what is being measured. An ordinary process imports as little as it can before JAX, because
the import of JAX is one of the numbers.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from harness.measure import channel

if TYPE_CHECKING:
    from harness.workload.code import LoadedCode

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

    staged(line, current_fd, stored, _clock() - begin)


def staged(
    line: bytes,
    current_fd: int,
    stored: threading.Semaphore,
    import_ns: int | None = None,
    code: LoadedCode | None = None,
) -> None:
    """Wake the back end, and take the stages of the job's cases; JAX has been imported.

    `import_ns` is what the import of JAX took; None in a process that was forked after it, and so
    cannot tell what a process pays once. `code` notes what is loaded, where that was begun already.
    """
    import jax  # of what is imported here, only JAX before it was timed

    from harness.measure.job import CurrentVisit, Fatal, decode_job, sender, workload_of
    from harness.targets import topologies

    job, current, send = decode_job(line), CurrentVisit(current_fd), sender(stored)
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
    # Now, because what these import of JAX belongs to the time of the back end.
    from harness.jaxhooks.evidence import Evidence
    from harness.measure import containment, session, staged
    from harness.workload.code import LoadedCode

    job.base["contained"] = containment.contain(job.memory_limit_bytes if job.on_host else None)
    code, proof = code or LoadedCode(), Evidence()
    code.begin()
    workload = workload_of(job, lambda reason: send(Fatal(reason)))
    if workload is None:
        return
    process_ns = None
    if import_ns is not None:
        ready_ns = time.monotonic_ns() - channel.spawned_ns()
        process_ns = {"import": import_ns, "backend": backend_ns, "ready": float(ready_ns)}
    begun = session.Session(job, workload, send, current, code, about=staged.about(topology))
    try:
        staged.Staged(begun, proof, process_ns, topology).measure()
    except topologies.Unusable as error:
        send(Fatal(str(error)))


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
