"""What changed from one profile to another: the data, and the answer in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from harness.profiles.causes.cause import Cause
from harness.profiles.causes.words import said
from harness.profiles.functions import Counted
from harness.records.units import counted, often_text, seconds_text

NOT_KNOWN = "not recorded"


class Fact(NamedTuple):
    """One thing that is said of both."""

    name: str
    a: str
    b: str

    @property
    def same(self) -> bool:
        """Whether both say the same, or one of them does not say."""
        return self.a == self.b or NOT_KNOWN in (self.a, self.b)


class Total(NamedTuple):
    """A number of everything together; seconds where the name ends in `_s`."""

    name: str
    a: float
    b: float


COUNTS = ("builds", "traces", "lowers", "compiles", "loads")
"""What is exact: any difference is a change."""

SIZES = ("code_bytes", "temp_bytes")

Status = Literal["changed", "new", "gone", "same"]


@dataclass(frozen=True)
class Side:
    """What was built of a function in one profile."""

    counts: dict[str, int]
    """By :data:`COUNTS`."""
    seconds: dict[str, float]
    """By stage, of one run: without an error bar."""
    sizes: dict[str, int]
    """`code_bytes` of all its executables, `temp_bytes` of the one that needs most."""
    causes: dict[tuple[str, str], int]
    """Builds by (kind, argument) of their cause."""
    examples: dict[tuple[str, str], Cause]
    """The first cause of each."""
    settings: dict[str, str]
    """What `jax.jit` was given."""

    @property
    def total_s(self) -> float:
        """All stages together."""
        return sum(self.seconds.values())


@dataclass(frozen=True)
class Change:
    """A function in two profiles."""

    function: Counted
    """As B has it; as A has it where B has none."""
    a: Side
    b: Side
    status: Status

    @property
    def gained(self) -> dict[tuple[str, str], int]:
        """By how much each cause's builds became more in B, or fewer (negative)."""
        keys = dict.fromkeys((*self.b.causes, *self.a.causes))
        found = {key: self.b.causes.get(key, 0) - self.a.causes.get(key, 0) for key in keys}
        return {key: count for key, count in found.items() if count}

    @property
    def weight(self) -> tuple[float, int]:
        """How much it matters: seconds of one side beyond the other's, then builds."""
        builds = self.b.counts["builds"] - self.a.counts["builds"]
        return abs(self.b.total_s - self.a.total_s), abs(builds)


@dataclass(frozen=True)
class Difference:
    """What changed from profile A to profile B."""

    changes: tuple[Change, ...]
    """Every function of either, what matters most first, what is the same last."""
    answer: list[str]
    """What changed, in sentences, what matters most first."""
    totals: tuple[Total, ...]
    facts: tuple[Fact, ...]
    """Versions, device, machine, command, settings."""
    warnings: tuple[str, ...]
    """What makes the two hard to compare."""

    @property
    def changed(self) -> list[Change]:
        """The functions that are not the same."""
        return [change for change in self.changes if change.status != "same"]


MOST = 4
"""Functions that get a sentence of their own."""

VERBS = ("traces", "lowers", "builds")


def sentences(changes: Sequence[Change], totals: Sequence[Total]) -> list[str]:
    """Return what changed, what matters most first, a sentence each."""
    changed = [change for change in changes if change.status != "same"]
    own = [change for change in changed if not change.function.eager]
    by_name = {total.name: total for total in totals}
    found = []
    if own and all(_moved_to_cache(change) for change in own):
        found.append(_cached(by_name))
        own = []
    found += [_sentence(change) for change in own[:MOST]]
    if len(own) > MOST:
        found.append(f"{counted(len(own) - MOST, 'more function')} changed.")
    eager = by_name["eager programs"]
    if eager.a != eager.b:
        more, fewer = ("B", "A") if eager.b > eager.a else ("A", "B")
        high, low = max(int(eager.a), int(eager.b)), min(int(eager.a), int(eager.b))
        found.append(
            f"{more} compiles {counted(high, 'one-operation program')} of JAX's own, {fewer} {low}."
        )
    if found:
        return found
    if changed:
        some = counted(len(changed), "function")
        return [f"{some} of JAX's own changed, and none of the program's."]
    if not changes:
        return ["Neither builds anything."]
    functions, builds = int(by_name["functions"].a), int(by_name["builds"].a)
    return [
        f"No count changed: both build {counted(functions, 'function')} in "
        f"{counted(builds, 'build')}, for the same causes."
    ]


def _moved_to_cache(change: Change) -> bool:
    a, b = change.a.counts, change.b.counts
    alike = all(a[name] == b[name] for name in ("builds", "traces", "lowers"))
    asked = a["compiles"] + a["loads"] == b["compiles"] + b["loads"]
    return alike and asked and a["loads"] != b["loads"]


def _cached(totals: dict[str, Total]) -> str:
    loads, compiles = totals["loads"], totals["compiles"]
    programs = int(loads.b + compiles.b)
    more, fewer = ("B", "A") if loads.b > loads.a else ("A", "B")
    high, low = sorted((int(loads.a), int(loads.b)), reverse=True)
    return (
        f"{more} loads {high} of {counted(programs, 'program')} from the persistent cache, "
        f"{fewer} {low or 'none'}; nothing else changed."
    )


def _sentence(change: Change) -> str:

    function, a, b = change.function.shown, change.a, change.b
    if change.status == "new":
        return f"B builds {function}, which A does not: {_what(b)}."
    if change.status == "gone":
        return f"A builds {function}, which B does not: {_what(a)}."
    asked = [side.counts["compiles"] + side.counts["loads"] for side in (a, b)]
    if asked[0] != asked[1]:
        return _more(change, "compiles", *asked)
    if a.counts["loads"] != b.counts["loads"]:
        more, fewer = ("B", "A") if b.counts["loads"] > a.counts["loads"] else ("A", "B")
        often = often_text(abs(b.counts["loads"] - a.counts["loads"]))
        return f"{more} loads {function} {often} from the persistent cache where {fewer} compiles."
    for verb in VERBS:
        if a.counts[verb] != b.counts[verb]:
            return _more(change, verb, a.counts[verb], b.counts[verb])
    if a.causes != b.causes:
        return f"{function} is built as often, but for another cause{_cause(change, 'B', b)}."
    if a.settings != b.settings:
        names = sorted({*a.settings, *b.settings})
        differing = ", ".join(
            f"{name}: {a.settings.get(name, 'not given')} -> {b.settings.get(name, 'not given')}"
            for name in names
            if a.settings.get(name) != b.settings.get(name)
        )
        return f"{function} is built as often, with other options ({differing})."
    code = a.sizes["code_bytes"] != b.sizes["code_bytes"]
    name, what = ("code_bytes", "bytes of code") if code else ("temp_bytes", "temporary bytes")
    return (
        f"{function} is built as often, and has {b.sizes[name]:,} {what} in B, "
        f"{a.sizes[name]:,} in A."
    )


def _what(side: Side) -> str:
    programs = side.counts["compiles"] + side.counts["loads"]
    if not programs:
        return f"{counted(side.counts['traces'], 'trace')}, {seconds_text(side.total_s)}"
    return f"{counted(programs, 'compile')}, {seconds_text(side.total_s)}"


def _more(change: Change, verb: str, in_a: int, in_b: int) -> str:
    more, fewer, high, low = ("B", "A", in_b, in_a) if in_b > in_a else ("A", "B", in_a, in_b)
    seldom = often_text(low) if low else "not at all"
    side = change.b if more == "B" else change.a
    cause = _cause(change, more, side)
    return f"{more} {verb} {change.function.shown} {often_text(high)}, {fewer} {seldom}{cause}."


def _cause(change: Change, name: str, side: Side) -> str:
    """Return the cause of most of the builds that one side has more, if it is known."""
    sign = 1 if name == "B" else -1
    gained = {key: sign * count for key, count in change.gained.items() if sign * count > 0}
    if not gained:
        return ""
    key = max(gained, key=lambda key: (key[0] != "first", gained[key]))
    return f": {said(side.examples[key])}"
