"""What was built since a point in time, told apart from what was built before."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field

from harness.errors import UsageError
from harness.profiles.model import Built, Process
from harness.profiles.recorded import Recorded
from harness.profiles.recording import recording
from harness.watch import jax_names
from harness.watch.events import Build


class Recording:
    """A profile in memory that goes on until it is closed, and the windows into it."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._profile = self._stack.enter_context(recording(None, 0, Recorded))

    def close(self) -> None:
        """Stop recording."""
        self._stack.close()

    def process(self) -> Process | None:
        """Return what was recorded up to now."""
        return next(iter(self._profile.processes), None)


@dataclass
class Window:
    """What is recorded from its `start` on."""

    recording: Recording
    free: bool = False
    """Whether nothing in it counts: it is a part of the warm-up."""
    pid: int = field(default_factory=os.getpid)
    earlier: int = 0
    """Lines that were recorded before it."""

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin here: what was built so far is known, and not counted."""
        process = self.recording.process()
        self.earlier = len(process.log.lines) if process is not None else 0

    def read(self) -> tuple[Recorded, list[Built], bool]:
        """Return all that was recorded, the window's builds, and whether there were any before."""
        process = self.recording.process()
        # What a child that was forked in the window has recorded is not this window's.
        if process is None or self.pid != os.getpid():
            return Recorded(()), [], False
        lines = process.log.lines
        ids = {line.id for line in lines[self.earlier :] if isinstance(line, Build)}
        before = any(isinstance(line, Build) for line in lines[: self.earlier])
        if not ids:
            return Recorded(()), [], before
        return Recorded((process,)), [b for b in process.builds if b.line.id in ids], before


def refuse_inside_a_trace(where: str) -> None:
    """Raise where JAX is tracing the function that opens a budget.

    Raises:
        UsageError: if it is.
    """
    if jax_names.tracing():
        raise UsageError(
            f"{where} was opened inside a function that JAX is tracing, where nothing can be "
            "counted. Put @harness.budget above @jax.jit, or `with harness.budget` around the call."
        )
