"""The page of `harness compile`: the stages, the passes of XLA, its kernels, the user's lines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pandas as pd

from harness.ir.build import BuiltTexts
from harness.ir.growth import Growth
from harness.output.compile import answer, cause_lines, group_text, line_text
from harness.output.ir import growth_text
from harness.output.parts import Heading, Part, TextTable
from harness.program.compiler import callers
from harness.program.compiler.callers import CallBranch
from harness.program.compiler.inside import Inside, Kernel, PassBranch
from harness.program.kernels import WrittenKernel
from harness.records.units import counted, seconds_text, share_text

_Branch = TypeVar("_Branch", PassBranch, CallBranch)

MOST_ROWS = 10
"""So many kernels and lines are shown; `--format json` has all."""

MOST_FAST = 3
"""Of what grows faster than the axis, so many are told in words."""

DEPTH = 6
"""Levels of XLA's tree, where none are asked for."""


def page(label: str, made: BuiltTexts, depth: int | None, least: float) -> Iterator[Part]:
    """Yield what is told of one compile, and of the trace and the lowering before it.

    `least` is the share of its stage that a row must have, and of all of them a stage.
    """
    inside, python = made.inside, made.python
    assert inside is not None
    yield Heading(f"{label}: {answer(inside, made.stages_s)}")
    for cause in made.causes:
        yield from cause_lines(cause, inside)
    if python:
        yield Heading("Stages")
        yield _stages(inside, python)
    elif made.fingerprint:
        yield "Python's calls in trace and lower are not known: they could not be counted."
    yield Heading("Where the time goes")
    yield _groups(inside, least)
    yield Heading("Passes of XLA")
    yield _passes(inside, depth or DEPTH, least)
    yield from written_kernels(made.written, inside.kernels)
    yield from _kernels(inside, least)
    whole_s = inside.wall_s + sum(stage.wall_s for stage in python)
    for stage in python:
        if depth or stage.wall_s >= least * whole_s:
            yield from _calls(stage, depth, least)
    if least:
        calls = "--depth 9 Python's calls as a tree, " if python else ""
        yield (
            f"What has less than {100 * least:g} % of its stage, and stages with less of all, are "
            f"left out: --least 0 shows them, {calls}--format json all."
        )


def _stages(inside: Inside, python: Sequence[CallBranch]) -> TextTable:
    rows = []
    for stage in python:
        most = ""
        for first in callers.lines(stage)[:1]:
            share = share_text(first.own_calls, stage.calls)
            most = f"{first.name}, {line_text(first.file, first.line)}: {share} of the calls"
        rows.append((stage.name, f"{stage.calls:,}", seconds_text(stage.wall_s), most))
    group = max(inside.groups, key=lambda one: one.wall_s)
    share = share_text(group.wall_s, inside.wall_s)
    most = f"{group_text(group.name, group.part)}: {share} of the time"
    rows.append(("compile", "", seconds_text(inside.wall_s), most))
    return TextTable(
        pd.DataFrame(rows, columns=["stage", "calls of Python", "time", "most of it"]),
        left=("most of it",),
        cut=("most of it",),
    )


def _tree(top: _Branch, depth: int, amount: str, least: float) -> Iterator[tuple[str, _Branch]]:
    """Yield the branches of a tree that are shown, with the name of each in its column.

    Those have `least` of the `amount` of the top. One that only stands around another is left out,
    but for its name where two are of one name.
    """
    floor = least * getattr(top, amount)

    def inside(one: _Branch) -> list[_Branch]:
        return [each for each in one.inside if getattr(each, amount) >= floor]

    def shown(one: _Branch) -> _Branch:
        only = inside(one)
        around = len(only) == 1 and getattr(one, f"own_{amount}") < floor
        return shown(only[0]) if around else one

    def walk(one: _Branch, around: str, level: int) -> Iterator[tuple[str, _Branch]]:
        times = f" × {one.count}" if one.count > 1 else ""
        yield f"{'  ' * level}{around}{branch_text(one)}{times}", one
        children = [(each, shown(each)) for each in inside(one) if level + 1 < depth]
        names = Counter(branch_text(last) for _, last in children)
        for each, last in children:
            is_told = names[branch_text(last)] == 1 or last is each
            yield from walk(last, "" if is_told else f"{branch_text(each)} > ", level + 1)

    return walk(top, "", 0)


def branch_text(one: PassBranch | CallBranch | callers.CallSum) -> str:
    """Return what a branch is called: a pass, an equation, or a line with its place."""
    place = "" if isinstance(one, PassBranch) else line_text(one.file, one.line)
    return f"{one.name} {place}".rstrip()


def _calls(stage: CallBranch, depth: int | None, least: float) -> Iterator[Part]:
    """Yield who makes the calls of a stage, by line and by primitive, to a `depth` as a tree."""
    if depth is not None:
        branches = _tree(stage, depth, "calls", least)
        rows = [(name, *_figures(one, stage)) for name, one in branches]
        yield Heading(f"Calls of Python in {stage.name}, by line of yours and equation")
        frame = pd.DataFrame(rows, columns=["where", *_FIGURES])
        yield TextTable(frame, cut=("where",), dropped=_DROPPED)
    tables = (("line", callers.lines(stage)), ("primitive", callers.primitives(stage)))
    for kind, sums in tables[: 2 if stage.name == "lower" else 1]:
        shown = [one for one in sums[:MOST_ROWS] if one.own_calls >= least * stage.calls]
        if len(shown) > 1:
            yield Heading(f"{stage.name.capitalize()}, by {kind}")
            rows = [(branch_text(one), *_figures(one, stage)) for one in shown]
            frame = pd.DataFrame(rows, columns=[kind, *_FIGURES])
            yield TextTable(frame, cut=(kind,), dropped=_DROPPED)


_FIGURES = ("calls", "share", "own", "time", "own time")
_DROPPED = ("own time", "own")


def _figures(one: CallBranch | callers.CallSum, stage: CallBranch) -> tuple[str, ...]:
    return (
        f"{one.calls:,}",
        share_text(one.calls, stage.calls),
        f"{one.own_calls:,}",
        seconds_text(one.wall_s),
        seconds_text(one.own_wall_s),
    )


def _groups(inside: Inside, least: float) -> TextTable:
    rows = [
        {
            "group": group_text(one.name, one.part),
            "wall": seconds_text(one.wall_s),
            "share": share_text(one.wall_s, inside.wall_s),
            "threads": seconds_text(one.threads_s),
        }
        for one in sorted(inside.groups, key=lambda one: -one.wall_s)
        if one.wall_s >= least * inside.wall_s
    ]
    return TextTable(pd.DataFrame(rows).astype("str"))


def _passes(inside: Inside, depth: int, least: float) -> TextTable:
    rows = [
        {
            "pass": name,
            "wall": seconds_text(one.wall_s),
            "share": share_text(one.wall_s, inside.wall_s),
            "own": seconds_text(one.own_wall_s),
            "threads": seconds_text(one.threads_s),
        }
        for name, one in _tree(inside.tree, depth, "wall_s", least)
    ]
    return TextTable(pd.DataFrame(rows), cut=("pass",), dropped=("threads", "own"))


def _kernels(inside: Inside, least: float) -> Iterator[Part]:
    named = [kernel for kernel in inside.kernels if kernel.name]
    if not inside.kernels:
        return
    yield Heading("Kernels")
    shown = [one for one in named[:MOST_ROWS] if one.wall_s >= least * inside.wall_s]
    rows = [
        {
            "kernel": kernel.name,
            "line": line_text(kernel.file, kernel.line),
            "wall": seconds_text(kernel.wall_s),
            "operation": kernel.op_name.partition("/")[2],
        }
        for kernel in shown
    ]
    if rows:
        yield TextTable(pd.DataFrame(rows), left=("operation",), cut=("operation",))
    if len(named) > len(shown):
        more = sum(kernel.wall_s for kernel in named[len(shown) :])
        others = counted(len(named) - len(shown), "more kernel" if shown else "named kernel")
        yield f"{others}: {seconds_text(more)} of wall time."
    unnamed = [kernel.wall_s for kernel in inside.kernels if not kernel.name]
    if unnamed:
        yield (
            f"{counted(len(unnamed), 'kernel')} without a name: {seconds_text(sum(unnamed))} of "
            f"wall time, {seconds_text(max(unnamed))} the longest."
        )
    lines: dict[str, float] = defaultdict(float)
    for kernel in named:
        if kernel.file:
            lines[f"{line_text(kernel.file, kernel.line)} {kernel.function}"] += kernel.wall_s
    ordered = sorted(lines.items(), key=lambda item: -item[1])[:MOST_ROWS]
    if most := [one for one in ordered if one[1] >= least * inside.wall_s]:
        yield Heading("Lines, by the named kernels that begin there")
        rows = [{"line": line, "wall of its kernels": seconds_text(s)} for line, s in most]
        yield TextTable(pd.DataFrame(rows))


def written_kernels(written: Sequence[WrittenKernel], made: Sequence[Kernel]) -> Iterator[Part]:
    """Yield the kernels in Pallas, Triton or Mosaic, with the time of those that XLA names."""
    if not written:
        return
    walls = {kernel.name: seconds_text(kernel.wall_s) for kernel in made}
    rows = [
        {
            "kernel": one.name,
            "line": line_text(one.file, one.line),
            "language": one.language,
            "wall": walls.get(one.instruction, "not named"),
        }
        for one in written
    ]
    frame = pd.DataFrame(rows)
    yield Heading("Kernels that somebody wrote")
    yield TextTable(frame if made else frame.drop(columns="wall"), left=("line", "language"))


def growth_page(
    label: str, axis: str, rounds: int, grown: Sequence[Growth], least: float
) -> Iterator[Part]:
    """Yield what grows with an axis; rows have `least` of the compile at its largest value."""
    [whole] = [one for one in grown if (one.kind, one.name) == ("stage", "compile")]
    values = list(whole.values)
    compiles = "one compile" if rounds == 1 else f"{rounds} compiles"
    yield Heading(f"{label}: {growth_text(whole, axis)}.")
    yield f"{axis} = {', '.join(values)}: {compiles} each, in processes of their own."
    times = [one for one in grown if one.kind != "count" and one.most >= least * whole.most]
    faster = [
        one
        for one in times
        if one.kind != "stage" and one.most >= 0.05 * whole.most and (one.low or 0) > 1
    ]
    for one in faster[:MOST_FAST]:
        share = share_text(one.most, whole.most)
        yield f"`{one.name}`: {growth_text(one, axis)}; {share} of the compile at {values[-1]}."
    counts = [one for one in grown if one.kind == "count" and (one.each or 0) > 0]
    for one in counts:
        if one.name in ("Python calls in trace", "Python calls in lower"):
            yield f"{one.name}: {one.each:,.0f} more for each of {axis}."
    yield Heading("Times")
    yield _grown(times, values, seconds_text)
    yield Heading("Counts that grow, equal in every run, what grows most first")
    counts.sort(key=lambda one: next(iter(one.values.values())) / one.most)
    yield _grown(counts[:MOST_ROWS], values, lambda count: f"{count:,.0f}")
    if len(counts) > MOST_ROWS:
        yield f"{len(counts) - MOST_ROWS} more: --format json."


def _grown(
    grown: Sequence[Growth], values: Sequence[str], text: Callable[[float], str]
) -> TextTable:
    """Return a table, with the smallest, the middle and the largest of the values."""
    shown = dict.fromkeys((values[0], values[len(values) // 2], values[-1]))
    rows = [
        {
            "what": f"{one.kind} {one.name}".removeprefix("count "),
            **{
                f"at {value}": text(one.values[value]) if value in one.values else ""
                for value in shown
            },
            "each more": "" if one.each is None else text(one.each) if one.each > 0 else "-",
            "power": "unknown" if one.exponent is None else f"{one.exponent:.2f}",
            "95 %": "" if one.low is None else f"{one.low:.2f} to {one.high:.2f}",
            "fits": "" if one.exponent is None or one.is_power else "no",
        }
        for one in grown
    ]
    return TextTable(pd.DataFrame(rows), cut=("",))
