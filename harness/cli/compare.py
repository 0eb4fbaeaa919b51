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
from harness.cli.output import Format, Heading, Output, Part, TextTable, say, warnings_said
from harness.cli.progress import progress
from harness.errors import ExitCode, NotMeasured, UsageError
from harness.frame.load import everything
from harness.output import comparison as summary
from harness.output import comparison_markdown, explanation
from harness.output.verdicts import reasons_of, sentence
from harness.records import environment, git
from harness.records.schema import Record
from harness.records.units import seconds_text
from harness.stages import sampling
from harness.verdicts import inside, programs
from harness.verdicts.arms import StoredRecords
from harness.verdicts.compare import Comparison, comparison_between, named_arms
from harness.verdicts.error_rates import use_those_of
from harness.verdicts.live.arm import parse
from harness.verdicts.live.comparison import compare_live, open_rows
from harness.verdicts.live.rounds import LiveOptions
from harness.verdicts.pairs import environment_lines, left_out_lines
from harness.verdicts.table import exit_code_of, ordered
from harness.verdicts.verdict import INCOMPARABLE, exit_code

Records = Sequence[Iterable[Record]]

LEFT = ("stage", "verdict", "reason")
WRAPPED = ("case", "reason", "workload")


@options.command(
    a=Argument(metavar="A", help="What to compare with."),
    b=Argument(metavar="B", help="What is judged."),
    explain=Option(
        help="Show what verdicts rest on: processes, samples, hosts, programs and the rule; of "
        "the worst 20 rows, or of those that filters leave."
    ),
    every=Option("--all", help="List every row, also those that are the same."),
    by_counts=Option("--counts", help="Decide by counts alone; see above."),
    live_=Option(help="Measure both arms in turns, whatever is stored; see above."),
    stored=Option(help="Only read what is stored; measure nothing."),
    time_=Option(
        metavar="DURATION",
        help="How long measuring in turns may take, such as 60s or 5min.",
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
    r"""Did it become slower? Hold two arms against each other: a verdict per case and stage.

    \b
      harness compare HEAD~1 HEAD                  two commits: measures what is missing, in turns
      harness compare v1.0 my-branch --time 60s    the same, for a minute at most
      harness compare HEAD~1 HEAD --stored         only by what is stored
      harness compare jax=0.11.2 jax=0.12.0.1      two releases of JAX, by the newest rows of each
      harness compare cold warm -s Mlp             two scenarios, some workloads
      harness compare commit=1a2b3c4d,jax=0.11.2 commit=1a2b3c4d,jax=0.12.0.1
      harness compare old/results results          two results trees, or record or Parquet files
      harness compare HEAD~1 HEAD --stage compile --explain
      harness compare main HEAD --format markdown -o comment.md
      harness compare main HEAD --counts           by counts alone: one process of each is enough

    \b
    Two commits of this repository, in a terminal or in CI (CI is set): rows that are stored and
    decided stay; those that are not stored, or unsure, are measured now, in turns. How long that
    takes is shown before it starts. Every other pair, and output that is no terminal, only reads.
    In turns means rounds: each measures both once, in random order, in fresh processes of its own
    folder (a git worktree for a commit; the working tree is not touched). --live measures so
    whatever is stored, and takes more arms:
      harness compare main . --live                        a commit and the working tree
      harness compare . set:XLA_FLAGS=--xla_flag=1 --live  without a flag and with it
      harness compare . python=../other/.venv --live       this JAX and another one
      harness compare v1.0 v1.1,scenario=warm --live       several, joined by commas
    --effort 8x3 is eight rounds of three passes at most: after one, for what is proven, then after
    four, and every four more, those workloads go on of which a row is open, `unsure` that more
    processes can decide. The two processes of a round are a pair. Ctrl-C compares what is finished;
    the same command then goes on from there, and for a day measures nothing that it has measured.

    \b
    An arm is a path; column=value[,column=value...]; or one word that is looked up: a commit, tag
    or branch, a version of JAX, an environment, machine, target, scenario or night. Of several rows
    of a case in an arm the newest counts, in an environment (versions, flags) that both arms have.

    \b
    Verdicts:
      slower, faster  hardly chance (p is corrected for the rows of the stage), and at least the
                      smallest change that counts
      same            less than what counts, and surely less than twice that; or proven: code or
                      program, inputs, versions and flags are equal, and the machine did the rest
      unsure          neither: the reason says what is lacking. Times that were measured under
                      unlike loads of the machine decide nothing: taking turns does
      broken          healthy in A; fails in B, or its file cannot be imported there
      more, less      a benchmark in another unit than seconds: one value a side, by at least 10 %
      incomparable    one side only, another version of the workload, failed, skipped, no samples;
                      two machines, or unlike ones of one name
    `trace` and `lower` may be slower or faster `proven by counts`: by the calls that Python makes
    in them, where the clock does not tell.
    Of compiles that changed, the pass of XLA's is named where both arms were measured with
    `harness run --inside`.
    All rows of a stage are also judged together: a slower JAX or machine shows there.
    Filters hide rows and change no verdict. The unit is the process: at least 3 a side, better 8
    (effort default). docs/method.md has the formulas. Below stands how often this machine calls
    identical arms different (`harness aa`).
    What counts in a stage is 3 to 25 %; where you want another threshold, pyproject.toml in the
    current folder says it, as a share: under [tool.harness.thresholds], compile = 0.1.
    \b
    With --counts no clock decides, but the calls that Python makes while tracing and lowering,
    which repeat within 0.2 % on any machine. `harness run --effort quick` on both commits is all it
    needs: for ordinary CI. A case is slower or faster, has `no rise`, broke, or is incomparable;
    every program that changed is named. Counts see more work for Python and XLA; that time rose
    they do not see.

    \b
    Exit codes, of what is shown: 0 nothing slower; 1 a row is slower or more, or a stage as a whole
    slower; 2 wrong usage; 4 nothing comparable; 7 something broke.
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
        output.text(comparison_markdown.to_markdown(comparison, every, list(inside.lines(changed))))
    else:
        page = _page(comparison, every, records if explain else None, bool(filters), changed)
        document = {**summary.document(comparison), "inside": inside.document(changed)}
        output.show(page, ordered(reasons_of(comparison)), document)
    code = exit_code_of(comparison.frame)
    if code is ExitCode.NOTHING:
        say(
            "nothing is comparable: the reasons stand in the rows (`--all`), or no row has samples."
        )
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
        frame = everything(results) if results.exists() else None
    here = measures and _can_take_turns(a, b, results, frame, asked)
    if here and frame is not None:
        frame = frame[_is_own(frame, asked) & (frame["dirty"] == "")]
    try:
        with warnings_said():
            arms = named_arms(frame, a, b, results)
            comparison = comparison_between(*arms, results, filters=asked.filters)
    except NotMeasured as error:
        if here:
            return measured(a, b, results, asked)
        raise UsageError(f"{error}{_measured_now(a, b, asked.benchmarks.resolve())}") from None
    only = _undecided(comparison) if here else []
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
        if not top or not git.said(top, "rev-parse", "--verify", "--quiet", f"{commit}:{name}")
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
    rounds = f"{live.rounds} of at most {asked.effort.limit} rounds"
    say(f"{rounds} in {seconds_text(live.spent_s)}; records: {live.folder}")
    return live.comparison, live.records


def _counted(comparison: Comparison, every: bool, output: Output) -> ExitCode:
    """Show what counts say of the arms, and return what that comes to."""
    frame = programs.by_case(comparison.pairs)

    def page() -> Iterator[Part]:
        yield Heading(f"{programs.summary_text(frame)}.")
        yield summary.heading(comparison)
        yield from environment_lines(comparison.frame)
        yield from left_out_lines(comparison.pairs.left_out)
        rows = programs.table(frame, every)
        if len(rows):
            yield TextTable(rows, LEFT, WRAPPED)
        yield from (*programs.changed_lines(frame, every), *programs.left_out(frame))

    output.show(page(), frame, programs.document(frame))
    code = exit_code({*frame["verdict"]})
    if code is ExitCode.NOTHING:
        say("nothing is comparable by counts: the reasons stand above.")
    return code


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
    yield from left_out_lines(comparison.pairs.left_out)
    yield from summary.warning_lines(comparison)
    yield from map(Heading, summary.stage_lines(frame))
    overview = summary.overview(frame)
    if len(overview):
        yield TextTable(overview, LEFT, WRAPPED)
        yield ""
    yield from programs.changed_lines(programs.by_case(comparison.pairs), every)
    yield from inside.lines(changed)
    if records is not None:
        for text in explanation.explained(comparison, records, narrowed):
            yield f"\n{text}"
        yield ""
    else:
        rows, left_out = summary.listed(frame, every)
        if len(rows):
            yield TextTable(summary.table(rows), LEFT, WRAPPED)
        yield from (*left_out, *summary.legend(comparison))
    yield from summary.footer(comparison)
