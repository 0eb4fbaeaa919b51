"""Compare two ledgers: why a compile of the second run did, or did not, find the first run's entry.

Modules are matched by key, then by name in order of appearance, then by a computation that is
equal up to the module's name. Only the first event of a key in a run counts: the one that decided.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from harness.cache import stablehlo_difference as causes
from harness.watch import cache_keys as keys
from harness.watch import ledger_events as events
from harness.watch.ledger_events import Component, Event, Requests

Status = Literal["hit", "same key, no hit", "key changed", "only in A", "only in B"]


@dataclass(frozen=True)
class Difference:
    """One component that differs: what a reader should call it, and the lines that show it."""

    component: str
    causes: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Explained:
    """One module of the second run, or of the first alone."""

    module: str
    status: Status
    verdict: str
    a: Event | None = None
    b: Event | None = None
    differences: tuple[Difference, ...] = ()


LABELS = {
    "jax_lib version": "jaxlib",
    "backend version": "platform",
    "XLA flags": "xla_flags",
}
"""What this project calls JAX's components, where JAX's own name is not one word."""


def explain_runs(a: Requests, b: Requests) -> list[Explained]:
    """Return one explanation per module, in the order of the second run."""
    first_a, first_b = _first_of_each_key(a.events), _first_of_each_key(b.events)
    pairs = match(first_a, first_b, a, b)
    taken = {id(event) for event in pairs.values()}
    found = []
    for event in first_b:
        partner = pairs.get(id(event))
        found.append(_pair(partner, event, a, b) if partner else _alone(event, "only in B"))
    found.extend(_alone(event, "only in A") for event in first_a if id(event) not in taken)
    return found


def _first_of_each_key(found_in: tuple[Event, ...]) -> list[Event]:
    found: dict[str, Event] = {}
    for event in found_in:
        if event.key:
            found.setdefault(event.key, event)
    return list(found.values())


def match(first_a: list[Event], first_b: list[Event], a: Requests, b: Requests) -> dict[int, Event]:
    """Return the partner in A of each event in B, by the event's identity."""
    pairs: dict[int, Event] = {}
    left = list(first_a)

    def pair(event: Event, partner: Event) -> None:
        pairs[id(event)] = partner
        left.remove(partner)

    by_key = {event.key: event for event in left}
    for event in first_b:
        if event.key in by_key:
            pair(event, by_key[event.key])
    for event in first_b:
        if id(event) in pairs:
            continue
        # Of several of one name, one that differs least: a module that was compiled for two shapes
        # is not to be told from its neighbour by the shape.
        named = [other for other in left if other.module == event.module]
        if named:
            pair(event, max(named, key=lambda other: _alike(other, event)))
    for event in first_b:
        if id(event) in pairs:
            continue
        mine = _nameless(event, b)
        renamed = [other for other in left if mine and _nameless(other, a) == mine]
        if renamed:
            pair(event, renamed[0])
    return pairs


def _alike(a: Event, b: Event) -> int:
    """Return how many components are equal; the computation counts more than all others."""
    mine = {component.name: component.sha256 for component in a.components}
    return sum(
        100 if component.name == keys.COMPUTATION else 1
        for component in b.components
        if mine.get(component.name) == component.sha256
    )


def _nameless(event: Event, book: Requests) -> str | None:
    component = _component(event, keys.COMPUTATION)
    text = book.parts.get(keys.text_part(component.sha256)) if component else None
    return causes.without_name(text) if text is not None else None


def _component(event: Event, name: str) -> Component | None:
    return next((part for part in event.components if part.name == name), None)


def _alone(event: Event, status: Status) -> Explained:
    run = "first" if status == "only in A" else "second"
    verdict = f"Compiled in the {run} run only: no module of the other has its name or program."
    return Explained(
        event.module,
        status,
        verdict,
        a=event if status == "only in A" else None,
        b=event if status == "only in B" else None,
    )


def _pair(a: Event, b: Event, book_a: Requests, book_b: Requests) -> Explained:
    if a.key == b.key:
        status: Status = "hit" if b.outcome == "hit" else "same key, no hit"
        return Explained(b.module, status, _same_key(a, b), a, b)
    differences = []
    names = [part.name for part in a.components]
    names += [part.name for part in b.components if part.name not in names]
    for name in names:
        mine, yours = _component(a, name), _component(b, name)
        if mine is None or yours is None:
            where = "second" if mine is None else "first"
            line = f"only the {where} run's JAX hashes it"
            differences.append(Difference(LABELS.get(name, name), (), (line,)))
        elif mine.sha256 != yours.sha256:
            differences.append(_difference(mine, yours, (a, b), (book_a, book_b)))
    return Explained(b.module, "key changed", _changed(a, b, differences), a, b, tuple(differences))


def _changed(a: Event, b: Event, differences: list[Difference]) -> str:
    if not a.components or not b.components:
        return "The key changed; one of the ledgers holds no components to say which part."
    if not differences:
        return "The key changed, and no captured component did: JAX hashes something unknown."
    names = " and ".join(f"`{difference.component}`" for difference in differences)
    text = f"{names} changed, the rest is equal"
    found = [cause for difference in differences for cause in difference.causes]
    return f"{text}: {'; '.join(found)}." if found else f"{text}."


def _same_key(a: Event, b: Event) -> str:
    if b.outcome == "hit":
        return "The key is equal, and the cache answered."
    if b.outcome == "failed":
        return f"The key is equal; the request failed: {b.detail}"
    if b.read_error:
        return f"The key is equal; the entry could not be read: {b.read_error}"
    if b.reason in (events.NO_DIRECTORY, events.UNUSABLE_DIRECTORY):
        return f"The key is equal; the second run had no cache to ask: {b.reason} ({b.detail})."
    if a.outcome == "failed":
        return f"The key is equal; the first run's request failed and left no entry: {a.detail}"
    if a.outcome == "unwritten":
        return f"The key is equal; the first run wrote no entry: {a.reason} ({a.detail})."
    if a.directory != b.directory:
        return (
            f"The key is equal; the runs used two directories, {a.directory or '(none)'} and "
            f"{b.directory or '(none)'}."
        )
    if b.at_s < a.at_s:
        return "The key is equal; the second ledger is the older one, so nothing was there yet."
    return (
        "The key is equal and the first run left an entry, which was gone: evicted, removed, or "
        "jax_compilation_cache_check_contents is on."
    )


def _difference(
    mine: Component, yours: Component, pair: tuple[Event, Event], books: tuple[Requests, Requests]
) -> Difference:
    label = LABELS.get(mine.name, mine.name)
    if mine.name == keys.COMPUTATION:
        return Difference(label, *_computation(mine, yours, pair, books))
    if mine.name == keys.COMPILE_OPTIONS:
        return Difference(label, *_options(mine, yours, books))
    removed = [value for value in mine.values if value not in yours.values]
    added = [value for value in yours.values if value not in mine.values]
    lines = [f"- {value}" for value in removed] + [f"+ {value}" for value in added]
    if not lines:
        lines = ["the same values in another order or number"]
    if mine.name == "XLA flags":
        found = [f"flag {value} was removed" for value in removed]
        found += [f"flag {value} was added" for value in added]
    elif len(removed) == len(added) == 1:
        found = [f"{removed[0]} became {added[0]}"]
    else:
        found = []
    return Difference(label, tuple(found), tuple(lines))


def _parts(
    name: Callable[[str], str], mine: Component, yours: Component, books: tuple[Requests, Requests]
) -> tuple[str, str] | None:
    a = books[0].parts.get(name(mine.sha256))
    b = books[1].parts.get(name(yours.sha256))
    return None if a is None or b is None else (a, b)


def _computation(
    mine: Component, yours: Component, pair: tuple[Event, Event], books: tuple[Requests, Requests]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    texts = _parts(keys.text_part, mine, yours, books)
    if texts is None:
        return (), ("the StableHLO text of one of the two is not there: FILE.parts is missing",)
    if texts[0] != texts[1]:
        return causes.of_texts(texts[0], texts[1]), causes.diff(texts[0], texts[1])
    settings = [event.metadata_in_key for event in pair]
    if any(settings):
        cause = "source locations are in the key (jax_compilation_cache_include_metadata_in_key)"
        if not all(settings):
            return (cause,), (f"in the key: {settings[0]} -> {settings[1]}",)
        located = _parts(keys.located_part, mine, yours, books) or ("", "")
        return (cause,), causes.diff(*located)
    if causes.ELIDED in texts[0]:
        return ("a constant too large to be kept in the ledger changed",), ()
    return (
        "the text is equal, its serialised form is not (another jaxlib, or debug information "
        "inside a kernel)",
    ), ()


def _options(
    mine: Component, yours: Component, books: tuple[Requests, Requests]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    texts = _parts(keys.fields_part, mine, yours, books)
    if texts is None:
        return (), ("the fields of one of the two are not there: FILE.parts is missing",)
    old, new = json.loads(texts[0]), json.loads(texts[1])
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    lines = [
        f"{name}: {old.get(name, '(not set)')} -> {new.get(name, '(not set)')}" for name in changed
    ]
    if not changed:
        return (), ("no field that JAX lets be read differs; the serialised bytes do",)
    found = []
    for name in changed:
        cause = name.removeprefix("debug_options.").removeprefix("executable_build_options.")
        if cause == "xla_gpu_per_fusion_autotune_cache_dir":
            # jax 0.10.2 hashes this path, which lies in the cache's directory, on CPU as well;
            # 0.11.0 and later leave it out.
            cause += " is in the key up to jax 0.10.2: the cache's directory was moved"
        elif cause == "allow_spmd_sharding_propagation_to_parameters":
            cause = "XLA may not choose an argument's sharding any more, or may again"
        found.append(cause)
    return tuple(found), tuple(lines)
