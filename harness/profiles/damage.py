"""What a profile lacks of what happened, and what went wrong in the profile itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.profiles.names import shortened
from harness.records.units import counted, times_text
from harness.watch.events import MOST_STACKS, Backend, Import

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

_NAMED = 5
"""Processes that are named."""


def damage(profile: Recorded) -> Iterator[str]:
    """Yield what is not whole in a profile, a sentence each."""
    if profile.is_open:
        yield "The profile is still open: this is what was built until now."
    if any(
        one.started.how == "context" and one.builds and not one.of(Import) and not one.of(Backend)
        for one in profile.processes
    ):
        yield (
            "JAX was in use before the profile was opened: what it had built by then is not known, "
            "so a first build may be one again."
        )
    cut = [str(one.started.pid) for one in profile.processes if one.ended is None]
    if cut and not profile.is_open:
        names = ", ".join(cut[:_NAMED]) + "…" * (len(cut) > _NAMED)
        yield (
            f"{counted(len(cut), 'log')} cut off (process {names}): killed, or still "
            "running. What is told reaches until its last line."
        )
    if any(len(process.stacks) > MOST_STACKS for process in profile.processes):
        yield (
            f"After {MOST_STACKS:,} stacks of a process only the innermost line of the program was "
            "written: lines are right, who called them is not known."
        )
    if profile.run_damage:
        yield profile.run_damage
    if profile.broken_lines:
        yield f"{counted(profile.broken_lines, 'line')} of the logs could not be read."
    ends = [process.ended for process in profile.processes if process.ended is not None]
    if lost := sum(end.lost for end in ends):
        yield f"{counted(lost, 'line')} could not be written: counts and seconds are too low."
    failures = Counter(failure for end in ends for failure in end.failures)
    if failures:
        first = shortened(next(iter(failures)), 80)
        yield f"The profile itself failed {times_text(failures.total())}: {first}"
