"""What may ail entries of a cache."""

from __future__ import annotations

import re
import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator

from harness.cache.ailment import Ailment, Examined, Sign
from harness.cache.entry import KNOWN_FORMATS, State, lacking_features
from harness.cache.loads import NO_SYMBOLS
from harness.cache.survey import Entry
from harness.records.units import counted

FUTURE_S = 60.0
"""Clocks of machines that share a directory differ by less."""


def _read_as(state: State) -> Callable[[Examined], Iterator[Sign]]:
    def find(examined: Examined) -> Iterator[Sign]:
        for entry in examined.survey.entries:
            if entry.contents.state != state:
                continue
            evidence = f"{entry.size_bytes} bytes: {entry.contents.reason}"
            age_s = entry.read_at - entry.written_at
            # JAX writes an entry in place; but no writer leaves one that cannot be read.
            if state in ("unreadable", "unchecked") or abs(age_s) >= examined.settle_s:
                yield Sign([entry], evidence)
            else:
                evidence += f"; {_young(age_s)}"
                yield Sign([entry], evidence, "unsettled", _SETTLE, settled=False)

    return find


def _young(age_s: float) -> str:
    when = f"{abs(age_s):.1f} s {'ago' if age_s >= 0 else 'ahead of this clock'}"
    return f"written {when}, so it may still be written"


_SETTLE = (
    "Look again in 10 s. If no program runs on this directory now, as after a copy or a restore "
    "that gives all files the time of the copy: the same command with `--settle 0`."
)


_COMPILED_EACH_TIME = (
    "JAX never replaces it and compiles anew each time. --quarantine moves it aside; the next run "
    "writes it again."
)


def _wrong_module(examined: Examined) -> Iterator[Sign]:
    for entry in examined.survey.entries:
        inside = entry.contents.module
        if inside and inside != as_xla_names(entry.module):
            yield Sign([entry], f"the module in it is {inside}, not {entry.module}")


def as_xla_names(module: str) -> str:
    """XLA's own name of a module: each byte that is no letter, digit, `_`, `.` or `-` is a `_`."""
    return re.sub(r"[^\w.-]", "_", module.encode().decode("latin-1"), flags=re.ASCII)


_MAY_BE_OTHERS = (
    "It does not say what it is for, so it stays. If programs for CPUs alone use this directory, "
    "move it out of the way: JAX compiles it anew each time."
)

_MAY_BE_NEWER = (
    "Another release of jaxlib may load it, so it stays. If programs of this one alone use this "
    "directory, move it out of the way: JAX compiles it anew each time."
)


def _refused(examined: Examined) -> Iterator[Sign]:
    for entry in examined.survey.entries:
        if said := examined.refused.get(entry.name):
            evidence = f"XLA does not load it for a CPU: {said}"
            if not entry.contents.processor:
                yield Sign([entry], evidence, "note", _MAY_BE_OTHERS, settled=False)
            elif NO_SYMBOLS in said:
                yield Sign([entry], evidence, "note", _MAY_BE_NEWER, settled=False)
            else:
                yield Sign([entry], evidence)


def _foreign_processor(examined: Examined) -> Iterator[Sign]:
    lacking: dict[tuple[str, tuple[str, ...]], list[Entry]] = defaultdict(list)
    for entry in examined.survey.entries if examined.local else ():
        if features := lacking_features(entry.contents.features):
            lacking[entry.contents.processor, features].append(entry)
    for (name, features), entries in lacking.items():
        yield Sign(
            entries,
            f"{counted(len(entries), 'entry')} compiled for {name}, with instructions that this "
            f"processor lacks: {', '.join(features)}",
        )


def _orphaned(examined: Examined) -> Iterator[Sign]:
    orphans = [
        entry
        for entry in (examined.survey.entries if examined.capped else ())
        if entry.contents.state in ("readable", "needs-zstd") and entry.used_source != "atime-file"
    ]
    if not orphans:
        return
    evidence = f"{counted(len(orphans), 'entry')} without a time of use, as a size cap needs"
    if not examined.needs_times:
        yield Sign(orphans, evidence, "note")
        return
    evidence += f"; jax {examined.jax} fails every write while there is one"
    remedy = _GIVE_TIMES.format(directory=shlex.quote(examined.survey.directory))
    if not examined.local:
        remedy = _REMOVE
    youngest_s = min((entry.read_at - entry.written_at for entry in orphans), key=abs)
    if all(abs(one.read_at - one.written_at) < examined.settle_s for one in orphans):
        evidence += f"; {_young(youngest_s)}"
        yield Sign(orphans, evidence, "unsettled", f"{_SETTLE} {remedy}", settled=False)
    else:
        yield Sign(orphans, evidence, "ailing", remedy)


_GIVE_TIMES = (
    "Give all programs of this directory the same cap, and the entries that have no time of use "
    "the time 0, as later releases of JAX do (they stay, and are the first to be evicted): "
    """`for f in {directory}/*-cache; do t="${{f%-cache}}-atime"; """
    """[ -e "$t" ] || printf '\\0\\0\\0\\0\\0\\0\\0\\0' > "$t"; done`."""
)

_REMOVE = (
    "Give all programs of this directory the same cap, and remove the entries that have no "
    "`-atime` beside them with the bucket's own tool."
)


def _duplicates(examined: Examined) -> Iterator[Sign]:
    # Two compiles of one program are not always the same bytes (seen on jax 0.11.2 and 0.12.0.1):
    # what is found are the fewest that there are.
    same: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in examined.survey.entries:
        if entry.contents.digest:
            same[entry.module, entry.contents.digest].append(entry)
    for (module, _), entries in same.items():
        if len(entries) > 1:
            spare = sum(entry.size_bytes for entry in entries[1:])
            yield Sign(
                entries,
                f"{module}: {len(entries)} keys hold the same executable, {spare} bytes to spare",
            )


def _never_read(examined: Examined) -> Iterator[Sign]:
    every = examined.survey.entries
    unread = [entry for entry in every if entry.never_read and entry.contents.state == "readable"]
    if unread:
        size_bytes = sum(entry.size_bytes for entry in unread)
        sources = {"atime-file": "JAX's own record", "file-system": "times of last access"}
        told = " and ".join(sorted({sources[entry.used_source] for entry in unread}))
        yield Sign(
            unread,
            f"{len(unread)} of {counted(len(every), 'entry')} ({size_bytes} bytes) not read since "
            f"written, by {told}",
            remedy=None if examined.capped else "Nothing to fix: what is never read takes room.",
        )


def _foreign(examined: Examined) -> Iterator[Sign]:
    unpackable = [e for e in examined.survey.entries if e.contents.state == "needs-zstd"]
    if unpackable:
        yield Sign(
            unpackable,
            f"{counted(len(unpackable), 'entry')} compressed with zstd, which this Python "
            f"({sys.version_info.major}.{sys.version_info.minor}) cannot unpack: written by a "
            "Python with it, and not checked",
            remedy="To check them, install zstandard here. The compression is in the key, so that "
            "each side compiles and keeps its own; but Python 3.14 writes zstd under the key of "
            "zlib, and an older Python without zstandard then fails on such an entry for ever: "
            "give all programs that share the directory the same Python, or zstandard.",
        )
    formats: dict[str, list[Entry]] = defaultdict(list)
    for entry in examined.survey.entries:
        if entry.contents.state == "readable" and entry.contents.format not in KNOWN_FORMATS:
            formats[entry.contents.format].append(entry)
    known = "; ".join(f"`{name}`: {who}" for name, who in KNOWN_FORMATS.items())
    for name, entries in formats.items():
        kind = f"an executable of the format `{name}`" if name else "no executable's header"
        yield Sign(
            entries,
            f"{counted(len(entries), 'entry')} with {kind} (known: {known}). An entry does not "
            "hold the release that wrote it",
        )


def _future(examined: Examined) -> Iterator[Sign]:
    now = examined.survey.taken_at
    for entry in examined.survey.entries:
        used_ahead_s = (entry.used_at or 0.0) - now
        ahead_s = max(entry.written_at - now, used_ahead_s)
        if ahead_s > FUTURE_S:
            # Only the time of use that JAX recorded decides what is evicted.
            misleads = entry.used_source == "atime-file" and used_ahead_s > FUTURE_S
            evidence = f"its time is {ahead_s:.0f} s ahead of this machine's clock"
            yield Sign([entry], evidence, severity="ailing" if misleads else "note")


AILMENTS = (
    Ailment("empty", "ailing", _COMPILED_EACH_TIME, _read_as("empty"), moved_aside=True),
    Ailment("torn", "ailing", _COMPILED_EACH_TIME, _read_as("torn"), moved_aside=True),
    Ailment("garbage", "ailing", _COMPILED_EACH_TIME, _read_as("garbage"), moved_aside=True),
    Ailment(
        "wrong-module",
        "unusable",
        "JAX runs it as the function that the name says, and gives that one's results. "
        "--quarantine moves it aside; find out who copied or renamed files here.",
        _wrong_module,
        moved_aside=True,
    ),
    Ailment("unloadable", "ailing", _COMPILED_EACH_TIME, _refused, moved_aside=True),
    Ailment(
        "foreign-processor",
        "ailing",
        "XLA loads them with an error in its log, and a program may die of an illegal instruction. "
        "Give each kind of processor a directory of its own. Programs that run elsewhere still hit "
        "them, so they stay.",
        _foreign_processor,
    ),
    Ailment(
        "orphaned",
        "note",
        "Some programs use this directory without the cap that others have: give all the same. "
        "This release of JAX evicts such entries first. They are healthy, and stay.",
        _orphaned,
    ),
    Ailment(
        "unreadable",
        "ailing",
        "JAX compiles its module anew each time, with a warning. Give the user whose programs use "
        "the cache permission to read it, or move it out of the way.",
        _read_as("unreadable"),
    ),
    Ailment(
        "unchecked",
        "note",
        "No executable is known to be as large. Look at where it came from.",
        _read_as("unchecked"),
    ),
    Ailment(
        "duplicate",
        "note",
        "The same executable under several keys: a flag or a setting that is in the key but "
        "changes nothing, which costs room; or, if there are more after each run, a Python id in "
        "the program, which then hits in no other process. `harness cache explain` on the ledgers "
        "of two runs shows which.",
        _duplicates,
    ),
    Ailment(
        "never-read",
        "note",
        "Nothing to fix: what is never read costs room, and under a cap evicts others.",
        _never_read,
    ),
    Ailment(
        "foreign-version",
        "note",
        "Another release of jaxlib, or not an executable at all. The release is in the key, so "
        "that an old one is never asked for; if JAX warns about one of these, move it aside.",
        _foreign,
    ),
    Ailment(
        "future",
        "note",
        "Set the clock right. Under a size cap such an entry counts as the newest used and stays "
        "until the clock has caught up.",
        _future,
    ),
)
