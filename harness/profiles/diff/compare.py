"""Compare two profiles: which function of one is which of the other, and how it changed.

A function that was renamed, or moved to another file, is one that is gone and one that is new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from harness.profiles.causes.cause import Cause
from harness.profiles.diff import answer, surroundings
from harness.profiles.diff.difference import COUNTS, SIZES, Change, Difference, Side, Status
from harness.profiles.functions import Counted, by_function
from harness.profiles.pieces import STAGES
from harness.profiles.recorded import Recorded

Pair = tuple[Counted | None, Counted | None]


def compare(a: Recorded, b: Recorded) -> Difference:
    """Compare two profiles.

    Functions are told apart by file, relative to the program's folder, and qualified name; where
    several have one name, by the nearest line. Counts, causes, sizes of code and what `jax.jit` was
    given are compared exactly. Seconds are of one run each, have no error bar, and change nothing.
    """
    functions = by_function(a.builds), by_function(b.builds)
    changes = [
        _change(one, _side(one, a), other, _side(other, b)) for one, other in _pairs(*functions)
    ]
    changes.sort(key=lambda change: (change.status == "same", *(-w for w in change.weight)))
    totals = surroundings.totals(a, functions[0], b, functions[1])
    return Difference(
        tuple(changes),
        answer.sentences(changes, totals),
        totals,
        surroundings.facts(a, b),
        surroundings.warnings(a, b),
    )


def _side(one: Counted | None, profile: Recorded) -> Side:
    """Return what was built of a function; of none where it is not in the profile."""
    if one is None:
        counts, sizes = dict.fromkeys(COUNTS, 0), dict.fromkeys(SIZES, 0)
        return Side(counts, dict.fromkeys(STAGES, 0.0), sizes, {}, {}, {})
    causes: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], Cause] = {}
    settings: dict[str, str] = {}
    for built in one.builds:
        cause = profile.cause_of(built)
        causes[cause.kind, cause.argument] += 1
        examples.setdefault((cause.kind, cause.argument), cause)
        if built.settings is not None:
            settings.update(built.settings.jit)
    counts = {"builds": len(one.builds), **{name: getattr(one, name) for name in COUNTS[1:]}}
    seconds = {stage: one.seconds(stage) for stage in STAGES}
    sizes = {name: getattr(one, name) for name in SIZES}
    return Side(counts, seconds, sizes, dict(causes), examples, settings)


def _change(one: Counted | None, a: Side, other: Counted | None, b: Side) -> Change:
    shown = other or one
    assert shown is not None
    status: Status = "same"
    if one is None:
        status = "new"
    elif other is None:
        status = "gone"
    elif (a.counts, a.causes, a.sizes, a.settings) != (b.counts, b.causes, b.sizes, b.settings):
        status = "changed"
    return Change(shown, a, b, status)


def _pairs(a: Iterable[Counted], b: Iterable[Counted]) -> Iterator[Pair]:
    """Yield each function with its partner; None where it has none."""
    groups_a, groups_b = _grouped(a), _grouped(b)
    for name, ones in groups_b.items():
        yield from _paired(groups_a.pop(name, []), ones)
    for gone in groups_a.values():
        for one in gone:
            yield one, None


def _grouped(functions: Iterable[Counted]) -> dict[tuple[str, str], list[Counted]]:
    groups: dict[tuple[str, str], list[Counted]] = {}
    for one in functions:
        # JAX's own files change their lines and names with every release.
        place = "jax" if one.eager else one.key.place
        name = one.key.name if one.eager else one.key.qualname
        groups.setdefault((place, name), []).append(one)
    return groups


def _paired(a: list[Counted], b: list[Counted]) -> Iterator[Pair]:
    """Pair functions of one name, such as lambdas: in their order, or by the nearest line."""
    a, b = sorted(a, key=_line), sorted(b, key=_line)
    if len(a) == len(b):
        yield from zip(a, b, strict=True)
        return
    distances = sorted(
        (one.key.name != other.key.name, abs(_line(one) - _line(other)), i, j)
        for i, one in enumerate(a)
        for j, other in enumerate(b)
    )
    partner_of_a: dict[int, int] = {}
    partner_of_b: dict[int, int] = {}
    for *_, i, j in distances:
        if i not in partner_of_a and j not in partner_of_b:
            partner_of_a[i], partner_of_b[j] = j, i
    for j, other in enumerate(b):
        yield (a[partner_of_b[j]] if j in partner_of_b else None), other
    for i, one in enumerate(a):
        if i not in partner_of_a:
            yield one, None


def _line(one: Counted) -> int:
    return one.key.line
