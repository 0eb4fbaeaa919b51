"""Which settings of the cache would save a program how much: each is tried, in fresh processes."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.cache.directory import CACHE_SUFFIX
from harness.cache.ledger import read, summarize
from harness.engine.child import Child, ChildError
from harness.errors import UsageError
from harness.records.units import seconds_text
from harness.watch import programs

DIRECTORY = "JAX_COMPILATION_CACHE_DIR"
ENABLED = "JAX_ENABLE_COMPILATION_CACHE"
LEAST_S = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
LEAST_BYTES = "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"
XLA_CACHES = "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES"
_OF_THE_CACHE = (DIRECTORY, ENABLED, LEAST_S, LEAST_BYTES, XLA_CACHES)


@dataclass(frozen=True)
class CacheSetting:
    """One way to set the cache up."""

    name: str
    variables: Mapping[str, str]
    """What it sets; all other variables of the cache are taken away."""
    cached: bool = True
    """Whether it has a directory."""


NONE = CacheSetting("no cache", {ENABLED: "false"}, cached=False)
DEFAULT = CacheSetting("a directory", {})
EVERY = CacheSetting("every compile", {LEAST_S: "0", LEAST_BYTES: "-1"})
WITHOUT_XLA = CacheSetting("without XLA's caches", {**EVERY.variables, XLA_CACHES: "none"})
SETTINGS = (NONE, DEFAULT, EVERY, WITHOUT_XLA)
"""The first is what the others are held against."""

OWN = "as it is set here"


class Start(msgspec.Struct, frozen=True):
    """One run of the program.

    Attributes:
        built_s: Seconds from its start until its last compile request was answered; None if it
            made none.
    """

    whole_s: float
    built_s: float | None
    compile_s: float
    load_s: float
    requests: int
    hits: int


@dataclass(frozen=True)
class Tried:
    """One setting: the run that fills its directory, and those that find it filled."""

    setting: CacheSetting
    first: Start
    later: list[Start]
    size_bytes: int

    @property
    def middle_s(self) -> float:
        """The median of the later runs, in seconds."""
        return statistics.median(start.whole_s for start in self.later)

    def is_faster(self, other: Tried) -> bool:
        """Whether each later run is faster than each of another setting."""
        slowest = max(start.whole_s for start in self.later)
        return slowest < min(start.whole_s for start in other.later)


def own_setting(environment: Mapping[str, str]) -> CacheSetting | None:
    """Return what the environment sets of the cache; None where that is one of the others."""
    own = {name: environment[name] for name in _OF_THE_CACHE if environment.get(name)}
    cached = own.pop(DIRECTORY, None) is not None
    if not cached or any(own == setting.variables for setting in SETTINGS):
        return None
    return CacheSetting(OWN, own)


def advise(
    command: Sequence[str],
    folder: Path,
    starts: int,
    tell: Callable[[str], None],
    seed: int | None = None,
) -> list[Tried]:
    """Run a program under each setting: once on an empty directory, then `starts` times.

    The settings take turns in random order. What the program prints is not shown.

    `folder` is an empty one, for the directories and ledgers; `tell` is told what runs next.
    """
    own = own_setting(os.environ)
    settings = [*SETTINGS, *([own] if own else [])]
    tried: list[Tried] = []
    for setting in settings:
        tell(f"{setting.name}: first run")
        place = folder / str(len(tried))
        first = _start(command, setting, place)
        size_bytes = sum(file.stat().st_size for file in place.glob("*" + CACHE_SUFFIX))
        tried.append(Tried(setting, first, [], size_bytes))
        if len(tried) == 1:  # without a cache, which is the slowest as a rule
            left = len(settings) * (1 + starts) - 1
            took, at_most = seconds_text(first.whole_s), seconds_text(first.whole_s * left)
            tell(f"it took {took}: about {at_most} for the {left} runs that are left, or less")
    order = random.Random(seed)
    for number in range(starts):
        tell(f"run {number + 1} of {starts}, under {len(tried)} settings in turns")
        for at in order.sample(range(len(tried)), len(tried)):
            tried[at].later.append(_start(command, tried[at].setting, folder / str(at)))
    return tried


def _start(command: Sequence[str], setting: CacheSetting, place: Path) -> Start:
    ledger = place.with_suffix(f".{time.time_ns()}.jsonl")
    ledger.touch()
    place.mkdir(exist_ok=True)
    there = {name: value for name, value in os.environ.items() if name not in _OF_THE_CACHE}
    there |= setting.variables
    if setting.cached:
        there[DIRECTORY] = str(place)
    began_at, began = time.time(), time.perf_counter()
    with Child(command, programs.environment(there, HARNESS_LEDGER=str(ledger))) as child:
        code = child.wait()
    whole_s = time.perf_counter() - began
    if code:
        # After a signal these are Python's own lines of where that was.
        said = " | ".join(child.output[-5:]) or "it said nothing" if code > 0 else "no last words"
        raise ChildError(
            f"The program ended ({child.how}) under the setting {setting.name!r}: {said}"
        )
    events = read(ledger).events
    seen = {event.directory for event in events}
    if other := next((one for one in seen if one not in ("", str(place))), ""):
        raise UsageError(
            f"The program chooses its cache's directory itself, {other}, so that settings cannot "
            f"be tried beside it. Let it take the directory from {DIRECTORY}, and try again."
        )
    for one in (one for event in events for one in event.overridden):
        if one.name.upper() in setting.variables:
            raise UsageError(
                f"The program sets {one.name} itself, to {one.value}, so that "
                f"{one.name.upper()}={one.variable} has no effect and cannot be tried. Take that "
                "line out of the program, and try again."
            )
    summary = summarize(events)
    built_s = max((event.at_s for event in events), default=began_at) - began_at
    return Start(
        whole_s,
        built_s if events else None,
        summary.compile_s,
        summary.load_s,
        summary.requests,
        summary.hits,
    )
