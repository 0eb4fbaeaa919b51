"""Measure other people's programs with the harness and with a script that knows nothing of it.

    python -m tools.corpus --checkouts FOLDER [SOURCE ...] [--select REGEX] [--processes 5]

FOLDER holds checkouts of npbench, pyhpc-benchmarks and JAX (as jax-benchmarks). In each round every
program is measured by one process of the harness and by one process a size of the script, one after
the other, in random order. The same command goes on where it was stopped.
"""

import argparse
import importlib.metadata
import json
import math
import os
import platform
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness import Workload
from harness.measure.context import Options, local_context
from harness.measure.sweep import sweep
from harness.stages.sampling import effort
from harness.workload.location import import_file
from harness.workload.workload import name_of
from tools.corpus.programs.program import FOLDER
from tools.corpus.table import compared, markdown, write_below

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCES = ("npbench", "pyhpc", "jax_own", "libraries")
MARK = "--markdown docs/foreign-programs.md -->\n"
BATCH = 8
"""So many programs the harness measures in one sweep, before or after the script does."""

MOST_BYTES = 2 * 2**30
"""A program that needs more memory than this is left out."""

SURROUNDINGS = {
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_COMPILATION_CACHE": "0",
    "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
}
"""Both measure on the CPU with the persistent cache off, and find this folder."""


class Script:
    """The samples of the independent script, by round and program, kept in a file."""

    def __init__(self, file: Path, passes: int, limit_s: float) -> None:
        self.file, self.passes, self.limit_s = file, passes, limit_s
        lines = file.read_text().splitlines() if file.exists() else []
        self.samples: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def left_out(self) -> dict[tuple[str, str], str]:
        """Return why programs are not measured, by name and size."""
        out = (one for one in self.samples if "left_out" in one)
        return {(one["program"], one["size"]): one["left_out"] for one in out}

    def measure(self, number: int, name: str, size: str) -> None:
        """Start a process for a sample, unless the round has it."""
        key = {"round": number, "program": name, "size": size}
        if any(key.items() <= one.items() for one in self.samples):
            return
        self.samples.append({**key, **self._answer(name, size)})
        with self.file.open("a") as file:
            file.write(json.dumps(self.samples[-1]) + "\n")

    def _answer(self, name: str, size: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "tools.corpus.independent", *name.split("."), size]
        command += ["--passes", str(self.passes)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.limit_s)
        except subprocess.TimeoutExpired:
            return {"left_out": f"its process takes more than {self.limit_s:g} s"}
        if done.returncode:
            return {"left_out": (done.stderr.strip().splitlines() or ["no text"])[-1]}
        answer: dict[str, Any] = json.loads(done.stdout)
        if answer["bytes"] > MOST_BYTES:
            return {"left_out": f"it needs {answer['bytes'] / 2**30:.1f} GiB"}
        return answer


def by_script(batch: list[Any], number: int, script: Script) -> None:
    """Measure programs once by the script, at each of their sizes."""
    for workload in batch:
        for size in workload.sweep["size"]:
            if (name_of(workload), size) not in script.left_out():
                script.measure(number, name_of(workload), size)


def by_harness(batch: list[Any], number: int, script: Script, results: Path) -> None:
    """Measure programs in one process of the harness each, but for what the script leaves out."""
    context = local_context(results, HERE, night=f"round-{number}")
    out: dict[tuple[str, ...], list[Any]] = {}
    for workload in batch:
        sizes = (size for name, size in script.left_out() if name == name_of(workload))
        out.setdefault(tuple(sorted(sizes)), []).append(workload)
    for sizes, alike in out.items():
        options = Options(
            effort(f"1x{script.passes}"),
            keep=lambda case, sizes=sizes: case.axes["size"] not in sizes,
            first_calls=1,
            seed=number,
        )
        sweep(alike, context, options)


def measure(chosen: list[Any], script: Script, results: Path, rounds: int, most_min: float) -> None:
    """Measure every program once a round, some by both before the next, in random order."""
    began = time.monotonic()
    for number in range(rounds):
        order = random.Random(number)
        shuffled = order.sample(chosen, len(chosen))
        for start in range(0, len(shuffled), BATCH):
            batch = shuffled[start : start + BATCH]
            harness_first = order.random() < 0.5 and number > 0  # the script says what is left out
            if harness_first:
                by_harness(batch, number, script, results)
            by_script(batch, number, script)
            if not harness_first:
                by_harness(batch, number, script, results)
            at = f"round {number + 1} of {rounds}, {start + len(batch)} of {len(chosen)} programs"
            spent_min = (time.monotonic() - began) / 60
            print(f"\r{at}, {spent_min:.1f} min", end="", file=sys.stderr, flush=True)
            if spent_min > most_min:
                print("\nThe time is over; the same command goes on from here.", file=sys.stderr)
                return
    print(file=sys.stderr)


def workloads(source: str, pattern: str) -> list[Any]:
    """Return the workloads of a source that match, as the measuring processes find them."""
    module = import_file(f"suite.{source}", HERE / "suite" / f"{source}.py")
    found = [one for one in vars(module).values() if isinstance(one, type)]
    declared = [one for one in found if issubclass(one, Workload) and one is not Workload]
    return [one for one in declared if re.search(pattern, name_of(one))]


def machine(given: argparse.Namespace) -> str:
    """Return in a sentence what was measured where."""
    jax, date = importlib.metadata.version("jax"), time.strftime("%Y-%m-%d", time.gmtime())
    return (
        f"Python {platform.python_version()}, jax {jax}, {os.cpu_count()} cores, {date}; "
        f"up to {given.processes} processes a side with {given.passes} passes each."
    )


def main() -> int:
    """Do what the command line says; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.corpus", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("source", nargs="*", default=SOURCES, help=", ".join(SOURCES))
    parser.add_argument("--checkouts", default=os.environ.get(FOLDER), metavar="FOLDER")
    parser.add_argument("--select", default="", metavar="REGEX")
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--limit-s", type=float, default=30.0, help="a process's, in seconds")
    parser.add_argument("--minutes", type=float, default=math.inf, help="then show what there is")
    parser.add_argument("--results", type=Path, default=Path("build/corpus"))
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="a page with a mark in it")
    given = parser.parse_args()
    if wrong := [one for one in given.source if one not in SOURCES]:
        parser.error(f"{wrong[0]!r} is no source: expected some of {', '.join(SOURCES)}.")
    os.environ.update(SURROUNDINGS)
    if given.checkouts:
        os.environ[FOLDER] = str(Path(given.checkouts).resolve())

    def ended(code: int, text: str) -> int:
        print(text, file=sys.stderr)
        return code

    try:
        chosen = [one for source in given.source for one in workloads(source, given.select)]
    except FileNotFoundError as error:
        return ended(2, str(error))
    if not chosen:
        return ended(2, f"No program of {', '.join(given.source)} matches {given.select!r}.")
    given.results.mkdir(parents=True, exist_ok=True)
    script = Script(given.results / "independent.jsonl", given.passes, given.limit_s)
    measure(chosen, script, given.results, given.processes, given.minutes)
    if all("left_out" in one for one in script.samples):
        reasons = sorted(set(script.left_out().values()))
        return ended(4, f"Nothing was measured: {'; '.join(reasons)}.")
    table = compared(given.results, script.samples)
    text = "\n".join(markdown(table, script.left_out(), machine(given)))
    print(text)
    if given.markdown:
        write_below(given.markdown, MARK, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
