"""What a program's facts say, and what two programs differ in: facts and text. Without JAX."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from harness.program.fact import Fact
from harness.program.facts import BUILT, FACTS, Facts
from harness.program.hlo import WORKLESS
from harness.program.text import canonical, named_as

Value = float | None

UNKNOWN = "not said"
"""Shown for a fact that JAX or the back end does not give."""

_MOST = 4
"""So many parts of a fact are named, the most frequent first."""

_PREFIXES = ("", "k", "M", "G", "T", "P")


def facts_difference(a: Facts, b: Facts) -> str:
    """Return what changed from `a` to `b` in one line: `+1 fusion (loop), +2.3 MB temporary`.

    In the order of `BUILT`, "" where nothing did. Kinds stand in place of their total, except those
    of StableHLO, which are many. A kind that does not occur is 0.
    """
    changes: list[str] = []
    for fact in map(FACTS.__getitem__, BUILT):
        before, after = getattr(a, fact.name), getattr(b, fact.name)
        kinds: list[str] = []
        comparable = before is not None and after is not None
        if comparable and fact.parts and fact.part == "kind" and not fact.summed_up:
            kinds = _kinds(fact, getattr(a, fact.parts), getattr(b, fact.parts))
        if before != after and not kinds:
            changes.append(_text(fact, before, after))
        changes += kinds
        if fact.part == "trips":
            trips = getattr(a, fact.parts), getattr(b, fact.parts)
            if trips[0] != trips[1]:
                changes.append(f"loop trips {_trips(trips[0])} → {_trips(trips[1])}")
    return ", ".join(changes)


def text_difference(a: str, b: str) -> str:
    """Return a unified diff of two programs' texts, "" where they differ in names alone.

    Both are HLO, StableHLO or jaxprs. Source locations and numbers in names are no difference.
    """
    before, after = (canonical(text).splitlines(keepends=True) for text in (a, b))
    return "".join(difflib.unified_diff(before, named_as(before, after), "before", "after"))


def _kinds(fact: Fact, a: dict[str, int], b: dict[str, int]) -> list[str]:
    counts = ((kind, a.get(kind, 0), b.get(kind, 0)) for kind in sorted(a.keys() | b.keys()))
    return [
        f"{_text(fact, before, after)} ({kind})"
        for kind, before, after in counts
        if before != after
    ]


def _text(fact: Fact, before: Value, after: Value) -> str:
    if before is None or after is None:
        present = before if after is None else after
        assert present is not None
        when = "now unknown, before" if after is None else "unknown before, now"
        return f"{_noun(fact, 2)}: {when} {_amount(fact, present).strip()}"
    change = after - before
    sign = "+" if change > 0 else "-"
    return f"{sign}{_amount(fact, abs(change))}{_noun(fact, abs(change))}"


def _noun(fact: Fact, number: float) -> str:
    if number == 1 or fact.unit == "bytes":
        return fact.noun
    return fact.nouns or f"{fact.noun}s"


def _amount(fact: Fact, value: float) -> str:
    """Return a number and its unit, if it has one, with three digits above a thousand."""
    unit = "B" if fact.unit == "bytes" else ""
    power = 0
    while (unit or fact.large) and value >= 999.5 and power < len(_PREFIXES) - 1:
        value /= 1000
        power += 1
    number = f"{value:.3g}" if power else f"{value:.0f}"
    return f"{number} {_PREFIXES[power]}{unit}".rstrip() + " "


def _trips(trips: list[int | None]) -> str:
    return ", ".join("?" if n is None else str(n) for n in trips) or "none"


# --- all facts of one program ---------------------------------------------------------------------


def rows(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each fact of the program, its value as text, and what it means."""
    for fact in map(FACTS.__getitem__, BUILT):
        value = getattr(facts, fact.name)
        text = UNKNOWN if value is None else f"{value:,.0f}"
        named = facts.custom_call_targets.items()
        calls = sum(count for target, count in named if target not in WORKLESS)
        if value is not None and fact.source == "cost" and calls:
            text += f" without {calls} {_noun(FACTS['custom_calls'], calls)}"
        if value and fact.parts:
            text += _most(fact, getattr(facts, fact.parts))
        yield fact.name, text, fact.meaning


def _most(fact: Fact, parts: Any) -> str:
    if not parts:
        return ""
    if fact.part == "trips":
        named, unit = ["?" if trip is None else f"{trip:,}" for trip in parts], " trips"
    else:
        ordered = sorted(parts.items(), key=lambda item: (-item[1], item[0]))
        named = [f"{count} {kind.removeprefix('stablehlo.')}" for kind, count in ordered]
        unit = ""
    return f" ({', '.join(named[:_MOST])}{', ...' if len(named) > _MOST else ''}{unit})"
