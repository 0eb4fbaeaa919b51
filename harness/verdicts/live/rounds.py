"""A round: both arms are measured once, in random order, each in processes of its own."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.declare.filters import Filters
from harness.engine.child import Child
from harness.errors import HarnessError
from harness.records import environment
from harness.records.schema import Record
from harness.records.store import Store, record_files
from harness.stages.sampling import Effort
from harness.verdicts.live.arm import PreparedArm

_GOOD = (0, 3)
"""Exit codes of `harness run` after which there are records: fine, and some cases failed."""


@dataclass(frozen=True)
class LiveOptions:
    """How a live comparison is run."""

    effort: Effort
    """`limit` is the most rounds there may be."""
    benchmarks: Path = Path("benchmarks")
    filters: Filters = field(default_factory=Filters)
    """Targets and scenarios are for an arm that names none of its own, and none means each
    workload's own; stages are those whose rows are shown."""
    seed: int | None = None
    """Of the order of arms and of visits; None for one by chance."""
    machine: str = field(default_factory=environment.machine_name)


def measure_round(
    places: Sequence[PreparedArm],
    options: LiveOptions,
    select: Sequence[str],
    number: int,
    seed: int,
    folder: Path,
    on_arm: Callable[[int, int], None],
) -> tuple[list[Record], list[Record]]:
    """Measure both arms once, in random order, and return the records of each.

    Their processes run at `places`; `select` are regular expressions of the workloads. Records are
    written to `folder`, by arm, and what stands there is removed. `on_arm` is told the turn, 0 or
    1, and the side, 0 for A.
    """
    rng = random.Random(f"{seed}#{number}")
    order = [0, 1]
    rng.shuffle(order)
    visits = rng.getrandbits(31)
    shutil.rmtree(folder, ignore_errors=True)
    for turn, side in enumerate(order):
        place, letter = places[side], "AB"[side]
        on_arm(turn, side)
        results = folder / letter.lower()
        reason = _measure(place, options, select, results, visits)
        measured = _read(results, number)
        if not reason and number == 1 and all(r.status != "ok" for r in measured):
            reasons = [record.reason for record in measured if record.reason]
            reason = reasons[0] if reasons else "nothing was measured"
        if reason:
            reason = reason.removeprefix("harness: ").rstrip(".")
            raise HarnessError(f"Arm {letter} ({place.arm.text}) cannot be measured: {reason}.")
    return round_records(folder, number)


def round_records(folder: Path, number: int) -> tuple[list[Record], list[Record]]:
    """Return the records of a round that was measured, of each arm."""
    return _read(folder / "a", number), _read(folder / "b", number)


def _measure(
    place: PreparedArm, options: LiveOptions, select: Sequence[str], results: Path, seed: int
) -> str:
    """Measure an arm once, and return why it could not be: `harness run`, a process a workload."""
    arm = place.arm
    command = [arm.python, "-m", "harness", "run", "--fresh"]
    command += ["--effort", f"1x{options.effort.passes}", "--seed", str(seed)]
    command += ["--results", str(results.resolve()), "--machine", options.machine]
    command += ["--benchmarks", str(place.benchmarks)]
    command += [word for case in options.filters.case for word in ("--case", case)]
    for option, own, common in (
        ("--target", arm.target, options.filters.target),
        ("--scenario", arm.scenario, options.filters.scenario),
    ):
        command += [word for name in ([own] if own else common) for word in (option, name)]
    command += ["--", *select]
    with Child(command, place.environment, cwd=place.folder, kept=True) as child:
        code = child.wait()
    if code in _GOOD:
        return ""
    said = [line for line in child.output if line.startswith("harness: ")] or child.output
    return said[-1] if said else child.how


def _read(results: Path, number: int) -> list[Record]:
    """Return the records of a round, their replicates named by it."""
    return [
        msgspec.structs.replace(r, replicate=f"{r.replicate.rpartition('#')[0]}#{number}")
        for file in record_files(results)
        for r in Store(file).read()
    ]
