"""`with harness.profile() as p:` records what JAX builds in this process, and says why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from harness.errors import ProfileError
from harness.profiles.log_reader import Log, read_file
from harness.profiles.model import Process, Profile
from harness.watch.events import Started
from harness.watch.writer import Writer

_FIELDS = {field.name for field in fields(Profile)}


class Recorded(Profile):
    """The profile of a `with`: while it is open, whatever is asked of it is answered as of now."""

    def __init__(self, output: Writer) -> None:
        super().__init__((), output.folder)
        self._output: Writer | None = output
        self._position = -1
        """How much of the log is in `processes`: bytes of a file, or lines."""

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            self._catch_up()
        return super().__getattribute__(name)

    def _catch_up(self) -> None:
        there = self.__dict__
        output = there.get("_output")
        if output is None:
            return
        file = output.file
        path = Path(file.path) if file is not None else None
        try:
            size = path.stat().st_size if path is not None else len(output.kept)
            if size == there["_position"]:
                return
            log = read_file(path) if path is not None else _in_memory(output)
        except (OSError, ProfileError):  # somebody took the file away: what was read of it stays
            return
        there["_position"] = size
        for derived in [key for key in there if key not in _FIELDS and not key.startswith("_")]:
            del there[derived]
        there["processes"] = (Process(log),) if isinstance(log, Log) else ()
        there["causes"] = {}

    def _close(self) -> None:
        self._catch_up()
        self._output = None


def _in_memory(output: Writer) -> Log | None:
    lines = tuple(output.kept)
    if not lines or not isinstance(lines[0], Started):
        return None
    return Log("memory", lines[0], lines)  # type: ignore[arg-type]


@contextmanager
def profile(folder: Path | str | None = None, *, sample_ms: float = 25.0) -> Iterator[Profile]:
    """Record what JAX builds in this process, on all its threads, while it is open.

    The profile that it gives can be asked at any time, inside and afterwards. Several may be open
    at once, in one thread or in many; each has what was built in its own time. What the body raises
    passes. JAX is imported where the program has not done so yet.

    Args:
        folder: where to write the log, a file per process: what is built in a child that this
            process forks is there as well. In memory only without it.
        sample_ms: how often, in milliseconds, to look where threads are; 0 for never.

    Raises:
        ProfileError: if JAX is not installed, the folder cannot be written, or the running JAX is
            not one that is known.
    """
    from harness.watch import session

    path = Path(folder).absolute() if folder is not None else None
    output = Writer(path)
    session.start(output, "context", sample_ms)
    found = Recorded(output)
    try:
        yield found
    finally:
        session.stop(output, "context")
        found._close()
