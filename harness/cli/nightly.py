"""`harness nightly`: a whole night on one machine."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import msgspec
from click.exceptions import Exit

from harness.asv.project import AsvProject
from harness.cli import options
from harness.cli.options import Option
from harness.errors import ExitCode, StoreError
from harness.nightly.environments import Recipe, parse
from harness.nightly.night import NightRun
from harness.records.environment import machine_name
from harness.records.printable import printable
from harness.verdicts.error_rates import use_those_of


@options.command(
    night=Option(
        metavar="NAME",
        help="Such as 2026-11-20. Without it: the newest unfinished night of this commit that "
        "is younger than 24 h, else today (UTC).",
    ),
    jax=Option(
        metavar="LIST",
        envvar="HARNESS_NIGHTLY_JAX",
        help="Environments, with commas: installed (this Python), newest, nightly, or releases "
        "such as 0.11.2. Without it: installed, newest if a package index answers, and nightly "
        "with --nightly-index.",
    ),
    effort=Option(envvar="HARNESS_EFFORT", help="quick, default, thorough, or such as 6x1."),
    bench=Option("--bench", "-b", metavar="REGEX", help="Only these benchmarks, as in asv."),
    probe=Option(
        metavar="REGEX", help="Workloads of the A/A probe; without it, the first by name."
    ),
    without=Option(
        metavar="STEP", help="Leave out probe, verdicts, history or report; repeatable."
    ),
    environments=Option(metavar="DIR", help="Where environments are built: .asv/nightly."),
    install=Option(
        metavar="REQUIREMENT",
        help="Installed into every environment that is built, such as 'jax[cuda13]'.",
    ),
    nightly_index=Option(
        metavar="URL",
        envvar="HARNESS_NIGHTLY_INDEX",
        help="The package index with JAX's nightly builds; JAX's installation guide names it.",
    ),
    config=Option(metavar="FILE", help="The asv project's configuration."),
    output=Option(
        "--output", "-o", metavar="DIR", help="Copy the night's folder there, for an artifact."
    ),
    dry_run=Option(help="Print the plan only."),
    as_json=Option("--json", help="Print the night as JSON instead of the summary."),
)
def nightly(
    night: str | None = None,
    jax: str | None = None,
    effort: str = "default",
    bench: list[str] | None = None,
    probe: str = "",
    without: list[str] | None = None,
    machine: options.Machine = None,
    environments: Path | None = None,
    install: list[str] | None = None,
    nightly_index: str = "",
    config: Path = Path("asv.conf.json"),
    output: Path | None = None,
    dry_run: bool = False,
    as_json: bool = False,
) -> None:
    r"""A whole night on one machine: build environments, measure, judge, report; restartable.

    \b
      harness nightly                        today's night, or the unfinished one of the last 24 h
      harness nightly --jax newest,0.11.2    the newest JAX release, and one more
      harness nightly --jax installed --effort quick -b Gelu --without probe
                                             what is installed here, one workload, once
      harness nightly --dry-run              what would be done, and what is done already

    \b
    Steps: environments (pip, into --environments) · A/A probe (a noisy night raises no alarm) · asv
    run in each environment · rows counted against what the suite declares · verdicts against the
    last good night, and of the newest release against the previous one · change points · report ·
    summary. Each finished step is kept in RESULTS/MACHINE/nights/NIGHT.json5, and measuring resumes
    through its records: killed at any moment, the same command goes on from there.

    \b
    A night is good for others to be compared with, environment by environment, if it is finished
    and every declared case has a record. RESULTS is what asv.conf.json names. In
    RESULTS/MACHINE/nights/NIGHT/ are summary.md, verdicts, freeze-*.txt (versions of all
    packages), logs and report.html.

    \b
    Exit codes: 0 fine; 1 something is slower, a row or a stage as a whole; 2 wrong usage; 3 some
    cases failed or are missing, or a workload has fewer rows than before; 4 results cannot be read
    or written; 5 an environment measured nothing; 6 measured, but an environment, the probe,
    verdicts, history or report failed; 7 something fails that was healthy before; 130 interrupted.
    The gravest is told: 5, 7, 3, 1, 6. docs/nightly.md has the set-up for CI.
    """
    project = AsvProject.read(config)
    use_those_of(config.parent)
    home = (environments or project.folder / ".asv" / "nightly").resolve()
    requirements = tuple(filter(None, install or ()))
    work = NightRun(
        project,
        Recipe(home, project.package, requirements, nightly_index),
        _say,
        machine=machine or machine_name(),
        night=night or None,
        jax=parse(jax) if jax is not None else [],
        effort=effort,
        bench=bench or [],
        probe=probe,
        without=without or [],
    )
    if dry_run:
        print(
            f"Night {work.name} on {work.night.machine}, commit {work.night.commit[:8]}, effort "
            f"{work.night.effort}"
        )
        for name, _ in work.steps():
            outcome = work.night.steps.get(name)
            print(f"  {name}" + (f": {outcome.status}" if outcome else ""))
        return
    try:
        ended = work.run()
    except KeyboardInterrupt:
        _say("harness: interrupted. Finished steps and records are kept; the same command resumes.")
        raise Exit(ExitCode.INTERRUPTED) from None
    if output is not None:
        try:
            shutil.copytree(work.own, output, dirs_exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"The night's folder cannot be copied to {output}: {error}. It is in {work.own}."
            ) from error
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(ended), indent=1).decode())
    else:
        print(printable((work.own / "summary.md").read_text(encoding="utf-8")), end="")
    raise Exit(ended.exit_code or ExitCode.FINE)


def _say(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)
