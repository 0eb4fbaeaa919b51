"""`harness aa`: this machine's own error rates. Thin: parse, call, print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import options, running
from harness.cli.exit_codes import INTERRUPTED, NOTHING_MEASURED, SOME_FAILED
from harness.cli.saying import say

if TYPE_CHECKING:
    from harness.verdicts.error_rates import ErrorRates, Rate

HELP = """How often are verdicts wrong on this machine? Measure it, and store the answer.

\b
  harness aa                            two identical arms, one after the other
  harness aa --pairs 3 --power          three pairs, and how often a slow-down is found
  harness aa -s Gelu --effort 6x1       a quick look: one workload, little effort
  harness aa --name 2026-11-20          another run; without a name the last one goes on, of the
                                        same workloads, cases and targets

Identical arms: each pair is the whole sweep twice, one after the other. Whatever is called faster
or slower is a false alarm. `asv` shows how many asv's own rule would have raised on the same data.

Power: one more sweep with real extra work inside the clock of each stage. Its rows are judged one
by one, as the only change among all others; found is what is called slower.

Each share has its 95 % interval. `harness compare` reads what is stored, prints the rates with its
verdicts, and asks more of cases that scatter here.

A run that was stopped goes on with the same command. Its records are in RESULTS/MACHINE/aa/records,
out of the way of ordinary ones.

\b
Exit codes: 0 fine; 2 wrong usage; 3 some cases failed; 4 nothing was measured; 130 interrupted
(what was finished is kept).
"""


def aa(
    select: options.Select = None,
    case: Annotated[
        list[str] | None,
        typer.Option(metavar="AXIS=VALUE", help="Only cases with this value on this axis."),
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="Where to measure; see `harness run`.")
    ] = None,
    effort: Annotated[
        str, typer.Option(help="quick, default, thorough, or PROCESSESxPASSES such as 6x1.")
    ] = "default",
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of identical arms.")] = 1,
    power: Annotated[
        bool, typer.Option("--power", help="Also put slow-downs in, and count those found.")
    ] = False,
    effect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STAGE=EFFECT",
            help="A slow-down to put in, such as compile=0.2 for a fifth more time; repeat for "
            "several. Without it trace=0.5, lower=0.5, compile=0.2, execute=0.2, and for thorough "
            "compile=0.1 and execute=0.1 as well.",
        ),
    ] = None,
    seed: options.Seed = None,
    name: Annotated[str, typer.Option(help="Name of the run; another name measures anew.")] = "",
    results: options.ResultsTree = Path("results"),
    machine: options.Machine = None,
    benchmarks: options.Benchmarks = Path("benchmarks"),
) -> None:
    """Measure error rates; :data:`HELP` is what the command says of itself."""
    from harness import targets
    from harness.cli.progress import progress
    from harness.declare import discovery
    from harness.engine import sweeping
    from harness.stages import sampling
    from harness.verdicts.aa import arms
    from harness.verdicts.aa import rates as measured_rates

    level = sampling.effort(effort)
    for place in target or ():
        targets.find(place)
    injections = arms.injections(effect or [], level.name) if power or effect else []
    discovered = running.discover(benchmarks, select or [])
    workloads = discovery.with_axes(discovered.workloads, case or [])
    asked = sweeping.Options(
        level,
        targets=tuple(target) if target else None,
        keep=discovery.case_filter(case or []),
        seed=seed,
    )
    context = sweeping.local_context(results, benchmarks, machine)
    chosen = [sorted(given or []) for given in (select, case, target)]
    run = arms.name_of_run(context, level.name, name, chosen)
    try:
        with progress() as on_progress:
            found = arms.measure(workloads, context, asked, run, pairs, injections, on_progress)
    except KeyboardInterrupt:
        say("interrupted. Every finished record is kept; the same command goes on.")
        raise typer.Exit(INTERRUPTED) from None
    if not found.measured and not found.reused:
        say("nothing was measured.")
        raise typer.Exit(SOME_FAILED if found.failed else NOTHING_MEASURED)
    file = measured_rates.file_of(context, run)
    earlier = measured_rates.read(file)
    power_before = earlier.power if earlier else ()
    rates = measured_rates.rates_of(found, context, level.name, power_before, any(chosen))
    measured_rates.write(file, rates)
    _print(rates)
    print(f"{found.measured} records measured, {found.reused} were there. Stored in {file}")
    if found.failed:
        say(f"{found.failed} records are of cases that failed; they are not counted.")
    if found.failed or discovered.broken:
        raise typer.Exit(SOME_FAILED)


def _print(rates: ErrorRates) -> None:
    import pandas as pd

    from harness.cli.terminal import console, print_rows

    arms = "pair" if rates.pairs == 1 else "pairs"
    heading = f"{rates.machine} · {rates.env} · effort {rates.effort} · {rates.pairs} {arms}"
    console.print(f"{heading} of identical arms", markup=False, soft_wrap=True, style="bold")
    headings = ["stage", "called different", "95 % interval", "by asv's rule", "95 % interval"]
    rows = [
        [stage, *_cells(rate), *_cells(rates.asv_by_stage.get(stage))]
        for stage, rate in rates.flagged_by_stage.items()
    ]
    rows.append(["all", *_cells(rates.flagged), *_cells(rates.flagged_by_asv)])
    print_rows(pd.DataFrame(rows, columns=pd.Index(headings)))
    if rates.power:
        console.print("Slow-downs that were put in", style="bold")
        headings = ["stage", "effect", "effort", "found", "95 % interval"]
        rows = [
            [one.stage, f"+{one.effect:.0%}", one.effort, *_cells(one.found)] for one in rates.power
        ]
        print_rows(pd.DataFrame(rows, columns=pd.Index(headings)))


def _cells(rate: Rate | None) -> list[str]:
    if rate is None or not rate.of:
        return ["none", ""]
    return [f"{rate.count} of {rate.of}", f"{rate.low:.1%} to {rate.high:.1%}"]
