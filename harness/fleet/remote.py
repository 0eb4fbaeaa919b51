"""Carry an errand out, on the worker: records go to the spool first and to the client then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from harness import __version__, targets
from harness.declare.location import Source
from harness.engine.execution import execute
from harness.engine.job import Bye, Job, JobCase
from harness.errors import HarnessError
from harness.fleet import installed, nanny, sources, spool
from harness.fleet.device import alone
from harness.fleet.errand import Errand, Kept, Report, decode_errand, encode_report, encode_said
from harness.records import environment
from harness.records.schema import Record, encode
from harness.sides.registry import SIDES

_stopped: set[str] = set()


class Stopped(Exception):
    """The client has ended the sweep."""


def carry_out(errand: bytes) -> bytes:
    """Measure what an errand asks for, and return the report; runs on the worker.

    The records of cases that are in the spool already, from a client that went away or a worker
    that was killed, are returned and not measured again.
    """
    asked = decode_errand(errand)
    report = Report(asked.id, [])
    worker = _dask_worker(asked)
    if worker:
        nanny.undo(worker)  # it may have been started anew since it was asked what it is
    spool.forget(asked.owner, asked.stored)
    report.refused = _changed(asked)
    report.elsewhere = bool(report.refused)
    if not report.refused:
        found = sources.here(asked.job.source)
        if found is None:
            report.refused = f"{asked.job.source.module} is gone"
        else:
            _carry_out(asked, found, report)
    # A client that has heard of every record need not fetch the whole report.
    _saying(asked)(encode_said(msgspec.structs.replace(report, kept=[])))
    return encode_report(report)


def stop(sweep: str) -> None:
    """End what is being measured for a sweep, on this worker."""
    _stopped.add(sweep)


def _carry_out(asked: Errand, found: Source, report: Report) -> None:
    report.refused = spool.trouble(asked.owner)
    if report.refused:
        return
    store = spool.store(asked.owner, asked.id)
    if store.path.exists():
        # Dask runs a task anew where a worker comes back under the address of one that was lost.
        report.lost = "the worker was lost, and has come back"
        return
    asked.job = _at_home(asked.job, found)
    listener = _Listener(asked, report)
    try:
        store.open()
        with alone(asked.devices, listener.check):
            listener.start()
            if asked.job.cases:
                execute(asked.job, listener)
    except Stopped:
        report.stopped = True
    except (HarnessError, OSError) as error:  # a disk is full, or no process can be started
        report.refused = spool.trouble(asked.owner) or f"{type(error).__name__}: {error}"
    report.spooled = spool.size(asked.owner, asked.id)
    if not report.spooled:
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


def _changed(asked: Errand) -> str:
    """Say what is not as it was when this worker was chosen: it may be another one by now."""
    expected = asked.expected
    if expected.harness != __version__:
        return f"it has harness {__version__} now, and had {expected.harness}"
    found = installed.versions()
    for name, version in expected.versions.items():
        if found.get(name) != version:
            return f"it has {name} {found.get(name) or 'not at all'} now, and had {version}"
    machine = environment.machine_name()
    if expected.machine != machine:
        return f"it is on the machine {machine} now, and was on {expected.machine}"
    if expected.identity != environment.identity():
        return "its flags, plugins or hardware are not what they were"
    return ""


class _Listener:
    def __init__(self, asked: Errand, report: Report) -> None:
        self.asked = asked
        self.report = report
        self.store = spool.store(asked.owner, asked.id)
        self.say = _saying(asked)

    def start(self) -> None:
        """Take over what an earlier errand has left in the spool."""
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
        kept = Kept(self.asked.id, encode(record), ref.index if ref else None, hopeless)
        self.report.kept.append(kept)
        self.report.said += 1
        self.say(encode_said(kept))

    def tell(self, case: str, stage: str) -> None:
        pass

    def check(self) -> None:
        if self.asked.sweep in _stopped:
            raise Stopped

    def timed(self, bye: Bye) -> None:
        self.report.timed_ns += bye.timed_ns
        self.report.wall_ns += bye.wall_ns


def _dask_worker(asked: Errand) -> Any:
    """Return the Dask worker that this runs on, or None: other pools have no topics."""
    if not asked.topic:
        return None
    from distributed import get_worker

    return get_worker()


def _saying(asked: Errand) -> Callable[[bytes], None]:
    worker = _dask_worker(asked)
    if not worker:
        return lambda said: None
    return lambda said: worker.log_event(asked.topic, said)
