"""What the commands here share: options, sweeps, turns, and loads in a fresh process."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from harness.declare import discovery
from harness.engine.context import Options, local_context
from harness.engine.sweep import sweep
from harness.stages import sampling

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"

READERS = {
    "harness": (
        "from harness.frame.load import load",
        "load(folder, all=True, where={'workload': chosen} if chosen else None)",
    ),
    "pandas": (
        "import pandas, pyarrow.dataset",
        "pandas.read_parquet(folder, filters=[('workload', '=', chosen)])",
    ),
    "Polars": (
        "import polars",
        "polars.scan_parquet(folder).filter(polars.col('workload') == chosen).collect()",
    ),
    "DuckDB": (
        "import duckdb, pandas",
        "duckdb.sql(f\"FROM '{folder}/*/*/*.parquet' WHERE workload = '{chosen}'\").df()",
    ),
}
"""Who reads a folder: what it imports, and what it evaluates."""

_LOAD = """
import json, resource, sys, time
_, folder, chosen, imports, reading = sys.argv
begin = time.perf_counter()
exec(imports)
imported, cpu = time.perf_counter(), time.process_time()
frame = eval(reading)
done = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if sys.platform != "darwin":  # where that also counts what the parent held before exec
    peak = int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
print(json.dumps({
    "rows": len(frame),
    "ok": int((frame["status"] == "ok").sum()),
    "import_s": imported - begin,
    "load_s": done - imported,
    "cpu_s": time.process_time() - cpu,
    "peak_bytes": peak if sys.platform == "darwin" else peak * 1024,
}))
"""


def options(about: str | None, *, select: bool = False, **defaults: Any) -> argparse.Namespace:
    """Return what the command line says.

    Args:
        about: the command's own docstring, whose first line is its help.
        select: whether it takes expressions for the names of workloads.
        defaults: the value of each option; False makes a switch, a tuple has the choices.
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


def took(command: list[Any], code: int | None = 0, **options: Any) -> Took:
    """Run a command to its end, which must be with `code` unless None; return what it took."""
    begin, before = time.perf_counter(), os.times()
    done = subprocess.run(
        list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, **options
    )
    wall_s, after = time.perf_counter() - begin, os.times()
    if code not in (None, done.returncode):
        raise SystemExit(f"{command} ended with {done.returncode}:\n{done.stderr}")
    cpu_s = sum(after[2:4]) - sum(before[2:4])
    return Took(wall_s, cpu_s, done.stdout)


def workloads(*select: str) -> list[Any]:
    """Return the workloads of benchmarks/ whose names match."""
    return discovery.select(discovery.discover(BENCHMARKS).workloads, list(select))


def swept(chosen: list[Any], effort: str, machine: str | None = None, **options: Any) -> Any:
    """Return the outcome of a sweep whose records are gone afterwards."""
    with tempfile.TemporaryDirectory() as results:
        context = local_context(Path(results), BENCHMARKS, machine)
        return sweep(chosen, context, Options(sampling.effort(effort), **options))


def fresh(module: str, *arguments: object, **variables: str) -> Any:
    """Return what a module prints as JSON in its last line, run in a fresh process."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    surroundings = {**os.environ, **variables}
    done = subprocess.run(command, env=surroundings, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout.splitlines()[-1])


def loaded(folder: Path, workload: str = "", reader: str = "harness") -> dict[str, Any]:
    """Return what a fresh process needs to load a folder, or one workload of it."""
    command = [sys.executable, "-c", _LOAD, str(folder), workload, *READERS[reader]]
    return dict(json.loads(took(command).out))


def load_text(found: dict[str, Any], target: str) -> str:
    """Return what :func:`loaded` found in lines of text."""
    return (
        f"  rows        {found['rows']} ({found['ok']} ok)\n"
        f"  load        {found['load_s']:.2f} s, {found['cpu_s']:.2f} s of CPU (target {target}), "
        f"after imports of {found['import_s']:.2f} s\n"
        f"  peak memory {found['peak_bytes'] / 2**20:.0f} MiB"
    )
