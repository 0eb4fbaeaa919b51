"""Arguments and options that several commands share."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

ResultsPath = Annotated[
    Path, typer.Argument(metavar="[RESULTS]", help="A results tree, or one records file.")
]
ResultsTree = Annotated[
    Path,
    typer.Option(
        "--results", "-r", metavar="DIR", help="The results tree.", envvar="HARNESS_RESULTS"
    ),
]
Workloads = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SELECT]...",
        help="Regular expressions for the names of workloads; all of them without any.",
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option("--select", "-s", metavar="REGEX", help="Only workloads whose name matches."),
]
Stages = Annotated[
    list[str] | None, typer.Option(metavar="STAGE", help="Only this stage; repeat for several.")
]
Benchmarks = Annotated[
    Path, typer.Option("--benchmarks", metavar="DIR", help="The folder of workloads.")
]
Machine = Annotated[str | None, typer.Option(help="Name of this machine in the results.")]
Seed = Annotated[int | None, typer.Option(help="Seed of the order of visits.")]


class Format(enum.StrEnum):
    """How rows are written."""

    table = "table"
    markdown = "markdown"
    csv = "csv"
    json = "json"
