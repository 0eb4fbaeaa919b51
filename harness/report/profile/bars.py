"""The bars and marks of the timeline, few enough to draw however many builds there were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from harness.profiles import tracks
from harness.profiles.pieces import STAGES
from harness.records.units import seconds_text

if TYPE_CHECKING:
    from harness.profiles.model import Process
    from harness.report.profile.tables import Shown

MOST_BARS = 2400
"""Bars that a browser moves smoothly."""

MOST_MARKS = 800

MOST_ROWS = 40
"""Threads that are drawn: those that built longest."""


class Bar(NamedTuple):
    """A stage, or several of the same kind that are too short to be seen one by one.

    A mark has no length: its `stage` is what the persistent cache answered, or `cleared`.
    """

    row: str
    begin: float
    """Seconds since the profile began."""
    end: float
    stage: str
    function: str
    call_site: str = ""
    cause: str = ""
    argument: str = ""
    process: str = ""
    outcome: str = ""
    builds: int = 1


class Timeline(NamedTuple):
    """What the timeline draws."""

    bars: pd.DataFrame
    marks: pd.DataFrame
    """With the columns `what`, `at` and `times` in place of `stage`, `begin` and `builds`."""
    rows: list[str]
    """Threads, in the order in which they first did anything."""
    length: float
    """Seconds."""
    notes: list[str]
    """What was merged or left out."""


def timeline(shown: Shown) -> Timeline:
    """Return what the timeline of a profile draws."""
    bars, marks = list(_bars(shown)), list(_marks(shown))
    busy: dict[str, float] = {}
    for bar in bars:
        busy[bar.row] = busy.get(bar.row, 0.0) + bar.end - bar.begin
    kept = set(sorted(busy, key=lambda row: -busy[row])[:MOST_ROWS])
    drawn, answers = ([one for one in some if one.row in kept] for some in (bars, marks))
    rows = list(dict.fromkeys(bar.row for bar in sorted(drawn, key=lambda bar: bar.begin)))
    length = shown.clock.length_ns / 1e9
    notes = []
    if len(busy) > len(kept):
        notes.append(f"{len(busy) - len(kept)} threads that built less than these are not drawn.")
    few, fewer = merged(drawn, length, MOST_BARS), merged(answers, length, MOST_MARKS)
    if len(few) < len(drawn):
        several = [bar for bar in few if bar.builds > 1]
        seconds = sum(bar.end - bar.begin for bar in several)
        slot = seconds_text(_slot(length, len(rows), MOST_BARS))
        notes.append(
            f"{len(drawn)} bars are too many to draw: of the short ones, neighbours of the same "
            f"stage are drawn as one, {len(several)} bars with {seconds_text(seconds)} in all. "
            "The length of each is the time they took together, its place is right to within "
            f"{slot}. `harness profile trace` writes every one."
        )
    if len(fewer) < len(answers):
        notes.append(f"{len(answers)} marks are drawn as {len(fewer)}, neighbours together.")
    named = {"stage": "what", "begin": "at", "builds": "times"}
    frames = [pd.DataFrame(some, columns=list(Bar._fields)) for some in (few, fewer)]
    return Timeline(frames[0], frames[1].rename(columns=named), rows, length, notes)


def _bars(shown: Shown) -> Iterator[Bar]:
    profile = shown.profile

    def bar(process: Process, thread: int, at: tuple[int, int], stage: str, *about: str) -> Bar:
        begin, end = (shown.seconds(process, ns) for ns in at)
        bar = Bar(shown.row(process, thread), begin, end, stage, *about)  # type: ignore[arg-type]
        return bar._replace(process=shown.names[process.file])

    for process in profile.processes:
        for line, stage, name, _ in tracks.starts(process):
            yield bar(process, line.thread, (line.begin_ns, line.end_ns), stage, name)
    for built in (*profile.builds, *profile.unfinished):
        function = built.function.name + " (unfinished)" * built.going_on
        about = (function, built.site, *tracks.cause_texts(built, profile))
        outcome, thread = tracks.outcome(built), built.line.thread
        for stage, begin, end in built.pieces:
            if stage in STAGES:
                one = bar(built.process, thread, (begin, end), stage, *about)
                yield one._replace(outcome=outcome)


def _marks(shown: Shown) -> Iterator[Bar]:
    profile = shown.profile
    for built in profile.builds:
        process = built.process
        row, name = shown.row(process, built.line.thread), shown.names[process.file]
        at = shown.seconds(process, tracks.answered_ns(built))
        about = (built.function.name, built.site, *tracks.cause_texts(built, profile), name)
        for _, answer in tracks.answers(built):
            yield Bar(row, at, at, f"cache {answer}", *about)
    for process in profile.processes:
        row = shown.row(process, process.started.main_thread)
        for line, told in tracks.cleared(process):
            at = shown.seconds(process, line.at_ns)
            yield Bar(row, at, at, "cleared", told, process=shown.names[process.file])


def _slot(length: float, rows: int, most: int) -> float:
    """Return the seconds in which short bars are merged; a slot may hold six kinds of bars."""
    return length * max(rows, 1) * 8 / most


def merged(bars: Sequence[Bar], length: float, most: int) -> list[Bar]:
    """Return at most about `most` bars.

    Each row is cut into slots. Bars longer than a slot stay; the others of a slot become one per
    stage, as long as they were together, one after the other from where the first of them began.
    """
    if len(bars) <= most:
        return list(bars)
    slot = _slot(length, len({bar.row for bar in bars}), most)
    kept = [bar for bar in bars if bar.end - bar.begin >= slot]
    short: dict[tuple[str, int], dict[str, list[Bar]]] = {}
    for bar in bars:
        if bar.end - bar.begin < slot:
            stages = short.setdefault((bar.row, int(bar.begin / slot)), {})
            stages.setdefault(bar.stage, []).append(bar)
    for stages in short.values():
        at = min(bar.begin for several in stages.values() for bar in several)
        for several in stages.values():
            begin = at if len(several) > 1 else several[0].begin
            end = begin + sum(bar.end - bar.begin for bar in several)
            at = end if len(several) > 1 else at
            kept.append(_together(several, begin, end))
    return sorted(kept)


def _together(several: Sequence[Bar], begin: float, end: float) -> Bar:
    """Return one bar for several of a stage: with the names that come most often, and so on."""
    if len(several) == 1:
        return several[0]
    names = Counter(one.function for one in several)
    texts = [f"{name} ({count} ×)" if count > 1 else name for name, count in names.most_common(3)]
    if others := len(names) - len(texts):
        texts.append(f"{others} others")
    about = {"function": ", ".join(texts)}
    for field, noun in (
        ("call_site", "places"),
        ("cause", "causes"),
        ("argument", "arguments"),
        ("outcome", "answers"),
    ):
        values = {getattr(one, field) for one in several}
        about[field] = values.pop() if len(values) == 1 else f"{len(values)} {noun}"
    return several[0]._replace(begin=begin, end=end, builds=len(several), **about)
