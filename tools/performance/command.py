"""What the commands here share: options, sweeps, cases, turns, and processes that are timed."""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from harness.measure.context import Options, local_context
from harness.measure.sweep import sweep
from harness.stages import sampling
from harness.workload import discovery

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
HARNESS = [sys.executable, "-m", "harness"]

_LOAD = """
import resource, sys, time
_, folder, target = sys.argv
begin = time.perf_counter()
from harness.frame.load import load
imported, cpu = time.perf_counter(), time.process_time()
frame = load(folder, all=True)
load_s, cpu_s = time.perf_counter() - imported, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
if sys.platform != "darwin":  # where that also counts what the parent held before exec
    peak = int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
print(f"  rows        {len(frame)} ({(frame['status'] == 'ok').sum()} ok)")
print(f"  load        {load_s:.2f} s, {cpu_s:.2f} s of CPU (target {target}), ", end="")
print(f"after imports of {imported - begin:.2f} s")
print(f"  peak memory {peak / 1024:.0f} MiB")
"""


def options(about: str | None, *, select: bool = False, **defaults: Any) -> argparse.Namespace:
    """Return what the command line says.

    Args:
        about: the command's own docstring, whose first line is its help.
        select: whether it takes expressions for the names of workloads.
        defaults: the value of each option; False makes a switch, a tuple has the choices, a list
            takes the option as often as it is given.
    """
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    if select:
        parser.add_argument("select", nargs="*", metavar="SELECT")
    for name, value in defaults.items():
        taken: dict[str, Any] = {"type": type(value), "default": value}
        if value is False:
            taken = {"action": "store_true"}
        elif isinstance(value, tuple):
            taken = {"choices": value, "default": value[0]}
        elif isinstance(value, list):
            taken = {"action": "append", "default": value}
        parser.add_argument(f"--{name.replace('_', '-')}", **taken)
    return parser.parse_args()


_T = TypeVar("_T")


def in_turns(rounds: int, arms: Mapping[str, Callable[[], _T]]) -> dict[str, list[_T]]:
    """Return what each arm returns in so many rounds, in random order in each."""
    found: dict[str, list[_T]] = {name: [] for name in arms}
    for _ in range(rounds):
        for name in random.sample(list(arms), len(arms)):
            found[name].append(arms[name]())
    return found


class Took(NamedTuple):
    """What a command took, and what it said."""

    wall_s: float
    cpu_s: float
    out: str


def took(
    command: Sequence[object],
    code: int | None = 0,
    cwd: Path | None = None,
    **variables: str,
) -> Took:
    """Run a command to its end, which must be with `code` unless None; return what it took."""
    words, there = list(map(str, command)), {**os.environ, **variables}
    begin, before = time.perf_counter(), os.times()
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=cwd, env=there
    )
    wall_s, after = time.perf_counter() - begin, os.times()
    if code not in (None, done.returncode):
        raise SystemExit(f"{command} ended with {done.returncode}:\n{done.stderr}")
    return Took(wall_s, sum(after[2:4]) - sum(before[2:4]), done.stdout)


def fresh(module: str, *arguments: object, **variables: str) -> Any:
    """Return what a module prints as JSON in its last line, run in a fresh process."""
    said = took([sys.executable, "-m", module, *arguments], cwd=ROOT, **variables).out
    return json.loads(said.splitlines()[-1])


def spread(seconds: Sequence[float]) -> str:
    """Return the median, with the least and the most in brackets."""
    return f"{statistics.median(seconds):.3f} s ({min(seconds):.3f} to {max(seconds):.3f})"


def workloads(*select: str, folder: Path = BENCHMARKS) -> list[Any]:
    """Return the workloads of benchmarks/, or another folder, whose names match."""
    return discovery.select(discovery.discover(folder).workloads, list(select))


def prepared(chosen: Sequence[Any], topology: Any = None) -> Iterator[tuple[str, Any]]:
    """Yield the name of each case that can be measured here, and the case made ready."""
    import jax

    from harness.stages.prepared import prepare
    from harness.workload.transforms import NotApplicable
    from harness.workload.workload import WorkloadError, enumerate_cases, name_of

    for workload in chosen:
        jax.config.update("jax_enable_x64", workload.x64)
        for case in enumerate_cases(workload, [topology.target if topology else "cpu"]):
            with contextlib.suppress(NotApplicable, WorkloadError):
                name = " ".join(filter(None, (name_of(workload), case.label)))
                yield name, prepare(workload, case, topology)


def swept(
    chosen: list[Any],
    effort: str,
    machine: str | None = None,
    folder: Path = BENCHMARKS,
    **options: Any,
) -> Any:
    """Return the outcome of a sweep whose records are gone afterwards."""
    with tempfile.TemporaryDirectory() as results:
        context = local_context(Path(results), folder, machine)
        return sweep(chosen, context, Options(sampling.effort(effort), **options))


def loaded(folder: Path, target: str) -> str:
    """Return in lines what a fresh process needs to load a folder."""
    command = [sys.executable, "-c", _LOAD, folder, target]
    return took(command).out.rstrip()
