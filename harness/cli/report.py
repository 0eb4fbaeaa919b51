"""`harness report`: one HTML file."""

from __future__ import annotations

from pathlib import Path

from click.exceptions import Exit

from harness.cli import options
from harness.cli.options import Option
from harness.cli.output import say, warnings_said
from harness.errors import ExitCode, UsageError
from harness.frame import choose
from harness.frame.against import against_baseline
from harness.frame.load import everything
from harness.frame.program_facts import compile_times
from harness.output.report import files
from harness.output.report.measured import Measured
from harness.verdicts.error_rates import use_those_of


@options.command(
    common="results output into figures",
    output=Option("--output", "-o", help="The file. [default: report.html]"),
    asv=Option(metavar="ADDRESS", help="Link to asv's pages: an address or a path."),
    into=Option(metavar="DIR", help="Write it into asv's html_dir, and link both."),
    figures=Option(metavar="DIR", help="Write each figure as SVG into this folder."),
    png=Option(help="With --figures: as PNG, too."),
)
def report(
    *,
    results: options.ReadResults = Path("results"),
    output: Path | None = None,
    asv: str = "",
    into: Path | None = None,
    figures: Path | None = None,
    png: bool = False,
) -> None:
    r"""Write one HTML file with figures and tables of everything that was measured.

    \b
      harness report                            results/ into report.html
      harness report -r DIR -o out/report.html  another results tree, or file
      harness report --into .asv/html           linked with asv's pages; after asv publish
      harness report --figures FOLDER --png     each figure as SVG and PNG as well

    \b
    The file works offline and loads nothing. In it: where the time goes by stage, inside of
    compiles by XLA's passes, what changed since the time before and why, history and change points,
    scaling, cold against warm start, XLA against the baselines with the roofline, program facts,
    environment, and the limits of the numbers. What has not been measured says so, and names the
    command that measures it. Needs the extra `figures` (README.md, Install).

    \b
    Exit codes: 0 written; 2 wrong usage; 4 there is nothing to report.
    """
    files.check_report()
    if png and figures is None:
        raise UsageError("--png needs --figures DIR, the folder to write into.")
    if into is not None:
        if output is not None:
            raise UsageError("--into DIR names the file itself: leave out -o.")
        files.check_asv(into)
        output = into / files.ASV_REPORT
        asv = asv or "index.html"
    use_those_of(Path())
    links = files.asv_links(asv)
    with warnings_said():
        frame = choose.here_first(everything(results))
        comparisons = against_baseline(results)
        passes = compile_times(results)
    if frame.empty:
        say(f"no results under {results}. `harness run` makes some.")
        raise Exit(ExitCode.NOTHING)
    from harness.output.report import page, sweep  # of the extra `figures`

    rates = sweep.error_rates(results, frame)
    made = sweep.report(Measured(frame, comparisons, rates, passes), links)
    output = output or Path("report.html")
    size = page.save(made, output)
    say(f"{output}: {size / 1e6:.1f} MB")
    if into is not None and files.link_asv(into):
        say(f"{into / 'index.html'} links to it. `asv publish` takes the link out again.")
    if figures is not None:
        say(f"{len(page.write_images(made, figures, png))} figures in {figures}")
