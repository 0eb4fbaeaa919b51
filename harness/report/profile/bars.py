"""The bars and marks of the timeline, few enough to draw however many builds there were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from harness.profiles import tracks
from harness.profiles.model import Process
from harness.profiles.pieces import STAGES
from harness.profiles.tracks import Clock
from harness.records.units import seconds_text
from harness.report.profile.shown import Shown
from harness.watch import events

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
    bars, marks = _bars(shown, clock), _marks(shown, clock)
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
    profile, names, threads = shown.profile, shown.names, shown.threads
    found: list[Bar] = []
    for process in profile.processes:
        found += _around(process, clock, names[process.log.name], threads[process.log.name])
    for built in (*profile.builds, *profile.unfinished):
        process = built.process
        name = names[process.log.name]
        function = built.function.name
        going_on = built.going_on
        about = (
            *(f"{function} (unfinished)" if going_on else function, built.site),
            *(*tracks.cause_texts(built, profile), name, tracks.outcome(built)),
        )
        row = f"{name} {threads[process.log.name][built.line.thread]}"
        for piece in built.pieces:
            if piece.stage in STAGES:
                begin, end = (clock.at(process, at) / 1e9 for at in (piece.begin_ns, piece.end_ns))
                found.append(Bar(row, begin, end, piece.stage, *about))
    return found


def _around(process: Process, clock: Clock, name: str, threads: dict[int, str]) -> Iterable[Bar]:
    def bar(thread: int, begin_ns: int, end_ns: int, stage: str, function: str) -> Bar:
        begin, end = clock.at(process, begin_ns) / 1e9, clock.at(process, end_ns) / 1e9
        return Bar(f"{name} {threads[thread]}", begin, end, stage, function, "", "", "", name, "")

    for line in process.of(events.Import):
        yield bar(line.thread, line.begin_ns, line.end_ns, "import", "import jax")
    for woken in process.of(events.Backend):
        yield bar(woken.thread, woken.begin_ns, woken.end_ns, "backend", woken.platform)


def _marks(shown: Shown, clock: Clock) -> list[Mark]:
    profile, names, threads = shown.profile, shown.names, shown.threads
    found = []
    for built in profile.builds:
        process = built.process
        name = names[process.log.name]
        row = f"{name} {threads[process.log.name][built.line.thread]}"
        ends = [span.end_ns for span in built.line.spans if span.stage == "compile"]
        at = clock.at(process, max(ends, default=built.line.end_ns)) / 1e9
        for request in built.line.requests:
            if request.directory:
                what = f"cache {tracks.OUTCOMES.get(request.outcome, request.outcome)}"
                cause = tracks.cause_texts(built, profile)
                where = built.site
                found.append(Mark(row, at, what, built.function.name, where, *cause, name))
    for process in profile.processes:
        for line in tracks.cleared(process):
            function = process.functions.get(line.function)
            name = names[process.log.name]
            at = clock.at(process, line.at_ns) / 1e9
            told = function.name if function else line.what
            found.append(Mark(f"{name} main", at, "cleared", told, "", "", "", name))
    return found


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
    for found in short.values():
        at = min(bar.begin for bar in found)
        stages: dict[str, list[Bar]] = {}
        for bar in found:
            stages.setdefault(bar.stage, []).append(bar)
        for together in stages.values():
            one = together[0]
            if len(together) > 1:
                end = at + sum(bar.end - bar.begin for bar in together)
                names = Counter(bar.function for bar in together)
                one = one._replace(
                    begin=at,
                    end=end,
                    function=_named(names),
                    call_site=_only({bar.call_site for bar in together}, "places"),
                    cause=_only({bar.cause for bar in together}, "causes"),
                    argument=_only({bar.argument for bar in together}, "arguments"),
                    outcome=_only({bar.outcome for bar in together}, "answers"),
                    builds=len(together),
                )
            at = one.end if len(together) > 1 else at
            kept.append(one)
    return sorted(kept)


def _merged_marks(marks: Sequence[Mark], length: float, rows: int) -> list[Mark]:
    if len(marks) <= MOST_MARKS:
        return list(marks)
    slot = _slot(length, rows, MOST_MARKS) / 2
    groups: dict[tuple[str, int, str], list[Mark]] = {}
    for mark in marks:
        groups.setdefault((mark.row, int(mark.at / slot), mark.what), []).append(mark)
    return [
        together[0]._replace(
            function=_named(Counter(mark.function for mark in together)),
            call_site=_only({mark.call_site for mark in together}, "places"),
            cause=_only({mark.cause for mark in together}, "causes"),
            argument=_only({mark.argument for mark in together}, "arguments"),
            times=len(together),
        )
        for together in groups.values()
    ]


def _named(names: Counter[str]) -> str:
    """Return the names that come most often, and how many others there are."""
    texts = [f"{name} ({count} ×)" if count > 1 else name for name, count in names.most_common(3)]
    others = len(names) - len(texts)
    return ", ".join([*texts, f"{others} others"] if others else texts)


def _only(texts: set[str], several: str) -> str:
    return texts.pop() if len(texts) == 1 else f"{len(texts)} {several}"
