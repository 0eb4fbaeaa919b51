"""What was profiled: processes, versions and devices."""

from __future__ import annotations

import math

import pandas as pd

from harness.jaxhooks import events
from harness.output.report.content import Content, Section
from harness.output.report.profile import tables
from harness.output.report.profile.tables import Shown
from harness.profiles.model import Process
from harness.profiles.tracks import Clock
from harness.records.units import counted, seconds_text, some


def _content(shown: Shown) -> Content:
    rows = [_about(process, shown.names[process.name]) for process in shown.profile.processes]
    data = pd.DataFrame(rows)
    table = tables.table("environment", "Processes", data, list(data.columns))
    return Content(tables=(table,), shown=("environment",))


def _about(process: Process, name: str) -> dict[str, object]:
    line = process.started
    versions = {"Python": line.python}
    for imported in process.of(events.Import):
        versions |= imported.versions
    devices = [device for woken in process.of(events.Backend) for device in woken.devices]
    ended = process.ended
    return {
        "process": name,
        "parent": line.parent_pid,
        "recorded by": line.how,
        "command": " ".join(line.argv),
        "host": f"{line.host}, {line.cpu_count} cores",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "devices": some(devices, 4),
        "recorded_s": (process.end_ns - line.clock_ns) / 1e9,
        "own_s": ended.own_ns / 1e9 if ended else math.nan,
        "end": ended.why if ended else "cut off",
    }


def _profiled(shown: Shown) -> tuple[str, ...]:
    profile = shown.profile
    run, number = profile.run, len(profile.processes)
    building = {(built.process.file, built.line.thread) for built in profile.builds}
    threads = f"{counted(len(building), 'thread')} with {counted(len(profile.builds), 'build')}"
    lines = [
        f"{number} {'process' if number == 1 else 'processes'}, {threads}.",
        f"{seconds_text(Clock(profile).length_ns / 1e9)} from beginning to end.",
    ]
    if run is not None and run.exit_code is not None:
        code = run.exit_code
        lines.append(f"Ended by signal {-code}." if code < 0 else f"Exit code {code}.")
    elif run is not None and not run.end_ns:
        lines.append("It was still running, or was cut off, when this was written.")
    return tuple(lines)


SECTION = Section(
    name="environment",
    title="Processes and environment",
    intro="Where the numbers come from.",
    content=_content,
    answer=(2, "What was profiled", _profiled),
)
