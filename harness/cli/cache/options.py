"""Options that several cache commands share, and their JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

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
AsJson = Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")]


def print_json(document: Any, indent: int | None = None) -> None:
    """Print structs that may hold any file name as one JSON object."""
    # json escapes file names that are not UTF-8, which msgspec refuses.
    print(json.dumps(msgspec.to_builtins(document), indent=indent))


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
