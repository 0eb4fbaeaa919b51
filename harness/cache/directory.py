"""A cache directory as a list of files, on this machine or in a bucket, read without JAX.

Nothing is written, but for JAX's lock, and what is opened keeps its time of last access where the
operating system allows that: the time is the only trace of a read that a cache without a size cap
has.
"""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import filelock

from harness.errors import ExitCode, HarnessError, UsageError

FILE_ADDRESS = (
    "without etils[epath], JAX takes file:// for a folder named `file:` in the working directory"
)

CACHE_SUFFIX = "-cache"
ATIME_SUFFIX = "-atime"
LOCK_FILE = ".lockfile"


class UnusableCacheError(HarnessError):
    """A cache directory that cannot be read, or that nobody should use as it is."""

    exit_code = ExitCode.UNUSABLE


class MissingCacheError(UsageError):
    """No directory of that name: JAX makes it before it first looks for an entry."""


class RemoteFile(NamedTuple):
    """What a bucket knows of a file, as `os.stat` would return it: no more than size and time."""

    st_size: int
    st_mtime_ns: int
    st_atime_ns: None = None
    st_mode: None = None
    st_ino: None = None
    st_uid: None = None
    st_gid: None = None


class LocalDirectory:
    """A directory that the operating system can list."""

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self.path = path

    def names(self) -> list[str]:
        """Every name in the directory, in no order."""
        try:
            return os.listdir(self.path)
        except OSError as error:
            raise self._refused("listed", error) from None

    def _refused(self, what: str, error: OSError) -> HarnessError:
        if isinstance(error, FileNotFoundError):
            address = f" ({FILE_ADDRESS})" if "file:" in self.path.parts else ""
            return MissingCacheError(
                f"{self.where} cannot be {what}: {error.strerror}{address}. JAX makes the "
                "directory before it first looks for an entry."
            )
        return UnusableCacheError(
            f"{self.where} cannot be {what}: {error.strerror or error}. Expected the directory "
            "that jax_compilation_cache_dir (or JAX_COMPILATION_CACHE_DIR) names, and which this "
            "user can read and enter: else ask its owner for `chmod u+rx,g+rx`, or run as the "
            "user whose programs use it."
        )

    def look(self, name: str) -> os.stat_result:
        """What is known of one file; raises FileNotFoundError if it has vanished.

        A link that leads nowhere is there: it is described as the link that it is.
        """
        place = f"{self.where}/{name}"  # joining paths takes longer than looking
        try:
            return os.stat(place)
        except OSError:
            try:
                return os.lstat(place)
            except PermissionError as error:
                raise self._refused("entered", error) from None

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading, without leaving a trace where that is allowed."""
        return io.FileIO(f"{self.where}/{name}", opener=_quiet)


def _quiet(path: str, flags: int) -> int:
    with suppress(PermissionError):  # only Linux has it, and only a file's owner may ask for it
        return os.open(path, flags | getattr(os, "O_NOATIME", 0))
    return os.open(path, flags)


class RemoteDirectory:
    """A directory in a bucket, read through the same library that JAX reads it with."""

    def __init__(self, where: str, path: Any) -> None:
        self.where = where
        self.path = path

    def names(self) -> list[str]:
        """Every name in the directory, in no order."""
        with _translated(self.where):
            if self.path.is_dir():
                return [child.name for child in self.path.iterdir()]
        raise UsageError(
            f"There is no directory {self.where}. Expected JAX's persistent compilation cache; "
            "check the bucket's name and that this account may list it."
        )

    def look(self, name: str) -> RemoteFile:
        """What is known of one file; raises FileNotFoundError if it has vanished."""
        with _translated(self.where):
            seen = (self.path / name).stat()
        return RemoteFile(int(seen.length), int(float(seen.mtime or 0) * 1e9))

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        with _translated(self.where):
            opened: BinaryIO = (self.path / name).open("rb")
        return opened


Directory = LocalDirectory | RemoteDirectory


@contextmanager
def _translated(where: str) -> Iterator[None]:
    # Every bucket's library has errors of its own: no sign-in, no network, no such scheme.
    try:
        yield
    except FileNotFoundError:
        raise
    except ImportError as error:
        raise UsageError(
            f"{where} needs another library to be read: {error}. Install it (for JAX as well: "
            "`pip install 'etils[epath]'`, and gcsfs for gs://, s3fs for s3://), or copy the "
            "directory here and give the copy's path."
        ) from None
    except Exception as error:
        raise UnusableCacheError(
            f"{where} cannot be read: {type(error).__name__}: {error}. Check the address, the "
            "network and this account's sign-in, or copy the directory here and give the copy's "
            "path."
        ) from None


_FILE = "file://"


def open_directory(where: str) -> Directory:
    """The cache directory of that name.

    `where` is a path, a `file://` address, or that of a bucket such as `gs://team/cache`. Without
    etils[epath], JAX takes `file://` for the name of a folder, and so does this. With
    it, JAX fails.

    Raises:
        UsageError: For no name, for `file://` beside etils, if there is no directory of that
            name, and for a bucket if the library that reads it is not installed.
        UnusableCacheError: If it cannot be listed.
    """
    if not where.removeprefix(_FILE):
        raise UsageError("DIR is empty. Give the directory that jax_compilation_cache_dir names.")
    if where.startswith(_FILE):
        try:
            importlib.import_module("etils.epath")
        except ImportError:
            where = os.path.abspath(where)
        else:
            raise UsageError(
                f"{where} is no address that etils takes (tried: 1.5 to 1.15): where etils is "
                "installed, JAX ends at its first compile with KeyError 'file://'. Give "
                f"jax_compilation_cache_dir, and this command, {where.removeprefix(_FILE)}."
            )
    if "://" in where:
        with _translated(where):
            # The same library as JAX's own code takes, so that both see the same files.
            path = importlib.import_module("etils.epath").Path(where)
        directory: Directory = RemoteDirectory(where, path)
    else:
        directory = LocalDirectory(Path(where))
    directory.names()
    return directory


def local_path(place: Directory, what: str) -> Path:
    """Return where a directory is on this machine; `what` needs that.

    Raises:
        UsageError: it is elsewhere.
    """
    if isinstance(place, LocalDirectory):
        return place.path
    raise UsageError(
        f"{what} works with files on this machine only, and {place.where} is elsewhere. Copy the "
        "directory here, or use the bucket's own tool, or its rules for what is old."
    )


LOCK_PATIENCE_S = 60.0
"""JAX holds its lock for a read, a write or an eviction, and itself waits 10 s."""


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep JAX from reading, writing and evicting meanwhile, where it takes a lock to do so.

    Without a size cap it takes none: then only what is one atomic step is safe.
    """
    place = directory / LOCK_FILE
    if not place.exists():
        yield
        return
    try:
        lock = filelock.FileLock(place).acquire(timeout=LOCK_PATIENCE_S)
    except OSError as error:  # filelock's own timeout is one
        held = isinstance(error, filelock.Timeout)
        reason = f"another process held it for {LOCK_PATIENCE_S:.0f} s" if held else error.strerror
        raise UnusableCacheError(
            f"{place} cannot be locked: {reason or error}. JAX lets go of it after each access: "
            "look who has it open (`fuser`), and run this as the user whose programs fill it."
        ) from None
    with lock:
        yield
