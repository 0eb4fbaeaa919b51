"""Run any Python program, unchanged, with a ledger in it and in every Python that it starts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.watch import programs
from harness.watch.ledger.events import open_to_append

EXAMPLE = "harness cache ledger -o run.jsonl -- python train.py --steps 10"


def environment(ledger: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which every Python that imports JAX opens the ledger."""
    return programs.environment(inherited, HARNESS_LEDGER=str(ledger.resolve()))


def run(words: Sequence[str], ledger: Path) -> int:
    """Run a program under a ledger, with this process's input and output.

    Returns:
        The program's exit code; 128 + the signal's number where a signal ended it.

    Raises:
        UsageError: if the program cannot be started.
        LedgerError: if the ledger cannot be written.
    """
    command = programs.command_of(words, EXAMPLE)
    os.close(open_to_append(ledger))
    return programs.exit_code(programs.run(command, environment(ledger, os.environ)))
