"""The client: plan, send a Dask task for each process, and store the records that come back."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import io
import logging
import threading
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
from distributed import Client
from msgspec.structs import replace

from harness import __version__
from harness.errors import FleetError, UsageError
from harness.fleet.worker import Answer
from harness.measure.context import Context, Host, Options, SweepName
from harness.measure.job import Job, encode, unmeasured
from harness.measure.outcome import Outcome, Progress
from harness.measure.plan import Group
from harness.measure.state import SweepState
from harness.records import environment
from harness.records.schema import Record, decode
from harness.workload.check import check
from harness.workload.code import ENV, project_differences, project_folder
from harness.workload.location import Source, load, locate
from harness.workload.workload import Workload, name_of

CONNECT_S, ANSWER_S, LOOK_S = 8.0, 30.0, 1.0
"""How long a scheduler may take to answer at first, and later; how often workers are looked for."""

ATTEMPTS, MOST_BYTES = 3, 8 << 20
"""How often a process is measured anew after its worker was lost; what may be sent with one."""

ASK = "__import__('harness.fleet.worker', fromlist=['worker']).answer"
"""What workers evaluate. As text, because the scheduler reads tasks and needs no harness."""


def sweep(address: str, *asked: Any, wait_s: float = 30.0) -> Outcome:
    """Measure every case once on the workers of the Dask scheduler at an address.

    It takes what :func:`harness.measure.sweep.sweep` does, and a function for messages to the user.
    Where no worker can measure what is left, it waits `wait_s` seconds for one.

    Raises:
        WorkloadError: a workload is declared wrongly; nothing has been measured.
        FleetError: no worker can measure, or the scheduler is gone; what arrived is stored.
        StoreError: the results folder cannot take records; those before are stored.
    """
    for name in ("distributed", "distributed.client", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # errors are raised here
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError, RuntimeError) as error:
        raise FleetError(
            f"No Dask scheduler answers at {address}: {_line(error)}. Expected the address that "
            "`dask scheduler` prints, such as tcp://host:8786. Start one, or correct --on."
        ) from error
    with client:
        return _Sweep(client, address, *asked).run(wait_s)


def packed(source: Source) -> tuple[Source, bytes]:
    """Return the top package of a workload as a zip archive, and the workload's place in it."""
    if source.pickled:
        return source, b""
    file, project, buffer = Path(source.file), project_folder(source), io.BytesIO()
    depth = source.module.count(".") + (file.name == "__init__.py")
    top = file.parents[depth] / source.module.partition(".")[0]
    declared = [project / one for one in load(source).depends_on if not one.startswith(ENV)]
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in sorted({file, *declared, *top.rglob("*")}):
            parts = each.relative_to(project).parts if each.is_relative_to(project) else (".",)
            if each.is_file() and not any(p[0] == "." or p == "__pycache__" for p in parts):
                archive.write(each, Path(*parts))
    if buffer.tell() > MOST_BYTES:
        most = f"at most {MOST_BYTES >> 20} MiB can be sent. Move large files out of it."
        raise UsageError(f"{top} has {buffer.tell() >> 20} MiB, compressed; {most}")
    return replace(source, file=str(file.relative_to(project))), buffer.getvalue()


@dataclass(eq=False)
class FleetMachine:
    """A machine, or several of one name that are alike."""

    place: tuple[str, str, str]
    state: SweepState
    hosts: dict[str, str] = field(default_factory=dict)  # of the workers that are there, by address

    def __post_init__(self) -> None:
        self.shares: defaultdict[str, list[Group]] = defaultdict(list)
        """What it can measure: by workload and target, the groups of cases."""
        for group in self.state.groups:
            self.shares[f"{name_of(group.workload)}@{group.target}"].append(group)
        names = (f"{record.workload}@{record.target}" for record in self.state.before.values())
        self.held = Counter(name for name in names if name in self.shares)


class Task(NamedTuple):
    """A process that is being measured."""

    machine: FleetMachine
    share: str
    group: Group
    job: Job
    workers: tuple[str, ...]  # where it was sent; a worker that starts again has another address


@dataclass(eq=False)
class _Sweep:
    client: Client
    address: str
    workloads: Sequence[type[Workload]]
    context: Context
    options: Options
    on_progress: Callable[[Progress], None]
    on_note: Callable[[str], None]

    def __post_init__(self) -> None:
        for workload in self.workloads:
            check(workload)
        self.outcome, self.name = Outcome(), SweepName.of(self.options)
        self.sources = {one: packed(locate(one)) for one in self.workloads}
        here = environment.versions()
        self.versions = {"harness": __version__, "jax": here["jax"], "jaxlib": here["jaxlib"]}
        self.machines: dict[tuple[str, str, str], FleetMachine] = {}
        self.refused: dict[str, str] = {}  # by address of a worker: why
        self.left = {f"@{target}" for target in self.options.targets or ()}
        """The shares that are not measured: `workload@target`; `@target` while nobody has it."""
        self.sent: dict[Any, Task] = {}  # by future
        self.attempts = Counter[tuple[str, int]]()  # by group and process; one that is done has all
        self.wake, self.scheduler = threading.Event(), cast(Any, self.client.scheduler)

    def run(self, wait_s: float) -> Outcome:
        """Measure what is left, until nothing is."""
        since_s = time.monotonic()
        try:
            while True:
                self._look()
                self._send()
                if self.machines and not self.left:
                    break
                if self.sent:
                    since_s = time.monotonic()
                elif time.monotonic() - since_s > wait_s:
                    raise FleetError(self._stuck())
                self.wake.wait(LOOK_S)
                self.wake.clear()
                for future in [future for future in self.sent if future.done()]:
                    self._receive(self.sent.pop(future), future)
        finally:  # Ctrl-C included: what is cancelled ends on its worker
            with contextlib.suppress(Exception):  # the scheduler may be gone
                self.client.cancel([*self.sent], force=True)
        for machine in self.machines.values():
            machine.state.close()
        out = [machine.state.plan.left_out for machine in self.machines.values()]
        self.outcome.left_out = {n: out[0][n] for n in set.intersection(*map(set, out))}
        return self.outcome

    def _look(self) -> None:
        """Ask workers that have come what they are; take back what is lost with its machine."""
        machines = self.machines.values()
        try:
            if self.client.status != "running":
                raise ConnectionError("the connection is lost")
            there = {*self.client.sync(self.scheduler.ncores, callback_timeout=ANSWER_S)}
            seen = {*self.refused, *(address for one in machines for address in one.hosts)}
            call = asyncio.to_thread, eval, f"{ASK}(versions)", {"versions": self.versions}
            new = sorted(there - seen)
            answers = self.client.run(*call, workers=new, on_error="return") if new else {}
        except (OSError, TimeoutError, RuntimeError, CancelledError) as error:
            raise FleetError(
                f"The scheduler {self.address} is gone: {_line(error)}. What arrived is stored. "
                "Start it again and run the same command: it resumes."
            ) from error
        for workers in (self.refused, *(machine.hosts for machine in machines)):
            for address in seen - there:
                workers.pop(address, None)
        for address, reply in answers.items():
            if why := self._meet(address, reply):
                self._refuse(address, why)
        for future, task in [*self.sent.items()]:
            if there.isdisjoint(task.workers):
                del self.sent[future]
                future.cancel(force=True)
                self._lose(task, f"its worker on {task.machine.place[0]} was lost")

    def _meet(self, address: str, reply: Any) -> str:
        """Take a worker into its machine; return why it cannot be used, or nothing."""
        if not isinstance(reply, bytes):  # what went wrong there
            return f"cannot answer: {_line(reply)}"
        answer = msgspec.msgpack.decode(reply, type=Answer)
        wanted = self.options.targets or {t for w in self.workloads for t in w.targets}
        if not answer.refused and all(target in answer.missing for target in wanted):
            answer.refused = "; ".join(f"has no {t}: {answer.missing[t]}" for t in wanted)
        if not answer.refused:
            self._machine(answer).hosts[address] = answer.host
        return answer.refused

    def _refuse(self, address: str, why: str) -> None:
        """Use a worker no more, for a reason that can be put after its name."""
        self.refused[address] = why
        for machine in self.machines.values():
            machine.hosts.pop(address, None)
        self.on_note(f"The worker {address} {why}.")

    def _machine(self, answer: Answer) -> FleetMachine:
        """Return the machine of a worker, planned where it is new."""
        if answer.place not in self.machines:
            machine, env, identity = answer.place
            missing, asked = answer.missing, self.options.targets
            host = Host(
                identity, answer.versions, lambda t: missing.get(t.name), project_differences
            )
            targets = asked and tuple(target for target in asked if target not in missing)
            state = SweepState(
                self.workloads,
                dataclasses.replace(self.context, machine=machine, env=env, host=host),
                dataclasses.replace(self.options, targets=targets),
                self._on_progress,
                self.outcome,
                self.name,
            )
            others = [other.state.plan.skipped for other in self.machines.values()]
            state.note_skipped(but={group.name for skipped in others for group, *_ in skipped})
            self.machines[answer.place] = new = FleetMachine(answer.place, state)
            self.left -= {f"@{target}" for target in targets or ()}
            self.left |= new.shares.keys()
        return self.machines[answer.place]

    def _stuck(self) -> str:
        """Return why nothing can be measured, with what workers there are."""
        lines = [f"{address} {why}" for address, why in self.refused.items()]
        lines += [f"nobody is there for {share.strip('@')}" for share in sorted(self.left)]
        lines += [f"Start one on each machine: dask worker {self.address}"]
        return "\n  ".join([f"No worker of {self.address} can measure what is left:", *lines])

    def _homes(self) -> dict[str, FleetMachine]:
        """Return which machine measures each share: the one that has most of its records.

        Of equals, names decide, in equal parts, so that the next commit is measured there as well.
        """
        homes, machines, held = dict[str, FleetMachine](), [*self.machines.values()], Counter[str]()
        for machine in machines:
            held |= machine.held + Counter([*machine.shares])
        for share in sorted(held, key=lambda share: (-held[share], share)):
            ranks = {}
            for one in machines:
                room = [*homes.values()].count(one) * len(machines) < len(held)
                drawn = hashlib.sha256(f"{one.place[0]} {share}".encode()).hexdigest()
                ranks[share in one.shares, one.held[share], room, drawn, one.place] = one
            homes[share] = ranks[max(ranks)]
        return homes

    def _send(self) -> None:
        """Send each machine that is free a process of a share that is not being measured."""
        idle = self.left - {task.share for task in self.sent.values()}
        for share, machine in self._homes().items():
            busy = sum(task.machine is machine for task in self.sent.values())
            if share not in idle or busy >= len({*machine.hosts.values()}):
                continue
            jobs = (
                (group, job)
                for process in range(machine.state.rounds)
                for group in machine.shares[share]
                if self.attempts[group.name, process] < ATTEMPTS
                and (job := machine.state.job(group, process))
            )
            if (following := next(jobs, None)) is None:
                self.left.remove(share)
                continue
            task = Task(machine, share, *following, (*machine.hosts,))
            source, archive = self.sources[task.group.workload]
            names = {"job": encode(replace(task.job, source=source)), "archive": archive}
            call = eval, f"{ASK}(versions, job, archive)", {"versions": self.versions, **names}
            # Where one of these workers dies, Dask has another one measure it again.
            future = self.client.submit(*call, workers=[*task.workers], pure=False)
            future.add_done_callback(lambda future: self.wake.set())
            self.sent[future] = task

    def _receive(self, task: Task, future: Any) -> None:
        """Store what a task returned."""
        try:
            answer = msgspec.msgpack.decode(future.result(timeout=ANSWER_S), type=Answer)
        except Exception as error:  # of Dask's: workers died, or cannot be reached
            self._lose(task, _line(error))
            return
        records = [*map(decode, answer.records.splitlines())]
        if answer.place != task.machine.place or any(isinstance(one, str) for one in records):
            answer.refused = answer.refused or "has changed: its packages, flags or hardware"
        if answer.refused:
            self._refuse(answer.address, answer.refused)
        else:
            self._store(task, records)

    def _store(self, task: Task, records: Iterable[Record | str]) -> None:
        refs, process = {ref.key: ref for ref in task.job.cases}, task.job.process
        for record in records:
            if isinstance(record, Record):
                task.machine.state.keep(record, task.group, refs.get(record.key), process)
        task.machine.held[task.share] += len(refs)
        self.attempts[task.group.name, process] += ATTEMPTS

    def _lose(self, task: Task, why: str) -> None:
        """Let a process be measured again; where that was tried too often, its cases failed."""
        job, unit = task.job, (task.group.name, task.job.process)
        self.attempts[unit] += 1
        self.on_note(f"{job.group}, process {job.process + 1}: {why}")
        if self.attempts[unit] == ATTEMPTS:
            why = f"given up after {ATTEMPTS} attempts: {why}"
            self._store(task, [unmeasured(job, ref, "failed", why) for ref in job.cases])

    def _on_progress(self, progress: Progress) -> None:
        states = [machine.state for machine in self.machines.values()]
        progress.done, progress.total = sum(s.done for s in states), max(s.total for s in states)
        progress.machine = progress.record.machine if progress.record else ""
        self.on_progress(progress)


def _line(error: object) -> str:
    """Return what an error says, in one line."""
    return (str(error) or type(error).__name__).strip().partition("\n")[0][:300]
