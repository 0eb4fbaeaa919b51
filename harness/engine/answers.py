"""What a measuring process answers with, before and after each record."""

from __future__ import annotations

from collections.abc import Callable
from threading import Semaphore

from harness.declare.workload import Workload, WorkloadError, declaration_hooks
from harness.engine import channel
from harness.engine.job import Done, Job, Message, encode
from harness.records.failure import describe


def sender(stored: Semaphore) -> Callable[[Message], None]:
    """Return what sends a message; after a record it waits until that is stored."""

    def send(message: Message) -> None:
        channel.send(encode(message))
        if isinstance(message, Done):
            stored.acquire()  # storing it must not go on beside what is measured next

    return send


def workload_of(job: Job, fail: Callable[[str], None]) -> type[Workload] | None:
    """Return the class that a job is about; None where it is not to be had, and `fail` says why."""
    declaration_hooks.called = False  # asv looks for no benchmarks here; making them takes time
    if job.snapshot:
        job.snapshot.enter()
    try:
        return job.workload()
    except WorkloadError as error:
        fail(str(error))
    except (Exception, SystemExit) as error:  # a user's module may even exit
        fail(f"importing {job.source.module} raised {describe(error)}")
    return None
