"""What was built since a point in time, told apart from what was built before."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from harness.errors import UsageError
from harness.profiles.budgets.limits import Chosen
from harness.profiles.budgets.use import Use, each, judge
from harness.profiles.functions import by_function
from harness.profiles.recorded import Recorded
from harness.watch import jax_names
from harness.watch.events import Build


def begin() -> contextlib.closing[Recorded]:
    """Return a profile in memory that goes on until it is closed."""
    profile = Recorded()
    profile.record(sample_ms=0)
    return contextlib.closing(profile)


class Window:
    """What is recorded from its last `start` on; in a `free` one (warm-up) nothing counts."""

    def __init__(self, profile: Recorded, free: bool) -> None:
        self.free = free
        self._profile = profile
        self._pid = os.getpid()
        self.start()

    def start(self) -> None:
        """Begin here: what was built so far is known, and not counted."""
        self._earlier = sum(len(process.lines) for process in self._profile.processes)

    def judge(
        self, limits: Mapping[str, float], chosen: Chosen, where: str, alone: bool
    ) -> tuple[list[Use], str]:
        """Return the limits that were exceeded, by each function `alone` or all, and the text.

        Raises:
            UsageError: if `chosen` means no function of this process.
        """
        process = next(iter(self._profile.processes), None)
        # What a child that was forked in the window has recorded is not this window's.
        if process is None or self._pid != os.getpid():
            return [], ""
        earlier, later = process.lines[: self._earlier], process.lines[self._earlier :]
        ids = {line.id for line in later if isinstance(line, Build)}
        if not ids:
            chosen.check(())
            return [], ""
        before = any(isinstance(line, Build) for line in earlier)
        profile = Recorded((process,))
        found = by_function(built for built in process.builds if built.line.id in ids)
        chosen.check(one.names() for one in found if not one.eager)
        counted = [one for one in found if one.eager or chosen(one.names())]
        parts = [[one] for one in counted if not one.eager] if alone else [counted]
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
