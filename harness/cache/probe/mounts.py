"""Directories that refuse: read-only ones and full ones, for as long as a row needs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.cache.probe.findings import NotApplicable

DISK_BYTES = 256 * 1024


def _mount(*arguments: str) -> None:
    program = shutil.which("mount")
    if program is None:
        raise NotApplicable("there is no mount command here")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotApplicable(f"mounting is not allowed here: {done.stderr.strip()}")


def _unmount(directory: Path) -> None:
    # Lazily as a second try: a directory that is still in use must not stay mounted either.
    for option in ([], ["-l"]):
        done = subprocess.run(["umount", *option, str(directory)], capture_output=True, check=False)
        if not done.returncode:
            return


def _refuses(directory: Path) -> bool:
    trial = directory / "trial"
    try:
        trial.touch()
    except OSError:
        return True
    trial.unlink()
    return False


@contextmanager
def read_only(directory: Path) -> Iterator[None]:
    """Make a directory refuse writes.

    Permissions do it for a user; root, whom they do not bind, gets a read-only bind mount.

    Raises:
        NotApplicable: Neither works here.
    """
    if os.geteuid() != 0:
        mode = directory.stat().st_mode
        directory.chmod(0o555)
        try:
            if not _refuses(directory):
                raise NotApplicable("this file system does not heed permissions")
            yield
        finally:
            directory.chmod(mode)
        return
    _mount("--bind", str(directory), str(directory))
    try:
        _mount("-o", "remount,ro,bind", str(directory))
        if not _refuses(directory):
            raise NotApplicable("root ignores permissions, and a read-only mount does not hold")
        yield
    finally:
        _unmount(directory)


@contextmanager
def small_disk(directory: Path) -> Iterator[None]:
    """Put a file system of 256 KiB on a directory.

    Raises:
        NotApplicable: Only root may mount, or mounting fails.
    """
    if os.geteuid() != 0:
        raise NotApplicable("filling a disk needs a small one, and only root may mount it")
    _mount("-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(directory))
    try:
        yield
    finally:
        _unmount(directory)


def fill_up(directory: Path) -> Path:
    """Write a file that leaves nothing free; give the file."""
    ballast = directory / "ballast"
    ballast.write_bytes(bytes(shutil.disk_usage(directory).free))
    return ballast
