"""What two programs differ in: their facts, and their text. Knows nothing of JAX."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NamedTuple

from harness.program.canonical import canonical
from harness.program.facts import TOTALS, Facts

Value = float | None

_NOUNS = {
    "jaxpr_equations": ("jaxpr equation", "jaxpr equations"),
    "stablehlo_operations": ("StableHLO operation", "StableHLO operations"),
    "hlo_instructions": ("HLO instruction", "HLO instructions"),
    "fusions": ("fusion", "fusions"),
    "custom_calls": ("custom call", "custom calls"),
    "while_loops": ("while loop", "while loops"),
    "collectives": ("collective", "collectives"),
    "launches": ("launch", "launches"),
    "flops": ("flop", "flops"),
    "transcendentals": ("transcendental", "transcendentals"),
}

_BYTES = {
    "stablehlo_bytes": "StableHLO text",
    "bytes_accessed": "accessed",
    "argument_bytes": "arguments",
    "output_bytes": "outputs",
    "temporary_bytes": "temporary",
    "aliased_bytes": "aliased",
    "peak_bytes": "peak",
    "code_bytes": "code",
}

_KINDS = {
    "stablehlo_operations": "stablehlo_kinds",
    "fusions": "fusion_kinds",
    "custom_calls": "custom_call_targets",
    "collectives": "collective_kinds",
}
"""A total, and the field that splits it up."""


_PREFIXES = ("", "k", "M", "G", "T", "P")


class Change(NamedTuple):
    """One fact that differs."""

    name: str
    """The field of `Facts`; for one kind of several `field.kind`, such as `fusion_kinds.loop`."""
    before: Value | list[int | None]
    after: Value | list[int | None]
    """None where it was not known. A kind that does not occur is 0."""
    change: str
    """The same for people: `+1 fusion (loop)`, `+2.3 MB temporary`."""


def facts_difference(a: Facts, b: Facts) -> list[Change]:
    """Return what changed from `a` to `b`, in the order of `TOTALS`; kinds follow their total."""
    changes = []
    for name in TOTALS:
        before, after = getattr(a, name), getattr(b, name)
        if before != after:
            changes.append(Change(name, before, after, _text(name, before, after)))
        if name in _KINDS and before is not None and after is not None:
            changes += _kinds(name, getattr(a, _KINDS[name]), getattr(b, _KINDS[name]))
        if name == "while_loops" and a.loop_trips != b.loop_trips:
            text = f"loop trips {_trips(a.loop_trips)} → {_trips(b.loop_trips)}"
            changes.append(Change("loop_trips", a.loop_trips, b.loop_trips, text))
    return changes


def summary(changes: Iterable[Change]) -> str:
    """Return the changes as one line, "" without any.

    Kinds stand in place of their total, except those of StableHLO, which are many.
    """
    found = [c for c in changes if not c.name.startswith("stablehlo_kinds.")]
    split = {field for field, _, kind in (c.name.partition(".") for c in found) if kind}
    return ", ".join(c.change for c in found if _KINDS.get(c.name) not in split)


def text_difference(a: str, b: str) -> str:
    """Return a unified diff of two programs' texts, "" where they differ in names alone.

    Both are HLO, StableHLO or jaxprs. Source locations and numbers in names are no difference.
    """
    before, after = (canonical(text).splitlines(keepends=True) for text in (a, b))
    return "".join(difflib.unified_diff(before, after, "before", "after"))


def _kinds(total: str, a: dict[str, int], b: dict[str, int]) -> list[Change]:
    return [
        Change(
            f"{_KINDS[total]}.{kind}",
            a.get(kind, 0),
            b.get(kind, 0),
            f"{_text(total, a.get(kind, 0), b.get(kind, 0))} ({kind})",
        )
        for kind in sorted(a.keys() | b.keys())
        if a.get(kind, 0) != b.get(kind, 0)
    ]


def _text(name: str, before: Value, after: Value) -> str:
    if before is None or after is None:
        known = before if after is None else after
        assert known is not None
        when = "now unknown, before" if after is None else "unknown before, now"
        what = _BYTES.get(name) or _NOUNS[name][1]
        return f"{what}: {when} {_amount(name, known).strip()}"
    change = after - before
    sign = "+" if change > 0 else "-"
    what = _BYTES.get(name) or _NOUNS[name][abs(change) != 1]
    return f"{sign}{_amount(name, abs(change))}{what}"


def _amount(name: str, value: float) -> str:
    """Return a number and its unit, if it has one, with three digits above a thousand."""
    unit = "B" if name in _BYTES else ""
    power = 0
    scaled = unit or name in ("flops", "transcendentals")
    while scaled and value >= 999.5 and power < len(_PREFIXES) - 1:
        value /= 1000
        power += 1
    number = f"{value:.3g}" if power else f"{value:.0f}"
    return f"{number} {_PREFIXES[power]}{unit}".rstrip() + " "


def _trips(trips: list[int | None]) -> str:
    return ", ".join("?" if n is None else str(n) for n in trips) or "none"
