"""Run one measuring process: start it, listen, and end it when it hangs or eats the machine."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import psutil

from harness.engine.board import SIZE, Board, Visit
from harness.engine.starting import STARTUP_TIMEOUT_S, STDERR_LINES, child_environment, kill
from harness.engine.unit import Bye, Done, Fatal, Message, Unit, decode_message, encode_unit
from harness.records.environment import surroundings

POLL_S = 0.25
"""How often the process is looked at: its memory, and what it is at. A look costs a tenth of a
millisecond; more often would disturb what is measured."""

MEMORY_SHARE = 0.8
"""The part of the machine's (or the control group's) memory that a process may hold."""

_STDERR_BYTES = 64 * 2**10


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
    with tempfile.TemporaryFile() as shared:
        shared.truncate(SIZE)
        readable, writable = os.pipe()
        spawned_ns = time.monotonic_ns()
        # JAX and a baseline's library never share a process, so a baseline has a worker of its own.
        worker = "harness.sides.worker" if unit.backend else "harness.engine.worker"
        try:
            child = subprocess.Popen(
                [sys.executable, "-m", worker, str(writable), str(shared.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(writable, shared.fileno()),
                env=child_environment(unit),
                start_new_session=True,
            )
        finally:
            os.close(writable)
        board = Board(shared.fileno())
    try:
        return _Conversation(
            child,
            readable,
            board,
            spawned_ns,
            unit,
            on_message,
            on_visit,
            on_look,
            timeout_s,
            limit,
        ).run()
    finally:
        kill(child)
        board.close()
        os.close(readable)
        for stream in (child.stdin, child.stderr):
            if stream:
                _close(stream)


def _close(stream: Any) -> None:
    with contextlib.suppress(OSError):  # the reader is gone, and with it what was buffered for it
        stream.close()


class _Conversation:
    def __init__(
        self,
        child: subprocess.Popen[bytes],
        readable: int,
        board: Board,
        spawned_ns: int,
        unit: Unit,
        on_message: Callable[[Message], None],
        on_visit: Callable[[Visit], None],
        on_look: Callable[[], None],
        timeout_s: float,
        limit: int,
    ) -> None:
        self.child = child
        self.readable = readable
        self.board = board
        self.spawned_ns = spawned_ns
        self.unit = unit
        self.on_message = on_message
        self.on_visit = on_visit
        self.on_look = on_look
        self.timeout_s = timeout_s
        self.limit = limit
        self.visit: Visit | None = None
        self.bye: Bye | None = None
        self.fatal = ""
        self.looked = time.monotonic()
        self.pending = b""
        self.stderr = b""
        self.deadline = time.monotonic() + STARTUP_TIMEOUT_S

    def run(self) -> Ending:
        assert self.child.stderr is not None
        unit = msgspec.structs.replace(
            self.unit, surroundings=surroundings(), spawned_ns=self.spawned_ns
        )
        self._send(encode_unit(unit) + b"\n")
        with selectors.DefaultSelector() as selector:
            selector.register(self.readable, selectors.EVENT_READ, self._read_messages)
            selector.register(self.child.stderr, selectors.EVENT_READ, self._read_stderr)
            while selector.get_map():
                for key, _ in selector.select(POLL_S):
                    if not key.data():
                        selector.unregister(key.fileobj)
                problem = self.fatal or self._look()
                if problem:
                    kill(self.child)
                    return self._ending(problem)
                if self.child.poll() is not None and not selector.select(0):
                    break  # a grandchild may hold the pipes open for ever
        self.child.wait()
        self.visit = self.board.read()
        return self._ending(self._exit_reason())

    def _ending(self, reason: str) -> Ending:
        text = self.stderr.decode(errors="replace")
        lines = [line for line in text.splitlines() if line.strip()][-STDERR_LINES:]
        return Ending(
            reason,
            self.visit if reason else None,
            lines if reason else [],
            self.bye,
            hopeless=bool(self.fatal),
        )

    def _read_messages(self) -> bool:
        data = os.read(self.readable, 1 << 20)
        *lines, self.pending = (self.pending + data).split(b"\n")
        for line in lines:
            try:
                message = decode_message(line)
            except msgspec.MsgspecError:
                self.fatal = f"the process wrote {line[:80]!r} where its messages are read"
                return False
            if isinstance(message, Bye):
                self.bye = message
            elif isinstance(message, Fatal):
                self.fatal = message.reason
            self.on_message(message)
            if isinstance(message, Done):
                self._send(b"\n")  # it is stored: go on
        return bool(data)

    def _send(self, data: bytes) -> None:
        assert self.child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died: exit status and stderr say why
            self.child.stdin.write(data)
            self.child.stdin.flush()

    def _read_stderr(self) -> bool:
        assert self.child.stderr is not None
        data = os.read(self.child.stderr.fileno(), 1 << 16)
        self.stderr = (self.stderr + data)[-_STDERR_BYTES:]
        return bool(data)

    def _look(self) -> str:
        """Look at the process, unless that was done just now; return why it must be ended."""
        now = time.monotonic()
        if now - self.looked < POLL_S:
            return ""
        self.looked = now
        self.on_look()
        visit = self.board.read()
        if visit is not None and visit != self.visit:
            before, self.visit = self.visit, visit
            if before is None or (visit.case, visit.pass_) != (before.case, before.pass_):
                self.deadline = now + self.timeout_s
            self.on_visit(visit)
        return self._overdue() or self._overweight()

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

    def _exit_reason(self) -> str:
        code = self.child.returncode
        if code == 0 and self.bye:
            return ""
        if code < 0:
            name = signal.Signals(-code).name
            probably = (
                " (not by the harness: perhaps the kernel, for want of memory)"
                if -code == signal.SIGKILL
                else ""
            )
            return f"killed by {name}{probably}"
        return f"the process ended with exit code {code} before it was done"
