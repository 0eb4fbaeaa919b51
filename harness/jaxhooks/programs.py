"""Start a program in an environment that it is followed in, and hand signals on to it.

A child process is followed where it inherits PYTHONPATH and reads it: not under `python -I`, `-E`
or `-S`, and not where the program clears its environment.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import FrameType

from harness.errors import UsageError
from harness.jaxhooks.events import RUN, SCHEMA, Run
from harness.jaxhooks.ledger import open_file
from harness.jaxhooks.log_file import SUFFIX
from harness.jaxhooks.writer import encoded

BOOTSTRAP = Path(__file__).resolve().parent / "bootstrap"

HANDED_ON = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")
"""Signals that the program gets whenever this process gets them."""

FROM_THE_TERMINAL = ("SIGINT", "SIGQUIT", "SIGTSTP")
"""Signals that a terminal sends to the program as well; handed on where there is no terminal."""


def environment(inherited: Mapping[str, str], **variables: str) -> dict[str, str]:
    """Return an environment in which every Python runs `bootstrap/sitecustomize.py`."""
    there = {**inherited, **variables}
    rest = there.get("PYTHONPATH", "").split(os.pathsep)
    places = [str(BOOTSTRAP), *(place for place in rest if place and place != str(BOOTSTRAP))]
    there["PYTHONPATH"] = os.pathsep.join(places)
    return there


def command_of(words: Sequence[str], example: str) -> list[str]:
    """Return the command to run: as given, or this Python with a script or options of Python's.

    A UsageError if there is nothing to run (`example` shows how), or the program is not found.
    """
    if not words:
        raise UsageError(f"Nothing to run. Give the program after --, for example: {example}")
    if words[0].endswith(".py") or words[0].startswith("-"):
        return [sys.executable, *words]
    if shutil.which(words[0]) is None:
        raise UsageError(
            f"The program {words[0]!r} is not on PATH. Give a command, a .py file, -m MODULE or "
            "-c CODE after --."
        )
    return list(words)


def run(
    command: Sequence[str],
    there: Mapping[str, str],
    started: Callable[[subprocess.Popen[bytes]], None] | None = None,
) -> int:
    """Run a command in an :func:`environment`, with this process's input and output.

    `started` gets the process as soon as it runs; a UsageError if it cannot be started.
    Returns the program's exit code; negative, as `subprocess` has it, where a signal ended it.
    """
    with _hand_on() as hand_to:
        try:
            process = subprocess.Popen(command, env=there)
        except OSError as error:
            raise UsageError(f"{command[0]} cannot be started: {error.strerror}.") from None
        hand_to(process)
        if started is not None:
            started(process)
        return _end_of(process)


def exit_code(code: int) -> int:
    """Return what a shell makes of a code of :func:`run`: 128 + the signal's number."""
    return code if code >= 0 else 128 - code


def signal_of(code: int) -> str:
    """Return the name of the signal that an :func:`exit_code` stands for, or nothing."""
    try:
        return signal.Signals(code - 128).name if code > 128 else ""
    except ValueError:
        return ""


@contextlib.contextmanager
def _hand_on() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Hand signals on to the process that the result is called with."""
    processes: list[subprocess.Popen[bytes]] = []
    early: list[int] = []
    before = {}

    def handle(number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if name in HANDED_ON or not _in_the_foreground():
            if processes:
                processes[0].send_signal(number)
            else:
                early.append(number)
        if name == "SIGTSTP":  # stop as well, and as nobody can prevent
            os.kill(os.getpid(), signal.SIGSTOP)

    def hand_to(process: subprocess.Popen[bytes]) -> None:
        processes.append(process)
        for number in early:
            process.send_signal(number)

    if _in_the_main_thread():
        for name in (*HANDED_ON, *FROM_THE_TERMINAL):
            number = signal.Signals[name]
            # What is ignored here (nohup) is ignored in the program, which inherits that.
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, handle)
    try:
        yield hand_to
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_the_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _end_of(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process, and handle each signal when it comes.

    `Popen.wait` may be about to block when a signal comes, and handles it when the next one does.
    """
    if not _in_the_main_thread():
        return process.wait()
    came, comes = os.pipe()
    os.set_blocking(came, False)
    os.set_blocking(comes, False)
    fd = signal.set_wakeup_fd(comes, warn_on_full_buffer=False)
    handler = signal.signal(signal.SIGCHLD, lambda number, frame: None)  # SIGCHLD wakes it too
    try:
        while process.poll() is None:
            select.select([came], [], [])
            os.read(came, 4096)
        return process.returncode
    finally:
        signal.signal(signal.SIGCHLD, handler)
        signal.set_wakeup_fd(fd)
        os.close(came)
        os.close(comes)


def _in_the_foreground() -> bool:
    """Tell whether a terminal's keys reach this process, and so the program as well."""
    try:
        with open("/dev/tty", "rb", buffering=0) as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


# --- with a ledger, with a profile ----------------------------------------------------------------

LEDGER_EXAMPLE = "harness cache ledger -o run.jsonl -- python train.py --steps 10"
PROFILE_EXAMPLE = "harness profile -- python train.py --steps 10"

INSIDE = "inside"
"""The folder in a profile's that has XLA's events of its compiles."""


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

    A UsageError if it holds something already, or cannot be made.
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
    place, number = folder, 1
    while True:
        try:
            place.mkdir()
            return place
        except FileExistsError:  # another profile of the same second
            number += 1
            place = folder.with_name(f"{folder.name}-{number}")
        except OSError as error:
            raise UsageError(
                f"{place} cannot be made: {error.strerror}. Give another folder with -o."
            ) from None


def run_profiled(
    command: Sequence[str],
    folder: Path,
    sample_ms: float,
    inside: bool = False,
    announce_s: float = 0.0,
    reader: str = "",
) -> Ran:
    """Run a program under a profile, with this process's input and output.

    Args:
        command: the program, from :func:`command_of`.
        folder: an empty one, from :func:`new_folder`.
        sample_ms: how often each process looks where its threads are; 0 for never.
        inside: whether XLA's own events of each compile are recorded as well.
        announce_s: after how many seconds a stage of a build is written down at once; 0 for never.
        reader: with them the text of what was compiled, and what this function, `module:name`,
            makes of its jaxpr.
    """
    there = environment(
        os.environ,
        HARNESS_PROFILE=str(folder),
        HARNESS_PROFILE_SAMPLE_MS=f"{sample_ms:g}",
        HARNESS_PROFILE_ANNOUNCE_S=f"{announce_s:g}" if announce_s else "",
        HARNESS_PROFILE_INSIDE=str(folder / INSIDE) if inside else "",
        HARNESS_PROFILE_READER=reader,
    )
    about = Run(tuple(command), time.perf_counter_ns())
    if not write_run(folder, about):
        raise UsageError(f"{folder} cannot be written. Give another folder with -o.")

    def started(process: subprocess.Popen[bytes]) -> None:
        nonlocal about
        about = replace(about, pid=process.pid)
        write_run(folder, about)

    try:
        code = run(command, there, started)
    except UsageError:
        (folder / RUN).unlink(missing_ok=True)
        folder.rmdir()
        raise
    about = replace(about, end_ns=time.perf_counter_ns(), exit_code=code)
    complete = write_run(folder, about)
    processes = sum(1 for _ in folder.glob("*" + SUFFIX))
    return Ran(folder, exit_code(code), processes, complete)


def write_run(folder: Path, about: Run) -> bool:
    """Write `run.json`, whole or not at all; tells whether it could."""
    whole = folder / (RUN + ".new")
    try:
        whole.write_bytes(encoded(replace(about, schema=SCHEMA)))
        whole.replace(folder / RUN)
    except OSError:
        return False
    return True


def run_with_ledger(words: Sequence[str], ledger: Path, **variables: str) -> int:
    """Run a program under a ledger, a file or a folder that exists; return its :func:`exit_code`.

    A LedgerError if the ledger cannot be written.
    """
    command = command_of(words, LEDGER_EXAMPLE)
    if not ledger.is_dir():
        open_file(ledger).close()
    there = environment({**os.environ, **variables}, HARNESS_LEDGER=str(ledger.resolve()))
    return exit_code(run(command, there))
