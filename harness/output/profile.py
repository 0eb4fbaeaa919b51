"""What a profile says first: what building cost, why, and what to do, on one screen."""

from __future__ import annotations

import contextlib
import shlex
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cache.saved import DIRECTORY, LEAST_S, CacheSetting
from harness.jaxhooks.events import Import
from harness.output.cache import problem_lines, reason_text, setting_text
from harness.output.profile_findings import FindingText, finding_texts, is_muted
from harness.profiles.figures import Defect, DefectKind, damage, is_unknown, unexplained
from harness.profiles.findings import findings
from harness.profiles.names import shortened
from harness.profiles.pieces import STAGES
from harness.profiles.summary import (
    SHARES,
    CacheUse,
    Nothing,
    Share,
    cache_use,
    counts,
    shares,
    why_nothing,
)
from harness.profiles.totals import SAMPLED, Total, totals
from harness.records.units import counted, seconds_text, share_text, times_text

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

LINES = 24

NARROWEST = 60

_MARGIN = 11
"""Characters in front of a finding, for its seconds."""

_MOST_TEXT = 3
"""Lines of a finding's text; the remedy has as many as it needs."""

_WANTED = 3
"""Findings for which the least important lines around them are left out, where they do not fit."""

_LEAST_S = 0.0005
"""Seconds that are shown."""

_NAMED = 5

_SHARES: Mapping[Share, str] = {
    "avoidable": "building again (avoidable)",
    "again": "building again",
    "unexplained": "unexplained",
    "first": "first builds",
    "outside jit": "JAX's functions outside jit",
}

_PARTS = {
    "python": "before recording",
    "import": "import jax",
    "backend": "backend",
    "other": "rest of first calls",
    "program": "the program",
    "profile": "the profile itself",
    "end": "exit",
    "unattributed": "unattributed",
}

_NOTHING: Mapping[Nothing, str] = {
    "not imported": "no process that was followed imported it",
    "not used": "no function was traced, lowered or compiled",
}

_CLEARED = (
    "Processes with an environment of their own are not followed; for pyperf's workers: "
    "--inherit-environ=PYTHONPATH,HARNESS_PROFILE."
)

_DAMAGE: Mapping[DefectKind, str] = {
    "open": "The profile is still open: this is what was built until now.",
    "late": (
        "JAX was in use before the profile was opened: what it had built by then is not known, so "
        "a first build may be one again."
    ),
    "cut off": (
        "{logs} cut off (process {names}): killed, or still running. What is shown reaches until "
        "the last line."
    ),
    "stacks": (
        "After {number:,} stacks of a process only the innermost line of the program was written: "
        "lines are right, who called them is not known."
    ),
    "run": "{names}",
    "unreadable lines": "{lines} of the logs could not be read.",
    "lost lines": "{lines} could not be written: counts and seconds are too low.",
    "failures": "The profile itself failed {times}: {first}",
}


def damage_text(one: Defect) -> str:
    """Return what is not whole in a profile, in a sentence."""
    return _DAMAGE[one.kind].format(
        number=one.number,
        names=", ".join(one.names[:_NAMED]) + "…" * (len(one.names) > _NAMED),
        logs=counted(one.number, "log"),
        lines=counted(one.number, "line"),
        times=times_text(one.number),
        first=shortened(next(iter(one.names), ""), 80),
    )


def summary(
    profile: Recorded,
    width: int = 100,
    lines: int | None = LINES,
    muted: Sequence[str] = (),
) -> list[str]:
    """Return the answer in at most `lines` lines, or all of it, of at most `width` characters.

    The first finding that has a remedy is whole, whatever there is no room for. Where there is too
    little, lines around the findings are left out first, the least important ones before others.
    """
    width = max(width, NARROWEST)
    total = next(totals(profile), None)
    if total is None:
        return ["Nothing is recorded yet."]
    head = [(rank, _wrapped(text, width)) for rank, text in _head(profile, total)]
    tail = [(rank, _wrapped(text, width)) for rank, text in _tail(profile, muted)]
    tail.append((0, list(_next(profile, width))))
    texts = finding_texts(profile, muted)
    rest = _rest_command(profile)
    room = sys.maxsize if lines is None else lines - sum(len(text) for _, text in (*head, *tail))
    wanted = min(_WANTED, len(texts))
    for rank in sorted({rank for rank, _ in (*head, *tail)}, reverse=True):
        if not rank or _Listing(texts, width, room, rest).shown >= wanted:
            break
        room += sum(len(text) for other, text in (*head, *tail) if other == rank)
        head, tail = ([one for one in part if one[0] != rank] for part in (head, tail))
    before, after = ([line for _, text in part for line in text] for part in (head, tail))
    return [*before, *_Listing(texts, width, room, rest).lines, *after]


class _Listing:
    """Findings, the slowest first: as many as there is room for, each whole.

    A remedy is printed once.
    """

    def __init__(self, texts: Sequence[FindingText], width: int, room: int, rest: str) -> None:
        self.lines: list[str] = []
        self.shown = 0
        if not texts:
            return
        first = next((n for n, one in enumerate(texts) if _helps(one)), 0)
        # A blank line before and after, and a line for those that are left.
        left = room - 2 - (len(texts) > 1)
        blocks = {first: _block(texts[first], width, _advice(texts[first]), left)}
        left -= len(blocks[first])
        printed = {texts[first].remedy: texts[first]}
        for number, one in enumerate(texts):
            if number == first:
                continue
            same = printed.get(one.remedy) if one.remedy else None
            advice = _advice(one)
            if same is not None:
                advice = f"As for the {seconds_text(same.seconds)} above{_id(one)}."
            block = _block(one, width, advice)
            if len(block) > left + (number == len(texts) - 1 == len(blocks)):
                break
            left -= len(block)
            blocks[number] = block
            printed.setdefault(one.remedy, one)
        self.shown = len(blocks)
        self.lines = ["", *(line for number in sorted(blocks) for line in blocks[number])]
        if others := [one for number, one in enumerate(texts) if number not in blocks]:
            seconds = sum(one.seconds for one in others)
            text = f"in {counted(len(others), 'other finding')}: {rest}"
            self.lines.append(_seconds(seconds) + text)
        self.lines.append("")


def _helps(one: FindingText) -> bool:
    remedy = one.finding.remedy
    return remedy is not None and remedy.kind != "look inside"


def _id(one: FindingText) -> str:
    return f" ({one.finding.remedy.id})" if one.finding.remedy is not None else ""


def _advice(one: FindingText) -> str:
    return f"{one.remedy}{_id(one)}"


def _block(one: FindingText, width: int, advice: str, most: int = 0) -> list[str]:
    """Return a finding in lines; with `most`, its text has as many as the remedy leaves of them."""
    room, place = width - _MARGIN, f", {one.place}" if one.place else ""
    remedy = textwrap.wrap(advice, room, break_on_hyphens=False)
    wrap = textwrap.TextWrapper(
        room,
        break_on_hyphens=False,
        max_lines=max(_MOST_TEXT, most - len(remedy)),
        placeholder=" …",
    ).wrap
    texts = wrap(one.text + place)
    if place and texts[-1].endswith(" …"):  # it is the text that is cut, and not the place
        *texts, last = wrap(one.text)
        texts.append(shortened(shortened(last, max(2, room - len(place))) + place, room))
    texts += remedy
    return [_seconds(one.seconds) + texts[0], *(" " * _MARGIN + text for text in texts[1:])]


def _seconds(seconds: float) -> str:
    return f"{seconds_text(seconds):>{_MARGIN - 2}}  "


def _wrapped(text: str, width: int) -> list[str]:
    # A path that is longer than a line is not cut: it can be copied.
    return textwrap.wrap(
        text, width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )


def _head(profile: Recorded, total: Total) -> Iterator[tuple[int, str]]:
    wall = seconds_text(total.wall_s)
    if profile.builds or profile.unfinished:
        stages = ", ".join(
            f"{stage} {seconds_text(total.seconds[stage])}"
            for stage in STAGES
            if total.seconds[stage] > max(_LEAST_S, 0.001 * total.build_s)
        )
        share = share_text(total.build_s, total.wall_s)
        built = seconds_text(total.build_s)
        yield (
            0,
            f"{built} of {wall} ({share}) went into building programs{stages and f': {stages}'}",
        )
        yield from ((1, text) for text in _shares(profile, total))
    elif is_unknown(profile):
        yield 0, f"{wall}, and nobody knows what JAX built: recording it failed."
    else:
        yield 0, f"{wall}, and JAX built nothing: {_NOTHING[why_nothing(profile)]}."
        if any(process.started.how != "context" for process in profile.processes):
            yield 0, _CLEARED
    rest = [text for part in _PARTS if (text := _part(part, total))]
    if rest:
        yield 5, f"The rest: {', '.join(rest)}."
    if profile.builds:
        yield 3, _counts(profile)


def _part(part: str, total: Total) -> str:
    seconds = total.outside_s if part == "program" else total.seconds[part]
    if seconds < _LEAST_S:
        return ""
    text = f"{_PARTS[part]} {seconds_text(seconds)}"
    if part == "unattributed" and not total.samples:
        return f"{text} (outside builds, not sampled)"
    if part != "program":
        return text
    places = zip(SAMPLED, ("JAX", "libraries", "its own code"), strict=True)
    parts = ", ".join(
        f"{seconds_text(total.seconds[part])} in {name}"
        for part, name in places
        if total.samples.get(part)
    )
    half = max((high - low) / 2 for low, high in (total.interval(part) for part in SAMPLED))
    return f"{text} ({parts}; sampled, ± {seconds_text(half)})"


def _shares(profile: Recorded, total: Total) -> Iterator[str]:
    taken = shares(profile)
    parts = [
        f"{seconds_text(taken[share] / 1e9)} {_SHARES[share]}"
        for share in SHARES
        if taken[share] / 1e9 >= _LEAST_S
    ]
    if len(parts) > 1:
        # Threads that build at once have more seconds than the clock.
        several = taken.total() / 1e9 > 1.01 * total.build_s
        who = "Processes" if len(profile.processes) > 1 else "Threads"
        yield f"{f'{who} added up' if several else 'Of that'}: {', '.join(parts)}."


def _counts(profile: Recorded) -> str:
    made = counts(profile)
    words = ", ".join(f"{count:,} {word}" for word, count in made.done.items() if count)
    where = [f"{made.processes} processes"] * (made.processes > 1)
    where += [f"{made.threads} threads"] * (made.threads > 1)
    inside = f" in {' and '.join(where)}" if where else ""
    functions = counted(made.functions, "function")
    return f"{counted(made.builds, 'build')} of {functions}{inside}: {words}."


def _tail(profile: Recorded, muted: Sequence[str]) -> Iterator[tuple[int, str]]:
    if silent := [one for one in findings(profile) if is_muted(one, muted)]:
        ids = ", ".join(sorted({one.remedy.id for one in silent if one.remedy}))
        seconds = seconds_text(sum(one.seconds for one in silent))
        yield 0, f"Muted: {counted(len(silent), 'finding')} ({ids}), {seconds}."
    imports = [line for process in profile.processes for line in process.of(Import)]
    if folder := next((one.without_bytecode for one in imports if one.without_bytecode), ""):
        yield (
            4,
            "Python compiles JAX's modules at each start: PYTHONDONTWRITEBYTECODE is set, or "
            f"they cannot be written. Once: python -m compileall -q {shlex.quote(folder)}",
        )
    if profile.builds:
        yield from ((2, text) for text in cache_texts(cache_use(profile)))
        if unknown := len(unexplained(profile)):
            yield 2, f"{counted(unknown, 'build')} could not be explained."
    yield from ((0, damage_text(one)) for one in damage(profile))


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


def cache_texts(use: CacheUse) -> Iterator[str]:
    """Yield what the persistent cache did, and what its settings would save."""
    did = use.did
    if not did.requests:
        return
    left = [one for one in use.settings if one.saves_s >= _LEAST_S]
    if use.use == "on":
        yield f"Persistent cache: {_done(use)}"
    elif use.use == "off":
        yield f"Persistent cache: {_would_save(use.settings)}"
        left = [one for one in left if one.how != "set"]
    else:
        yield (
            "Persistent cache: disabled: by jax_enable_compilation_cache, or the backend cannot "
            "store programs."
        )
    for one in sorted(left, key=lambda one: -one.saves_s)[:MOST_SETTINGS]:
        yield setting_text(one)
    yield from problem_lines(did)
    if use.use == "on" and did.hits == did.requests:
        yield (
            f"No cache saves trace ({seconds_text(use.left_s['trace'])}) and lower "
            f"({seconds_text(use.left_s['lower'])}): trace less (a loop as lax.scan or "
            "lax.fori_loop), or load a program that jax.export stored."
        )


MOST_SETTINGS = 3


def _done(use: CacheUse) -> str:
    did = use.did
    text = f"{did.hits:,} of {counted(did.requests, 'request')} hit"
    if did.hits:
        text += f" in {seconds_text(use.hit_s)}"
        if did.hits_without_cold == did.hits:
            text += " (compiled in an earlier run, so what that saved is not known)"
        else:
            text += f", which saved {seconds_text(max(0.0, did.saved_s))}"
            if unknown := did.hits_without_cold:
                text += f" without the {unknown:,} that an earlier run compiled"
    if did.written:
        text += f"; {did.written:,} written"
    if did.unwritten:
        reasons = ", ".join(
            f"{times:,} {reason_text(reason)}".rstrip() for reason, times in did.unwritten.items()
        )
        text += f"; not written: {reasons}"
    return f"{text}{f'; {did.failed} failed' if did.failed else ''}."


def _would_save(settings: Sequence[CacheSetting]) -> str:
    """Return what the persistent cache would save where there is none."""
    first = sum(one.saves_s for one in settings if one.setting == DIRECTORY)
    every = sum(one.saves_s for one in settings)
    if every < _LEAST_S:
        return "off. It would save a second run nothing."
    with_it = "with JAX_COMPILATION_CACHE_DIR=DIR"
    load = "minus the time to load the programs"
    whole = f"at most {seconds_text(every)}"
    if seconds_text(first) == seconds_text(every):
        return f"off. A second run would save {whole} {with_it}, {load}."
    usual = f"at most {seconds_text(first)}" if first else "nothing"
    return (
        f"off. A second run would save {usual} {with_it}, {whole} with "
        f"{LEAST_S.upper()}=0 as well, {load}."
    )
