"""Run one measuring process: start it, listen, and end it when it hangs or eats the machine."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import msgspec
import psutil
from msgspec.structs import asdict, replace

from harness.baselines import side_process
from harness.jaxhooks.temporary import temporary_folder
from harness.measure.child import Child, of_module
from harness.measure.containment import group_limit_bytes
from harness.measure.job import (
    SIZE,
    BeforeCalls,
    Bye,
    CurrentVisit,
    Fatal,
    Hello,
    Job,
    JobCase,
    Visit,
    decode_message,
    encode,
    unmeasured,
)
from harness.measure.parents import Parents
from harness.records.environment import surroundings
from harness.records.schema import Record
from harness.records.units import counted
from harness.stages.scenarios.registry import SCENARIOS
from harness.stages.scenarios.scenario import forgotten
from harness.workload.code import installed

STARTUP_TIMEOUT_S = 300.0
"""How long a process may take to import JAX and the workload and to wake its backend."""

MEMORY_SHARE = 0.8
"""The part of the machine's (or the control group's) memory that a process may hold."""


class Listener(Protocol):
    """Who is told what becomes of a job."""

    def keep(self, record: Record, ref: JobCase | None, hopeless: bool = False) -> None:
        """Take a record: of a case, or with None of the process itself or its reference program.

        `hopeless` says of a failure that another process could not do better.
        """

    def tell(self, case: str, stage: str, ref: JobCase | None = None) -> None:
        """Hear what the process is at; `ref` is the case, where it is at one."""

    def check(self) -> None:
        """Be called some times a second while a process measures; what is raised ends it."""


def variables(job: Job) -> dict[str, str]:
    """Return the environment of a job's process: the caller's, in the job's scenario."""
    environment = forgotten(os.environ)
    if job.backend:  # its scenario is of its own cache of kernels: JAX has none
        environment = {
            name: value for name, value in environment.items() if not side_process.owned(name)
        }
        environment |= SCENARIOS["off"].environment("")
    else:
        environment |= SCENARIOS[job.scenario].environment(job.cache_folder)
    environment |= {"JAX_PLATFORMS": job.platforms, **job.environment}
    # A number of devices asked for elsewhere would change what is compiled here.
    environment.pop("JAX_NUM_CPU_DEVICES", None)
    if job.cpu_devices:
        environment["JAX_NUM_CPU_DEVICES"] = str(job.cpu_devices)
    if job.x64:
        environment["JAX_ENABLE_X64"] = "1"
    return environment


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
    if job.first_call:
        return "its first call pays what a process pays once, and forked it pays more"
    if SCENARIOS[job.scenario].directory != "none":
        return "it has a directory of its own"
    return "" if sys.platform == "linux" else "only on Linux is it known to be safe"


class _Stopped(Exception):
    """The process was, or is to be, ended; the text says why."""


class MeasuringProcess:
    """One process over what is left of a job; one that only fills the directory keeps no record.

    It is forked from one of `parents`, where there are any and that is safe. It waits after each
    record until the listener has kept it, so that storing it disturbs nothing. The job's
    `timeout_s` bounds one pass over one case, to a quarter of a second. Whatever happens here, a
    Ctrl-C or what the listener raises included, the process and all that it started are gone
    afterwards.
    """

    def __init__(
        self,
        job: Job,
        listener: Listener,
        parents: Parents | None,
        todo: list[JobCase],
        cache: str = "",
    ) -> None:
        needed = {}
        if job.backend:
            needed = side_process.variables(job.backend, job.threads, job.precision, cache)
        self.job = replace(
            job, cases=todo, cache_folder=cache, environment={**job.environment, **needed}
        )
        self.listener = listener
        self.parents = parents
        self.by_key = {ref.key: ref for ref in todo}
        self.left = dict(self.by_key)
        self.built: dict[str, Record] = {}
        """What was taken of cases before they were called."""
        self.fingerprints: dict[int, str] = {}
        """Of the programs of the cases that were measured."""
        self.limit = job.memory_limit_bytes or memory_limit()
        self.hello: Hello | None = None
        self.is_through = False
        self.visit: Visit | None = None
        """What it was at last."""
        self.hopeless = False
        """Whether it said itself that it cannot measure anything: another could not either."""

    def measure(self) -> list[JobCase]:
        """Run the process; return what is left because it did not survive."""
        self.listener.tell(counted(len(self.left), "case"), "start")
        reason, stderr = "", list[str]()
        with tempfile.TemporaryFile() as shared:
            shared.truncate(SIZE)
            self.current = CurrentVisit(shared.fileno())
            try:
                with self._started(shared.fileno()) as self.child:
                    try:
                        self._listen()
                    except _Stopped as stopped:
                        reason, stderr = str(stopped), self.child.output
            finally:
                self.current.close()
        if not reason:
            return []
        culprits = list(self.left.values())
        if self.visit and self.visit.case in self.by_key:
            # Nobody's fault where it died after the record of the case.
            culprits = [ref for ref in culprits if ref.key == self.visit.case]
        for ref in culprits:
            del self.left[ref.key]
            if self.job.fills:
                continue
            if record := self.built.get(ref.key):
                record.reason, record.stderr = reason, stderr
            else:
                fields = {"stderr": stderr, **self.origin}
                if self.hello:
                    fields |= asdict(self.hello)
                record = unmeasured(self.job, ref, "failed", reason, **fields)
            self.listener.keep(record, ref, self.hopeless)
        return list(self.left.values())

    def _started(self, note: int) -> Child:
        """Start the process, which notes in an open file what it is at."""
        environment, on_its_own = variables(self.job), alone(self.job)
        command = of_module("harness.measure.worker", str(note))
        command += ["compared"] if self.job.backend else []
        while True:
            parent, reason = None, on_its_own
            if self.parents and not reason:
                sweep, number = self.job.base["sweep"], self.job.process
                parent_or_reason = self.parents.find(
                    sweep, number, environment, self.listener.check
                )
                parent, reason = (
                    (None, parent_or_reason)
                    if isinstance(parent_or_reason, str)
                    else (parent_or_reason, "")
                )
            self.origin = {
                "process": secrets.token_hex(8),
                "parent": parent.name if parent else "",
                "not_forked": reason if self.parents else "",
            }
            self.distributions = dict(parent.distributions) if parent else {}
            """What of the process's code is installed, looked up once."""
            try:
                return Child(
                    command, environment, fds=[note], parent=parent.child if parent else None
                )
            except OSError:
                if parent is None:
                    raise
                parent.end()  # it was killed, and another takes its place

    def _listen(self) -> None:
        """Hand on what the process says until it has ended well; raise :class:`_Stopped` if not."""
        self.deadline = time.monotonic() + STARTUP_TIMEOUT_S
        base = {**self.job.base, **self.origin}
        about = {"surroundings": surroundings(), "memory_limit_bytes": self.limit}
        self.child.send(encode(replace(self.job, base=base, **about)))
        for line in self.child.lines(self._look):
            try:
                message = decode_message(line)
            except msgspec.MsgspecError:
                self.hopeless = True
                raise _Stopped(
                    f"the process wrote {line[:80]!r} where its messages are read"
                ) from None
            if isinstance(message, Hello):
                self.hello = message
            elif isinstance(message, Bye):
                self.is_through = True
            elif isinstance(message, BeforeCalls):
                message.record.code = installed(message.record.code, self.distributions)
                self.built[message.record.key] = message.record
            elif isinstance(message, Fatal):
                self.hopeless = True
                raise _Stopped(message.reason)
            else:
                self._keep(message.record)
                self.child.send(b"")  # it is stored: go on
        self.visit = self.current.read()
        code = self.child.code or 0
        if code == -signal.SIGKILL:
            how = "not by the harness: perhaps the kernel, for want of memory"
            raise _Stopped(f"{self.child.how} ({how})")
        if code < 0:
            raise _Stopped(self.child.how)
        if code or not self.is_through:
            raise _Stopped(f"the process ended with {self.child.how} before it was done")

    def _keep(self, record: Record) -> None:
        record.code = installed(record.code, self.distributions)
        ref = self.by_key.get(record.key)
        if not self.job.fills:
            self.listener.keep(record, ref)
        if ref:
            self.fingerprints[ref.index] = record.fingerprint
            self.left.pop(ref.key, None)  # it may come again, with what was counted

    def _look(self) -> None:
        """Raise :class:`_Stopped` if the process must be ended."""
        self.listener.check()
        visit = self.current.read()
        if visit is not None and visit != self.visit:
            before, self.visit = self.visit, visit
            if before is None or (visit.case, visit.pass_) != (before.case, before.pass_):
                self.deadline = time.monotonic() + self.job.timeout_s
            ref = self.by_key.get(visit.case)
            label = ref.label if ref else "(the reference program)"
            self.listener.tell(label, visit.stage, ref)
        if time.monotonic() >= self.deadline and not self.is_through:
            late = f"the process had not started to measure after {STARTUP_TIMEOUT_S:g} s"
            if self.visit:
                late = (
                    f"timeout: not done after {self.job.timeout_s:g} s, in stage "
                    f"{self.visit.stage!r}"
                )
            raise _Stopped(late)
        with contextlib.suppress(psutil.Error):  # it ends just now
            held = psutil.Process(self.child.pid).memory_info().rss
            if held > self.limit:
                raise _Stopped(
                    f"out of memory: the process held {held / 2**30:.2f} GiB, more than the "
                    f"{self.limit / 2**30:.2f} GiB that one may hold here"
                )
