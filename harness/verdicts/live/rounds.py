"""Rounds: in each both arms are measured once, in random order, in processes of their own.

How they are measured, whether the arms differ in them as they were meant to, when they are looked
at, and how far a comparison is, as its folder says.
"""

from __future__ import annotations

import ast
import functools
import json
import math
import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from scipy import special

from harness.errors import HarnessError
from harness.frame.frame import INSTRUMENTS
from harness.frame.ratios import CONFIDENCE, LEAST_PROCESSES
from harness.measure.child import Child
from harness.records import environment, files
from harness.records.json_file import Count, Milliseconds
from harness.records.schema import Record
from harness.records.store import Store, record_files
from harness.stages.sampling import Effort
from harness.verdicts.live.arm import LiveArm, PreparedArm
from harness.verdicts.rules import SAME_WITHIN
from harness.workload.code import project_differences
from harness.workload.filters import Filters

FIRST = 4
"""Rounds before the first look at the clocks; then after every as many again. With fewer rounds
hardly any p is small enough for a family of rows, and no interval narrow enough. What is proven is
seen after one."""

Problem = tuple[str, ...]
"""A code for what is wrong with the difference between two arms, and what belongs to it."""

STATE = f"live{files.OWN}"
"""The file of a comparison's folder that says how far it is."""


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
    time_s: float | None = None
    """How long the rounds may take together; None for as long as they do."""


class Worker:
    """One side's process that measures; see :mod:`harness.measure.in_turns`.

    Raises:
        HarnessError: the arm cannot be measured; the text says which, and why.
    """

    def __init__(self, place: PreparedArm, letter: str, options: LiveOptions) -> None:
        self._name = f"{letter} ({place.arm.text})"
        arm, chosen = place.arm, options.filters
        command = [arm.python, "-m", "harness.measure.in_turns"]
        self._child = Child(command, place.environment, cwd=place.folder)
        self._lines = self._child.lines()
        job = {
            "benchmarks": str(place.benchmarks),
            "machine": options.machine,
            "passes": options.effort.passes,
            "select": chosen.select,
            "case": chosen.case,
            "target": [arm.target] if arm.target else chosen.target,
            "scenario": [arm.scenario] if arm.scenario else chosen.scenario,
        }
        self._child.send(json.dumps(job).encode())

    def begin(self) -> None:
        """Wait until it has found its workloads."""
        self._answer()

    def ask(self, asked: Mapping[str, Any]) -> Any:
        """Send what is to be done, and return what comes back once it is."""
        self._child.send(json.dumps(asked).encode())
        return self._answer()

    def _answer(self) -> Any:
        line = next(self._lines, b"")
        if not line:
            last = self._child.output[-1] if self._child.output else self._child.how
            raise self.failure(last)
        answer = json.loads(line)
        if "error" in answer:
            raise self.failure(answer["error"])
        return answer

    def failure(self, why: str) -> HarnessError:
        """Return the error that says why the arm cannot be measured."""
        return HarnessError(f"Arm {self._name} cannot be measured: {why.rstrip('.')}.")

    def end(self) -> None:
        """End it, and all that it has started."""
        self._child.__exit__()


def measure_round(
    workers: Sequence[Worker],
    only: Sequence[str],
    number: int,
    seed: int,
    folder: Path,
    on_arm: Callable[[int, int], None],
) -> tuple[list[Record], list[Record]]:
    """Measure both arms once, in random order, and return the records of each.

    `only` are the names of the workloads, all without any. Records are written to `folder`, by arm,
    and what stands there is removed. `on_arm` is told the turn, 0 or 1, and the side, 0 for A.
    """
    rng = random.Random(f"{seed}#{number}")
    order = [0, 1]
    rng.shuffle(order)
    visits = rng.getrandbits(31)
    shutil.rmtree(folder, ignore_errors=True)
    for turn, side in enumerate(order):
        on_arm(turn, side)
        results = (folder / "ab"[side]).resolve()
        workers[side].ask({"results": str(results), "only": list(only), "seed": visits})
        measured = round_records(folder, number)[side]
        if number == 1 and all(record.status != "ok" for record in measured):
            reasons = (record.reason for record in measured if record.reason)
            raise workers[side].failure(next(reasons, "nothing was measured"))
    return round_records(folder, number)


def round_records(folder: Path, number: int) -> tuple[list[Record], list[Record]]:
    """Return the records of a round, of each arm; their replicates are named by it."""
    a, b = (
        [
            msgspec.structs.replace(r, replicate=f"{r.replicate.rpartition('#')[0]}#{number}")
            for file in record_files(folder / letter)
            for r in Store(file).read()
        ]
        for letter in "ab"
    )
    return a, b


def difference_problems(
    arms: Sequence[LiveArm], records: Sequence[Sequence[Record]]
) -> Iterator[Problem]:
    """Yield what is wrong with the difference between two arms, from the records of one round.

    `variable`: one, with its value, did not reach JAX in an arm, which had another; `identical`:
    they differ in nothing that is recorded; `programs`: their flags differ, and no program does.
    """
    measured = [[record for record in of_arm if record.status == "ok"] for of_arm in records]
    for letter, arm, of_arm in zip("AB", arms, measured, strict=True):
        seen = [msgspec.json.decode(record.environment).get("flags", {}) for record in of_arm]
        for name, value in arm.variables.items():
            wrong = [flags.get(name) for flags in seen if flags.get(name) != value]
            if environment.is_flag(name) and wrong:
                yield "variable", name, value, letter, wrong[0] or ""
    first, second = map(_recorded, measured)
    if first == second:
        yield ("identical",)
    elif {about for about, _ in first} == {about for about, _ in second} and (
        _programs(measured[0]) == _programs(measured[1])
    ):
        yield ("programs",)


def _recorded(records: Sequence[Record]) -> set[tuple[str, str]]:
    """Return what tells apart where records were taken, and their flags."""
    places = set()
    for record in records:
        if record.workload not in INSTRUMENTS:
            about = msgspec.json.decode(record.environment)
            flags = sorted(about.pop("flags", {}).items())
            place = record.commit, record.dirty, record.target, record.scenario
            places.add((repr((place, sorted(about.items()))), repr(flags)))
    return places


def _programs(records: Sequence[Record]) -> set[tuple[str, str]]:
    return {
        (repr((r.workload, r.axes, r.transform, r.precision)), r.fingerprint)
        for r in records
        if r.workload not in INSTRUMENTS
    }


def with_equal_code(
    records: tuple[list[Record], list[Record]], trees: Sequence[Path]
) -> tuple[list[Record], list[Record]]:
    """Return the records of both arms, those of B with A's code where it means the same.

    Files of the project that differ in comments and layout at most run alike.
    """
    a, b = records
    before = {name: value for record in a for name, value in record.code.items()}

    def like_a(name: str, value: str) -> str:
        other = before.get(name, value)
        if other == value or not name.startswith("./") or not name.endswith(".py"):
            return value
        entries = ({name: other}, {name: value})
        stale = any(map(project_differences, entries, trees))
        one, two = (tree / name for tree in trees)
        return value if stale or _syntax(one) != _syntax(two) else other

    return a, [
        msgspec.structs.replace(r, code={name: like_a(name, r.code[name]) for name in r.code})
        for r in b
    ]


@functools.cache
def _syntax(file: Path) -> str:
    """Return what Python makes of a file; its own path where that is nothing."""
    try:
        return ast.dump(ast.parse(file.read_bytes()))
    except (OSError, SyntaxError, ValueError):
        return str(file)


def next_look(done: int, limit: int) -> int:
    """Return after how many rounds to look next; none stands just before the limit.

    The first is after one round, for what is proven.
    """
    if not done:
        return 1
    following = done + FIRST if done >= FIRST else FIRST
    return following if limit - following >= FIRST / 2 else limit


def share(looks: Sequence[float]) -> float:
    """Return which part of the error the last of several looks may make.

    Once a part t of the rounds, or of the time, that there may be is used, a part t² of the error
    is spent, and a look may make what was added since the one before it: more, the more it knows.
    Whenever and however often one looks, all looks together make no more errors than one would;
    nothing is assumed of how they depend on each other. The function is that of K. Kim and D. L.
    DeMets, Biometrika 74 (1987) 149-154, with the power 2.

    `looks` are the parts that were used at each look, the last one now.
    """
    before = looks[-2] if len(looks) > 1 else 0.0
    return looks[-1] * looks[-1] - before * before


def may_be_decided(
    low: float, high: float, effect: float, rounds: int, looks: Sequence[float]
) -> bool:
    """Tell whether the rounds that are left may decide a row of which the clock is unsure.

    `low` to `high` is its interval after so many rounds. At the last look it is narrower, by the
    rounds and by the error that there is then, and a change may be a standard error larger. What no
    such interval decides is as unsure after all rounds as it is now.
    """
    if rounds < LEAST_PROCESSES or not 0 < low <= high < math.inf or looks[-1] >= 1:
        return True
    last = rounds / looks[-1]
    middle, half = math.log(low * high) / 2, math.log(high / low) / 2
    error = half / _quantile(rounds, share(looks))
    half = error * math.sqrt(rounds / last) * _quantile(last, share([*looks, 1.0]))
    counts, ends = math.log1p(effect), math.log1p(SAME_WITHIN * effect)
    near, far = abs(middle), abs(middle) + error
    return (near < counts and near + half <= ends) or (far >= counts and far > half)


def _quantile(rounds: float, part: float) -> float:
    """Return how many standard errors the interval of pairs reaches to either side."""
    return -float(special.stdtrit(rounds - 1, (1 - CONFIDENCE) * part / 2))


class LiveState(msgspec.Struct):
    """How far a live comparison is: one JSON file, replaced after every round."""

    asked: str
    """Digest of what is compared and how."""
    seed: int
    begun_ms: Milliseconds
    rounds: Count = 0
    """That both arms have finished."""
    looks: list[float] = msgspec.field(default_factory=list)
    """The part of the rounds or of the time that was used at each look at the clocks."""
    open: dict[str, int] = msgspec.field(default_factory=dict)
    """How many rows were open at the last look, by workload."""
    ended: bool = False
    spent_s: float = 0.0
    """How long its rounds took."""
    schema: int = 0
