"""When what was built: threads, stages, hits and misses; few enough bars and marks to draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import altair as alt
import pandas as pd

from harness.output.report import charts
from harness.output.report.content import Column, ColumnKind, Content, Figure, Section, Table, plain
from harness.output.report.profile.tables import Shown
from harness.profiles import tracks
from harness.profiles.pieces import STAGES
from harness.records.units import counted, seconds_text

if TYPE_CHECKING:
    from harness.profiles.model import Process

MOST_BARS = 2400
"""Bars that a browser moves smoothly."""

MOST_MARKS = 800

MOST_ROWS = 40
"""Threads that are drawn: those that built longest."""

MARKS = {
    "cache hit": "triangle-up",
    "cache miss, written": "triangle-down",
    "cache miss, not written": "cross",
    "cache failed": "square",
    "cleared": "diamond",
}

DIGITS = 10
"""Significant digits of places in time: what is seen after zooming in."""


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
    outcome: str = ""
    process: str = ""
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
            f"{slot}. `harness profile report -o trace.json` writes every one."
        )
    if len(fewer) < len(answers):
        notes.append(f"{len(answers)} marks are drawn as {len(fewer)}, neighbours together.")
    named = {"stage": "what", "begin": "at", "builds": "times"}
    frames = [pd.DataFrame(some, columns=list(Bar._fields)) for some in (few, fewer)]
    return Timeline(frames[0], frames[1].rename(columns=named), rows, length, notes)


def _bar(
    shown: Shown, process: Process, thread: int, begin_ns: int, end_ns: int, *about: str
) -> Bar:
    """Return a bar; `about` are its fields from `stage` on."""
    begin, end = shown.seconds(process, begin_ns), shown.seconds(process, end_ns)
    bar = Bar(shown.row(process, thread), begin, end, *about)  # type: ignore[arg-type]
    return bar._replace(process=shown.names[process.name])


def _bars(shown: Shown) -> Iterator[Bar]:
    profile = shown.profile
    for process in profile.processes:
        for line, stage, name, _ in tracks.starts(process):
            yield _bar(shown, process, line.thread, line.begin_ns, line.end_ns, stage, name)
    for built in (*profile.builds, *profile.unfinished):
        function = built.function.name + " (unfinished)" * built.going_on
        about = (function, built.site, *tracks.cause_texts(built, profile), tracks.outcome(built))
        for stage, begin_ns, end_ns in built.pieces:
            if stage in STAGES:
                thread = built.line.thread
                yield _bar(shown, built.process, thread, begin_ns, end_ns, stage, *about)


def _marks(shown: Shown) -> Iterator[Bar]:
    profile = shown.profile
    for built in profile.builds:
        at_ns, thread = tracks.answered_ns(built), built.line.thread
        about = (built.function.name, built.site, *tracks.cause_texts(built, profile))
        for _, answer in tracks.answers(built):
            yield _bar(shown, built.process, thread, at_ns, at_ns, f"cache {answer}", *about)
    for process in profile.processes:
        thread = process.started.main_thread
        for line, label in tracks.cleared(process):
            yield _bar(shown, process, thread, line.at_ns, line.at_ns, "cleared", label)


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
    nouns = {
        "call_site": "places",
        "cause": "causes",
        "argument": "arguments",
        "outcome": "answers",
    }
    for field, noun in nouns.items():
        values = {getattr(one, field) for one in several}
        about[field] = values.pop() if len(values) == 1 else f"{len(values)} {noun}"
    return several[0]._replace(begin=begin, end=end, builds=len(several), **about)


def _content(shown: Shown) -> Content | None:
    drawn = timeline(shown)
    if drawn.bars.empty:
        return None
    return Content((_figure(drawn),), _tables(drawn), notes=tuple(drawn.notes))


def _figure(drawn: Timeline) -> Figure:
    shown = [stage for stage in charts.PARTS if stage in set(drawn.bars["stage"])]
    row = alt.Y(
        "row:N",
        title=None,
        sort=drawn.rows,
        scale=alt.Scale(domain=drawn.rows),
        axis=charts.row_names(grid=True),
    )
    window = alt.Scale(domainMin=alt.ExprRef("from"), domainMax=alt.ExprRef("to"), nice=False)
    axis = alt.Axis(labelExpr=charts.SECONDS_LABEL, tickCount=6, labelOverlap=True)
    tooltip = [
        "function:N",
        alt.Tooltip("call_site:N", title="called at"),
        "cause:N",
        "argument:N",
    ]
    bars = (
        charts.rows("timeline")
        .transform_calculate(seconds="datum.end - datum.begin")
        .mark_bar(height={"band": 0.66}, clip=True, minBandSize=6)
        .encode(
            x=alt.X("begin:Q", title="since the start", scale=window, axis=axis),
            x2="end:Q",
            y=row,
            color=charts.colours("stage:N", charts.PARTS, shown),
            tooltip=[
                *tooltip,
                "stage:N",
                alt.Tooltip("seconds:Q", title="took (s)", format=".3s"),
                alt.Tooltip("begin:Q", title="began at (s)", format=".4f"),
                alt.Tooltip("outcome:N", title="persistent cache"),
                alt.Tooltip("builds:Q", title="builds in this bar"),
            ],
        )
    )
    answers = [what for what in MARKS if what in set(drawn.marks["what"])]
    layers = [bars]
    if answers:
        layers.append(
            charts.rows("marks")
            .mark_point(clip=True, size=36, filled=True, opacity=1, yOffset=-12)
            .encode(
                x=alt.X("at:Q", scale=window, axis=axis, title="since the start"),
                y=row,
                fill=alt.value("currentColor"),
                shape=alt.Shape(
                    "what:N",
                    title=None,
                    scale=alt.Scale(domain=answers, range=[MARKS[what] for what in answers]),
                    legend=alt.Legend(
                        orient="bottom", symbolFillColor="currentColor", symbolStrokeWidth=0
                    ),
                ),
                tooltip=[
                    alt.Tooltip("what:N", title="cache"),
                    *tooltip,
                    alt.Tooltip("at:Q", title="at (s)", format=".4f"),
                    alt.Tooltip("times:Q"),
                ],
            )
        )
    chart = (
        alt.layer(*layers)
        .add_params(alt.param(name="from", value=0), alt.param(name="to", value=drawn.length))
        .properties(height=alt.Step(34))
    )
    seconds = drawn.bars["end"] - drawn.bars["begin"]
    stages = seconds.groupby(drawn.bars["stage"]).sum()
    parts = ", ".join(f"{stage} {seconds_text(stages[stage])}" for stage in shown)
    return Figure(
        "timeline",
        "What was built when",
        f"{counted(len(drawn.rows), 'thread')}, {seconds_text(drawn.length)} in all: {parts}. "
        "Drag to move, Ctrl and the wheel to zoom, or use the buttons.",
        chart,
        ("timeline", "marks"),
        zoom=True,
    )


def _tables(drawn: Timeline) -> tuple[Table, Table]:
    bars = (
        *plain("function"),
        Column("call_site", "called at"),
        *plain("stage"),
        Column("begin", "began at", ColumnKind.SECONDS, digits=DIGITS),
        Column("end", "ended at", ColumnKind.SECONDS, digits=DIGITS),
        Column("row", "thread"),
        *plain("cause", "argument"),
        Column("outcome", "persistent cache"),
        Column("builds", "builds", ColumnKind.COUNT),
        *plain("process", hidden=True),
    )
    marks = (
        *plain("what", "function"),
        Column("call_site", "called at"),
        *plain("cause", "argument", "row"),
        Column("at", "at", ColumnKind.SECONDS, digits=DIGITS),
        Column("times", "times", ColumnKind.COUNT),
        *plain("process", hidden=True),
    )
    return (
        Table("timeline", "The bars", bars, drawn.bars),
        Table("marks", "What the caches did", marks, drawn.marks),
    )


SECTION = Section(
    name="timeline",
    title="Timeline",
    intro="Each row is a thread; a bar is a stage of a build. Where there is no bar, the thread "
    "built nothing: it ran the program, computed or waited.",
    content=_content,
    missing="Nothing was traced, lowered, compiled or loaded.",
    command="harness profile -- python PROGRAM",
)
