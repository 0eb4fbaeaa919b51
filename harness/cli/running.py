"""`harness run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import options
from harness.cli.exit_codes import INTERRUPTED, NOTHING_MEASURED, SOME_FAILED
from harness.cli.saying import say
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.declare.discovery import Found


def run(
    select: options.Workloads = None,
    effort: Annotated[
        str,
        typer.Option(
            help="quick (1 process x 1 pass), default (8x3), thorough (8 to 32 x3, until the "
            "interval of every median is within 5 %), or PROCESSESxPASSES such as 6x1."
        ),
    ] = "default",
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="Where to measure: cpu, gpu, tpu, or compile-only: gpu:h200, tpu:v5e, "
            "gpu:FILE.pbtxt (`harness targets` lists all); repeat for several. Without it, "
            "wherever this machine can."
        ),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AXIS=VALUE",
            help="Only cases with this value on this axis (transform=gradient works too); repeat "
            "an axis for several of its values.",
        ),
    ] = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            help="State of the persistent cache: off, cold, warm, default; repeat for several. "
            "Without it, the workloads' own."
        ),
    ] = None,
    with_baselines: Annotated[
        bool,
        typer.Option(
            "--with-baselines",
            help="Compare with NumPy on the CPU and CuPy on a GPU as well, where a workload has a "
            "baseline.",
        ),
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure again what the results already hold.")
    ] = False,
    keep_programs: Annotated[
        bool,
        typer.Option(
            "--keep-programs",
            envvar="HARNESS_KEEP_PROGRAMS",
            help="Keep the StableHLO and HLO of every program measured now, for "
            "`harness ir --diff records:A..B`.",
        ),
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(min=0.001, help="Seconds that one pass over one case may take."),
    ] = None,
    seed: options.Seed = None,
    machine: options.Machine = None,
    night: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Measure as one night of a series, such as 2026-11-20: anew, though other nights "
            "have measured this commit.",
        ),
    ] = "",
    on: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Measure on the workers of the Dask scheduler at this address, such as "
            "tcp://host:8786, and not here (extra 'fleet'; docs/fleet.md).",
        ),
    ] = None,
    each_machine: Annotated[
        bool,
        typer.Option(
            "--each-machine",
            help="With --on: every case on every machine that can measure it, and not on one.",
        ),
    ] = False,
    wait_for_workers: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="With --on: how long to wait for workers that can measure, 5 seconds by default: "
            "jobs of Slurm queue.",
        ),
    ] = None,
    benchmarks: options.Benchmarks = Path("benchmarks"),
    results: options.ResultsTree = Path("results"),
) -> None:
    """Measure workloads in processes of their own; a run that was stopped resumes."""
    from harness import targets
    from harness.cli import terminal
    from harness.cli.progress import progress
    from harness.declare import discovery
    from harness.engine import sweeping
    from harness.records import environment
    from harness.stages import sampling
    from harness.stages.scenarios import registry as scenarios

    _check_on(on, each_machine, wait_for_workers, keep_programs, machine)
    level = sampling.effort(effort)
    for name in target or ():
        targets.find(name)
    chosen = discover(benchmarks, select or [])
    workloads = discovery.with_axes(chosen.workloads, case or [])
    asked = sweeping.Options(
        level,
        targets=tuple(target) if target else None,
        keep=discovery.case_filter(case or []),
        scenarios=tuple(scenarios.find(one).name for one in scenario) if scenario else None,
        with_baselines=with_baselines,
        fresh=fresh,
        keep_programs=keep_programs,
        timeout_s=timeout,
        seed=seed,
    )
    context = sweeping.local_context(results, benchmarks, machine, environment.night(night))
    try:
        with progress() as on_progress:
            if on:
                from harness.fleet import driving, pools

                with pools.of_address(on) as pool:
                    outcome = driving.sweep_on(
                        pool,
                        workloads,
                        context,
                        asked,
                        on_progress,
                        say,
                        each_machine,
                        driving.WAIT_S if wait_for_workers is None else wait_for_workers,
                    )
            else:
                outcome = sweeping.sweep(workloads, context, asked, on_progress)
    except KeyboardInterrupt:
        say("interrupted. Every finished record is kept; the same command resumes.")
        raise typer.Exit(INTERRUPTED) from None
    terminal.print_outcome(outcome, context, fleet=bool(on))
    if not outcome.measured and not outcome.reused:
        raise typer.Exit(SOME_FAILED if outcome.failed else NOTHING_MEASURED)
    if outcome.failed or chosen.broken:
        raise typer.Exit(SOME_FAILED)


def _check_on(
    on: str | None,
    each_machine: bool,
    wait_s: float | None,
    keep_programs: bool,
    machine: str | None,
) -> None:
    if on == "":  # of a variable that is not set: it must not measure here instead
        raise UsageError(
            "--on was given an empty address; expected that of a Dask scheduler, such as "
            "tcp://host:8786. Leave --on out to measure on this machine."
        )
    for option, given in (("each-machine", each_machine), ("wait-for-workers", wait_s is not None)):
        if given and not on:
            raise UsageError(
                f"--{option} is for sweeps over a fleet: name its scheduler with --on."
            )
    if on and keep_programs:
        raise UsageError("--keep-programs does not work with --on: programs stay on the workers.")
    if on and machine:
        raise UsageError(
            f"--machine {machine} does not work with --on: each worker names its own machine. Set "
            "HARNESS_MACHINE where it is started."
        )


def discover(benchmarks: Path, select: list[str]) -> Found:
    """Return the workloads of a folder that are selected; what of it is broken is said.

    Raises:
        UsageError: there is no such folder, no workload in it, or none that fits.
    """
    from harness.declare import discovery

    found = discovery.discover(benchmarks)
    for place, reason in found.broken.items():
        say(f"{place}: {reason} The rest goes on without it.")
    if not found.workloads:
        raise UsageError(
            f"No workload is defined in {benchmarks}. A workload is a class that derives from "
            "harness.Workload; `harness init` writes one to begin with."
        )
    found.workloads = discovery.select(found.workloads, select)
    return found
