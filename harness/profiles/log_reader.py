"""Read a profile's log, whatever happened to its writer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.errors import ProfileError
from harness.profiles.model import Process
from harness.records.recording import read_lines
from harness.watch.log_file import SUFFIX


def read_folder(folder: Path) -> list[Process]:
    """Return every process, in the order in which they began.

    Lines of a file that does not say who wrote it are counted with the first log.

    Raises:
        ProfileError: if there is no log in the folder, or a newer release wrote it.
    """
    logs = []
    broken = 0
    for path in sorted(folder.glob("*" + SUFFIX)):
        if not path.is_file():
            continue
        log = read_file(path)
        if isinstance(log, Process):
            logs.append(log)
        else:
            broken += log
    if not logs:
        raise ProfileError(
            f"{folder} holds no profile. `harness profile -o {folder} -- python program.py` "
            "writes one."
        )
    logs.sort(key=lambda log: log.started.clock_ns)
    logs[0] = replace(logs[0], broken_lines=logs[0].broken_lines + broken)
    return logs


def read_file(path: Path) -> Process | int:
    """Read one process's file; lines that are none are counted and left out.

    Returns:
        The log; where no line says who wrote it, the number of lines, at least 1.

    Raises:
        ProfileError: if the file cannot be opened, or a newer release wrote it.
    """
    try:
        found = read_lines(path)
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error.strerror}.") from None
    if found.started is None:
        return max(1, len(found.lines) + found.broken)
    return Process(path.name, found.started, found.lines, found.broken)
