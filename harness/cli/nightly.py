"""`harness nightly`: a night on one machine."""

from __future__ import annotations

import sys
from pathlib import Path

from click.exceptions import Exit

from harness.cli import options
from harness.cli.options import Argument, Option
from harness.cli.output import resumable, say
from harness.nightly import night as nights
from harness.output import nightly as text
from harness.output.comparison_markdown import to_markdown
from harness.output.verdicts import sentence
from harness.records.environment import machine_name
from harness.records.files import replaced
from harness.records.printable import printable
from harness.records.store import machine_folder
from harness.stages import sampling
from harness.verdicts.error_rates import use_those_of


@options.command(
    common="python night effort",
    run_options=Argument(metavar="[-- RUN OPTIONS]", help="Further options of `harness run`."),
    python=Option(
        metavar="PYTHON",
        help="The interpreter of an environment; repeat for several. With JAX and this harness, "
        "such as .venvs/jax-0.11/bin/python. Default: the one that runs this.",
    ),
    night=Option(
        metavar="NAME",
        help="Such as 2026-11-20. Without it: the unfinished night of this commit that is younger "
        "than 24 h, else today (UTC).",
    ),
    effort=Option(envvar="HARNESS_EFFORT", help="quick, default, thorough, or such as 6x1."),
)
def nightly(
    run_options: list[str] | None = None,
    python: list[Path] | None = None,
    night: str = "",
    effort: str = "default",
    machine: options.Machine = None,
    benchmarks: options.Benchmarks = Path("benchmarks"),
    results: options.ResultsTree = Path("results"),
) -> None:
    r"""Measure in each environment, and compare with the last good night.

    \b
      harness nightly                                      in this environment
      harness nightly --python a/bin/python --python b/bin/python
      harness nightly -- --select Mlp --target gpu         only this, as `harness run` takes it

    The same command continues a night that was killed: it measures what has no record yet.
    RESULTS/MACHINE/nights/NIGHT/ has summary.md, summary.json5, issue.md (where something is
    slower or fails now), logs, and report.html (extra `figures`). docs/nightly.md: set-up for CI.

    \b
    Exit codes: 0 nothing slower; 1 something slower; 2 wrong usage; 3 some cases failed or are
    missing; 4 results cannot be read or written; 5 an environment cannot be used, or measured
    nothing; 6 measured, but the report failed; 7 something fails that worked; 130 interrupted.
    """
    sampling.effort(effort)
    use_those_of(Path())
    pythons = python or [Path(sys.executable)]
    name, extra = machine or machine_name(), run_options or []
    with resumable():
        summary, comparisons = nights.run(
            pythons, name, night, effort, extra, benchmarks, results, say
        )
    own = machine_folder(results, name) / "nights" / summary.night
    compared = ["" if one is None else to_markdown(one) for one in comparisons]
    answers = [sentence(one).replace("`", "") for one in comparisons if one is not None]
    page, issue = text.render(summary, compared, answers), text.issue(summary, compared)
    (own / "issue.md").unlink(missing_ok=True)
    for file, content in (("summary.md", page), ("issue.md", issue)):
        if content:
            with replaced(own / file, own=True) as handle:
                handle.write(content)
    print(printable(page), end="")
    raise Exit(summary.exit_code)
