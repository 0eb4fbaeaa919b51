"""Carry an order out, on the worker: records go to the client, or to a store that all see."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from harness import __version__, targets
from harness.declare.location import Source
from harness.engine.execution import execute
from harness.engine.job import Bye, Job, JobCase
from harness.engine.lock import alone, host
from harness.errors import HarnessError, StoreError
from harness.fleet import place, shared, sources
from harness.records import environment
from harness.records.schema import Record, encode
from harness.sides.registry import SIDES

_stopped: set[str] = set()


class Order(msgspec.Struct, kw_only=True):
    """A job on its way to a worker."""

    sweep: str
    job: Job
    host: str
    """Which machine is meant; see :func:`harness.engine.lock.host`."""
    identity: str
    """That of the environment for which the job was planned."""
    devices: list[str]
    """What the job has for itself while it is measured."""
    store: str = ""
    """Where records are put, and not sent to the client; see :func:`harness.fleet.shared.put`."""
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


decode_order = msgspec.msgpack.Decoder(Order).decode
decode_result = msgspec.msgpack.Decoder(Result).decode
pack = msgspec.msgpack.encode


class Stopped(Exception):
    """The client has ended the sweep."""


def stop(sweep: str) -> None:
    """End what is being measured for a sweep, on this worker."""
    _stopped.add(sweep)


def carry_out(order: bytes) -> bytes:
    """Measure what an :class:`Order` asks for, and return the :class:`Result`; on the worker."""
    asked = decode_order(order)
    place.undo_nanny()  # the worker may have been started anew since it was asked what it is
    result = Result(refused=_changed(asked))
    result.elsewhere = bool(result.refused)
    if not result.refused:
        _measure(asked, result)
    return pack(result)


def _measure(asked: Order, result: Result) -> None:
    found = sources.here(asked.job.source)
    if found is None:
        result.refused = f"{asked.job.source.module} is gone"
        return
    listener = _Listener(asked, result)
    try:
        with alone(asked.devices, lambda holder: listener.check()):
            execute(_at_home(asked.job, found), listener)
    except Stopped:
        pass
    except (HarnessError, OSError) as error:  # a disk is full, or no process can be started
        result.refused = f"{type(error).__name__}: {error}"
    if listener.put:
        try:
            shared.put(asked.store, listener.put)
        except StoreError as error:
            result.refused = result.refused or str(error)
            result.done.clear()


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
    if host() != asked.host:
        return "it is on another machine now"
    place.versions()  # before the identity, which is made of them
    if environment.identity() != asked.identity:
        return "its packages, flags, plugins or hardware are not what they were"
    return ""


@dataclass
class _Listener:
    asked: Order
    result: Result
    put: list[Record] = field(default_factory=list)
    """What goes to the store."""

    def keep(self, record: Record, ref: JobCase | None, hopeless: bool = False) -> None:
        self.result.loop_ns = record.reference_ns.get("loop", self.result.loop_ns)
        if self.asked.store and record.status == "ok":
            self.put.append(record)
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
