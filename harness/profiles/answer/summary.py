"""The answer first: what a program's building cost, why, and what to do, on one screen."""

from __future__ import annotations

import contextlib
import shlex
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cache.saved import cold_seconds, saved_s
from harness.profiles.answer.findings import Finding, findings
from harness.profiles.causes.cause import UNSURE
from harness.profiles.causes.registry import BLAMELESS
from harness.profiles.figures import (
    damage,
    function_key,
    requests_of,
    unexplained,
)
from harness.profiles.model import Built, count_of
from harness.profiles.names import shortened
from harness.profiles.pieces import STAGES
from harness.profiles.totals import SAMPLED, Total, totals
from harness.records.units import counted, seconds_text, share_text
from harness.watch import events
from harness.watch.events import Import, Request

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

LINES = 24
"""A screen."""

NARROWEST = 60
"""Characters; no line is made narrower."""

_MARGIN = 11
"""Characters in front of a finding, for its seconds."""

_MOST_TEXT = 3
"""Lines of a finding's text; the remedy has as many as it needs."""

_WANTED = 3
"""Findings for which the least important lines around them are left out, where they do not fit."""

_USUAL_THRESHOLD_S = 1.0
"""JAX's default of `jax_persistent_cache_min_compile_time_secs`: what compiles faster is not
kept."""

_OFF = (events.NO_DIRECTORY, events.DISABLED)
"""Why nothing was written where the persistent cache was not in use."""


def summary(profile: Recorded, width: int = 100, lines: int | None = LINES) -> list[str]:
    """Return the answer in at most `lines` lines, or all of it, of at most `width` characters.

    The first finding that has a remedy is whole, whatever there is no room for. Where there is too
    little, lines around the findings are left out first, the least important ones before others.
    """
    width = max(width, NARROWEST)
    total = next(totals(profile), None)
    if total is None:
        return ["Nothing is recorded yet."]
    head = [(rank, _wrapped(text, width)) for rank, text in _head(profile, total)]
    tail = [(rank, _wrapped(text, width)) for rank, text in _tail(profile)]
    tail.append((0, list(_next(profile, width))))
    found = findings(profile)
    rest = _rest_command(profile)
    room = sys.maxsize if lines is None else lines - sum(len(text) for _, text in (*head, *tail))
    wanted = min(_WANTED, len(found))
    for rank in sorted({rank for rank, _ in (*head, *tail)}, reverse=True):
        if not rank or _Listing(found, width, room, rest).shown >= wanted:
            break
        room += sum(len(text) for other, text in (*head, *tail) if other == rank)
        head, tail = ([one for one in part if one[0] != rank] for part in (head, tail))
    before, after = ([line for _, text in part for line in text] for part in (head, tail))
    return [*before, *_Listing(found, width, room, rest).lines, *after]


class _Listing:
    """Findings, the dearest first: as many as there is room for, each whole.

    A remedy is printed once.
    """

    def __init__(self, found: list[Finding], width: int, room: int, rest: str) -> None:
        self.lines: list[str] = []
        self.shown = 0
        """How many there are."""
        if not found:
            return
        first = next((n for n, one in enumerate(found) if one.remedy), 0)
        # A blank line before and after, and a line for those that are left.
        left = room - 2 - (len(found) > 1)
        blocks = {first: _block(found[first], width, found[first].remedy, left)}
        left -= len(blocks[first])
        printed = {found[first].remedy: found[first]}
        for number, finding in enumerate(found):
            if number == first:
                continue
            same = printed.get(finding.remedy) if finding.remedy else None
            remedy = finding.remedy
            if same is not None:
                remedy = f"The same remedy as for the {seconds_text(same.seconds)} above."
            block = _block(finding, width, remedy)
            if len(block) > left + (number == len(found) - 1 == len(blocks)):
                break
            left -= len(block)
            blocks[number] = block
            printed.setdefault(finding.remedy, finding)
        self.shown = len(blocks)
        self.lines = ["", *(line for number in sorted(blocks) for line in blocks[number])]
        if others := [one for number, one in enumerate(found) if number not in blocks]:
            seconds = sum(finding.seconds for finding in others)
            text = f"in {counted(len(others), 'other finding')}: {rest}"
            self.lines.append(_seconds(seconds) + text)
        self.lines.append("")


def _block(finding: Finding, width: int, remedy: str, most: int = 0) -> list[str]:
    """Return a finding in lines; with `most`, its text has as many as the remedy leaves of them."""
    room, place = width - _MARGIN, f", {finding.place}" if finding.place else ""
    advice = textwrap.wrap(remedy, room, break_on_hyphens=False)
    wrap = textwrap.TextWrapper(
        room,
        break_on_hyphens=False,
        max_lines=max(_MOST_TEXT, most - len(advice)),
        placeholder=" …",
    ).wrap
    texts = wrap(finding.text + place)
    if place and texts[-1].endswith(" …"):  # it is the text that is cut, and not the place
        *texts, last = wrap(finding.text)
        texts.append(shortened(shortened(last, max(2, room - len(place))) + place, room))
    texts += advice
    return [_seconds(finding.seconds) + texts[0], *(" " * _MARGIN + text for text in texts[1:])]


def _seconds(seconds: float) -> str:
    return f"{seconds_text(seconds):>{_MARGIN - 2}}  "


def _wrapped(text: str, width: int) -> list[str]:
    # A path that is longer than a line is not cut: it can be copied.
    return textwrap.wrap(
        text, width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )


def _head(profile: Recorded, total: Total) -> Iterator[tuple[int, str]]:
    """Yield the first sentences; each with its rank, of which the highest is left out first."""
    wall = seconds_text(total.wall_s)
    if not profile.builds and not profile.unfinished:
        what = "nobody knows what JAX built" if is_unknown(profile) else "JAX built nothing"
        yield 0, f"{wall}, and {what}{_why_nothing(profile)}."
    else:
        stages = ", ".join(
            f"{stage} {seconds_text(total.seconds[stage])}"
            for stage in STAGES
            if total.seconds[stage] > max(0.0005, 0.001 * total.build_s)
        )
        share = share_text(total.build_s, total.wall_s)
        built = seconds_text(total.build_s)
        yield (
            0,
            f"{built} of {wall} ({share}) went into building programs{stages and f': {stages}'}",
        )
        yield from ((1, text) for text in _shares(profile, total))
    rest = []
    for part, name in (
        ("python", "before recording"),
        ("import", "import jax"),
        ("backend", "backend"),
        ("other", "rest of first calls"),
        ("program", ""),
        ("profile", "the profile itself"),
        ("end", "exit"),
    ):
        if part == "program":
            rest += [_program(total)] if total.outside_s >= 0.0005 else []
        elif total.seconds[part] >= 0.0005:
            rest.append(f"{name} {seconds_text(total.seconds[part])}")
    if total.seconds["unattributed"] >= 0.0005:
        why = "" if total.samples else " (outside builds, not sampled)"
        rest.append(f"unattributed {seconds_text(total.seconds['unattributed'])}{why}")
    if rest:
        yield 5, f"The rest: {', '.join(rest)}."
    if profile.builds:
        yield 3, _counts(profile)


def _shares(profile: Recorded, total: Total) -> Iterator[str]:
    took: Counter[str] = Counter()
    for built in profile.builds:
        cause = profile.cause_of(built)
        works = built.process.works if built.function.through and built.work else {}
        is_again = works.get(built.work, built.line.id) != built.line.id  # another function object
        if built.eager and not is_again:
            what = "eager"
        elif cause.kind in BLAMELESS:
            what = "first"
        elif cause.kind == "unexplained":
            what = "unexplained"
        else:
            sure = cause.remedy and not cause.remedy.startswith(UNSURE)
            what = "again" if sure else "other"
        took[what] += built.build_ns / 1e9  # type: ignore[assignment]
    parts = [
        f"{seconds_text(took[what])} {text}"
        for what, text in (
            ("again", "building again (avoidable)"),
            ("other", "building again"),
            ("unexplained", "unexplained"),
            ("first", "first builds"),
            ("eager", "JAX's functions outside jit"),
        )
        if took[what] >= 0.0005
    ]
    if len(parts) > 1:
        # Threads that build at once have more seconds than the clock.
        several = took.total() > 1.01 * total.build_s
        who = "Processes" if len(profile.processes) > 1 else "Threads"
        yield f"{f'{who} added up' if several else 'Of that'}: {', '.join(parts)}."


def _program(total: Total) -> str:
    parts = ", ".join(
        f"{seconds_text(total.seconds[part])} in {name}"
        for part, name in zip(SAMPLED, ("JAX", "libraries", "its own code"), strict=True)
        if total.samples.get(part)
    )
    half = max((high - low) / 2 for low, high in (total.interval(part) for part in SAMPLED))
    outside = seconds_text(total.outside_s)
    return f"the program {outside} ({parts}; sampled, ± {seconds_text(half)})"


def _counts(profile: Recorded) -> str:
    builds = profile.builds
    by_function: dict[object, list[Built]] = {}
    for built in builds:
        by_function.setdefault(function_key(built.function), []).append(built)
    functions, count = len(by_function), sum(map(count_of, by_function.values()))
    done = {
        "traced": sum(built.times("trace") for built in builds),
        "lowered": sum(built.times("lower") for built in builds),
        "compiled": sum(built.compiles for built in builds),
        "loaded": sum(built.hits for built in builds),
    }
    words = ", ".join(f"{count:,} {word}" for word, count in done.items() if count)
    where = []
    if len(profile.processes) > 1:
        where.append(f"{len(profile.processes)} processes")
    threads = {(built.process.name, built.line.thread) for built in builds}
    if len(threads) > len({name for name, _ in threads}):
        where.append(f"{len(threads)} threads")
    inside = f" in {' and '.join(where)}" if where else ""
    text = f"{counted(count, 'build')} of {counted(functions, 'function')}{inside}: {words}"
    return f"{text}."


def is_unknown(profile: Recorded) -> bool:
    """Return whether a process imported JAX, or tried to, and could not be recorded from there."""
    ends = [process.ended for process in profile.processes if process.ended is not None]
    failed = any(end.failures for end in ends)
    return failed and not profile.builds and not any(p.of(Import) for p in profile.processes)


def _why_nothing(profile: Recorded) -> str:
    if is_unknown(profile):
        return ": recording it failed"
    command = all(process.started.how != "context" for process in profile.processes)
    if command and not any(process.of(Import) for process in profile.processes):
        return ": no process that was followed imported it"
    return ": no function was traced, lowered or compiled"


def _tail(profile: Recorded) -> Iterator[tuple[int, str]]:
    """Yield the last sentences, each with its rank."""
    imports = [line for process in profile.processes for line in process.of(Import)]
    if folder := next((one.without_bytecode for one in imports if one.without_bytecode), ""):
        yield (
            4,
            "Python compiles JAX's modules anew at each start: PYTHONDONTWRITEBYTECODE is set, or "
            f"they cannot be written. Once: python -m compileall -q {shlex.quote(folder)}",
        )
    if profile.builds:
        yield from ((2, text) for text in _cache(profile))
        if unknown := len(unexplained(profile)):
            yield 2, f"{counted(unknown, 'build')} could not be explained."
    yield from ((0, text) for text in damage(profile))


def _next(profile: Recorded, width: int) -> Iterator[str]:
    """Yield where to look next: commands, which are not broken, so that they can be copied."""
    if not profile.builds and not profile.unfinished:
        return
    where = _folder(profile)
    if where:
        show = f"Next: harness profile show {where} --table causes"
        others = "  # functions, sites, eager, cache, time"
        yield show + others * (len(show + others) <= width)
        yield f"      harness profile report {where} -o profile.html"
    else:
        yield 'Next: p.frame("functions"), "causes", "sites", "cache", "time"'


def _rest_command(profile: Recorded) -> str:
    """Return what lists every finding."""
    where = _folder(profile)
    return f"harness profile show {where} --all" if where else "p.summary(lines=None)"


def _folder(profile: Recorded) -> str:
    """Return where a profile is, as it can be named from here; empty if it is in memory."""
    folder = profile.folder
    if folder is None:
        return ""
    with contextlib.suppress(ValueError, OSError):
        folder = folder.absolute().relative_to(Path.cwd())
    return shlex.quote(str(folder))


def _cache(profile: Recorded) -> Iterator[str]:
    by_outcome: defaultdict[str, list[Request]] = defaultdict(list)
    for request in requests_of(profile.builds):
        by_outcome[request.outcome].append(request)
    count, failed = sum(map(len, by_outcome.values())), len(by_outcome["failed"])
    off = [request for request in by_outcome["unwritten"] if request.reason in _OFF]
    if not count:
        return
    if len(off) == count - failed:
        yield f"Persistent cache: {_would_save(off)}"
        return
    hits = by_outcome["hit"]
    text = f"Persistent cache: {len(hits):,} of {counted(count, 'request')} hit"
    if hits:
        cold = cold_seconds(requests_of(profile.builds))
        saved = [seconds for hit in hits if (seconds := saved_s(hit, cold)) is not None]
        text += f" in {seconds_text(sum(hit.request_ns for hit in hits) / 1e9)}"
        if saved:
            text += f", which saved {seconds_text(max(0.0, sum(saved)))}"
            if unknown := len(hits) - len(saved):
                text += f" without the {unknown:,} that an earlier run compiled"
        else:
            text += " (compiled in an earlier run, so what that saved is not known)"
    if written := by_outcome["written"]:
        text += f"; {len(written):,} written"
    slow = [one for one in by_outcome["unwritten"] if one.reason == events.BELOW_TIME]
    if unwritten := Counter(request.reason for request in by_outcome["unwritten"]):
        reasons = ", ".join(f"{times:,} {reason}" for reason, times in unwritten.most_common())
        text += f"; not written: {reasons}"
    yield f"{text}{f'; {failed} failed' if failed else ''}."
    if slow_s := sum(request.compile_ns for request in slow) / 1e9:
        yield (
            "With JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 a second run would save at most "
            f"{seconds_text(slow_s)}, less loading the programs."
        )


def _would_save(requests: Sequence[Request]) -> str:
    """Return what the persistent cache would save of requests that found none in use."""
    if any(request.reason == events.DISABLED for request in requests):
        return "disabled: by jax_enable_compilation_cache, or the backend cannot keep programs."
    compile_s = [request.compile_ns / 1e9 for request in requests]
    every = seconds_text(sum(compile_s))
    if sum(compile_s) < 0.0005:
        return "off. It would save a second run nothing."
    with_it = "with JAX_COMPILATION_CACHE_DIR=DIR"
    usual_s = sum(seconds for seconds in compile_s if seconds >= _USUAL_THRESHOLD_S)
    if seconds_text(usual_s) == every:
        return f"off. A second run would save at most {every} {with_it}, less loading the programs."
    usual = f"at most {seconds_text(usual_s)}" if usual_s else "nothing"
    return (
        f"off. A second run would save {usual} {with_it}, at most {every} with "
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 as well, less loading the programs."
    )
