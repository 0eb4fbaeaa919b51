"""Measure one side of a comparison inside its process: visits in random order, and records."""

from __future__ import annotations

import gc
import os
import time
from dataclasses import dataclass, field
from typing import Any

import jax

from harness import environment, targets
from harness.baselines.case_run import CaseRun
from harness.baselines.side import Side
from harness.board import Board
from harness.comparison import Comparison
from harness.records import Record, to_raw
from harness.sampling import visits
from harness.unit import Bye, CaseRef, Done, Hello, Unit
from harness.workload import enumerate_cases

_clock = time.perf_counter_ns


@dataclass(frozen=True)
class Process:
    """What is known of the process before anything is measured."""

    cores: int
    """How many it may run on."""
    problems: list[str] = field(default_factory=list)
    """What is wrong with its environment: no record of it is comparable then."""
    labels: list[str] = field(default_factory=list)


class Session:
    """The measuring of one unit by one side; None where the side is not to be had here."""

    def __init__(
        self,
        unit: Unit,
        workload: Any,
        side: Side | None,
        send: Any,
        board: Board,
        process: Process,
    ) -> None:
        self.unit = unit
        self.workload = workload
        self.side = side
        self.send = send
        self.board = board
        self.process = process
        self.timed_ns = 0.0
        self.started_at_ms = time.time_ns() // 1_000_000
        self.load_average = list(os.getloadavg())
        self.environment = to_raw(self._environment())

    def skip(self, reason: str) -> None:
        """Say for every case why it cannot be measured here."""
        self.send(Hello(self.environment, self.load_average))
        for ref, case in self._cases():
            self.send(
                Done(
                    self.record(
                        ref.key,
                        axes=dict(case.axes),
                        transform=case.transform,
                        precision=case.precision,
                        status="skipped",
                        reason=reason,
                    )
                )
            )
        self.send(Bye(0.0, 0.0))

    def run(self) -> None:
        """Measure everything, and say goodbye."""
        assert self.side is not None
        self.send(Hello(self.environment, self.load_average))
        gc.freeze()  # what the imports left need not be looked at again
        began = _clock()
        runs = {ref.index: CaseRun(self, self.side, ref, case) for ref, case in self._cases()}
        order = visits(list(runs), self.unit.passes, self.unit.seed)
        last = {index: number for number, (_, index) in enumerate(order)}
        for number, (pass_, index) in enumerate(order):
            run = runs[index]
            if not run.over:
                run.visit(pass_)
            if last[index] == number and not run.over:
                run.finish()
        self.send(Bye(self.timed_ns, _clock() - began))

    def _cases(self) -> list[tuple[CaseRef, Any]]:
        known = list(enumerate_cases(self.workload, [self.unit.target]))
        found = []
        for ref in self.unit.cases:
            case = known[ref.index] if ref.index < len(known) else None
            if case is None or case.id != ref.id:
                reason = (
                    f"case {ref.index} is {case.id if case else 'missing'} in the measuring "
                    f"process, {ref.id} outside: a sweep must not depend on the process"
                )
                self.send(
                    Done(
                        self.record(ref.key, axes={}, transform="", status="failed", reason=reason)
                    )
                )
                continue
            found.append((ref, case))
        return found

    def _environment(self) -> dict[str, Any]:
        found = {
            **self.unit.surroundings,
            "flags": environment.flags() | self.unit.environment,
            "platform": targets.find(self.unit.target).family,
            "x64": bool(jax.config.values["jax_enable_x64"]),
        }
        found["flags"].pop("CUPY_CACHE_DIR", None)  # a scratch folder, whose path says nothing
        if self.unit.backend == "xla":
            device = jax.devices()[0]
            found |= {
                "device": device.device_kind,
                "devices": jax.device_count(),
                "platform": device.platform,
                "platform_version": device.client.platform_version,
            }
        return found

    def record(self, key: str, comparison: Comparison | None = None, **fields: Any) -> Record:
        """Return a record with everything in it that the unit and the process know."""
        base = {
            **self.unit.base,
            "key": key,
            "comparison": comparison or Comparison(self.unit.backend, self.unit.threads),
            "environment": self.environment,
            "load_average": self.load_average,
            "started_at_ms": self.started_at_ms,
            **fields,
        }
        return Record(**base)
