"""Run one measuring process: start it, listen, and end it when it hangs or eats the machine."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import psutil

from harness.engine.board import SIZE, Board, Visit
from harness.engine.child import Child
from harness.engine.starting import STARTUP_TIMEOUT_S, child_environment
from harness.engine.unit import Bye, Done, Fatal, Message, Unit, decode_message, encode_unit
from harness.records.environment import surroundings

MEMORY_SHARE = 0.8
"""The part of the machine's (or the control group's) memory that a process may hold."""


@dataclass
class Ending:
    """How a measuring process ended."""

    reason: str = ""
    """Empty where it finished its unit."""
    visit: Visit | None = None
    """What it was at when it ended before its time."""
    stderr: list[str] = field(default_factory=list)
    bye: Bye | None = None
    hopeless: bool = False
    """Whether the process said itself that it cannot measure anything: another could not either."""


def memory_limit() -> int:
    """Return how many bytes one measuring process may hold before it is stopped."""
    total = psutil.virtual_memory().total
    try:
        group = Path("/sys/fs/cgroup/memory.max").read_text().strip()  # Linux, cgroup v2
        total = min(total, int(group))
    except (OSError, ValueError):
        pass
    return int(total * MEMORY_SHARE)


def converse(
    unit: Unit,
    on_message: Callable[[Message], None],
    on_visit: Callable[[Visit], None],
    timeout_s: float,
    memory_limit_bytes: int | None = None,
    on_look: Callable[[], None] = lambda: None,
) -> Ending:
    """Run `unit` in a process of its own, hand each message on, and say how the process ended.

    The process waits after each record until `on_message` has returned, so that storing it disturbs
    nothing. `on_visit` is called now and then with what the process is at, and `on_look` whenever
    the process is looked at. `timeout_s` bounds one pass over one case, to a quarter of a second.
    Whatever happens here, a Ctrl-C or what a callback raises included, the process and all that it
    started are gone afterwards.
    """
    limit = memory_limit_bytes or memory_limit()
    # JAX and a baseline's library never share a process, so a baseline has a worker of its own.
    worker = "harness.sides.worker" if unit.backend else "harness.engine.worker"
    with tempfile.TemporaryFile() as shared:
        shared.truncate(SIZE)
        board = Board(shared.fileno())
        command = [sys.executable, "-m", worker, str(shared.fileno())]
        with Child(command, child_environment(unit), fds=[shared.fileno()]) as child:
            watch = _Watch(child, board, on_visit, on_look, timeout_s, limit)
            try:
                reason = _hear(child, unit, on_message, watch)
            except _Stopped as stopped:
                reason = str(stopped)
            if child.code is not None:
                watch.visit = board.read()
            bye = watch.bye
            ending = Ending(reason, None, [], bye)
            if reason:
                ending = Ending(reason, watch.visit, child.output, bye, bool(watch.fatal))
    board.close()
    return ending


def _hear(child: Child, unit: Unit, on_message: Callable[[Message], None], watch: _Watch) -> str:
    """Hand on what the process says until it has ended; return why it did not end well."""
    unit = msgspec.structs.replace(unit, surroundings=surroundings(), spawned_ns=child.spawned_ns)
    child.send(encode_unit(unit))
    for line in child.lines(watch.look):
        try:
            message = decode_message(line)
        except msgspec.MsgspecError:
            watch.fatal = f"the process wrote {line[:80]!r} where its messages are read"
            return watch.fatal
        on_message(message)
        if isinstance(message, Bye):
            watch.bye = message
        elif isinstance(message, Fatal):
            watch.fatal = message.reason
            return watch.fatal
        elif isinstance(message, Done):
            child.send(b"")  # it is stored: go on
    if child.code == 0 and watch.bye:
        return ""
    if child.code == -signal.SIGKILL:
        return f"{child.how} (not by the harness: perhaps the kernel, for want of memory)"
    return (
        child.how
        if (child.code or 0) < 0
        else f"the process ended with {child.how} before it was done"
    )


class _Stopped(Exception):
    """A process was ended; the text says why."""


class _Watch:
    """Looks at a measuring process now and then: what it is at, for how long, and its memory."""

    def __init__(
        self,
        child: Child,
        board: Board,
        on_visit: Callable[[Visit], None],
        on_look: Callable[[], None],
        timeout_s: float,
        limit: int,
    ) -> None:
        self.child = child
        self.board = board
        self.on_visit = on_visit
        self.on_look = on_look
        self.timeout_s = timeout_s
        self.limit = limit
        self.visit: Visit | None = None
        self.bye: Bye | None = None
        self.fatal = ""
        self.deadline = time.monotonic() + STARTUP_TIMEOUT_S

    def look(self) -> None:
        """Raise :class:`_Stopped` if the process must be ended."""
        self.on_look()
        visit = self.board.read()
        if visit is not None and visit != self.visit:
            before, self.visit = self.visit, visit
            if before is None or (visit.case, visit.pass_) != (before.case, before.pass_):
                self.deadline = time.monotonic() + self.timeout_s
            self.on_visit(visit)
        problem = self._overdue() or self._overweight()
        if problem:
            raise _Stopped(problem)

    def _overdue(self) -> str:
        if time.monotonic() < self.deadline or self.bye:
            return ""
        if self.visit is None:
            return f"the process had not started to measure after {STARTUP_TIMEOUT_S:g} s"
        return f"timeout: not done after {self.timeout_s:g} s, in stage {self.visit.stage!r}"

    def _overweight(self) -> str:
        try:
            held = psutil.Process(self.child.pid).memory_info().rss
        except psutil.Error:
            return ""
        if held <= self.limit:
            return ""
        return (
            f"out of memory: the process held {held / 2**30:.2f} GiB, more than the "
            f"{self.limit / 2**30:.2f} GiB that one may hold here"
        )
