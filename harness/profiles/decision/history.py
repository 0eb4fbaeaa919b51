"""What had been built of a function before, and which of it comes nearest."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from harness.profiles.causes.values import CONTEXTS, committed, defined_at
from harness.profiles.model import Built
from harness.watch import events

CONTEXT, STATICS, TYPES = 2, 4, 5
"""The positions of aspects that consist of several parts."""

TRACED = 6
"""The first six aspects decide whether a function is traced anew."""

STATIC = ("static_argnums", "static_argnames")

IGNORED = (
    "jax_platforms",
    "jax_compilation_cache_dir",
    "jax_enable_compilation_cache",
    "XLA_FLAGS",
    "LIBTPU_INIT_ARGS",
)
"""Settings that are recorded, but that JAX does not look at before it takes from its caches."""


class Aspects(NamedTuple):
    """Each a number that stands for a text or an object; equal numbers are equal aspects."""

    function_object: int
    statics_chosen: int
    context: int
    tree: int
    statics: int
    types: int
    placement: int
    options: int
    defined: int
    """Of static arguments, for what is another object only is near."""

    @property
    def traced(self) -> tuple[int, ...]:
        """What a trace is looked up by."""
        return self[:TRACED]


Parts: TypeAlias = dict[int, tuple[tuple[str, int], ...]]
"""By the position of an aspect, what it consists of: a name, and a hash of what stands there."""

MOST_PARTS = 12
"""Parts of an aspect by which earlier builds are looked up one by one."""


class Interning:
    """Gives equal things equal numbers, and remembers what it was asked of one process."""

    def __init__(self) -> None:
        self._parts: dict[tuple[int, int], Parts] = {}
        self._usual: dict[str, str] | None = None
        """The settings of the first build."""
        self._numbers: dict[Hashable, int] = {}
        self._arguments: dict[int, tuple[int, int, int, int, int]] = {}
        self._settings: dict[int, tuple[int, int, int]] = {}

    def _number(self, *thing: Hashable) -> int:
        return self._numbers.setdefault(thing, len(self._numbers) + 1)

    def of(self, built: Built) -> Aspects:
        """Return the aspects of a build."""
        tree, statics, types, placement, defined = self._of_arguments(built.arguments)
        chosen, context, options = self._of_settings(built.settings)
        number = 0 if built.operation else built.line.object
        if built.derived:
            number = built.line.derived
        return Aspects(number, chosen, context, tree, statics, types, placement, options, defined)

    def parts(self, built: Built) -> Parts:
        """Return the parts of those aspects that have several, with what is as usual left out."""
        arguments, settings = built.arguments, built.settings
        if settings is not None and self._usual is None:
            self._usual = settings.context
        key = arguments.id if arguments else 0, settings.id if settings else 0
        known = self._parts.get(key)
        if known is None:
            found: list[tuple[int, str, Hashable]] = []
            context, usual = settings.context if settings else {}, self._usual or {}
            for name in context.keys() | usual.keys():
                if context.get(name) != usual.get(name) and name not in IGNORED:
                    # A mesh is set in several of them at once.
                    found.append((CONTEXT, CONTEXTS.get(name, name), context.get(name)))
            for static in arguments.statics if arguments else ():
                found.append((STATICS, static.name, static_key(static)))
            for leaf in arguments.leaves if arguments else ():
                found.append((TYPES, leaf.path, (leaf.aval, leaf.weak)))
            known = self._parts[key] = _hashed(found)
        return known

    def _of_arguments(self, line: events.Arguments | None) -> tuple[int, int, int, int, int]:
        if line is None:
            return 0, 0, 0, 0, 0
        known = self._arguments.get(line.id)
        if known is None:
            known = self._arguments[line.id] = (
                self._number("tree", line.tree),
                self._number("statics", *map(static_key, line.statics)),
                self._number("types", *((leaf.path, leaf.aval, leaf.weak) for leaf in line.leaves)),
                self._number("placement", *map(_placement_key, line.leaves)),
                self._number("defined", *((s.type, defined_at(s.value)) for s in line.statics)),
            )
        return known

    def _of_settings(self, line: events.Settings | None) -> tuple[int, int, int]:
        if line is None:
            return 0, 0, 0
        known = self._settings.get(line.id)
        if known is None:
            jit, context = sorted(line.jit.items()), sorted(line.context.items())
            known = self._settings[line.id] = (
                self._number("chosen", *(pair for pair in jit if pair[0] in STATIC)),
                self._number("context", *(pair for pair in context if pair[0] not in IGNORED)),
                self._number("options", *(pair for pair in jit if pair[0] not in STATIC)),
            )
        return known


def _hashed(found: Iterable[tuple[int, str, Hashable]]) -> Parts:
    hashes: dict[int, dict[str, int]] = {CONTEXT: {}, STATICS: {}, TYPES: {}}
    for place, name, value in found:
        parts = hashes[place]
        parts[name] = parts.get(name, 0) + hash((name, value))
    return {
        place: tuple(parts.items())
        for place, parts in hashes.items()
        if place == CONTEXT or 1 < len(parts) <= MOST_PARTS
    }


def static_key(static: events.Static) -> tuple[Hashable, ...]:
    """Return what a static argument is told apart by: JAX's own equality, where it is known."""
    if static.object:
        return static.name, static.keyword, static.type, static.object
    return static.name, static.keyword, static.type, static.value


def _placement_key(leaf: events.Leaf) -> tuple[Hashable, ...]:
    """Return where an argument lies, as far as JAX looks at it: not, if it may move it."""
    return committed(leaf), leaf.sharding if committed(leaf) else "", leaf.layout


RECENT = 8
"""Different earlier builds, the latest, that a build is compared with at most."""

IN_STEP = 3
"""Of those that differ in one aspect only, from however long ago."""

STAGES = {"T": "trace", "L": "lower", "C": "compile"}


@dataclass
class EarlierBuild:
    """A build that was done before."""

    built: Built
    aspects: Aspects
    done: str
    """The stages that it got through: letters of T, L, C."""
    failed: bool


def stages_done(built: Built) -> str:
    """Return the stages that JAX really did, as letters."""
    done = {span.stage for span in built.line.spans if span.times}
    return "".join(letter for letter, stage in STAGES.items() if stage in done)


def entry_of(built: Built, aspects: Aspects) -> EarlierBuild:
    """Return a build as it is remembered: what it raised in is not done."""
    if built.line.derived and built.times("trace") and not built.line.error:
        # What was lowered and compiled is another program, made of the trace.
        return EarlierBuild(built, aspects, "T", failed=False)
    if not built.line.error:
        # Who calls it while something else is traced, a branch of `cond` say, has it traced alone.
        done = stages_done(built)
        ran = built.line.kind == "call" and done != "T"
        return EarlierBuild(built, aspects, "TLC" if ran else done, failed=False)
    last = max(built.line.spans, key=lambda span: (span.begin_ns, -span.end_ns), default=None)
    done = stages_done(built)
    requests = built.line.requests
    if last is None or not done:  # nothing was tried
        return EarlierBuild(built, aspects, "", failed=False)
    if last.stage != "compile" or not requests or requests[-1].outcome == "failed":
        letter = next(key for key, stage in STAGES.items() if stage == last.stage)
        return EarlierBuild(built, aspects, done.replace(letter, ""), failed=True)
    return EarlierBuild(built, aspects, "TLC", failed=False)  # it raised when it ran


@dataclass
class History:
    """The earlier builds of one function, ready to be asked."""

    _traced: dict[tuple[int, ...], dict[Aspects, list[EarlierBuild]]] = field(default_factory=dict)
    _recent: deque[EarlierBuild] = field(default_factory=lambda: deque(maxlen=RECENT))
    _in_step: dict[tuple[int, ...], deque[EarlierBuild]] = field(default_factory=dict)
    _by_part: dict[int, EarlierBuild] = field(default_factory=dict)
    """The latest build by what it is but for one part of one aspect."""
    failed: dict[Aspects, EarlierBuild] = field(default_factory=dict)
    """The builds that raised, by what JAX looks them up by."""
    last_failed: EarlierBuild | None = None
    """The latest build that raised."""
    objects: set[int] = field(default_factory=set)
    """The function objects of which anything was built."""
    _by_types: dict[int, list[Built]] = field(default_factory=dict)

    def add(self, entry: EarlierBuild, parts: Parts) -> None:
        """Remember a build."""
        if entry.failed:
            self.last_failed = entry
            self.failed[entry.aspects] = entry
        if not entry.done:
            return
        self.objects.add(entry.aspects.function_object)
        if entry.built.line.derived:
            self._by_types.setdefault(entry.aspects.types, []).append(entry.built)
        same = self._traced.setdefault(entry.aspects.traced, {})
        if entry.aspects not in same:
            self._recent.append(entry)
            for key in _without_one(entry.aspects):
                self._in_step.setdefault(key, deque(maxlen=IN_STEP)).append(entry)
            for whole, without in _but_one(entry.aspects, parts):
                self._by_part[hash((whole, "all"))] = entry
                for name, rest in without:
                    self._by_part[hash((rest, name))] = self._by_part[hash((rest, "one"))] = entry
        entries = same.setdefault(entry.aspects, [])
        # One that got further stands for those before it, but clearing asks for the latest.
        entries[:] = [old for old in entries if not set(old.done) <= set(entry.done)][-3:]
        entries.append(entry)

    def twin(self, built: Built, aspects: Aspects) -> Built | None:
        """Return a derived program of the same types that may be the same, by what it takes."""
        earlier = reversed(self._by_types.get(aspects.types, []))
        return next((old for old in earlier if old.line.program == built.line.program), None)

    def same_trace(self, aspects: Aspects) -> list[EarlierBuild]:
        """Return the builds that share the trace, the latest last; at most some."""
        found = self._traced.get(aspects.traced, {})
        exact = found.get(aspects, [])
        others = [entries[-1] for key, entries in list(found.items())[-RECENT:] if key != aspects]
        return [*others, *exact]

    def neighbours(self, aspects: Aspects, parts: Parts) -> Iterable[EarlierBuild]:
        """Return the builds that come nearest, by the number of aspects that differ.

        Among them are those that differ in one part of an aspect, from however long ago: one
        setting, static argument or array.
        """
        found = {id(entry): entry for entry in self._recent}
        for key in _without_one(aspects):
            for entry in self._in_step.get(key, ()):
                found[id(entry)] = entry
        several, found = found, {}
        for whole, without in _but_one(aspects, parts):
            keys: list[tuple[Hashable, str]] = [(whole, "one")]
            keys += [key for name, rest in without for key in ((rest, "all"), (rest, name))]
            for part in keys:
                if (one := self._by_part.get(hash(part))) is not None:
                    found[id(one)] = one
        both = {**several, **found}
        differ = {key: sum(map(operator.ne, aspects, e.aspects)) for key, e in both.items()}
        least = min(differ.values(), default=0)
        nearest = [both[key] for key, count in differ.items() if count == least]
        nearest.sort(key=lambda entry: entry.built.line.begin_ns, reverse=True)
        return [e for n, e in enumerate(nearest) if n < RECENT or id(e) in found]


def _but_one(
    aspects: Aspects, parts: Parts
) -> Iterator[tuple[tuple[int, ...], list[tuple[str, tuple[int, ...]]]]]:
    """Yield what stands for a build, and for it without each part of an aspect, by aspect."""
    for place, named in parts.items():
        rest = (place, *aspects[:place], *aspects[place + 1 : TRACED])
        total = sum(number for _, number in named)
        yield (*rest, total), [(name, (*rest, total - number)) for name, number in named]


def _without_one(aspects: Aspects) -> Iterator[tuple[int, ...]]:
    for left_out in range(TRACED):
        rest = (*aspects[:left_out], *aspects[left_out + 1 : TRACED])
        yield (left_out, aspects.defined, *rest)
