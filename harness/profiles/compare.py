"""Compare two profiles: which function of one is which of the other, and how it changed.

A function that was renamed, or moved to another file, is one that is gone and one that is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pandas as pd

from harness.jaxhooks.events import Backend, Import
from harness.profiles.figures import Defect, damage
from harness.profiles.functions import COUNTS, SIZES, Counted, by_function
from harness.profiles.names import program_of, shortened
from harness.profiles.pieces import STAGES

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

NOT_KNOWN = "not recorded"

Status = Literal["changed", "new", "gone", "same"]


@dataclass(frozen=True)
class FunctionChange:
    """A function in two profiles."""

    function: Counted
    """As B has it; as A has it where B has none."""
    a: Counted
    b: Counted
    status: Status

    @property
    def gained(self) -> dict[tuple[str, str], int]:
        """By how much each cause's builds became more in B, or fewer (negative)."""
        keys = dict.fromkeys((*self.b.causes, *self.a.causes))
        gains = {key: self.b.causes.get(key, 0) - self.a.causes.get(key, 0) for key in keys}
        return {key: count for key, count in gains.items() if count}

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
    damage: tuple[tuple[str, Defect], ...]
    """What is not whole in one of them, `A` or `B`."""
    programs: tuple[str, str]
    """A's and B's."""
    machines: tuple[tuple[tuple[str, int], ...], ...]
    """A's and B's: names and numbers of cores."""

    @property
    def changed(self) -> list[FunctionChange]:
        """The functions that are not the same."""
        return [change for change in self.changes if change.status != "same"]


LONGEST = 200
"""Characters of a value that are shown."""

Pair = tuple[Counted | None, Counted | None]


def compare(a: Recorded, b: Recorded) -> ProfileDifference:
    """Compare two profiles.

    Functions are identified by file, relative to the program's folder, and qualified name; where
    several have one name, by the nearest line. Counts, causes, sizes of code and what `jax.jit` was
    given are compared exactly. Seconds are of one run each, have no error bar, and change nothing.
    """
    functions = by_function(a.builds), by_function(b.builds)
    by_name = tuple(map(_by_name, functions))
    changes = [
        _change(*pair, a, b)
        for name in dict.fromkeys((*by_name[1], *by_name[0]))
        for pair in _paired(*(side.get(name, []) for side in by_name))
    ]
    changes.sort(key=lambda change: change.weight)
    in_a, in_b = _totals(a, functions[0]), _totals(b, functions[1])
    totals = {name: (in_a[name], in_b[name]) for name in in_a}
    sides = (("A", a), ("B", b))
    return ProfileDifference(
        tuple(changes),
        totals,
        _facts(a, b),
        tuple((name, one) for name, profile in sides for one in damage(profile)),
        (program_of(a.command), program_of(b.command)),
        (_machines(a), _machines(b)),
    )


def _change(one: Counted | None, other: Counted | None, a: Recorded, b: Recorded) -> FunctionChange:
    shown = other or one
    assert shown is not None
    before, after = (side or Counted(shown.key, shown.function) for side in (one, other))
    for side, profile in ((before, a), (after, b)):
        for built in side.builds:
            cause = profile.cause_of(built)
            side.examples.setdefault((cause.kind, cause.argument), []).append((cause, built))
    exact = [(side.counts, side.causes, side.sizes, side.settings) for side in (before, after)]
    status: Status = "same" if exact[0] == exact[1] else "changed"
    if one is None or other is None:
        status = "new" if one is None else "gone"
    return FunctionChange(shown, before, after, status)


def _by_name(functions: Iterable[Counted]) -> dict[tuple[str, str], list[Counted]]:
    """Return functions by place and name, those of one name in the order of their lines."""
    groups: dict[tuple[str, str], list[Counted]] = {}
    for one in sorted(functions, key=lambda one: one.key.line):
        # JAX's own files change their lines and names with every release.
        name = ("jax", one.key.name) if one.eager else (one.key.place, one.key.qualname)
        groups.setdefault(name, []).append(one)
    return groups


def _paired(a: list[Counted], b: list[Counted]) -> Iterator[Pair]:
    """Pair functions of one name, such as lambdas: in their order, or by the nearest line."""
    if len(a) == len(b):
        yield from zip(a, b, strict=True)
        return
    distances = sorted(
        (one.key.name != other.key.name, abs(one.key.line - other.key.line), i, j)
        for i, one in enumerate(a)
        for j, other in enumerate(b)
    )
    taken: set[int] = set()
    partners: dict[int, Counted] = {}
    for *_, i, j in distances:
        if i not in taken and j not in partners:
            taken.add(i)
            partners[j] = a[i]
    yield from ((partners.get(j), other) for j, other in enumerate(b))
    yield from ((one, None) for i, one in enumerate(a) if i not in taken)


def _totals(profile: Recorded, functions: Sequence[Counted]) -> dict[str, float]:
    own = [one.counts for one in functions if not one.eager]
    seconds = [one.seconds for one in functions]
    if profile.run is not None and profile.run.end_ns:
        begin, end = profile.run.begin_ns, profile.run.end_ns
    else:
        begin = min((process.started.clock_ns for process in profile.processes), default=0)
        end = max((process.end_ns for process in profile.processes), default=0)
    return {
        "processes": len(profile.processes),
        "functions": len(own),
        **{name: sum(one[name] for one in own) for name in COUNTS},
        "eager programs": sum(one.requests for one in functions if one.eager),
        "code_bytes": sum(one.sizes["code_bytes"] for one in functions),
        **{f"{stage}_s": sum(one[stage] for one in seconds) for stage in STAGES},
        "wall_s": (end - begin) / 1e9,
    }


def _facts(a: Recorded, b: Recorded) -> dict[str, tuple[str, str]]:
    """Return what both were recorded with.

    A setting that JAX knows in one of the two only is left out; an environment variable that one
    of them lacks is `not set`.
    """
    one, other = _recorded_with(a), _recorded_with(b)
    names = dict.fromkeys((*one, *other))
    facts = {name: (one.get(name, NOT_KNOWN), other.get(name, NOT_KNOWN)) for name in names}
    one, other = _context(a), _context(b)
    if one and other:
        variables = {name for name in (*one, *other) if name.isupper()}
        for name in sorted((one.keys() & other.keys()) | variables):
            facts[name] = one.get(name) or "not set", other.get(name) or "not set"
    return facts


def _recorded_with(profile: Recorded) -> dict[str, str]:
    started = [process.started for process in profile.processes]
    facts = {
        "command": shortened(" ".join(profile.command), LONGEST),
        "python": _joined(one.python for one in started),
        "host": _joined(one.host for one in started),
        "cores": _joined(str(one.cpu_count) for one in started),
    }
    for process in profile.processes:
        for line in process.of(Import):
            facts.update(line.versions)
    if backends := [line for process in profile.processes for line in process.of(Backend)]:
        facts["backend"] = _joined(line.platform for line in backends)
        facts["devices"] = _joined(", ".join(line.devices) for line in backends)
    return facts


def _context(profile: Recorded) -> dict[str, str]:
    """Return JAX's settings; one that had several values has them all."""
    values: dict[str, list[str]] = {}
    for process in profile.processes:
        for settings in process.settings.values():
            for name, value in settings.context.items():
                values.setdefault(name, []).append(value)
    return {name: shortened(_joined(several), LONGEST) for name, several in values.items()}


def _joined(values: Iterable[str]) -> str:
    return " | ".join(sorted(set(values)))


def _machines(profile: Recorded) -> tuple[tuple[str, int], ...]:
    started = [process.started for process in profile.processes]
    return tuple(sorted({(one.host, one.cpu_count) for one in started}))


def numbers(side: Counted) -> dict[str, float]:
    """Return all counts, seconds and sizes of a side."""
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
            numbers(side)
            | {"causes": "; ".join(f"{n} {cause_name(*k)}" for k, n in causes.items())}
            for side, causes in ((change.a, change.a.causes), (change.b, change.b.causes))
        ]
        rows.append([*row, *(side[part] for part in parts for side in sides)])
    names = ["function", "name", "place", "line", "origin", "status"]
    names += [f"{side}_{part}" for part in parts for side in "ab"]
    return pd.DataFrame(rows, columns=names)


def cause_name(kind: str, argument: str) -> str:
    """Return a cause as a label: shape `x`."""
    return f"{kind} `{argument}`" if argument else kind
