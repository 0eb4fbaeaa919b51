"""Find why each build of a profile was done, from its lines alone.

A build is compared with the earlier builds of its function in the same process: with those that
share its trace, where JAX did not trace, and with the nearest, where it did. Only a difference
that could have set off the first stage that JAX did is named. What no difference, clearing,
failure or full cache accounts for is unexplained.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from harness.profiles.causes import again
from harness.profiles.causes.cause import Cause, Difference
from harness.profiles.decision.differences import able, cause, differences, least_weight, weight
from harness.profiles.decision.history import (
    Aspects,
    EarlierBuild,
    History,
    Interning,
    Keys,
    entry_of,
    stages_done,
)
from harness.profiles.model import Built, Process
from harness.watch import events

KEPT = {"L": 2048, "C": 2048}
"""Entries that JAX 0.10 to 0.12 keeps of lowerings and of executables (`weakref_lru_cache`); it
keeps every trace for as long as the function object lives."""

KEPT_OPERATIONS = 4096
"""Eager operations that JAX keeps (`util.cache`), each with its trace and executables."""


def decide(builds: Iterable[Built]) -> dict[tuple[str, int], Cause]:
    """Return the cause of every build, by :attr:`Built.key`."""
    by_process: dict[Process, list[Built]] = {}
    for built in builds:
        by_process.setdefault(built.process, []).append(built)
    return {
        (process.file, number): why
        for process, several in by_process.items()
        for number, why in _Deciding(process).all(several)
    }


_Key = tuple[object, ...]
"""What a function is known by within a process."""


@dataclass
class _Derivations:
    """How many programs JAX derived from each trace of a function."""

    source: Built | None = None
    before: int = 0
    """The most that it derived from one of the earlier traces."""
    now: int = 0

    def traced(self, built: Built) -> None:
        """Begin to count for a new trace."""
        self.source, self.before, self.now = built, max(self.before, self.now), 0

    def repeated(self) -> Built | None:
        """Count one; return the trace, if as many had been derived from one before it."""
        self.now += 1
        return self.source if self.now <= self.before else None


@dataclass
class _Deciding:
    """One process, from its first build to its last."""

    process: Process
    _interning: Interning = field(default_factory=Interning)
    _histories: dict[_Key, History] = field(default_factory=dict)
    _causes: dict[int, Cause] = field(default_factory=dict)
    _cleared: list[events.Cleared] = field(default_factory=list)
    _at: dict[str, list[int]] = field(default_factory=lambda: {letter: [] for letter in "TLC"})
    """When each stage was done, of any function: what fills a cache of JAX's."""
    _derivations: dict[_Key, _Derivations] = field(default_factory=dict)
    """By name and place."""
    _operations: list[int] = field(default_factory=list)

    def all(self, builds: Sequence[Built]) -> list[tuple[int, Cause]]:
        self._cleared = sorted(self.process.of(events.Cleared), key=lambda line: line.at_ns)
        for built in sorted(builds, key=lambda built: built.line.begin_ns):
            key = _function_key(built)
            history = self._histories.setdefault(key, History())
            aspects = self._interning.of(built)
            keys, done = self._interning.keys(built, aspects), stages_done(built)
            self._causes[built.line.id] = self._cause(built, aspects, keys, done, history)
            history.add(entry_of(built, aspects, done), keys)
            for letter in done:
                self._at[letter].append(built.line.begin_ns)
            if built.times("trace"):
                self._derivations.setdefault(key[:-1], _Derivations()).traced(built)
                if built.eager:
                    self._operations.append(built.line.begin_ns)
        return list(self._causes.items())

    def _cause(
        self, built: Built, aspects: Aspects, keys: Keys, done: str, history: History
    ) -> Cause:
        failed = history.failed.get(aspects)
        if not done and built.line.error:
            return again.raised(built)
        top = done[:1]
        if built.derived and aspects.function_object not in history.objects:
            return self._derived(built, history, aspects)
        if not history.objects:
            failed = failed or history.last_failed
            return again.failed_before(failed.built) if failed else again.first(built)
        sharing = history.same_trace(aspects)
        kept = [entry for entry in sharing if top in entry.done]
        exact = [entry for entry in sharing if entry.aspects == aspects]
        begun = sharing if not kept else exact if not any(top in e.done for e in exact) else []
        if top != "T" and begun:
            # Traced or lowered before, and only now taken further: one build in two parts,
            # if it was not taken further as another program.
            if all(entry.built.line.derived and entry.built.times("trace") for entry in begun):
                return again.first_as_it_is(built, begun[-1].built)
            return self._causes[begun[-1].built.line.id]
        if kept or top != "T":
            compared = [(entry, differences(entry.built, built)) for entry in kept]
            had = [
                e for e, differs in compared if not (able(differs, top) if top == "T" else differs)
            ]
            if had:
                return self._lost(built, had, top)
            named = [(entry, able(differs, top)) for entry, differs in compared]
            if any(differs for _, differs in named):
                return _fewest(built, named)
            if kept:
                return again.unexplained(kept[-1].built)
        if failed is not None:
            return again.failed_before(failed.built)
        return self._nearest(built, history.neighbours(aspects, keys), top)

    def _derived(self, built: Built, history: History, aspects: Aspects) -> Cause:
        """Return the cause of a new program that JAX made of what it had traced.

        Differentiating or batching a jitted function gives programs of the same name, which JAX
        finds again as long as it finds the trace that it made them of.
        """
        derivations = self._derivations.get(_function_key(built)[:-1])
        if derivations is not None and (source := derivations.repeated()):
            return self._causes[source.line.id]
        twin = history.twin(built, aspects)
        if twin is None or not self._cleared_between(twin, built):
            return again.first(built)  # of the trace that JAX has: in another way than before
        return again.unexplained(twin)

    def _nearest(self, built: Built, neighbours: Iterable[EarlierBuild], top: str) -> Cause:
        """Return what differs from the build that shares most; each has another trace."""
        # What was traced inside another function comes here to be lowered for the first time.
        stage = "T" if top == "L" else top
        compared: list[tuple[EarlierBuild, list[Difference]]] = []
        best = 0
        # The latest first, which is named if two equal.
        for entry in neighbours:
            if best and least_weight(entry.built, built) >= best:
                continue
            differs = able(differences(entry.built, built), stage)
            compared.append((entry, differs))
            if differs:
                best = min(best or weight(differs), weight(differs))
        if not any(differs for _, differs in compared):
            return again.unexplained()
        return _fewest(built, compared)

    def _lost(self, built: Built, had: list[EarlierBuild], top: str) -> Cause:
        """Return why JAX no longer had what it had built with nothing different."""
        latest = had[-1].built
        kept, times = KEPT.get(top, 0), self._at.get(top, [])
        if built.eager:
            kept, times = KEPT_OPERATIONS, self._operations
        since = len(times) - bisect_left(times, latest.line.end_ns)
        why = (
            again.cache_cleared(built, self._cleared_between(latest, built))
            or again.concurrent(built, [entry.built for entry in had])
            or again.evicted(since, kept)
            or again.unexplained(latest)
        )
        return why._replace(nearest=latest.line.id)

    def _cleared_between(self, one: Built, other: Built) -> list[events.Cleared]:
        begin, end = (
            bisect_left(self._cleared, at_ns, key=lambda line: line.at_ns)
            for at_ns in (one.line.end_ns, other.line.begin_ns)
        )
        return self._cleared[begin:end]


def _function_key(built: Built) -> _Key:
    """Return what a function is known by within a process.

    Its name and place, then what stands around it; a program that JAX derived of it, by
    differentiation or batching, is another one.
    """
    function = built.function
    around = () if built.derived else (*function.around, function.column)
    return function.name, function.file, function.line, around


def _fewest(built: Built, compared: Sequence[tuple[EarlierBuild, list[Difference]]]) -> Cause:
    """Return the cause by the latest of the builds with the fewest differences."""
    some = [(entry, differs) for entry, differs in compared if differs]
    entry, differs = min(some, key=lambda pair: (weight(pair[1]), -pair[0].built.line.begin_ns))
    return cause(entry.built, built, differs)
