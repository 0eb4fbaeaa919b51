"""Compare two ledgers: why a compile of the second run did, or did not, find the first run's entry.

Modules are matched by key, then by name in order of appearance, then by a computation that is
equal up to the module's name. Only the first event of a key in a run counts: the one that decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.cache import key_parts
from harness.cache.key_difference import (
    ComponentDifference,
    RequestPair,
    components,
    differences,
    told,
)
from harness.watch import cache_keys as keys
from harness.watch import ledger_events as reasons
from harness.watch.ledger_events import Event, Requests, reason_text

Status = Literal["hit", "same key, no hit", "key changed", "only in A", "only in B"]


@dataclass(frozen=True)
class Explained:
    """One module of the second run, or of the first alone."""

    module: str
    status: Status
    verdict: str
    a: Event | None = None
    b: Event | None = None
    differences: tuple[ComponentDifference, ...] = ()


def explain_runs(a: Requests, b: Requests) -> list[Explained]:
    """Return one explanation per module, in the order of the second run."""
    first_a, first_b = _first_of_each_key(a), _first_of_each_key(b)
    partners = _match(first_a, first_b, a, b)
    explained = [
        _explain(RequestPair(partners[event.key], event, a, b))
        if event.key in partners
        else _alone(event, "second", a)
        for event in first_b
    ]
    taken = {event.key for event in partners.values()}
    return explained + [_alone(event, "first", b) for event in first_a if event.key not in taken]


def _alone(event: Event, run: Literal["first", "second"], other: Requests) -> Explained:
    """Explain a module of one run, for which the other has no key."""
    asked = {one.module: one for one in other.events if not one.key}.get(event.module)
    said = f"Compiled in the {run} run only: no module of the other has its name or program."
    if run == "first":
        said = _no_cache("second", asked) if asked else said
        return Explained(event.module, "only in A", said, a=event, b=asked)
    said = _no_cache("first", asked) if asked else said
    return Explained(event.module, "only in B", said, a=asked, b=event)


def _no_cache(run: str, event: Event) -> str:
    return f"The {run} run had no cache to ask: {reason_text(event.reason, event.detail)}."


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


def _likeness(a: Event, b: Event) -> int:
    """Return how many components are equal; the computation counts more than all others."""
    mine = components(a)
    return sum(
        100 if component.name == keys.COMPUTATION else 1
        for component in b.components
        if component.name in mine and mine[component.name].sha256 == component.sha256
    )


def _nameless(event: Event, run: Requests) -> str | None:
    computation = components(event).get(keys.COMPUTATION)
    text = run.parts.get(keys.text_part(computation.sha256)) if computation else None
    return key_parts.without_name(text) if text is not None else None


def _explain(pair: RequestPair) -> Explained:
    a, b = pair.a, pair.b
    if a.key == b.key:
        status: Status = "hit" if b.outcome == "hit" else "same key, no hit"
        return Explained(b.module, status, f"The key is equal{_same_key(pair)}", a, b)
    if b.reason in (reasons.NO_DIRECTORY, reasons.UNUSABLE_DIRECTORY):
        return Explained(b.module, "key changed", _no_cache("second", b), a, b)
    found = differences(pair)
    return Explained(b.module, "key changed", told(pair, found), a, b, tuple(found))


def _same_key(pair: RequestPair) -> str:
    """Say, after "The key is equal", what became of the request, and why."""
    a, b = pair.a, pair.b
    if b.outcome == "hit":
        return ", and the cache answered."
    if b.outcome == "failed":
        return f"; the request failed: {b.detail}"
    if b.reason in (reasons.NO_DIRECTORY, reasons.UNUSABLE_DIRECTORY):
        return f". {_no_cache('second', b)}"
    if b.read_error:
        return f"; the entry could not be read: {b.read_error}"
    if a.outcome == "failed":
        return f"; the first run's request failed and left no entry: {a.detail}"
    if a.outcome == "unwritten":
        return f"; the first run wrote no entry: {reason_text(a.reason, a.detail)}."
    if a.directory != b.directory:
        used = f"{a.directory or '(none)'} and {b.directory or '(none)'}"
        return f"; the runs used two directories, {used}."
    if b.at_s < a.at_s:
        return "; the second ledger is the older one, so nothing was there yet."
    return f" and the first run left an entry, which was gone: {_gone(pair)}"


def _gone(pair: RequestPair) -> str:
    for run, which in ((pair.run_a, "first"), (pair.run_b, "second")):
        for event in run.events:
            if pair.b.key in event.evicted and pair.a.at_s <= event.at_s <= pair.b.at_s:
                return f"the {which} run evicted it, to make room for {event.module} under its cap."
    caps = [one.get("jax_compilation_cache_max_size", "") for one in pair.settings()]
    if caps == ["-1", "-1"]:
        return "removed, or evicted by another program; neither run has a size cap."
    others = "neither run evicted it" if any(caps) else "these ledgers are too old to tell"
    return f"evicted by another program, or removed; {others}."
