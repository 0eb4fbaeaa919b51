"""XLA's own events of one compile: recorded through JAX's profiler, and read."""

from __future__ import annotations

import glob
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from harness.jaxhooks.jax_names import public, trace_compiles
from harness.jaxhooks.temporary import temporary_folder
from harness.program.compiler.tree import CompileEvent

_PLANE = "/host:CPU"
_WAIT_S = 0.05
_SPINS_S = 0.025
"""Of `_WAIT_S`, in ticks of 10 ms: what runs when nothing is to be done."""
_NOISE = ("ThreadpoolListener::", "MutexLock")


class Untraceable(Exception):
    """XLA's events cannot be recorded; the text says why."""


def recorded(step: Callable[[], object]) -> list[CompileEvent]:
    """Run a step that compiles once, and return XLA's events.

    Raises:
        Untraceable: another profiler is at work, or none can be started.
    """
    with temporary_folder() as folder:
        try:
            trace_compiles(folder)
        except Exception as error:  # RuntimeError, and what a plugin raises
            raise Untraceable(f"JAX's profiler does not start: {error}") from error
        try:
            with _quiet():
                step()
        finally:
            public().profiler.stop_trace()
        files = glob.glob(os.path.join(folder, "**", "*.xplane.pb"), recursive=True)
        if not files:
            raise Untraceable("JAX's profiler wrote no file of what it saw")
        return read(Path(files[0]))


def read(path: Path) -> list[CompileEvent]:
    """Return the events of a profile that have a duration, of each thread by their beginning.

    Raises:
        Untraceable: the file is none, or was cut off.
    """
    try:
        data = public().profiler.ProfileData.from_file(str(path))
    except Exception as error:
        raise Untraceable(f"{path.name} cannot be read: {error}") from error
    # Python 3.12 and later warn of the type of an event's statistics, where an exception would be
    # the end of the process.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        events = [
            _event(f"{line.name} {number}", one)
            for plane in data.planes
            if plane.name == _PLANE
            for number, line in enumerate(plane.lines)
            for one in line.events
            if one.duration_ns > 0 and not one.name.startswith(_NOISE)
        ]
    return sorted(events, key=lambda one: (one.thread, one.begin_ns, -one.end_ns))


def _event(thread: str, one: Any) -> CompileEvent:
    begin, name = round(one.start_ns), one.name
    stats = {key: value for key, value in one.stats if key in ("module", "op_count")}
    module, count = str(stats.get("module", "")), str(stats.get("op_count", ""))
    return CompileEvent(
        thread,
        begin,
        begin + round(one.duration_ns),
        name,
        module,
        int(count) if count.isdigit() else 0,
        bool(module) and name.endswith(f"({module})"),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Let threads that run for nothing run only where nobody else wants the core.

    One of libtpu's spins while it is traced (0.0.40), which on two cores made a compile take twice
    as long.
    """
    if not hasattr(os, "SCHED_IDLE"):
        yield
        return
    before = _busy_s()
    time.sleep(_WAIT_S)
    spinning = [
        task
        for task, busy_s in _busy_s().items()
        if busy_s - before.get(task, 0.0) > _SPINS_S and task != os.getpid()
    ]
    _schedule(spinning, os.SCHED_IDLE)
    try:
        yield
    finally:
        _schedule(spinning, os.SCHED_OTHER)


def _schedule(tasks: list[int], policy: int) -> None:
    for task in tasks:
        try:
            os.sched_setscheduler(task, policy, os.sched_param(0))
        except OSError:  # it has ended, or may not be changed: the compile only takes longer
            continue


def _busy_s() -> dict[int, float]:
    """Return the CPU time of each of this process's threads."""
    return {one.id: one.user_time + one.system_time for one in psutil.Process().threads()}
