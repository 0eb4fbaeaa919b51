"""Record this process once, for whoever asks: a followed program, a `with`, pytest, or all.

JAX is hooked by one recorder however many profiles are open; each has an output of its own, which
gets what is recorded while it is open, and before that the lines that later ones refer to.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from harness.errors import ProfileError
from harness.watch import events, jax_names, log_file
from harness.watch.backends import Backends
from harness.watch.builds import builds
from harness.watch.events import Build, Ended, Line, Started
from harness.watch.log_file import LogFile
from harness.watch.recorder import Recorder
from harness.watch.requests import requests
from harness.watch.sampler import INTERVAL_MS, Sampler
from harness.watch.writer import Writer

SAMPLE_VARIABLE = "HARNESS_PROFILE_SAMPLE_MS"

How = Literal["command", "context", "fork", "pytest"]
Why = Literal["exit", "context", "exec"]

REFERRED_TO = (events.Function, events.Stack, events.Arguments, events.Settings)

clock = time.perf_counter_ns


class _Outputs(Writer):
    """Writes each line to every output that is open."""

    def __init__(self) -> None:
        super().__init__(None)
        self.outputs: list[Writer] = []
        self.before: list[Line] = []
        self.lines = 0
        self.lock = threading.RLock()

    def add(self, output: Writer, first: Started) -> None:
        with self.lock:
            output.write(first)
            output.since_ns = first.clock_ns
            for line in self.before:
                output.write(line)
            self.outputs.append(output)

    def write(self, line: Line) -> None:
        with self.lock:
            self.lines += 1
            if isinstance(line, REFERRED_TO):
                self.before.append(line)
            if isinstance(line, Started):
                return  # each output has its own
            for output in self.outputs:
                if isinstance(line, Build) and line.begin_ns < output.since_ns:
                    continue
                output.write(replace(line, lost=output.lost) if isinstance(line, Ended) else line)


class _Shared:
    """The recorder of this process, and what goes with it."""

    def __init__(self, how: How, sample_ms: float) -> None:
        self.outputs = _Outputs()
        self.sampler = Sampler(self, sample_ms)
        self.recorder = self._recorder(how)
        self.backends = Backends(self._write, self._fail)

    def _recorder(self, how: How) -> Recorder:
        recorder = Recorder(None, how)
        recorder.writer = self.outputs
        return recorder

    def _write(self, line: Line) -> None:
        self.outputs.write(line)

    def _fail(self, error: Exception) -> None:
        self.recorder.failed(error)

    def start(self) -> None:
        self.recorder.start()
        self.backends.install()
        self.sampler.start()

    def stop(self, why: Why) -> None:
        self.sampler.stop()
        self.backends.uninstall()
        self.recorder.own_ns += self.sampler.own_ns
        self.recorder.stop(why)

    def ended(self, output: Writer, why: Why) -> None:
        """End one output of several."""
        of = self.recorder
        own_ns = of.own_ns + self.sampler.own_ns
        output.write(Ended(clock(), why, own_ns, output.lost, tuple(of.failures[:20])))

    def forked(self) -> None:
        """Record the child of a fork from here on, in files of its own."""
        old = self.recorder
        outputs = [output for output in self.outputs.outputs if output.file is not None]
        self.sampler.forget()
        self.backends.uninstall()
        # What the parent had under way ends in memory, and is forgotten.
        old.writer, self.outputs = Writer(None), _Outputs()
        requests.after_fork()
        builds.after_fork()
        with contextlib.suppress(Exception):
            old.stop("exit")
        self.outputs.outputs = outputs
        self.recorder = self._recorder("fork")
        if not outputs:
            return
        for output in outputs:
            assert output.file is not None
            output.file.after_fork()
        # A thread only where something is recorded: the child may be about to become a program.
        assert outputs[0].file is not None
        outputs[0].file.on_first = self.sampler.start
        try:
            self.recorder.start()
            self.backends.install()
        # The child goes on, whatever is wrong with its profile.
        except Exception as error:
            self.recorder.failed(error)


_lock = threading.RLock()
_shared: _Shared | None = None
_hooked = False
_child_ends = False
_held: list[Any] = []


def start(output: Writer, how: How, sample_ms: float = INTERVAL_MS) -> None:
    """Write what this process does with JAX to an output, from now on.

    Args:
        output: where to.
        how: what asked for it.
        sample_ms: how often to look where threads are; 0 for never. The first of several decides.

    Raises:
        ProfileError: if the output cannot be written, or the running JAX is not one that is known.
        LedgerError: if this JAX is not known to the ledger.
    """
    global _shared
    with _lock:
        first = Started(**log_file.started(how))
        imported = _import_jax()
        output.open()
        if _shared is None:
            _hook_forks()
            shared = _Shared(how, sample_ms)
            shared.outputs.add(output, first)
            shared.start()
            _shared = shared
        else:
            _shared.outputs.add(output, first)
        if imported is not None:
            output.write(imported)


def stop(output: Writer, why: Why) -> None:
    """End an output; nothing where it is not open. The last one to go puts JAX back as it was."""
    global _shared
    with _lock:
        if _shared is None or not any(output is other for other in _shared.outputs.outputs):
            return
        if len(_shared.outputs.outputs) == 1:
            shared, _shared = _shared, None
            shared.stop(why)
            shared.outputs.outputs.clear()
        else:
            _shared.ended(output, why)
            _shared.outputs.outputs = [
                other for other in _shared.outputs.outputs if other is not output
            ]
        output.close()


def set_test(name: str) -> None:
    """Say which test runs, for what is built from now on; nothing where none is recorded."""
    if _shared is not None:
        _shared.recorder.test = name


def _import_jax() -> events.Import | None:
    """Import JAX where the program has not yet done so, and say how long that took."""
    if "jax" in sys.modules:
        return None
    begin = clock()
    try:
        importlib.import_module("jax")
    except ImportError as error:
        raise ProfileError(
            f"JAX cannot be imported ({error}), and a profile is one of what JAX does. "
            "Install it: pip install jax"
        ) from None
    return _imported(begin, clock())


def _imported(begin_ns: int, end_ns: int) -> events.Import:
    versions = {name: jax_names.version(name) for name in ("jax", "jaxlib")}
    return events.Import(begin_ns, end_ns, threading.get_ident(), versions)


# --- a followed process ---------------------------------------------------------------------------

_followed: Writer | None = None


def follow(file: LogFile, imported: tuple[int, int], own_ns: int) -> None:
    """Go on with the file that `bootstrap/sitecustomize.py` began, now that JAX is there.

    Raises:
        ProfileError, LedgerError: as :func:`start`.
    """
    global _followed
    began = clock()
    try:
        sample_ms = float(os.environ.get(SAMPLE_VARIABLE, INTERVAL_MS))
    except ValueError:
        sample_ms = INTERVAL_MS
    output = Writer(None, file=file)
    output.write(_imported(*imported))
    start(output, "command", sample_ms)
    _followed = output
    if _shared is not None:
        _shared.recorder.own_ns += own_ns + clock() - began


def end(why: str) -> None:
    """End what is recorded of a process that is about to end or to become another program."""
    with _lock:
        if _shared is None:
            return
        for output in tuple(_shared.outputs.outputs):
            if why == "exec":  # it may fail, and the process go on
                _shared.ended(output, "exec")
            elif output is _followed or (output.file is not None and output.file.forked):
                stop(output, "exit")


# --- forks ----------------------------------------------------------------------------------------


def _hook_forks() -> None:
    global _hooked
    if not _hooked and hasattr(os, "register_at_fork"):
        _hooked = True
        os.register_at_fork(
            before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child
        )


def _locks() -> Iterator[Any]:
    """What another thread may hold at the moment of a fork, and a child would wait for."""
    yield _lock
    if _shared is not None:  # in the order in which a line takes them
        yield _shared.recorder.lock
        yield _shared.outputs.lock
        for file in _files():
            yield file.lock


def _files() -> list[LogFile]:
    outputs = _shared.outputs.outputs if _shared is not None else []
    return [output.file for output in outputs if output.file is not None]


def _before_fork() -> None:
    # Python warns of a fork beside threads: the program has not started this one.
    if _shared is not None:
        _shared.sampler.stop()
    for lock in _locks():
        if lock.acquire(timeout=1.0):
            _held.append(lock)


def _after_fork() -> None:
    while _held:
        _held.pop().release()
    if _shared is not None:
        _shared.sampler.start()


def _in_child() -> None:
    global _child_ends
    while _held:
        _held.pop().release()
    if _shared is None:
        return
    _shared.forked()
    if _files() and _followed is None and not _child_ends:
        _child_ends = True
        log_file.at_end(end)
