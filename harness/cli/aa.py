"""`harness aa`: this machine's own error rates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from click.exceptions import Exit

from harness import targets
from harness.cli import options
from harness.cli.inventory import discover, with_cases
from harness.cli.options import Option
from harness.cli.output import Heading, Part, TextTable, print_page, resumable, say
from harness.cli.progress import progress
from harness.errors import ExitCode
from harness.measure.context import Options, local_context
from harness.stages import sampling
from harness.verdicts.aa import arms
from harness.verdicts.aa import rates as stored
from harness.verdicts.error_rates import ErrorRates, Rate, total
from harness.workload import discovery


def _usual(effort: str) -> str:
    return ", ".join(f"{stage}={effect:g}" for stage, effect in arms.usual_effects(effort).items())


@options.command(
    common="select pairs power effort",
    pairs=Option(min=1, help="Pairs of sweeps of the same code."),
    power=Option(help="Also put slow-downs in, and count those found."),
    effect=Option(
        metavar="STAGE=EFFECT",
        help="A slow-down to put in, such as compile=0.2 for a fifth more time; repeat for "
        f"several. Without it {_usual('default')}, and for thorough {_usual('thorough')} as "
        "well.",
    ),
    name=Option(help="Name of the run; another name measures again."),
)
def aa(
    *,
    select: options.Select = None,
    case: options.Cases = None,
    target: options.MeasuredTargets = None,
    effort: options.Effort = "default",
    pairs: int = 1,
    power: bool = False,
    effect: list[str] | None = None,
    seed: options.Seed = None,
    name: str = "",
    results: options.ResultsTree = Path("results"),
    machine: options.Machine = None,
    benchmarks: options.Benchmarks = Path("benchmarks"),
) -> None:
    r"""How often are verdicts wrong on this machine? Measure it, and store the answer.

    \b
      harness aa                       measure the same code twice, and compare
      harness aa --pairs 3 --power     three pairs; also, how often a slow-down is found
      harness aa -s Gelu --effort 7x1  a quick look: one workload, little effort
      harness aa --name 2026-11-20     another run; without a name the last one continues

    Each pair is the whole sweep twice, one after the other, judged as `harness
    compare` does. Whatever is called faster or slower is a false alarm. A family is a stage of a
    pair: it has one where a row of it, or all rows together, are called. Beside it stands how many
    rows asv's own rule would have raised on the same data: none at 6 processes, because asv 0.6.6
    never marks exactly 6 samples a side.

    Power: one more sweep with real extra work inside the clock of each stage. One row in five is
    judged as it was measured, the extra work of the others is divided out; found is what is called
    slower.

    Each share has its 95 % interval. `harness compare` prints the rates of its own effort and
    environment, and asks more of stages and cases that scatter on this machine at that effort.

    The same command continues a run that was stopped. Its records are in
    RESULTS/MACHINE/aa/records, out of the way of ordinary ones.

    \b
    Exit codes: 0 fine; 2 wrong usage; 3 some cases failed; 4 nothing was measured; 130 interrupted
    (finished measurements are stored).
    """
    level = sampling.effort(effort)
    places = targets.names(target or ()) or None
    injections = arms.injections(effect or [], level.name) if power or effect else []
    discovered = discover(benchmarks, select or [])
    workloads = with_cases(discovered.workloads, case or [])
    asked = Options(level, targets=places, keep=discovery.case_filter(case or []), seed=seed)
    context = local_context(results, benchmarks, machine)
    chosen = [sorted(given or []) for given in (select, case, places)]
    run = arms.name_of_run(context, level.name, name, chosen)
    with resumable(), progress() as on_progress:
        ran = arms.measure(workloads, context, asked, run, pairs, injections, on_progress)
    if not ran.measured and not ran.reused:
        say("nothing was measured.")
        raise Exit(ExitCode.SOME_FAILED if ran.failed else ExitCode.NOTHING)
    file = stored.file_of(context, run)
    before = stored.power_before(file)
    rates = stored.rates_of(ran, context, level.name, before, any(chosen), seed or 0)
    stored.write(file, rates)
    there = f"{ran.measured} records measured, {ran.reused} were there. Stored in {file}"
    print_page([*_page(rates), there])
    if ran.failed:
        say(f"{ran.failed} records are of cases that failed; they are not counted.")
    if ran.failed or discovered.broken:
        raise Exit(ExitCode.SOME_FAILED)


def _page(rates: ErrorRates) -> Iterator[Part]:
    arms = "pair" if rates.pairs == 1 else "pairs"
    about = f"{rates.machine} · {rates.env} · effort {rates.effort} · {rates.pairs} {arms}"
    called, share = _cells(rates.flagged)
    within = f", {share} with 95 % confidence" * bool(share)
    yield Heading(f"{called} rows of the same code are called different{within}.")
    yield f"{about} of the same code"
    headings = ["stage", "rows called different", "95 % interval", "families with one"]
    headings += ["by asv's rule", "95 % interval"]
    rows = [
        [
            stage,
            *_cells(rate),
            _cells(rates.families.get(stage))[0],
            *_cells(rates.asv_by_stage.get(stage)),
        ]
        for stage, rate in rates.flagged_by_stage.items()
    ]
    families = _cells(total(rates.families.values()))[0]
    rows.append(["all", *_cells(rates.flagged), families, *_cells(rates.flagged_by_asv)])
    yield TextTable(pd.DataFrame(rows, columns=pd.Index(headings)))
    if sampling.effort(rates.effort).processes == 6:
        yield "asv 0.6.6 never marks exactly 6 samples a side: take --effort 7x1, or 5x1."
    if rates.power:
        yield Heading("Slow-downs that were put in")
        headings = ["stage", "effect", "effort", "found", "95 % interval"]
        rows = [
            [one.stage, f"+{100 * one.effect:.0f} %", one.effort, *_cells(one.found)]
            for one in rates.power
        ]
        yield TextTable(pd.DataFrame(rows, columns=pd.Index(headings)))


def _cells(rate: Rate | None) -> list[str]:
    if rate is None or not rate.of:
        return ["none", ""]
    return [f"{rate.count} of {rate.of}", f"{100 * rate.low:.1f} to {100 * rate.high:.1f} %"]
