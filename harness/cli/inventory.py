"""`harness list` and `harness targets`: what can be measured, and where."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from click.exceptions import Exit

from harness import targets as all_targets
from harness.cli import options
from harness.cli.options import Argument
from harness.cli.output import Heading, Output, TextTable, say
from harness.errors import ExitCode, UsageError
from harness.records.units import counted
from harness.workload import discovery
from harness.workload.axes import shown
from harness.workload.workload import Workload, enumerate_cases, name_of


@options.command()
def list_(
    *,
    workloads: options.Workloads = None,
    select: options.Select = None,
    benchmarks: options.Benchmarks = Path("benchmarks"),
    output: Output,
) -> None:
    r"""List the workloads, their axes and what each is there to show.

    \b
      harness list                  all of benchmarks/
      harness list Gelu             those whose name matches
      harness list --format json    everything in full

    Exit codes: 0 fine; 2 wrong usage, or a workload that is wrongly declared.
    """
    discovered = discover(benchmarks, [*(workloads or []), *(select or [])])
    rows = pd.DataFrame(
        [_workload_row(workload) for workload in discovered.workloads],
        columns=["workload", "cases", "axes", "shows"],
    )
    cases = counted(int(rows["cases"].sum()), "case")
    answer = Heading(f"{counted(len(rows), 'workload')}, {cases} on one target.")
    output.show([answer, TextTable(rows, rows.columns, ("axes", "shows"), ("axes",))], rows)
    if discovered.broken:
        raise Exit(ExitCode.USAGE)


def _workload_row(workload: type[Workload]) -> tuple[str, int, str, str]:
    cases = [case for case in enumerate_cases(workload) if case.target == workload.targets[0]]
    axes = {**workload.sweep, "transform": workload.transforms}
    if workload.precisions:
        axes["precision"] = workload.precisions
    text = "; ".join(
        f"{axis}: {', '.join(map(shown, values))}"
        for axis, values in axes.items()
        if axis != "transform" or tuple(values) != ("forward",)
    )
    first = (workload.__doc__ or "").strip().partition("\n")[0]
    return name_of(workload), len(cases), text, first


@options.command(
    names=Argument(metavar="[TARGET]...", help="Only these; a gpu:FILE.pbtxt is read."),
)
def targets(*, names: list[str] | None = None, output: Output) -> None:
    r"""List the targets: where programs can be built, where run, and what is missing.

    \b
      cpu, gpu, tpu      this machine's own: built and run there
      gpu:h200, tpu:v5e  compile-only: built for a device that need not be here, and not run, so
                         that trace, lower and compile are measured; dispatch and execute are n/a
      gpu:FILE.pbtxt     compile-only, for the GPU that a file of yours describes (XLA's
                         GpuTargetConfigProto); it is called gpu:FILE from then on

    \b
      harness targets                      all of them
      harness targets gpu:my-gpu.pbtxt     is that file a description?
      harness run --target gpu:h200        measure on one

    The compilers of the compile-only targets come with the extra `targets` (Linux x86_64), without
    driver and device. docs/gpu-tpu-compile.md explains how to use them in CI.

    Exit codes: 0 fine; 2 wrong usage; 4 none of them is here.
    """
    chosen = all_targets.find_all(names) if names else list(all_targets.TARGETS.values())
    sightings = all_targets.survey(chosen)
    rows = pd.DataFrame(
        [
            (
                sighting.name,
                "yes" if sighting.here else "no",
                str(sighting.devices or ""),
                sighting.what,
            )
            for sighting in sightings
        ],
        columns=["target", "here", "devices", "what"],
    )
    here = [sighting.name for sighting in sightings if sighting.here]
    answer = Heading(
        f"{len(here)} of {counted(len(sightings), 'target')} can be used here: {', '.join(here)}."
        if here
        else "No such target can be used here."
    )
    missing: dict[str, list[str]] = {}
    for sighting in sightings:
        if sighting.lacking:
            missing.setdefault(sighting.lacking, []).append(sighting.name)
    lines = [f"Missing for {', '.join(names)}: {what}" for what, names in missing.items()]
    every = rows.assign(missing=[sighting.lacking for sighting in sightings])
    output.show([answer, TextTable(rows, rows.columns, ("what",)), *lines], every)
    if not here:
        raise Exit(ExitCode.NOTHING)


def discover(benchmarks: Path, select: list[str]) -> discovery.Found:
    """Return the workloads of a folder that are selected; what of it is broken is said."""
    discovered = discovery.discover(benchmarks)
    rest = " The rest goes on without it." if discovered.workloads else ""
    for place, reason in discovered.broken.items():
        say(f"{place}: {reason}{rest}")
    if any("ModuleNotFoundError" in reason for reason in discovered.broken.values()):
        say(
            f"Modules are looked for in {Path.cwd()}, beside {benchmarks}, in ASV_PYTHONPATH and "
            f"among what is installed for {sys.executable}: install what is missing there."
        )
    if not discovered.workloads and discovered.broken:
        raise UsageError(f"No workload in {benchmarks} can be used.")
    if not discovered.workloads:
        raise UsageError(
            f"No workload is defined in {benchmarks}. A workload is a class that derives from "
            "harness.Workload; `harness init` writes one to begin with."
        )
    discovered.workloads = discovery.select(discovered.workloads, select)
    return discovered


def with_cases(workloads: list[type[Workload]], case: list[str]) -> list[type[Workload]]:
    """Return the workloads that have one of the chosen cases; which have none, and why, is said."""
    left = discovery.with_axes(workloads, case)
    for reason, names in discovery.left_out(workloads, case).items():
        say(f"left out, {reason}: {', '.join(names)}")
    return left
