"""`harness compare`: two arms, a verdict per case and stage."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pandas as pd
from click.exceptions import Exit

from harness.cli import options
from harness.cli.options import Argument, Filters, Option
from harness.cli.output import (
    Format,
    Heading,
    Output,
    Part,
    TextTable,
    say,
    warnings_said,
    without_families,
)
from harness.cli.progress import progress
from harness.errors import ExitCode, NotMeasured, UsageError
from harness.frame.arms import StoredRecords, rows_of_arms
from harness.output import comparison as summary
from harness.output import comparison_markdown, explanation, programs
from harness.output import inside as inside_texts
from harness.output.verdicts import environment_lines, reasons_of, sentence
from harness.records import environment, git
from harness.records.schema import Record
from harness.stages import sampling
from harness.verdicts import inside
from harness.verdicts.compare import Comparison, comparison_of
from harness.verdicts.error_rates import use_those_of
from harness.verdicts.live.arm import parse
from harness.verdicts.live.comparison import compare_live, open_rows
from harness.verdicts.live.rounds import LiveOptions
from harness.verdicts.programs import by_case, document
from harness.verdicts.table import exit_code_of, ordered
from harness.verdicts.verdict import INCOMPARABLE, exit_code

Records = Sequence[Iterable[Record]]

LEFT = ("stage", "verdict", "reason")
CUT = ("case", "reason", "workload")
DROPPED = ("reason", "B", "A")


@options.command(
    common="time_ live_ stored stage explain every by_counts format_",
    a=Argument(metavar="A", help="The baseline."),
    b=Argument(metavar="B", help="The candidate, which is judged."),
    explain=Option(
        help="Show what verdicts rest on. Processes, samples, hosts, programs and the rule of the "
        "worst 20 rows, or of those that filters leave."
    ),
    every=Option("--all", help="List every row, not only what changed."),
    by_counts=Option("--counts", help="Decide by counts of Python calls, without a clock."),
    live_=Option(help="Measure both now, in turns, whatever is stored."),
    stored=Option(help="Only read what is stored."),
    time_=Option(
        metavar="DURATION",
        help="At most so long, such as 60s or 5min.",
    ),
)
def compare(
    *,
    a: str,
    b: str,
    results: options.ResultsTree = Path("results"),
    filters: Filters,
    explain: bool = False,
    every: bool = False,
    by_counts: bool = False,
    live_: bool = False,
    stored: bool = False,
    time_: str = "",
    effort: options.Effort = "default",
    seed: options.Seed = None,
    benchmarks: options.Benchmarks = Path("benchmarks"),
    output: Output,
) -> None:
    r"""Did it become slower? Compare baseline A with candidate B, case by case.

    \b
      harness compare HEAD~1 HEAD              two commits; measures what is missing
      harness compare HEAD~1 HEAD --time 60s   the same, for a minute at most
      harness compare main . --live            a commit and the working tree
      harness compare . set:XLA_FLAGS=--xla_flag=1 --live    without a flag, with it
      harness compare jax=0.11.2 jax=0.12.0.1  two releases of JAX, as stored
      harness compare cold warm -s Mlp         two scenarios of a workload

    A and B are a commit, tag or branch; a results tree or file; column=value[,column=value...]; or
    one word that is looked up: a version of JAX, an environment, machine, target, scenario or
    night. The newest row of each case is used, in an environment that both have.

    \b
    Two commits, in a terminal or in CI: what is not stored, or unsure, is measured now, in turns:
    each round measures both once, in random order, in fresh processes; a commit in a git worktree
    of its own. Every other pair, and piped output, only reads. --live always measures, and takes:
      harness compare . python=../other/.venv --live       this JAX and another one
      harness compare v1.0 v1.1,scenario=warm --live       several conditions, joined by commas
    --effort 8x3 is at most eight rounds of three passes. Ctrl-C compares what is finished; the same
    command continues from there.

    \b
    Verdicts:
      slower, faster  significant, corrected for the rows of the stage, and large enough to count
      same            surely less than twice what counts, or proven: the same code or program
      unsure          neither; the reason names what would decide it
      broken          works in A, fails in B
      more, less      a benchmark in another unit than seconds changed by at least 10 %; or
                      Python's calls did by less than counts in their stage, which fails nothing
      incomparable    in one of them only, or another version, machine, or nothing measured
    What counts in a stage is 3 to 25 % (docs/method.md); [tool.harness.thresholds] in
    pyproject.toml changes it, such as compile = 0.1. Filters hide rows and change no verdict.

    With --counts no clock decides but the calls that Python makes in trace and lower, which repeat
    within 0.2 % on any machine: `harness run --effort quick` on both commits is enough, as in CI.

    \b
    Exit codes: 0 nothing slower; 1 a row or a stage as a whole is slower; 2 wrong usage; 4 nothing
    comparable; 7 something broke.
    """
    if explain and output.format is not Format.table:
        raise UsageError("--explain is for reading: leave --format out.")
    if by_counts and (live_ or explain):
        raise UsageError("--counts decides by counts that are stored: leave --live, --explain out.")
    if stored and (live_ or time_):
        raise UsageError("--stored measures nothing: leave --live and --time out.")
    use_those_of(Path())
    level = sampling.effort(effort)
    asked = LiveOptions(level, benchmarks, filters, seed, time_s=options.duration("--time", time_))
    if live_:
        comparison, records = measured(a, b, results, asked)
    else:
        measures = not (stored or by_counts) and _is_watched(output)
        comparison, records = _by_what_is_there(a, b, results, asked, measures)
    if by_counts:
        raise Exit(_counted(comparison, every, output))
    changed = inside.changes(comparison, records)
    if output.format is Format.markdown:
        output.text(
            comparison_markdown.to_markdown(comparison, every, list(inside_texts.lines(changed)))
        )
    else:
        page = _page(comparison, every, records if explain else None, bool(filters), changed)
        whole = {**summary.document(comparison), "inside": inside_texts.document(changed)}
        output.show(page, ordered(reasons_of(comparison)), whole)
    code = exit_code_of(comparison.frame)
    if code is ExitCode.NOTHING:
        texts = reasons_of(comparison)["reason"]
        reasons = list(dict.fromkeys(text.splitlines()[0].rstrip(".") for text in texts if text))
        more = f" {len(reasons) - 1} more: `--all`." * (len(reasons) > 1)
        say(f"nothing is comparable: {reasons[0] if reasons else 'no row has samples'}.{more}")
    raise Exit(code)


def _is_watched(output: Output) -> bool:
    """Tell whether somebody waits for the answer: at a terminal, or as a job of CI."""
    return bool(os.environ.get("CI")) or (output.path is None and sys.stdout.isatty())


def _by_what_is_there(
    a: str, b: str, results: Path, asked: LiveOptions, measures: bool
) -> tuple[Comparison, Records]:
    """Return the comparison of two arms by stored rows; what is missing is measured in turns.

    That is so where `measures`, and both arms are commits that can be measured here.
    """
    with warnings_said():
        named = git.commits_named(results, a, b)
        frame = rows_of_arms(results, a, b, named) if results.exists() else None
    here = measures and _can_take_turns(a, b, results, frame, asked)
    if here and frame is not None:
        frame = frame[_is_own(frame, asked) & (frame["dirty"] == "")]
    try:
        with warnings_said():
            comparison = comparison_of(frame, a, b, results, filters=asked.filters)
    except NotMeasured as error:
        if here:
            return measured(a, b, results, asked)
        raise UsageError(f"{error}{_measured_now(a, b, asked.benchmarks.resolve())}") from None
    only = _undecided(comparison) if here else []
    arms = comparison.pairs.a, comparison.pairs.b
    if only:
        rows = arms[0].rows, arms[1].rows
        live, of_turns = measured(a, b, results, asked, rows, only)
        stored = (StoredRecords(arm, results) for arm in arms)
        return live, [[*one, *other] for one, other in zip(stored, of_turns, strict=True)]
    return comparison, [StoredRecords(arm, results) for arm in arms]


def _undecided(comparison: Comparison) -> list[str]:
    """Return the workloads of which turns can decide a row: an open one, or one of one arm only."""
    frame = comparison.frame
    one_sided = (frame["n_a"] == 0) ^ (frame["n_b"] == 0)
    rows = pd.concat([open_rows(frame), frame[one_sided & (frame["verdict"] == INCOMPARABLE)]])
    return sorted(set(rows["workload"]))


def _can_take_turns(
    a: str, b: str, results: Path, frame: pd.DataFrame | None, asked: LiveOptions
) -> bool:
    """Tell whether both arms are commits of this repository that this environment can measure.

    Those that another machine or environment alone has measured are only read, and so are results
    of another repository.
    """
    folder = asked.benchmarks.resolve()
    if results.exists() and git.top_of(results) not in (None, git.top_of(folder.parent)):
        return False
    commits = [git.commit_of(folder.parent, arm).hash for arm in (a, b)]
    if not all(commits) or any(os.path.exists(arm) for arm in (a, b)):
        return False
    if _without_folder(commits, folder):
        return False
    if frame is None:
        return True
    measured = frame[frame["commit"].isin(commits)]
    elsewhere = {*measured["commit"]} - {*measured["commit"][_is_own(measured, asked)]}
    return not elsewhere


def _is_own(frame: pd.DataFrame, asked: LiveOptions) -> pd.Series[bool]:
    """Return which rows this machine has measured in this environment."""
    return (frame["machine"] == asked.machine) & (frame["env"] == environment.env_name())


def _without_folder(commits: Sequence[str], folder: Path) -> list[str]:
    """Return those of some commits that have no such folder of benchmarks."""
    top = git.top_of(folder.parent)
    name = folder.relative_to(top).as_posix() if top else ""
    return [
        commit
        for commit in commits
        if not top or not git.output(top, "rev-parse", "--verify", "--quiet", f"{commit}:{name}")
    ]


def _measured_now(a: str, b: str, benchmarks: Path) -> str:
    """Return the command that measures both arms, where they are commits that can be measured."""
    top = git.top_of(benchmarks.parent)
    commits = {arm: git.commit_of(benchmarks.parent, arm).hash for arm in (a, b)}
    if top is None or not all(commits.values()):
        return ""
    if bare := _without_folder([*commits.values()], benchmarks):
        arm = next(arm for arm, commit in commits.items() if commit in bare)
        return (
            f" {arm!r} has no folder {benchmarks.relative_to(top).as_posix()}, so it cannot be "
            "measured: commit that folder, and compare what you change from then on."
        )
    return f" This measures both now, in turns: harness compare {_typed(a)} {_typed(b)} --live"


def _typed(arm: str) -> str:
    return arm if re.fullmatch(r"[\w./~^-]+", arm) else shlex.quote(arm)


def measured(
    a: str,
    b: str,
    results: Path,
    asked: LiveOptions,
    stored: tuple[pd.DataFrame, pd.DataFrame] | None = None,
    only: Sequence[str] = (),
) -> tuple[Comparison, Records]:
    """Return the comparison of two arms that are measured now, in turns, and their records.

    `stored` are rows that were measured before, which those of the workloads `only` replace.
    """
    arms = parse(a), parse(b)
    filters = asked.filters
    for arm in arms:
        for name, own, wanted in (
            ("target", arm.target, filters.target),
            ("scenario", arm.scenario, filters.scenario),
        ):
            if own and wanted and own.casefold() not in map(str.casefold, wanted):
                raise UsageError(
                    f"The arm {arm.text!r} is of {name}={own}, which --{name} leaves out."
                )
    with warnings_said():
        try:
            with progress() as on_progress:
                live = compare_live(arms, asked, results, on_progress, stored, only)
        except KeyboardInterrupt:
            say("interrupted before both arms had finished a round: nothing to compare.")
            raise Exit(ExitCode.INTERRUPTED) from None
    say(*summary.rounds_lines(live))
    return live.comparison, live.records


def _counted(comparison: Comparison, every: bool, output: Output) -> ExitCode:
    """Show what counts say of the arms, and return what that comes to."""
    frame = by_case(comparison.pairs)

    def page() -> Iterator[Part]:
        yield Heading(f"{programs.summary_text(frame)}.")
        yield summary.heading(comparison)
        yield from environment_lines(comparison.frame)
        yield from summary.left_out_lines(comparison)
        rows = programs.table(frame, every)
        if len(rows):
            yield _table(rows)
        yield from (*programs.changed_lines(frame, every), *programs.left_out(frame))

    output.show(page(), frame, document(frame))
    code = exit_code({*frame["verdict"]})
    if code is ExitCode.NOTHING:
        say("nothing is comparable by counts: the reasons stand above.")
    return code


def _table(rows: pd.DataFrame) -> TextTable:
    compact = without_families(rows) if "workload" in rows else None
    return TextTable(rows, LEFT, CUT, DROPPED, compact, LEFT)


def _page(
    comparison: Comparison,
    every: bool,
    records: Records | None,
    narrowed: bool,
    changed: Sequence[inside.CompileChange],
) -> Iterator[Part]:
    """Yield what people read; `records` of the arms explain it."""
    frame = reasons_of(comparison, facts=False)
    yield Heading(f"{sentence(comparison)}.")
    yield summary.summary_text(frame)
    yield summary.heading(comparison)
    yield from environment_lines(frame)
    yield from summary.left_out_lines(comparison)
    yield from summary.warning_lines(comparison)
    yield from map(Heading, summary.stage_lines(frame))
    overview = summary.overview(frame)
    if len(overview):
        yield _table(overview)
        yield ""
    yield from programs.changed_lines(by_case(comparison.pairs), every)
    yield from inside_texts.lines(changed)
    if records is not None:
        for text in explanation.explained(comparison, records, narrowed):
            yield f"\n{text}"
        yield ""
    else:
        rows, left_out = summary.listed(frame, every)
        if len(rows):
            yield _table(summary.table(rows))
        yield from (*left_out, *summary.legend(comparison))
    yield from summary.footer(comparison)
