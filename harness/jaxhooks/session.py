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
from typing import Any, Literal

from harness.errors import ProfileError
from harness.jaxhooks import events, jax_names, log_file, observe, remedies, requests
from harness.jaxhooks.events import Started
from harness.jaxhooks.log_file import LogFile
from harness.jaxhooks.recorder import Recorder, Why
from harness.jaxhooks.sampler import INTERVAL_MS
from harness.jaxhooks.writer import Writer

SAMPLE_VARIABLE = "HARNESS_PROFILE_SAMPLE_MS"

How = Literal["command", "context", "fork", "pytest"]

clock = time.perf_counter_ns

_lock = threading.RLock()
_recorder: Recorder | None = None
_followed: Writer | None = None
"""The output of a process that is followed from its start."""


def start(output: Writer, how: How, sample_ms: float = INTERVAL_MS) -> None:
    """Write what this process does with JAX to an output, from now on.

    Threads are looked at each `sample_ms`, 0 for never; the first of several outputs decides. A
    ProfileError or LedgerError if the output cannot be written or the running JAX is not known.
    """
    global _recorder
    with _lock:
        first = Started(**log_file.started(how))
        imported = _import_jax()
        output.open()
        if _recorder is None:
            _hook_forks()
            recorder = Recorder(sample_ms)
            recorder.add(output, first)
            recorder.start()
            recorder.sampler.start()
            _recorder = recorder
        else:
            _recorder.add(output, first)
        if imported is not None:
            output.write(imported)


def stop(output: Writer, why: Why) -> None:
    """End an output; nothing where it is not open. The last one to go puts JAX back as it was."""
    global _recorder
    with _lock:
        outputs = _recorder.outputs if _recorder is not None else []
        if _recorder is None or not any(output is other for other in outputs):
            return
        if len(outputs) == 1:
            recorder, _recorder = _recorder, None
            recorder.stop(why)
        else:
            _recorder.end(output, why)
            _recorder.write_to([other for other in outputs if other is not output])
        output.close()


def set_test(name: str) -> None:
    """Say which test runs, for what is built from now on; nothing where none is recorded."""
    if _recorder is not None:
        _recorder.test = name


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
    spec, where = sys.modules["jax"].__spec__, ""
    if spec is not None and spec.cached and not os.path.exists(spec.cached):
        where = os.path.dirname(os.path.dirname(spec.origin or ""))
    return events.Import(begin_ns, end_ns, threading.get_ident(), versions, where)


# --- a followed process ---------------------------------------------------------------------------


def follow(file: LogFile, imported: tuple[int, int], own_ns: int) -> None:
    """Go on with the file that `bootstrap/sitecustomize.py` began, now that JAX is there."""
    global _followed
    began = clock()
    sample_ms = float(os.environ.get(SAMPLE_VARIABLE, INTERVAL_MS))
    output = Writer(None, file=file)
    output.write(_imported(*imported))
    start(output, "command", sample_ms)
    _followed = output
    if asked := os.environ.get(remedies.VARIABLE):
        remedies.apply(asked)
    if asked := os.environ.get(observe.VARIABLE):
        observe.begin(asked)
    if _recorder is not None:
        _recorder.own_ns += own_ns + clock() - began


def end(why: str) -> None:
    """End what is recorded of a process that is about to end or to become another program."""
    with _lock:
        if _recorder is None:
            return
        for output in tuple(_recorder.outputs):
            if why == "exec":  # it may fail, and the process go on
                _recorder.end(output, "exec")
            elif output is _followed or (output.file is not None and output.file.forked):
                stop(output, "exit")


# --- forks ----------------------------------------------------------------------------------------

_forks_are_seen = False
_child_ends = False
_held: list[Any] = []


def _hook_forks() -> None:
    global _forks_are_seen
    if not _forks_are_seen:
        _forks_are_seen = True
        os.register_at_fork(
            before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child
        )


def _files() -> list[LogFile]:
    outputs = _recorder.outputs if _recorder is not None else []
    return [output.file for output in outputs if output.file is not None]


def _before_fork() -> None:
    """Take what another thread may hold at the moment of a fork, and a child would wait for."""
    locks: list[Any] = [_lock]
    if _recorder is not None:
        # Python warns of a fork beside threads: the program has not started this one.
        _recorder.sampler.stop()
        locks += [_recorder.lock, *(file.lock for file in _files())]  # as a line takes them
    _held.extend(lock for lock in locks if lock.acquire(timeout=1.0))


def _release() -> None:
    while _held:
        _held.pop().release()


def _after_fork() -> None:
    _release()
    if _recorder is not None:
        _recorder.sampler.start()


def _in_child() -> None:
    """Record the child of a fork from here on, in files of its own."""
    global _recorder, _child_ends
    _release()
    old = _recorder
    if old is None:
        return
    outputs, old.outputs = [one for one in old.outputs if one.file is not None], []
    requests.after_fork()
    # What the parent had under way ends here, and is forgotten.
    with contextlib.suppress(Exception):
        old.stop("exit")
    _recorder = recorder = Recorder(old.sampler.interval_ns / 1e6)
    recorder.write_to(outputs)
    for file in _files():
        file.after_fork()
    if not outputs:
        return
    # A thread only where something is recorded: the child may be about to become a program.
    _files()[0].on_first = recorder.sampler.start
    try:
        recorder.start()
    # The child goes on, whatever is wrong with its profile.
    except Exception as error:
        recorder.failed(error)
    if _followed is None and not _child_ends:
        _child_ends = True
        log_file.at_end(end)
