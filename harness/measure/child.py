"""Work in a fresh process: start it, feed it, hear and watch it, and end it with all it started.

A child reads its job, one line, from standard input and answers with lines on a channel of its own;
:mod:`harness.measure.channel` is its end of that. What it prints is kept for the error if it fails.

    with Child(of_module("harness.some.child"), variables) as child:
        child.send(job)
        for line in child.lines(watch):
            ...

A command that knows of no channel is run the same way; it sends no lines.

A child holds the locks that its caller does (:mod:`harness.measure.lock`), and has a folder for
temporary files that goes with it. What it has started goes with it as well
(:mod:`harness.measure.containment`).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from harness.errors import ExitCode, HarnessError
from harness.jaxhooks.temporary import temporary_folder
from harness.measure import containment
from harness.measure.channel import ANSWER, CHANNEL, SPAWNED
from harness.measure.lock import for_children

POLL_S = 0.25
"""How often a child is looked at. A look costs a tenth of a millisecond; more often would disturb
what is measured."""

OUTPUT_LINES = 20
"""So many of the last lines that a child printed are kept."""

_OUTPUT_BYTES = 64 * 2**10

_ENDING = [signal.Signals[n] for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]


class ChildError(HarnessError):
    """A child ended without an answer; the text says how, with its last words."""

    exit_code = ExitCode.SOME_FAILED


class ChildTimeout(ChildError):
    """A child had not answered in time and was stopped."""


class Forked:
    """A process that a parent has forked, with what :class:`subprocess.Popen` has of one."""

    def __init__(self, control: socket.socket, fds: Sequence[int]) -> None:
        """Have a process forked that has `fds` open.

        Raises:
            OSError: the parent is gone.
        """
        self._control = control
        self.returncode: int | None = None
        theirs, stdin = os.pipe()
        stdout, output = os.pipe()
        self.stdin: IO[bytes] = os.fdopen(stdin, "wb")
        self.stdout: IO[bytes] = os.fdopen(stdout, "rb", buffering=0)
        try:
            socket.send_fds(control, [b"!"], [theirs, output, *fds])
            answer = control.recv(ANSWER.size)
            if not answer:
                raise BrokenPipeError("the parent of the measuring processes is gone")
        except BaseException:  # a Ctrl-C as well: nobody else knows of these pipes
            self.stdin.close()
            self.stdout.close()
            raise
        finally:
            os.close(theirs)
            os.close(output)
        (self.pid,) = ANSWER.unpack(answer)

    def poll(self) -> int | None:
        """Return its exit code, -N where signal N killed it; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code once it has ended, or raise :class:`subprocess.TimeoutExpired`."""
        if self.returncode is None:
            if not select.select([self._control], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked process", timeout or 0)
            try:
                answer = self._control.recv(ANSWER.size)
            except ConnectionError:
                answer = b""
            code = os.waitstatus_to_exitcode(ANSWER.unpack(answer)[0]) if answer else None
            # Without its parent nobody can tell: who is left of its session is killed by `Child`.
            self.returncode = -signal.SIGKILL if code is None else code
        return self.returncode


class Child:
    """A process that leads a session of its own; at the end of `with` all of that is gone."""

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str] | None = None,
        *,
        cwd: Path | None = None,
        fds: Sequence[int] = (),
        parent: Child | None = None,
    ) -> None:
        """Start `command`.

        Args:
            command: the program and its arguments.
            variables: its whole environment; None means the caller's.
            cwd: the folder it runs in; None means the caller's.
            fds: open files that it inherits under their numbers.
            parent: a process with `control` that forks the one that `command` would start: with the
                channel and `fds` open, in an environment and a folder of its parent's.

        Raises:
            OSError: there is no such program or folder.
            HarnessError: this system is none to measure on.
        """
        containment.need()
        module = command.index("-m") + 1 if "-m" in command else 0
        self.name = Path(command[module]).name
        """What an error calls it: the module that Python runs, else the program."""
        self.control: socket.socket | None = None
        """Where it takes orders to fork, if :mod:`harness.measure.parent` is what it runs."""
        locks, holders = for_children()
        self.code: int | None = None
        """Its exit code, -N where signal N killed it; None while it runs."""
        self._printed = b""
        self._readable, writable = os.pipe()
        self.spawned_ns = time.monotonic_ns()
        self._parent, self._scratch = parent, contextlib.ExitStack()
        self.mark: str = parent.mark if parent else containment.new_mark()
        own = {CHANNEL: str(writable), SPAWNED: str(self.spawned_ns), **holders}
        own |= containment.marked(self.mark)
        try:
            if parent is None:
                with contextlib.suppress(OSError):  # it may need none
                    own["TMPDIR"] = str(self._scratch.enter_context(temporary_folder()))
            with _signals_held():
                self._process: subprocess.Popen[bytes] | Forked = (
                    Forked(parent.control, [writable, *fds])
                    if parent and parent.control
                    else subprocess.Popen(
                        command,
                        cwd=cwd,
                        env={**(os.environ if variables is None else variables), **own},
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        pass_fds=(writable, *fds, *locks),
                        start_new_session=True,
                    )
                )
        except BaseException:  # Ctrl-C as well: nobody else knows of the process and the pipe
            if hasattr(self, "_process"):
                self.__exit__()
            else:
                os.close(self._readable)
                self._scratch.close()
            raise
        finally:
            os.close(writable)

    @property
    def pid(self) -> int:
        """The process's number, which is that of its session as well."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    @property
    def output(self) -> list[str]:
        """The last lines that it printed, empty ones left out."""
        lines = self._printed.decode(errors="replace").splitlines()
        return [line for line in lines if line.strip()][-OUTPUT_LINES:]

    @property
    def how(self) -> str:
        """How it ended: `killed by SIGKILL`, or `exit code 3`."""
        code = self.code or 0
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def send(self, line: bytes) -> None:
        """Send a line, which has no newline yet; the first is its job."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died: its end and its output say why
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()

    def lines(self, watch: Callable[[], None] = lambda: None) -> Iterator[bytes]:
        """Yield what it sends, line by line, until it has ended.

        `watch` is called every quarter of a second; what it raises ends the child.
        """
        looked = time.monotonic()
        pending = bytearray()  # a line of many MB comes in pieces
        with selectors.DefaultSelector() as selector:
            selector.register(self._readable, selectors.EVENT_READ)
            assert self._process.stdout is not None
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select(POLL_S):
                    data = os.read(key.fd, 1 << 20)
                    if not data:
                        selector.unregister(key.fileobj)
                    elif key.fd != self._readable:
                        self._printed = (self._printed + data)[-_OUTPUT_BYTES:]
                    else:
                        pending += data
                        if b"\n" in data:
                            *lines, rest = bytes(pending).split(b"\n")
                            pending = bytearray(rest)
                            yield from lines
                if time.monotonic() - looked >= POLL_S:
                    looked = time.monotonic()
                    watch()
                if self._process.poll() is not None and not selector.select(0):
                    break  # a grandchild may hold the pipes open for ever
        while self.code is None:  # it may have closed its files before it ended
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.code = self._process.wait(POLL_S)
                return
            watch()

    def wait(self, watch: Callable[[], None] = lambda: None) -> int:
        """Return its exit code, -N where signal N killed it, at its end; its input is empty."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        for _ in self.lines(watch):
            pass
        assert self.code is not None
        return self.code

    def answer(self, timeout_s: float) -> Any:
        """Return the line of JSON that it sends last.

        Raises:
            ChildTimeout: it had not ended after `timeout_s` seconds.
            ChildError: it did not end well, or sent nothing.
        """
        deadline = time.monotonic() + timeout_s

        def watch() -> None:
            if time.monotonic() > deadline:
                raise ChildTimeout(
                    f"{self.name} had not finished after {timeout_s:g} s and was stopped. "
                    "`timeout_s` of the workload is how long it may take."
                )

        answer = b""
        for line in self.lines(watch):
            answer = line
        if self.code == 0 and answer:
            return json.loads(answer)
        printed = " | ".join(self.output[-5:]) or "it printed nothing"
        raise ChildError(f"{self.name} ended with {self.how} and no answer: {printed}")

    def end(self) -> None:
        """End it and all that it started; return when it is gone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self.code = self._process.wait()
        containment.end_started(self.mark, [self._parent.pid] if self._parent else [])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()
        self._scratch.close()
        os.close(self._readable)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # the reader is gone with what was buffered
                    stream.close()


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Let what would end this process come only afterwards: a half-started child has no owner."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _ENDING}
    own = {number: handler for number, handler in handlers.items() if callable(handler)}
    for one in own:
        signal.signal(one, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for one, handler in own.items():
            signal.signal(one, handler)
        for number in came:
            signal.raise_signal(number)


def of_module(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of ours in a process of its own.

    The working directory is not searched for modules (-P): a user's random.py there would stand for
    Python's own. It is where the harness itself is found there, as in a clone without installation.
    """
    home = Path(__file__).parents[2]
    safe = [] if home == Path.cwd() else ["-P"]
    return [sys.executable, *safe, "-m", module, *arguments]


def ask(module: str, job: Any, variables: Mapping[str, str] | None, timeout_s: float) -> Any:
    """Run a module of ours on `job`, and return its answer; both are plain data."""
    with Child(of_module(module), variables) as child:
        child.send(json.dumps(job).encode())
        return child.answer(timeout_s)
