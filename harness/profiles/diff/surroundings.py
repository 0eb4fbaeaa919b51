"""What two profiles were recorded with, their totals, and what makes them hard to compare."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.profiles.diff.difference import NOT_KNOWN, Fact, Total
from harness.profiles.functions import Counted
from harness.profiles.names import program_of, shortened
from harness.profiles.pieces import STAGES
from harness.profiles.recorded import Recorded
from harness.watch.events import Backend, Import

LONGEST = 200
"""Characters of a value that are shown."""


def totals(
    a: Recorded, functions_a: Sequence[Counted], b: Recorded, functions_b: Sequence[Counted]
) -> tuple[Total, ...]:
    """Return counts, bytes and seconds of everything together."""
    sides = _totals(a, functions_a), _totals(b, functions_b)
    return tuple(Total(name, sides[0][name], sides[1][name]) for name in sides[0])


def _totals(profile: Recorded, functions: Sequence[Counted]) -> dict[str, float]:
    own = [one for one in functions if not one.eager]
    found: dict[str, float] = {
        "processes": len(profile.processes),
        "functions": len(own),
        "builds": sum(len(one.builds) for one in own),
        "traces": sum(one.traces for one in own),
        "lowers": sum(one.lowers for one in own),
        "compiles": sum(one.compiles for one in own),
        "loads": sum(one.loads for one in own),
        "eager programs": sum(one.requests for one in functions if one.eager),
        "code_bytes": sum(one.code_bytes for one in functions),
    }
    for stage in STAGES:
        found[f"{stage}_s"] = sum(one.seconds(stage) for one in functions)
    return found | {"wall_s": _wall_s(profile)}


def _wall_s(profile: Recorded) -> float:
    if profile.run is not None and profile.run.end_ns:
        return (profile.run.end_ns - profile.run.begin_ns) / 1e9
    begin = min((process.started.clock_ns for process in profile.processes), default=0)
    return (max((process.end_ns for process in profile.processes), default=0) - begin) / 1e9


def facts(a: Recorded, b: Recorded) -> tuple[Fact, ...]:
    """Return what both were recorded with.

    A setting that had several values in a profile has them all, separated by `|`. One that JAX
    knows in one of the two only is left out, and an environment variable is `not set`.
    """
    sides = _facts(a), _facts(b)
    names = list(dict.fromkeys((*sides[0], *sides[1])))
    found = [Fact(name, *(side.get(name, NOT_KNOWN) for side in sides)) for name in names]
    context = [_context(profile) for profile in (a, b)]
    if all(context):
        either, both = context[0].keys() | context[1].keys(), context[0].keys() & context[1].keys()
        for name in sorted(both | {name for name in either if name.isupper()}):
            found.append(Fact(name, *(side.get(name) or "not set" for side in context)))
    return tuple(found)


def _facts(profile: Recorded) -> dict[str, str]:
    started = [process.started for process in profile.processes]
    found = {"command": shortened(" ".join(profile.command), LONGEST)}
    for name, values in (
        ("python", [one.python for one in started]),
        ("host", [one.host for one in started]),
        ("cores", [str(one.cpu_count) for one in started]),
    ):
        found[name] = _joined(values)
    for process in profile.processes:
        for line in process.of(Import):
            found.update(line.versions)
    backends = [line for process in profile.processes for line in process.of(Backend)]
    if backends:
        found["backend"] = _joined(line.platform for line in backends)
        found["devices"] = _joined(", ".join(line.devices) for line in backends)
    return found


def _context(profile: Recorded) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for process in profile.processes:
        for settings in process.settings.values():
            for name, value in settings.context.items():
                values.setdefault(name, []).append(value)
    return {name: shortened(_joined(found), LONGEST) for name, found in values.items()}


def _joined(values: Iterable[str]) -> str:
    return " | ".join(sorted(set(values)))


def _program(profile: Recorded) -> str:
    return program_of(profile.command)


def warnings(a: Recorded, b: Recorded) -> tuple[str, ...]:
    """Return what makes two profiles hard to compare, a sentence each."""
    found = []
    for name, profile in (("A", a), ("B", b)):
        cut = sum(process.ended is None for process in profile.processes)
        if cut:
            found.append(
                f"{name} is not whole: {cut} of its {len(profile.processes)} processes did not end "
                "their log (killed, or still running)."
            )
        if profile.broken_lines:
            found.append(f"{name} has {profile.broken_lines} lines that could not be read.")
    if _program(a) != _program(b):
        found.append(
            f"Two programs: A is {shortened(_program(a), 60) or 'unknown'}, "
            f"B {shortened(_program(b), 60) or 'unknown'}."
        )
    machines = [
        {(one.started.host, one.started.cpu_count) for one in profile.processes}
        for profile in (a, b)
    ]
    if machines[0] != machines[1]:
        shown = (
            ", ".join(f"{host} ({cores} cores)" for host, cores in sorted(side))
            for side in machines
        )
        found.append("Two machines: A {}, B {}. Seconds say little.".format(*shown))
    return tuple(found)
