"""Compare two recordings: why a compile of the second run did, or did not, find the first's entry.

Modules are matched by key, then by name and what else is equal, in order of appearance, then by a
computation that is equal up to the module's name. Only the first request of a key in a run counts:
the one that decided. Of two keys that differ, which parts do, and what changed in them.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.cache import key_parts
from harness.cache.key_parts import KeyChange, field_of
from harness.cache.ledger import Requests, later_directories, later_directory
from harness.jaxhooks import cache_keys, events, parts
from harness.jaxhooks.events import Component, Request

Status = Literal["hit", "same key", "another key", "only in A", "only in B"]

Reason = Literal[
    "",
    "failed",
    "no cache",
    "set later",
    "no effect",
    "checked",
    "unreadable",
    "not written",
    "two directories",
    "set late",
    "relative directory",
    "older",
    "evicted",
    "gone",
]
"""Why there was no hit, other than another key."""

XLA_FLAGS, JAXLIB = "XLA flags", "jax_lib version"
"""JAX's own names of components."""

NOTES = ("no text", "no fields", "same fields", "same values")
"""Kinds of changes that say how much is known, and no cause."""


@dataclass(frozen=True)
class Why:
    """Why a request found, or missed, an entry: what modules with one cause have in common.

    Attributes:
        reason: a code; empty of a hit, and where the key says it all.
        run: the run that the reason is of: `a` or `b`.
        detail: a path, an error's text, a reason of :mod:`harness.jaxhooks.events`, or a module.
        limit: the threshold that decided, in seconds or bytes.
        before, after: directories, or JAX's size caps.
        parts: JAX's names of the components that differ.
        changes: what differs in them, and settings of JAX.
    """

    status: Status
    reason: Reason = ""
    run: Literal["", "a", "b"] = ""
    detail: str = ""
    limit: float | None = None
    before: str = ""
    after: str = ""
    parts: tuple[str, ...] = ()
    changes: tuple[KeyChange, ...] = ()


@dataclass(frozen=True)
class PartDifference:
    """One component that differs, with all that is known of it."""

    part: str
    changes: tuple[KeyChange, ...] = ()
    lines: tuple[str, ...] = ()
    """Of a program: the StableHLO lines that differ, as a diff."""


@dataclass(frozen=True)
class Explained:
    """One module of the second run, or of the first alone."""

    module: str
    why: Why
    a: Request | None = None
    b: Request | None = None
    differences: tuple[PartDifference, ...] = ()

    @property
    def hit(self) -> bool:
        """Whether the second run found the entry."""
        return self.why.status == "hit"


@dataclass(frozen=True)
class RequestPair:
    """The request of a module in each run."""

    a: Request
    b: Request
    run_a: Requests
    run_b: Requests

    def texts(self, named: Callable[[str], str], a: str, b: str) -> tuple[str, str] | None:
        """Return what the recordings store under two hashes; None where one of them has not."""
        one, other = self.run_a.parts.get(named(a)), self.run_b.parts.get(named(b))
        return None if one is None or other is None else (one, other)

    def changed_settings(self) -> tuple[KeyChange, ...]:
        """Return which of JAX's settings, that may change a program, were others."""
        old, new = self.settings()
        return tuple(
            KeyChange("setting", name, old[name], new[name])
            for name in old
            if name.startswith("jax_") and not name.startswith(_OF_THE_CACHE)
            if name in new and old[name] != new[name]
        )

    def settings(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the settings of JAX in both runs; none where one of them is not known."""
        texts = self.texts(parts.settings_part, self.a.settings, self.b.settings)
        return (json.loads(texts[0]), json.loads(texts[1])) if texts else ({}, {})


_OF_THE_CACHE = ("jax_compilation_cache", "jax_persistent_cache", "jax_enable_compilation_cache")
"""Settings that change no program."""


def explain_runs(a: Requests, b: Requests) -> list[Explained]:
    """Return one explanation per module, in the order of the second run."""
    first_a, first_b = _first_of_each_key(a), _first_of_each_key(b)
    partners = _match(first_a, first_b, a, b)
    explained = [
        _explain(RequestPair(partners[event.key], event, a, b))
        if event.key in partners
        else _alone(event, a, b, is_first=False)
        for event in first_b
    ]
    taken = {event.key for event in partners.values()}
    rest = [event for event in first_a if event.key not in taken]
    return explained + [_alone(event, b, a, is_first=True) for event in rest]


def changed_settings(a: Requests, b: Requests) -> tuple[KeyChange, ...]:
    """Return which of JAX's settings were others in the second run, by each one's first request."""
    both = a.events and b.events
    return RequestPair(a.events[0], b.events[0], a, b).changed_settings() if both else ()


def _alone(event: Request, other: Requests, run: Requests, is_first: bool) -> Explained:
    """Explain a module of one run, for which the other has no key."""
    asked = {one.module: one for one in other.events if not one.key}.get(event.module)
    status: Status = "only in A" if is_first else "only in B"
    if asked:
        why = _no_cache(status, "b" if is_first else "a", asked, other)
    else:
        why = Why(status, changes=() if is_first else changed_settings(other, run))
    pair = (event, asked) if is_first else (asked, event)
    return Explained(event.module, why, *pair)


def _no_cache(status: Status, run: Literal["a", "b"], event: Request, requests: Requests) -> Why:
    if later := later_directory(event, later_directories(requests.events)):
        return Why(status, "set later", run, later)
    for one in event.overridden:
        if one.name == "jax_compilation_cache_dir":
            return Why(status, "no effect", run, one.variable)
    return Why(status, "no cache", run, event.reason, before=event.detail)


def _first_of_each_key(run: Requests) -> list[Request]:
    first: dict[str, Request] = {}
    for event in run.events:
        if event.key:
            first.setdefault(event.key, event)
    return list(first.values())


def _match(
    first_a: list[Request], first_b: list[Request], a: Requests, b: Requests
) -> dict[str, Request]:
    """Return the partner in A of each request of B that has one, by the key in B."""
    left = {event.key: event for event in first_a}
    partners = {event.key: left.pop(event.key) for event in first_b if event.key in left}
    mine = {event.key: _identities(event, b) for event in first_b if event.key not in partners}
    yours = {key: _identities(event, a) for key, event in left.items()}
    for number in range(_NUMBER):
        alike: dict[Any, list[str]] = defaultdict(list)
        for key in left:
            alike[yours[key][number]].append(key)
        asked = Counter(mine[key][number] for key in mine if key not in partners)
        for key in mine:
            named = mine[key][number]
            # By its name alone a module is matched only where it is the one that is left.
            sure = number != _BY_NAME or len(alike[named]) == asked[named] == 1
            if key not in partners and named and alike[named] and sure:
                partners[key] = left.pop(alike[named].pop(0))
    return partners


_BY_NAME, _NUMBER = 5, 7
"""The place of the name alone in what :func:`_identities` returns, and how many there are."""


def _identities(event: Request, run: Requests) -> tuple[Any, ...]:
    """Return by what a module may be found in another run, the surest first."""
    name, own = event.module, components(event)
    program, options = (
        own[part].sha256 if part in own else ""
        for part in (cache_keys.COMPUTATION, cache_keys.COMPILE_OPTIONS)
    )
    text = run.parts.get(parts.text_part(program)) or ""
    types = key_parts.types(text)
    shapes, dtypes = (tuple(one[at] for one in types) for at in (0, 1))
    whole = (name, program, options), (name, program), (name, *types)
    return *whole, (name, shapes), (name, dtypes), name, key_parts.without_name(text)


def _explain(pair: RequestPair) -> Explained:
    a, b = pair.a, pair.b
    if a.key == b.key:
        return Explained(b.module, _same_key(pair), a, b)
    if b.reason in (events.NO_DIRECTORY, events.UNUSABLE_DIRECTORY):
        return Explained(b.module, _no_cache("another key", "b", b, pair.run_b), a, b)
    parts = differences(pair)
    changes = _causes(pair, parts)
    why = Why("another key", parts=tuple(one.part for one in parts), changes=changes)
    return Explained(b.module, why, a, b, tuple(parts))


def _same_key(pair: RequestPair) -> Why:
    """Return what became of a request with an equal key, and why."""
    a, b = pair.a, pair.b
    if b.outcome == "hit":
        return Why("hit")
    if b.outcome == "failed":
        return Why("same key", "failed", "b", b.detail)
    if b.reason in (events.NO_DIRECTORY, events.UNUSABLE_DIRECTORY):
        return _no_cache("same key", "b", b, pair.run_b)
    if b.reason == events.CHECKED:
        return Why("same key", "checked")
    if b.read_error:
        return Why("same key", "unreadable", detail=b.read_error)
    if a.outcome == "failed":
        return Why("same key", "failed", "a", a.detail)
    if a.outcome == "unwritten" and a.reason != events.CHECKED:
        return Why("same key", "not written", "a", a.reason, a.limit, before=a.detail)
    if os.path.normpath(a.directory) != os.path.normpath(b.directory):
        return _two_directories(pair)
    if b.at_s < a.at_s:
        return Why("same key", "older")
    return _gone(pair)


def _two_directories(pair: RequestPair) -> Why:
    a, b = pair.a, pair.b
    old, new = (one.get("jax_compilation_cache_dir", "") for one in pair.settings())
    if late := [one for one in (*a.late, *b.late) if one.name == "jax_compilation_cache_dir"]:
        return Why("same key", "set late", "", late[0].value, None, a.directory, b.directory)
    if old == new and old and not os.path.isabs(old) and "://" not in old:
        return Why("same key", "relative directory", "", old, None, a.directory, b.directory)
    return Why("same key", "two directories", before=a.directory, after=b.directory)


def _gone(pair: RequestPair) -> Why:
    runs: tuple[tuple[Requests, Literal["a", "b"]], ...] = (pair.run_a, "a"), (pair.run_b, "b")
    for run, which in runs:
        for event in run.events:
            if pair.b.key in event.evicted and pair.a.at_s <= event.at_s <= pair.b.at_s:
                return Why("same key", "evicted", which, event.module)
    caps = [one.get("jax_compilation_cache_max_size", "") for one in pair.settings()]
    return Why("same key", "gone", before=caps[0], after=caps[1])


# Which parts of two keys differ


def components(event: Request) -> dict[str, Component]:
    """Return the components of a request's key by their names."""
    return {component.name: component for component in event.components}


def differences(pair: RequestPair) -> list[PartDifference]:
    """Return the components that differ; of an upgrade, which changes others too, jaxlib alone."""
    mine, yours = components(pair.a), components(pair.b)
    parts = []
    for name in {**mine, **yours}:
        if name not in mine or name not in yours:
            change = KeyChange("one release", "", *(name * (name in one) for one in (mine, yours)))
            parts.append(PartDifference(name, (change,)))
        elif mine[name].sha256 != yours[name].sha256:
            compared = COMPARED.get(name, _values)(pair, mine[name], yours[name])
            parts.append(PartDifference(name, *compared))
    upgrades = [one for one in parts if one.part == JAXLIB]
    return upgrades or parts


def _causes(pair: RequestPair, parts: Sequence[PartDifference]) -> tuple[KeyChange, ...]:
    """Return what made the key another one: no notes, and nothing that follows from the rest."""
    if not pair.a.components or not pair.b.components:
        return (KeyChange("no components"),)
    every = [change for one in parts for change in one.changes if change.kind not in NOTES]
    flags = {_flag_name(one.name) for one in every if one.kind in ("flag added", "flag removed")}
    computation = [components(one).get(cache_keys.COMPUTATION) for one in (pair.a, pair.b)]
    causes = []
    for change in every:
        if change.kind == "option":
            field = field_of(change)
            if field in flags or key_parts.follows(change):
                continue
            if field == _BY_SIZE and computation[0] != computation[1]:
                continue
        causes.append(change)
    if {cache_keys.COMPUTATION, cache_keys.COMPILE_OPTIONS} & {one.part for one in parts}:
        causes += pair.changed_settings()
    return tuple(dict.fromkeys(causes))


def _flag_name(flag: str) -> str:
    return flag.lstrip("-").partition("=")[0]


# How a component is compared: what changed, and the lines that show it

_Compared = tuple[tuple[KeyChange, ...], tuple[str, ...]]


def _values(pair: RequestPair, mine: Component, yours: Component) -> _Compared:
    removed = [value for value in mine.values if value not in yours.values]
    added = [value for value in yours.values if value not in mine.values]
    if len(removed) == len(added) == 1:
        return (KeyChange("value", "", removed[0], added[0]),), ()
    changes = [KeyChange("value", "", value) for value in removed]
    changes += [KeyChange("value", "", "", value) for value in added]
    return tuple(changes) or (KeyChange("same values"),), ()


def _flags(pair: RequestPair, mine: Component, yours: Component) -> _Compared:
    changes = [KeyChange("flag removed", one) for one in mine.values if one not in yours.values]
    changes += [KeyChange("flag added", one) for one in yours.values if one not in mine.values]
    return tuple(changes) or (KeyChange("same values"),), ()


def _computation(pair: RequestPair, mine: Component, yours: Component) -> _Compared:
    texts = pair.texts(parts.text_part, mine.sha256, yours.sha256)
    if texts is None:
        return (KeyChange("no text"),), ()
    if texts[0] != texts[1]:
        return key_parts.program_changes(*texts), key_parts.diff(*texts)
    settings = [pair.a.metadata_in_key, pair.b.metadata_in_key]
    if any(settings):
        change = KeyChange("locations", "", *map(str, settings))
        if not all(settings):
            return (change,), ()
        located = pair.texts(parts.located_part, mine.sha256, yours.sha256) or ("", "")
        return (change,), key_parts.diff(*located)
    return (KeyChange("large constant" if key_parts.ELIDED in texts[0] else "serialised form"),), ()


def _accelerator(pair: RequestPair, mine: Component, yours: Component) -> _Compared:
    texts = pair.texts(parts.accelerator_part, mine.sha256, yours.sha256)
    changes = key_parts.accelerator_changes(*texts) if texts else ()
    return changes or (KeyChange("fingerprint"),), ()


PATHS = ("xla_gpu_per_fusion_autotune_cache_dir", "xla_gpu_kernel_cache_file")
"""Paths in the cache's directory. jax 0.10.2 hashes the first, on CPU as well; 0.11.0 and later
only the second, which is set with jax_persistent_cache_enable_xla_caches=all."""

_BY_SIZE = "xla_detailed_logging"
"""JAX sets it for programs of ten operations and more."""


def _options(pair: RequestPair, mine: Component, yours: Component) -> _Compared:
    texts = pair.texts(parts.fields_part, mine.sha256, yours.sha256)
    if texts is None:
        return (KeyChange("no fields"),), ()
    changes = key_parts.option_changes(*texts)
    places = pair.a.directory, pair.b.directory
    return tuple(
        KeyChange(_of_the_path(*places), one.name, one.before, one.after)
        if field_of(one) in PATHS
        else one
        for one in changes
    ) or (KeyChange("same fields"),), ()


def _of_the_path(a: str, b: str) -> str:
    """Return why a path in the cache's directory, which is in the key, differs."""
    if a == b:
        return "XLA's caches"
    same = bool(a and b) and os.path.realpath(a) == os.path.realpath(b)
    return "directory by another path" if same else "directory moved"


COMPARED = {
    cache_keys.COMPUTATION: _computation,
    cache_keys.COMPILE_OPTIONS: _options,
    cache_keys.ACCELERATOR: _accelerator,
    XLA_FLAGS: _flags,
}
"""How components are compared that are more than a few values."""
