"""Run any Python program, unchanged, with a profile in it and in every Python that it starts."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from harness.errors import UsageError
from harness.profiles.model import RUN, Run
from harness.watch import programs
from harness.watch.process import SUFFIX

EXAMPLE = "harness profile -- python train.py --steps 10"


@dataclass(frozen=True)
class Ran:
    """A program that was run."""

    folder: Path
    code: int
    """What a shell would see: 128 + the signal's number where a signal ended it."""
    processes: int
    """How many logs there are: 0 where the program ran no Python that could be followed."""
    complete: bool
    """Whether the end of the run could be written into the folder."""


def new_folder(asked: Path | None) -> Path:
    """Make the folder of a profile: the one asked for, or `profile-YYYYMMDD-HHMMSS` here.

    Raises:
        UsageError: if it holds something already, or cannot be made.
    """
    if asked is None:
        return _numbered(Path(f"profile-{datetime.now():%Y%m%d-%H%M%S}").absolute())
    try:
        asked.mkdir(parents=True, exist_ok=True)
        full = any(asked.iterdir())
    except OSError as error:
        raise UsageError(f"-o {asked}: the folder cannot be made: {error.strerror}.") from None
    if full:
        raise UsageError(
            f"-o {asked} is not empty. Give a folder that is empty or does not exist, so that two "
            "profiles do not mix."
        )
    return asked.absolute()


def _numbered(folder: Path) -> Path:
    for number in range(1, 1_000):
        place = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
        try:
            place.mkdir()
        except FileExistsError:  # another profile of the same second
            continue
        except OSError as error:
            raise UsageError(
                f"{place} cannot be made: {error.strerror}. Give another folder with -o."
            ) from None
        return place
    raise UsageError(f"{folder} and 999 more exist. Give another folder with -o.")


def run(command: Sequence[str], folder: Path, sample_ms: float) -> Ran:
    """Run a program under a profile, with this process's input and output.

    Args:
        command: the program, from :func:`harness.watch.programs.command_of`.
        folder: an empty one, from :func:`new_folder`.
        sample_ms: how often each process looks where its threads are; 0 for never.

    Raises:
        UsageError: if the folder cannot be written or the program cannot be started.
    """
    there = programs.environment(
        os.environ,
        HARNESS_PROFILE=str(folder),
        HARNESS_PROFILE_SAMPLE_MS=f"{sample_ms:g}",
    )
    about = Run(tuple(command), time.perf_counter_ns())
    if not write_run(folder, about):
        raise UsageError(f"{folder} cannot be written. Give another folder with -o.")

    def started(process: subprocess.Popen[bytes]) -> None:
        nonlocal about
        about = msgspec.structs.replace(about, pid=process.pid)
        write_run(folder, about)

    try:
        code = programs.run(command, there, started)
    except UsageError:
        (folder / RUN).unlink(missing_ok=True)
        folder.rmdir()
        raise
    about = msgspec.structs.replace(about, end_ns=time.perf_counter_ns(), exit_code=code)
    complete = write_run(folder, about)
    processes = sum(1 for _ in folder.glob("*" + SUFFIX))
    return Ran(folder, programs.exit_code(code), processes, complete)


def write_run(folder: Path, about: Run) -> bool:
    """Write `run.json`, whole or not at all; tells whether it could."""
    whole = folder / (RUN + ".new")
    try:
        whole.write_bytes(msgspec.json.encode(about))
        whole.replace(folder / RUN)
    except OSError:
        return False
    return True
