"""Compare two ledgers: why a compile of the second run did, or did not, find the first run's entry.

Modules are matched by key, then by name in order of appearance, then by a computation that is
equal up to the module's name. Only the first event of a key in a run counts: the one that decided.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from harness.cache import stablehlo_difference as stablehlo
from harness.watch import cache_keys as keys
from harness.watch import ledger_events as reasons
from harness.watch.ledger_events import Component, Event, Requests

Status = Literal["hit", "same key, no hit", "key changed", "only in A", "only in B"]
Causes = tuple[str, ...]
Lines = tuple[str, ...]


@dataclass(frozen=True)
class ComponentDifference:
    """One component that differs: what a reader should call it, and the lines that show it."""

    component: str
    causes: Causes
    lines: Lines


@dataclass(frozen=True)
class Explained:
    """One module of the second run, or of the first alone."""

    module: str
    status: Status
    verdict: str
    a: Event | None = None
    b: Event | None = None
    differences: tuple[ComponentDifference, ...] = ()


@dataclass(frozen=True)
class _Pair:
    """The event of a module in each run."""

    a: Event
    b: Event
    run_a: Requests
    run_b: Requests

    def parts(self, named: Callable[[str], str], component: str) -> tuple[str, str] | None:
        """Return what both ledgers keep of a component; None where one of them lacks it."""
        kept = []
        for event, run in ((self.a, self.run_a), (self.b, self.run_b)):
            known = _components(event).get(component)
            kept.append(run.parts.get(named(known.sha256)) if known else None)
        one, other = kept
        return None if one is None or other is None else (one, other)


def explain_runs(a: Requests, b: Requests) -> list[Explained]:
    """Return one explanation per module, in the order of the second run."""
    first_a, first_b = _first_of_each_key(a), _first_of_each_key(b)
    partners = _match(first_a, first_b, a, b)
    explained = []
    for event in first_b:
        partner = partners.get(event.key)
        if partner is None:
            explained.append(Explained(event.module, "only in B", _alone("second"), b=event))
        else:
            explained.append(_explain(_Pair(partner, event, a, b)))
    taken = {event.key for event in partners.values()}
    unasked = {event.module: event for event in b.events if not event.key}
    for one in first_a:
        if one.key not in taken:
            again = unasked.get(one.module)
            said = _no_cache(again) if again else _alone("first")
            explained.append(Explained(one.module, "only in A", said, a=one, b=again))
    return explained


def _no_cache(event: Event) -> str:
    """Say that the second run had no cache to ask."""
    return f"The second run had no cache to ask: {event.reason} ({event.detail})."


def _alone(run: str) -> str:
    return f"Compiled in the {run} run only: no module of the other has its name or program."


def _first_of_each_key(run: Requests) -> list[Event]:
    first: dict[str, Event] = {}
    for event in run.events:
        if event.key:
            first.setdefault(event.key, event)
    return list(first.values())


def _match(
    first_a: list[Event], first_b: list[Event], a: Requests, b: Requests
) -> dict[str, Event]:
    """Return the partner in A of each event of B that has one, by the key in B."""
    partners: dict[str, Event] = {}
    left = {event.key: event for event in first_a}

    def same_key(event: Event) -> Event | None:
        return left.get(event.key)

    def same_name(event: Event) -> Event | None:
        # Of several of one name, one that differs least: a module that was compiled for two shapes
        # is not to be told from its neighbour by the shape.
        named = [other for other in left.values() if other.module == event.module]
        return max(named, key=lambda other: _likeness(other, event), default=None)

    def same_program(event: Event) -> Event | None:
        mine = _nameless(event, b)
        renamed = (other for other in left.values() if mine and _nameless(other, a) == mine)
        return next(renamed, None)

    for partner_of in (same_key, same_name, same_program):
        for event in first_b:
            partner = partner_of(event) if event.key not in partners else None
            if partner is not None:
                partners[event.key] = left.pop(partner.key)
    return partners


def _components(event: Event) -> dict[str, Component]:
    return {component.name: component for component in event.components}


def _likeness(a: Event, b: Event) -> int:
    """Return how many components are equal; the computation counts more than all others."""
    mine = _components(a)
    return sum(
        100 if component.name == keys.COMPUTATION else 1
        for component in b.components
        if component.name in mine and mine[component.name].sha256 == component.sha256
    )


def _nameless(event: Event, run: Requests) -> str | None:
    computation = _components(event).get(keys.COMPUTATION)
    text = run.parts.get(keys.text_part(computation.sha256)) if computation else None
    return stablehlo.without_name(text) if text is not None else None


def _explain(pair: _Pair) -> Explained:
    a, b = pair.a, pair.b
    if a.key == b.key:
        status: Status = "hit" if b.outcome == "hit" else "same key, no hit"
        return Explained(b.module, status, f"The key is equal{_same_key(a, b)}", a, b)
    if b.reason in (reasons.NO_DIRECTORY, reasons.UNUSABLE_DIRECTORY):
        return Explained(b.module, "key changed", _no_cache(b), a, b)
    mine, yours = _components(a), _components(b)
    differences = []
    for name in {**mine, **yours}:
        if name not in mine or name not in yours:
            line = f"only the {'second' if name in yours else 'first'} run's JAX hashes it"
            differences.append(ComponentDifference(LABELS.get(name, name), (), (line,)))
        elif mine[name].sha256 != yours[name].sha256:
            compare = COMPARED.get(name, _values)
            causes, lines = compare(pair, mine[name], yours[name])
            differences.append(ComponentDifference(LABELS.get(name, name), causes, lines))
    upgrades = [one for one in differences if one.component == LABELS[JAXLIB]]
    # All else that a release changes in the key changes with it.
    differences = upgrades or differences
    return Explained(b.module, "key changed", _changed(a, b, differences), a, b, tuple(differences))


def _changed(a: Event, b: Event, differences: list[ComponentDifference]) -> str:
    if not a.components or not b.components:
        return "The key changed; one of the ledgers holds no components to say which part."
    if not differences:
        return "The key changed, and no captured component did: JAX hashes something unknown."
    names = " and ".join(f"`{difference.component}`" for difference in differences)
    causes = "; ".join(cause for difference in differences for cause in difference.causes)
    if [one.component for one in differences] == [LABELS[JAXLIB]]:
        return f"jaxlib {causes}: every key is another one."
    return f"{names} changed, the rest is equal{f': {causes}' if causes else ''}."


def _same_key(a: Event, b: Event) -> str:
    """Say, after "The key is equal", what became of the request, and why."""
    if b.outcome == "hit":
        return ", and the cache answered."
    if b.outcome == "failed":
        return f"; the request failed: {b.detail}"
    if b.read_error:
        return f"; the entry could not be read: {b.read_error}"
    if b.reason in (reasons.NO_DIRECTORY, reasons.UNUSABLE_DIRECTORY):
        return f". {_no_cache(b)}"
    if a.outcome == "failed":
        return f"; the first run's request failed and left no entry: {a.detail}"
    if a.outcome == "unwritten":
        return f"; the first run wrote no entry: {a.reason} ({a.detail})."
    if a.directory != b.directory:
        used = f"{a.directory or '(none)'} and {b.directory or '(none)'}"
        return f"; the runs used two directories, {used}."
    if b.at_s < a.at_s:
        return "; the second ledger is the older one, so nothing was there yet."
    return (
        " and the first run left an entry, which was gone: evicted, removed, or "
        "jax_compilation_cache_check_contents is on."
    )


# How a component is compared: its causes, and the lines that show them


def _values(pair: _Pair, mine: Component, yours: Component) -> tuple[Causes, Lines]:
    removed, added = _removed_and_added(mine, yours)
    lines = (*(f"- {value}" for value in removed), *(f"+ {value}" for value in added))
    one = len(removed) == len(added) == 1
    causes = (f"{removed[0]} became {added[0]}",) if one else ()
    return causes, lines or ("the same values in another order or number",)


def _flags(pair: _Pair, mine: Component, yours: Component) -> tuple[Causes, Lines]:
    removed, added = _removed_and_added(mine, yours)
    causes = [f"flag {value} was removed" for value in removed]
    causes += [f"flag {value} was added" for value in added]
    return tuple(causes), _values(pair, mine, yours)[1]


def _removed_and_added(mine: Component, yours: Component) -> tuple[list[str], list[str]]:
    removed = [value for value in mine.values if value not in yours.values]
    return removed, [value for value in yours.values if value not in mine.values]


def _computation(pair: _Pair, mine: Component, yours: Component) -> tuple[Causes, Lines]:
    texts = pair.parts(keys.text_part, keys.COMPUTATION)
    if texts is None:
        return (), ("the StableHLO text of one of the two is not there: FILE.parts is missing",)
    if texts[0] != texts[1]:
        return stablehlo.causes(*texts), stablehlo.diff(*texts)
    settings = [pair.a.metadata_in_key, pair.b.metadata_in_key]
    if any(settings):
        cause = "source locations are in the key (jax_compilation_cache_include_metadata_in_key)"
        if not all(settings):
            return (cause,), (f"in the key: {settings[0]} -> {settings[1]}",)
        located = pair.parts(keys.located_part, keys.COMPUTATION) or ("", "")
        return (cause,), stablehlo.diff(*located)
    if stablehlo.ELIDED in texts[0]:
        return ("a constant too large to be kept in the ledger changed",), ()
    return (
        "the text is equal, its serialised form is not (another jaxlib, or debug information "
        "inside a kernel)",
    ), ()


_AUTOTUNE = "xla_gpu_per_fusion_autotune_cache_dir"
"""A path in the cache's directory. jax 0.10.2 hashes it, on CPU as well; 0.11.0 and later do not,
but with jax_persistent_cache_enable_xla_caches=all."""

_FIELD_CAUSES = {
    "allow_spmd_sharding_propagation_to_parameters": "XLA may not choose an argument's sharding "
    "any more, or may again",
}


def _options(pair: _Pair, mine: Component, yours: Component) -> tuple[Causes, Lines]:
    texts = pair.parts(keys.fields_part, keys.COMPILE_OPTIONS)
    if texts is None:
        return (), ("the fields of one of the two are not there: FILE.parts is missing",)
    old, new = (json.loads(text) for text in texts)
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if not changed:
        return (), ("no field that JAX lets be read differs; the serialised bytes do",)
    short = [
        name.removeprefix("debug_options.").removeprefix("executable_build_options.")
        for name in changed
    ]
    lines = [f"{n}: {old.get(n, '(not set)')} -> {new.get(n, '(not set)')}" for n in changed]
    known = {**_FIELD_CAUSES, _AUTOTUNE: _of_the_path(pair.a.directory, pair.b.directory)}
    return tuple(known.get(name, name) for name in short), tuple(lines)


def _of_the_path(a: str, b: str) -> str:
    """Say why a path in the cache's directory, which is in the key, differs."""
    if a == b:
        return f"jax_persistent_cache_enable_xla_caches changed, and with it {_AUTOTUNE}"
    same = bool(a and b) and os.path.realpath(a) == os.path.realpath(b)
    how = "is named by another path" if same else "was moved"
    return f"the cache's directory {how}, and {_AUTOTUNE} in it is in the key"


XLA_FLAGS, JAXLIB = "XLA flags", "jax_lib version"
LABELS = {JAXLIB: "jaxlib", "backend version": "platform", XLA_FLAGS: "xla_flags"}
"""What this project calls JAX's components, where JAX's own name is not one word."""

COMPARED = {
    keys.COMPUTATION: _computation,
    keys.COMPILE_OPTIONS: _options,
    XLA_FLAGS: _flags,
}
"""How components are compared that are more than a few values."""
