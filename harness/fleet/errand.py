"""What client and workers tell each other: errands, and what became of them."""

from __future__ import annotations

import msgspec

from harness.engine.job import Job
from harness.fleet.place import Place


class Errand(msgspec.Struct):
    """An order on its way."""

    id: str
    owner: str
    """Whose records they are; see :mod:`harness.fleet.spool`."""
    sweep: str
    job: Job
    expected: Place
    """What the worker was when it was chosen."""
    devices: list[str]
    """What the order has for itself while it is measured."""
    topic: str = ""
    """Where records are told at once; empty where there is no such way."""
    stored: dict[str, int] = msgspec.field(default_factory=dict)
    """Earlier errands whose records the client has, and the size of their files in the spool."""
    fresh: bool = False
    """Measure again what is kept here of other sweeps."""


class Kept(msgspec.Struct, tag=True):
    """A record that an errand brought, as a line of the store."""

    errand: str
    line: bytes
    index: int | None
    """Of the case; None for the process itself and its reference program."""
    hopeless: bool = False


class Report(msgspec.Struct, tag=True):
    """What became of an errand."""

    errand: str
    kept: list[Kept]
    timed_ns: float = 0.0
    wall_ns: float = 0.0
    refused: str = ""
    """Why it was not carried out here, or not to its end; another worker may."""
    elsewhere: bool = False
    """It was refused because this is not, or no longer, the worker that was meant."""
    lost: str = ""
    """What became of an earlier attempt, where the pool has run the errand a second time."""
    stopped: bool = False
    spooled: int = 0
    """The size of its file in the spool."""
    said: int = 0
    """How many records were told at once; a report that is told itself leaves them out."""


encode_errand = msgspec.json.Encoder().encode
decode_errand = msgspec.json.Decoder(Errand).decode
encode_report = msgspec.json.Encoder().encode
decode_report = msgspec.json.Decoder(Report).decode
encode_said = msgspec.json.Encoder().encode
decode_said = msgspec.json.Decoder(Kept | Report).decode
