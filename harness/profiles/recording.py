"""Record what JAX builds in this process, while a block runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from harness.profiles.recorded import Recorded
from harness.watch import session
from harness.watch.writer import Writer

_Kind = TypeVar("_Kind", bound=Recorded)


@contextmanager
def recording(folder: Path | str | None, sample_ms: float, kind: type[_Kind]) -> Iterator[_Kind]:
    """Record on all threads of this process, while it is open; see :func:`harness.profile`."""
    output = Writer(Path(folder).absolute() if folder is not None else None)
    session.start(output, "context", sample_ms)
    found = kind((), output.folder, None, output)
    try:
        yield found
    finally:
        session.stop(output, "context")
        found.close()
