"""What a process that measures one side of a comparison is and knows, and its records."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jax

from harness import targets
from harness.declare.workload import Case
from harness.engine.board import Board
from harness.engine.unit import Bye, CaseRef, Done, Hello, Unit, matched
from harness.records import environment
from harness.records.comparison import Comparison
from harness.records.schema import Record, to_raw


@dataclass(frozen=True)
class Process:
    """What is known of the process before anything is measured."""

    cores: int
    """How many it may run on."""
    problems: list[str] = field(default_factory=list)
    """What is wrong with its environment: no record of it is comparable then."""
    labels: list[str] = field(default_factory=list)


class Session:
    """One process that measures one unit: what its records share.

    :func:`harness.sides.visiting.measure` takes it through its cases.
    """

    def __init__(
        self,
        unit: Unit,
        workload: Any,
        send: Any,
        board: Board,
        process: Process,
    ) -> None:
        self.unit = unit
        self.workload = workload
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
        for ref, case in self.cases():
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

    def cases(self) -> Iterator[tuple[CaseRef, Case]]:
        """Yield the unit's cases; for those that this process does not know it sends a record."""
        for ref, case, reason in matched(self.unit, self.workload):
            if case is None:
                failed = self.record(ref.key, axes={}, transform="", status="failed", reason=reason)
                self.send(Done(failed))
            else:
                yield ref, case

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
