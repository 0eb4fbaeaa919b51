"""What had been built of a function before, and which of it comes nearest."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.jaxhooks import events
from harness.profiles.causes.again import is_transformed
from harness.profiles.causes.values import CONTEXTS, committed, defined_at
from harness.profiles.model import Built

CONTEXT, STATICS, TYPES = 2, 4, 5
"""The positions of aspects that consist of several parts."""

TRACED = 6
"""The first six aspects decide whether a function is traced anew."""

STATIC = ("static_argnums", "static_argnames")

IGNORED = (
    "jax_platforms",
    "jax_compilation_cache_dir",
    "jax_enable_compilation_cache",
    "jax_disable_jit",
    "XLA_FLAGS",
    "LIBTPU_INIT_ARGS",
)
"""Settings that are recorded, but that JAX does not look at before it takes from its caches."""


class Aspects(NamedTuple):
    """Each the hash of what JAX looks at, of 64 bits: equal numbers are equal aspects."""

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


MOST_PARTS = 12
"""Parts of an aspect by which earlier builds are looked up one by one."""


class Keys(NamedTuple):
    """By what a build is looked up, but for one aspect or a part of one: an argument, a setting."""

    aspects: list[int]
    """What stands for it without each aspect."""
    own: list[int]
    """What stands for it; the whole, and the whole without each part."""
    near: list[int]
    """What stands for builds that have another part, one more or one less."""


class Interning:
    """Remembers what it was asked of the arguments and settings of one process."""

    def __init__(self) -> None:
        self._usual: dict[str, str] | None = None
        """The settings of the first build."""
        self._arguments: dict[int, tuple[int, int, int, int, int]] = {}
        self._settings: dict[int, tuple[int, int, int]] = {}

    def of(self, built: Built) -> Aspects:
        """Return the aspects of a build."""
        tree, statics, types, placement, defined = self._of_arguments(built.arguments)
        chosen, context, options = self._of_settings(built.settings)
        number = 0 if built.operation else built.line.object
        if built.derived:
            number = built.line.derived
        return Aspects(number, chosen, context, tree, statics, types, placement, options, defined)

    def keys(self, built: Built, aspects: Aspects) -> Keys:
        """Return by what a build is looked up, what is as usual left out."""
        own, near = [], []
        for place, parts in self._parts(built):
            rest = hash((place, *aspects[:place], *aspects[place + 1 : TRACED]))
            total = sum(parts.values())
            if place != TYPES:  # one array more is another structure, too
                own.append(hash((rest, total, "all")))
                near.append(hash((rest, total, "one")))
            for name, part in parts.items():
                without = rest, total - part
                own.append(hash((*without, name)))
                near.append(own[-1])
                if place != TYPES:
                    own.append(hash((*without, "one")))
                    near.append(hash((*without, "all")))
        return Keys(
            [
                hash((n, *aspects[:n], *aspects[n + 1 : TRACED], aspects.defined))
                for n in range(TRACED)
            ],
            own,
            near,
        )

    def _parts(self, built: Built) -> Iterator[tuple[int, dict[str, int]]]:
        """Yield the position of each aspect that has parts, and a hash of each by its name."""
        if built.settings is not None:
            context = built.settings.context
            usual = self._usual = self._usual or context
            parts: dict[str, int] = {}
            for name in () if context is usual else context.keys() | usual.keys():
                if context.get(name) != usual.get(name) and name not in IGNORED:
                    # A mesh is set in several of them at once.
                    shown = CONTEXTS.get(name, name)
                    parts[shown] = parts.get(shown, 0) + hash((shown, context.get(name)))
            yield CONTEXT, parts
        if built.arguments is not None:
            statics, leaves = built.arguments.statics, built.arguments.leaves
            if 1 < len(statics) <= MOST_PARTS:
                yield STATICS, {static.name: hash(static_key(static)) for static in statics}
            if 1 < len(leaves) <= MOST_PARTS:
                yield TYPES, {leaf.path: hash((leaf.path, leaf.aval, leaf.weak)) for leaf in leaves}

    def _of_arguments(self, line: events.Arguments | None) -> tuple[int, int, int, int, int]:
        if line is None:
            return 0, 0, 0, 0, 0
        ids = self._arguments.get(line.id)
        if ids is None:
            ids = self._arguments[line.id] = (
                hash(line.trees),
                hash(tuple(map(static_key, line.statics))),
                hash(tuple([(leaf.path, leaf.aval, leaf.weak) for leaf in line.leaves])),
                hash(tuple(map(placement_key, line.leaves))),
                hash(tuple([(one.type, defined_at(one.value)) for one in line.statics])),
            )
        return ids

    def _of_settings(self, line: events.Settings | None) -> tuple[int, int, int]:
        if line is None:
            return 0, 0, 0
        ids = self._settings.get(line.id)
        if ids is None:
            jit, context = sorted(line.jit.items()), sorted(line.context.items())
            ids = self._settings[line.id] = (
                hash(tuple([pair for pair in jit if pair[0] in STATIC])),
                hash(tuple([pair for pair in context if pair[0] not in IGNORED])),
                hash(tuple([pair for pair in jit if pair[0] not in STATIC])),
            )
        return ids


def static_key(static: events.Static) -> tuple[Hashable, ...]:
    """Return what distinguishes a static argument: JAX's own equality, where it is known."""
    value = static.object or static.value
    return static.name, static.keyword, static.type, value, static.number


def placement_key(leaf: events.Leaf) -> tuple[Hashable, ...]:
    """Return where an argument lies, as far as JAX looks at it: not, if it may move it."""
    is_committed = committed(leaf)
    return is_committed, leaf.sharding if is_committed else "", leaf.layout


RECENT = 8
"""Different earlier builds, the latest, that a build is compared with at most."""

IN_STEP = 3
"""Of those that differ in one aspect only, from however long ago."""

STAGES = {"T": "trace", "L": "lower", "C": "compile"}


@dataclass(slots=True)
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


def entry_of(built: Built, aspects: Aspects, done: str) -> EarlierBuild:
    """Return a build as it is remembered: what it raised in is not done."""
    if built.line.derived and built.times("trace") and not built.line.error:
        # What was lowered and compiled is another program, made of the trace.
        return EarlierBuild(built, aspects, "T", failed=False)
    if not built.line.error:
        # Who calls it while something else is traced, a branch of `cond` say, has it traced alone.
        ran = built.line.kind == "call" and done != "T"
        return EarlierBuild(built, aspects, "TLC" if ran else done, failed=False)
    last = max(built.line.spans, key=lambda span: (span.begin_ns, -span.end_ns), default=None)
    requests = built.line.requests
    if last is None or not done:  # nothing was tried
        return EarlierBuild(built, aspects, "", failed=False)
    if last.stage != "compile" or not requests or requests[-1].outcome == "failed":
        letter = next(key for key, stage in STAGES.items() if stage == last.stage)
        return EarlierBuild(built, aspects, done.replace(letter, ""), failed=True)
    return EarlierBuild(built, aspects, "TLC", failed=False)  # it raised when it ran


@dataclass
class Neighbours:
    """The earlier builds of one function by what they are, for what comes near."""

    _recent: deque[EarlierBuild] = field(default_factory=lambda: deque(maxlen=RECENT))
    _in_step: dict[int, tuple[EarlierBuild, ...]] = field(default_factory=dict)
    """The latest builds by what they are but for one aspect."""
    _by_part: dict[int, EarlierBuild] = field(default_factory=dict)
    """The latest build by what it is but for one part of one aspect."""

    def add(self, entry: EarlierBuild, keys: Keys) -> None:
        """Remember a build."""
        self._recent.append(entry)
        for key in keys.aspects:
            self._in_step[key] = (*self._in_step.get(key, ())[1 - IN_STEP :], entry)
        for key in keys.own:
            self._by_part[key] = entry

    def nearest(self, aspects: Aspects, keys: Keys) -> list[EarlierBuild]:
        """Return the builds that come nearest, by the number of aspects that differ.

        Among them are those that differ in one part of an aspect, from however long ago: one
        setting, static argument or array.
        """
        several = {id(entry): entry for entry in self._recent}
        for key in keys.aspects:
            for entry in self._in_step.get(key, ()):
                several[id(entry)] = entry
        by_part = {id(one): one for key in keys.near if (one := self._by_part.get(key)) is not None}
        both = {**several, **by_part}
        differ = {key: sum(map(operator.ne, aspects, e.aspects)) for key, e in both.items()}
        least = min(differ.values(), default=0)
        nearest = [both[key] for key, count in differ.items() if count == least]
        nearest.sort(key=lambda entry: entry.built.line.begin_ns, reverse=True)
        return [e for n, e in enumerate(nearest) if n < RECENT or id(e) in by_part]


@dataclass
class History:
    """The earlier builds of one function, ready to be asked."""

    _traced: dict[tuple[int, ...], dict[Aspects, list[EarlierBuild]]] = field(default_factory=dict)
    _neighbours: dict[bool, Neighbours] = field(default_factory=dict)
    """By whether the function was differentiated or batched: each is another program."""
    failed: dict[Aspects, EarlierBuild] = field(default_factory=dict)
    """The builds that raised, by what JAX looks them up by."""
    last_failed: EarlierBuild | None = None
    """The latest build that raised."""
    objects: set[int] = field(default_factory=set)
    """The function objects of which anything was built."""
    _by_types: dict[int, list[Built]] = field(default_factory=dict)

    def add(self, entry: EarlierBuild, keys: Keys) -> None:
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
            self._neighbours.setdefault(is_transformed(entry.built), Neighbours()).add(entry, keys)
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
        by_aspects = self._traced.get(aspects.traced, {})
        exact = by_aspects.get(aspects, [])
        others = [
            entries[-1] for key, entries in list(by_aspects.items())[-RECENT:] if key != aspects
        ]
        return [*others, *exact]

    def neighbours(self, built: Built, aspects: Aspects, keys: Keys) -> list[EarlierBuild]:
        """Return the builds that come nearest; none where none was transformed as it is."""
        neighbours = self._neighbours.get(is_transformed(built))
        return neighbours.nearest(aspects, keys) if neighbours else []
