"""From a profile to its report: every section, and the answers at the top."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from harness.profiles.answer.findings import findings
from harness.profiles.answer.summary import summary
from harness.profiles.recorded import Recorded
from harness.profiles.tables.frames import frame as frame_of
from harness.profiles.tracks import Clock, process_names, thread_names
from harness.records.units import counted, seconds_text
from harness.report.content import Filters, Report
from harness.report.profile import bars, frames
from harness.report.profile.sections import builds, causes, limits, sites, time, timeline

if TYPE_CHECKING:
    import pandas as pd


MOST_FINDINGS = 5
"""What the top of the page names."""

FILTERS = Filters(
    "Function",
    ("function", "call_site"),
    ("cause", "stage", "process"),
    "builds",
    "builds",
)

TABLES = {
    "functions": (
        "Functions",
        "Functions that were jitted, by their place in the source.",
        "Functions, the most expensive first",
        "No function was built.",
    ),
    "cache": (
        "Persistent cache",
        "What JAX’s persistent compilation cache did for this program.",
        "Requests to the persistent cache",
        "The persistent cache was never asked.",
    ),
    "eager": (
        "Eager operations",
        "Programs of one operation, which JAX builds for each operation outside a jitted function, "
        "and for each shape and dtype anew.",
        "Eager operations, the most expensive first",
        "No operation outside a jitted function was built.",
    ),
    "threads": (
        "Threads",
        "Who built: each thread of each process.",
        "Threads",
        "No thread built anything.",
    ),
}
"""Title, introduction, caption and what is said without rows, of tables shown as they are."""


def assemble(profile: Recorded) -> Report:
    """Return what the report of a profile says."""
    spent = _frame(profile, "time")
    doubts = limits.doubts(profile, spent)
    plain = {
        name: frames.section(name, title, intro, caption, _frame(profile, name), empty)
        for name, (title, intro, caption, empty) in TABLES.items()
    }
    sections = (
        time.section(spent),
        causes.section(_frame(profile, "causes")),
        timeline.section(bars.timeline(profile)),
        sites.section(profile),
        plain["functions"],
        builds.section(profile, _frame(profile, "builds")),
        plain["cache"],
        plain["eager"],
        plain["threads"],
        limits.environment(profile),
        limits.limits(doubts),
    )
    answers = (
        ("In short", _in_short(profile), "time"),
        ("What costs most", _dearest(profile), "causes"),
        ("What was profiled", _profiled(profile), "environment"),
        ("What to know about the numbers", (*doubts, limits.PRIVACY), "limits"),
    )
    return Report(f"Profile of {_command(profile)}", answers, sections, filters=FILTERS)


def _frame(profile: Recorded, table: str) -> pd.DataFrame:
    """Return a table with processes called as everywhere on the page."""
    frame = frame_of(profile, table)
    if "process" not in frame.columns:
        return frame
    names = process_names(profile)
    short = {process.name: names[process.log.name] for process in profile.processes}
    if table == "threads":
        threads = {process.name: thread_names(process) for process in profile.processes}
        told = zip(frame["process"], frame["thread"], strict=True)
        # Those that built nothing were only seen: their numbers follow the others'.
        frame = frame.assign(
            thread=[threads[one].setdefault(of, f"thread {len(threads[one])}") for one, of in told]
        )
    return frame.assign(process=frame["process"].map(lambda name: short.get(name, name)))


def write(profile: Recorded, output: Path) -> int:
    """Write the report of a profile as one HTML file, and return its size in bytes.

    Raises:
        UsageError: a package that reports need is not installed.
        StoreError: the file cannot be written.
    """
    from harness.report import files

    files.check_report()
    return files.save_report(assemble(profile), output)


def _in_short(profile: Recorded) -> tuple[str, ...]:
    """Return what the terminal's summary says before and after its findings."""
    lines = summary(profile, 10_000)
    blank = [place for place, line in enumerate(lines) if not line.strip()]
    kept = [*lines[: blank[0]], *lines[blank[-1] + 1 :]] if blank else lines
    return tuple(itertools.takewhile(lambda line: not line.startswith("Next:"), kept))


def _dearest(profile: Recorded) -> tuple[str, ...]:
    found = findings(profile)
    lines = [
        f"{seconds_text(one.seconds)}: {one.text}{', ' if one.place else ''}{one.place}. "
        f"{one.remedy}".rstrip()
        for one in found[:MOST_FINDINGS]
    ]
    if len(found) > MOST_FINDINGS:
        seconds = seconds_text(sum(one.seconds for one in found[MOST_FINDINGS:]))
        lines.append(f"{seconds} in {counted(len(found) - MOST_FINDINGS, 'other finding')}.")
    return tuple(lines) or ("Nothing stands out.",)


def _command(profile: Recorded) -> str:
    words = list(profile.command)
    words[:1] = map(os.path.basename, words[:1])
    return " ".join(words) or "a program"


def _profiled(profile: Recorded) -> tuple[str, ...]:
    run, number = profile.run, len(profile.processes)
    lines = [f"{number} {'process' if number == 1 else 'processes'}, {_threads(profile)}."]
    lines.append(f"{seconds_text(Clock(profile).length_ns / 1e9)} from beginning to end.")
    if run is not None and run.exit_code is not None:
        code = run.exit_code
        lines.append(f"Ended by signal {-code}." if code < 0 else f"Exit code {code}.")
    elif run is not None and not run.end_ns:
        lines.append("It was still running, or was cut off, when this was written.")
    return tuple(lines)


def _threads(profile: Recorded) -> str:
    building = {(built.process.log.name, built.line.thread) for built in profile.builds}
    return f"{counted(len(building), 'thread')} with {counted(len(profile.builds), 'build')}"
