"""`harness profile report`: one HTML file. Thin: parse, call, say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.profile import app

HELP = """Write one HTML file of a profile: timeline, causes, tree of call sites, tables.

\b
  harness profile report FOLDER                       FOLDER/profile.html
  harness profile report FOLDER -o out/profile.html
  harness profile report FOLDER --figures DIR --png   each figure as SVG, and as PNG, too

\b
The file works offline and loads nothing. It contains paths, names of arguments and values of
static arguments: look through it before you give it away.
Needs the extra `figures`: pip install 'jax-harness[figures]'.
"""


@app.command("report", help=HELP, no_args_is_help=True)
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="What `harness profile -o FOLDER` wrote.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file. [default: FOLDER/profile.html]")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write each figure as SVG into this folder.")
    ] = None,
    png: Annotated[bool, typer.Option("--png", help="With --figures: as PNG, too.")] = False,
) -> None:
    """Write the report; :data:`HELP` is what the command says of itself."""
    from harness.errors import UsageError
    from harness.profiles.recorded import read
    from harness.report import writing
    from harness.report.profile.assembling import assemble

    writing.check()
    if png and figures is None:
        raise UsageError("--png needs --figures DIR, the folder to write into.")
    made = assemble(read(folder))
    output = output or folder / "profile.html"
    _say(f"{output}: {writing.write(made, output) / 1e6:.1f} MB")
    if figures is not None:
        from harness.report import images

        _say(f"{len(images.write(made, figures, png))} figures in {figures}")


def _say(text: str) -> None:
    print(f"harness: {text}", file=sys.stderr)
