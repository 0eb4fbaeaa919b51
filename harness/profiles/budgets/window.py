"""What was built since a point in time, told apart from what was built before."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence

from harness.errors import UsageError
from harness.profiles.budgets.use import Use, each, judge
from harness.profiles.functions import by_function
from harness.profiles.model import Built, Process
from harness.profiles.recorded import Recorded, recording
from harness.watch import jax_names
from harness.watch.events import Build


class Recording:
    """A profile in memory that goes on until it is closed."""

    def __init__(self) -> None:
        stack = contextlib.ExitStack()
        self._profile = stack.enter_context(recording(None, 0, Recorded))
        self.close = stack.close

    def process(self) -> Process | None:
        """Return what was recorded up to now."""
        return next(iter(self._profile.processes), None)


class Window:
    """What is recorded from its last `start` on; in a `free` one (warm-up) nothing counts."""

    def __init__(self, recording: Recording, free: bool) -> None:
        self.recording = recording
        self.free = free
        self._pid = os.getpid()
        self.start()

    def start(self) -> None:
        """Begin here: what was built so far is known, and not counted."""
        process = self.recording.process()
        self._earlier = len(process.lines) if process is not None else 0

    def read(self) -> tuple[Recorded, list[Built], bool]:
        """Return all that was recorded, the window's builds, and whether there were any before."""
        process = self.recording.process()
        # What a child that was forked in the window has recorded is not this window's.
        if process is None or self._pid != os.getpid():
            return Recorded(()), [], False
        lines = process.lines
        ids = {line.id for line in lines[self._earlier :] if isinstance(line, Build)}
        before = any(isinstance(line, Build) for line in lines[: self._earlier])
        builds = [built for built in process.builds if built.line.id in ids] if ids else []
        return Recorded((process,)), builds, before

    def judge(
        self,
        limits: Mapping[str, float],
        matches: Callable[[Sequence[str]], bool],
        where: str,
        alone: bool,
    ) -> tuple[list[Use], str]:
        """Return the limits that were exceeded, by each function `alone` or all, and the text."""
        profile, builds, before = self.read()
        if not builds:
            return [], ""
        found = by_function(builds)
        chosen = [one for one in found if one.eager or matches(one.names())]
        parts = [[one] for one in chosen if not one.eager] if alone else [chosen]
        uses = [
            use
            for part in parts
            for use in judge(limits, part, where, profile.cause_of, alone)
            if use.over
        ]
        return uses, "\n".join(each(uses, profile.cause_of, before))


def refuse_inside_a_trace(where: str) -> None:
    """Raise UsageError where JAX is tracing the function that opens a budget."""
    if jax_names.tracing():
        raise UsageError(
            f"{where} was opened inside a function that JAX is tracing, where nothing can be "
            "counted. Put @harness.budget above @jax.jit, or `with harness.budget` around the call."
        )
