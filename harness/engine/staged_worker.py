"""A measuring process that takes the stages of cases, from when it has imported JAX."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import Semaphore

import jax

from harness.declare.code import LoadedCode
from harness.engine import channel, containment
from harness.engine.job import CurrentVisit, Fatal, decode_job, sender, workload_of
from harness.targets import topologies

_clock = time.perf_counter_ns


@contextmanager
def one_thread() -> Iterator[None]:
    """Have the back end that is woken inside compute calls inline, each on one thread.

    XLA reads how many threads it is to have from NPROC, once; of what decides on dispatch the
    environment variable is ignored (jax 0.10 to 0.12).
    """
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    before = os.environ.get("NPROC")
    os.environ["NPROC"] = "1"
    try:
        yield
    finally:
        del os.environ["NPROC"]
        if before is not None:
            os.environ["NPROC"] = before


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
        with one_thread() if job.apart == "compute" else nullcontext():
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
    from harness.engine import apart_session, session
    from harness.watch.evidence import Evidence

    contained = containment.contain(job.memory_limit_bytes if job.on_host else None)
    for part in job.parts:
        part.base["contained"] = contained
    code, proof = code or LoadedCode(), Evidence()
    code.begin()
    if job.apart == "compute":
        apart_session.measure(job, send, current, code, proof)
        return
    workload = workload_of(job, lambda reason: send(Fatal(reason)))
    if workload is None:
        return
    process_ns = None
    if import_ns is not None:
        ready_ns = time.monotonic_ns() - channel.spawned_ns()
        process_ns = {"import": import_ns, "backend": backend_ns, "ready": float(ready_ns)}
    kind = apart_session.FirstCallSession if job.apart else session.PassSession
    try:
        kind(job, workload, send, current, code, proof, process_ns, topology).measure()
    except topologies.Unusable as error:
        send(Fatal(str(error)))
