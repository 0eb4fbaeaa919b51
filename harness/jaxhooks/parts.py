"""What is too big for a line of a recording: beside it, by the SHA-256 that JAX hashed it to.

The StableHLO text of a computation, the fields of compile options, what the fingerprint of an
accelerator is of, and JAX's settings. Beside a file they are in `FILE.parts/`, in a folder in
`parts/`, which its processes share.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

MOST_PART_BYTES = 64 << 20
"""What a part takes, packed or not; one that takes more is not read."""

text_part = "{}.mlir".format
located_part = "{}.located.mlir".format
"""Return the part's name, by hash: of a computation's text, without and with locations."""

fields_part = "{}.json".format
"""Of the part with the fields of compile options."""

accelerator_part = "{}.accelerator.json".format
"""Of the part with what an accelerator's fingerprint is of."""

settings_part = "{}.settings.json".format
"""Of the part with JAX's settings at a request."""


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


PARTS = "parts"
"""The folder of parts in a recording that is a folder."""


def parts_of(path: Path) -> Parts:
    """Return the folder of parts that belongs to a recording, a file or a folder of files."""
    return Parts(path / PARTS if path.is_dir() else path.with_name(path.name + ".parts"))
