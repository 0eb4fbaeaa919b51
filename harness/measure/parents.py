"""Measuring processes forked from parents: the sweep's end of :mod:`harness.measure.parent`.

Those of one parent share its hash seed and its address layout. So each process number of a sweep
has a parent of its own, and no two processes of a row come from one. The first process of a number
is started by itself, and tells what a process pays once.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable, Mapping

from harness.measure.child import Child, of_module
from harness.workload.code import installed

MOST = 4
"""So many parents are kept, of processes with other environments; one has about 70 MB."""

STARTUP_TIMEOUT_S = 300.0
"""How long a parent may take to import JAX."""


class Parent:
    """A process that has imported JAX, and forks others."""

    def __init__(self, name: str, variables: Mapping[str, str], watch: Callable[[], None]) -> None:
        """Start it, and wait until it can fork; `watch` is called meanwhile."""
        self.name = name
        self.distributions: dict[str, dict[str, str]] = {}
        """Which installed distributions it has loaded, as they were then."""
        deadline = time.monotonic() + STARTUP_TIMEOUT_S

        def look() -> None:
            watch()
            if time.monotonic() > deadline:
                raise TimeoutError

        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = of_module("harness.measure.parent", str(theirs.fileno()))
        self._ended = contextlib.ExitStack()
        self._ended.callback(control.close)
        with theirs, self._ended:
            child = self._ended.enter_context(Child(command, variables, fds=[theirs.fileno()]))
            try:
                answer = next(child.lines(look), b"")
            except TimeoutError:
                answer = b""
            if answer:
                about = json.loads(answer)
                self.unsafe: str = about["unsafe"]
                installed(dict.fromkeys(about["loaded"], ""), self.distributions)
            else:
                self.unsafe = "; ".join(["no parent could be started", *child.output[-1:]])
            child.control = control
            self.child = child
            self._ended = self._ended.pop_all()

    def end(self) -> None:
        """End it, and what it has forked."""
        self._ended.close()


Environment = frozenset[tuple[str, str]]


class Parents:
    """The parents of a sweep: those of one process number at a time."""

    def __init__(self) -> None:
        self._number = -1
        self._running: dict[Environment, Parent | None] = {}
        """None where one process has been started by itself, and another was not asked for."""
        self._unsafe: dict[Environment, str] = {}
        self._started = 0

    def find(
        self, sweep: str, number: int, variables: Mapping[str, str], watch: Callable[[], None]
    ) -> Parent | str:
        """Return the parent of a process with that number; the reason where it has none."""
        if number != self._number:
            self.close()
            self._number = number
        environment = frozenset(variables.items())
        if environment in self._unsafe:
            return self._unsafe[environment]
        if environment not in self._running:
            self._running[environment] = None
            return "it is the first, and tells what a process pays once"
        parent = self._running.pop(environment)
        if parent is not None and not parent.child.is_running:
            parent.end()
            parent = None
        if parent is None:
            running = [(one, other) for one, other in self._running.items() if other]
            if len(running) == MOST:
                oldest, other = running[0]
                other.end()
                self._running[oldest] = None
            self._started += 1
            parent = Parent(f"{sweep}/{self._started}", variables, watch)
            if parent.unsafe:
                parent.end()
                self._unsafe[environment] = parent.unsafe
                return parent.unsafe
        self._running[environment] = parent  # as the last that was used
        return parent

    def close(self) -> None:
        """End them all."""
        while self._running:
            parent = self._running.popitem()[1]
            if parent is not None:
                parent.end()

    def __enter__(self) -> Parents:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
