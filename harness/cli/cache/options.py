"""Options that several cache commands share, and how they write what they found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from harness.cli.options import Argument, Option
from harness.cli.output import Format, Output, Part, markdown
from harness.errors import UsageError

CacheDirectory = Annotated[
    str,
    Argument(
        metavar="DIR",
        help="The directory that jax_compilation_cache_dir names; gs://… with etils installed.",
        envvar="JAX_COMPILATION_CACHE_DIR",
    ),
]
MaxSize = Annotated[
    int,
    Option(
        "--max-size",
        metavar="BYTES",
        min=-1,
        help="The size cap that programs set (jax_compilation_cache_max_size); -1: none.",
        envvar="JAX_COMPILATION_CACHE_MAX_SIZE",
    ),
]
AsJson = Annotated[bool, Option("--json", help="The same as --format json.")]


def write(
    output: Output, parts: Iterable[Part], rows: Sequence[Any], document: Any, as_json: bool = False
) -> None:
    """Write a page for people, a row per struct in CSV, or the whole document in JSON."""
    if as_json or output.format is Format.json:
        # json escapes file names that are not UTF-8, which msgspec refuses.
        output.text(json.dumps(msgspec.to_builtins(document), indent=1))
    elif output.format is Format.csv:
        import pandas as pd  # half a second that no other format takes

        text = json.dumps(msgspec.to_builtins(rows), ensure_ascii=False)
        known = json.loads(text.encode("utf-8", "replace"))  # no file name that is not UTF-8
        output.text(pd.json_normalize(known).to_csv(index=False))
    elif output.format is Format.markdown:
        output.text(markdown(parts))
    else:
        output.page(parts)


def check_writable(option: str, path: Path) -> None:
    """Find out before minutes of work whether a file can be written, and leave it as it was."""
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
