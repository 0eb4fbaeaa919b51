"""The recompile map: which cases of a sweep share an executable, and what each new one costs."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.cache.experiments import children, subjects
from harness.declare import location
from harness.declare.workload import Case, Workload, name_of
from harness.records import environment

if TYPE_CHECKING:
    import pandas as pd

CHILD = "harness.cache.experiments.recompiles_child"

FIRST = "first call"


class Signature(msgspec.Struct, frozen=True):
    """What JAX looks an executable up by."""

    transform: str
    static: dict[str, str]
    pytree: str
    inputs: dict[str, dict[str, str]]
    """By the path of the input: its shape, dtype, weak type and device."""


class Call(msgspec.Struct):
    """What one call of a case did, and the same call in the second round."""

    signature: Signature
    steps_s: dict[str, float]
    events: dict[str, int]
    call_events: dict[str, int]
    fingerprint: str
    again_s: float
    again_events: dict[str, int]


class Entry(msgspec.Struct, frozen=True):
    """One case, called after all the cases before it."""

    case: str
    new_executable: bool
    shares_with: str | None
    """The earlier case whose executable it runs; None where it is new."""
    same_program_as: str | None
    """An earlier case for which XLA built the very same program: compiled again for nothing."""
    reason: str
    """What of the signature is new, against the earlier case that is most alike."""
    cost_s: float
    """Trace, lower and compile of what was new; 0 where nothing was."""
    steps_s: dict[str, float]
    again_s: float
    """The same call in the second round."""
    problem: str = ""
    """How the events contradict this; empty where they prove it."""


class Map(msgspec.Struct, frozen=True):
    """All cases of a workload, in the order in which one jitted function was called with them."""

    workload: str
    versions: dict[str, str]
    entries: list[Entry]


def recompiles(workload: type[Workload], cases: Sequence[Case]) -> Map:
    """Call one jitted function with all cases, twice, in a process of its own.

    The persistent cache is off: what is shared is shared in memory. Cases of another transform
    call another function, as `jax.grad(f)` is another function than `f`.

    Raises:
        ChildError: the process did not end well.
    """
    job = {
        "source": msgspec.to_builtins(location.locate(workload)),
        "cases": [subjects.position_of(workload, case) for case in cases],
    }
    variables = children.environment(workload, cases[0], None)
    with tempfile.TemporaryDirectory(prefix="harness-recompiles-") as name:
        timeout_s = workload.timeout_s * len(cases)
        answer = children.ask(CHILD, job, Path(name), variables, timeout_s)
    calls = msgspec.convert(answer, list[Call])
    labels = [case.label or "the only case" for case in cases]
    entries = [entry_of(labels, calls, position) for position in range(len(calls))]
    return Map(name_of(workload), environment.versions(), entries)


def entry_of(labels: list[str], calls: list[Call], position: int) -> Entry:
    """Return the entry of one call, which is held against all that went before it."""
    call = calls[position]
    new = bool(call.events.get("compile") or call.call_events.get("compile"))
    before = list(zip(labels[:position], calls[:position], strict=True))
    shares = next((name for name, other in before if other.signature == call.signature), None)
    twin = next(
        (
            name
            for name, other in before
            if call.fingerprint and other.fingerprint == call.fingerprint
        ),
        None,
    )
    differences = [difference(other.signature, call.signature) for _, other in before]
    nearest = min(differences, key=len, default=[FIRST])
    return Entry(
        case=labels[position],
        new_executable=new,
        shares_with=None if new else shares or twin,
        same_program_as=twin if new else None,
        reason="; ".join(nearest) if new else "",
        cost_s=sum(call.steps_s.values()) if new else 0.0,
        steps_s=call.steps_s if new else {},
        again_s=call.again_s,
        problem=_problem(call, new, shares),
    )


def _problem(call: Call, new: bool, shares: str | None) -> str:
    if call.again_events:
        return f"the second round was not free: events show {call.again_events}"
    if call.call_events:
        return f"the call did not run what was compiled for it: events show {call.call_events}"
    if new and shares:
        return f"{shares} has the same signature, and yet it was compiled again"
    return ""


def difference(old: Signature, new: Signature) -> list[str]:
    """Return what is new in a signature, as texts: `shape of [0]: (8,) → (16,)`."""
    found: list[str] = []
    if old.transform != new.transform:
        found.append(f"transform: {old.transform} → {new.transform}")
    for name in sorted(old.static | new.static):
        one, other = old.static.get(name), new.static.get(name)
        if one != other:
            found.append(f"static value of {name}: {one} → {other}")
    if old.pytree != new.pytree:
        found.append(f"pytree: {old.pytree} → {new.pytree}")
    for path in sorted(old.inputs.keys() & new.inputs.keys()):
        one_input, other_input = old.inputs[path], new.inputs[path]
        found += [
            f"{kind} of {path}: {one_input[kind]} → {other_input[kind]}"
            for kind in one_input
            if one_input[kind] != other_input[kind]
        ]
    return found


def frame(found: Map) -> pd.DataFrame:
    """Return a row per case, in the order of the calls."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for entry in found.entries:
        row = {"workload": found.workload, **msgspec.structs.asdict(entry)}
        steps_s = row.pop("steps_s")
        row |= {f"{step}_s": steps_s.get(step, 0.0) for step in ("trace", "lower", "compile")}
        rows.append(row)
    return pd.DataFrame(rows)
