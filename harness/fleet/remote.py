"""Carry an assignment out, on the worker: records go to the spool first and to the client then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from harness import __version__, targets
from harness.declare.location import Source
from harness.engine.execution import execute
from harness.engine.job import Bye, Job, JobCase
from harness.errors import HarnessError
from harness.fleet import machine, messages, sources, spool
from harness.fleet.messages import Assignment, RecordLine, Result
from harness.records import environment
from harness.records.schema import Record, encode
from harness.sides.registry import SIDES

_stopped: set[str] = set()


class Stopped(Exception):
    """The client has ended the sweep."""


def carry_out(assignment: bytes) -> bytes:
    """Measure what an assignment asks for, and return the result; runs on the worker.

    The records of cases that are in the spool already, from a client that went away or a worker
    that was killed, are returned and not measured again.
    """
    asked = messages.decode_assignment(assignment)
    result = Result(asked.id, [])
    worker = _dask_worker(asked)
    if worker:
        machine.undo_nanny(worker)  # it may have been started anew since it was asked what it is
    spool.forget(asked.owner, asked.stored)
    result.refused = _changed(asked)
    result.elsewhere = bool(result.refused)
    if not result.refused:
        found = sources.here(asked.job.source)
        if found is None:
            result.refused = f"{asked.job.source.module} is gone"
        else:
            _carry_out(asked, found, result)
    # A client that has heard of every record need not fetch the whole result.
    _teller(asked)(messages.encode(msgspec.structs.replace(result, lines=[])))
    return messages.encode(result)


def stop(sweep: str) -> None:
    """End what is being measured for a sweep, on this worker."""
    _stopped.add(sweep)


def _carry_out(asked: Assignment, found: Source, result: Result) -> None:
    result.refused = spool.trouble(asked.owner)
    if result.refused:
        return
    store = spool.store(asked.owner, asked.id)
    if store.path.exists():
        # Dask runs a task anew where a worker comes back under the address of one that was lost.
        result.lost = "the worker was lost, and has come back"
        return
    asked.job = _at_home(asked.job, found)
    listener = _Listener(asked, result)
    try:
        store.open()
        with machine.alone(asked.devices, listener.check):
            listener.start()
            if asked.job.cases:
                execute(asked.job, listener)
    except Stopped:
        result.stopped = True
    except (HarnessError, OSError) as error:  # a disk is full, or no process can be started
        result.refused = spool.trouble(asked.owner) or f"{type(error).__name__}: {error}"
    result.spooled = spool.size(asked.owner, asked.id)
    if not result.spooled:
        spool.forget(asked.owner, {asked.id: 0})


def _at_home(job: Job, source: Source) -> Job:
    """Return a job with what depends on the machine in how its target is reached."""
    target = targets.TARGETS.get(job.target)
    if target is None:  # from a file of the client's, whose text the job holds
        return msgspec.structs.replace(job, source=source)
    has_jax = not job.backend or SIDES[job.backend].uses_jax
    platforms = target.platforms if has_jax else job.platforms
    environment = dict(target.environment)
    return msgspec.structs.replace(job, source=source, platforms=platforms, environment=environment)


def _changed(asked: Assignment) -> str:
    """Say what is not as it was when this worker was chosen: it may be another one by now."""
    expected = asked.expected
    if expected.harness != __version__:
        return f"it has harness {__version__} now, and had {expected.harness}"
    found = machine.versions()
    for name, version in expected.versions.items():
        if found.get(name) != version:
            return f"it has {name} {found.get(name) or 'not at all'} now, and had {version}"
    name = environment.machine_name()
    if expected.machine != name:
        return f"it is on the machine {name} now, and was on {expected.machine}"
    if expected.identity != environment.identity():
        return "its flags, plugins or hardware are not what they were"
    return ""


class _Listener:
    def __init__(self, asked: Assignment, result: Result) -> None:
        self.asked = asked
        self.result = result
        self.store = spool.store(asked.owner, asked.id)
        self.say = _teller(asked)

    def start(self) -> None:
        """Take over what an earlier assignment has left in the spool."""
        job = self.asked.job
        replicate, sweep = job.base["replicate"], job.base["sweep"]
        wanted = {ref.key: ref for ref in job.cases}
        instruments = (job.process_key, job.reference_key)
        for record in spool.kept(self.asked.owner):
            if record.replicate != replicate or record.status not in ("ok", "refused"):
                continue
            if self.asked.fresh and record.sweep != sweep:
                continue
            ref = wanted.pop(record.key, None)
            if ref or record.key in instruments:
                self._pass_on(record, ref)
        job.cases = list(wanted.values())

    def keep(self, record: Record, ref: JobCase | None, hopeless: bool = False) -> None:
        self.store.append([record])
        self._pass_on(record, ref, hopeless)

    def _pass_on(self, record: Record, ref: JobCase | None, hopeless: bool = False) -> None:
        line = RecordLine(self.asked.id, encode(record), ref.index if ref else None, hopeless)
        self.result.lines.append(line)
        self.result.told += 1
        self.say(messages.encode(line))

    def tell(self, case: str, stage: str) -> None:
        pass

    def check(self) -> None:
        if self.asked.sweep in _stopped:
            raise Stopped

    def timed(self, bye: Bye) -> None:
        self.result.timed_ns += bye.timed_ns
        self.result.wall_ns += bye.wall_ns


def _dask_worker(asked: Assignment) -> Any:
    """Return the Dask worker that this runs on, or None: other pools have no topics."""
    if not asked.topic:
        return None
    from distributed import get_worker  # of the extra `fleet`

    return get_worker()


def _teller(asked: Assignment) -> Callable[[bytes], None]:
    worker = _dask_worker(asked)
    if not worker:
        return lambda said: None
    return lambda said: worker.log_event(asked.topic, said)
