"""Arguments and options that several cache commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.options import Benchmarks as Benchmarks
from harness.errors import UsageError

CacheDirectory = Annotated[
    str,
    typer.Argument(
        metavar="DIR",
        help="The directory that jax_compilation_cache_dir names; gs://… with etils installed.",
        envvar="JAX_COMPILATION_CACHE_DIR",
    ),
]
MaxSize = Annotated[
    int,
    typer.Option(
        "--max-size",
        metavar="BYTES",
        min=-1,
        help="The size cap that programs set (jax_compilation_cache_max_size); -1: none.",
        envvar="JAX_COMPILATION_CACHE_MAX_SIZE",
    ),
]

OneWorkload = Annotated[
    str,
    typer.Argument(metavar="WORKLOAD", help="The workload, or an expression only it matches."),
]
Cases = Annotated[
    list[str] | None,
    typer.Option("--case", metavar="AXIS=VALUE", help="Only these cases; repeat for several."),
]
Target = Annotated[str, typer.Option("--target", help="Where it runs: cpu, gpu, tpu.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")]


def check_writable(option: str, path: Path) -> None:
    """Find out before minutes of work whether a file can be written, and leave it as it was.

    Raises:
        UsageError: it cannot.
    """
    there = path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
        if not there:
            path.unlink()
    except OSError as error:
        raise UsageError(
            f"{option} {path} cannot be written: {error.strerror}. Give a file in a folder that "
            "you can write to."
        ) from None
