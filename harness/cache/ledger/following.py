"""Run any Python program, unchanged, with a ledger in it and in every Python that it starts.

A child process is followed where it inherits PYTHONPATH and reads it: not under `python -I`, `-E`
or `-S`, and not where the program clears its environment.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import harness
from harness.cache.ledger.events import open_to_append
from harness.errors import UsageError

BOOTSTRAP = Path(__file__).resolve().parent / "bootstrap"


def environment(ledger: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which every Python that imports JAX opens the ledger."""
    there = dict(inherited)
    rest = there.get("PYTHONPATH", "")
    there["PYTHONPATH"] = os.pathsep.join(filter(None, (str(BOOTSTRAP), rest)))
    there["HARNESS_LEDGER"] = str(ledger.resolve())
    there["HARNESS_LEDGER_HOME"] = str(Path(harness.__file__).resolve().parents[1])
    return there


def command_of(words: Sequence[str]) -> list[str]:
    """Return the command to run: as given, or this Python with a script, a `-m` or a `-c`.

    Raises:
        UsageError: if there is nothing to run, or the program is not found.
    """
    if not words:
        raise UsageError(
            "Nothing to run. Give the program after --, for example: "
            "harness cache ledger -o run.jsonl -- python train.py --steps 10"
        )
    if words[0].endswith(".py") or words[0] in ("-m", "-c"):
        return [sys.executable, *words]
    found = shutil.which(words[0])
    if found is None:
        raise UsageError(
            f"The program {words[0]!r} is not on PATH. Give a command, a .py file, -m MODULE or "
            "-c CODE after --."
        )
    return [found, *words[1:]]


def run(words: Sequence[str], ledger: Path) -> int:
    """Run a program under a ledger, with this process's input and output.

    Returns:
        The program's exit code; 128 + the signal's number where a signal ended it.

    Raises:
        UsageError: if the program cannot be started.
        LedgerError: if the ledger cannot be written.
    """
    command = command_of(words)
    os.close(open_to_append(ledger))
    try:
        process = subprocess.Popen(command, env=environment(ledger, os.environ))
    except OSError as error:
        raise UsageError(f"{command[0]} cannot be started: {error.strerror}.") from None
    # A job scheduler ends this process alone; the terminal interrupts the program as well.
    before = signal.signal(signal.SIGTERM, lambda number, frame: process.send_signal(number))
    try:
        while True:
            try:
                code = process.wait()
                break
            except KeyboardInterrupt:  # the program decides
                continue
    finally:
        signal.signal(signal.SIGTERM, before)
    return code if code >= 0 else 128 - code


def signal_of(code: int) -> str:
    """Return the name of the signal that an exit code of :func:`run` stands for, or nothing."""
    try:
        return signal.Signals(code - 128).name if code > 128 else ""
    except ValueError:
        return ""
