"""`harness run`: measure, here or on a fleet, and say what came of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from click.exceptions import Exit

from harness import targets
from harness.cli import options
from harness.cli.inventory import discover, with_cases
from harness.cli.options import Option
from harness.cli.output import Heading, Part, notes, print_page, resumable, say
from harness.cli.progress import progress
from harness.cli.show import stage_table
from harness.errors import ExitCode, UsageError
from harness.frame.frame import ordinary
from harness.frame.load import frame_of
from harness.frame.process_values import PROGRAM_CHANGED
from harness.measure import machine_load
from harness.measure.context import Context, Options, local_context
from harness.measure.outcome import Outcome
from harness.measure.sweep import sweep as measure
from harness.measure.sweep import sweep_elsewhere
from harness.output import load
from harness.records import environment
from harness.records.store import store_path
from harness.records.units import counted
from harness.stages import sampling
from harness.stages.scenarios import registry as scenarios
from harness.workload import discovery


@options.command(
    common="effort case target scenario with_baselines fresh inside benchmarks results",
    first_calls=Option(
        metavar="N",
        min=0,
        envvar="HARNESS_FIRST_CALLS",
        help="Separate processes for each case's first call, per scenario; 0: none. Default: none "
        "in off, elsewhere as many as the effort has, 5 at most.",
    ),
    with_baselines=Option(
        help="Also NumPy on the CPU and CuPy on a GPU, of workloads with a baseline."
    ),
    fresh=Option(help="Measure again what is already in the results."),
    keep_programs=Option(
        envvar="HARNESS_KEEP_PROGRAMS",
        help="Store the StableHLO and HLO of every program measured now, for "
        "`harness ir --diff records:A..B`.",
    ),
    inside=Option(
        envvar="HARNESS_INSIDE",
        help="Also record XLA's events, so that `harness compare` names the slow pass. Each case "
        "is compiled once more for it, untimed.",
    ),
    timeout=Option(min=0.001, help="Seconds that one pass over one case may take."),
    no_wait=Option(
        help="Exit at once if another process measures on this machine, instead of waiting. "
        "HARNESS_WAIT=0 does so for every command."
    ),
    night=Option(
        metavar="NAME",
        help="Measure as one night of a series, such as 2026-11-20, again even if other nights "
        "have measured this commit.",
    ),
    on=Option(
        metavar="ADDRESS",
        help="Measure on the workers of the Dask scheduler at this address, such as "
        "tcp://host:8786, and not here (extra 'fleet'; docs/fleet.md).",
    ),
    wait=Option(
        metavar="SECONDS",
        min=0,
        help="With --on: how long to wait where no worker can measure, 30 seconds by default.",
    ),
)
def run(
    *,
    workloads: options.Workloads = None,
    select: options.Select = None,
    case: options.Cases = None,
    target: options.MeasuredTargets = None,
    scenario: options.Scenarios = None,
    effort: options.Effort = "default",
    first_calls: int | None = None,
    with_baselines: bool = False,
    fresh: bool = False,
    keep_programs: bool = False,
    inside: bool = False,
    timeout: float | None = None,
    no_wait: bool = False,
    seed: options.Seed = None,
    machine: options.Machine = None,
    night: str = "",
    on: str | None = None,
    wait: float | None = None,
    benchmarks: options.Benchmarks = Path("benchmarks"),
    results: options.ResultsTree = Path("results"),
) -> None:
    r"""Measure workloads in fresh processes; an interrupted run resumes.

    \b
      harness run --effort quick              all of benchmarks/, each case once
      harness run Gelu --case size=1024       one case, in 8 processes
      harness run --scenario cold,warm        what the persistent cache saves
      harness run --target gpu:h200           compiled for a GPU that is not here
      harness run --on tcp://host:8786        on the workers of a Dask scheduler

    Results of the same code are reused, whole processes only; `harness show` prints the table,
    `harness compare` judges two commits. docs/method.md explains how numbers are taken.

    Exit codes: 0 fine; 2 wrong usage; 3 some cases failed or were refused; 4 nothing was measured;
    5 the fleet cannot be used; 130 interrupted (finished measurements are stored).
    """
    own_machine = "each worker names its own machine. Set HARNESS_MACHINE where it is started"
    here = {
        "--keep-programs": "programs stay on the workers" * keep_programs,
        f"--machine {machine}": own_machine * bool(machine),
    }
    _check_on(on, wait, here)
    level = sampling.effort(effort)
    places = targets.names(target or ()) or None
    chosen = discover(benchmarks, [*(workloads or []), *(select or [])])
    measured = with_cases(chosen.workloads, case or [])
    asked = Options(
        level,
        targets=places,
        keep=discovery.case_filter(case or []),
        scenarios=tuple(scenarios.find(one).name for one in scenario) if scenario else None,
        first_calls=first_calls,
        with_baselines=with_baselines,
        fresh=fresh,
        keep_programs=keep_programs,
        inside=inside,
        timeout_s=timeout,
        broken=chosen.broken_names(),
        seed=seed,
    )
    if no_wait:
        asked = dataclasses.replace(asked, wait=False)
    context = local_context(results, benchmarks, machine, environment.night(night))
    if not on and (busy := machine_load.load_before()):
        say(load.before_text(busy, machine_load.cores()))
    with resumable(), progress() as on_progress:
        if on:
            waiting = {} if wait is None else {"wait_s": wait}
            given = (measured, context, asked, on_progress, say)
            outcome = sweep_elsewhere(on, *given, **waiting)
        else:
            outcome = measure(measured, context, asked, on_progress)
    if outcome.problems:
        print_page([outcome.problems.summary()], notes)
    if outcome.measured and machine_load.disturbs(outcome.others_cores):
        say(load.meanwhile_text(outcome.others_cores, machine_load.cores()))
    print_page(_outcome(outcome, context, bool(on)))
    if not outcome.measured and not outcome.reused:
        raise Exit(ExitCode.SOME_FAILED if outcome.failed else ExitCode.NOTHING)
    if outcome.failed or outcome.refused or chosen.broken:
        raise Exit(ExitCode.SOME_FAILED)


def _check_on(on: str | None, wait: float | None, here: dict[str, str]) -> None:
    """Refuse options that only go with `--on`, and those that do not, by the reason."""
    if on == "":  # of a variable that is not set: it must not measure here instead
        raise UsageError(
            "--on was given an empty address; expected that of a Dask scheduler, such as "
            "tcp://host:8786. Leave --on out to measure on this machine."
        )
    if wait is not None and not on:
        raise UsageError("--wait is how long to wait for workers: name their scheduler with --on.")
    for option, why in here.items():
        if on and why:
            raise UsageError(f"{option} does not work with --on: {why}.")


def _outcome(outcome: Outcome, context: Context, fleet: bool) -> Iterator[Part]:
    """Yield what a sweep did, here or on a fleet, and where to look next."""
    frame = ordinary(frame_of(outcome.records))
    yield Heading(
        f"{outcome.measured} measured, {outcome.reused} measured before and reused, "
        f"{len(outcome.failed) + len(outcome.refused)} failed or refused."
    )
    if not frame.empty:
        yield from stage_table(frame)
    for name, reason in outcome.left_out.items():
        yield f"{name} is left out: {reason}."
    if outcome.unexplained:
        yield f"{', '.join(outcome.unexplained)}: {PROGRAM_CHANGED}"
    if outcome.edited:
        names = ", ".join(outcome.edited[:5]) + (" ..." if len(outcome.edited) > 5 else "")
        yield f"Edited during the sweep, so that some was measured again: {names}"
    if outcome.wide:
        some = "; ".join(outcome.wide[:5]) + (" ..." if len(outcome.wide) > 5 else "")
        yield (
            f"Still wider than 5 % at the limit of processes: the intervals of "
            f"{counted(len(outcome.wide), 'case')}: {some}"
        )
    if not fleet:
        yield f"Records: {context.store.path}"
        return
    machines = sorted({record.machine for record in outcome.records})
    yield f"{counted(len(machines), 'machine')}: {', '.join(machines)}"
    yield from sorted(
        {
            f"Records: {store_path(context.results, r.machine, r.commit, r.env, r.night)}"
            for r in outcome.records
        }
    )
