"""What changed from one profile to another: the data, the answer in sentences, and the formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from harness.profiles.causes.cause import Cause
from harness.profiles.causes.words import said
from harness.profiles.functions import COUNTS, SIZES, Counted
from harness.profiles.pieces import STAGES
from harness.records.units import counted, often_text, seconds_text

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

NOT_KNOWN = "not recorded"

SCHEMA = 1

SECONDS = "Seconds are of one run each, without an error bar; counts are exact."

Status = Literal["changed", "new", "gone", "same"]


class FunctionTotals:
    """What was built of a function in one profile; its seconds are of one run, with no error bar.

    Attributes:
        causes: builds by (kind, argument) of their cause.
        examples: the first cause of each.
        settings: what `jax.jit` was given.
    """

    def __init__(self, one: Counted, profile: Recorded) -> None:
        self.counts, self.seconds, self.sizes = one.counts, one.seconds, one.sizes
        self.causes: Counter[tuple[str, str]] = Counter()
        self.examples: dict[tuple[str, str], Cause] = {}
        self.settings: dict[str, str] = {}
        for built in one.builds:
            cause = profile.cause_of(built)
            self.causes[cause.kind, cause.argument] += 1
            self.examples.setdefault((cause.kind, cause.argument), cause)
            if built.settings is not None:
                self.settings.update(built.settings.jit)

    @property
    def total_s(self) -> float:
        """All stages together."""
        return sum(self.seconds.values())

    @property
    def requests(self) -> int:
        """Programs that were asked for, compiled or loaded."""
        return self.counts["compiles"] + self.counts["loads"]


@dataclass(frozen=True)
class FunctionChange:
    """A function in two profiles."""

    function: Counted
    """As B has it; as A has it where B has none."""
    a: FunctionTotals
    b: FunctionTotals
    status: Status

    @property
    def gained(self) -> dict[tuple[str, str], int]:
        """By how much each cause's builds became more in B, or fewer (negative)."""
        keys = dict.fromkeys((*self.b.causes, *self.a.causes))
        found = {key: self.b.causes.get(key, 0) - self.a.causes.get(key, 0) for key in keys}
        return {key: count for key, count in found.items() if count}

    @property
    def weight(self) -> tuple[bool, float, int]:
        """How much it matters: seconds of one side beyond the other's, then builds."""
        builds = self.b.counts["builds"] - self.a.counts["builds"]
        return self.status == "same", -abs(self.b.total_s - self.a.total_s), -abs(builds)


@dataclass(frozen=True)
class ProfileDifference:
    """What changed from profile A to profile B."""

    changes: tuple[FunctionChange, ...]
    """Every function of either, what matters most first, what is the same last."""
    totals: dict[str, tuple[float, float]]
    """Numbers of everything together, A's and B's; seconds where the name ends in `_s`."""
    facts: dict[str, tuple[str, str]]
    """Versions, device, machine, command, settings."""
    warnings: tuple[str, ...]
    """What makes the two hard to compare."""

    @property
    def answer(self) -> list[str]:
        """What changed, in sentences, what matters most first."""
        return _sentences(self)

    @property
    def changed(self) -> list[FunctionChange]:
        """The functions that are not the same."""
        return [change for change in self.changes if change.status != "same"]


MOST = 4
"""Functions that get a sentence of their own."""

VERBS = ("traces", "lowers", "builds")


def _sentences(difference: ProfileDifference) -> list[str]:
    changed, totals = difference.changed, difference.totals
    own = [change for change in changed if not change.function.eager]
    found = []
    if own and all(_moved_to_cache(change) for change in own):
        high, low, more, fewer = _ordered(*totals["loads"])
        programs = counted(int(totals["loads"][1] + totals["compiles"][1]), "program")
        found.append(
            f"{more} loads {high} of {programs} from the persistent cache, {fewer} "
            f"{low or 'none'}; nothing else changed."
        )
        own = []
    found += [_sentence(change) for change in own[:MOST]]
    if len(own) > MOST:
        found.append(f"{counted(len(own) - MOST, 'more function')} changed.")
    high, low, more, fewer = _ordered(*totals["eager programs"])
    if high != low:
        programs = counted(high, "one-operation program")
        found.append(f"{more} compiles {programs} of JAX's own, {fewer} {low}.")
    if found:
        return found
    if changed:
        some = counted(len(changed), "function")
        return [f"{some} of JAX's own changed, and none of the program's."]
    if not difference.changes:
        return ["Neither builds anything."]
    functions = counted(int(totals["functions"][0]), "function")
    builds = counted(int(totals["builds"][0]), "build")
    return [f"No count changed: both build {functions} in {builds}, for the same causes."]


def _ordered(a: float, b: float) -> tuple[int, int, str, str]:
    """Return the higher number, the lower one, and which profile has each."""
    return (int(b), int(a), "B", "A") if b > a else (int(a), int(b), "A", "B")


def _moved_to_cache(change: FunctionChange) -> bool:
    a, b = change.a.counts, change.b.counts
    alike = all(a[name] == b[name] for name in ("builds", "traces", "lowers"))
    return alike and change.a.requests == change.b.requests and a["loads"] != b["loads"]


def _sentence(change: FunctionChange) -> str:
    function, a, b = change.function.shown, change.a, change.b
    if change.status == "new":
        return f"B builds {function}, which A does not: {_what(b)}."
    if change.status == "gone":
        return f"A builds {function}, which B does not: {_what(a)}."
    if a.requests != b.requests:
        return _more(change, "compiles", a.requests, b.requests)
    if a.counts["loads"] != b.counts["loads"]:
        high, low, more, fewer = _ordered(a.counts["loads"], b.counts["loads"])
        often = often_text(high - low)
        return f"{more} loads {function} {often} from the persistent cache where {fewer} compiles."
    for verb in VERBS:
        if a.counts[verb] != b.counts[verb]:
            return _more(change, verb, a.counts[verb], b.counts[verb])
    again = f"{function} is built as often"
    if a.causes != b.causes:
        return f"{again}, but for another cause{_cause(change, 'B')}."
    if a.settings != b.settings:
        differing = ", ".join(
            f"{name}: {a.settings.get(name, 'not given')} -> {b.settings.get(name, 'not given')}"
            for name in sorted({*a.settings, *b.settings})
            if a.settings.get(name) != b.settings.get(name)
        )
        return f"{again}, with other options ({differing})."
    code = a.sizes["code_bytes"] != b.sizes["code_bytes"]
    name, what = ("code_bytes", "bytes of code") if code else ("temp_bytes", "temporary bytes")
    return f"{again}, and has {b.sizes[name]:,} {what} in B, {a.sizes[name]:,} in A."


def _what(side: FunctionTotals) -> str:
    what = counted(side.requests, "compile")
    if not side.requests:
        what = counted(side.counts["traces"], "trace")
    return f"{what}, {seconds_text(side.total_s)}"


def _more(change: FunctionChange, verb: str, a: int, b: int) -> str:
    high, low, more, fewer = _ordered(a, b)
    seldom = often_text(low) if low else "not at all"
    text = f"{more} {verb} {change.function.shown} {often_text(high)}, {fewer} {seldom}"
    return f"{text}{_cause(change, more)}."


def _cause(change: FunctionChange, name: str) -> str:
    """Return the cause of most of the builds that one side has more, if it is known."""
    side, sign = (change.b, 1) if name == "B" else (change.a, -1)
    gained = {key: sign * count for key, count in change.gained.items() if sign * count > 0}
    if not gained:
        return ""
    key = max(gained, key=lambda key: (key[0] != "first", gained[key]))
    return f": {said(side.examples[key])}"


def listed(difference: ProfileDifference, every: bool = False) -> list[FunctionChange]:
    """Return the functions that a reader wants to see: not what is the same, nor JAX's own.

    JAX's own are many, and one number in the totals; `every` lists them and the others.
    """
    if every:
        return list(difference.changes)
    return [change for change in difference.changed if not change.function.eager]


def functions_table(changes: Sequence[FunctionChange]) -> pd.DataFrame:
    """Return functions with what is different in A and B: `1 -> 17`."""
    rows = []
    for change in changes:
        pairs = [(change.a.counts[name], change.b.counts[name]) for name in COUNTS]
        rows.append(
            [
                change.function.shown,
                "" if change.status == "changed" else change.status,
                *(str(a) if a == b else f"{a} -> {b}" for a, b in pairs),
                f"{seconds_text(change.a.total_s)} -> {seconds_text(change.b.total_s)}",
                ", ".join(f"{count:+} {_named(*key)}" for key, count in change.gained.items()),
            ]
        )
    return pd.DataFrame(rows, columns=["function", "", *COUNTS, "seconds", "causes"])


def totals_table(difference: ProfileDifference) -> pd.DataFrame:
    """Return the totals of A and B."""
    rows = []
    for name, (a, b) in difference.totals.items():
        if name.endswith("_s"):
            cells = [f"{name.removesuffix('_s')}, seconds", seconds_text(a), seconds_text(b), ""]
        else:
            change = f"{b - a:+,.0f}" if a != b else ""
            cells = [name.replace("code_bytes", "bytes of code"), f"{a:,}", f"{b:,}", change]
        rows += [cells] if a or b else []
    return pd.DataFrame(rows, columns=["together", "A", "B", "change"])


def facts_table(difference: ProfileDifference) -> pd.DataFrame:
    """Return what the two were recorded with, where it differs; one alone says nothing."""
    facts = difference.facts.items()
    rows = [[name, a, b] for name, (a, b) in facts if a != b and NOT_KNOWN not in (a, b)]
    return pd.DataFrame(rows, columns=["recorded with", "A", "B"])


def footer(difference: ProfileDifference) -> list[str]:
    """Return what is to be known of the numbers."""
    unknown = [name for name, (a, b) in difference.facts.items() if a != b and NOT_KNOWN in (a, b)]
    return [SECONDS, *([f"Recorded in one of the two only: {', '.join(unknown)}."] * bool(unknown))]


def document(difference: ProfileDifference) -> dict[str, Any]:
    """Return all of a difference, functions that are the same included."""
    return {
        "schema": SCHEMA,
        "answer": difference.answer,
        "warnings": difference.warnings,
        "totals": _both(difference.totals),
        "facts": _both(difference.facts),
        "functions": [
            {
                **change.function.key._asdict(),
                "origin": change.function.function.origin,
                "status": change.status,
                "a": _document_of(change.a),
                "b": _document_of(change.b),
            }
            for change in difference.changes
        ],
    }


def _both(pairs: dict[str, tuple[Any, Any]]) -> list[dict[str, Any]]:
    return [{"name": name, "a": a, "b": b} for name, (a, b) in pairs.items()]


def _document_of(side: FunctionTotals) -> dict[str, Any]:
    causes = [
        {"kind": key[0], "argument": key[1], "builds": n, "example": side.examples[key]._asdict()}
        for key, n in side.causes.items()
    ]
    return {**_numbers(side), "settings": side.settings, "causes": causes}


def _numbers(side: FunctionTotals) -> dict[str, float]:
    seconds = {f"{stage}_s": took for stage, took in side.seconds.items()}
    return {**side.counts, **seconds, **side.sizes}


def frame(difference: ProfileDifference) -> pd.DataFrame:
    """Return a row per function: `a_compiles`, `b_compiles`, `a_trace_s`, `b_causes` and so on."""
    parts = (*COUNTS, *(f"{stage}_s" for stage in STAGES), *SIZES, "causes")
    rows = []
    for change in difference.changes:
        place, qualname, name, line = change.function.key
        row = [qualname, name, place, line, change.function.function.origin, change.status]
        sides = [
            _numbers(side) | {"causes": "; ".join(f"{n} {_named(*k)}" for k, n in causes.items())}
            for side, causes in ((change.a, change.a.causes), (change.b, change.b.causes))
        ]
        rows.append([*row, *(side[part] for part in parts for side in sides)])
    names = ["function", "name", "place", "line", "origin", "status"]
    names += [f"{side}_{part}" for part in parts for side in "ab"]
    return pd.DataFrame(rows, columns=names)


def _named(kind: str, argument: str) -> str:
    return f"{kind} `{argument}`" if argument else kind
