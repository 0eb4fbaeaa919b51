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

from harness.profiles.answer.findings import Finding, findings
from harness.profiles.causes.cause import UNSURE
from harness.profiles.causes.registry import BLAMELESS
from harness.profiles.figures import (
    cold_seconds,
    damage,
    function_key,
    requests_of,
    saved_s,
    unexplained,
)
from harness.profiles.names import shortened
from harness.profiles.pieces import STAGES
from harness.profiles.totals import SAMPLED, Total, totals
from harness.records.units import counted, seconds_text, share_text
from harness.watch import ledger_events as ledger
from harness.watch.events import Import, Request

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

LINES = 24
"""A screen."""

NARROWEST = 60
"""Characters; no line is made narrower."""

_MARGIN = 11
"""Characters in front of a finding, for its seconds."""

_SHORT = 2
"""Findings behind the dearest that are told in a line each, rather than in full, if need be."""

_USUAL_THRESHOLD_S = 1.0
"""JAX's default of `jax_persistent_cache_min_compile_time_secs`: what compiles faster is not
kept."""

_OFF = (ledger.NO_DIRECTORY, ledger.DISABLED)
"""Why nothing was written where the persistent cache was not in use."""


def summary(profile: Recorded, width: int = 100, lines: int | None = LINES) -> list[str]:
    """Return the answer in at most `lines` lines, or all of it, of at most `width` characters."""
    width = max(width, NARROWEST)
    total = next(totals(profile), None)
    if total is None:
        return ["Nothing is recorded yet."]
    head = [line for text in _head(profile, total) for line in _wrapped(text, width)]
    tail = [line for text in _tail(profile) for line in _wrapped(text, width)]
    tail += _next(profile, width)
    room = sys.maxsize if lines is None else lines - len(head) - len(tail)
    return [*head, *_listed(findings(profile), width, room), *tail]


def _listed(found: list[Finding], width: int, room: int) -> list[str]:
    """Return findings, the dearest first; as many in full as leave the next ones a line.

    A remedy is said once.
    """
    if not found:
        return []
    lines: list[str] = [""]
    shown = 0
    said: set[str] = set()
    for finding in found:
        block = _block(finding, width, with_remedy=finding.remedy not in said)
        left = len(found) - shown - 1
        # A blank line at the end, and for those that are left a line each, up to a few.
        if len(lines) + len(block) + min(left, _SHORT) + 1 > room:
            break
        lines += block
        shown += 1
        said.add(finding.remedy)
    while shown < len(found):
        left = len(found) - shown - 1
        if len(lines) + 1 + (left > 0) + 1 > room:
            break
        one = found[shown]
        place = f", {one.place}" if one.place else ""
        space = max(20, width - _MARGIN - len(place))
        text = textwrap.shorten(one.text, space, placeholder=" …") + place
        lines.append(_seconds(one.seconds) + shortened(text, width - _MARGIN))
        shown += 1
    if rest := found[shown:]:
        seconds = sum(finding.seconds for finding in rest)
        lines.append(f"{_seconds(seconds)}in {counted(len(rest), 'other finding')}")
    return [*lines, ""]


def _block(finding: Finding, width: int, with_remedy: bool) -> list[str]:
    room, place = width - _MARGIN, f", {finding.place}" if finding.place else ""
    wrap = textwrap.TextWrapper(room, break_on_hyphens=False, max_lines=3, placeholder=" …").wrap
    texts = wrap(finding.text + place)
    if place and texts[-1].endswith(" …"):  # it is the text that is cut, and not the place
        *texts, last = wrap(finding.text)
        texts.append(shortened(shortened(last, max(2, room - len(place))) + place, room))
    texts += wrap(finding.remedy if with_remedy else "")
    return [_seconds(finding.seconds) + texts[0], *(" " * _MARGIN + text for text in texts[1:])]


def _seconds(seconds: float) -> str:
    return f"{seconds_text(seconds):>{_MARGIN - 2}}  "


def _wrapped(text: str, width: int) -> list[str]:
    # A path that is longer than a line is not cut: it can be copied.
    return textwrap.wrap(
        text, width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )


def _head(profile: Recorded, total: Total) -> Iterator[str]:
    wall = seconds_text(total.wall_s)
    if not profile.builds and not profile.unfinished:
        what = "nobody knows what JAX built" if is_unknown(profile) else "JAX built nothing"
        yield f"{wall}, and {what}{_why_nothing(profile)}."
    else:
        stages = ", ".join(
            f"{stage} {seconds_text(total.seconds[stage])}"
            for stage in STAGES
            if total.seconds[stage] > max(0.0005, 0.001 * total.build_s)
        )
        share = share_text(total.build_s, total.wall_s)
        built = seconds_text(total.build_s)
        yield f"{built} of {wall} ({share}) went into building programs{stages and f': {stages}'}"
        yield from _shares(profile, total)
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
        yield f"The rest: {', '.join(rest)}."
    if profile.builds:
        yield _counts(profile)


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
    functions = len({function_key(built.function) for built in builds})
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
    text = f"{counted(len(builds), 'build')} of {counted(functions, 'function')}{inside}: {words}"
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


def _tail(profile: Recorded) -> Iterator[str]:
    imports = [line for process in profile.processes for line in process.of(Import)]
    if folder := next((one.without_bytecode for one in imports if one.without_bytecode), ""):
        yield (
            "Python compiles JAX's modules anew at each start: PYTHONDONTWRITEBYTECODE is set, or "
            f"they cannot be written. Once: python -m compileall -q {shlex.quote(folder)}"
        )
    if profile.builds:
        yield from _cache(profile)
        if unknown := len(unexplained(profile)):
            yield f"{counted(unknown, 'build')} could not be explained."
    yield from damage(profile)


def _next(profile: Recorded, width: int) -> Iterator[str]:
    """Yield where to look next: commands, which are not broken, so that they can be copied."""
    if not profile.builds and not profile.unfinished:
        return
    if (folder := profile.folder) is not None:
        with contextlib.suppress(ValueError, OSError):  # as it can be named from here
            folder = folder.absolute().relative_to(Path.cwd())
        where = shlex.quote(str(folder))
        show = f"Next: harness profile show {where} --table causes"
        others = "  # functions, sites, eager, cache, time"
        yield show + others * (len(show + others) <= width)
        yield f"      harness profile report {where} -o profile.html"
    else:
        yield 'Next: p.frame("functions"), "causes", "sites", "cache", "time"'


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
        cold = cold_seconds(profile)
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
    if unwritten := Counter(request.reason for request in by_outcome["unwritten"]):
        reasons = ", ".join(
            f"{times:,} {ledger.reason_text(reason)}" for reason, times in unwritten.most_common()
        )
        text += f"; not written: {reasons}"
    yield f"{text}{f'; {failed} failed' if failed else ''}."


def _would_save(requests: Sequence[Request]) -> str:
    """Return what the persistent cache would save of requests that found none in use."""
    if any(request.reason == ledger.DISABLED for request in requests):
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
