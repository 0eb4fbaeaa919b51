"""A measuring process that takes the stages of cases, from when it has imported JAX."""

from __future__ import annotations

import time
from threading import Semaphore

import jax

from harness.measure import channel, containment
from harness.measure.job import CurrentVisit, Fatal, decode_job, sender, workload_of
from harness.targets import topologies
from harness.workload.code import LoadedCode

_clock = time.perf_counter_ns


def measure(
    line: bytes,
    current_fd: int,
    stored: Semaphore,
    import_ns: int | None = None,
    code: LoadedCode | None = None,
) -> None:
    """Wake the back end, and take the stages of the job's cases.

    `import_ns` is what the import of JAX took; None in a process that was forked after it, and so
    cannot tell what a process pays once. `code` notes what is loaded, where that was begun already.
    """
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
    # Now, because what it imports of JAX belongs to the time of the back end.
    from harness.jaxhooks.evidence import Evidence
    from harness.measure import staged
    from harness.measure.session import Session

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
    session = Session(job, workload, send, current, code, about=staged.about(topology))
    try:
        staged.Staged(session, proof, process_ns, topology).measure()
    except topologies.Unusable as error:
        send(Fatal(str(error)))
