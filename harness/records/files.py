"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from harness.errors import StoreError

MAX_LINE_BYTES = 16 * 2**20
"""A longer line is none of ours, and is never held in memory whole."""

OWN = ".json5"
"""What ends the name of a JSON file of ours in a results tree: asv takes every `.json` there for
one of its results."""


def lines(path: Path) -> Iterator[bytes | None]:
    """Yield the lines of a file that hold anything, ends included; None for one that is too long.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as handle:
        overlong = False
        while line := handle.readline(MAX_LINE_BYTES):
            whole = line.endswith(b"\n")
            if (not whole and len(line) == MAX_LINE_BYTES) or overlong:
                if not overlong:
                    yield None
                overlong = not whole
            elif not line.isspace():
                yield line


@contextmanager
def replaced(
    path: Path, mode: str = "w", remedy: str = "Choose another place with -o.", own: bool = False
) -> Iterator[IO[Any]]:
    """Open a file that takes the place of `path` once the block is done; its folder is made.

    It is on the disk then, and its name is: a machine that stops has the old file or the new one.

    If the block raises, `path` stays as it was. What is no file, such as `/dev/stdout`, is
    written directly. `mode` is `w` for text in UTF-8, or `wb`; `remedy` is what an error advises.
    A link is followed, unless the file is our `own`: a results tree may come from elsewhere, and
    with it a link to anything.

    Raises:
        StoreError: it cannot be written.
    """
    encoding = None if "b" in mode else "utf-8"
    target = path.parent.resolve() / path.name if own else path.resolve()
    # Other machines may write to the same folder, and their processes have the same numbers.
    part = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}.part")
    try:
        special = target.exists() and not target.is_file() and not target.is_dir()
        if not own and (special or path.is_relative_to("/dev")):
            with path.open(mode, encoding=encoding) as handle:
                yield handle
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            raise IsADirectoryError(0, "Is a directory")
        try:
            with part.open(mode, encoding=encoding) as handle:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
            if target.is_file() and not target.is_symlink():
                shutil.copymode(target, part)
            part.replace(target)
            _sync(target.parent)
        finally:
            with suppress(OSError):
                part.unlink()
    except BrokenPipeError:  # whoever read it has seen enough
        raise
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror or error}. {remedy}"
        ) from error


def _sync(folder: Path) -> None:
    with suppress(OSError):  # not every file system can
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
