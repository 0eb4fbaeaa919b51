"""A unit of work: one workload, one process's share; and what the process says while it works.

Units are plain data, so that they can be sent to another machine. A unit names its workload by
module and file; only a class that has no file (typed at a prompt) travels as a pickle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from harness.declare.location import Source, load
from harness.declare.source import comparison_version_of, version_of
from harness.declare.workload import Case, Workload, WorkloadError, enumerate_cases, where
from harness.records.schema import Record


class CaseRef(msgspec.Struct):
    """One case: found by position, and held against its name."""

    index: int
    id: str
    key: str
    fingerprint: str = ""
    """The program that the persistent cache must answer with, where that is known."""
    extra_ns: dict[str, float] = msgspec.field(default_factory=dict)
    """Nanoseconds of extra work by stage; see :mod:`harness.stages.injection`. Ordinarily none."""


class Unit(msgspec.Struct):
    """What one process is asked to do, and what it writes into each record."""

    source: Source
    target: str
    platforms: str
    cpu_devices: int
    """How many CPU devices the process makes; 0 leaves it to JAX."""
    x64: bool
    cases: list[CaseRef]
    passes: int
    seed: int
    process_key: str
    reference_key: str
    base: dict[str, Any]
    """Fields of `Record` that are the same for all records of the unit."""
    scenario: str = "off"
    """The state of the persistent cache; see :mod:`harness.stages.scenarios`."""
    cache_folder: str = ""
    """The directory of the persistent cache; empty where the scenario is `off`."""
    spawned_ns: int = 0
    """The monotonic clock when the process was started."""
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    """Variables that the target, or the threads of a comparison, need in the process."""
    backend: str = ""
    """Who computes, in a comparison with a baseline; empty for an ordinary measurement."""
    threads: str = ""
    """How many threads a comparison may use."""
    precision: str = ""
    """Of float32 products, for a backend that reads it from the environment."""
    description: str = ""
    """What tells the compiler of a compile-only target's device; empty for a real one."""
    programs: str = ""
    """The folder in which the texts of what is built are kept; empty where they are not."""
    surroundings: dict[str, Any] = msgspec.field(default_factory=dict)
    """What the process would find out about its machine, found out beforehand to save its time."""


class Done(msgspec.Struct, tag="done"):
    """A record is complete."""

    record: Record


class Hello(msgspec.Struct, tag="hello"):
    """The process has started and knows its environment."""

    environment: msgspec.Raw
    load_average: list[float]


class Fatal(msgspec.Struct, tag="fatal"):
    """The process cannot measure anything, for a reason that the user can mend."""

    reason: str


class Bye(msgspec.Struct, tag="bye"):
    """The process is through; how much of its time since `Hello` was inside timed regions."""

    timed_ns: float
    wall_ns: float


Message = Done | Hello | Fatal | Bye

encode_message = msgspec.json.Encoder().encode
decode_message = msgspec.json.Decoder(Message).decode
encode_unit = msgspec.json.Encoder().encode
decode_unit = msgspec.json.Decoder(Unit).decode


def workload_of(unit: Unit) -> type[Workload]:
    """Return the class that a unit is about, once its source is known to be the one meant.

    Records say which version was measured; the file may have been edited since that was found out,
    or be another one on another machine. A class without a file is always the one that was sent.

    Raises:
        WorkloadError: the source is another one; both versions are named.
    """
    workload = load(unit.source)
    expected = unit.base.get("version")
    if not unit.source.pickled and expected:
        found = (comparison_version_of if unit.backend else version_of)(workload)
        if found != expected:
            raise WorkloadError(
                f"{where(workload)} has version {found} where it is measured, and {expected} where "
                "that was asked for: the source differs. Bring both to one commit, and run again."
            )
    return workload


def matched(unit: Unit, workload: type[Workload]) -> Iterator[tuple[CaseRef, Case | None, str]]:
    """Yield each case of a unit as this process finds it; None, and why, where it finds another."""
    known = list(enumerate_cases(workload, [unit.target]))
    for ref in unit.cases:
        case = known[ref.index] if ref.index < len(known) else None
        if case is not None and case.id == ref.id:
            yield ref, case, ""
        else:
            reason = (
                f"case {ref.index} is {case.id if case else 'missing'} in the measuring process, "
                f"{ref.id} outside: a sweep must not depend on the process"
            )
            yield ref, None, reason
