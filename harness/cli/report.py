"""`harness report`: one HTML file. Thin: parse, call, say."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import options

if TYPE_CHECKING:
    import pandas as pd

NOTHING_MEASURED = 4

HELP = """Write one HTML file with figures and tables of everything that was measured.

\b
  harness report                             results/ into report.html
  harness report RESULTS -o out/report.html  another results tree, or one records file
  harness report --into .asv/html            beside asv's pages, each linked to the other;
                                             after `asv publish`, which writes its own anew
  harness report --asv https://host/bench/   with a link to asv's pages elsewhere
  harness report --figures docs/figures --png
                                             each figure as SVG, and as PNG, too

\b
The file works offline and loads nothing. In it: where the time goes by stage, what changed since
the time before and why, history and change points, scaling, cold against warm start, XLA against
the baselines with the roofline, program facts, environment, and the limits of the numbers. What
has not been measured says so, and names the command that measures it.
Needs the extra `figures`: pip install 'jax-harness[figures]'.

\b
Exit codes: 0 written; 2 wrong usage; 4 there is nothing to report.
"""


def report(
    path: options.ResultsPath = Path("results"),
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file. [default: report.html]")
    ] = None,
    asv: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Link to asv's pages: an address or a path.")
    ] = "",
    into: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write it into asv's html_dir, and link both."),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write each figure as SVG into this folder.")
    ] = None,
    png: Annotated[bool, typer.Option("--png", help="With --figures: as PNG, too.")] = False,
) -> None:
    """Write the report; :data:`HELP` is what the command says of itself."""
    from harness.errors import UsageError
    from harness.report import asv_page, writing

    writing.check()
    if png and figures is None:
        raise UsageError("--png needs --figures DIR, the folder to write into.")
    if into is not None:
        if output is not None:
            raise UsageError("--into DIR names the file itself: leave out -o.")
        asv_page.check(into)
        output = into / asv_page.NAME
        asv = asv or "index.html"
    links = writing.links(asv)
    frame, comparisons = _load(path)
    made = writing.assembled(path, frame, comparisons, links)
    output = output or Path("report.html")
    size = writing.write(made, output)
    _say(f"{output}: {size / 1e6:.1f} MB")
    if into is not None and asv_page.link(into):
        _say(f"{into / 'index.html'} links to it. `asv publish` takes the link out again.")
    if figures is not None:
        from harness.report import images

        _say(f"{len(images.write(made, figures, png))} figures in {figures}")


def _load(path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    from harness.frame.against import against_baseline
    from harness.frame.load import load

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = load(path)
        comparisons = against_baseline(path)
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        _say(text)
    if frame.empty:
        _say(f"no results under {path}. `harness run` makes some.")
        raise typer.Exit(NOTHING_MEASURED)
    return frame, comparisons


def _say(text: str) -> None:
    print(f"harness: {text}", file=sys.stderr)
