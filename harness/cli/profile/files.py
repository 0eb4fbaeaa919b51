"""`harness profile report`: a profile as one file for others to open."""

from __future__ import annotations

from pathlib import Path

from harness.cli import options
from harness.cli.options import Option
from harness.cli.output import say
from harness.cli.profile import answer
from harness.errors import UsageError
from harness.profiles.recorded import read


@options.command(
    common="output figures",
    output=Option(
        "--output",
        "-o",
        help="A .html, .json, .json.gz or .pb.gz file. [default: FOLDER/profile.html]",
    ),
    figures=Option(metavar="DIR", help="Write each figure as SVG into this folder."),
    png=Option(help="With --figures: as PNG, too."),
)
def report(
    folder: options.Profile,
    output: Path | None = None,
    figures: Path | None = None,
    png: bool = False,
) -> None:
    r"""Write a profile as one file: HTML, a trace for Perfetto, or for pprof.

    \b
      harness profile report FOLDER                       FOLDER/profile.html
      harness profile report FOLDER -o trace.json.gz      a trace, packed
      harness profile report FOLDER -o builds.pb.gz       seconds by line and stack, for pprof
      harness profile report FOLDER --figures DIR --png   each figure as SVG, and as PNG, too

    \b
    The report has timeline, causes, tree of call sites and tables, works offline and loads nothing.
    It needs the extra `figures` (README.md, Install).
    The trace is for ui.perfetto.dev and chrome://tracing: processes and threads, builds with their
    stages inside, what each was called with, where and why; what the persistent cache answered.
    For pprof (`go tool pprof -http=: builds.pb.gz`, speedscope.app): what trace, lower, compile,
    load and write took, by the function that was built and the lines that asked for it.
    All contain paths, names of arguments and values of static arguments: look through the file
    before you give it away.
    """
    output = output or folder / "profile.html"
    answer.check_format(output)
    if png and figures is None:
        raise UsageError("--png needs --figures DIR, the folder to write into.")
    if figures is not None and output.suffix != ".html":
        raise UsageError(
            f"--figures are those of the report, and {output} is not it: leave -o out."
        )
    if figures is None:
        say(f"{output}: {answer.write(read(folder), output)}")
        return
    from harness.output.report import page  # of the extra `figures`
    from harness.output.report.profile.page import profile_report

    made = profile_report(read(folder))
    say(f"{output}: {page.save(made, output) / 1e6:.1f} MB")
    say(f"{len(page.write_images(made, figures, png))} figures in {figures}")
