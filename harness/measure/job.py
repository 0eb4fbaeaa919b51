"""A job: what one process is to measure of a workload; and what the process says meanwhile.

Jobs are plain data, so that they can be sent to another machine. Whoever carries one out needs
neither the plan nor the workload's class.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Semaphore
from typing import Any

import msgspec

from harness.measure import channel
from harness.records.failure import describe
from harness.records.schema import Comparison, Record, to_raw
from harness.workload.code import project_folder
from harness.workload.location import Source, load
from harness.workload.source import comparison_version_of, version_of
from harness.workload.workload import Workload, WorkloadError, declaration_hooks, where


class JobCase(msgspec.Struct):
    """One case: found by position, and held against its name."""

    index: int
    id: str
    key: str
    label: str = ""
    axes: dict[str, Any] = msgspec.field(default_factory=dict)
    transform: str = ""
    precision: str = ""
    fingerprint: str = ""
    """The program that the persistent cache must answer with, where that is known."""
    scenario: str = ""
    """The state of the persistent cache, where a job has several."""
    extra_ns: dict[str, float] = msgspec.field(default_factory=dict)
    """Nanoseconds of extra work by stage; see :mod:`harness.stages.injection`. Ordinarily none."""


class Job(msgspec.Struct, kw_only=True):
    """The cases that one process is to measure, and what it writes into each record."""

    source: Source
    target: str
    description: str = ""
    """What tells the compiler of a compile-only target's device; empty for a real one."""
    platforms: str
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    """Variables that the target, or the threads of a comparison, need in the process."""
    cpu_devices: int = 0
    """How many CPU devices the process makes; 0 leaves it to JAX."""
    x64: bool = False
    backend: str = ""
    """Who computes, in a comparison with a baseline; empty for an ordinary measurement."""
    threads: str = ""
    """How many threads a comparison may use."""
    precision: str = ""
    """Of float32 products, for a side that reads it from the environment."""
    scenario: str = "off"
    """The state of the persistent cache; see :mod:`harness.stages.scenarios`."""
    first_call: bool = False
    """Whether each case is called once in a process of its own, in the scenario that it names, and
    nothing else is taken."""
    cache_folder: str = ""
    """The directory of the persistent cache, or of artefacts, made where the job is carried out;
    empty for none."""
    fills: bool = False
    """Whether nothing is measured: the process only fills the directory."""
    programs: str = ""
    """The folder in which the texts of what is built are kept; empty where they are not."""
    cases: list[JobCase]
    passes: int = 1
    seed: int = 0
    group: str = ""
    """What the processes of the workload's group of cases are called after."""
    process: int = 0
    process_key: str = ""
    reference_key: str = ""
    base: dict[str, Any] = msgspec.field(default_factory=dict)
    """Fields of `Record` that are the same for all records of the job."""
    surroundings: dict[str, Any] = msgspec.field(default_factory=dict)
    """What the process would find out about its machine, found out beforehand to save its time."""
    inside: bool = False
    """Whether each case is compiled once more at the end, under XLA's own events."""
    timeout_s: float = 0.0
    """For one pass over one case."""
    memory_limit_bytes: int | None = None

    @property
    def on_host(self) -> bool:
        """Whether its process holds all that it needs in the memory of the machine."""
        return self.target == "cpu" or bool(self.description)

    @property
    def comparison(self) -> Comparison | None:
        """What a record says of the side that it takes, before anything is known."""
        return Comparison(self.backend, self.threads) if self.backend else None

    @property
    def project(self) -> Path:
        """The folder that names of the project's files start from."""
        return project_folder(self.source)

    def workload(self) -> type[Workload]:
        """Return the class that it is about, once its source is known to be the one meant.

        Records say which version was measured; the file may have been edited since that was found
        out, or be another one on another machine. A class without a file is always the one sent.
        """
        workload = load(self.source)
        expected = self.base.get("version")
        if not self.source.pickled and expected:
            version = (comparison_version_of if self.backend else version_of)(workload)
            if version != expected:
                raise WorkloadError(
                    f"{where(workload)} has version {version} where it is measured, and {expected} "
                    "where that was asked for: the source differs. Bring both to one commit, and "
                    "run again."
                )
        return workload


def unmeasured(job: Job, ref: JobCase, status: str, reason: str, **fields: Any) -> Record:
    """Return the record of a case that was not measured; `fields` go before those of the job."""
    own = {"environment": to_raw({}), "started_at_ms": time.time_ns() // 1_000_000}
    own |= {"comparison": job.comparison, "scenario": ref.scenario or job.scenario}
    own |= {"axes": dict(ref.axes), "transform": ref.transform, "precision": ref.precision}
    own |= {"key": ref.key, "status": status, "reason": reason}
    return Record(**{**job.base, **own, **fields})


class Done(msgspec.Struct, tag="done"):
    """A record is complete; the process waits until it hears that it is stored."""

    record: Record


class BeforeCalls(msgspec.Struct, tag="built"):
    """A case is built and called next: what its record holds should the process not survive."""

    record: Record


class Hello(msgspec.Struct, tag="hello"):
    """The process has started and knows its environment."""

    environment: msgspec.Raw
    load_average: list[float]
    contained: list[str] = []


class Fatal(msgspec.Struct, tag="fatal"):
    """The process cannot measure anything, for a reason that the user can mend."""

    reason: str


class Bye(msgspec.Struct, tag="bye"):
    """The process is through."""


Message = Done | BeforeCalls | Hello | Fatal | Bye

encode = msgspec.json.Encoder().encode
decode_message = msgspec.json.Decoder(Message).decode
decode_job = msgspec.json.Decoder(Job).decode


REFERENCE = "reference"
"""Stands for the reference program where a case's key is expected."""

_VISIT = struct.Struct("<32sq32s")
SIZE = _VISIT.size


@dataclass(frozen=True)
class Visit:
    """A stage of a case is being measured; `case` may be :data:`REFERENCE`."""

    case: str
    """Its key."""
    pass_: int
    stage: str


class CurrentVisit:
    """A note of fixed size of what a process is at, in a file that both processes have open.

    A message would be read at once, by a process that then works beside what is being timed: on two
    hyperthreads of one core that made traces 30 % slower. A note in shared memory costs a
    microsecond, wakes nobody, and survives the process that wrote it.
    """

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, SIZE)

    def write(self, visit: Visit) -> None:
        """Note what is being measured from now on."""
        _VISIT.pack_into(self._memory, 0, visit.case.encode(), visit.pass_, visit.stage.encode())

    def read(self) -> Visit | None:
        """Return the last note, or None if there is none yet."""
        noted = self._memory[:]
        if not any(noted):
            return None
        case, pass_, stage = _VISIT.unpack(noted)
        case, stage = (text.rstrip(b"\0").decode(errors="replace") for text in (case, stage))
        return Visit(case, pass_, stage)

    def close(self) -> None:
        """Let go of the memory."""
        self._memory.close()


# What a measuring process answers with


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
    try:
        return job.workload()
    except WorkloadError as error:
        fail(str(error))
    except (Exception, SystemExit) as error:  # a user's module may even exit
        fail(f"importing {job.source.module} raised {describe(error)}")
    return None
