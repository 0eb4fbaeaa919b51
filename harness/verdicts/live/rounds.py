"""Rounds: in each, both arms are measured once, in random order, each in processes of its own."""

from __future__ import annotations

import contextlib
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness.engine.child import Child
from harness.engine.state import Progress
from harness.errors import HarnessError, HarnessWarning
from harness.frame.frame import INSTRUMENTS
from harness.records import environment
from harness.records.schema import Record
from harness.records.store import Store, record_files
from harness.stages.sampling import Effort
from harness.verdicts.live.arm import LiveArm, PreparedArm, prepared

_GOOD = (0, 3)
"""Exit codes of `harness run` after which there are records: fine, and some cases failed."""

_PATIENCE_S = 10.0


@dataclass(frozen=True)
class LiveOptions:
    """How a live comparison is run."""

    effort: Effort
    """`processes` is the number of rounds."""
    benchmarks: Path = Path("benchmarks")
    select: Sequence[str] = ()
    """Regular expressions for the names of workloads."""
    cases: Sequence[str] = ()
    """AXIS=VALUE, as for `harness run --case`."""
    targets: Sequence[str] = ()
    scenarios: Sequence[str] = ()
    """Both for an arm that names none of its own; none means each workload's own."""
    seed: int = 0
    """Of the order of arms and of visits."""
    folder: Path | None = None
    """Where the records are kept, by round and arm; None throws them away."""
    machine: str = field(default_factory=environment.machine_name)


def run_live(
    arms: tuple[LiveArm, LiveArm],
    options: LiveOptions,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> tuple[list[Record], list[Record]]:
    """Measure two arms in turns and return their records; replicates are named by round.

    Ctrl-C ends it with the rounds that both arms have finished, and a warning; without any, it is
    raised again.

    Args:
        arms: what is measured (:func:`harness.verdicts.live.arm.parse`).
        options: how.
        on_progress: is told of every arm of every round.

    Raises:
        UsageError: there is no such commit.
        HarnessError: an arm cannot be measured; the text says which, and why.

    Warns:
        HarnessWarning: nothing that is recorded differs between the arms, a variable did not
            reach JAX, other flags made the same programs, or it was stopped.
    """
    records: tuple[list[Record], list[Record]] = ([], [])
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="harness-live-"))
        folder = options.folder or Path(scratch)
        places = [stack.enter_context(prepared(arm, options.benchmarks)) for arm in arms]
        finished = 0
        try:
            for number, of_round in _rounds(places, options, folder, on_progress):
                for kept, new in zip(records, of_round, strict=True):
                    kept += new
                if not finished:
                    for problem in difference_problems(arms, of_round):
                        warnings.warn(problem, HarnessWarning, stacklevel=2)
                finished = number
        except KeyboardInterrupt:
            if not finished:
                raise
            text = f"stopped: {finished} of {options.effort.processes} rounds are compared"
            warnings.warn(text, HarnessWarning, stacklevel=2)
    return records


def _rounds(
    places: Sequence[PreparedArm],
    options: LiveOptions,
    folder: Path,
    on_progress: Callable[[Progress], None],
) -> Iterator[tuple[int, list[list[Record]]]]:
    """Yield the number of a round, from 1, and the records of both arms."""
    rng = random.Random(options.seed)
    rounds = options.effort.processes
    for number in range(1, rounds + 1):
        order = [0, 1]
        rng.shuffle(order)
        seed = rng.getrandbits(31)
        records: list[list[Record]] = [[], []]
        for turn, side in enumerate(order):
            place, letter = places[side], "AB"[side]
            done = 2 * (number - 1) + turn
            label = f"round {number}"
            on_progress(Progress(label, letter, place.arm.text, number - 1, done, 2 * rounds))
            results = folder / f"round-{number}" / letter.lower()
            reason = _measure(place, options, results, seed)
            records[side] = _read(results, number)
            if not reason and number == 1 and all(r.status != "ok" for r in records[side]):
                reasons = [record.reason for record in records[side] if record.reason]
                reason = reasons[0] if reasons else "nothing was measured"
            if reason:
                reason = reason.removeprefix("harness: ").rstrip(".")
                raise HarnessError(f"Arm {letter} ({place.arm.text}) cannot be measured: {reason}.")
        on_progress(Progress(label, "", "done", number - 1, 2 * number, 2 * rounds))
        yield number, records


def _measure(place: PreparedArm, options: LiveOptions, results: Path, seed: int) -> str:
    """Measure an arm once, and return why it could not be: `harness run`, a process a workload."""
    arm = place.arm
    command = [arm.python, "-m", "harness", "run", "--fresh"]
    command += ["--effort", f"1x{options.effort.passes}", "--seed", str(seed)]
    command += ["--results", str(results.resolve()), "--machine", options.machine]
    command += ["--benchmarks", str(place.benchmarks)]
    command += [word for case in options.cases for word in ("--case", case)]
    for option, own, common in (
        ("--target", arm.target, options.targets),
        ("--scenario", arm.scenario, options.scenarios),
    ):
        command += [word for name in ([own] if own else common) for word in (option, name)]
    command += ["--", *options.select]
    with Child(command, place.environment, cwd=place.folder, patience_s=_PATIENCE_S) as child:
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


def difference_problems(
    arms: Sequence[LiveArm], records: Sequence[Sequence[Record]]
) -> Iterator[str]:
    """Yield what is wrong with the difference between two arms, from the records of one round.

    Arms may differ in nothing, or in what did not reach JAX, or changed no program.
    """
    measured = [[record for record in of_arm if record.status == "ok"] for of_arm in records]
    for letter, arm, of_arm in zip("AB", arms, measured, strict=True):
        yield from _unreached(letter, arm, of_arm)
    first, second = map(_recorded, measured)
    if first == second:
        yield (
            "both arms are identical: the same commit and working tree, and nothing that is "
            "recorded of their environments differs"
        )
    elif _without_flags(first) == _without_flags(second) and (
        _programs(measured[0]) == _programs(measured[1])
    ):
        yield "the arms' flags differ, but XLA built the same program for every case"


def _unreached(letter: str, arm: LiveArm, records: Sequence[Record]) -> Iterator[str]:
    """Yield which of an arm's variables its processes did not see as they were set."""
    seen = [msgspec.json.decode(record.environment).get("flags", {}) for record in records]
    for name, value in arm.variables.items():
        wrong = [flags.get(name) for flags in seen if flags.get(name) != value]
        if environment.is_flag(name) and wrong:
            yield f"{name}={value} did not reach JAX in arm {letter}: it found {wrong[0]!r}"


def _recorded(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return what tells apart where records were taken, each once."""
    places: list[dict[str, Any]] = []
    for record in records:
        place = {name: getattr(record, name) for name in ("commit", "dirty", "target", "scenario")}
        place["environment"] = msgspec.json.decode(record.environment)
        if record.workload not in INSTRUMENTS and place not in places:
            places.append(place)
    return sorted(places, key=repr)


def _without_flags(places: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**place, "environment": {**place["environment"], "flags": {}}} for place in places]


def _programs(records: Sequence[Record]) -> set[tuple[str, str]]:
    return {
        (repr((r.workload, r.axes, r.transform, r.precision)), r.fingerprint)
        for r in records
        if r.workload not in INSTRUMENTS
    }
