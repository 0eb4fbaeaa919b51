"""Whether `harness compile` names the line and the part of a compile that a known cost is in.

    python -m tools.performance.planted_compiles [NAME ...]

The programs are those of tests/suites/planted. The line that is told first is that of the first
cause that has one; without any, the first line of Python's calls while the dearer one of trace and
lower goes on. What is told to be dear is trace or lower where it takes longer than the compile;
else constants, where they are a cause, and the group that most of the compile is in. Where a
remedy was tried, it says what that saved, and whether that is what was predicted.
"""

import inspect
import json
from collections import defaultdict
from statistics import median
from typing import Any

import msgspec

from harness.program.compiler.causes import CompileCause
from harness.program.compiler.tree import REST
from harness.workload import location
from tests.sweeps import SUITES
from tools.performance.command import HARNESS, options, took

FOLDER = SUITES / "planted"

NEAR = 0.2
"""A remedy's prediction is right where its share of the compile differs by no more of the other."""


def main() -> None:
    given = options(__doc__, select=True)
    right = [0, 0]
    tried: list[bool] = []
    predicted: list[float] = []
    chosen = [one for one in planted() if not given.select or one.__name__ in given.select]
    for one in chosen:
        lines, first = inspect.getsourcelines(one)
        here = next(first + n for n, line in enumerate(lines) if line.endswith("# here\n"))
        for target in one.targets:
            told = _told(one, target)
            for cause in msgspec.convert(told["causes"], list[CompileCause]):
                trial = cause.trial
                if trial is None or trial.saved_s is None:
                    continue
                tried.append(cause.worth_s(told["wall_s"]) > 0)
                saved = trial.saved_s / median(trial.before_s)
                said = f"{median(trial.before_s):.3f} s, {saved:.0%} saved"
                if cause.cost_s is not None:
                    predicted.append(cause.cost_s / told["wall_s"] / saved)
                    said += f", {cause.cost_s / told['wall_s']:.0%} predicted"
                said += ", within the noise" * trial.is_noise
                print(f"  {one.__name__} {target}: {said}: {cause.kind}")
            if target != "cpu":
                continue
            line, dear = first_line(told), what_is_dear(told)
            marks = (line == here, one.costs in dear)
            right = [count + mark for count, mark in zip(right, marks, strict=True)]
            print(
                f"{'right' if marks[0] else 'WRONG'} line {line} ({here}), "
                f"{'right' if marks[1] else 'WRONG'}: {' and '.join(dear)} ({one.costs}) · "
                f"{one.__name__}",
                flush=True,
            )
    near = sum(1 / (1 + NEAR) <= each <= 1 + NEAR for each in predicted)
    print(
        f"{len(chosen)} programs: the line is right in {right[0]}, what is dear in {right[1]}; "
        f"{len(tried)} remedies were tried, {sum(tried)} saved something; of {len(predicted)} of "
        f"which it was predicted how much, {near} did within 20 %"
    )


def planted() -> list[Any]:
    """Return the workloads of the folder that have a known cost."""
    found = []
    for file in sorted(FOLDER.glob("*.py")):
        module = location.import_file(f"planted.{file.stem}", file)
        found += [one for one in vars(module).values() if inspect.isclass(one)]
    return [one for one in found if hasattr(one, "costs") and "function" in vars(one)]


def _told(one: Any, target: str) -> dict[str, Any]:
    name = f"^{one.__module__.partition('.')[2]}.{one.__name__}$"
    where = ["--benchmarks", FOLDER, "--target", target]
    return json.loads(took([*HARNESS, "compile", name, "--format", "json", *where]).out)


def seconds(stage: dict[str, Any]) -> float:
    """Return what trace or lower takes."""
    return float(stage["tree"]["wall_s"])


def first_line(told: dict[str, Any]) -> int:
    """Return the line that a reader is told first."""
    for cause in msgspec.convert(told["causes"], list[CompileCause]):
        if cause.place is not None:
            return cause.place.line
    dearer = max(told["python"], key=seconds)
    return int(max(dearer["lines"], key=lambda one: one["calls"], default={"line": 0})["line"])


def what_is_dear(told: dict[str, Any]) -> list[str]:
    """Return what a reader is told to be dear."""
    dearer = max(told["python"], key=seconds)
    if seconds(dearer) > told["wall_s"]:
        return [dearer["stage"]]
    groups: dict[str, float] = defaultdict(float)
    for one in told["groups"]:
        groups[one["name"]] += one["wall_s"] * (one["name"] != REST)
    causes = ["constants" for one in told["causes"] if one["kind"] == "constants"]
    return [*causes, max(groups, key=groups.__getitem__)]


if __name__ == "__main__":
    main()
