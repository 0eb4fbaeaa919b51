"""`harness profile trace`: a trace for Perfetto. Thin: parse, call, say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.profile import app

HELP = """Write a profile as a trace, for Perfetto (ui.perfetto.dev) and chrome://tracing.

\b
  harness profile trace FOLDER                    FOLDER/trace.json.gz
  harness profile trace FOLDER -o trace.json

\b
In it: processes and threads, builds with their stages inside, what each was called with, where and
why; what the persistent cache answered; emptied caches; bytes of executables. The file is packed
with gzip if its name ends in .gz. It contains paths and values of static arguments.
"""


@app.command("trace", help=HELP, no_args_is_help=True)
def trace(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="What `harness profile -o FOLDER` wrote.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file. [default: FOLDER/trace.json.gz]"),
    ] = None,
) -> None:
    """Write the trace; :data:`HELP` is what the command says of itself."""
    from harness.profiles.recorded import read
    from harness.profiles.trace import write

    output = output or folder / "trace.json.gz"
    number = write(read(folder), output)
    print(f"harness: {output}: {number} events", file=sys.stderr)
