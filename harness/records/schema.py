"""The durable record of a measurement: its layout, its line of JSON, and how lines are read.

A record holds what one process measured of one case, with the evidence. Records are lines of JSON
(JSONL), each closed by a CRC-32 over its own bytes, so that a line that was torn by a crash or
changed by hand is told from one that was written whole. Nothing is ever rewritten: a later line
with the same identity replaces an earlier one when the store (`store`) is read.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from harness.jaxhooks.log_file import is_sealed, sealed
from harness.program.compiler.times import CompileTimes
from harness.program.facts import Facts
from harness.records.distribution import Distribution
from harness.records.files import lines
from harness.records.json_file import Count, Milliseconds
from harness.workload.workload import Case

SCHEMA = 1
"""Version of the layout of :class:`Record`; a reader skips, and counts, lines of any other."""

FIRST_CALL = "a first call in a process of its own"
"""The protocol of a process that does nothing else. What records of other protocols have as
`first_call` and `start` was taken in a process that had built the program before."""

INSTRUMENTS = ("process", "reference")
"""The workloads that measure the process and the machine, and are no one's result."""


class StageSamples(msgspec.Struct, omit_defaults=True):
    """The samples of one stage, or the reason why there are none."""

    samples_ns: list[float] = msgspec.field(default_factory=list)
    """Nanoseconds per call, shape (passes,), or (passes x n,) where a pass gives n: what the value
    of the process is made of."""
    method: int = 1
    """How it was taken: what :class:`harness.stages.stage.Stage` says of it. Other methods are not
    compared."""
    number: int = 1
    """Calls averaged in each sample."""
    disturbed: int = 0
    """Rounds of `compute` in which others had the processor for more than a tenth of the time; of
    each case one at the most was made anew."""
    refused: dict[str, int] = msgspec.field(default_factory=dict)
    """Samples thrown away because their evidence contradicted their label: reason to count."""
    reason: str = ""
    """Why the stage was not measured at all, where it was not; or what its samples stand for."""
    unable: str = ""
    """Why the machine or the program has no such stage, as a code of
    :class:`harness.stages.stage.Unable`."""
    programs: list[int] = msgspec.field(default_factory=list)
    """How many programs were built inside of each sample, where there were any."""
    programs_ns: list[float] = msgspec.field(default_factory=list)
    """What JAX reports for lowering and compiling those, in nanoseconds, part of the sample."""
    calls: Distribution | None = None
    """How long the calls took, where each of many was timed by itself. Old records know nothing."""
    collected_ns: list[float] = msgspec.field(default_factory=list)
    """What Python's garbage collector took of each sample, where it was on."""
    cpu_ns: list[float] = msgspec.field(default_factory=list)
    """CPU time of the process per call, all of its threads, for each sample; read outside of the
    clock of `samples_ns`. Where a sample is the least of several calls, this is their mean. Old
    records know nothing."""


class Comparison(msgspec.Struct, omit_defaults=True):
    """What one process found out about one backend's side of a comparison."""

    backend: str
    threads: str
    comparable: bool = False
    """Whether every check was passed; a ratio is only made of two sides that are comparable."""
    reasons: list[str] = msgspec.field(default_factory=list)
    """Which checks failed, and how."""
    labels: list[str] = msgspec.field(default_factory=list)
    """What the reader must know of the times: `cache-resident`, `host-bound`, `disturbed`."""
    error: float | None = None
    """Relative L2 distance to the float64 reference, the greatest over all outputs."""
    gate: float | None = None
    """The greatest error that passes, for the dtype and precision."""
    dtypes: list[str] = msgspec.field(default_factory=list)
    """Of the outputs."""
    cpu_per_wall: float | None = None
    """Seconds of CPU per second of wall in the timed region: how many cores were at work."""
    argument_bytes: int = 0
    output_bytes: int = 0
    rotated: int = 1
    """How many sets of inputs took turns."""
    cache_bytes: int | None = None
    """The last-level cache of the processor, or the L2 cache of the GPU."""
    operations: int | None = None
    """Array operations that the eager baseline makes: about one launch each."""
    traffic_bytes: int | None = None
    """Bytes that the eager baseline's operations read and write."""
    launches: int | None = None
    """Kernels that one call launched, where they were counted on the device."""
    device_ns: float | None = None
    """Time inside kernels per call, as the device counted it; not the headline."""
    compiles: dict[str, int] = msgspec.field(default_factory=dict)
    """What the backend's own kernel cache did: `hits`, `misses`, `bytes`."""
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    """Of the libraries that computed."""

    @property
    def least_bytes(self) -> int:
        """What any program must move: every input read once, every output written once."""
        return self.argument_bytes + self.output_bytes


class Record(msgspec.Struct, omit_defaults=True):
    """What one process measured of one case (or of itself: workloads `process` and `reference`)."""

    schema: int
    key: str
    """Identity of what was measured: workload, version, case, environment, commit and protocol."""
    replicate: str
    """Which process of the sweep; a later record of this key and replicate replaces an earlier."""
    workload: str
    version: str
    axes: dict[str, Any]
    transform: str
    target: str
    scenario: str
    status: str
    """`ok`, `failed`, `skipped`, or `refused` (measured, but no stage could be proven)."""
    machine: str
    env: str
    commit: str
    commit_date_ms: Milliseconds | None
    protocol: str
    """What a process does with a case; records of one protocol may be pooled."""
    effort: str
    sweep: str
    seed: int
    started_at_ms: Milliseconds
    python: str
    jax: str
    jaxlib: str
    environment: msgspec.Raw
    """A JSON object: versions, host, flags that reach XLA, device."""
    precision: str = ""
    """One of :data:`harness.workload.workload.PRECISIONS`, where the workload sweeps it."""
    static: list[str] = msgspec.field(default_factory=list)
    """The axes that the function gets as static arguments."""
    reason: str = ""
    stages: dict[str, StageSamples] = msgspec.field(default_factory=dict)
    reference_ns: dict[str, float] = msgspec.field(default_factory=dict)
    """The reference program's value in this process, per stage: what calibration divides by."""
    code: dict[str, str] = msgspec.field(default_factory=dict)
    """The code that the process ran; see :mod:`harness.workload.code`. Old records know nothing."""
    fingerprint: str = ""
    facts: Facts | None = None
    """What was built, where this process compiled it."""
    compile_times: CompileTimes | None = None
    """The inside of one more compile, which was not timed; None where nobody asked for it."""
    comparison: Comparison | None = None
    """Who computed and whether it was right, in records of a comparison with a baseline."""
    entry_bytes: Count = 0
    """What the persistent cache wrote for the program; 0 where it wrote nothing."""
    night: str = ""
    """The night of a series that measured it, such as `2026-11-20`; "" outside a series."""
    dirty: str = ""
    """Digest of what the working tree had changed since the commit; "" for a clean tree."""
    parent: str = ""
    """The process that it was forked from, with others of the sweep; empty where it was started by
    itself."""
    not_forked: str = ""
    """Why it was started by itself, where others would have been forked."""
    process: str = ""
    """The process that measured: 16 random hexadecimal digits, the same in all of its records,
    those of other workloads included. Old records know nothing."""
    contained: list[str] = msgspec.field(default_factory=list)
    """What the kernel sees to, of the process: that it `ends with its parent`, and that it holds
    no more `memory` than it may. What is missing the harness does alone; old records know
    nothing."""
    load_average: list[float] = msgspec.field(default_factory=list)
    """1, 5 and 15 minutes, read when the process began."""
    others_cores: float | None = None
    """How many cores everything but this process kept busy, on average since it began to measure;
    None in old records."""
    inputs: str = ""
    """Digest of the values of the inputs; "" in old records, and where the program calls back to
    the host, so that its inputs do not determine what it does."""
    worker: str = ""
    """The name of the Dask worker that measured it, for a sweep on the workers of a scheduler."""
    stderr: list[str] = msgspec.field(default_factory=list)
    """The last lines that the process wrote, where it failed."""


class Head(msgspec.Struct):
    """What a record says of whose it is: read in a third of the time that a record takes."""

    schema: int
    key: str
    workload: str
    version: str
    axes: dict[str, Any]
    transform: str
    target: str
    scenario: str
    machine: str
    env: str
    commit: str
    effort: str
    python: str
    jax: str
    jaxlib: str
    environment: msgspec.Raw
    precision: str = ""
    night: str = ""
    dirty: str = ""


class Damage(msgspec.Struct):
    """What a reader could not use of one file, for one reason."""

    file: str
    """Its path."""
    kind: str
    """The field of :class:`Problems` that counts it."""
    what: str
    """What is wrong, where the kind does not say it all."""
    count: int = 1
    """How many lines; of a file that is unreadable 1."""


class Problems(msgspec.Struct):
    """What a reader could not use, counted by kind. Nothing counted here reaches a frame."""

    torn: int = 0
    """Last lines that a writer did not finish."""
    corrupt: int = 0
    """Lines whose checksum or JSON is wrong."""
    other_schema: int = 0
    """Lines that another version of the harness wrote."""
    old_asv: int = 0
    """Files that asv before 0.5 wrote."""
    unreadable: int = 0
    """Files that could not be opened, or hold no results at all."""
    files: list[Damage] = msgspec.field(default_factory=list)
    """The same by file, kind and reason."""

    def __bool__(self) -> bool:
        return any((self.torn, self.corrupt, self.other_schema, self.old_asv, self.unreadable))

    def count(self, kind: str, path: Path, what: str = "") -> None:
        """Count a problem, and which file it was in."""
        setattr(self, kind, getattr(self, kind) + 1)
        new = Damage(str(path), kind, what)
        # Files are read one after the other, so what was counted of this one is at the end.
        for old in self.files[-4:]:
            if (old.file, old.kind, old.what) == (new.file, kind, what):
                old.count += 1
                return
        self.files.append(new)

    def add(self, other: Problems) -> None:
        """Take what another reader counted."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def summary(self) -> str:
        """Say in one line what was left out, and what that means."""
        kinds = [
            (self.torn, "torn last line(s) (a writer was killed; measure again to fill the gap)"),
            (self.corrupt, "corrupt line(s) (checksum or JSON wrong)"),
            (self.other_schema, f"line(s) of another schema version (this harness reads {SCHEMA})"),
            (
                self.old_asv,
                "file(s) of asv before 0.5 (`asv update` makes them readable, with every value)",
            ),
            (self.unreadable, "unreadable or foreign file(s)"),
        ]
        listed = "; ".join(f"{count} {text}" for count, text in kinds if count)
        return f"left out: {listed}" if listed else ""


def plain_axes(axes: Mapping[str, Any]) -> dict[str, Any]:
    """Return axes as they were declared: JSON has made lists of their tuples."""

    def plain(value: Any) -> Any:
        return tuple(map(plain, value)) if isinstance(value, list | tuple) else value

    return {name: plain(value) for name, value in axes.items()}


def case_of(record: Record) -> Case:
    """Return the case that a record is of."""
    return Case(plain_axes(record.axes), record.transform, record.target, record.precision)


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)
_head_decoder = msgspec.json.Decoder(Head)


class _OnlySchema(msgspec.Struct):
    schema: int


def digest(*parts: object) -> str:
    """Return 16 hexadecimal digits that identify `parts`, equal in every process."""
    text = _encoder.encode([str(part) for part in parts])
    return hashlib.sha256(text).hexdigest()[:16]


def to_raw(value: Mapping[str, Any]) -> msgspec.Raw:
    """Encode a mapping with sorted keys, so that equal environments are equal bytes."""
    return msgspec.Raw(msgspec.json.encode(value, order="sorted"))


def encode(record: Record) -> bytes:
    """Return the line for `record`, newline and checksum included."""
    return sealed(_encoder.encode(record)) + b"\n"


class _Known(msgspec.Struct):
    """What is read of an environment has these types."""

    python: str = ""
    jax: str = ""
    jaxlib: str = ""
    plugins: dict[str, str] = {}
    host: dict[str, str | int | float | bool | None] = {}
    flags: dict[str, str] = {}
    device: str = ""
    devices: int = 0
    platform: str = ""
    platform_version: str = ""
    x64: bool = False


@functools.lru_cache(maxsize=256)
def _is_known(environment: bytes) -> bool:
    try:
        msgspec.json.decode(environment, type=_Known)
    except msgspec.MsgspecError:
        return False
    return True


def decode(
    line: bytes, wanted: Callable[[Head], bool] | None = None
) -> Record | Literal["corrupt", "other_schema", "not wanted"]:
    """Return the record on `line`, or why there is none.

    `line` comes without its newline. What is not `wanted` is not decoded.
    """
    if not is_sealed(line):
        return "corrupt"
    try:
        if wanted and (own := _head_decoder.decode(line)).schema == SCHEMA and not wanted(own):
            return "not wanted"
        line.decode()  # what stays JSON is looked at by nobody else
        record = _decoder.decode(line)
    except msgspec.ValidationError:
        # Another schema need not fit our types: its number decides, not the misfit.
        try:
            head = msgspec.json.decode(line, type=_OnlySchema)
            return "corrupt" if head.schema == SCHEMA else "other_schema"
        except (msgspec.MsgspecError, RecursionError):
            return "corrupt"
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return "corrupt"
    if record.schema != SCHEMA:
        return "other_schema"
    return record if _is_known(bytes(record.environment)) else "corrupt"


_OPENING = b'{"schema":'
"""How a line begins; a file without one in it is none of ours."""


def read_file(
    path: Path, problems: Problems, wanted: Callable[[Head], bool] | None = None
) -> Iterator[Record]:
    """Yield the readable records of one file in order, counting the rest in `problems`.

    Those that are not `wanted` are left out.

    A file in which nothing is like a record is counted as one, and not line by line.
    """
    own, ours = Problems(), False
    try:
        for line in lines(path):
            record = "corrupt" if line is None else decode(line.rstrip(b"\n"), wanted)
            if isinstance(record, Record):
                ours = True
                yield record
            elif record == "not wanted":
                ours = True
            elif line is None:
                own.count("corrupt", path, "a line longer than any record")
            else:
                ours |= _OPENING in line or _OPENING.startswith(line)
                if not line.endswith(b"\n"):
                    own.count("torn", path)
                elif record == "other_schema":
                    own.count("other_schema", path)
                else:
                    own.count("corrupt", path)
    except OSError as error:
        own.count("unreadable", path, error.strerror or "cannot be opened")
    if not (ours or own.other_schema or own.unreadable) and own:
        own = Problems()
        own.count("unreadable", path, "no records in it")
    problems.add(own)
