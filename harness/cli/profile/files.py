"""`harness profile report` and `trace`: a profile as one file for others to open."""

from __future__ import annotations

from pathlib import Path

from harness.cli import options
from harness.cli.options import Option
from harness.cli.output import say
from harness.errors import UsageError
from harness.profiles.recorded import read
from harness.profiles.tracks import save, trace_of
from harness.report import files


@options.command(
    output=Option("--output", "-o", help="The file. [default: FOLDER/profile.html]"),
    figures=Option(metavar="DIR", help="Write each figure as SVG into this folder."),
    png=Option(help="With --figures: as PNG, too."),
)
def report(
    folder: options.Profile,
    output: Path | None = None,
    figures: Path | None = None,
    png: bool = False,
) -> None:
    r"""Write one HTML file of a profile: timeline, causes, tree of call sites, tables.

    \b
      harness profile report FOLDER                       FOLDER/profile.html
      harness profile report FOLDER -o out/profile.html
      harness profile report FOLDER --figures DIR --png   each figure as SVG, and as PNG, too

    \b
    The file works offline and loads nothing. It contains paths, names of arguments and values of
    static arguments: look through it before you give it away.
    Needs the extra `figures`: pip install 'jax-harness[figures]'.
    """
    files.check_report()
    if png and figures is None:
        raise UsageError("--png needs --figures DIR, the folder to write into.")
    from harness.report import page  # of the extra `figures`
    from harness.report.profile.page import profile_report

    made = profile_report(read(folder))
    output = output or folder / "profile.html"
    say(f"{output}: {page.save(made, output) / 1e6:.1f} MB")
    if figures is not None:
        say(f"{len(page.write_images(made, figures, png))} figures in {figures}")


@options.command(output=Option("--output", "-o", help="The file. [default: FOLDER/trace.json.gz]"))
def trace(folder: options.Profile, output: Path | None = None) -> None:
    r"""Write a profile as a trace, for Perfetto (ui.perfetto.dev) and chrome://tracing.

    \b
      harness profile trace FOLDER                    FOLDER/trace.json.gz
      harness profile trace FOLDER -o trace.json

    \b
    In it: processes and threads, builds with their stages inside, what each was called with, where
    and why; what the persistent cache answered; emptied caches. The file is packed with gzip if its
    name ends in .gz. It contains paths and values of static arguments.
    """
    output = output or folder / "trace.json.gz"
    say(f"{output}: {save(trace_of(read(folder)), output)} events")
