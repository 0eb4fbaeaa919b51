"""What was profiled, and the limits of the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.profiles import tracks
from harness.profiles.answer.groups import unexplained
from harness.profiles.model import Process
from harness.profiles.recorded import Recorded
from harness.records.units import seconds_text, share_text
from harness.report.content import COUNT, SECONDS, Column, Part, Table
from harness.watch import events

if TYPE_CHECKING:
    import pandas as pd

PRIVACY = (
    "This page contains paths, command lines, names and shapes of arguments, and values of static "
    "arguments. Look through it before you give it away."
)

METHOD = (
    "Seconds are wall time by the profile's own clock; where one stage runs inside another, the "
    "outer one counts.",
    "A stage is what JAX did before a program runs. A call returns before its computation has "
    "finished, so computing is part of the rest of the wall time.",
    "Threads that build at once share that moment in the parts of the wall time. Everywhere else "
    "each counts in full, so that sums over threads can be more than the wall time.",
    "Bytes are what XLA says of its executables; the persistent cache’s outcomes are what it did, "
    "not what it was asked to do.",
)


UNATTRIBUTED = 0.01
"""Share of the wall time from which it is said that nothing is known of it."""


def environment(profile: Recorded) -> Part:
    """Return the section on processes, versions and devices."""
    import pandas as pd

    names = tracks.process_names(profile)
    rows = [_about(process, names[process.log.name]) for process in profile.processes]
    columns = (
        Column("process", "process"),
        Column("parent", "parent", COUNT),
        Column("how", "recorded by"),
        Column("command", "command"),
        Column("host", "host"),
        Column("versions", "versions"),
        Column("devices", "devices"),
        Column("recorded", "recorded for", SECONDS),
        Column("own", "cost of the profile", SECONDS),
        Column("end", "end"),
    )
    data = pd.DataFrame(rows, columns=[column.name for column in columns])
    return Part(
        "environment",
        "Processes and environment",
        "Where the numbers come from.",
        tables=(Table("environment", "Processes", columns, data),),
        shown=("environment",),
    )


def _about(process: Process, name: str) -> dict[str, object]:
    line = process.started
    versions = {"Python": line.python}
    for imported in process.of(events.Import):
        versions |= imported.versions
    devices = [device for woken in process.of(events.Backend) for device in woken.devices]
    ended = process.ended
    return {
        "process": name,
        "parent": float(line.parent_pid),
        "how": line.how,
        "command": " ".join(line.argv),
        "host": f"{line.host}, {line.cpu_count} cores",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "devices": ", ".join(devices[:4]) + (f" and {len(devices) - 4} more" * (len(devices) > 4)),
        "recorded": (process.end_ns - line.clock_ns) / 1e9,
        "own": ended.own_ns / 1e9 if ended else None,
        "end": ended.why if ended else "cut off",
    }


def limits(found: list[str]) -> Part:
    """Return the section on what the numbers do not say; `found` is of :func:`doubts`."""
    return Part(
        "limits",
        "Limits of the numbers",
        " ".join(found) or "Nothing stands out.",
        notes=(*METHOD, PRIVACY),
    )


def doubts(profile: Recorded, time: pd.DataFrame) -> list[str]:
    """Return, in a sentence each, what a reader should know before they trust the numbers.

    Args:
        profile: what was recorded.
        time: its `frame("time")`.
    """
    lines = []
    if profile.broken_lines:
        lines.append(f"Lines of the log that could not be read: {profile.broken_lines}.")
    ended = [process.ended for process in profile.processes]
    if ended.count(None):
        lines.append(
            f"Processes that were cut off before their log ended: {ended.count(None)} of "
            f"{len(ended)}; what they did last may be missing."
        )
    lost = sum(one.lost for one in ended if one)
    if lost:
        lines.append(f"Lines of the log that could not be written: {lost}.")
    failures = [text for one in ended if one for text in one.failures]
    if failures:
        lines.append(f"The profile itself failed {len(failures)} times, first: {failures[0]}.")
    if profile.unfinished:
        lines.append(
            f"Builds that were still going on when their log ended: {len(profile.unfinished)}."
        )
    unknown = list(unexplained(profile))
    if unknown:
        seconds = sum(built.build_ns for built in unknown) / 1e9
        lines.append(f"Unexplained builds: {len(unknown)}, {seconds_text(seconds)}.")
    rest = time[(time["part"] == "unattributed") & (time["scope"] == "run")]["seconds"].sum()
    whole = time[time["scope"] == "run"]["seconds"].sum()
    if rest > UNATTRIBUTED * whole:
        share = share_text(rest, whole)
        lines.append(f"Wall time that is not attributed: {seconds_text(rest)}, {share}.")
    return lines
