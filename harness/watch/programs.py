"""Start a program in an environment that it is followed in, and hand signals on to it.

A child process is followed where it inherits PYTHONPATH and reads it: not under `python -I`, `-E`
or `-S`, and not where the program clears its environment.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from harness.errors import UsageError

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

    Raises:
        UsageError: if there is nothing to run (`example` shows how), or the program is not found.
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
    """Run a command with this process's input and output.

    Args:
        command: what :func:`command_of` returned.
        there: its environment, from :func:`environment`.
        started: is told of the process as soon as it runs.

    Returns:
        The program's exit code; negative, as `subprocess` has it, where a signal ended it.

    Raises:
        UsageError: if the program cannot be started.
    """
    with _hand_on() as hand_to:
        try:
            process = subprocess.Popen(command, env=there)
        except OSError as error:
            raise UsageError(f"{command[0]} cannot be started: {error.strerror}.") from None
        hand_to(process)
        if started is not None:
            started(process)
        return process.wait()


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

    if threading.current_thread() is threading.main_thread():
        for name in (*HANDED_ON, *FROM_THE_TERMINAL):
            number = getattr(signal, name, None)
            # What is ignored here (nohup) is ignored in the program, which inherits that.
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, handle)
    try:
        yield hand_to
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_the_foreground() -> bool:
    """Tell whether a terminal's keys reach this process, and so the program as well."""
    try:
        with open("/dev/tty", "rb", buffering=0) as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
