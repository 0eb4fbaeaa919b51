"""Carry an order out, on the worker: records go to its spool first, to client or store then."""

from __future__ import annotations

import msgspec

from harness import __version__, targets
from harness.declare.location import Source
from harness.engine.execution import execute
from harness.engine.job import Bye, Job, JobCase
from harness.errors import HarnessError
from harness.fleet import machine, sources, spool
from harness.records import environment
from harness.records.schema import Record, encode
from harness.sides.registry import SIDES

_stopped: set[str] = set()


class Order(msgspec.Struct, kw_only=True):
    """A job on its way to a worker."""

    id: str
    owner: str
    """Whose records they are; see :mod:`harness.fleet.spool`."""
    sweep: str
    job: Job
    host: str
    """Which machine is meant; see :func:`harness.fleet.machine.host`."""
    identity: str
    """That of the environment for which the job was planned."""
    devices: list[str]
    """What the job has for itself while it is measured."""
    stored: dict[str, int] = msgspec.field(default_factory=dict)
    """Earlier orders whose records the client has, and the bytes of their files there."""
    store: str = ""
    """Where records are put, and not sent to the client; see :func:`harness.fleet.spool.push`."""
    fresh: bool = False
    """Measure again what is kept there of other sweeps."""
    harness: str = __version__


class Result(msgspec.Struct, omit_defaults=True):
    """What became of an order."""

    records: bytes = b""
    """Of cases, of the process itself and of its reference program: lines of the store."""
    done: list[str] = msgspec.field(default_factory=list)
    """The keys of cases whose records are in the store that the order names."""
    hopeless: list[str] = msgspec.field(default_factory=list)
    """The keys of cases that another process could not do better."""
    loop_ns: float = 0.0
    """How long the plain loop of the reference program took; 0 where none was measured."""
    timed_ns: float = 0.0
    wall_ns: float = 0.0
    refused: str = ""
    """Why it was not carried out here, or not to its end; another worker may."""
    elsewhere: bool = False
    """It was refused because this is not, or no longer, the worker that was meant."""
    kept_bytes: int = 0
    """The size of its file in the spool."""


decode_order = msgspec.msgpack.Decoder(Order).decode
decode_result = msgspec.msgpack.Decoder(Result).decode
pack = msgspec.msgpack.encode


class Stopped(Exception):
    """The client has ended the sweep."""


class WorkerLost(Exception):
    """An earlier attempt at the order ended with its worker."""


def stop(sweep: str) -> None:
    """End what is being measured for a sweep, on this worker."""
    _stopped.add(sweep)


def carry_out(order: bytes) -> bytes:
    """Measure what an :class:`Order` asks for, and return the :class:`Result`; runs on the worker.

    Raises:
        WorkerLost: it was begun here before.
    """
    asked = decode_order(order)
    machine.undo_nanny()  # the worker may have been started anew since it was asked what it is
    spool.forget(asked.owner, asked.stored)
    result = Result(refused=_changed(asked))
    result.elsewhere = bool(result.refused)
    if not result.refused:
        result.refused = spool.trouble(asked.owner)
    if not result.refused:
        _measure(asked, result)
    return pack(result)


def _measure(asked: Order, result: Result) -> None:
    found = sources.here(asked.job.source)
    if found is None:
        result.refused = f"{asked.job.source.module} is gone"
        return
    store = spool.store(asked.owner, asked.id)
    if store.path.exists():
        # Dask runs a task anew where a worker comes back under the address of one that was lost.
        raise WorkerLost("the worker was lost, and has come back")
    asked.job = _at_home(asked.job, found)
    listener = _Listener(asked, result)
    try:
        store.open()
        with machine.alone(asked.devices, lambda holder: listener.check()):
            listener.start()
            if asked.job.cases:
                execute(asked.job, listener)
    except Stopped:
        pass
    except (HarnessError, OSError) as error:  # a disk is full, or no process can be started
        result.refused = spool.trouble(asked.owner) or f"{type(error).__name__}: {error}"
    if asked.store:
        try:
            spool.push(asked.owner, asked.id, asked.store)
        except (HarnessError, OSError) as error:
            result.refused = result.refused or str(error)
            result.done.clear()
    result.kept_bytes = store.size()
    if not result.kept_bytes:
        spool.forget(asked.owner, {asked.id: 0})


def _at_home(job: Job, source: Source) -> Job:
    """Return a job with what depends on the machine in how its target is reached."""
    job.base["worker"] = environment.machine_name()
    target = targets.TARGETS.get(job.target)
    if target is None:  # from a file of the client's, whose text the job holds
        return msgspec.structs.replace(job, source=source)
    has_jax = not job.backend or SIDES[job.backend].uses_jax
    platforms = target.platforms if has_jax else job.platforms
    needed = dict(target.environment)
    return msgspec.structs.replace(job, source=source, platforms=platforms, environment=needed)


def _changed(asked: Order) -> str:
    """Say what is not as it was when this worker was chosen: it may be another one by now."""
    if asked.harness != __version__:
        return f"it has harness {__version__}, and the client {asked.harness}"
    if machine.host() != asked.host:
        return "it is on another machine now"
    machine.versions()  # before the identity, which is made of them
    if environment.identity() != asked.identity:
        return "its packages, flags, plugins or hardware are not what they were"
    return ""


class _Listener:
    def __init__(self, asked: Order, result: Result) -> None:
        self.asked = asked
        self.result = result
        self.spooled = spool.store(asked.owner, asked.id)

    def start(self) -> None:
        """Take over what an earlier order, or another client's, has left in the spool."""
        job = self.asked.job
        wanted = {ref.key: ref for ref in job.cases}
        for record in spool.kept(self.asked.owner, job.base["replicate"]):
            if self.asked.fresh and record.sweep != self.asked.sweep:
                continue
            if wanted.pop(record.key, None) or record.key in (job.process_key, job.reference_key):
                self.keep(record, None)
        job.cases = list(wanted.values())

    def keep(self, record: Record, ref: JobCase | None, hopeless: bool = False) -> None:
        self.spooled.append([record])
        self.result.loop_ns = record.reference_ns.get("loop", self.result.loop_ns)
        if self.asked.store and record.status == "ok":
            self.result.done.append(record.key)
        else:
            self.result.records += encode(record)
        if hopeless:
            self.result.hopeless.append(record.key)

    def tell(self, case: str, stage: str, ref: JobCase | None = None) -> None:
        pass

    def check(self) -> None:
        if self.asked.sweep in _stopped:
            raise Stopped

    def timed(self, bye: Bye) -> None:
        self.result.timed_ns += bye.timed_ns
        self.result.wall_ns += bye.wall_ns
