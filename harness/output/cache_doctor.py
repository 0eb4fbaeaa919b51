"""What `harness cache doctor` and `inspect` print of a cache directory."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Any

from harness.cache.directory import FILE_ADDRESS
from harness.cache.doctor import Diagnosis, State
from harness.cache.finding import CacheFinding, Consequence, FixKind, Verification
from harness.cache.here import CacheSettings, Here
from harness.cache.loads import Loads
from harness.cache.put_cost import PutCost
from harness.cache.repair import Repaired
from harness.cache.survey import SubCache
from harness.records.units import counted, size_text, some

KEY_DIGITS = 12
MOST_NAMES = 3

STATES: dict[State, str] = {
    "healthy": "healthy",
    "empty": "so there is nothing to check",
    "unsettled": "some of which may still be written",
    "problem": "with problems",
    "unusable": "unusable",
}

TITLES = {
    "empty": "{entries} without a byte",
    "torn": "{entries} cut short",
    "garbage": "{entries} damaged",
    "wrong-module": "{entries} of another program",
    "unloadable": "{entries} that XLA cannot load",
    "not-as-rebuilt": "{entries} not as the program compiles again",
    "foreign-processor": "{entries} for another processor",
    "orphaned": "{entries} without a time of use",
    "unreadable": "{entries} that cannot be opened",
    "unchecked": "{entries} too large to check",
    "duplicate": "{entries} with a newer copy under another key",
    "other-options": "{entries} with older XLA options",
    "moved": "{entries} compiled with the directory at another path",
    "other-release": "{entries} of another jaxlib",
    "other-device": "{entries} for another device",
    "never-read": "{entries} never read",
    "needs-zstd": "{entries} packed with zstd",
    "unknown-format": "{entries} of an unknown format",
    "future": "{entries} with a time ahead of this clock",
    "no-entries": "no entries",
    "file-address": "a folder named `file:`",
    "rights": "this user may not write here",
    "no-room": "not enough room for the next write",
    "over-cap": "the size cap is too small",
    "others-can-write": "others can write here",
    "slow-put": "slow writes under the size cap",
}
"""What a check found, in a few words."""

CONSEQUENCES: dict[Consequence, str] = {
    "none": "",
    "may-still-be-written": "a program may still be writing",
    "compiled-in-each-process": "each process compiles, JAX never replaces it",
    "gives-results-of-another": "JAX runs it and gives wrong results",
    "may-crash": "a program may crash",
    "writes-fail": "jax {release} fails every write",
    "evicted-first": "JAX evicts these first",
    "never-evicted": "JAX evicts these last",
    "not-stored": "JAX does not store what it compiles",
    "reads-fail": "JAX reads nothing and compiles all",
    "runs-code-of-others": "an entry is code that JAX runs",
    "tears-entries": "JAX leaves torn entries",
    "slow-writes": "each write looks at every entry",
    "never-found": "no program finds these",
    "takes-room": "takes room",
    "not-checked": "not checked",
}

FIXES: dict[FixKind, str] = {
    "none": "",
    "repair": "Repair: {command}",
    "look-again": "If no program runs on it, as after a restore: {command}",
    "remove": "If no program uses these: {command}",
    "permission": "Take the permission away: {command}",
    "ask-owner": "If it is not read-only on purpose, ask {owner} for: {command}",
    "own-directory": "Give each user and each kind of machine a directory of its own.",
    "no-cap": "Without a size cap JAX only reads: {command}",
    "larger-cap": "Raise the size cap, or set none: {command}",
    "make-room": "Make room, then repair what is torn already.",
    "same-setting": "Set for all programs of this directory: {command}",
    "set-clock": "Set the clock right.",
    "see-why": "To see why nothing was written: {command}",
    "plain-path": "Give the path without file://.",
    "fewer-entries": "Use one directory per program, or no size cap and a clean-up by age.",
    "install-zstd": "To check them: {command}",
}

FAULTS = {
    "no-bytes": "the process that wrote it was stopped",
    "not-compressed": "begins with {detail}: neither zlib nor zstd",
    "stream-stops": "its {compression} stream stops in the middle",
    "stream-damaged": "{detail}",
    "no-executable": "unpacks to {detail} bytes: no executable",
    "executable-stops": "the executable in it stops {detail} bytes early",
    "no-zstd": "this Python has no zstd",
    "not-a-file": "not an ordinary file",
    "cannot-read": "{detail}",
    "too-large": "unpacks to more than {detail} bytes",
}


def short(name: str) -> str:
    """The name of an entry with the first digits of its key: these tell entries apart."""
    module, dash, key = name.rpartition("-")
    return f"{module}{dash}{key[:KEY_DIGITS]}" if dash else name


def fault_text(fault: str, detail: str, compression: str) -> str:
    """Why an entry is not readable; empty if it is."""
    return FAULTS[fault].format(detail=detail, compression=compression) if fault else ""


def page(diagnosis: Diagnosis, directory: str, entries: int) -> Iterator[str]:
    """Yield what is printed of a directory: first the answer, with the command that helps most."""
    problems = [one for one in diagnosis.findings if one.severity != "note"]
    held = f"{directory}: {counted(entries, 'entry')}"
    if not problems:
        yield f"{held}, {STATES[diagnosis.state]}."
    else:
        worst = problems[0]
        number = f" (worst of {len(problems)})" if len(problems) > 1 else ""
        yield f"{_title(worst)}{number}: {worst.fix.command or _fix(worst)}"
        yield f"{held}, {STATES[diagnosis.state]}."
    for finding in diagnosis.findings:
        yield from _lines(finding)


def _lines(finding: CacheFinding) -> Iterator[str]:
    consequence = CONSEQUENCES[finding.consequence].format(**_words(finding))
    yield f"{finding.severity}: {_title(finding)}{': ' if consequence else ''}{consequence}"
    if evidence := _evidence(finding):
        yield f"  {evidence}"
    if fix := _fix(finding):
        yield f"  {fix}"


def _title(finding: CacheFinding) -> str:
    return TITLES[finding.check].format(entries=counted(len(finding.entries), "entry"))


def _words(finding: CacheFinding) -> dict[str, Any]:
    return {"release": "", "owner": "its owner", "command": finding.fix.command, **finding.facts}


def _fix(finding: CacheFinding) -> str:
    text = FIXES[finding.fix.kind].format(**_words(finding))
    if finding.fix.kind == "remove" and not finding.fix.command:
        return "Remove them with the bucket's own tool."
    if finding.fix.kind == "permission" and finding.check == "unreadable":
        return "Let the user whose programs use the cache read it, or remove it."
    return text.removesuffix(": ").replace(": .", ".")


def _names(finding: CacheFinding, details: list[str] | None = None) -> str:
    names = [short(name) for name in finding.entries]
    if details:
        names = [f"{n} ({d})" if d else n for n, d in zip(names, details, strict=True)]
    return some(names, 1 if details else MOST_NAMES)


def _evidence(finding: CacheFinding) -> str:
    describe = EVIDENCE.get(finding.check)
    return describe(finding, finding.facts) if describe else _names(finding)


def _damaged(finding: CacheFinding, facts: dict[str, Any]) -> str:
    keys = ("fault", "detail", "compression")
    return _names(finding, [fault_text(*(one[k] for k in keys)) for one in facts["faults"]])


def _sized(finding: CacheFinding, facts: dict[str, Any]) -> str:
    return f"{size_text(facts['size_bytes'])}: {_names(finding)}"


def _duplicate(finding: CacheFinding, facts: dict[str, Any]) -> str:
    why = "a flag with its default value, another patch release, or a Python id"
    if facts["custom_partitioning"]:
        why = "custom_partitioning: the address of its callback is in the key"
    modules = some(facts["modules"], MOST_NAMES)
    read = f", {facts['never_read']} never read"
    return f"{modules}: {size_text(facts['size_bytes'])}{read}; {why}"


def _other_options(finding: CacheFinding, facts: dict[str, Any]) -> str:
    options = [
        f"{one['name'] or 'option ' + str(one['number'])} {' or '.join(one['values'])}"
        for one in facts["options"]
    ]
    what = some(options, MOST_NAMES) or "options of the build"
    modules = some(facts["modules"], MOST_NAMES)
    return f"{modules}: {size_text(facts['size_bytes'])}; {what}"


def _never_read(finding: CacheFinding, facts: dict[str, Any]) -> str:
    sources = {"atime-file": "JAX's own record", "file-system": "the times of last access"}
    by = " and ".join(sources[one] for one in facts["by"] if one in sources)
    return f"{size_text(facts['size_bytes'])}, by {by}; under a size cap they evict others"


def _rights(finding: CacheFinding, facts: dict[str, Any]) -> str:
    mode = f"its owner is {facts['owner']}, its mode {facts['mode']}"
    if facts["read_only"]:
        mode = "its file system is mounted read-only"
    denied = {
        "lock": "open JAX's lock, which each use under a size cap needs",
        "times": "write times of use, as each read under a size cap does",
        "write": "write here, and JAX warns at each program",
    }[facts["denied"]]
    return f"{facts['user']} cannot {denied} ({mode})"


def _room(finding: CacheFinding, facts: dict[str, Any]) -> str:
    left = {"free_bytes": "free", "quota_bytes": "left of the quota"}
    sizes = [f"{size_text(facts[k])} {w}" for k, w in left.items() if facts[k] is not None]
    files = {"free_files": "files free", "quota_files": "files left of the quota"}
    sizes += [f"{facts[k]} {w}" for k, w in files.items() if facts[k] is not None]
    return f"{', '.join(sizes)}; the largest entry takes {size_text(facts['needed_bytes'])}"


def _who(finding: CacheFinding, facts: dict[str, Any]) -> str:
    name = {"group": f"the group {facts['name']}", "owner": f"the owner {facts['name']}"}
    place = f"{len(finding.entries)} of its entries" if finding.entries else facts["path"]
    return f"{name.get(facts['who'], facts['name'])} can write to {place}"


def _slow_put(finding: CacheFinding, facts: dict[str, Any]) -> str:
    slow_ms, first_ms = facts["capped_s"] * 1e3, facts["first_s"] * 1e3
    return f"{slow_ms:.0f} ms at {counted(facts['of'], 'entry')}, {first_ms:.1f} ms at none"


REBUILT = {
    "wrong": "another program, or other options",
    "code-differs": "the same program and options, with other code than each rebuild",
    "not-deterministic": "the same program and options; the rebuilds differ as well",
}

EVIDENCE: dict[str, Callable[[CacheFinding, dict[str, Any]], str]] = {
    **dict.fromkeys(["empty", "torn", "garbage", "unreadable", "unchecked"], _damaged),
    "wrong-module": lambda one, facts: _names(one, [f"has {name}" for name in facts["inside"]]),
    "unloadable": lambda one, facts: _names(one, facts["errors"]),
    "not-as-rebuilt": lambda one, facts: f"{REBUILT[facts['verdict']]}: {_names(one)}",
    "foreign-processor": lambda one, facts: (
        f"for {facts['processor']}, with instructions that are missing here: "
        + some(facts["lacking"], 4)
    ),
    "duplicate": _duplicate,
    "other-options": _other_options,
    "moved": lambda one, facts: f"compiled in {facts['path']}, which jax has in the key up to 0.10",
    "other-release": lambda one, facts: f"jaxlib {facts['release']}, {_sized(one, facts)}",
    "other-device": lambda one, facts: (
        f"{facts['processor'] or 'GPU or TPU'}, {_sized(one, facts)}"
    ),
    "never-read": _never_read,
    "needs-zstd": lambda one, facts: (
        f"Python {facts['python']} cannot unpack it; where programs of Python 3.14 and older ones "
        "share a directory, the older ones need zstandard"
    ),
    "unknown-format": lambda one, facts: (
        f"{facts['format'] or 'no header of an executable'}, {_sized(one, facts)}"
    ),
    "future": lambda one, facts: _names(one, [f"{ahead:.0f} s" for ahead in facts["ahead_s"]]),
    "no-entries": lambda one, facts: "",
    "file-address": lambda one, facts: FILE_ADDRESS,
    "rights": _rights,
    "no-room": _room,
    "over-cap": lambda one, facts: (
        f"{facts['max_size_bytes']} bytes; larger: {_names(one) or 'all'}"
    ),
    "others-can-write": _who,
    "slow-put": _slow_put,
}


# What JAX does here


BLOCKED = {
    "disabled": "JAX_ENABLE_COMPILATION_CACHE is off",
    "cap-of-zero": "the size cap is 0",
    "no-lock": "this user cannot open JAX's lock",
    "not-writable": "this user cannot write here",
    "missing-times": "an entry has no time of use",
    "no-room": "there is no room",
}

SEE_WHY = "`harness cache ledger -o run.jsonl -- python PROGRAM.py` lists each program and why."


def writes(here: Here) -> str:
    """What JAX would write to a directory."""
    if here.blocked:
        return f"JAX writes nothing: {', '.join(BLOCKED[code] for code in here.blocked)}."
    return threshold(here.settings)


def threshold(used: CacheSettings) -> str:
    """Which programs are stored under settings of the environment."""
    if not used.enabled or used.max_size_bytes == 0:
        return f"JAX writes nothing: {BLOCKED['cap-of-zero' if used.enabled else 'disabled']}."
    seconds, size = "MIN_COMPILE_TIME_SECS", "MIN_ENTRY_SIZE_BYTES"
    given = [n for n in (seconds, size) if f"JAX_PERSISTENT_CACHE_{n}" in used.given]
    how = f"{' and '.join(given)} of the environment" if given else "JAX's defaults"
    least = f"took {used.min_compile_s:g} s or more to compile"
    least += f" and {used.min_entry_bytes} bytes to store" if used.min_entry_bytes > 0 else ""
    text = f"JAX writes programs that {least} ({how}), unless a program sets these itself"
    return f"{text}." if used.directory else f"{text}; JAX_COMPILATION_CACHE_DIR is not set here."


def cost_line(cost: PutCost) -> str:
    """What a write costs under a size cap."""
    scaled = cost.measured_entries < cost.entries
    how = f" (measured at {cost.measured_entries}, in proportion)" if scaled else ""
    return (
        f"A write under a size cap costs {cost.capped_s * 1e3:.2f} ms at {cost.entries} entries"
        f"{how}, {cost.first_s * 1e3:.2f} ms at none; measured in {cost.where}, by JAX's own "
        "code, not in the cache."
    )


def loads_line(loads: Loads, entries: int) -> str:
    """What came of loading entries."""
    tried = loads.loaded + loads.unjudged + len(loads.refused)
    more = f", {loads.unjudged} need what this process does not have" if loads.unjudged else ""
    rest = f"; {entries - tried} are not for CPUs, or cannot be read" if entries > tried else ""
    return f"XLA loads {loads.loaded} of {tried} entries for CPUs{more}{rest}."


def verified_line(verified: Verification) -> str:
    """What came of rebuilding entries."""
    equal = sum(one.verdict == "equal" for one in verified.entries)
    text = f"Rebuilt: {counted(len(verified.entries), 'entry')}, {equal} equal"
    ended = f"; the program ended with {verified.exit_code}" if verified.exit_code else ""
    return f"{text}{ended}."


def repaired_lines(repaired: Repaired, directory: str) -> Iterator[str]:
    """What was repaired, and the command that undoes it."""
    if repaired.moved:
        names = some([short(name) for name in repaired.moved], MOST_NAMES)
        yield f"{counted(len(repaired.moved), 'entry')} moved to {repaired.folder}: {names}."
        yield "The next run compiles and writes them again. To bring them back:"
        folder, back = shlex.quote(repaired.folder), shlex.quote(directory)
        yield f'    for f in {folder}/*; do mv -n "$f" {back}/; done'
    if repaired.timed:
        yield f"{counted(len(repaired.timed), 'entry')} given the time of use 0."
    if not (repaired.moved or repaired.timed):
        yield "Nothing was repaired."
    if repaired.gone:
        yield f"{counted(len(repaired.gone), 'bad entry')} gone already: another was faster."
    if repaired.changed:
        yield f"{counted(len(repaired.changed), 'bad entry')} rewritten meanwhile, and left."


def sub_cache_line(sub: SubCache) -> str:
    """What XLA's own cache takes."""
    size = f"{counted(sub.files, 'file')}, {size_text(sub.size_bytes)}"
    return f"XLA's own cache {sub.name}: {size}; it stays when entries are removed."
