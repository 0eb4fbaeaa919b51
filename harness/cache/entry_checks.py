"""What may be wrong with entries of a cache."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from harness.cache.directory import CACHE_SUFFIX
from harness.cache.entry import State
from harness.cache.executable import KNOWN_FORMATS, OF_THE_PLACE, lacking_features
from harness.cache.finding import CacheFinding, Consequence, Fix, Look, names, size_bytes
from harness.cache.here import is_orphan
from harness.cache.loads import NO_SYMBOLS
from harness.cache.option_names import option_name
from harness.cache.survey import Entry

FUTURE_S = 60.0
"""Clocks of machines that share a directory differ by less."""

Check = Callable[[Look], Iterator[CacheFinding]]


def _damaged(state: State) -> Check:
    def find(look: Look) -> Iterator[CacheFinding]:
        bad = [entry for entry in look.entries if entry.contents.state == state]
        # JAX writes an entry in place.
        for young in (False, True):
            if entries := [entry for entry in bad if look.is_young(entry) == young]:
                ages_s = [round(one.read_at - one.written_at, 1) for one in entries]
                yield CacheFinding(
                    state,
                    names(entries),
                    "unsettled" if young else "problem",
                    "may-still-be-written" if young else "compiled-in-each-process",
                    look.repair(young),
                    {"faults": _faults(entries), "ages_s": ages_s},
                )

    return find


def _faults(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    return [
        {
            "fault": entry.contents.fault,
            "detail": entry.contents.detail,
            "size_bytes": entry.size_bytes,
            "compression": entry.contents.compression,
        }
        for entry in entries
    ]


def _unreadable(look: Look) -> Iterator[CacheFinding]:
    if bad := [entry for entry in look.entries if entry.contents.state == "unreadable"]:
        fix = look.remove("unreadable")
        if any(entry.contents.fault == "cannot-read" for entry in bad):
            fix = Fix("permission")
        facts = {"faults": _faults(bad)}
        yield CacheFinding(
            "unreadable", names(bad), "problem", "compiled-in-each-process", fix, facts
        )


def _unchecked(look: Look) -> Iterator[CacheFinding]:
    if large := [entry for entry in look.entries if entry.contents.state == "unchecked"]:
        facts = {"faults": _faults(large)}
        yield CacheFinding("unchecked", names(large), "note", "not-checked", facts=facts)


def _wrong_module(look: Look) -> Iterator[CacheFinding]:
    inside = {
        entry.name: entry.contents.executable.module
        for entry in look.entries
        if entry.contents.executable.module not in ("", as_xla_names(entry.module))
    }
    if inside:
        yield CacheFinding(
            "wrong-module",
            tuple(inside),
            "unusable",
            "gives-results-of-another",
            look.repair(),
            {"inside": list(inside.values())},
        )


def as_xla_names(module: str) -> str:
    """XLA's own name of a module: each byte that is no letter, digit, `_`, `.` or `-` is a `_`."""
    return re.sub(r"[^\w.-]", "_", module.encode().decode("latin-1"), flags=re.ASCII)


def _unloadable(look: Look) -> Iterator[CacheFinding]:
    """Look at what XLA refuses; another jaxlib may load what lacks its code, another device too."""
    refused = [entry for entry in look.entries if look.refused.get(entry.name)]
    kinds = defaultdict[bool, list[Entry]](list)
    for entry in refused:
        error = look.refused[entry.name]
        kinds[bool(entry.contents.executable.processor) and NO_SYMBOLS not in error].append(entry)
    for is_proven, entries in kinds.items():
        yield CacheFinding(
            "unloadable",
            names(entries),
            "problem" if is_proven else "note",
            "compiled-in-each-process",
            look.repair() if is_proven else Fix(),
            {"errors": [look.refused[entry.name] for entry in entries]},
        )


def _verified(look: Look) -> Iterator[CacheFinding]:
    """Look at entries that a rebuild did not equal."""
    verdicts = defaultdict[str, list[str]](list)
    for one in look.verified:
        verdicts[one.verdict].append(one.name)
    if wrong := verdicts["wrong"]:
        place = look.survey.directory
        files = " ".join(shlex.quote(f"{place}/{name}{CACHE_SUFFIX}") for name in wrong)
        yield CacheFinding(
            "not-as-rebuilt",
            tuple(wrong),
            "unusable",
            "gives-results-of-another",
            Fix("remove", f"rm -- {files}"),
            {"verdict": "wrong"},
        )
    for verdict in ("code-differs", "not-deterministic"):
        if differing := verdicts[verdict]:
            facts = {"verdict": verdict}
            yield CacheFinding("not-as-rebuilt", tuple(differing), "note", "none", facts=facts)


def _foreign_processor(look: Look) -> Iterator[CacheFinding]:
    lacking: dict[tuple[str, tuple[str, ...]], list[Entry]] = defaultdict(list)
    for entry in look.entries if look.here.local else ():
        if features := lacking_features(entry.contents.executable.features):
            lacking[entry.contents.executable.processor, features].append(entry)
    for (processor, features), entries in lacking.items():
        facts = {"processor": processor, "lacking": list(features)}
        fix = Fix("own-directory")
        yield CacheFinding("foreign-processor", names(entries), "problem", "may-crash", fix, facts)


def _orphaned(look: Look) -> Iterator[CacheFinding]:
    orphans = [entry for entry in look.entries if look.here.capped and is_orphan(entry)]
    if not orphans:
        return
    facts = {"release": look.here.release}
    if not look.here.needs_times:
        fix = Fix("same-setting", "JAX_COMPILATION_CACHE_MAX_SIZE")
        yield CacheFinding("orphaned", names(orphans), "note", "evicted-first", fix, facts)
        return
    young = all(map(look.is_young, orphans))
    yield CacheFinding(
        "orphaned",
        names(orphans),
        "unsettled" if young else "problem",
        "writes-fail",
        look.repair(young) if look.here.local else Fix("remove"),
        facts,
    )


# Entries that are whole, and may never be found


def _whole(look: Look) -> list[Entry]:
    return [entry for entry in look.entries if entry.contents.state == "readable"]


def _same_program(look: Look) -> Iterator[CacheFinding]:
    """Look at programs with several keys: which of XLA's options differ, or that none does."""
    same: dict[tuple[str, ...], list[Entry]] = defaultdict(list)
    for entry in _whole(look):
        inside = entry.contents.executable
        # Of another release or processor the options differ by more than anybody set.
        same[entry.module, inside.program, inside.release, inside.processor].append(entry)
    duplicates = defaultdict[bool, list[list[Entry]]](list)
    differing = defaultdict[tuple[int, ...], list[list[Entry]]](list)
    for entries in same.values():
        if len(entries) == 1:
            continue
        entries.sort(key=lambda entry: entry.written_at)
        groups: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        for entry in entries:
            inside = entry.contents.executable
            path = inside.cache_path if look.here.hashes_path else ""  # `moved` is about it
            groups[inside.options, path].append(entry)
        newest = entries[-1].contents.executable.options
        if older := [one for one in entries if one.contents.executable.options != newest]:
            differing[_differing_options(look, entries)].append([*older, entries[-1]])
        for equal in groups.values():
            if len(equal) > 1:
                duplicates[equal[0].contents.executable.custom_partitioning].append(equal)
    for numbers, programs in differing.items():
        yield _other_options(look, numbers, programs)
    for partitioned, programs in duplicates.items():
        yield _duplicates(look, partitioned, programs)


def _differing_options(look: Look, entries: list[Entry]) -> tuple[int, ...]:
    keys = {entry.contents.executable.options for entry in entries} - {""}
    values = [look.survey.options[key].values for key in keys]
    numbers = {number for each in values for number in each} - set(OF_THE_PLACE)
    return tuple(sorted(n for n in numbers if len({each.get(n) for each in values}) > 1))


def _older(programs: list[list[Entry]]) -> tuple[list[Entry], dict[str, Any]]:
    """Return the entries but the newest of each program, and what is seen of them."""
    older = [entry for entries in programs for entry in entries[:-1]]
    facts = {
        "modules": sorted({entries[-1].module for entries in programs}),
        "newest": [entries[-1].name for entries in programs],
        "size_bytes": size_bytes(older),
        "never_read": sum(entry.never_read is True for entry in older),
    }
    return older, facts


def _other_options(
    look: Look, numbers: tuple[int, ...], programs: list[list[Entry]]
) -> CacheFinding:
    older, facts = _older(programs)
    facts["options"] = [
        {
            "number": number,
            "name": option_name(number),
            "values": sorted(
                {
                    look.survey.options[entry.contents.executable.options].values.get(number, "")
                    for entries in programs
                    for entry in entries
                }
            ),
        }
        for number in numbers
    ]
    fix = look.remove("other-options")
    return CacheFinding("other-options", names(older), "note", "takes-room", fix, facts)


def _duplicates(look: Look, partitioned: bool, programs: list[list[Entry]]) -> CacheFinding:
    older, facts = _older(programs)
    fix = look.remove("duplicate")
    if partitioned:
        fix = Fix("same-setting", "JAX_REMOVE_CUSTOM_PARTITIONING_PTR_FROM_CACHE_KEY=true")
    facts["custom_partitioning"] = partitioned
    consequence: Consequence = "never-found" if partitioned else "takes-room"
    return CacheFinding("duplicate", names(older), "note", consequence, fix, facts)


def _moved(look: Look) -> Iterator[CacheFinding]:
    """Look for entries that were compiled with the directory at another path."""
    if not (look.here.hashes_path and look.here.local):
        return
    elsewhere: dict[str, list[Entry]] = defaultdict(list)
    for entry in _whole(look):
        path = entry.contents.executable.cache_path
        if path and entry.contents.executable.release == _HASHES_PATH:
            elsewhere[path].append(entry)
    for path, entries in elsewhere.items():
        if os.path.realpath(path) == os.path.realpath(look.survey.directory):
            continue
        facts = {"path": path, "size_bytes": size_bytes(entries), "release": look.here.release}
        fix = Fix("same-setting", "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES=none")
        yield CacheFinding("moved", names(entries), "note", "never-found", fix, facts)


_HASHES_PATH = "0.10.2"


def _other_release(look: Look) -> Iterator[CacheFinding]:
    releases: dict[str, list[Entry]] = defaultdict(list)
    for entry in _whole(look):
        if release := entry.contents.executable.release:
            releases[release].append(entry)
    for release, entries in _others(releases, look.here.release):
        facts = {"release": release, "size_bytes": size_bytes(entries), "here": look.here.release}
        fix = look.remove("other-release")
        yield CacheFinding("other-release", names(entries), "note", "takes-room", fix, facts)


def _other_device(look: Look) -> Iterator[CacheFinding]:
    processors: dict[str, list[Entry]] = defaultdict(list)
    for entry in _whole(look):
        inside = entry.contents.executable
        if not lacking_features(inside.features):  # else `foreign-processor` has it
            processors[inside.processor].append(entry)
    for processor, entries in _others(processors, ""):
        facts = {"processor": processor, "size_bytes": size_bytes(entries)}
        fix = look.remove("other-device")
        yield CacheFinding("other-device", names(entries), "note", "takes-room", fix, facts)


def _others(groups: dict[str, list[Entry]], here: str) -> Iterator[tuple[str, list[Entry]]]:
    """Yield all groups but that of this installation; if none is, but the one written last."""
    here = next((name for name in groups if f"{here}.".startswith(f"{name}.")), "")
    if here not in groups and groups:
        here = max(groups, key=lambda name: max(entry.written_at for entry in groups[name]))
    yield from ((name, entries) for name, entries in groups.items() if name != here)


def _never_read(look: Look) -> Iterator[CacheFinding]:
    if unread := [entry for entry in _whole(look) if entry.never_read]:
        facts = {
            "of": len(look.entries),
            "size_bytes": size_bytes(unread),
            "by": sorted({entry.used_source for entry in unread}),
            "capped": look.here.capped,
        }
        yield CacheFinding("never-read", names(unread), "note", "takes-room", facts=facts)


def _needs_zstd(look: Look) -> Iterator[CacheFinding]:
    if packed := [entry for entry in look.entries if entry.contents.state == "needs-zstd"]:
        facts = {"python": ".".join(map(str, sys.version_info[:2]))}
        fix = Fix("install-zstd", "pip install zstandard")
        yield CacheFinding("needs-zstd", names(packed), "note", "not-checked", fix, facts)


def _unknown_format(look: Look) -> Iterator[CacheFinding]:
    formats: dict[str, list[Entry]] = defaultdict(list)
    for entry in _whole(look):
        if entry.contents.executable.format not in KNOWN_FORMATS:
            formats[entry.contents.executable.format].append(entry)
    for name, entries in formats.items():
        facts = {"format": name, "size_bytes": size_bytes(entries)}
        fix = look.remove("unknown-format")
        yield CacheFinding("unknown-format", names(entries), "note", "not-checked", fix, facts)


def _future(look: Look) -> Iterator[CacheFinding]:
    now = look.survey.taken_at
    kinds: dict[bool, dict[str, float]] = {True: {}, False: {}}
    for entry in look.entries:
        used_ahead_s = (entry.used_at or 0.0) - now
        ahead_s = max(entry.written_at - now, used_ahead_s)
        if ahead_s > FUTURE_S:
            # Only the time of use that JAX recorded decides what is evicted.
            misleads = entry.used_source == "atime-file" and used_ahead_s > FUTURE_S
            kinds[misleads][entry.name] = round(ahead_s)
    for misleads, ahead in kinds.items():
        if ahead:
            yield CacheFinding(
                "future",
                tuple(ahead),
                "problem" if misleads else "note",
                "never-evicted" if misleads else "none",
                Fix("set-clock"),
                {"ahead_s": list(ahead.values())},
            )


CHECKS: dict[str, Check] = {
    "empty": _damaged("empty"),
    "torn": _damaged("torn"),
    "garbage": _damaged("garbage"),
    "wrong-module": _wrong_module,
    "unloadable": _unloadable,
    "not-as-rebuilt": _verified,
    "foreign-processor": _foreign_processor,
    "orphaned": _orphaned,
    "unreadable": _unreadable,
    "unchecked": _unchecked,
    "duplicate, other-options": _same_program,
    "moved": _moved,
    "other-release": _other_release,
    "other-device": _other_device,
    "never-read": _never_read,
    "needs-zstd": _needs_zstd,
    "unknown-format": _unknown_format,
    "future": _future,
}
"""What is looked for, in this order."""
