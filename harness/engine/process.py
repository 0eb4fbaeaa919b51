"""Run one measuring process: start it, listen, and end it when it hangs or eats the machine."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import psutil
from msgspec.structs import replace

from harness.declare.code import installed
from harness.engine.child import Child
from harness.engine.containment import group_limit_bytes
from harness.engine.job import (
    SIZE,
    Bye,
    CurrentVisit,
    Done,
    Fatal,
    Job,
    Message,
    Visit,
    decode_message,
    encode,
)
from harness.engine.parents import Parents
from harness.records.environment import surroundings
from harness.sides.side_process import owned
from harness.stages.scenarios.registry import SCENARIOS
from harness.stages.scenarios.scenario import forgotten
from harness.watch.temporary import temporary_folder

STARTUP_TIMEOUT_S = 300.0
"""How long a process may take to import JAX and the workload and to wake its backend."""

MEMORY_SHARE = 0.8
"""The part of the machine's (or the control group's) memory that a process may hold."""


@dataclass
class Ending:
    """How a measuring process ended."""

    reason: str = ""
    """Empty where it finished its job."""
    visit: Visit | None = None
    """What it was at last."""
    stderr: list[str] = field(default_factory=list)
    bye: Bye | None = None
    hopeless: bool = False
    """Whether the process said itself that it cannot measure anything: another could not either."""
    origin: dict[str, str] = field(default_factory=dict)
    """What records say of the process, and of how it was started."""


def variables(job: Job) -> dict[str, str]:
    """Return the environment of a job's process: the caller's, in the job's scenario."""
    found = forgotten(os.environ)
    if job.backend:  # its scenario is of its own cache of kernels: JAX has none
        found = {name: value for name, value in found.items() if not owned(name)}
        found |= SCENARIOS["off"].environment("")
    else:
        found |= SCENARIOS[job.scenario].environment(job.cache_folder)
    found |= {"JAX_PLATFORMS": job.platforms, **job.environment}
    # A number of devices asked for elsewhere would change what is compiled here.
    found.pop("JAX_NUM_CPU_DEVICES", None)
    if job.cpu_devices:
        found["JAX_NUM_CPU_DEVICES"] = str(job.cpu_devices)
    if job.x64:
        found["JAX_ENABLE_X64"] = "1"
    return found


@contextlib.contextmanager
def packages_of(
    folder: Path, tree: Path, environment: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    """Yield variables with which a process imports the packages of a source tree.

    Those are in `folder`, or above it in the tree, or in a `src` there. They come before what is
    installed, and before the PYTHONPATH of its `environment`; the harness alone is this one,
    whatever the tree holds.
    """
    with temporary_folder() as instrument:
        (instrument / "harness").symlink_to(Path(__file__).resolve().parents[1])
        folder, tree = folder.resolve(), tree.resolve()
        above = (one for one in (folder, *folder.parents) if one.is_relative_to(tree))
        places = [instrument, *(place for one in above for place in (one / "src", one))]
        before = filter(None, [environment.get("PYTHONPATH")])
        # Nor does the folder that a process runs in hold a harness for it.
        yield {"PYTHONPATH": os.pathsep.join([*map(str, places), *before]), "PYTHONSAFEPATH": "1"}


def memory_limit() -> int:
    """Return how many bytes one measuring process may hold before it is stopped."""
    total = psutil.virtual_memory().total
    return int(min(total, group_limit_bytes() or total) * MEMORY_SHARE)


def alone(job: Job) -> str:
    """Return why a job's process must be started by itself; empty if it may be forked."""
    if job.backend:
        return "a comparison sets its threads before NumPy is imported"
    if job.apart == "first_call":
        return "its first call pays what a process pays once, and forked it pays more"
    if SCENARIOS[job.scenario].directory != "none":
        return "its cache has a directory of its own"
    return "" if sys.platform == "linux" else "only on Linux is it known to be safe"


def run(
    job: Job,
    on_message: Callable[[Message], None],
    on_visit: Callable[[Visit], None],
    on_look: Callable[[], None] = lambda: None,
    parents: Parents | None = None,
) -> Ending:
    """Run `job` in a process of its own, hand each message on, and say how the process ended.

    It is forked from one of `parents`, where there are any and that is safe.

    The process waits after each record until `on_message` has returned, so that storing it disturbs
    nothing. `on_visit` is called now and then with what the process is at, and `on_look` whenever
    the process is looked at. The job's `timeout_s` bounds one pass over one case, to a quarter of a
    second. Whatever happens here, a Ctrl-C or what a callback raises included, the process and all
    that it started are gone afterwards.
    """
    environment, reason, parent = variables(job), alone(job), None
    if parents and not reason:
        found = parents.find(job.base["sweep"], job.process, environment, on_look)
        parent, reason = (None, found) if isinstance(found, str) else (found, "")
    origin = {
        "process": secrets.token_hex(8),
        "parent": parent.name if parent else "",
        "not_forked": reason if parents else "",
    }
    known, *also = [replace(part, base={**part.base, **origin}) for part in job.parts]
    known = replace(known, also=also)
    with tempfile.TemporaryFile() as shared:
        shared.truncate(SIZE)
        fds = [shared.fileno()]
        current = CurrentVisit(shared.fileno())
        command = [sys.executable, "-m", "harness.engine.worker", str(shared.fileno())]
        command += ["compared"] if job.backend else []
        try:
            try:
                started = Child(command, environment, fds=fds, parent=parent)
            except OSError:
                if parent is None:
                    raise
                parent.end()  # it was killed, and another takes its place
                return run(job, on_message, on_visit, on_look, parents)
            with started as child:
                distributions = dict(parent.distributions) if parent else {}
                ending = _Conversation(
                    known, child, current, distributions, on_message, on_visit, on_look
                ).run()
        finally:
            current.close()
    ending.origin = origin
    return ending


class _Stopped(Exception):
    """The process was, or is to be, ended; the text says why."""


@dataclass
class _Conversation:
    job: Job
    child: Child
    current: CurrentVisit
    distributions: dict[str, dict[str, str]]
    """What of the process's code is installed, looked up once."""
    on_message: Callable[[Message], None]
    on_visit: Callable[[Visit], None]
    on_look: Callable[[], None]

    def __post_init__(self) -> None:
        self.timeouts_s = {ref.key: part.timeout_s for part in self.job.parts for ref in part.cases}
        self.timeout_s = self.job.timeout_s
        self.limit = self.job.memory_limit_bytes or memory_limit()
        self.ending = Ending()
        self.deadline = time.monotonic() + STARTUP_TIMEOUT_S

    def run(self) -> Ending:
        try:
            self._listen()
        except _Stopped as stopped:
            self.ending.reason, self.ending.stderr = str(stopped), self.child.output
        return self.ending

    def _listen(self) -> None:
        """Hand on what the process says until it has ended well; raise :class:`_Stopped` if not."""
        job = replace(self.job, surroundings=surroundings(), memory_limit_bytes=self.limit)
        self.child.send(encode(job))
        for line in self.child.lines(self._look):
            try:
                message = decode_message(line)
            except msgspec.MsgspecError:
                self.ending.hopeless = True
                raise _Stopped(
                    f"the process wrote {line[:80]!r} where its messages are read"
                ) from None
            if isinstance(message, Done):
                message.record.code = installed(message.record.code, self.distributions)
            self.on_message(message)
            if isinstance(message, Bye):
                self.ending.bye = message
            elif isinstance(message, Fatal):
                self.ending.hopeless = True
                raise _Stopped(message.reason)
            elif isinstance(message, Done):
                self.child.send(b"")  # it is stored: go on
        self.ending.visit = self.current.read()
        code = self.child.code or 0
        if code == -signal.SIGKILL:
            how = "not by the harness: perhaps the kernel, for want of memory"
            raise _Stopped(f"{self.child.how} ({how})")
        if code < 0:
            raise _Stopped(self.child.how)
        if code or not self.ending.bye:
            raise _Stopped(f"the process ended with {self.child.how} before it was done")

    def _look(self) -> None:
        """Raise :class:`_Stopped` if the process must be ended."""
        self.on_look()
        visit = self.current.read()
        if visit is not None and visit != self.ending.visit:
            before, self.ending.visit = self.ending.visit, visit
            if before is None or (visit.case, visit.pass_) != (before.case, before.pass_):
                self.timeout_s = self.timeouts_s.get(visit.case, self.job.timeout_s)
                self.deadline = time.monotonic() + self.timeout_s
            self.on_visit(visit)
        if time.monotonic() >= self.deadline and not self.ending.bye:
            late = f"the process had not started to measure after {STARTUP_TIMEOUT_S:g} s"
            if at := self.ending.visit:
                late = f"timeout: not done after {self.timeout_s:g} s, in stage {at.stage!r}"
            raise _Stopped(late)
        with contextlib.suppress(psutil.Error):  # it ends just now
            held = psutil.Process(self.child.pid).memory_info().rss
            if held > self.limit:
                raise _Stopped(
                    f"out of memory: the process held {held / 2**30:.2f} GiB, more than the "
                    f"{self.limit / 2**30:.2f} GiB that one may hold here"
                )
