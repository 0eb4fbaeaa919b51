"""Record what JAX's persistent compilation cache really does, request by request, in any process.

with ledger("run.jsonl") as book:
    step(x)                      # whatever compiles in here
summarize(book.events).hits
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.errors import LedgerError
from harness.jaxhooks import requests
from harness.jaxhooks.events import Request
from harness.jaxhooks.jax_names import version
from harness.jaxhooks.log_file import SUFFIX, SharedFile
from harness.jaxhooks.parts import Parts, parts_of
from harness.jaxhooks.replacements import error_text
from harness.jaxhooks.writer import encoded


@dataclass(eq=False)
class Ledger:
    """An open ledger: the requests of this process so far."""

    events: list[Request] = field(default_factory=list)
    parts: tuple[Parts, ...] = field(default_factory=lambda: (Parts(),))
    failures: list[str] = field(default_factory=list)
    """What went wrong inside the ledger itself; the program did not notice."""
    file: SharedFile | None = None
    kept: bool = True

    def requested(self, request: Request) -> None:
        """Take a request that is over."""
        own = replace(request, pid=os.getpid(), host=platform.node(), jax=version())
        if self.kept:
            self.events.append(own)
        if self.file is not None:
            self.file.append(encoded(own))

    def failed(self, error: Exception) -> None:
        """Take a failure of the noting."""
        self.failures.append(error_text(error))


@contextmanager
def ledger(path: Path | str | None = None) -> Iterator[Ledger]:
    """Record every compile request of this process, on all its threads, while it is open.

    Several may be open at once; each gets every request.

    Args:
        path: a file to append requests to, shared with any other process, or a folder in which this
            process gets a file of its own; in memory only without it.

    Raises:
        LedgerError: if the file cannot be written, or the running JAX is not one that is known.
    """
    made = _open(Path(path)) if path is not None else Ledger()
    try:
        requests.add(made)
        yield made
    finally:
        requests.drop(made)
        if made.file is not None:
            made.file.close()


def open_until_exit(path: Path | str) -> None:
    """Record every compile request until this process ends, in a file and not in memory.

    A path as :func:`ledger` takes it; one that ends with a slash is made as a folder.
    """
    if str(path).endswith(os.sep):
        os.makedirs(path, exist_ok=True)
    made = _open(Path(path))
    made.kept = False
    requests.add(made)


def _open(path: Path) -> Ledger:
    file = path / f"{platform.node()}-{os.getpid()}{SUFFIX}" if path.is_dir() else path
    return Ledger(parts=(parts_of(path),), file=open_file(file))


def open_file(path: Path) -> SharedFile:
    """Open a ledger file, new or not; a LedgerError if it cannot be written."""
    try:
        return SharedFile(str(path))
    except OSError as error:
        raise LedgerError(
            f"The ledger {path} cannot be written: {error.strerror}. "
            "Give a file in a folder that exists and that you may write to."
        ) from None
