"""Measure one process's share of a workload: until each of its cases has a record.

A process that does not survive a case leaves the others to a next one. What comes of it goes to a
:class:`Listener`, record by record; nothing here knows where records are stored.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import tempfile
import time
from pathlib import Path
from typing import Any, Protocol

import msgspec

from harness import environment
from harness.baselines.variables import variables
from harness.board import Visit
from harness.plan import Plan, Share
from harness.process import Ending, converse
from harness.records import SCHEMA, Record, to_raw
from harness.unit import Bye, CaseRef, Done, Hello, Message, Unit
from harness.workload import name_of

MAX_FAILURES = 2
"""A case that failed in this many processes is left alone: it is a defect, not an accident."""


class Listener(Protocol):
    """Who is told what a measuring process says."""

    def keep(self, record: Record, share: Share, ref: CaseRef | None, process: int) -> None:
        """Take a record: of a case, or with None of the process itself or its reference program."""

    def tell(self, share: Share, case: str, stage: str, process: int) -> None:
        """Hear what the process is at."""

    def timed(self, bye: Bye) -> None:
        """Hear how much of a process's time was inside timed regions."""


class Measurer:
    """Runs processes over the shares of a plan, for one sweep."""

    def __init__(self, plan: Plan, name: str, seed: int, programs: Path, listener: Listener):
        self.plan = plan
        self.context = plan.context
        self.options = plan.options
        self.name = name
        """Of the sweep."""
        self.seed = seed
        self.programs = programs
        """The folder for the texts of programs, where those are kept."""
        self.listener = listener

    def measure(self, share: Share, todo: list[CaseRef], process: int) -> None:
        """Measure the cases `todo` of a share in process number `process`."""
        replicate = f"{share.name}#{process}"
        if share.scenario == "off":
            while todo:
                todo = self._measure(share, todo, process, replicate, "")
        elif todo:
            with tempfile.TemporaryDirectory() as scratch:
                self._measure_cached(share, todo, process, replicate, Path(scratch))

    def _measure_cached(
        self, share: Share, todo: list[CaseRef], process: int, replicate: str, scratch: Path
    ) -> None:
        """Measure with a persistent cache: `cold` in an empty directory, others in a filled one."""
        attempts = itertools.count()

        def empty() -> str:
            folder = scratch / str(next(attempts))
            folder.mkdir()
            return str(folder)

        folder = empty()
        if share.scenario != "cold":
            # CuPy's cache is filled by first calls, which is all that `warm` makes.
            scenario = "cold" if share.scenario == "warm" and not share.backend else share.scenario
            filler = dataclasses.replace(share, scenario=scenario, failures={})
            filled: dict[int, str] = {}
            left = todo
            while left:
                left = self._measure(filler, left, process, replicate, folder, filled)
            # What was put in, so that an entry that holds another program is noticed.
            todo = [
                msgspec.structs.replace(ref, fingerprint=filled.get(ref.index, "")) for ref in todo
            ]
        while todo:
            todo = self._measure(share, todo, process, replicate, folder)
            if share.scenario == "cold":
                folder = empty()  # a process that died may have written some of the others' entries

    def _measure(
        self,
        share: Share,
        todo: list[CaseRef],
        process: int,
        replicate: str,
        cache: str,
        filled: dict[int, str] | None = None,
    ) -> list[CaseRef]:
        """Run one process over `todo`; return what is left because the process did not survive.

        `cache` is the directory of the persistent cache. With `filled`, the process only fills
        that: no record is stored, and `filled` takes the fingerprint of each case's program.
        """
        refs = {ref.index: ref for ref in todo}
        by_key = {ref.key: ref for ref in todo}
        hello: list[Hello] = []

        def on_message(message: Message) -> None:
            if isinstance(message, Hello):
                hello.append(message)
            elif isinstance(message, Done):
                ref = by_key.get(message.record.key)
                if filled is None:
                    self._keep(message.record, share, ref, process)
                elif ref:
                    filled[ref.index] = message.record.fingerprint
                if ref:
                    refs.pop(ref.index)

        def on_visit(visit: Visit) -> None:
            case = share.cases.get(visit.case)
            label = case.label if case else "(the reference program)"
            self.listener.tell(share, label, visit.stage, process)

        unit = self._unit(share, todo, replicate, cache)
        if filled is not None:
            unit.passes = 1  # the first one fills the directory
        timeout = self.options.timeout_s or share.workload.timeout_s
        self.listener.tell(share, f"{len(todo)} cases", "start", process)
        ending = converse(unit, on_message, on_visit, timeout, self.options.memory_limit_bytes)
        if ending.bye:
            self.listener.timed(ending.bye)
        if not ending.reason:
            return []
        culprit = refs.get(ending.visit.case) if ending.visit else None
        if ending.visit and ending.visit.case in share.cases and not culprit:
            return list(refs.values())  # it died after the record of its last case: no one's fault
        for ref in [culprit] if culprit else list(refs.values()):
            if ending.hopeless:
                share.failures[ref.index] = MAX_FAILURES
            if filled is None:
                record = self._failure(share, ref, replicate, unit, ending, hello)
                self._keep(record, share, ref, process)
            refs.pop(ref.index)
        return list(refs.values())

    def _unit(self, share: Share, todo: list[CaseRef], replicate: str, cache: str) -> Unit:
        target = share.place
        return Unit(
            source=share.source,
            target=target.name,
            description=target.description,
            # JAX is kept from the device that CuPy computes on.
            platforms=target.platforms if share.backend in ("", "xla") else "cpu",
            environment={
                **target.environment,
                **variables(share.backend, share.threads, share.precision, cache),
            },
            backend=share.backend,
            threads=share.threads,
            cpu_devices=share.cpu_devices,
            x64=share.workload.x64,
            cases=todo,
            passes=self.options.effort.passes,
            seed=random.Random(f"{self.seed}/{replicate}").getrandbits(31),
            process_key=self.plan.instrument_key("process", share),
            reference_key=self.plan.instrument_key("reference", share),
            scenario=share.scenario,
            cache_folder=cache,
            programs=str(self.programs) if self.options.keep_programs else "",
            base=self.base(share, replicate),
        )

    def base(self, share: Share, replicate: str) -> dict[str, Any]:
        """Return the fields that all records of a share's process have alike."""
        commit = self.context.commit
        return {
            "schema": SCHEMA,
            "replicate": replicate,
            "workload": name_of(share.workload),
            "version": share.version,
            "static": list(share.workload.static),
            "target": share.target,
            "scenario": share.scenario,
            "machine": self.context.machine,
            "env": self.context.env,
            "commit": commit.hash,
            "commit_date_ms": commit.date_ms,
            "dirty": commit.dirty,
            "night": self.context.night,
            "protocol": self.options.protocol,
            "effort": self.options.effort.name,
            "sweep": self.name,
            "seed": self.seed,
            **environment.versions(),
        }

    def _failure(
        self,
        share: Share,
        ref: CaseRef,
        replicate: str,
        unit: Unit,
        ending: Ending,
        hello: list[Hello],
    ) -> Record:
        case = share.cases[ref.index]
        return Record(
            **unit.base,
            key=ref.key,
            axes=dict(case.axes),
            transform=case.transform,
            precision=case.precision,
            comparison=share.comparison,
            status="failed",
            reason=ending.reason,
            stderr=ending.stderr,
            started_at_ms=time.time_ns() // 1_000_000,
            environment=hello[0].environment if hello else to_raw({}),
            load_average=hello[0].load_average if hello else [],
        )

    def _keep(self, record: Record, share: Share, ref: CaseRef | None, process: int) -> None:
        if ref is not None:
            if record.status == "failed":
                share.failures[ref.index] = share.failures.get(ref.index, 0) + 1
            elif record.status == "skipped":
                share.failures[ref.index] = MAX_FAILURES  # another process would say the same
        self.listener.keep(record, share, ref, process)
