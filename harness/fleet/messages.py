"""What client and workers tell each other: assignments, and what became of them."""

from __future__ import annotations

import msgspec

from harness.engine.job import Job
from harness.fleet.place import Place


class Assignment(msgspec.Struct):
    """A job on its way to a worker."""

    id: str
    owner: str
    """Whose records they are; see :mod:`harness.fleet.spool`."""
    sweep: str
    job: Job
    expected: Place
    """What the worker was when it was chosen."""
    devices: list[str]
    """What the job has for itself while it is measured."""
    topic: str = ""
    """Where records are told at once; empty where there is no such way."""
    stored: dict[str, int] = msgspec.field(default_factory=dict)
    """Earlier assignments whose records the client has, and the bytes of their files there."""
    fresh: bool = False
    """Measure again what is kept there of other sweeps."""


class RecordLine(msgspec.Struct, tag=True):
    """A record of an assignment, as a line of the store."""

    assignment: str
    line: bytes
    index: int | None
    """Of the case; None for the process itself and its reference program."""
    hopeless: bool = False


class Result(msgspec.Struct, tag=True):
    """What became of an assignment."""

    assignment: str
    lines: list[RecordLine]
    timed_ns: float = 0.0
    wall_ns: float = 0.0
    refused: str = ""
    """Why it was not carried out here, or not to its end; another worker may."""
    elsewhere: bool = False
    """It was refused because this is not, or no longer, the worker that was meant."""
    lost: str = ""
    """What became of an earlier attempt, where the pool has run the assignment a second time."""
    stopped: bool = False
    spooled: int = 0
    """The bytes of its file in the spool."""
    told: int = 0
    """How many records were told at once; a result that is told itself leaves them out."""


encode = msgspec.json.Encoder().encode
decode_assignment = msgspec.json.Decoder(Assignment).decode
decode_result = msgspec.json.Decoder(Result).decode
decode_told = msgspec.json.Decoder(RecordLine | Result).decode
