"""Files that commands write what they found into."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from harness.errors import StoreError


def write(text: str, output: Path | None) -> None:
    """Write text into a file, or print it."""
    if output is None:
        print(text)
        return
    with open_(output) as handle:
        handle.write(text + "\n")


def open_(output: Path) -> TextIO:
    """Open a file to write, whose folder may not be there yet.

    Raises:
        StoreError: if it cannot be written.
    """
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        return output.open("w", encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"{output} cannot be written: {error.strerror or error}. Choose another place with -o."
        ) from error
