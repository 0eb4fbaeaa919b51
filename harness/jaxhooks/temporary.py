"""Temporary folders of a process: gone with it, or with the next that makes one.

A folder is locked for as long as its process needs it, so that what a killed one has left can be
distinguished from what is in use, whoever made it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

with contextlib.suppress(ImportError):  # Windows has none, and only reads
    import fcntl

PREFIX = "harness-scratch-"
"""Begins the names of such folders, and of nobody else's."""


@contextmanager
def temporary_folder(folder: Path | str | None = None) -> Iterator[Path]:
    """Yield an empty folder, in the system's folder for such or in `folder`; it goes afterwards.

    What processes that were killed have left there is removed as well.
    """
    where = Path(folder) if folder is not None else Path(tempfile.gettempdir())
    remove_left_over(where)
    made, lock = _made(where)
    try:
        yield made
    finally:
        _remove(made)
        if lock is not None:
            os.close(lock)


def remove_left_over(where: Path | None = None) -> list[Path]:
    """Remove the folders of processes that are gone; return them."""
    removed = []
    for folder in left_over(where):
        _remove(folder)
        removed += [folder] if not folder.exists() else []
    return removed


def left_over(where: Path | None = None) -> Iterator[Path]:
    """Yield the folders of this user that nobody has locked; none where nobody can lock one."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    for folder in (where or Path(tempfile.gettempdir())).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.geteuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    yield folder
            finally:
                os.close(lock)


def _made(where: Path) -> tuple[Path, int | None]:
    while True:
        made = Path(tempfile.mkdtemp(prefix=PREFIX, dir=where)).resolve()
        if not hasattr(os, "O_DIRECTORY"):
            return made, None
        with contextlib.suppress(FileNotFoundError):  # one who tidies up was faster
            lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if made.exists():
                return made, lock
            os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a folder, with what git knows of a worktree in it."""
    for link in folder.glob("*/.git"):
        with contextlib.suppress(OSError):
            worktree = Path(link.read_text().removeprefix("gitdir: ").strip())
            if worktree.parent.name == "worktrees":
                shutil.rmtree(worktree, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
