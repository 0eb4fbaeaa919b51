"""Find what ails a cache directory."""

from __future__ import annotations

import importlib.util
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from harness.cache.contents import KNOWN_FORMATS
from harness.cache.entries import Entry, Survey
from harness.cache.findings import BAD, REMEDY, Diagnosis, Finding, Kind, State
from harness.cache.put_cost import PutCost
from harness.cache.writers import Writer, writable_entries, writers_of

SETTLE_S = 10.0
"""JAX writes an entry in place: one that is younger may still be on its way."""

FUTURE_S = 60.0
"""Clocks of machines that share a directory differ by less."""

SLOW_PUT_S = 0.1


def diagnose(
    survey: Survey,
    *,
    local: bool = True,
    put_cost: PutCost | None = None,
    capped: bool | None = None,
    settle_s: float = SETTLE_S,
) -> Diagnosis:
    """Find what ails a cache.

    Args:
        survey: The directory, as it was read.
        local: Whether it is on this machine, so that its permissions can be looked at.
        put_cost: The cost of a write at its number of entries, if that was measured.
        capped: Whether programs use it with a size cap; what the directory shows if None.
        settle_s: Bad entries younger than this are noted only: a process may be writing them.
    """
    capped = survey.capped if capped is None else capped
    findings = [
        *_bad(survey, settle_s),
        *_duplicates(survey),
        *_never_read(survey),
        *_foreign(survey),
        *_future(survey),
        *(_open_to_others(survey) if local else ()),
        *(_without_filelock() if capped else ()),
        *(_slow_put(put_cost, capped) if put_cost else ()),
    ]
    severities = {finding.severity for finding in findings}
    state: State = "healthy"
    if "unusable" in severities:
        state = "unusable"
    elif "ailing" in severities:
        state = "ailing"
    return Diagnosis(state, tuple(findings), put_cost)


def to_quarantine(survey: Survey, diagnosis: Diagnosis) -> list[Entry]:
    """The entries that a quarantine moves: bad ones, whose writer has surely finished."""
    names = {
        name
        for finding in diagnosis.findings
        if finding.kind in BAD and finding.settled
        for name in finding.entries
    }
    return [entry for entry in survey.entries if entry.name in names]


def _bad(survey: Survey, settle_s: float) -> Iterator[Finding]:
    for entry in survey.entries:
        state = entry.contents.state
        kind: Kind
        if state in ("empty", "torn", "garbage", "unreadable", "unchecked"):
            kind, evidence = state, f"{entry.size_bytes} bytes: {entry.contents.reason}"
        elif survey.capped and entry.used_source == "file-system":
            kind, evidence = "orphaned", "it has no time of use beside it, as a size cap needs"
        else:
            continue
        age_s = entry.read_at - entry.written_at
        settled = kind not in BAD or abs(age_s) >= settle_s
        if not settled:
            when = f"{abs(age_s):.1f} s {'ago' if age_s >= 0 else 'ahead of this clock'}"
            evidence += f"; written {when}, so it may still be on its way: look again"
        ailing = settled and kind != "unchecked"
        yield Finding(
            kind, "ailing" if ailing else "note", (entry.name,), evidence, REMEDY[kind], settled
        )


def _duplicates(survey: Survey) -> Iterator[Finding]:
    # Two compiles of one program are not always the same bytes (seen on jax 0.11.2 and 0.12.0.1):
    # what is found are the fewest that there are.
    same: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in survey.entries:
        if entry.contents.digest:
            same[entry.module, entry.contents.digest].append(entry)
    for (module, _), entries in same.items():
        if len(entries) > 1:
            spare = sum(entry.size_bytes for entry in entries[1:])
            yield Finding(
                "duplicate",
                "note",
                tuple(entry.name for entry in entries),
                f"{module}: {len(entries)} keys hold the same executable, {spare} bytes to spare",
                REMEDY["duplicate"],
            )


def _never_read(survey: Survey) -> Iterator[Finding]:
    unread = [e for e in survey.entries if e.never_read and e.contents.state == "readable"]
    if unread:
        size_bytes = sum(entry.size_bytes for entry in unread)
        sources = {"atime-file": "JAX's own record", "file-system": "times of last access"}
        told = " and ".join(sorted({sources[e.used_source] for e in unread}))
        yield Finding(
            "never-read",
            "note",
            tuple(entry.name for entry in unread),
            f"{len(unread)} of {len(survey.entries)} entries ({size_bytes} bytes) were not read "
            f"since they were written, by {told}",
            REMEDY["never-read"],
        )


def _foreign(survey: Survey) -> Iterator[Finding]:
    unpackable = [e.name for e in survey.entries if e.contents.state == "needs-zstd"]
    if unpackable:
        yield Finding(
            "foreign-version",
            "note",
            tuple(unpackable),
            f"{len(unpackable)} entries are compressed with zstd, which this Python "
            f"({sys.version_info.major}.{sys.version_info.minor}) cannot unpack: a Python with it "
            "wrote them. They were not checked",
            "To check them, install zstandard here. The compression is in the key, so that each "
            "side compiles and keeps its own; but Python 3.14 writes zstd under the key of zlib, "
            "and an older Python without zstandard then fails on such an entry for ever: give all "
            "programs that share the directory the same Python, or zstandard.",
        )
    formats: dict[str, list[str]] = defaultdict(list)
    for entry in survey.entries:
        if entry.contents.state == "readable" and entry.contents.format not in KNOWN_FORMATS:
            formats[entry.contents.format].append(entry.name)
    known = "; ".join(f"`{name}`: {who}" for name, who in KNOWN_FORMATS.items())
    for name, names in formats.items():
        yield Finding(
            "foreign-version",
            "note",
            tuple(names),
            f"{len(names)} entries have "
            + (f"an executable of the format `{name}`" if name else "no executable's header")
            + f" (known: {known}). An entry does not hold the release that wrote it",
            "Another release of jaxlib, or not an executable at all. The release is in the key, so "
            "that an old one is never asked for; if JAX warns about one of these, move it aside.",
        )


def _future(survey: Survey) -> Iterator[Finding]:
    for entry in survey.entries:
        used_ahead_s = (entry.used_at or 0.0) - survey.taken_at
        ahead_s = max(entry.written_at - survey.taken_at, used_ahead_s)
        if ahead_s > FUTURE_S:
            # Only the time of use that JAX recorded decides what is evicted.
            misleads = entry.used_source == "atime-file" and used_ahead_s > FUTURE_S
            yield Finding(
                "future",
                "ailing" if misleads else "note",
                (entry.name,),
                f"its time is {ahead_s:.0f} s ahead of this machine's clock",
                REMEDY["future"],
            )


def _open_to_others(survey: Survey) -> Iterator[Finding]:
    for writer in writers_of(Path(survey.directory)):
        yield _of_writer(writer)
    names = writable_entries(survey.entries)
    if names:
        yield Finding(
            "others-can-write",
            "unusable",
            tuple(names),
            f"everyone on this machine can overwrite {len(names)} entries, and an entry is code "
            "that JAX runs",
            "Take the permission away (`chmod o-w`), and fill a new directory if you do not know "
            "who used it.",
        )


def _of_writer(writer: Writer) -> Finding:
    says = {
        "everyone": "everyone on this machine can write",
        "group": f"the group {writer.name} can write",
        "owner": f"{writer.name}, whose it is, can write",
    }[writer.who]
    remedy = {
        "everyone": f"Take it away (`chmod o-w {writer.what}`), and fill a new directory if you do "
        "not know who used it.",
        "group": f"If everyone in {writer.name} may run code as you, nothing; else "
        f"`chmod g-w {writer.what}`.",
        "owner": f"If {writer.name} may run code as you, nothing; else use a directory of your "
        "own.",
    }[writer.who]
    return Finding(
        "others-can-write",
        "unusable" if writer.who == "everyone" else "ailing",
        (),
        f"{says} to {writer.what}, and an entry is code that JAX runs",
        remedy,
    )


def _without_filelock() -> Iterator[Finding]:
    if importlib.util.find_spec("filelock") is None:
        yield Finding(
            "no-filelock",
            "ailing",
            (),
            f"{sys.executable} has no package filelock, and this cache is used with a size cap",
            REMEDY["no-filelock"],
        )


def _slow_put(cost: PutCost, capped: bool) -> Iterator[Finding]:
    if cost.capped_s >= SLOW_PUT_S:
        yield Finding(
            "slow-put",
            "ailing" if capped else "note",
            (),
            f"a write under a size cap costs {cost.capped_s * 1e3:.0f} ms at {cost.entries} "
            f"entries, {cost.first_s * 1e3:.1f} ms at none"
            + ("" if capped else "; this directory shows no cap, so today it does not"),
            REMEDY["slow-put"],
        )
