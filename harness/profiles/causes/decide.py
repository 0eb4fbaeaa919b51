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
from typing import Any

from harness.jaxhooks import events
from harness.profiles.causes import again
from harness.profiles.causes.again import eager_remedy
from harness.profiles.causes.cause import (
    UNTRACED,
    Cause,
    Difference,
    Pair,
    Place,
    Remedy,
    several,
)
from harness.profiles.causes.history import (
    IGNORED,
    STATIC,
    Aspects,
    EarlierBuild,
    History,
    Interning,
    Keys,
    entry_of,
    placement_key,
    stages_done,
    static_key,
)
from harness.profiles.causes.kinds import LOOKS
from harness.profiles.model import Built, Process

_ALONE = ("statics", "context", "options")
"""Places of which one cause tells."""


def differences(old: Built, new: Built) -> list[Difference]:
    """Return all differences; of those that suffice alone, the one to name comes first."""
    ordered = sorted(_all(Pair(old, new)), key=lambda one: not one.kind.foremost)
    placed: set[str] = set()
    kept = []
    for difference in ordered:
        if difference.kind.placed:  # a mesh is part of the type, and reported there
            if difference.change.argument in placed:
                continue
            placed.add(difference.change.argument)
        kept.append(difference)
    return kept


def _all(pair: Pair) -> list[Difference]:
    old, new = pair
    differs: list[Difference] = []
    if not new.operation and old.line.object != new.line.object:
        differs += _seen(pair, "function", None)
    jit: tuple[dict[str, str], ...] = ({}, {})
    context: tuple[dict[str, str], ...] = ({}, {})
    if old.settings is not new.settings and old.settings is not None and new.settings is not None:
        jit = old.settings.jit, new.settings.jit
        context = old.settings.context, new.settings.context
    if any(jit[0].get(option) != jit[1].get(option) for option in STATIC):
        differs += _seen(pair, "chosen", jit)
    if old.arguments is not None and new.arguments is not None:
        differs += _arguments(pair, old.arguments, new.arguments)
    for name, *values in _changed(*context):
        if name not in IGNORED:
            differs += _seen(pair, "context", (name, *values))
    for name, *values in _changed(*jit):
        if name not in STATIC:
            differs += _seen(pair, "options", (name, *values))
    return differs


def _seen(pair: Pair, place: Place, item: Any) -> list[Difference]:
    differs: list[Difference] = []
    for kind, look in LOOKS[place]:
        changes = look(pair, item)
        if changes is None:
            continue
        sets_off = kind.sets_off if place in UNTRACED else "T"
        for change in changes:
            differs.append(Difference(kind, change, sets_off, item))
        if place in _ALONE:
            break
    return differs


def _arguments(pair: Pair, old: events.Arguments, new: events.Arguments) -> list[Difference]:
    differs: list[Difference] = []
    if old.trees != new.trees:
        differs += _seen(pair, "tree", (old, new))
    if old.statics != new.statics:
        earlier = {static.name: static for static in old.statics}
        for static in new.statics:
            before = earlier.pop(static.name, None)
            if before is None or static_key(before) != static_key(static):
                differs += _seen(pair, "given", (before, static))
                if before is not None and static_key(before)[2:] != static_key(static)[2:]:
                    differs += _seen(pair, "statics", (before, static))
        for static in earlier.values():
            differs += _seen(pair, "given", (static, None))
    pairs = _changed_leaves(old.leaves, new.leaves)
    # What only the unused differ in is another program where their types are used.
    unused = all(one.unused and other.unused for one, other in pairs)
    typed = unused and (old.trees, old.statics) == (new.trees, new.statics) and pair.is_changed
    for leaves in pairs:
        one, other = leaves
        if one.aval != other.aval or one.weak != other.weak:
            idle = one.unused and other.unused and one.aval != other.aval
            differs += _seen(pair, "unused" if idle and not typed else "types", leaves)
    for leaves in pairs:
        if placement_key(leaves[0]) != placement_key(leaves[1]):
            differs += _seen(pair, "placement", leaves)
    return differs


def _changed_leaves(
    old: tuple[events.Leaf, ...], new: tuple[events.Leaf, ...]
) -> list[tuple[events.Leaf, events.Leaf]]:
    pairs = list(zip(old, new, strict=False))
    if len(old) != len(new) or any(one.path != other.path for one, other in pairs):
        earlier = {leaf.path: leaf for leaf in old}
        pairs = [(earlier[leaf.path], leaf) for leaf in new if leaf.path in earlier]
    return [(one, other) for one, other in pairs if one != other]


def _changed(old: dict[str, str], new: dict[str, str]) -> list[tuple[str, str | None, str | None]]:
    if old == new:
        return []
    both = ((name, old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys()))
    return [(name, before, after) for name, before, after in both if before != after]


def able(differs: list[Difference], stage: str) -> list[Difference]:
    """Return the differences, those that can set off a stage first; none where none can."""
    first = [difference for difference in differs if stage in difference.sets_off]
    if not first or len(first) == len(differs):
        return first
    return first + [difference for difference in differs if stage not in difference.sets_off]


def weight(differs: list[Difference]) -> int:
    """Return how far two builds lie apart."""
    return sum(one.kind.weight + one.change.differing - 1 for one in differs)


def least_weight(old: Built, new: Built) -> int:
    """Return what :func:`weight` of two builds is at least, without comparing all of them."""
    if old.arguments is None or new.arguments is None:
        return 0
    count = 0
    for leaf, other in zip(old.arguments.leaves, new.arguments.leaves, strict=False):
        if leaf.aval != other.aval and leaf.path == other.path:
            count += 1
    for one, static in zip(old.arguments.statics, new.arguments.statics, strict=False):
        if one != static and static_key(one)[2:] != static_key(static)[2:]:
            count += one.name == static.name
    return 2 * count


def cause(old: Built, built: Built, differs: list[Difference]) -> Cause:
    """Return the cause of a build that differs from the nearest one, the first of `differs`."""
    pair = Pair(old, built)
    for difference in differs:
        if difference.kind.instead is not None:
            other = difference.kind.instead(pair, differs)
            if other is not None:
                return other
    foremost, *others = differs
    alike = [one.change for one in others if one.kind is foremost.kind]
    same = [*foremost.change[2:4], foremost.change.ways]
    if any([*one[2:4], one.ways] != same for one in alike):
        alike = []
    elif alike:
        others = [one for one in others if one.kind is not foremost.kind]
    names = several([one.argument for one in alike])
    remedy = eager_remedy(built) if built.eager else _remedy(pair, foremost, others)
    if remedy and not built.eager:
        remedy = remedy._replace(alike=names)
    return foremost.change._replace(
        kind=foremost.kind.name,
        remedy=remedy,
        nearest=old.line.id,
        alike=names,
        also=several([one.change._replace(kind=one.kind.name) for one in others]),
    )


def _remedy(pair: Pair, foremost: Difference, others: list[Difference]) -> Remedy | None:
    """Return the remedy of the foremost difference, with what differs too and needs another."""
    change = foremost.change
    inside = f"{change.argument}.", f"{change.argument}["
    apart = [one for one in others if not f"{one.change.argument}.".startswith(inside)]
    if change.type and any(one.kind.name == "shape" for one in others if one not in apart):
        return None  # a field that sizes arrays stays
    left = [one for one in apart if set(one.sets_off) & set(foremost.sets_off)]
    remedies = [one.kind.remedy_of(pair, one) for one in (foremost, *left)]
    if not all(remedies) or remedies[0] is None:
        return None
    return remedies[0]._replace(
        left=several([(one.kind.name, one.change.argument) for one in left])
    )


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


@dataclass
class _Derivations:
    """How many programs JAX derived from each trace of a function."""

    source: Built | None = None
    before: int = 0
    """The most that it derived from one of the earlier traces."""
    now: int = 0

    def traced(self, built: Built) -> None:
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
        own = [e for e in begun if not (e.built.line.derived and e.built.times("trace"))]
        if top != "T" and own:
            # Traced or lowered before, and only now taken further: one build in two parts.
            return self._causes[own[-1].built.line.id]
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
        neighbours = history.neighbours(built, aspects, keys)
        if not neighbours:  # differentiated or batched for the first time, or not so for the first
            return again.first(built) if again.is_transformed(built) else again.as_it_is(built)
        return self._nearest(built, neighbours, top)

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

    def _nearest(self, built: Built, neighbours: Sequence[EarlierBuild], top: str) -> Cause:
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
    some = [(entry, differs) for entry, differs in compared if differs]
    entry, differs = min(some, key=lambda pair: (weight(pair[1]), -pair[0].built.line.begin_ns))
    return cause(entry.built, built, differs)
