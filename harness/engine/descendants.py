"""What a process of ours has started, in whatever session and whoever its parent is now.

It is told by a variable that each process hands on to what it starts: a mark for each that started
it. Only Linux shows the variables of processes; one that clears them is not found.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Callable, Collection, Mapping

_VARIABLE = "HARNESS_STARTED_BY"
_PROCESSES = "/proc"

PATIENCE_S = 10.0
"""What the kernel does not end in so long is left to it."""


def new_mark() -> str:
    """Return what tells those apart that this process starts from now on."""
    return f"{os.getpid()}:{_namespace()}:{secrets.token_hex(8)}"


def marked(mark: str) -> dict[str, str]:
    """Return the variable of a process that is started under a mark."""
    return {_VARIABLE: " ".join([*os.environ.get(_VARIABLE, "").split(), mark])}


def end(mark: str, but: Collection[int] = ()) -> None:
    """Kill all that was started under a mark, and what that starts meanwhile."""
    _kill(lambda marks: mark in marks, but)


def end_left_over() -> int:
    """Kill what processes have started that are gone; return how many there were."""
    namespace, own = _namespace(), os.environ.get(_VARIABLE, "").split()

    def is_left_over(marks: list[str]) -> bool:
        owners = [mark.split(":") for mark in marks if mark not in own]
        # In another namespace the same number is another process.
        here = [words[0] for words in owners if words[1:2] == [str(namespace)]]
        return any(pid.isdigit() and not os.path.exists(f"{_PROCESSES}/{pid}") for pid in here)

    return _kill(is_left_over, ())


def _kill(wanted: Callable[[list[str]], bool], but: Collection[int]) -> int:
    killed: set[int] = set()
    deadline = time.monotonic() + PATIENCE_S
    while found := [pid for pid, marks in _all().items() if wanted(marks) and pid not in but]:
        for pid in found:
            with contextlib.suppress(OSError):  # it is gone, or another user's
                process = os.pidfd_open(pid)
                try:
                    if wanted(_marks(pid)):  # not another one of this number
                        signal.pidfd_send_signal(process, signal.SIGKILL)
                        killed.add(pid)
                finally:
                    os.close(process)
        if time.monotonic() > deadline:
            break
        time.sleep(0.002)
    return len(killed)


def _all() -> Mapping[int, list[str]]:
    """Return the marks of each process of this user's that has any."""
    try:
        numbers = [int(name) for name in os.listdir(_PROCESSES) if name.isdigit()]
    except OSError:  # no Linux
        return {}
    found = {number: _marks(number) for number in numbers if number != os.getpid()}
    return {number: marks for number, marks in found.items() if marks}


def _marks(pid: int) -> list[str]:
    try:
        with open(f"{_PROCESSES}/{pid}/environ", "rb", buffering=0) as file:
            variables = b"\0" + (file.read() or b"")
            owner = os.fstat(file.fileno()).st_uid
    except OSError:
        return []
    _, found, rest = variables.partition(f"\0{_VARIABLE}=".encode())
    mine = found and owner == os.geteuid()
    return rest.partition(b"\0")[0].decode("ascii", "replace").split() if mine else []


def _namespace() -> int:
    try:
        return os.stat(f"{_PROCESSES}/self/ns/pid").st_ino
    except OSError:
        return 0
