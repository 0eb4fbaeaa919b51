"""The bars and marks of the timeline, few enough to draw however many builds there were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from harness.profiles import tracks
from harness.profiles.pieces import STAGES
from harness.profiles.tracks import Clock
from harness.records.units import seconds_text
from harness.watch import events

if TYPE_CHECKING:
    from harness.profiles.model import Process
    from harness.report.profile.shown import Shown

MOST_BARS = 2400
"""Bars that a browser moves smoothly."""

MOST_MARKS = 800

MOST_ROWS = 40
"""Threads that are drawn: those that built longest."""


class Bar(NamedTuple):
    """A stage, or several of the same kind that are too short to be seen one by one."""

    row: str
    begin: float
    """Seconds since the profile began."""
    end: float
    stage: str
    function: str
    call_site: str
    cause: str
    argument: str
    process: str
    outcome: str
    builds: int = 1


class Mark(NamedTuple):
    """What the persistent cache answered, or a cache that was emptied."""

    row: str
    at: float
    what: str
    function: str
    call_site: str
    cause: str
    argument: str
    process: str
    times: int = 1


class Timeline(NamedTuple):
    """What the timeline draws."""

    bars: pd.DataFrame
    marks: pd.DataFrame
    rows: list[str]
    """Threads, in the order in which they first did anything."""
    length: float
    """Seconds."""
    notes: list[str]
    """What was merged or left out."""


def timeline(shown: Shown) -> Timeline:
    """Return what the timeline of a profile draws."""
    clock = Clock(shown.profile)
    bars, marks = _bars(shown, clock), list(_marks(shown, clock))
    busy: dict[str, float] = {}
    begins: dict[str, float] = {}
    for bar in bars:
        busy[bar.row] = busy.get(bar.row, 0.0) + bar.end - bar.begin
        begins[bar.row] = min(bar.begin, begins.get(bar.row, bar.begin))
    kept = set(sorted(busy, key=lambda row: -busy[row])[:MOST_ROWS])
    rows = sorted(kept, key=lambda row: begins[row])
    length = clock.length_ns / 1e9
    notes = []
    if len(busy) > len(kept):
        notes.append(f"{len(busy) - len(kept)} threads that built less than these are not drawn.")
    drawn = [bar for bar in bars if bar.row in kept]
    few = merged(drawn, length, MOST_BARS)
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
    answers = [mark for mark in marks if mark.row in kept]
    fewer = _merged_marks(answers, length, len(rows))
    if len(fewer) < len(answers):
        notes.append(f"{len(answers)} marks are drawn as {len(fewer)}, neighbours together.")
    return Timeline(
        pd.DataFrame(few, columns=list(Bar._fields)),
        pd.DataFrame(fewer, columns=list(Mark._fields)),
        rows,
        length,
        notes,
    )


def _bars(shown: Shown, clock: Clock) -> list[Bar]:
    profile = shown.profile
    bars: list[Bar] = []

    def add(process: Process, thread: int, at: tuple[int, int], stage: str, *about: str) -> None:
        function, site, cause, argument, outcome = about
        name = shown.names[process.file]
        row = f"{name} {shown.threads[process.file][thread]}"
        begin, end = (clock.at(process, ns) / 1e9 for ns in at)
        bars.append(Bar(row, begin, end, stage, function, site, cause, argument, name, outcome))

    nothing = ("",) * 4
    for process in profile.processes:
        for line in process.of(events.Import):
            at = (line.begin_ns, line.end_ns)
            add(process, line.thread, at, "import", "import jax", *nothing)
        for woken in process.of(events.Backend):
            at = (woken.begin_ns, woken.end_ns)
            add(process, woken.thread, at, "backend", woken.platform, *nothing)
    for built in (*profile.builds, *profile.unfinished):
        function = built.function.name + " (unfinished)" * built.going_on
        about = (built.site, *tracks.cause_texts(built, profile), tracks.outcome(built))
        for piece in built.pieces:
            if piece.stage in STAGES:
                at = (piece.begin_ns, piece.end_ns)
                add(built.process, built.line.thread, at, piece.stage, function, *about)
    return bars


def _marks(shown: Shown, clock: Clock) -> Iterator[Mark]:
    profile, names, threads = shown.profile, shown.names, shown.threads
    for built in profile.builds:
        process = built.process
        name = names[process.file]
        row = f"{name} {threads[process.file][built.line.thread]}"
        at = clock.at(process, tracks.answered_ns(built)) / 1e9
        about = (built.function.name, built.site, *tracks.cause_texts(built, profile), name)
        for _, answer in tracks.answers(built):
            yield Mark(row, at, f"cache {answer}", *about)
    for process in profile.processes:
        name = names[process.file]
        for line in tracks.cleared(process):
            function = process.functions.get(line.function)
            at = clock.at(process, line.at_ns) / 1e9
            told = function.name if function else line.what
            yield Mark(f"{name} main", at, "cleared", told, "", "", "", name)


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
    short: dict[tuple[str, int], list[Bar]] = {}
    for bar in bars:
        if bar.end - bar.begin < slot:
            short.setdefault((bar.row, int(bar.begin / slot)), []).append(bar)
    for group in short.values():
        at = min(bar.begin for bar in group)
        stages: dict[str, list[Bar]] = {}
        for bar in group:
            stages.setdefault(bar.stage, []).append(bar)
        for several in stages.values():
            if len(several) == 1:
                kept += several
                continue
            begin, at = at, at + sum(bar.end - bar.begin for bar in several)
            outcome = _only({bar.outcome for bar in several}, "answers")
            about = _about(several)
            kept.append(
                several[0]._replace(
                    begin=begin, end=at, outcome=outcome, builds=len(several), **about
                )
            )
    return sorted(kept)


def _merged_marks(marks: Sequence[Mark], length: float, rows: int) -> list[Mark]:
    if len(marks) <= MOST_MARKS:
        return list(marks)
    slot = _slot(length, rows, MOST_MARKS) / 2
    groups: dict[tuple[str, int, str], list[Mark]] = {}
    for mark in marks:
        groups.setdefault((mark.row, int(mark.at / slot), mark.what), []).append(mark)
    return [
        several[0]._replace(times=len(several), **_about(several)) for several in groups.values()
    ]


def _about(several: Sequence[Bar] | Sequence[Mark]) -> dict[str, Any]:
    """Return what is said of several bars or marks: the names that come most often, and so on."""
    names = Counter(one.function for one in several)
    texts = [f"{name} ({count} ×)" if count > 1 else name for name, count in names.most_common(3)]
    if others := len(names) - len(texts):
        texts.append(f"{others} others")
    return {
        "function": ", ".join(texts),
        "call_site": _only({one.call_site for one in several}, "places"),
        "cause": _only({one.cause for one in several}, "causes"),
        "argument": _only({one.argument for one in several}, "arguments"),
    }


def _only(texts: set[str], several: str) -> str:
    return texts.pop() if len(texts) == 1 else f"{len(texts)} {several}"
