"""Whether `harness compile` names the line and the part of a compile that a known cost is in.

    python -m tests.performance.planted_compiles [NAME ...]

The programs are those of tests/suites/planted. The line that is told first is that of the first
remedy that has one; without any, the first line of Python's calls while the dearer one of trace and
lower goes on. What is told to be dear is trace or lower where it takes longer than the compile;
else what the first remedy calls by name, and the group that most of the compile is in.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from typing import Any

from harness.declare import location
from tests.performance.command import options
from tests.sweeps import SUITES

FOLDER = SUITES / "planted"


def main() -> None:
    """Ask about every program, and print what is right."""
    given = options(__doc__, select=True)
    module = location.import_file("planted.costs", FOLDER / "costs.py")
    found = [one for one in vars(module).values() if inspect.isclass(one) and one.__doc__]
    planted = [one for one in found if issubclass(one, module.Planted) and one.inputs]
    chosen = [one for one in planted if not given.select or one.__name__ in given.select]
    right = [0, 0]
    for one in chosen:
        lines, first = inspect.getsourcelines(one)
        here = next(first + n for n, line in enumerate(lines) if line.endswith("# here\n"))
        told = _told(one.__name__)
        line, dear = first_line(told), what_is_dear(told)
        marks = (line == here, one.costs in dear)
        right = [count + mark for count, mark in zip(right, marks, strict=True)]
        said = " and ".join(dear)
        print(
            f"{'right' if marks[0] else 'WRONG'} line {line} ({here}), "
            f"{'right' if marks[1] else 'WRONG'}: {said} ({one.costs}) · {one.__name__}",
            flush=True,
        )
    print(f"{len(chosen)} programs: the line is right in {right[0]}, what is dear in {right[1]}")


def _told(name: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "harness", "compile", f"^costs.{name}$", "--format", "json"]
    command += ["--benchmarks", str(FOLDER)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def seconds(stage: dict[str, Any]) -> float:
    """Return what trace or lower takes."""
    return float(stage["tree"]["wall_s"])


def first_line(told: dict[str, Any]) -> int:
    """Return the line that a reader is told first."""
    for remedy in told["remedies"]:
        if remedy["line"]:
            return int(remedy["line"].rpartition(":")[2])
    dearer = max(told["python"], key=seconds)
    return int(max(dearer["lines"], key=lambda one: one["calls"], default={"line": 0})["line"])


def what_is_dear(told: dict[str, Any]) -> list[str]:
    """Return what a reader is told to be dear."""
    dearer = max(told["python"], key=seconds)
    if seconds(dearer) > told["wall_s"]:
        return [dearer["stage"]]
    group = max(told["groups"], key=lambda one: one["wall_s"])
    causes = ["constants" for one in told["remedies"] if one["cause"].startswith("constants")]
    text = f"{group['name']}: {group['part']}" if group["part"] else group["name"]
    return [*causes, text]


if __name__ == "__main__":
    main()
