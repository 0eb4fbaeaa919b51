"""`harness doctor`: what this machine can measure, how quiet it is now, and what to do about it."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import psutil
from click.exceptions import Exit

from harness import targets
from harness.cli import options
from harness.cli.output import Heading, Output, Part, say
from harness.errors import ExitCode, UsageError
from harness.frame.load import damage
from harness.jaxhooks.log_file import clean
from harness.measure import containment, lock, machine_load
from harness.records.environment import machine_name
from harness.records.git import top_of
from harness.records.store import is_tree
from harness.records.units import counted
from harness.targets.host import installed
from harness.verdicts.error_rates import stored

LOOK_S = 2.0
LOOP_NS = 1_000_000
"""About as long as one turn of the loop takes."""

WIDE = 1.1
"""90 % over 10 % of the loop's times from which they are said to scatter."""

LEAST_BYTES = 2 << 30
GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")

Look = tuple[str, str, str]
"""One thing about this machine: what, what was found, and what to do, empty where all is well."""


@options.command(common="results format_")
def doctor(*, results: options.ReadResults = Path("results"), output: Output) -> None:
    r"""Can this machine measure, and is it quiet enough now?

    \b
      harness doctor                     takes about 3 seconds, changes nothing
      harness doctor -r DIR              also checks the lines of a results tree
      harness doctor --format json       for a script

    A plain loop runs for 2 seconds: how far its times lie apart is how far every time will. The
    processor that others use meanwhile, and what a host takes from a virtual machine, are counted.

    Exit codes: 0 whatever else is advised; 1 the results tree has damaged or foreign lines; 4
    nothing can be measured or compiled for here.
    """
    candidates = targets.TARGETS.values() if containment.POSSIBLE else ()
    here = [one for one in targets.survey(candidates) if one.here]
    damaged = list(_damaged(results))
    looks = [*_installed(here), *_quiet(), *_project(results), *damaged]
    rows = pd.DataFrame(looks, columns=["what", "found", "advice"])
    output.show(_page(rows, bool(here)), rows)
    if not here:  # neither to run nor to compile for
        raise Exit(ExitCode.NOTHING)
    if any(advice for _, _, advice in damaged):
        raise Exit(ExitCode.WORSE)


def _page(rows: pd.DataFrame, usable: bool) -> Iterator[Part]:
    advised = (rows["advice"] != "").sum()
    if not usable:
        why = "no target is usable" if containment.POSSIBLE else "this is Windows; WSL is a Linux"
        yield Heading(f"Nothing can be measured here: {why}.")
    elif advised:
        yield Heading(
            f"This machine can measure; {advised} of {len(rows)} checks have a suggestion."
        )
    else:
        yield Heading("This machine can measure, and nothing is in the way.")
    for what, text, advice in rows.itertuples(index=False):
        yield f"{what}: {text}"
        if advice:
            yield f"  {advice}"


def _installed(here: list[targets.Sighting]) -> Iterator[Look]:
    python = ".".join(map(str, sys.version_info[:3]))
    packages = ("jax-harness", "jax", "jaxlib")
    text = ", ".join(f"{name} {installed(name) or 'without metadata'}" for name in packages)
    yield "versions", f"{text}, Python {python}", ""
    for what, wanted in (("measured on", False), ("compiled for", True)):
        names = [one.name for one in here if bool(targets.find(one.name).compile_only) is wanted]
        yield what, ", ".join(names) or "nothing", ""


def _quiet() -> Iterator[Look]:
    try:
        with lock.measuring(say, wait=False):
            yield "measuring now", "nobody", ""
    except UsageError as error:
        who = str(error).partition(" measures on")[0]
        yield "measuring now", who, "Commands that measure wait for it."
    others, stolen = machine_load.Others(), psutil.cpu_times()
    times = sorted(_loop_ns())
    busy, now = others.cores(), psutil.cpu_times()
    advice = "Wait, or end what runs beside." if machine_load.disturbs(busy) else ""
    yield "used by others", f"{busy:.1f} of {machine_load.cores()} cores", advice
    if hasattr(now, "steal"):
        part = (now.steal - stolen.steal) / (LOOK_S * machine_load.cores())
        advice = "The host gives this machine less than it shows: measure elsewhere, or at night."
        yield "taken by the host", f"{100 * part:.1f} % of the time", advice if part > 0.02 else ""
    low, high = (statistics.quantiles(times, n=10)[at] for at in (0, -1))
    slowest = times[-1] / statistics.median(times)
    text = f"90 % over 10 % of its times: {high / low:.2f}; slowest over median: {slowest:.1f}"
    advice = "Times scatter: more processes (--effort thorough), or verdicts by counts (--counts)."
    yield "a loop of 1 ms", text, advice if high / low > WIDE else ""
    if GOVERNOR.exists():
        governor = GOVERNOR.read_text().strip()
        advice = "Set it to performance: the clock changes while it is measured."
        yield "processor's clock", governor, advice if governor != "performance" else ""
    free = psutil.virtual_memory().available
    advice = "Less than 2 GiB are free: large cases will fail or swap."
    yield "free memory", f"{free / 2**30:.1f} GiB", advice if free < LEAST_BYTES else ""


def _loop_ns() -> Iterator[int]:
    turns = 2_000
    while (took := _loop(turns)) < LOOP_NS:
        turns = int(turns * min(10.0, 1.1 * LOOP_NS / took)) + 1
    end = time.perf_counter() + LOOK_S
    while time.perf_counter() < end:
        yield _loop(turns)


def _loop(turns: int) -> int:
    begin = time.perf_counter_ns()
    sum(range(turns))
    return time.perf_counter_ns() - begin


def _project(results: Path) -> Iterator[Look]:
    name = machine_name()
    overheads = stored(results, name, "default")
    advice = "`harness aa --power` measures how often verdicts are wrong here."
    text = f"measured for {name}" if overheads else f"not measured for {name}"
    yield "error rates", text, "" if overheads else advice
    if top_of(Path.cwd()) is None:
        yield "git", "no repository here", "Results are filed under commits: git init."
    if not Path("benchmarks").is_dir() and not Path("asv.conf.json").exists():
        folder = os.path.basename(os.getcwd())
        yield "workloads", f"none in {folder}", "`harness init` writes the first."


_DAMAGE = {
    "torn": ("unfinished last line", "A writer was killed: `harness run` measures it again."),
    "corrupt": ("damaged line", "`harness run` measures it again; delete it, or restore the file."),
    "other_schema": ("line of another version", "Read it with the version that wrote it."),
    "old_asv": (
        "result file of asv before 0.5",
        "`asv update` makes it readable, with every value; copy the tree first.",
    ),
    "unreadable": ("foreign or unreadable file", "Restore it, or move it out of the tree."),
}
"""What each kind of damage is called, and what to do about it. All readers leave it out."""


def _damaged(results: Path) -> Iterator[Look]:
    if not is_tree(results):
        yield "results", f"none in {results}", ""
        return
    files, damages = damage(results)
    for one in damages:
        name, advice = _DAMAGE[one.kind]
        text = f"{os.path.relpath(one.file, results)}: {counted(one.count, name)}"
        yield "results", clean(text + (one.what and f" ({one.what})")), advice
    if not damages:
        yield "results", f"{counted(files, 'file')} in {results}, every line readable", ""
