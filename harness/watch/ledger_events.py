"""What a ledger writes down of one compile request, and where it keeps what is too big for a line.

A ledger file holds one line of JSON per request, and several processes append to it. Beside it,
`FILE.parts/` holds what is too big for a line, by the SHA-256 that JAX hashed it to: the StableHLO
text of a computation, the fields of the compile options, what the accelerator's fingerprint is of,
and JAX's settings. Where the ledger is a folder, each process has a file of its own in it,
`HOST-PID.jsonl`, and they share `parts/`.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness.watch.events import struct

SCHEMA = 2
"""Of an event; from 2 on each line has a checksum."""

MOST_PART_BYTES = 64 << 20
"""What a part takes, packed or not; one that takes more is not read."""

Outcome = Literal["hit", "written", "unwritten", "failed"]

# Why a miss was not written. `Event.detail` has the numbers or the error's text.
BELOW_TIME = "below the time threshold"
BELOW_SIZE = "below the size threshold"
NOT_PROCESS_0 = "not process 0"
DISABLED = "disabled"
HOST_CALLBACK = "host callback"
NO_DIRECTORY = "no directory"
UNUSABLE_DIRECTORY = "unusable directory"
OVER_CAP = "over the size cap"
UNREADABLE_IN_PLACE = "an unreadable file is in the place"
ALREADY_THERE = "another writer was first"
CHECKED = "the first look-up is skipped"
OTHER_PROCESS = "received from another process"
ERROR = "error"

SETTINGS = {
    BELOW_TIME: "jax_persistent_cache_min_compile_time_secs",
    BELOW_SIZE: "jax_persistent_cache_min_entry_size_bytes",
    OVER_CAP: "jax_compilation_cache_max_size",
    CHECKED: "jax_compilation_cache_check_contents",
}
"""What is to be set for a miss to be written."""


def reason_text(reason: str, detail: str = "") -> str:
    """Return why a miss was not written, with the setting that decides it and what is known."""
    more = ", ".join(filter(None, (SETTINGS.get(reason), detail)))
    return f"{reason} ({more})" if more else reason


@struct
class Component:
    """One of the parts that JAX hashes into the key."""

    name: str
    """JAX's own name of it, such as `compile_options`."""
    sha256: str
    values: tuple[str, ...]
    """What was hashed, where that is short text: versions, flags, the compression's name."""


@struct
class Overridden:
    """A setting of the environment that did not take effect, as where the program sets its own."""

    name: str
    """Such as `jax_compilation_cache_dir`."""
    variable: str
    """The text of the variable."""
    value: str
    """What JAX uses instead."""


@struct
class Late:
    """A setting that the program changed after the cache's first use, when JAX had frozen it."""

    name: str
    value: str
    """What it was changed to, without effect."""
    used: str
    """What JAX goes on with."""


@struct
class Event:
    """What the persistent cache did for one compile request; times by `time.perf_counter`."""

    schema: int
    at_s: float
    """When the request was done: seconds since the epoch, to order the events of one process."""
    pid: int
    host: str
    jax: str
    module: str
    outcome: Outcome
    key: str = ""
    """Empty where JAX made none: the cache is disabled, or hashing failed."""
    reason: str = ""
    """Of a miss that was not written."""
    detail: str = ""
    directory: str = ""
    """The absolute path, or address, that JAX uses; empty where none is set."""
    overridden: tuple[Overridden, ...] = ()
    late: tuple[Late, ...] = ()
    limit: float | None = None
    """The threshold that decided that a miss was not written: seconds or bytes."""
    request_s: float = 0.0
    """The whole request, without what the ledger itself took."""
    key_s: float = 0.0
    """Making the key."""
    load_s: float | None = None
    """Of a hit: reading, decompressing and deserialising the entry. Of a miss: looking for it."""
    compile_s: float | None = None
    """In XLA; none on a hit."""
    write_s: float | None = None
    """Serialising, compressing and writing the entry."""
    lock_wait_s: float = 0.0
    """Getting the lock of a directory with a size cap; a part of `load_s` and `write_s`."""
    own_s: float = 0.0
    """What the ledger added to this request."""
    bytes_in: int = 0
    """Read from the entry's file, as compressed there."""
    bytes_out: int = 0
    """Written to the entry's file."""
    entry_bytes: int | None = None
    """Size of the compressed entry, written or not, where JAX got as far as making it."""
    stored_compile_s: int | None = None
    """Of a hit: the whole seconds that JAX stored in the entry."""
    jax_saved_s: float | None = None
    """Of a hit: what JAX reports as `compile_time_saved_sec`."""
    read_error: str = ""
    write_error: str = ""
    metadata_in_key: bool = False
    settings: str = ""
    """The hash under which JAX's settings at this request are kept."""
    evicted: tuple[str, ...] = ()
    """Keys of the entries that this write evicted, under a size cap."""
    components: tuple[Component, ...] = ()
    components_prove_key: bool = True
    """False where the components, hashed together again, do not give JAX's key."""


@dataclass
class Parts:
    """Computations and compile options by hash, in memory or in a folder beside a ledger."""

    folder: Path | None = None
    held: dict[str, bytes] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Return whether a part is there."""
        return (self.folder / name).exists() if self.folder else name in self.held

    def put(self, name: str, text: str) -> None:
        """Keep a part, once; a reader never sees half of one."""
        packed = zlib.compress(text.encode(), 1)
        if self.folder is None:
            self.held[name] = packed
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = self.folder / f"{name}.{os.getpid()}.partial"
        partial.write_bytes(packed)
        partial.replace(self.folder / name)

    def keep(self, name: str, make: Callable[[], str]) -> None:
        """Keep a part that is made only where it is not there."""
        if not self.has(name):
            self.put(name, make())

    def get(self, name: str) -> str | None:
        """Return a part's text, None where it is not there or not readable."""
        with contextlib.suppress(OSError, zlib.error, UnicodeDecodeError, KeyError):
            if self.folder is None:
                packed = self.held[name]
            else:
                with (self.folder / name).open("rb") as file:
                    packed = file.read(MOST_PART_BYTES)
            unpacker = zlib.decompressobj()
            text = unpacker.decompress(packed, MOST_PART_BYTES)
            return text.decode() if unpacker.eof else None
        return None


FILE_SUFFIX = ".jsonl"
"""Ends the name of each process's file in a ledger that is a folder."""


def parts_of(path: Path) -> Parts:
    """Return the folder of parts that belongs to a ledger, a file or a folder of files."""
    return Parts(path / "parts" if path.is_dir() else path.with_name(path.name + ".parts"))


@dataclass(frozen=True)
class Requests:
    """The events of a ledger, in the order in which they were written."""

    events: tuple[Event, ...]
    parts: Parts
    broken_lines: int = 0
    """Lines that are no event: torn by a crash or a full disk, or of another schema."""
